//! Small graphs that together need every schedule, operator and format; their kernels, and the memory that these begin with.

use std::collections::HashMap;

use ds4_ir::dim::dim_value;
use ds4_ir::formats::iq2_xxs;
use ds4_ir::graph::{Constant, GraphTables, State, Weight};
use ds4_ir::numerics::Concrete;
use ds4_ir::plan::SlotRow;
use ds4_ir::plan::layout::layouts;
use ds4_ir::{
    Bounds, Builder, Dim, DimOp, Format, Op, ReduceKind, ScalarOp, ScalarType, Step, Tree, Type, Value, verify,
};
use ds4_kernels::emit::StepBlock;
use ds4_kernels::kernel::{Access, Kernel, Source};
use ds4_kernels::machine::{Cells, Numbers};
use ds4_kernels::schedule::{ScaleBlocks, Scene, kernels, side_by_side};
use ds4_kernels::weight_layout::{WeightLayout, packed};

/// The domain.
pub const D: Numbers = Concrete;

/// The bounds of all samples.
const BOUNDS: Bounds = Bounds { context: 64, columns: 8, outputs: 8 };

/// The kernels of a graph, in the order of their launches.
pub struct Sample {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// Their step block.
    pub block: StepBlock,
    tables: GraphTables,
    stored: Vec<Value>,
    weights: Vec<Stored>,
}

struct Stored {
    format: Format,
    len: usize,
    data: Vec<u8>,
    scales: Vec<u8>,
}

impl Sample {
    fn new(builder: Builder, weights: Vec<Stored>, unstored: &[Value]) -> Sample {
        let tables = builder.finish();
        let graph = tables.view();
        if let Err(fault) = verify::verify(&graph) {
            panic!("{fault}");
        }
        let has_memory = |v: &Value| match graph.op(*v) {
            Op::Weight | Op::Const | Op::Read | Op::Write => false,
            op => !op.is_view() && graph.ty(*v).format().is_none() && !unstored.contains(v),
        };
        let stored: Vec<Value> = graph.values().filter(has_memory).collect();
        let slots: Vec<SlotRow> =
            stored.iter().map(|&value| SlotRow { value, within: value, offset: 0, bytes: 0 }).collect();
        let layouts = layouts(&graph, BOUNDS, &slots);
        let blocks = |w: &Stored| if w.format.has_scales() { SCALES } else { ScaleBlocks::default() };
        let scales: Vec<ScaleBlocks> = weights.iter().map(blocks).collect();
        let scene = Scene { graph, bounds: BOUNDS, slots: &slots, layouts: &layouts, scales: &scales };
        let made = graph.values().flat_map(|v| kernels(&scene, v).unwrap_or_else(|refusal| panic!("{v}: {refusal}")));
        let mut kernels: Vec<Kernel> = made.collect();
        kernels.extend(beside(&kernels));
        Sample { block: StepBlock::of(&kernels), kernels, tables, stored, weights }
    }

    /// The value of a dimension in a step of so many columns.
    pub fn scalar(&self, columns: u32) -> impl Fn(Dim) -> u32 + '_ {
        let step = Step { position: 5, columns, outputs: columns };
        move |dim| dim_value(self.tables.dims.as_slice(), dim, step)
    }

    /// Memory as it is when a step begins.
    pub fn memories(&self) -> HashMap<Source, Cells<Numbers>> {
        let graph = self.tables.view();
        let mut memories = HashMap::new();
        for &v in &self.stored {
            let count: usize = graph.max_extents(graph.value_shape[v.0 as usize], BOUNDS).iter().product();
            memories.insert(Source::Slot(v), Cells::unwritten(count));
            memories.insert(Source::Codes(v), Cells::unwritten(count / 4));
            memories.insert(Source::Scales(v), Cells::unwritten(count / 32));
        }
        for (i, row) in (0..).zip(graph.constants) {
            let words = row.words.of(graph.constant_words);
            memories.insert(Source::Constant(Constant(i)), Cells::of_words(&D, words));
        }
        for i in 0..graph.states.len() as u32 {
            memories.insert(Source::State(State(i)), Cells::of_words(&D, &[0; 256]));
        }
        for (i, stored) in (0..).zip(&self.weights) {
            let layout = WeightLayout::of(stored.format, stored.len).unwrap();
            memories.insert(Source::Weight(Weight(i)), Cells::of_words(&D, &layout.forward(&stored.data)));
            memories.insert(Source::WeightScales(Weight(i)), Cells::of_words(&D, &packed(&stored.scales)));
        }
        let grid: Vec<u8> = iq2_xxs::GRID.iter().flat_map(|row| row.to_le_bytes()).collect();
        memories.insert(Source::Magnitudes, Cells::of_words(&D, &packed(&grid)));
        memories.insert(Source::Tokens, Cells::of_words(&D, &[0, 1, 2, 0, 1, 2, 0, 1]));
        memories
    }
}

