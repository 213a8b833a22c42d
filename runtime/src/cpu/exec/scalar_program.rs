//! Scalar bodies as register programs over chunks of elements.
//!
//! A register is a chunk of words. Each instruction is a loop over the chunk, compiled for each width; constants are
//! chunks that are filled at load.

use std::collections::HashMap;

use ds4_ir::scalar::{BodyRow, ScalarRow, operands, param_of, reachable};
use ds4_ir::{ScalarOp, numerics};

use super::width::{Permute, Task};

/// Elements of a chunk.
pub(crate) const CHUNK: usize = 256;
/// Fewer elements are done in pieces of these.
const PIECES: [usize; 2] = [64, 16];

/// How many elements a program does at once where `len` are left: the loops of an instruction have a fixed length.
#[inline]
pub(crate) fn piece(len: usize) -> usize {
    match len {
        CHUNK.. => CHUNK,
        17.. => PIECES[0],
        _ => PIECES[1],
    }
}

/// Chunks of constants, shared by the programs of an entry point.
#[derive(Default)]
pub(crate) struct ConstantPool {
    blocks: Vec<Box<[u32]>>,
    places: HashMap<u32, usize>,
}

impl ConstantPool {
    fn place(&mut self, word: u32) -> usize {
        *self.places.entry(word).or_insert_with(|| {
            self.blocks.push(vec![word; CHUNK].into());
            self.blocks.len() - 1
        })
    }

    /// The chunk; its address stays as long as the pool.
    fn pointer(&self, place: usize) -> *const u32 {
        self.blocks[place].as_ptr()
    }
}

/// An instruction. Registers: inputs, then constants, then temporaries, then the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub(crate) op: ScalarOp,
    pub(crate) to: u16,
    /// Operands; 0 where the operation takes fewer.
    pub(crate) args: [u16; 3],
}

/// A body as instructions.
pub(crate) struct Program {
    /// Number of inputs.
    pub(crate) inputs: usize,
    /// Chunks of the constants, and their words.
    pub(crate) constants: Vec<super::access::Ptr>,
    pub(crate) words: Vec<u32>,
    /// Temporaries.
    pub(crate) temporaries: usize,
    pub(crate) instructions: Vec<Instruction>,
    /// About 64ths of a nanosecond for one element.
    pub(crate) cost: usize,
}

/// Nodes of a body and the last use of each.
struct Nodes {
    order: Vec<u32>,
    last_use: Vec<usize>,
}

impl Program {
    /// The program of a verified body; `None` if it has more registers than are counted.
    pub(crate) fn of(rows: &[ScalarRow], body: &BodyRow, pool: &mut ConstantPool) -> Option<Program> {
        let order: Vec<u32> = reachable(rows, body.result).iter().map(|s| s.0).collect();
        let mut nodes = Nodes { last_use: vec![0; order.len()], order };
        nodes.find_uses(rows);
        let inputs = body.params.len as usize;
        let mut builder = Allocation::new(inputs);
        builder.constants(rows, &nodes, pool);
        builder.instructions(rows, &nodes);
        let constants = builder.constants.iter();
        let constants = constants.map(|&p| super::access::Ptr(pool.pointer(p).cast_mut().cast()));
        let program = Program {
            inputs,
            constants: constants.collect(),
            words: builder.constants.iter().map(|&p| pool.blocks[p][0]).collect(),
            temporaries: builder.temporaries,
            cost: builder.list.iter().map(|i| cost(i.op)).sum::<usize>() + 8,
            instructions: builder.list,
        };
        (program.registers() <= usize::from(u16::MAX)).then_some(program)
    }

    /// Registers, the result included.
    pub(crate) fn registers(&self) -> usize {
        self.inputs + self.constants.len() + self.temporaries + 1
    }
}

impl Nodes {
    fn place(&self, x: u32) -> usize {
        self.order.partition_point(|&y| y < x)
    }

    fn find_uses(&mut self, rows: &[ScalarRow]) {
        for i in 0..self.order.len() {
            for &x in operands(&rows[self.order[i] as usize]) {
                let place = self.place(x);
                self.last_use[place] = i;
            }
        }
    }
}

/// Registers given to nodes.
struct Allocation {
    inputs: usize,
    constants: Vec<usize>,
    temporaries: usize,
    free: Vec<usize>,
    /// Register of each node, by its place.
    registers: HashMap<usize, usize>,
    list: Vec<Instruction>,
}

