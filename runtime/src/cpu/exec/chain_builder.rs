//! Making chains: which values follow each other in one, and their program.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ds4_ir::op::Op;
use ds4_ir::plan::Root;
use ds4_ir::{Dim, DimOp, ReduceKind, ScalarOp, Tree, Value};

use super::access::{Access, Place};
use super::chain::{Chain, Code, Fold, LANES, MemoryRun, Table};
use super::extents::Ext;
use super::reduce::Rule;
use super::scalar_program::{ConstantPool, Program};
use super::wire::Wiring;

/// Most elements of a column of a value, and most leaves of a sum.
const MOST: usize = 64;
/// Most vectors of a file; a chain ends where it would need more.
const MOST_VECTORS: usize = 16384;

/// How a chain is made.
pub(crate) struct ChainBuilder<'b, 'a> {
    wiring: &'b mut Wiring<'a>,
    pool: &'b mut ConstantPool,
    columns: Option<Ext>,
    members: BTreeMap<Value, Vectors>,
    /// Operands in memory that have been loaded, with the length of the code before.
    loaded: BTreeMap<Value, (Vectors, usize)>,
    code: Vec<Code<u32>>,
    tables: Vec<Table>,
    table_runs: HashMap<Vec<Table>, u32>,
    places: Vec<(Place, usize)>,
    constants: BTreeMap<u32, u32>,
    /// For each vector the first one of those that lie together with it.
    block: Vec<u32>,
    stores: Vec<Store>,
    /// Bytes of the arena that operands were read from.
    read: Vec<(u64, u64)>,
}

/// Vectors that lie together.
#[derive(Clone, Copy)]
struct Vectors {
    first: u32,
    /// Elements of a column.
    len: usize,
}

impl Vectors {
    fn count(self) -> usize {
        self.len.div_ceil(LANES)
    }
}

/// A value that may be stored.
struct Store {
    value: Value,
    /// Where its instructions are.
    code: std::ops::Range<usize>,
    /// The bytes of its slot.
    bytes: (u64, u64),
}

/// Elements of a column: whether the leading axis is that of the columns, and the extents of the others.
struct Form {
    columns: Option<Ext>,
    extents: Vec<usize>,
}

impl Form {
    fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// The axes in front of a column's.
    fn leading(&self) -> usize {
        usize::from(self.columns.is_some())
    }
}

