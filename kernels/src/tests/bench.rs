//! A graph on the bench: every value has memory, its kernels run on the machine in both lane orders, and each value is
//! compared with the evaluator's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use ds4_ir::dim::dim_value;
use ds4_ir::eval::{Data, Evaluator, States, Tensor, WeightSource};
use ds4_ir::formats::WeightRow;
use ds4_ir::graph::{GraphTables, State, Weight};
use ds4_ir::numerics::canonical;
use ds4_ir::plan::layout::layouts;
use ds4_ir::plan::{Layout, Root, SlotRow};
use ds4_ir::{Bounds, Builder, Dim, Format, Graph, Op, ScalarOp, ScalarType, Step, Type, Value};

use crate::Target;
use crate::emit::{self, StepBlock};
use crate::kernel::{Kernel, Source, verify};
use crate::machine::{Cells, Check, LaneOrder, Machine, Numbers, Trap};
use crate::read::{self, Fault, Reading};
use crate::region::{self, Limits, Region, RegionPlan};
use crate::schedule::{ScaleBlocks, Scene, kernels};
use crate::weight_layout::{WeightLayout, packed};

use super::terms::{Terms, leaves, terms};

pub(crate) const D: Numbers = ds4_ir::numerics::Concrete;

/// A language of kernels: its printer, the rules of its texts, and its reader.
pub(crate) struct Language {
    pub(crate) target: Target,
    pub(crate) emit: fn(&Kernel, &StepBlock) -> Option<String>,
    pub(crate) broken_rule: fn(&str) -> Option<String>,
    pub(crate) read: fn(&str) -> Result<Reading, Fault>,
}

/// The languages in which every test of the bench runs its kernels again, printed and read.
pub(crate) const LANGUAGES: [Language; 3] = [
    Language {
        target: Target::Wgsl,
        emit: emit::wgsl::emit,
        broken_rule: emit::wgsl::tests::broken_rule,
        read: read::wgsl::read,
    },
    Language {
        target: Target::Ptx,
        emit: emit::ptx::emit,
        broken_rule: |text| {
            emit::ptx::tests::broken_rule(text).or_else(|| read::ptx::tests::changes::untried_line(text))
        },
        read: read::ptx::read,
    },
    Language {
        target: Target::Hip,
        emit: emit::hip::emit,
        broken_rule: emit::hip::tests::broken_rule,
        read: read::hip::read,
    },
];

/// A checkpoint in memory.
#[derive(Clone, Default)]
pub(crate) struct Checkpoint {
    tensors: Vec<Stored>,
}

#[derive(Clone)]
struct Stored {
    format: Format,
    len: usize,
    /// Rows of the last axis but one.
    inner: usize,
    data: Vec<u8>,
    scales: Vec<u8>,
    blocks: ScaleBlocks,
}

impl Checkpoint {
    /// Adds a tensor of `outer * inner` rows with these bytes, its scales over blocks of `blocks`.
    pub(crate) fn add(
        &mut self,
        format: Format,
        shape: [usize; 3],
        data: Vec<u8>,
        scales: Vec<u8>,
        blocks: ScaleBlocks,
    ) {
        let [outer, inner, len] = shape;
        assert_eq!(data.len(), outer * inner * format.row_bytes(len).unwrap());
        self.tensors.push(Stored { format, len, inner, data, scales, blocks });
    }

    /// Adds a tensor of random bytes. Most f16 fields are of ordinary size, so that a NaN does not hide everything.
    pub(crate) fn random(&mut self, format: Format, shape: [usize; 3], random: &mut Random) {
        let [outer, inner, len] = shape;
        let bytes = outer * inner * format.row_bytes(len).unwrap();
        let mut data: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
        for (i, block) in data.chunks_exact_mut(format.block_bytes()).enumerate() {
            for at in halves(format) {
                if !(random.next() as usize + i).is_multiple_of(101) {
                    block[at + 1] = block[at + 1] & 0x83 | 0x2c;
                }
            }
        }
        if format == Format::I64 {
            data.chunks_exact_mut(8).for_each(|id| id.copy_from_slice(&i64::from(id[0] as i8).to_le_bytes()));
        }
        let blocks = if format.has_scales() { ScaleBlocks { rows: 2, cols: 32 } } else { ScaleBlocks::default() };
        let scales = match format.has_scales() {
            true => {
                (0..outer * inner.div_ceil(2) * len.div_ceil(32)).map(|_| 120 + (random.next() % 16) as u8).collect()
            }
            false => Vec::new(),
        };
        self.add(format, shape, data, scales, blocks);
    }
}