impl Allocation {
    fn new(inputs: usize) -> Allocation {
        Allocation {
            inputs,
            constants: Vec::new(),
            temporaries: 0,
            free: Vec::new(),
            registers: HashMap::new(),
            list: Vec::new(),
        }
    }

    /// Gives constants and parameters their registers.
    fn constants(&mut self, rows: &[ScalarRow], nodes: &Nodes, pool: &mut ConstantPool) {
        for (place, &x) in nodes.order.iter().enumerate() {
            let row = rows[x as usize];
            let register = match ScalarOp::from_number(row.op) {
                Some(ScalarOp::Param) => param_of(row.words[0]).map_or(0, |(i, _)| i as usize),
                Some(ScalarOp::F32 | ScalarOp::I32) => {
                    self.constants.push(pool.place(row.words[0]));
                    self.inputs + self.constants.len() - 1
                }
                _ => continue,
            };
            self.registers.insert(place, register);
        }
    }

    fn instructions(&mut self, rows: &[ScalarRow], nodes: &Nodes) {
        let first = self.inputs + self.constants.len();
        let mut freed: Vec<Vec<usize>> = vec![Vec::new(); nodes.order.len()];
        for (place, &x) in nodes.order.iter().enumerate() {
            let row = rows[x as usize];
            let Some(op) = ScalarOp::from_number(row.op).filter(|op| op.signature().is_some()) else {
                continue;
            };
            let mut args = [0; 3];
            for (arg, &y) in args.iter_mut().zip(operands(&row)) {
                *arg = self.registers[&nodes.place(y)] as u16;
            }
            // The result is another register than the operands: the loops rely on it.
            let register = self.free.pop().unwrap_or_else(|| {
                self.temporaries += 1;
                first + self.temporaries - 1
            });
            self.free.append(&mut freed[place]);
            self.registers.insert(place, register);
            let last = nodes.last_use[place];
            if last > place {
                freed[last].push(register);
            }
            self.list.push(Instruction { op, to: register as u16, args });
        }
        self.finish(nodes.order.len() - 1);
    }

    /// The last instruction writes the result; a body that is a parameter or a constant is copied.
    fn finish(&mut self, result: usize) {
        let register = (self.inputs + self.constants.len() + self.temporaries) as u16;
        match self.list.last_mut() {
            Some(last) => last.to = register,
            None => self.list.push(Instruction {
                op: ScalarOp::FromBits,
                to: register,
                args: [self.registers[&result] as u16, 0, 0],
            }),
        }
    }
}

/// About 64ths of a nanosecond for one element.
fn cost(op: ScalarOp) -> usize {
    use ScalarOp::*;
    match op {
        Exp | Log | Log1p => 100,
        Sin | Cos => 500,
        Div | Sqrt | RoundF16 | RoundE4m3 | RoundE2m1 => 24,
        DivI | RemI => 100,
        _ => 5,
    }
}

/// A run of a program over a piece.
pub(crate) struct RunProgram<'a> {
    pub(crate) program: &'a Program,
    /// A pointer for each register.
    pub(crate) pointers: &'a [*mut u32],
    /// Elements to do: a size that [`piece`] gives.
    pub(crate) elements: usize,
}

impl Task for RunProgram<'_> {
    #[inline(always)]
    fn run<P: Permute>(self, _permute: P) {
        let [middle, _] = PIECES;
        for i in &self.program.instructions {
            let args = i.args.map(|a| self.pointers[usize::from(a)].cast_const());
            let to = self.pointers[usize::from(i.to)];
            // SAFETY: the map that made the pointers has that many elements behind each; the result's register is
            // none of the operands'.
            unsafe {
                match self.elements {
                    CHUNK => execute::<CHUNK>(i.op, to, args),
                    n if n == middle => execute::<64>(i.op, to, args),
                    _ => execute::<16>(i.op, to, args),
                }
            }
        }
    }
}

#[inline(always)]
fn unary<const N: usize>(to: &mut [u32; N], a: &[u32; N], f: impl Fn(u32) -> u32) {
    for i in 0..N {
        to[i] = f(a[i]);
    }
}

#[inline(always)]
fn binary<const N: usize>(to: &mut [u32; N], a: &[u32; N], b: &[u32; N], f: impl Fn(u32, u32) -> u32) {
    for i in 0..N {
        to[i] = f(a[i], b[i]);
    }
}

