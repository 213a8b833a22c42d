//! Small graphs, executed and evaluated: the same bits at every level and number of threads.

mod chains;
pub(crate) mod maps;
mod products;
mod regions;
mod rows;
mod states;

use std::sync::Arc;

use ds4_ir::eval::{Data, Evaluator, States, Tensor, WeightSource};
use ds4_ir::formats::WeightRow;
use ds4_ir::graph::{Graph, GraphTables, NamedRow, Value, Weight};
use ds4_ir::plan::layout::{layouts, lies_within, stored_bytes};
use ds4_ir::plan::tables::{
    Device, EntryRow, File, FileRow, LaunchRow, PartRow, PlanTables, StatePlaceRow, WeightPlaceRow,
};
use ds4_ir::plan::{SlotRow, check};
use ds4_ir::schedule::{Schedule, schedule};
use ds4_ir::{Bounds, Builder, Format, Op, Run, Step, Type};

use super::{Executor, FileBytes};
use crate::cpu::products::Isa;
use crate::reader::{Observer, View};

/// A plain generator (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    /// A float between -1 and 1.
    pub(crate) fn float(&mut self) -> f32 {
        self.next() as i32 as f32 / 2_147_483_648.0
    }

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }
}

/// A checkpoint in memory: one file, one part per weight.
#[derive(Clone, Default)]
pub(crate) struct Checkpoint {
    pub(crate) bytes: Vec<u8>,
    tensors: Vec<Stored>,
}

#[derive(Clone)]
struct Stored {
    format: Format,
    cols: usize,
    rows: usize,
    parts: usize,
    data: usize,
    scales: usize,
    scale_rows: usize,
    scale_cols: usize,
}

impl Checkpoint {
    /// Random bytes for every weight of a graph, with finite block scales; every third weight of rank 3 is in parts.
    pub(crate) fn random(graph: &Graph<'_>, seed: u64) -> Checkpoint {
        let mut random = Random(seed);
        let mut checkpoint = Checkpoint::default();
        for (i, row) in graph.weights.iter().enumerate() {
            let extents = graph.max_extents(row.shape, bounds(0, 0));
            let (&cols, outer) = extents.split_last().unwrap();
            let rows: usize = outer.iter().product();
            let format = row.ty.format().unwrap();
            let parts = if outer.len() == 2 && i % 3 == 0 { outer[0] } else { 1 };
            let (scale_rows, scale_cols) = match format {
                Format::Fp8 => (3, 16),
                Format::Fp4 => (1, 32),
                _ => (1, 1),
            };
            let part_rows = rows / parts;
            let data = checkpoint.bytes.len();
            let bytes = rows * format.row_bytes(cols).unwrap();
            for _ in 0..bytes.div_ceil(4) {
                let word = match format {
                    Format::F32 => random.float().to_bits(),
                    Format::I32 => random.below(5),
                    Format::I64 => (checkpoint.bytes.len() as u32 / 4 + 1) % 2 * random.below(5),
                    Format::F16 | Format::BF16 => random.next() & 0xbfff_bfff,
                    _ => random.next(),
                };
                checkpoint.bytes.extend_from_slice(&word.to_le_bytes());
            }
            tame(format, &mut checkpoint.bytes[data..][..bytes]);
            let scales = checkpoint.bytes.len();
            let count = parts * part_rows.div_ceil(scale_rows) * cols.div_ceil(scale_cols);
            (0..count).for_each(|_| checkpoint.bytes.push(120 + random.below(12) as u8));
            checkpoint.tensors.push(Stored { format, cols, rows, parts, data, scales, scale_rows, scale_cols });
        }
        checkpoint.bytes.extend_from_slice(&[0; 64]);
        checkpoint
    }

    fn places(&self, plan: &mut PlanTables) {
        let path = plan.intern("memory");
        plan.files.push(FileRow {
            path,
            reserved: 0,
            size: self.bytes.len() as u64,
            header_len: 0,
            header_hash: [0; 32],
        });
        for t in &self.tensors {
            let part_rows = t.rows / t.parts;
            let part_bytes = part_rows * t.format.row_bytes(t.cols).unwrap();
            let part_scales = part_rows.div_ceil(t.scale_rows) * t.cols.div_ceil(t.scale_cols);
            let parts: Vec<PartRow> = (0..t.parts)
                .map(|p| PartRow {
                    file: File(0),
                    scale_file: File(0),
                    offset: (t.data + p * part_bytes) as u64,
                    scale_offset: (t.scales + p * part_scales) as u64,
                })
                .collect();
            plan.weight_places.push(WeightPlaceRow {
                parts: Run::push(&mut plan.parts, &parts),
                scale_rows: t.scale_rows as u32,
                scale_cols: t.scale_cols as u32,
                fields: Run::default(),
            });
        }
    }
}

