//! Graphs on the kernel machine: every launch of an entry point as kernels, compared with the evaluator.
//!
//! The machine computes in a domain. Over plain numbers it has to give the evaluator's bits; over a domain with a planted fault
//! it shows whether inputs would find that fault.

use std::collections::HashMap;

use ds4_compiler::schedule::Schedule;
use ds4_ir::Bounds;
use ds4_ir::dim::dim_value;
use ds4_ir::eval::{Data, Evaluator, States, Tensor, WeightSource};
use ds4_ir::graph::{Constant, Graph, State, Value, Weight};
use ds4_ir::numerics::canonical;
use ds4_ir::plan::layout::layouts;
use ds4_ir::plan::{Layout, Root};
use ds4_ir::{Step, Type};
use ds4_kernels::kernel::Source;
use ds4_kernels::machine::{Cells, Domain, LaneOrder, Machine, Numbers};
use ds4_kernels::schedule::{ScaleBlocks, Scene, kernels};
use ds4_kernels::weight_layout::{WeightLayout, packed};

use crate::weights::Rows;

/// What one step on the machine showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Kernels that ran.
    pub kernels: usize,
    /// Elements of stored values and states that were compared.
    pub elements: u64,
    /// Elements with other bits than the evaluator's.
    pub wrong: u64,
}

/// A graph's memory on the machine.
pub struct Model<'a, D: Domain = Numbers> {
    graph: Graph<'a>,
    rows: &'a dyn WeightSource,
    scales: Vec<ScaleBlocks>,
    bounds: Bounds,
    schedule: &'a Schedule,
    domain: D,
    memory: HashMap<Source, Cells<D>>,
    states: States,
}

impl<'a> Model<'a> {
    /// Loads a checkpoint's weights, constants and empty states, over plain numbers.
    pub fn new(graph: Graph<'a>, rows: &'a Rows<'a>, bounds: Bounds, schedule: &'a Schedule) -> Result<Self, String> {
        let blocks = |reference: &ds4_compiler::model::WeightRef| {
            let [rows, cols] = reference.scale_block;
            ScaleBlocks { rows, cols }
        };
        let scales = rows.model.weights.reference.iter().map(blocks).collect();
        Model::over(ds4_ir::numerics::Concrete, graph, (rows, scales), bounds, schedule)
    }
}