#[inline(always)]
fn select<const N: usize>(to: &mut [u32; N], [c, a, b]: [&[u32; N]; 3]) {
    for i in 0..N {
        to[i] = if c[i] != 0 { a[i] } else { b[i] };
    }
}

/// One operation over `N` elements. It reads as many operands as its signature has.
///
/// # Safety
/// The result and each operand have that many elements; the result may be written and is none of the operands.
#[inline(always)]
pub(crate) unsafe fn execute<const N: usize>(op: ScalarOp, to: *mut u32, args: [*const u32; 3]) {
    use ScalarOp::*;
    // SAFETY: this function's contract.
    let register = |arg: *const u32| unsafe { &*arg.cast::<[u32; N]>() };
    // SAFETY: this function's contract.
    let to = unsafe { &mut *to.cast::<[u32; N]>() };
    let a = register(args[0]);
    macro_rules! float1 {
        ($f:expr) => {
            unary(to, a, |x| $f(f32::from_bits(x)).to_bits())
        };
    }
    macro_rules! float2 {
        ($f:expr) => {
            binary(to, a, register(args[1]), |x, y| $f(f32::from_bits(x), f32::from_bits(y)).to_bits())
        };
    }
    macro_rules! int2 {
        ($f:expr) => {
            binary(to, a, register(args[1]), |x, y| $f(x as i32, y as i32) as u32)
        };
    }
    macro_rules! word1 {
        ($f:expr) => {
            unary(to, a, $f)
        };
    }
    macro_rules! word2 {
        ($f:expr) => {
            binary(to, a, register(args[1]), $f)
        };
    }
    match op {
        Param | F32 | I32 | FromBits => word1!(|x| x),
        Add => float2!(|x: f32, y: f32| x + y),
        Sub => float2!(|x: f32, y: f32| x - y),
        Mul => float2!(|x: f32, y: f32| x * y),
        Div => float2!(|x: f32, y: f32| x / y),
        Sqrt => float1!(f32::sqrt),
        Neg => word1!(|x| x ^ 0x8000_0000),
        Abs => word1!(|x| x & 0x7fff_ffff),
        Min => float2!(numerics::min),
        Max => float2!(numerics::max),
        Exp => float1!(numerics::exp),
        Log => float1!(numerics::log),
        Log1p => float1!(numerics::log1p),
        Sin => float1!(numerics::sin),
        Cos => float1!(numerics::cos),
        Floor => float1!(f32::floor),
        Ceil => float1!(f32::ceil),
        Trunc => float1!(f32::trunc),
        RoundEven => float1!(f32::round_ties_even),
        RoundF16 => float1!(numerics::round_to_f16),
        RoundBf16 => float1!(numerics::round_to_bf16),
        RoundE4m3 => float1!(numerics::round_to_e4m3),
        RoundE2m1 => float1!(numerics::round_to_e2m1),
        SelectF32 | SelectI => select(to, [a, register(args[1]), register(args[2])]),
        FloatOf => word1!(|x| (x as i32 as f32).to_bits()),
        ToBits => float1!(numerics::canonical),
        AddI => word2!(u32::wrapping_add),
        SubI => word2!(u32::wrapping_sub),
        MulI => word2!(u32::wrapping_mul),
        // The divisor is a positive constant; a register's unused lanes hold it too.
        DivI => int2!(|x: i32, y: i32| x.div_euclid(y.max(1))),
        RemI => int2!(|x: i32, y: i32| x.rem_euclid(y.max(1))),
        MinI => int2!(i32::min),
        MaxI => int2!(i32::max),
        AndI | And => word2!(|x, y| x & y),
        OrI | Or => word2!(|x, y| x | y),
        XorI => word2!(|x, y| x ^ y),
        ShlI => word2!(|x: u32, y: u32| x << (y & 31)),
        ShrI => word2!(|x: u32, y: u32| x >> (y & 31)),
        SarI => int2!(|x: i32, y: i32| x >> (y & 31)),
        LtF => word2!(|x, y| u32::from(f32::from_bits(x) < f32::from_bits(y))),
        EqF => word2!(|x, y| u32::from(f32::from_bits(x) == f32::from_bits(y))),
        LtI => word2!(|x, y| u32::from((x as i32) < y as i32)),
        EqI => word2!(|x, y| u32::from(x == y)),
        Not => word1!(|x| x ^ 1),
        IdWhere => word2!(|c, x| if c != 0 { x } else { super::kernel::MASKED }),
        Present => word1!(|x| u32::from(x != super::kernel::MASKED)),
    }
}