/// Makes the scale fields of blocks small finite numbers.
fn tame(format: Format, bytes: &mut [u8]) {
    let halves: &[usize] = match format {
        Format::Q8_0 | Format::IQ2_XXS => &[1],
        Format::Q4_K => &[1, 3],
        Format::Q2_K => &[81, 83],
        Format::Fp8 => {
            bytes.iter_mut().for_each(|b| *b &= 0xbf);
            return;
        }
        Format::MXFP4 => {
            bytes.chunks_exact_mut(17).for_each(|b| b[0] = 120 + b[0] % 12);
            return;
        }
        _ => return,
    };
    for block in bytes.chunks_exact_mut(format.block_bytes()) {
        halves.iter().for_each(|&i| block[i] = 0x20 | block[i] & 0x83);
    }
}

impl WeightSource for Checkpoint {
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>> {
        let t = &self.tensors[weight.0 as usize];
        let part_rows = t.rows / t.parts;
        let row_bytes = t.format.row_bytes(t.cols)?;
        let per_row = t.cols.div_ceil(t.scale_cols);
        let part_scales = part_rows.div_ceil(t.scale_rows) * per_row;
        let scale = t.scales + row / part_rows * part_scales + row % part_rows / t.scale_rows * per_row;
        Some(WeightRow {
            format: t.format,
            data: self.bytes.get(t.data + row * row_bytes..)?.get(..row_bytes)?,
            scales: &self.bytes[scale..scale + per_row],
            scale_cols: t.scale_cols,
        })
    }
}

pub(crate) fn bounds(context: u32, columns: u32) -> Bounds {
    Bounds { context, columns, outputs: columns }
}

/// The plan of a graph, each value a launch of its own.
pub(crate) fn plan(graph: &Graph<'_>, checkpoint: &Checkpoint, context: u32, columns: u32) -> PlanTables {
    let bounds = bounds(context, columns);
    plan_of(graph, checkpoint, bounds, &schedule(graph, bounds))
}

/// The plan of a schedule.
pub(crate) fn plan_of(graph: &Graph<'_>, checkpoint: &Checkpoint, bounds: Bounds, schedule: &Schedule) -> PlanTables {
    let mut plan = PlanTables { model_hash: vec![[0; 32]], context: vec![bounds.context], ..Default::default() };
    checkpoint.places(&mut plan);
    let mut offset = 0;
    for state in graph.states {
        let bytes = stored_bytes(state.ty, &graph.max_extents(state.shape, bounds)).unwrap();
        plan.state_places.push(StatePlaceRow { offset, bytes });
        offset += bytes.next_multiple_of(ds4_ir::plan::ALIGN);
    }
    plan.region_values = schedule.values.clone();
    plan.region_tiles = schedule.tiles.clone();
    plan.regions = schedule.regions.clone();
    let launch = |&regions: &Run| LaunchRow { device: Device(0), regions, dispatches: Run::default() };
    plan.launches = schedule.launches.iter().map(launch).collect();
    plan.slots = schedule.slots.clone();
    let name = plan.intern("decode");
    let launches = Run { start: 0, len: plan.launches.len() as u32 };
    let slots = Run { start: 0, len: plan.slots.len() as u32 };
    let Bounds { columns, outputs, .. } = bounds;
    let arena_bytes = schedule.arena_bytes;
    plan.entries.push(EntryRow { name, columns, outputs, launches, slots, reserved: 0, arena_bytes });
    plan
}

/// A graph to run, with its named values as what is compared.
pub(crate) struct Case {
    pub(crate) graph: GraphTables,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) context: u32,
    pub(crate) columns: u32,
}

impl Case {
    pub(crate) fn new(builder: Builder, context: u32, columns: u32) -> Case {
        let graph = builder.finish();
        let checkpoint = Checkpoint::random(&graph.view(), 0x1234_5678_9abc_def1);
        Case { graph, checkpoint, context, columns }
    }

    /// Runs steps of these numbers of columns at all levels, with 1 and 3 threads, and compares values and states with
    /// the evaluator.
    pub(crate) fn check(&self, steps: &[u32]) {
        let tables = plan(&self.graph.view(), &self.checkpoint, self.context, self.columns);
        for isa in Isa::available() {
            for threads in [1, 3] {
                self.check_plan(steps, &tables, isa, threads);
            }
        }
    }