/// Places of the f16 fields of a block.
fn halves(format: Format) -> &'static [usize] {
    match format {
        Format::F16 | Format::Q8_0 | Format::IQ2_XXS => &[0],
        Format::Q4_K => &[0, 2],
        Format::Q2_K => &[80, 82],
        _ => &[],
    }
}

impl WeightSource for Checkpoint {
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>> {
        let stored = &self.tensors[weight.0 as usize];
        let bytes = stored.format.row_bytes(stored.len)?;
        let across = stored.len.div_ceil(stored.blocks.cols.max(1) as usize);
        let down = stored.inner.div_ceil(stored.blocks.rows.max(1) as usize);
        let scale_row = row / stored.inner * down + row % stored.inner / stored.blocks.rows.max(1) as usize;
        Some(WeightRow {
            format: stored.format,
            data: stored.data.get(row * bytes..(row + 1) * bytes)?,
            scales: match stored.format.has_scales() {
                true => stored.scales.get(scale_row * across..(scale_row + 1) * across)?,
                false => &[],
            },
            scale_cols: stored.blocks.cols as usize,
        })
    }
}

/// A plain generator (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    /// Floats that show what random ones hide: cancelling, signed zeros, subnormals, infinities, NaN, ties.
    pub(crate) fn adversarial(&mut self, count: usize) -> Vec<f32> {
        let mut values: Vec<f32> = Vec::with_capacity(count);
        for i in 0..count {
            let plain = self.next() as i32 as f32 / 2_147_483_648.0;
            let previous = values.last().copied().unwrap_or(0.0);
            let value = match self.next() % 16 {
                0 => -previous,
                1 => previous,
                2 => -0.0,
                3 => 0.0,
                4 => f32::from_bits(self.next() & 0x807f_ffff),
                5 => plain * 1e30,
                6 => plain * 1e-30,
                7 if i % 97 == 7 => f32::INFINITY,
                8 if i % 89 == 8 => f32::NEG_INFINITY,
                9 if i % 101 == 9 => f32::from_bits(0xffc0_0001),
                10 => f32::from_bits(self.next()),
                _ => plain,
            };
            values.push(value);
        }
        values
    }

    /// Floats of ordinary size that cancel now and then.
    pub(crate) fn tame(&mut self, count: usize) -> Vec<f32> {
        let mut values: Vec<f32> = Vec::with_capacity(count);
        for _ in 0..count {
            let plain = self.next() as i32 as f32 / 2_147_483_648.0;
            let previous = values.last().copied().unwrap_or(0.0);
            values.push(if self.next().is_multiple_of(4) { -previous } else { plain });
        }
        values
    }
}

/// A finished graph with its memory.
pub(crate) struct Bench {
    pub(crate) tables: GraphTables,
    checkpoint: Checkpoint,
    bounds: Bounds,
    layouts: Vec<Option<Layout>>,
    scales: Vec<ScaleBlocks>,
    stored: Vec<Value>,
    slots: Vec<SlotRow>,
    regions: Vec<Fused>,
}

/// Values of a graph that one kernel computes.
#[derive(Clone, Debug)]
pub(crate) struct Fused {
    /// All of them, ascending.
    pub(crate) values: Vec<Value>,
    /// How the last one is split.
    pub(crate) tiles: Vec<u32>,
    /// Those with memory.
    pub(crate) stored: Vec<Value>,
    /// What a workgroup has.
    pub(crate) limits: Limits,
}

/// What caught a planted fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Caught {
    /// The kernel is not well-formed.
    Verifier,
    /// The text is no kernel.
    Reader,
    /// The machine refused to go on.
    Machine(Check),
    /// The result has other bits than the evaluator's.
    Bits,
}

/// Memory of all sources.
pub(crate) type Memories = HashMap<Source, Cells<Numbers>>;

impl Fused {
    /// All values from one to another but leaves of the graph; those in `stored` have memory.
    pub(crate) fn range(first: Value, last: Value, tiles: &[u32], stored: &[Value]) -> Fused {
        let mut stored = stored.to_vec();
        stored.sort();
        let limits = Limits { workgroup_bytes: 16 << 10, lanes: 128, iterations: u32::MAX };
        Fused { values: (first.0..=last.0).map(Value).collect(), tiles: tiles.to_vec(), stored, limits }
    }