impl<'b, 'a> ChainBuilder<'b, 'a> {
    pub(crate) fn new(wiring: &'b mut Wiring<'a>, pool: &'b mut ConstantPool) -> Self {
        ChainBuilder {
            wiring,
            pool,
            columns: None,
            members: BTreeMap::new(),
            loaded: BTreeMap::new(),
            code: Vec::new(),
            tables: Vec::new(),
            table_runs: HashMap::new(),
            places: Vec::new(),
            constants: BTreeMap::new(),
            block: Vec::new(),
            stores: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Adds the next value; false if it cannot be part of the chain, which is then as it was.
    pub(crate) fn add(&mut self, v: Value) -> bool {
        let mark = self.code.len();
        let added = self.members.contains_key(&v) || self.value(v).is_some();
        if !added {
            self.code.truncate(mark);
            self.loaded.retain(|_, (_, before)| *before < mark);
        }
        added
    }

    fn value(&mut self, v: Value) -> Option<()> {
        let form = self.form(v)?;
        if self.members.is_empty() {
            self.columns = form.columns;
        }
        let small = (1..=MOST).contains(&form.len()) && self.block.len() < MOST_VECTORS;
        if form.columns != self.columns || !small {
            return None;
        }
        let vectors = match self.wiring.graph.op(v) {
            Op::Map => self.map(v, &form),
            Op::Reduce => self.reduce(v, &form),
            _ => None,
        }?;
        self.store(v, &form, vectors)?;
        self.members.insert(v, vectors);
        Some(())
    }

    fn form(&mut self, v: Value) -> Option<Form> {
        let axes = self.wiring.axes(v);
        let fixed: Vec<Option<usize>> = axes.iter().map(|&ext| self.wiring.extents.fixed(ext)).collect();
        let (columns, rest) = match fixed.first() {
            Some(None) => (Some(axes[0]), &fixed[1..]),
            _ => (None, &fixed[..]),
        };
        Some(Form { columns, extents: rest.iter().copied().collect::<Option<_>>()? })
    }

    fn vectors(&mut self, len: usize) -> Vectors {
        let first = self.block.len() as u32;
        let vectors = Vectors { first, len };
        self.block.extend((0..vectors.count()).map(|_| first));
        vectors
    }

    fn vector(&mut self) -> u32 {
        self.vectors(LANES).first
    }

    fn map(&mut self, v: Value, form: &Form) -> Option<Vectors> {
        let graph = self.wiring.graph;
        let args = graph.args(v).iter().map(|&arg| self.operand(arg)).collect::<Option<Vec<_>>>()?;
        let body = &graph.bodies[graph.attrs(v)[0] as usize];
        let program = Program::of(graph.scalars, body, self.pool)?;
        let constants: Vec<u32> = program.words.iter().map(|&word| self.constant(word)).collect();
        let out = self.vectors(form.len());
        for i in 0..out.count() {
            let mut registers: Vec<u32> = args.iter().map(|vectors| vectors[i]).collect();
            registers.extend(&constants);
            registers.extend((0..program.temporaries).map(|_| self.vector()).collect::<Vec<_>>());
            registers.push(out.first + i as u32);
            for instruction in &program.instructions {
                let operands = instruction.op.signature().map_or(1, |(operands, _)| operands.len());
                let mut args = instruction.args.map(|a| registers[usize::from(a)]);
                // What is not read is as the first, which is.
                let first = args[0];
                args[operands..].fill(first);
                self.code.push(Code::Scalar { op: instruction.op, to: registers[usize::from(instruction.to)], args });
            }
        }
        Some(out)
    }

    fn constant(&mut self, word: u32) -> u32 {
        if let Some(&vector) = self.constants.get(&word) {
            return vector;
        }
        let vector = self.vector();
        self.constants.insert(word, vector);
        vector
    }

    fn reduce(&mut self, v: Value, form: &Form) -> Option<Vectors> {
        let graph = self.wiring.graph;
        let (&[x], attrs) = (graph.args(v), graph.attrs(v)) else { return None };
        let x_form = self.form(x)?;
        let axis = (attrs[2] as usize).checked_sub(x_form.leading())?;
        let leaves = *x_form.extents.get(axis)?;
        if x_form.columns != self.columns || leaves == 0 || x_form.len() > MOST {
            return None;
        }
        let (from, places) = self.elements(x)?;
        let inner: usize = x_form.extents[axis + 1..].iter().product();
        let place = |element: usize, leaf: usize| {
            let (outer, inner_at) = (element / inner, element % inner);
            places[(outer * leaves + leaf) * inner + inner_at]
        };
        let kind = ReduceKind::from_number(attrs[0])?;
        let rule = Rule::of(kind, Tree::from_number(attrs[1])?, graph.ty(v));
        let out = self.vectors(form.len());
        for i in 0..out.count() {
            let elements = i * LANES..form.len().min((i + 1) * LANES);
            let lists: Vec<Vec<usize>> =
                (0..leaves).map(|leaf| elements.clone().map(|element| place(element, leaf)).collect()).collect();
            let to = out.first + i as u32;
            match (Fold::of(rule), rule) {
                (Some(fold), _) => self.fold(fold, to, from, &lists),
                (None, Rule::Sum(Tree::Lanes(lanes))) => self.sum_lanes(lanes as usize, to, from, &lists),
                _ => return None,
            }
        }
        Some(out)
    }

    fn fold(&mut self, rule: Fold, to: u32, from: Vectors, lists: &[Vec<usize>]) {
        let (first, count, lists) = narrowed(from, lists);
        let tables = self.tables(lists.iter().map(|list| table(list)).collect());
        let leaves = lists.len() as u16;
        self.code.push(Code::Fold { rule, to, from: first, count, tables, leaves });
    }

    /// A sum in lanes: each takes its leaves in ascending order, then they are halved.
    fn sum_lanes(&mut self, lanes: usize, to: u32, from: Vectors, lists: &[Vec<usize>]) {
        let mut acc: Vec<u32> = Vec::new();
        for (u, list) in lists.iter().enumerate() {
            let leaf = self.shuffled(from, list);
            match acc.get(u % lanes).copied() {
                None => acc.push(leaf),
                Some(lane) => acc[u % lanes] = self.sum(lane, leaf),
            }
        }
        let mut half = lanes / 2;
        while half > 0 {
            for lane in half..acc.len().min(2 * half) {
                acc[lane - half] = self.sum(acc[lane - half], acc[lane]);
            }
            acc.truncate(half);
            half /= 2;
        }
        self.code.push(Code::Scalar { op: ScalarOp::FromBits, to, args: [acc[0]; 3] });
    }

    fn sum(&mut self, a: u32, b: u32) -> u32 {
        let to = self.vector();
        self.code.push(Code::Scalar { op: ScalarOp::Add, to, args: [a, b, a] });
        to
    }

    /// The vectors of an operand's elements, in their order.
    fn operand(&mut self, arg: Value) -> Option<Vec<u32>> {
        let (from, places) = self.elements(arg)?;
        Some(places.chunks(LANES).map(|places| self.shuffled(from, places)).collect())
    }

    /// One vector of elements at these places of vectors.
    fn shuffled(&mut self, from: Vectors, places: &[usize]) -> u32 {
        let in_order = places.iter().enumerate().all(|(i, &place)| place == places[0] + i);
        if in_order && places[0].is_multiple_of(LANES) {
            return from.first + (places[0] / LANES) as u32;
        }
        let (first, count, lists) = narrowed(from, &[places.to_vec()]);
        let table = self.tables(vec![table(&lists[0])]);
        let to = self.vector();
        self.code.push(Code::Shuffle { to, from: first, count, table });
        to
    }

    /// The vectors that hold an operand's elements, and the place of each in them.
    fn elements(&mut self, arg: Value) -> Option<(Vectors, Vec<usize>)> {
        if let Some((member, places)) = self.trace(arg) {
            return Some((self.members[&member], places));
        }
        if self.reaches_member(arg) {
            return None;
        }
        let vectors = match self.loaded.get(&arg) {
            Some(&(vectors, _)) => vectors,
            None => self.load(arg)?,
        };
        Some((vectors, (0..vectors.len).collect()))
    }

    /// The member that an operand is, or is a view of, and where its elements are in that.
    fn trace(&mut self, v: Value) -> Option<(Value, Vec<usize>)> {
        if let Some(vectors) = self.members.get(&v) {
            return Some((v, (0..vectors.len).collect()));
        }
        if !self.wiring.borrows(v) {
            return None;
        }
        let graph = self.wiring.graph;
        let operand = graph.args(v)[0];
        let (member, places) = self.trace(operand)?;
        let (from, to) = (self.form(operand)?, self.form(v)?);
        if from.columns != to.columns {
            return None;
        }
        let (leading, attrs) = (to.leading(), graph.attrs(v));
        let packed = ds4_ir::plan::layout::packed(&from.extents);
        let (start, strides) = match graph.op(v) {
            Op::Reshape => return (from.len() == to.len()).then_some((member, places)),
            Op::Permute => {
                let axes = attrs[leading..].iter().map(|&a| (a as usize).checked_sub(leading));
                (0, axes.map(|axis| axis.map(|axis| packed[axis])).collect::<Option<Vec<_>>>()?)
            }
            Op::Broadcast => {
                let axes = from.extents.iter().zip(&to.extents).zip(&packed);
                (0, axes.map(|((a, b), stride)| if a == b { *stride } else { 0 }).collect())
            }
            Op::Slice => {
                let axis = (attrs[0] as usize).checked_sub(leading)?;
                let Some(DimOp::Const(start)) = DimOp::of(graph.dims[Dim(attrs[1]).0 as usize]) else { return None };
                (start as usize * packed[axis], packed)
            }
            _ => return None,
        };
        let elements = offsets(&to.extents, &strides);
        Some((member, elements.into_iter().map(|offset| places[start + offset]).collect()))
    }

    /// Whether memory that an operand is read from is a member's.
    fn reaches_member(&self, v: Value) -> bool {
        let graph = self.wiring.graph;
        let mut stack = vec![v];
        while let Some(v) = stack.pop() {
            if self.members.contains_key(&v) {
                return true;
            }
            if self.wiring.is_free(v) || graph.op(v) == Op::Concat {
                stack.extend(graph.args(v));
            }
        }
        false
    }

    fn load(&mut self, arg: Value) -> Option<Vectors> {
        let form = self.form(arg)?;
        let access = self.wiring.words(arg).ok()?;
        if form.len() > MOST || form.columns.is_some() && form.columns != self.columns {
            return None;
        }
        let before = self.code.len();
        let (place, offsets) = self.place(&access, &form)?;
        let vectors = self.vectors(form.len());
        for (i, offsets) in offsets.chunks(LANES).enumerate() {
            let run = self.run(offsets);
            self.code.push(Code::Load { to: vectors.first + i as u32, place, run });
        }
        self.read.extend(self.slot_bytes(arg));
        self.loaded.insert(arg, (vectors, before));
        Some(vectors)
    }

    /// The instructions that store a value. They are dropped if nobody else reads it.
    fn store(&mut self, v: Value, form: &Form, vectors: Vectors) -> Option<()> {
        let access = self.wiring.words(v).ok()?;
        let (place, offsets) = self.place(&access, form)?;
        let begin = self.code.len();
        for (i, offsets) in offsets.chunks(LANES).enumerate() {
            let run = self.run(offsets);
            self.code.push(Code::Store { from: vectors.first + i as u32, place, run });
        }
        let bytes = self.slot_bytes(v)?;
        self.stores.push(Store { value: v, code: begin..self.code.len(), bytes });
        Some(())
    }

    /// The bytes of the arena that a value lies in.
    fn slot_bytes(&self, v: Value) -> Option<(u64, u64)> {
        match self.wiring.layouts[v.0 as usize].as_ref()?.root {
            Root::Slot(owner) => self.wiring.slot(owner).map(|slot| (slot.offset, slot.offset + slot.bytes)),
            _ => None,
        }
    }

    /// The place of an access, and the offset of each element of a column.
    fn place(&mut self, access: &Access, form: &Form) -> Option<(u16, Vec<usize>)> {
        let place = access.words()?;
        let stride = if form.columns.is_some() { access.strides[0] } else { 0 };
        let number = u16::try_from(self.places.len()).ok()?;
        self.places.push((place, stride));
        Some((number, offsets(&form.extents, &access.strides[form.leading()..])))
    }

    fn run(&mut self, offsets: &[usize]) -> MemoryRun {
        let len = offsets.len() as u8;
        match offsets.iter().enumerate().all(|(i, &offset)| offset == offsets[0] + i) {
            true => MemoryRun::Together { first: offsets[0] as u32, len },
            false => MemoryRun::Apart { table: self.tables(vec![table(offsets)]), len },
        }
    }

    fn tables(&mut self, run: Vec<Table>) -> u32 {
        let next = self.tables.len() as u32;
        let tables = &mut self.tables;
        *self.table_runs.entry(run).or_insert_with_key(|run| {
            tables.extend(run);
            next
        })
    }

    /// The chain of the values that were added; those that `is_read` elsewhere are stored.
    ///
    /// Without columns that a step may have several of, values are read and written in the order in which single kernels
    /// would. Else a column is done before the next one begins: `Err` is the first value whose memory another column
    /// still needs for something else.
    pub(crate) fn finish(self, is_read: impl Fn(Value) -> bool) -> Result<Chain, Value> {
        let stored: Vec<bool> = self.stores.iter().map(|store| is_read(store.value)).collect();
        let unit = self.wiring.extents.constant(1);
        let columns = self.columns.unwrap_or(unit);
        if self.wiring.extents.largest(columns) > 1 {
            let mut taken = self.read.clone();
            for (store, _) in self.stores.iter().zip(&stored).filter(|(_, stored)| **stored) {
                if taken.iter().any(|&(start, end)| start < store.bytes.1 && store.bytes.0 < end) {
                    return Err(store.value);
                }
                taken.push(store.bytes);
            }
        }
        let dropped: BTreeSet<usize> =
            self.stores.iter().zip(&stored).filter(|(_, stored)| !**stored).flat_map(|(s, _)| s.code.clone()).collect();
        let kept = self.code.iter().enumerate().filter(|(i, _)| !dropped.contains(i));
        let code: Vec<Code<u32>> = kept.map(|(_, code)| *code).collect();
        let mut file = Allocation::new(&self.block, &code);
        let constants = self.constants.iter().map(|(&word, &vector)| (file.hold(vector), word)).collect();
        let code = code.iter().enumerate().map(|(i, code)| file.place(i, code)).collect();
        Ok(Chain { columns, code, tables: self.tables, places: self.places, constants, vectors: file.used })
    }
}

/// The vectors that lists of places need, how many, and the lists as places in these.
fn narrowed(from: Vectors, lists: &[Vec<usize>]) -> (u32, u16, Vec<Vec<usize>>) {
    let all = || lists.iter().flatten().copied();
    let (low, high) = (all().min().unwrap_or(0) / LANES, all().max().unwrap_or(0) / LANES);
    let lists = lists.iter().map(|list| list.iter().map(|place| place - low * LANES).collect()).collect();
    (from.first + low as u32, (high - low + 1) as u16, lists)
}

/// A table; what lies behind the last element is as the first.
fn table(places: &[usize]) -> Table {
    std::array::from_fn(|i| places.get(i).map_or(places[0], |&place| place) as u32)
}

/// The offsets of all positions, in row-major order.
fn offsets(extents: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    for (&extent, &stride) in extents.iter().zip(strides) {
        offsets = offsets.iter().flat_map(|&offset| (0..extent).map(move |i| offset + i * stride)).collect();
    }
    offsets
}

/// Vectors of the file for those of the code: each from the instruction that makes it to the last that reads it.
struct Allocation<'a> {
    block: &'a [u32],
    /// The last instruction that touches the vectors of each block.
    last: Vec<usize>,
    /// Where a block lies now.
    place: Vec<Option<u16>>,
    /// Free places, by the number of vectors.
    free: BTreeMap<usize, Vec<u16>>,
    used: usize,
}

impl<'a> Allocation<'a> {
    fn new(block: &'a [u32], code: &[Code<u32>]) -> Allocation<'a> {
        let mut last = vec![0; block.len()];
        for (i, code) in code.iter().enumerate() {
            code.vectors().into_iter().for_each(|v| last[block[v as usize] as usize] = i);
        }
        Allocation { block, last, place: vec![None; block.len()], free: BTreeMap::new(), used: 0 }
    }

    fn len(&self, first: u32) -> usize {
        self.block[first as usize..].iter().take_while(|&&block| block == first).count()
    }

    /// A vector that stays to the end.
    fn hold(&mut self, vector: u32) -> u16 {
        self.last[vector as usize] = usize::MAX;
        self.at(vector)
    }

    fn at(&mut self, vector: u32) -> u16 {
        let first = self.block[vector as usize];
        let len = self.len(first);
        let place = self.place[first as usize].unwrap_or_else(|| {
            self.free.get_mut(&len).and_then(Vec::pop).unwrap_or_else(|| {
                self.used += len;
                (self.used - len) as u16
            })
        });
        self.place[first as usize] = Some(place);
        place + (vector - first) as u16
    }

    /// Instruction `i` with its vectors in the file. What it reads for the last time is free behind it, so its result is
    /// another vector.
    fn place(&mut self, i: usize, code: &Code<u32>) -> Code<u16> {
        let placed = code.with(|vector| self.at(vector));
        for vector in code.vectors() {
            let first = self.block[vector as usize];
            if self.last[first as usize] == i
                && let Some(place) = self.place[first as usize].take()
            {
                let len = self.len(first);
                self.free.entry(len).or_default().push(place);
            }
        }
        placed
    }
}

impl Code<u32> {
    /// The first vectors of all that the instruction touches.
    fn vectors(&self) -> Vec<u32> {
        match *self {
            Code::Scalar { to, args, .. } => [&[to], &args[..]].concat(),
            Code::Shuffle { to, from, .. } | Code::Fold { to, from, .. } => vec![to, from],
            Code::Load { to, .. } => vec![to],
            Code::Store { from, .. } => vec![from],
        }
    }

    fn with(&self, mut at: impl FnMut(u32) -> u16) -> Code<u16> {
        match *self {
            Code::Scalar { op, to, args } => Code::Scalar { op, to: at(to), args: args.map(&mut at) },
            Code::Shuffle { to, from, count, table } => Code::Shuffle { to: at(to), from: at(from), count, table },
            Code::Fold { rule, to, from, count, tables, leaves } => {
                Code::Fold { rule, to: at(to), from: at(from), count, tables, leaves }
            }
            Code::Load { to, place, run } => Code::Load { to: at(to), place, run },
            Code::Store { from, place, run } => Code::Store { from: at(from), place, run },
        }
    }
}