/// Neighbours that are independent and have the same lanes, side by side.
fn beside(kernels: &[Kernel]) -> Vec<Kernel> {
    let writes = |kernel: &Kernel, other: &Kernel| {
        let mut written = kernel.arguments().filter(|(_, _, row)| row.access != Access::Read);
        written.any(|(_, source, _)| other.arguments().any(|(_, used, _)| used == source))
    };
    let pairs =
        kernels.windows(2).filter(|k| k[0].lanes == k[1].lanes && !writes(&k[0], &k[1]) && !writes(&k[1], &k[0]));
    pairs.enumerate().map(|(i, pair)| side_by_side(&format!("beside.{i}"), pair.to_vec()).unwrap()).collect()
}

/// Rows and columns of a scale.
const SCALES: ScaleBlocks = ScaleBlocks { rows: 2, cols: 32 };

/// A plain generator (xorshift).
pub struct Random(pub u64);

impl Random {
    /// The next word.
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    /// Floats of ordinary size that cancel now and then, so that a fused operation shows.
    pub fn tame(&mut self, count: usize) -> Vec<f32> {
        let mut values: Vec<f32> = Vec::with_capacity(count);
        for _ in 0..count {
            let plain = self.next() as i32 as f32 / 2_147_483_648.0;
            let previous = values.last().copied().unwrap_or(0.0);
            values.push(if self.next().is_multiple_of(4) { -previous } else { plain });
        }
        values
    }

    /// Floats of all kinds.
    pub fn wild(&mut self, count: usize) -> Vec<f32> {
        let mut values = self.tame(count);
        for value in &mut values {
            *value = match self.next() % 12 {
                0 => -0.0,
                1 => f32::from_bits(self.next() & 0x807f_ffff),
                2 => *value * 1e30,
                3 => *value * 1e-30,
                4 if self.next().is_multiple_of(8) => f32::NEG_INFINITY,
                5 if self.next().is_multiple_of(8) => f32::NAN,
                6 => f32::from_bits(self.next()),
                _ => *value,
            };
        }
        values
    }
}

/// A graph in the making.
struct Sketch {
    b: Builder,
    random: Random,
    tables: usize,
    weights: Vec<Stored>,
}

impl Sketch {
    fn new(seed: u64) -> Sketch {
        Sketch { b: Builder::new(), random: Random(seed), tables: 0, weights: Vec::new() }
    }

    fn done(self, unstored: &[Value]) -> Sample {
        Sample::new(self.b, self.weights, unstored)
    }

    fn table(&mut self, ty: Type, extents: &[u32], words: &[u32]) -> Value {
        self.tables += 1;
        let constant = self.b.add_constant(&format!("t{}", self.tables), ty, extents, words);
        self.b.constant(constant)
    }

    /// The first rows of a table, one for each column.
    fn per_column(&mut self, table: Value) -> Value {
        let (start, columns) = (self.b.n(0), self.b.columns());
        self.b.slice(table, 0, start, columns)
    }

    fn floats(&mut self, extents: &[u32], values: &[f32]) -> Value {
        let words: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
        self.table(Type::F32, extents, &words)
    }

    /// Rows of floats for each column.
    fn tame(&mut self, extents: &[u32]) -> Value {
        let values = self.random.tame(extents.iter().product::<u32>() as usize);
        let table = self.floats(extents, &values);
        self.per_column(table)
    }

    fn wild(&mut self, extents: &[u32]) -> Value {
        let values = self.random.wild(extents.iter().product::<u32>() as usize);
        let table = self.floats(extents, &values);
        self.per_column(table)
    }

    fn ints(&mut self, extents: &[u32]) -> Value {
        let count = extents.iter().product::<u32>();
        let words: Vec<u32> =
            (0..count).map(|_| (self.random.next() as i32 >> (self.random.next() % 32)) as u32).collect();
        let table = self.table(Type::I32, extents, &words);
        self.per_column(table)
    }