    /// Compares the named values of the plan's steps, which then last, and the outputs alone, with as little memory as
    /// they need.
    pub(crate) fn check_plan(&self, steps: &[u32], tables: &PlanTables, isa: Isa, threads: usize) {
        let (graph, plan) = (self.graph.view(), tables.view());
        if let Err(fault) = check::check(&graph, &plan) {
            panic!("{fault}");
        }
        for rows in [graph.named, graph.outputs] {
            let lasting: Vec<Value> = rows.iter().map(|row| row.value).collect();
            let files: Vec<FileBytes> = vec![Box::new(self.checkpoint.bytes.clone())];
            let mut executor = Executor::keeping(&graph, &plan, files, threads, isa, &lasting).unwrap();
            executor.always_share();
            self.check_steps(steps, tables, &mut executor, rows);
        }
    }

    fn check_steps(&self, steps: &[u32], tables: &PlanTables, executor: &mut Executor, rows: &[NamedRow]) {
        let (graph, plan) = (self.graph.view(), tables.view());
        let evaluator = Evaluator::new(graph, &self.checkpoint);
        let mut states = States::new(&graph);
        let wanted: Vec<Value> = rows.iter().map(|row| row.value).collect();
        let mut position = 0;
        for (at, &columns) in steps.iter().enumerate() {
            let step = Step { position, columns, outputs: columns.min(2) };
            let tokens: Vec<u32> = (0..columns).map(|c| (position + 3 * c) % 5).collect();
            let results = evaluator.step(&mut states, step, &tokens, &wanted).unwrap();
            // Every other step is watched, which does without chains.
            match at % 2 {
                0 => executor.run(&graph, 0, step, &tokens, None).unwrap(),
                _ => watched(executor, &graph, bounds(self.context, self.columns), step, &tokens),
            }
            let place = format!("step {at}, {}, {} threads", executor.isa().name(), executor.threads());
            for (row, tensor) in rows.iter().zip(&results) {
                let found = executor.value_words(&graph, &plan, 0, row.value, step);
                compare(&format!("{} in {place}", graph.name(row.name)), tensor, &found);
            }
            for i in 0..graph.states.len() {
                let wanted = states.words(ds4_ir::State(i as u32));
                let place_of = tables.state_places[i];
                let found = &executor.view().state[place_of.offset as usize..][..place_of.bytes as usize];
                assert_eq!(bytemuck::cast_slice::<u32, u8>(wanted), found, "state {i} in {place}");
            }
            position += columns;
        }
    }
}

/// Runs a step and looks at what is stored: every value with memory once, but for concats that are where their operands are.
fn watched(executor: &mut Executor, graph: &Graph<'_>, bounds: Bounds, step: Step, tokens: &[u32]) {
    let mut stored: Vec<Value> = Vec::new();
    let mut watch = |v, _: View<'_>| stored.push(v);
    let observer: &mut Observer<'_> = &mut watch;
    executor.run(graph, 0, step, tokens, Some(observer)).unwrap();
    // A concat is stored operand by operand.
    stored.dedup();
    let slots: &[SlotRow] = executor.slots(0);
    let found = layouts(graph, bounds, slots);
    for v in slots.iter().map(|slot| slot.value) {
        let is_made = |&operand: &Value| lies_within(graph, &found, v, operand);
        let is_there = graph.op(v) == Op::Concat && graph.args(v).iter().all(is_made);
        let times = stored.iter().filter(|other| **other == v).count();
        assert_eq!(times, usize::from(!is_there), "{v} is stored {times} times");
    }
}

/// Equal bits but for NaN, which is any NaN, and elements without a value.
fn compare(what: &str, wanted: &Tensor, found: &[u32]) {
    let words: Arc<Vec<u32>> = match &wanted.data {
        Data::Words(words) => words.clone(),
        _ => return,
    };
    assert_eq!(words.len(), found.len(), "elements of {what}");
    for (i, (&a, &b)) in words.iter().zip(found).enumerate() {
        let nan = |w: u32| wanted.ty == Type::F32 && f32::from_bits(w).is_nan();
        let same = a == b || nan(a) && nan(b) || wanted.is_absent(i);
        assert!(same, "element {i} of {what}: wanted {a:08x}, found {b:08x}");
    }
}
