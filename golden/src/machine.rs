//! Whole models on the kernel machine: every launch of an entry point as kernels, compared with the evaluator.

use std::collections::HashMap;

use ds4_compiler::schedule::Schedule;
use ds4_ir::Bounds;
use ds4_ir::dim::dim_value;
use ds4_ir::eval::{Data, Evaluator, States, WeightSource};
use ds4_ir::graph::{Constant, Graph, State, Value, Weight};
use ds4_ir::numerics::{Concrete, canonical};
use ds4_ir::plan::layout::layouts;
use ds4_ir::plan::{Layout, Root};
use ds4_ir::{Step, Type};
use ds4_kernels::kernel::Source;
use ds4_kernels::machine::{Cells, LaneOrder, Machine};
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

/// A model's memory on the machine.
pub struct Model<'a> {
    graph: Graph<'a>,
    rows: &'a Rows<'a>,
    bounds: Bounds,
    schedule: &'a Schedule,
    scales: Vec<ScaleBlocks>,
    memory: HashMap<Source, Cells<Concrete>>,
    states: States,
}

impl<'a> Model<'a> {
    /// Loads weights, constants and empty states, the weights in the layout that kernels read.
    pub fn new(graph: Graph<'a>, rows: &'a Rows<'a>, bounds: Bounds, schedule: &'a Schedule) -> Result<Self, String> {
        let blocks = |reference: &ds4_compiler::model::WeightRef| {
            let [rows, cols] = reference.scale_block;
            ScaleBlocks { rows, cols }
        };
        let scales = rows.model.weights.reference.iter().map(blocks).collect();
        let states = States::new(&graph);
        let memory = HashMap::new();
        let mut model = Model { graph, rows, bounds, schedule, scales, memory, states };
        model.load()?;
        Ok(model)
    }

    fn load(&mut self) -> Result<(), String> {
        let d = Concrete;
        for i in 0..self.graph.weights.len() {
            let weight = Weight(i as u32);
            let (data, scales) = self.weight_bytes(weight)?;
            let row = &self.graph.weights[i];
            let format = row.ty.format().ok_or("a weight has a weight type")?;
            let extents = self.graph.extents(row.shape, START);
            let layout = WeightLayout::of(format, *extents.last().ok_or("a weight has rows")?);
            let layout = layout.ok_or_else(|| format!("no layout for {}", format.name()))?;
            self.memory.insert(Source::Weight(weight), Cells::of_words(&d, &layout.forward(&data)));
            self.memory.insert(Source::WeightScales(weight), Cells::of_words(&d, &packed(&scales)));
        }
        for (i, row) in self.graph.constants.iter().enumerate() {
            let words = row.words.of(self.graph.constant_words);
            self.memory.insert(Source::Constant(Constant(i as u32)), Cells::of_words(&d, words));
        }
        let grid: Vec<u8> = ds4_ir::formats::iq2_xxs::GRID.iter().flat_map(|row| row.to_le_bytes()).collect();
        self.memory.insert(Source::Magnitudes, Cells::of_words(&d, &packed(&grid)));
        for i in 0..self.graph.states.len() as u32 {
            let cells = Cells::of_floats(&d, self.states.words(State(i)));
            self.memory.insert(Source::State(State(i)), cells);
        }
        Ok(())
    }

    /// The bytes of a weight's rows, and of its scales, a row of scales for each block of rows.
    fn weight_bytes(&self, weight: Weight) -> Result<(Vec<u8>, Vec<u8>), String> {
        let mut extents = self.graph.extents(self.graph.weights[weight.0 as usize].shape, START);
        extents.pop();
        let inner = extents.last().copied().unwrap_or(1);
        let block = self.scales[weight.0 as usize].rows.max(1) as usize;
        let (mut data, mut scales) = (Vec::new(), Vec::new());
        for i in 0..extents.iter().product() {
            let row = self.rows.row(weight, i).ok_or("a row of the checkpoint")?;
            data.extend_from_slice(row.data);
            if (i % inner).is_multiple_of(block) {
                scales.extend_from_slice(row.scales);
            }
        }
        Ok((data, scales))
    }

    /// Runs a step on machine and evaluator and compares every stored value and every state.
    pub fn step(&mut self, step: Step, tokens: &[u32], order: LaneOrder) -> Result<Compared, String> {
        let d = Concrete;
        let slots = &self.schedule.slots;
        let found = layouts(&self.graph, self.bounds, slots);
        self.memory.insert(Source::Tokens, Cells::of_words(&d, tokens));
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
        let values = self.schedule.launches.iter().flat_map(|run| run.of(&self.schedule.values));
        for &v in values {
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
            let machine = Machine::new(kernel, &Concrete, order).map_err(|fault| format!("{v}: {fault:?}"))?;
            let dims = self.graph.dims;
            let ran = machine.run(&|dim| dim_value(dims, dim, step), &mut cells);
            self.memory.extend(sources.into_iter().zip(cells));
            ran.map_err(|trap| format!("{}: {trap}", kernel.about))?;
        }
        Ok(list.len())
    }

    fn compare(&self, tensor: &ds4_ir::eval::Tensor, layout: Option<&Layout>, compared: &mut Compared) {
        let (Some(layout), Data::Words(words)) = (layout, &tensor.data) else { return };
        let Root::Slot(owner) = layout.root else { return };
        let Some(cells) = self.memory.get(&Source::Slot(owner)) else { return };
        for (i, &wanted) in words.iter().enumerate().filter(|(i, _)| !tensor.is_absent(*i)) {
            let (mut rest, mut at) = (i, layout.offset);
            for (&extent, &stride) in tensor.extents.iter().zip(&layout.strides).rev() {
                at += rest % extent * stride;
                rest /= extent;
            }
            // NaN is made canonical where it leaves the graph; interior values may hold any pattern.
            let seen = cells.word(&Concrete, at).map(|bits| match tensor.ty {
                Type::F32 => canonical(f32::from_bits(bits)).to_bits(),
                _ => bits,
            });
            compared.elements += 1;
            compared.wrong += u64::from(seen != Some(wanted));
        }
    }

    fn compare_states(&self, compared: &mut Compared) {
        for i in 0..self.graph.states.len() as u32 {
            let Some(cells) = self.memory.get(&Source::State(State(i))) else { continue };
            for (at, &wanted) in self.states.words(State(i)).iter().enumerate() {
                compared.elements += 1;
                compared.wrong += u64::from(cells.word(&Concrete, at) != Some(wanted));
            }
        }
    }
}

/// Extents of weights do not depend on the step.
const START: Step = Step { position: 0, columns: 1, outputs: 0 };