    /// The same with workgroups of other size.
    pub(crate) fn lanes(mut self, lanes: u32) -> Fused {
        self.limits.lanes = lanes;
        self
    }
}

impl Bench {
    /// Every value has memory but leaves, views, writes and those of `unstored`.
    pub(crate) fn new(builder: Builder, checkpoint: Checkpoint, unstored: &[Value]) -> Bench {
        Bench::placed(builder, checkpoint, unstored, &[], &[])
    }

    /// The same, these views have memory too, and the first of each pair lies inside the concat that is the second.
    pub(crate) fn placed(
        builder: Builder,
        checkpoint: Checkpoint,
        unstored: &[Value],
        views: &[Value],
        within: &[(Value, Value)],
    ) -> Bench {
        Bench::made(builder.finish(), checkpoint, (unstored, views, within), Vec::new())
    }

    /// Every value has memory but leaves, views, writes and those that regions compute and do not store.
    pub(crate) fn fused(tables: &GraphTables, checkpoint: &Checkpoint, regions: Vec<Fused>) -> Bench {
        Bench::fused_within(tables, checkpoint, regions, &[])
    }

    /// The same, and the first of each pair lies inside the concat that is the second.
    pub(crate) fn fused_within(
        tables: &GraphTables,
        checkpoint: &Checkpoint,
        regions: Vec<Fused>,
        within: &[(Value, Value)],
    ) -> Bench {
        let inner = |fused: &Fused| -> Vec<Value> {
            fused.values.iter().copied().filter(|v| !fused.stored.contains(v)).collect()
        };
        let unstored: Vec<Value> = regions.iter().flat_map(inner).collect();
        let views: Vec<Value> = regions.iter().flat_map(|fused| fused.stored.clone()).collect();
        Bench::made(tables.clone(), checkpoint.clone(), (&unstored, &views, within), regions)
    }

    fn made(
        tables: GraphTables,
        checkpoint: Checkpoint,
        (unstored, views, within): (&[Value], &[Value], &[(Value, Value)]),
        mut regions: Vec<Fused>,
    ) -> Bench {
        let graph = tables.view();
        let leaf = |v: &Value| matches!(graph.op(*v), Op::Weight | Op::Const | Op::Read);
        regions.iter_mut().for_each(|fused| fused.values.retain(|v| !leaf(v)));
        if let Err(fault) = ds4_ir::verify::verify(&graph) {
            panic!("{fault}");
        }
        let bounds = Bounds { context: 64, columns: 8, outputs: 8 };
        let has_memory = |v: &Value| match graph.op(*v) {
            Op::Weight | Op::Const | Op::Read | Op::Write => false,
            _ if graph.ty(*v).format().is_some() => false,
            op if op.is_view() => views.contains(v),
            _ => !unstored.contains(v),
        };
        let stored: Vec<Value> = graph.values().filter(has_memory).collect();
        let owner = |v: Value| within.iter().find(|pair| pair.0 == v).map_or(v, |pair| pair.1);
        let slot = |&value: &Value| SlotRow { value, within: owner(value), offset: 0, bytes: 0 };
        let slots: Vec<SlotRow> = stored.iter().map(slot).collect();
        let layouts = layouts(&graph, bounds, &slots);
        let scales = checkpoint.tensors.iter().map(|t| t.blocks).collect();
        Bench { tables, checkpoint, bounds, layouts, scales, stored, slots, regions }
    }

