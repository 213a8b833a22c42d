//! A second instance of the arithmetic, which records a graph: the functions are straight-line and the same
//! operations in every instance. Graphs can be run with a fault planted, to see that the hashes notice.

use super::same;
use crate::numerics::arith::{Arith, Concrete};
use crate::numerics::{functions, hashes, order, quantise, round, trigonometry};
use std::cell::RefCell;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Op {
    Input,
    Word(u32),
    Add,
    Sub,
    Mul,
    Div,
    Sqrt,
    Neg,
    Abs,
    Floor,
    Ceil,
    Trunc,
    RoundEven,
    Cast,
    FloatOf,
    IntOf,
    AddInt,
    SubInt,
    MulInt,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Sar,
    Less,
    Equal,
    LessInt,
    Below,
    EqualInt,
    Both,
    Either,
    Not,
    Select,
}

#[derive(Clone, Copy)]
struct Node {
    op: Op,
    args: [usize; 3],
}

#[derive(Default)]
struct Graph(RefCell<Vec<Node>>);

#[derive(Clone, Copy)]
struct Float(usize);
#[derive(Clone, Copy)]
struct Int(usize);
#[derive(Clone, Copy)]
struct Truth(usize);

impl Graph {
    fn push(&self, op: Op, x: usize, y: usize, z: usize) -> usize {
        let mut nodes = self.0.borrow_mut();
        nodes.push(Node { op, args: [x, y, z] });
        nodes.len() - 1
    }
}

macro_rules! record {
    ($($name:ident = $op:ident ($($arg:ident: $ty:ident),*) -> $result:ident;)*) => {$(
        fn $name(&self, $($arg: $ty),*) -> $result {
            let args = [$($arg.0,)* 0, 0];
            $result(self.push(Op::$op, args[0], args[1], args[2]))
        }
    )*};
}

impl Arith for Graph {
    type F = Float;
    type I = Int;
    type B = Truth;

    fn float(&self, bits: u32) -> Float {
        Float(self.push(Op::Word(bits), 0, 0, 0))
    }
    fn int(&self, word: u32) -> Int {
        Int(self.push(Op::Word(word), 0, 0, 0))
    }
    fn select(&self, c: Truth, yes: Float, no: Float) -> Float {
        Float(self.push(Op::Select, c.0, yes.0, no.0))
    }
    fn select_int(&self, c: Truth, yes: Int, no: Int) -> Int {
        Int(self.push(Op::Select, c.0, yes.0, no.0))
    }
    record! {
        add = Add(x: Float, y: Float) -> Float;
        sub = Sub(x: Float, y: Float) -> Float;
        mul = Mul(x: Float, y: Float) -> Float;
        div = Div(x: Float, y: Float) -> Float;
        sqrt = Sqrt(x: Float) -> Float;
        neg = Neg(x: Float) -> Float;
        abs = Abs(x: Float) -> Float;
        floor = Floor(x: Float) -> Float;
        ceil = Ceil(x: Float) -> Float;
        trunc = Trunc(x: Float) -> Float;
        round_even = RoundEven(x: Float) -> Float;
        bits = Cast(x: Float) -> Int;
        from_bits = Cast(x: Int) -> Float;
        float_of = FloatOf(x: Int) -> Float;
        int_of = IntOf(x: Float) -> Int;
        add_int = AddInt(x: Int, y: Int) -> Int;
        sub_int = SubInt(x: Int, y: Int) -> Int;
        mul_int = MulInt(x: Int, y: Int) -> Int;
        and = And(x: Int, y: Int) -> Int;
        or = Or(x: Int, y: Int) -> Int;
        xor = Xor(x: Int, y: Int) -> Int;
        shl = Shl(x: Int, y: Int) -> Int;
        shr = Shr(x: Int, y: Int) -> Int;
        sar = Sar(x: Int, y: Int) -> Int;
        less = Less(x: Float, y: Float) -> Truth;
        equal = Equal(x: Float, y: Float) -> Truth;
        less_int = LessInt(x: Int, y: Int) -> Truth;
        below = Below(x: Int, y: Int) -> Truth;
        equal_int = EqualInt(x: Int, y: Int) -> Truth;
        both = Both(x: Truth, y: Truth) -> Truth;
        either = Either(x: Truth, y: Truth) -> Truth;
        not = Not(x: Truth) -> Truth;
    }
}

/// What a careless compiler or device does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    /// A product added or subtracted without its own rounding.
    Fused,
    /// Subnormal results of rounded operations become zero.
    Flushed,
    /// Division by multiplying with the reciprocal.
    Reciprocal,
    /// `(x + c) - c` simplified to `x`.
    Cancelled,
    /// Comparisons with NaN are true.
    Unordered,
    /// NaN of every operation has another payload, as devices do: not a fault.
    Payload,
}