impl<'a, D: Domain> Model<'a, D> {
    /// Loads weights, with the blocks that share a scale, constants and empty states, the weights in the layout that kernels
    /// read.
    pub fn over(
        domain: D,
        graph: Graph<'a>,
        (rows, scales): (&'a dyn WeightSource, Vec<ScaleBlocks>),
        bounds: Bounds,
        schedule: &'a Schedule,
    ) -> Result<Self, String> {
        let states = States::new(&graph);
        let mut model = Model { graph, rows, scales, bounds, schedule, domain, memory: HashMap::new(), states };
        model.load()?;
        Ok(model)
    }

    fn load(&mut self) -> Result<(), String> {
        let d = &self.domain;
        for i in 0..self.graph.weights.len() {
            let weight = Weight(i as u32);
            let (data, scales) = weight_bytes(&self.graph, self.rows, &self.scales, weight)?;
            let row = &self.graph.weights[i];
            let format = row.ty.format().ok_or("a weight has a weight type")?;
            let extents = self.graph.extents(row.shape, START);
            let layout = WeightLayout::of(format, *extents.last().ok_or("a weight has rows")?);
            let layout = layout.ok_or_else(|| format!("no layout for {}", format.name()))?;
            self.memory.insert(Source::Weight(weight), Cells::of_words(d, &layout.forward(&data)));
            self.memory.insert(Source::WeightScales(weight), Cells::of_words(d, &packed(&scales)));
        }
        for (i, row) in self.graph.constants.iter().enumerate() {
            let words = row.words.of(self.graph.constant_words);
            self.memory.insert(Source::Constant(Constant(i as u32)), Cells::of_words(d, words));
        }
        let grid: Vec<u8> = ds4_ir::formats::iq2_xxs::GRID.iter().flat_map(|row| row.to_le_bytes()).collect();
        self.memory.insert(Source::Magnitudes, Cells::of_words(d, &packed(&grid)));
        for i in 0..self.graph.states.len() as u32 {
            let cells = Cells::of_floats(d, self.states.words(State(i)));
            self.memory.insert(Source::State(State(i)), cells);
        }
        Ok(())
    }

    /// Runs a step on machine and evaluator and compares every stored value and every state.
    pub fn step(&mut self, step: Step, tokens: &[u32], order: LaneOrder) -> Result<Compared, String> {
        let slots = &self.schedule.slots;
        let found = layouts(&self.graph, self.bounds, slots);
        self.memory.insert(Source::Tokens, Cells::of_words(&self.domain, tokens));
        for slot in slots {
            let extents = self.graph.max_extents(self.graph.value_shape[slot.value.0 as usize], self.bounds);
            let count: usize = extents.iter().product();
            self.memory.insert(Source::Slot(slot.value), Cells::unwritten(count));
            self.memory.insert(Source::Codes(slot.value), Cells::unwritten(count / 4));
            self.memory.insert(Source::Scales(slot.value), Cells::unwritten(count / 32));
        }
        let wanted: Vec<Value> = slots.iter().map(|slot| slot.value).collect();
        let evaluator = Evaluator::new(self.graph, self.rows);
        let expected = evaluator.step(&mut self.states, step, tokens, &wanted).map_err(|fault| fault.to_string())?;
        let mut compared = Compared::default();
        for &v in self.schedule.lists().into_iter().flatten().flatten() {
            compared.kernels += self.launch(v, step, &found, order)?;
            if let Ok(i) = wanted.binary_search(&v) {
                self.compare(&expected[i], found[v.0 as usize].as_ref(), &mut compared);
            }
        }
        self.compare_states(&mut compared);
        Ok(compared)
    }

    fn launch(&mut self, v: Value, step: Step, found: &[Option<Layout>], order: LaneOrder) -> Result<usize, String> {
        let slots = &self.schedule.slots;
        let scene = Scene { graph: self.graph, bounds: self.bounds, slots, layouts: found, scales: &self.scales };
        let list = kernels(&scene, v).map_err(|refusal| format!("{v}: {refusal:?}"))?;
        for kernel in &list {
            let sources: Vec<Source> = kernel.arguments().map(|(_, source, _)| source).collect();
            let taken = sources.iter().map(|source| self.memory.remove(source).ok_or("an argument has memory"));
            let mut cells = taken.collect::<Result<Vec<_>, _>>()?;
            let machine = Machine::new(kernel, &self.domain, order).map_err(|fault| format!("{v}: {fault:?}"))?;
            let dims = self.graph.dims;
            let ran = machine.run(&|dim| dim_value(dims, dim, step), &mut cells);
            self.memory.extend(sources.into_iter().zip(cells));
            ran.map_err(|trap| format!("{}: {trap}", kernel.about))?;
        }
        Ok(list.len())
    }

    fn compare(&self, tensor: &Tensor, layout: Option<&Layout>, compared: &mut Compared) {
        let Some(layout) = layout else { return };
        let Root::Slot(owner) = layout.root else { return };
        for i in 0..tensor.extents.iter().product() {
            let (mut rest, mut at) = (i, layout.offset);
            for (&extent, &stride) in tensor.extents.iter().zip(&layout.strides).rev() {
                at += rest % extent * stride;
                rest /= extent;
            }
            let is_equal = match &tensor.data {
                Data::Words(_) if tensor.is_absent(i) => continue,
                Data::Words(words) => self.seen(Source::Slot(owner), tensor.ty, at) == Some(words[i]),
                Data::Q8 { codes, scales } => {
                    let word = self.seen(Source::Codes(owner), Type::I32, at / 4);
                    let code = word.map(|word| word.to_le_bytes()[at % 4]);
                    let scale = canonical(scales[i / 32]).to_bits();
                    code == Some(codes[i] as u8) && self.seen(Source::Scales(owner), Type::F32, at / 32) == Some(scale)
                }
                Data::Rows { .. } => return,
            };
            compared.elements += 1;
            compared.wrong += u64::from(!is_equal);
        }
    }

    /// A word of a memory. NaN is made canonical where it leaves the graph; interior values may hold any pattern.
    fn seen(&self, source: Source, ty: Type, at: usize) -> Option<u32> {
        let bits = self.memory.get(&source)?.word(&self.domain, at)?;
        Some(if ty == Type::F32 { canonical(f32::from_bits(bits)).to_bits() } else { bits })
    }

    fn compare_states(&self, compared: &mut Compared) {
        for i in 0..self.graph.states.len() as u32 {
            let Some(cells) = self.memory.get(&Source::State(State(i))) else { continue };
            for (at, &wanted) in self.states.words(State(i)).iter().enumerate() {
                compared.elements += 1;
                compared.wrong += u64::from(cells.word(&self.domain, at) != Some(wanted));
            }
        }
    }
}

/// Extents of weights do not depend on the step.
const START: Step = Step { position: 0, columns: 1, outputs: 0 };

/// The bytes of a weight's rows, and of its scales, a row of scales for each block of rows.
fn weight_bytes(
    graph: &Graph<'_>,
    source: &dyn WeightSource,
    scales: &[ScaleBlocks],
    weight: Weight,
) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut extents = graph.extents(graph.weights[weight.0 as usize].shape, START);
    extents.pop();
    let inner = extents.last().copied().unwrap_or(1);
    let block = scales[weight.0 as usize].rows.max(1) as usize;
    let (mut data, mut scales) = (Vec::new(), Vec::new());
    for i in 0..extents.iter().product() {
        let row = source.row(weight, i).ok_or("a row of the checkpoint")?;
        data.extend_from_slice(row.data);
        if (i % inner).is_multiple_of(block) {
            scales.extend_from_slice(row.scales);
        }
    }
    Ok((data, scales))
}