    pub(crate) fn graph(&self) -> Graph<'_> {
        self.tables.view()
    }

    pub(crate) fn scene(&self) -> Scene<'_> {
        Scene {
            graph: self.graph(),
            bounds: self.bounds,
            slots: &self.slots,
            layouts: &self.layouts,
            scales: &self.scales,
        }
    }

    /// The plan and the kernel of a region.
    pub(crate) fn region(&self, fused: &Fused) -> Result<(RegionPlan, Kernel), region::Refusal> {
        let region = Region { values: &fused.values, tiles: &fused.tiles };
        let stored = |v: Value| fused.stored.contains(&v);
        let plan = region::plan(&self.graph(), self.bounds, &region, &stored, fused.limits)?;
        let kernel = region::kernel(&self.scene(), &region, &plan)?;
        Ok((plan, kernel))
    }

    /// The kernels of a value; those of a region at its last value.
    pub(crate) fn kernels(&self, v: Value) -> Vec<Kernel> {
        if let Some(fused) = self.regions.iter().find(|fused| fused.values.contains(&v)) {
            if fused.values.last() != Some(&v) {
                return Vec::new();
            }
            let (_, kernel) = self.region(fused).unwrap_or_else(|refusal| panic!("region of {v} {fused:?}: {refusal}"));
            verify(&kernel).unwrap_or_else(|wrong| panic!("{}: {wrong}\n{kernel:#?}", kernel.name));
            return vec![kernel];
        }
        let made = kernels(&self.scene(), v).unwrap_or_else(|refusal| panic!("{v}: {refusal}"));
        for kernel in &made {
            verify(kernel).unwrap_or_else(|wrong| panic!("{}: {wrong}\n{kernel:#?}", kernel.name));
        }
        made
    }

    /// All kernels, in the order of their launches.
    pub(crate) fn all_kernels(&self) -> Vec<Kernel> {
        self.graph().values().flat_map(|v| self.kernels(v)).collect()
    }

    /// Memory as it is when a step begins.
    pub(crate) fn memories(&self, states: &States, tokens: &[u32]) -> Memories {
        let graph = self.graph();
        let mut memories = Memories::new();
        for &v in &self.stored {
            let shape = graph.value_shape[v.0 as usize];
            let count: usize = graph.max_extents(shape, self.bounds).iter().product();
            memories.insert(Source::Slot(v), Cells::unwritten(count));
            memories.insert(Source::Codes(v), Cells::unwritten(count / 4));
            memories.insert(Source::Scales(v), Cells::unwritten(count / 32));
        }
        for i in 0..graph.states.len() as u32 {
            memories.insert(Source::State(State(i)), Cells::of_floats(&D, states.words(State(i))));
        }
        for (i, row) in (0..).zip(graph.constants) {
            let words = row.words.of(graph.constant_words);
            memories.insert(Source::Constant(ds4_ir::graph::Constant(i)), Cells::of_words(&D, words));
        }
        for (i, stored) in (0..).zip(&self.checkpoint.tensors) {
            let layout = WeightLayout::of(stored.format, stored.len).unwrap();
            memories.insert(Source::Weight(Weight(i)), Cells::of_words(&D, &layout.forward(&stored.data)));
            memories.insert(Source::WeightScales(Weight(i)), Cells::of_words(&D, &packed(&stored.scales)));
        }
        let grid = ds4_ir::formats::iq2_xxs::GRID.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<u8>>();
        memories.insert(Source::Magnitudes, Cells::of_words(&D, &packed(&grid)));
        memories.insert(Source::Tokens, Cells::of_words(&D, tokens));
        memories
    }

    /// Runs kernels in one lane order.
    pub(crate) fn execute(
        &self,
        kernels: &[Kernel],
        step: Step,
        memories: &mut Memories,
        order: LaneOrder,
    ) -> Result<(), Trap> {
        let scalar = |dim| dim_value(self.tables.dims.as_slice(), dim, step);
        kernels.iter().try_for_each(|kernel| {
            let machine = Machine::new(kernel, &D, order).unwrap();
            launch(kernel, memories, |cells| machine.run(&scalar, cells))
        })
    }

    /// The same, of those kernels that were read from a text as the text says.
    pub(crate) fn execute_texts(
        &self,
        kernels: &[Kernel],
        texts: &[Option<Reading>],
        step: Step,
        memories: &mut Memories,
        order: LaneOrder,
    ) -> Result<(), Trap> {
        let words = self.step_words(kernels, step);
        kernels.iter().zip(texts).try_for_each(|(kernel, text)| {
            let Some(text) = text else {
                return self.execute(std::slice::from_ref(kernel), step, memories, order);
            };
            let machine = Machine::new(&text.kernel, &D, order).unwrap().with_lines(&text.lines);
            launch(kernel, memories, |cells| machine.run(&|place| words[place.0 as usize], cells))
        })
    }

    /// The step's block.
    pub(crate) fn step_words(&self, kernels: &[Kernel], step: Step) -> Vec<u32> {
        StepBlock::of(kernels).words(&|dim| dim_value(self.tables.dims.as_slice(), dim, step))
    }

    /// What the evaluator gives for all stored values, and the states after the step.
    pub(crate) fn evaluate(&self, states: &mut States, step: Step, tokens: &[u32]) -> Vec<Tensor> {
        let graph = self.graph();
        Evaluator::new(graph, &self.checkpoint).step(states, step, tokens, &self.stored).unwrap()
    }

    /// The first difference between the machine's memory and the evaluator's values.
    pub(crate) fn difference(&self, expected: &[Tensor], memories: &Memories) -> Option<String> {
        let all = self.stored.iter().zip(expected);
        all.map(|(&v, tensor)| self.compare(v, tensor, memories)).find_map(|found| found)
    }

    fn compare(&self, v: Value, tensor: &Tensor, memories: &Memories) -> Option<String> {
        let layout = self.layouts[v.0 as usize].as_ref().unwrap();
        let count: usize = tensor.extents.iter().product();
        let Root::Slot(owner) = layout.root else { panic!("{v} is stored") };
        for i in 0..count {
            let mut rest = i;
            let mut place = layout.offset;
            for (&extent, &stride) in tensor.extents.iter().zip(&layout.strides).rev() {
                place += rest % extent * stride;
                rest /= extent;
            }
            let (got, wanted) = match &tensor.data {
                Data::Words(words) if !tensor.is_absent(i) => {
                    (memories[&Source::Slot(owner)].word(&D, place).map(|w| seen(tensor, w)), words[i])
                }
                Data::Q8 { codes, scales } => {
                    let word = memories[&Source::Codes(v)].word(&D, place / 4);
                    let code = word.map(|w| w.to_le_bytes()[place % 4]);
                    let scale = memories[&Source::Scales(v)].word(&D, place / 32).map(canonical_bits);
                    let wanted = canonical_bits(scales[i / 32].to_bits());
                    if scale != Some(wanted) {
                        return Some(format!("{v} scale {}: {scale:x?}, wanted {wanted:x}", i / 32));
                    }
                    (code.map(u32::from), u32::from(codes[i] as u8))
                }
                _ => continue,
            };
            if got != Some(wanted) {
                return Some(format!("{v} element {i}: {got:x?}, wanted {wanted:x}"));
            }
        }
        None
    }

    /// The check that catches a kernel put in the place of the one at `index`: the verifier, one of the machine's, or the
    /// comparison of bits; `None` if nothing does.
    pub(crate) fn caught(&self, kernels: &[Kernel], index: usize, faulty: &Kernel, columns: u32) -> Option<Caught> {
        if verify(faulty).is_err() {
            return Some(Caught::Verifier);
        }
        let mut kernels = kernels.to_vec();
        kernels[index] = faulty.clone();
        let found = self.first_found(columns, &|step, memories, order| self.execute(&kernels, step, memories, order));
        found.map(|(caught, _)| caught)
    }

    /// The same of a text in the place of that kernel's, and where the machine trapped.
    pub(crate) fn caught_in_text(
        &self,
        language: &Language,
        kernels: &[Kernel],
        index: usize,
        text: &str,
        columns: u32,
    ) -> Option<(Caught, Option<Trap>)> {
        let Ok(reading) = (language.read)(text) else { return Some((Caught::Reader, None)) };
        let mut texts = vec![None; kernels.len()];
        texts[index] = Some(reading);
        self.first_found(columns, &|step, memories, order| self.execute_texts(kernels, &texts, step, memories, order))
    }

    /// What catches a run first, in both lane orders.
    fn first_found(
        &self,
        columns: u32,
        run: &dyn Fn(Step, &mut Memories, LaneOrder) -> Result<(), Trap>,
    ) -> Option<(Caught, Option<Trap>)> {
        let step = Step { position: 5, columns, outputs: columns };
        let tokens: Vec<u32> = (0..columns).map(|i| i % 3).collect();
        let mut states = States::new(&self.graph());
        let before = states.clone();
        let expected = self.evaluate(&mut states, step, &tokens);
        LaneOrder::ALL.into_iter().find_map(|order| {
            let mut memories = self.memories(&before, &tokens);
            match run(step, &mut memories, order) {
                Err(trap) => Some((Caught::Machine(trap.check), Some(trap))),
                Ok(()) => self.difference(&expected, &memories).map(|_| (Caught::Bits, None)),
            }
        })
    }

    /// Runs steps of these widths and compares everything, in both lane orders.
    pub(crate) fn check(&self, columns: &[u32]) {
        let steps = columns.iter().map(|&columns| Step { position: 5, columns, outputs: columns });
        self.check_steps(&steps.collect::<Vec<_>>());
    }

    /// Runs these steps, each from the beginning of a sequence, and compares everything, in both lane orders: the kernels
    /// as they are, and in the first and the last step as each language's text says.
    pub(crate) fn check_steps(&self, steps: &[Step]) {
        self.check_kernels(&self.all_kernels(), steps);
    }

    /// The same of other kernels in the place of the values' own.
    pub(crate) fn check_kernels(&self, kernels: &[Kernel], steps: &[Step]) {
        let texts = LANGUAGES.map(|language| (language.target.name(), language.texts(kernels)));
        for (i, &step) in steps.iter().enumerate() {
            let tokens: Vec<u32> = (0..step.columns).map(|i| i % 3).collect();
            let mut states = States::new(&self.graph());
            let before = states.clone();
            let expected = self.evaluate(&mut states, step, &tokens);
            for order in LaneOrder::ALL {
                let mut memories = self.memories(&before, &tokens);
                let done = self.execute(kernels, step, &mut memories, order);
                self.same("kernels", done, &expected, &states, &memories);
                for (name, texts) in texts.iter().filter(|_| i == 0 || i + 1 == steps.len()) {
                    let mut memories = self.memories(&before, &tokens);
                    let done = self.execute_texts(kernels, texts, step, &mut memories, order);
                    self.same(name, done, &expected, &states, &memories);
                }
            }
        }
        steps.last().into_iter().for_each(|&step| self.same_terms(kernels, &texts, step));
    }

    /// Runs these steps as kernels only, in both lane orders.
    pub(crate) fn check_ir(&self, steps: &[Step]) {
        let kernels = self.all_kernels();
        for &step in steps {
            let tokens: Vec<u32> = (0..step.columns).map(|i| i % 3).collect();
            let mut states = States::new(&self.graph());
            let before = states.clone();
            let expected = self.evaluate(&mut states, step, &tokens);
            for order in LaneOrder::ALL {
                let mut memories = self.memories(&before, &tokens);
                let done = self.execute(&kernels, step, &mut memories, order);
                self.same("kernels", done, &expected, &states, &memories);
            }
        }
    }

    /// Asserts that each kernel does the same operations on the same elements as its texts do.
    fn same_terms(&self, kernels: &[Kernel], texts: &[(&str, Vec<Option<Reading>>)], step: Step) {
        let tokens: Vec<u32> = (0..step.columns).map(|i| i % 3).collect();
        let mut memories = self.memories(&States::new(&self.graph()), &tokens);
        let words = self.step_words(kernels, step);
        let domain = Terms::folding();
        for (i, kernel) in kernels.iter().enumerate() {
            let run = |kernel: &Kernel, scalar: &dyn Fn(Dim) -> u32, mut cells: Vec<Cells<Terms>>| {
                Machine::new(kernel, &domain, LaneOrder::Ascending).unwrap().run(scalar, &mut cells).unwrap();
                terms(&cells)
            };
            let sources = kernel.arguments().map(|(_, source, _)| source);
            let before: Vec<_> = sources.enumerate().map(|(i, source)| leaves(i, &memories[&source])).collect();
            let dims = |dim| dim_value(self.tables.dims.as_slice(), dim, step);
            let expected = run(kernel, &dims, before.clone());
            for (name, texts) in texts {
                let text = texts[i].as_ref().unwrap();
                let found = run(&text.kernel, &|place| words[place.0 as usize], before.clone());
                assert!(found == expected, "{name}: the terms of {} differ", kernel.name);
            }
            self.execute(std::slice::from_ref(kernel), step, &mut memories, LaneOrder::Ascending).unwrap();
        }
    }

    /// Asserts that a run ended with the evaluator's values and states.
    fn same(&self, run: &str, done: Result<(), Trap>, expected: &[Tensor], states: &States, memories: &Memories) {
        done.unwrap_or_else(|trap| panic!("{run}: {trap}"));
        if let Some(difference) = self.difference(expected, memories) {
            panic!("{run}: {difference}");
        }
        for i in 0..self.graph().states.len() as u32 {
            let cells = &memories[&Source::State(State(i))];
            let got: Vec<u32> = (0..cells.len()).map(|at| cells.word(&D, at).unwrap()).collect();
            assert_eq!(got, states.words(State(i)), "{run}, state {i}");
        }
    }
}