/// A graph of one input and one output.
struct Program {
    nodes: Vec<Node>,
    result: usize,
}

impl Program {
    fn record(body: impl Fn(&Graph, Float) -> Float) -> Program {
        let graph = Graph::default();
        let input = Float(graph.push(Op::Input, 0, 0, 0));
        let result = body(&graph, input).0;
        let nodes = graph.0.into_inner();
        Program { nodes, result }
    }

    /// Operations without inputs and constants.
    fn len(&self) -> usize {
        let free = |n: &&Node| !matches!(n.op, Op::Input | Op::Word(_) | Op::Cast);
        self.nodes.iter().filter(free).count()
    }

    fn run(&self, x: f32, fault: Fault) -> f32 {
        let mut words: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let word = match node.op {
                Op::Input => x.to_bits(),
                op => self.step(op, node, &words, fault),
            };
            words.push(word);
        }
        f32::from_bits(words[self.result])
    }

    fn step(&self, op: Op, node: &Node, words: &[u32], fault: Fault) -> u32 {
        let word = |i: usize| words[node.args[i]];
        let float = |i: usize| f32::from_bits(word(i));
        let int = |i: usize| word(i) as i32;
        let rounded = |y: f32| match fault {
            Fault::Flushed if y.is_subnormal() => 0,
            Fault::Payload if y.is_nan() => 0xffff_ffff,
            _ => y.to_bits(),
        };
        let compared = |y: bool| u32::from(y || fault == Fault::Unordered && (float(0).is_nan() || float(1).is_nan()));
        let c = Concrete;
        match op {
            Op::Input => unreachable!("the input is not an operation"),
            Op::Word(word) => word,
            Op::Add | Op::Sub => rounded(self.sum(op, node, words, fault)),
            Op::Mul => rounded(float(0) * float(1)),
            Op::Div if fault == Fault::Reciprocal => rounded(float(0) * (1.0 / float(1))),
            Op::Div => rounded(float(0) / float(1)),
            Op::Sqrt => rounded(float(0).sqrt()),
            Op::Neg => word(0) ^ 0x8000_0000,
            Op::Abs => word(0) & 0x7fff_ffff,
            Op::Floor => rounded(float(0).floor()),
            Op::Ceil => rounded(float(0).ceil()),
            Op::Trunc => rounded(float(0).trunc()),
            Op::RoundEven => rounded(float(0).round_ties_even()),
            Op::Cast => word(0),
            Op::FloatOf => (int(0) as f32).to_bits(),
            Op::IntOf => c.int_of(float(0)) as u32,
            Op::AddInt => word(0).wrapping_add(word(1)),
            Op::SubInt => word(0).wrapping_sub(word(1)),
            Op::MulInt => word(0).wrapping_mul(word(1)),
            Op::And => word(0) & word(1),
            Op::Or => word(0) | word(1),
            Op::Xor => word(0) ^ word(1),
            Op::Shl => word(0) << in_range(word(1)),
            Op::Shr => word(0) >> in_range(word(1)),
            Op::Sar => (int(0) >> in_range(word(1))) as u32,
            Op::Less => compared(float(0) < float(1)),
            Op::Equal => compared(float(0) == float(1)),
            Op::LessInt => u32::from(int(0) < int(1)),
            Op::Below => u32::from(word(0) < word(1)),
            Op::EqualInt => u32::from(word(0) == word(1)),
            Op::Both => word(0) & word(1),
            Op::Either => word(0) | word(1),
            Op::Not => 1 - word(0),
            Op::Select => word(if word(0) == 1 { 1 } else { 2 }),
        }
    }

    /// A sum or difference, as the fault has it.
    fn sum(&self, op: Op, node: &Node, words: &[u32], fault: Fault) -> f32 {
        let [i, j, _] = node.args;
        let float = |i: usize| f32::from_bits(words[i]);
        let sign = if op == Op::Sub { -1.0 } else { 1.0 };
        let (left, right) = (self.nodes[i], self.nodes[j]);
        match fault {
            Fault::Fused if right.op == Op::Mul => {
                (sign * float(right.args[0])).mul_add(float(right.args[1]), float(i))
            }
            Fault::Fused if left.op == Op::Mul => float(left.args[0]).mul_add(float(left.args[1]), sign * float(j)),
            Fault::Cancelled if op == Op::Sub && left.op == Op::Add && left.args[1] == j => float(left.args[0]),
            _ => float(i) + sign * float(j),
        }
    }
}

/// A shift count outside its domain means something else on every device.
fn in_range(count: u32) -> u32 {
    assert!(count < 32, "shift by {count}");
    count
}