    /// Ids below a bound for each column, every third masked.
    fn ids(&mut self, extents: &[u32], below: u32) -> Value {
        let count = extents.iter().product::<u32>();
        let words: Vec<u32> = (0..count).map(|i| if i % 3 == 1 { u32::MAX } else { i * 7 % below }).collect();
        let table = self.table(Type::I32, extents, &words);
        let s = &mut self.b.scalars;
        let (x, zero) = (s.param(0, ScalarType::I32), s.i32(0));
        let negative = s.op(ScalarOp::LtI, &[x, zero]).unwrap();
        let present = s.op(ScalarOp::Not, &[negative]).unwrap();
        let id = s.op(ScalarOp::IdWhere, &[present, x]).unwrap();
        let body = s.body(&[ScalarType::I32], id).unwrap();
        let ids = self.b.map(body, &[table]);
        self.per_column(ids)
    }

    /// A map of one operation; of a comparison, a number that says how it went.
    fn apply(&mut self, op: ScalarOp, args: &[Value], constant: Option<i32>) -> Value {
        let (types, result) = op.signature().unwrap();
        let s = &mut self.b.scalars;
        let mut params: Vec<_> = (0..).zip(args).map(|(i, _)| s.param(i, types[i as usize])).collect();
        params.extend(constant.map(|n| s.i32(n)));
        let mut value = s.op(op, &params).unwrap();
        if result == ScalarType::Bool {
            let not = s.op(ScalarOp::Not, &[value]).unwrap();
            let both = s.op(ScalarOp::And, &[value, not]).unwrap();
            let either = s.op(ScalarOp::Or, &[value, both]).unwrap();
            let (one, two) = (s.f32(1.0), s.f32(-2.0));
            value = s.op(ScalarOp::SelectF32, &[either, one, two]).unwrap();
        }
        let body = s.body(&types[..args.len()], value).unwrap();
        self.b.map(body, args)
    }

    /// A tensor of random bytes whose f16 fields are of ordinary size.
    fn weight(&mut self, format: Format, shape: &[u32]) -> Value {
        let name = format!("w{}", self.weights.len());
        let w = self.b.add_weight(&name, Type::weight(format), shape);
        let len = *shape.last().unwrap() as usize;
        let rows = shape[..shape.len() - 1].iter().product::<u32>() as usize;
        let inner = shape[shape.len() - 2] as usize;
        let mut data: Vec<u8> = (0..rows * format.row_bytes(len).unwrap()).map(|_| self.random.next() as u8).collect();
        let halves: &[usize] = match format {
            Format::F16 | Format::Q8_0 | Format::IQ2_XXS => &[0],
            Format::Q4_K => &[0, 2],
            Format::Q2_K => &[80, 82],
            _ => &[],
        };
        for block in data.chunks_exact_mut(format.block_bytes()) {
            halves.iter().for_each(|&at| block[at + 1] = block[at + 1] & 0x83 | 0x2c);
        }
        if format == Format::I64 {
            data.chunks_exact_mut(8).for_each(|id| id.copy_from_slice(&i64::from(id[0] as i8).to_le_bytes()));
        }
        let scales = match format.has_scales() {
            true => (0..rows / inner * inner.div_ceil(2) * len.div_ceil(32)).map(|i| 120 + (i % 16) as u8).collect(),
            false => Vec::new(),
        };
        self.weights.push(Stored { format, len, data, scales });
        self.b.weight(w)
    }
}

fn maps() -> Sample {
    let mut s = Sketch::new(1);
    let floats = [s.wild(&[8, 75]), s.wild(&[8, 75])];
    let ints = [s.ints(&[8, 75]), s.ints(&[8, 75])];
    for &op in ScalarOp::ALL {
        use ScalarOp::*;
        let (types, _) = op.signature().unwrap();
        if matches!(op, RoundE2m1 | SelectF32 | SelectI | IdWhere | Present | And | Or | Not) {
            continue;
        }
        let constant = match op {
            DivI | RemI => Some(7),
            ShlI | ShrI | SarI => Some(5),
            _ => None,
        };
        let args: Vec<Value> = (0..types.len() - usize::from(constant.is_some()))
            .map(|i| if types[i] == ScalarType::F32 { floats[i] } else { ints[i] })
            .collect();
        s.apply(op, &args, constant);
    }
    s.done(&[])
}