impl Language {
    /// Kernels, printed and read.
    pub(crate) fn texts(&self, kernels: &[Kernel]) -> Vec<Option<Reading>> {
        let block = StepBlock::of(kernels);
        let read = |kernel: &Kernel| {
            let text = (self.emit)(kernel, &block).unwrap();
            assert_eq!((self.broken_rule)(&text), None, "{text}");
            let read = (self.read)(&text);
            Some(read.unwrap_or_else(|fault| panic!("{} {fault}\n{text}", self.target.name())))
        };
        kernels.iter().map(read).collect()
    }
}

/// Hands the memories of a kernel's arguments to `run`.
fn launch(
    kernel: &Kernel,
    memories: &mut Memories,
    run: impl FnOnce(&mut [Cells<Numbers>]) -> Result<(), Trap>,
) -> Result<(), Trap> {
    let sources: Vec<Source> = kernel.arguments().map(|(_, source, _)| source).collect();
    let taken = sources.iter().map(|s| memories.remove(s).unwrap_or_else(|| panic!("no memory {s:?}")));
    let mut cells: Vec<Cells<Numbers>> = taken.collect();
    let done = run(&mut cells);
    memories.extend(sources.into_iter().zip(cells));
    done
}

fn seen(tensor: &Tensor, word: u32) -> u32 {
    if tensor.ty == Type::F32 { canonical_bits(word) } else { word }
}