fn program(name: &str) -> Program {
    Program::record(|a, x| match name {
        "exp" => functions::exp(a, x),
        "log" => functions::log(a, x),
        "log1p" => functions::log1p(a, x),
        "sin" => trigonometry::sin(a, x),
        "cos" => trigonometry::cos(a, x),
        "sigmoid" => functions::sigmoid(a, x),
        "silu" => functions::silu(a, x),
        "softplus" => functions::softplus(a, x),
        _ => panic!("no function {name}"),
    })
}

/// Inputs at which the function of the record and its graph, run with a fault, differ.
fn differences(record: &hashes::Record, fault: Fault) -> usize {
    let program = program(record.name);
    let input: Vec<f32> = (0..u32::MAX / 20_011).map(|i| f32::from_bits(i * 20_011)).collect();
    let mut output = vec![0.0; input.len()];
    (record.apply)(&input, &mut output);
    let differs = |&(&x, &y): &(&f32, &f32)| !same(program.run(x, fault), y);
    input.iter().zip(&output).filter(differs).count()
}

#[test]
fn a_recorded_graph_has_the_same_bits() {
    for record in &hashes::RECORDS {
        assert_eq!(differences(record, Fault::None), 0, "{}", record.name);
    }
}

#[test]
fn the_payload_of_nan_does_not_matter() {
    for record in &hashes::RECORDS {
        assert_eq!(differences(record, Fault::Payload), 0, "{}", record.name);
    }
}

#[test]
fn planted_faults_are_seen() {
    let cases = [
        (Fault::Fused, "exp"),
        (Fault::Fused, "log"),
        (Fault::Fused, "cos"),
        (Fault::Cancelled, "exp"),
        (Fault::Unordered, "exp"),
        (Fault::Flushed, "sigmoid"),
        (Fault::Reciprocal, "log1p"),
    ];
    for (fault, name) in cases {
        let record = hashes::RECORDS.iter().find(|r| r.name == name).unwrap();
        assert_ne!(differences(record, fault), 0, "{fault:?} in {name}");
    }
}

/// The contract's page has the recorded table, the operation counts and the coefficients.
#[test]
fn the_page_is_true() {
    let page = include_str!("../../../../docs/numerics.md");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for record in &hashes::RECORDS {
        let start = format!("| `{}` | {:.4} | {:#010x} (", record.name, record.error, record.worst);
        let end = format!(") | {} | `{}` |", program(record.name).len(), record.hash);
        let found = page.lines().any(|l| l.starts_with(&start) && l.ends_with(&end));
        assert!(found, "no row {start}..{end}");
    }
    let tables: [&[u32]; 6] = [
        &functions::EXP_POLYNOMIAL,
        &functions::LOG_POLYNOMIAL,
        &trigonometry::SIN_POLYNOMIAL,
        &trigonometry::COS_POLYNOMIAL,
        &trigonometry::TWO_OVER_PI,
        &trigonometry::HALF_PI,
    ];
    for table in tables {
        let text = table.iter().map(|w| format!("{w:#010x}")).collect::<Vec<_>>().join(" ");
        assert!(words.contains(&text), "the page lacks {text}");
    }
}

#[test]
fn other_bodies_agree_between_instances() {
    type Body = (fn(f32) -> f32, Program);
    let c = Concrete;
    macro_rules! body {
        ($body:expr) => {{
            fn generic<A: Arith>(a: &A, x: A::F) -> A::F {
                let f: fn(&A, A::F) -> A::F = $body;
                f(a, x)
            }
            ((|x| generic(&Concrete, x)) as fn(f32) -> f32, Program::record(|a, x| generic(a, x)))
        }};
    }
    let bodies: [Body; 10] = [
        body!(round::round_to_f16),
        body!(round::round_to_bf16),
        body!(round::round_to_e4m3),
        body!(round::round_to_e2m1),
        body!(|a, x| quantise::fp8_sim(a, x, quantise::fp8_scale(a, a.abs(x)))),
        body!(|a, x| quantise::fp4_sim(a, x, quantise::fp4_scale(a, a.abs(x)))),
        body!(|a, x| order::min(a, x, a.neg(a.sqrt(x)))),
        body!(|a, x| order::amax(a, order::relu(a, x), a.float(0xbf80_0000))),
        body!(|a, x| a.float_of(quantise::q8_code(a, x, quantise::q8_scales(a, order::amax(a, a.float(0), x)).1))),
        body!(|a, x| a.select(order::outranks(a, x, a.int(0), a.float(0), a.int(1)), x, a.floor(x))),
    ];
    for (plain, recorded) in &bodies {
        for i in 0..u32::MAX / 40_009 {
            let x = f32::from_bits(i * 40_009);
            let y = recorded.run(x, Fault::None);
            assert_eq!(order::canonical(&c, plain(x)).to_bits(), order::canonical(&c, y).to_bits(), "{x:e}");
        }
    }
}