fn moves() -> Sample {
    let mut s = Sketch::new(2);
    let x = s.tame(&[8, 3, 5]);
    let turned = s.b.permute(x, &[2, 0, 1]);
    s.apply(ScalarOp::Neg, &[turned], None);
    let wide = s.b.concat(1, &[x, x]);
    s.apply(ScalarOp::Abs, &[wide], None);
    let source = s.random.tame(18);
    let source = s.floats(&[6, 3], &source);
    let ids = s.ids(&[8, 4], 6);
    s.b.gather(0, 0, source, ids);
    let state = s.b.add_state("rows", Type::F32, &[16, 3]);
    let old = s.b.read(state);
    let places = s.table(Type::I32, &[8], &[7, 1, 3, 0, 15, 9, 2, 4]);
    let p = s.b.scalars.param(0, ScalarType::I32);
    let yes = s.b.scalars.i32(1);
    let holds = s.b.scalars.op(ScalarOp::EqI, &[yes, yes]).unwrap();
    let id = s.b.scalars.op(ScalarOp::IdWhere, &[holds, p]).unwrap();
    let body = s.b.scalars.body(&[ScalarType::I32], id).unwrap();
    let places = s.b.map(body, &[places]);
    let places = s.per_column(places);
    let rows = s.tame(&[8, 3]);
    s.b.write(old, places, rows);
    s.b.tokens();
    let (columns, three) = (s.b.columns(), s.b.n(3));
    let position = s.b.dims.dim(DimOp::Position);
    let end = s.b.dims.dim(DimOp::Add(position, columns));
    s.b.extent(end);
    s.b.iota(&[three, columns, three], 1);
    s.done(&[])
}

fn choices() -> Sample {
    let mut s = Sketch::new(3);
    let x = s.wild(&[8, 130]);
    let ids = s.ids(&[8, 130], 130);
    s.b.top_k(6, x, None);
    s.b.top_k(6, x, Some(ids));
    s.b.arg_max(x);
    s.b.sort_ids(ids);
    s.done(&[])
}

fn reductions() -> Sample {
    let mut s = Sketch::new(4);
    let x = s.tame(&[8, 300, 2]);
    let wild = s.wild(&[8, 150]);
    let ids = s.ids(&[8, 150], 150);
    for tree in [Tree::Seq, Tree::Lanes(4), Tree::Lanes(32), Tree::Lanes(128), Tree::Lanes(256)] {
        s.b.reduce(ReduceKind::Sum, tree, 1, x, None);
        s.b.reduce(ReduceKind::Sum, tree, 1, wild, Some(ids));
    }
    s.b.reduce(ReduceKind::Max, Tree::Free, 1, x, None);
    s.b.reduce(ReduceKind::Max, Tree::Free, 1, wild, Some(ids));
    let ints = s.ints(&[8, 150]);
    s.b.reduce(ReduceKind::Sum, Tree::Free, 1, ints, None);
    s.b.reduce(ReduceKind::Max, Tree::Free, 0, ints, None);
    s.done(&[])
}

fn products() -> Sample {
    let mut s = Sketch::new(5);
    let x = s.tame(&[8, 1280]);
    let q = s.b.quantise(x);
    for format in Format::ALL.into_iter().filter(|format| !format.is_integer()) {
        let w = s.weight(format, &[3, 1280]);
        s.b.product(Tree::Lanes(128), x, w, None);
        if format.takes_q8() {
            s.b.product(Tree::BLOCKS, q, w, None);
        }
        s.b.widen(w);
    }
    let y = s.random.tame(7 * 1280);
    let y = s.floats(&[7, 1280], &y);
    s.b.product(Tree::Seq, x, y, None);
    s.done(&[])
}

fn gathered() -> Sample {
    let mut s = Sketch::new(6);
    let tokens = s.b.tokens();
    let mut unstored = Vec::new();
    for format in [Format::F16, Format::Q2_K, Format::I64] {
        let w = s.weight(format, &[7, format.block_len().max(6) as u32]);
        let chosen = s.b.gather(0, 0, w, tokens);
        s.b.widen(chosen);
        unstored.push(chosen);
    }
    for (format, quantised) in [(Format::Q8_0, true), (Format::MXFP4, true), (Format::Fp8, false)] {
        let w = s.weight(format, &[4, 3, 64]);
        let ids = s.ids(&[8, 2], 4);
        let chosen = s.b.gather(0, 0, w, ids);
        let x = s.tame(&[8, 2, 64]);
        let (x, tree) = if quantised { (s.b.quantise(x), Tree::BLOCKS) } else { (x, Tree::Lanes(32)) };
        s.b.product(tree, x, chosen, None);
        unstored.push(chosen);
    }
    s.done(&unstored)
}

/// All samples.
pub fn samples() -> Vec<Sample> {
    vec![maps(), moves(), choices(), reductions(), products(), gathered()]
}