pub(crate) fn canonical_bits(word: u32) -> u32 {
    canonical(f32::from_bits(word)).to_bits()
}

/// The widths of decode that every kernel is run at.
pub(crate) const COLUMNS: [u32; 5] = [1, 2, 3, 5, 8];

/// What small graphs are made of.
pub(crate) trait Small {
    fn floats(&mut self, extents: &[u32], values: &[f32]) -> Value;
    fn ints(&mut self, extents: &[u32], values: &[i32]) -> Value;
    /// Ids of a table in which negative numbers are masked.
    fn ids(&mut self, extents: &[u32], values: &[i32]) -> Value;
    /// The first rows of a table `[8, ..]`, one for each column.
    fn per_column(&mut self, table: Value) -> Value;
    /// A map of one scalar operation.
    fn apply(&mut self, op: ScalarOp, args: &[Value]) -> Value;
}

/// A name that no other table has.
fn fresh() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Small for Builder {
    fn floats(&mut self, extents: &[u32], values: &[f32]) -> Value {
        let words: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
        let name = fresh();
        let constant = self.add_constant(&name, Type::F32, extents, &words);
        self.constant(constant)
    }

    fn ints(&mut self, extents: &[u32], values: &[i32]) -> Value {
        let words: Vec<u32> = values.iter().map(|&x| x as u32).collect();
        let name = fresh();
        let constant = self.add_constant(&name, Type::I32, extents, &words);
        self.constant(constant)
    }

    fn ids(&mut self, extents: &[u32], values: &[i32]) -> Value {
        let table = self.ints(extents, values);
        let x = self.scalars.param(0, ScalarType::I32);
        let zero = self.scalars.i32(0);
        let negative = self.scalars.op(ScalarOp::LtI, &[x, zero]).unwrap();
        let present = self.scalars.op(ScalarOp::Not, &[negative]).unwrap();
        let id = self.scalars.op(ScalarOp::IdWhere, &[present, x]).unwrap();
        let body = self.scalars.body(&[ScalarType::I32], id).unwrap();
        self.map(body, &[table])
    }

    fn per_column(&mut self, table: Value) -> Value {
        let (start, columns) = (self.n(0), self.columns());
        self.slice(table, 0, start, columns)
    }

    fn apply(&mut self, op: ScalarOp, args: &[Value]) -> Value {
        let types: Vec<_> = args.iter().map(|&v| self.ty(v).scalar().unwrap()).collect();
        let params: Vec<_> = (0..).zip(&types).map(|(i, &ty)| self.scalars.param(i, ty)).collect();
        let result = self.scalars.op(op, &params).unwrap();
        let body = self.scalars.body(&types, result).unwrap();
        self.map(body, args)
    }
}
