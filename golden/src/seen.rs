//! Values as they may be seen: NaN canonical, elements without a value left out.

use ds4_ir::dim::dim_value;
use ds4_ir::eval::{Data, Tensor};
use ds4_ir::graph::Graph;
use ds4_ir::numerics::canonical;
use ds4_ir::plan::layout::{layouts, q8_scales_at};
use ds4_ir::plan::{Layout, Plan, Root, SlotRow};
use ds4_ir::{Step, Type, Value};
use ds4_runtime::reader::{Reader, View};
use ds4_runtime::session::Runner;

/// The words of a tensor after a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Its name; of q8 values there are two tensors, `.codes` and `.scales`.
    pub name: String,
    /// f32, i32 or id.
    pub ty: Type,
    /// Extents, slowest first.
    pub extents: Vec<usize>,
    /// Row-major; a NaN is the canonical one.
    pub words: Vec<u32>,
    /// Which elements have no value; empty if all have one, or if nobody knows.
    pub absent: Vec<bool>,
}

impl Seen {
    /// A tensor from anywhere.
    pub fn new(name: &str, ty: Type, extents: Vec<usize>, mut words: Vec<u32>) -> Seen {
        if ty == Type::F32 {
            words.iter_mut().for_each(|w| *w = canonical(f32::from_bits(*w)).to_bits());
        }
        Seen { name: name.into(), ty, extents, words, absent: Vec::new() }
    }

    /// The tensors of a value that the evaluator gave.
    pub fn of_evaluator(name: &str, tensor: &Tensor) -> Vec<Seen> {
        match &tensor.data {
            Data::Words(words) => {
                let absent = tensor.absent.as_ref().map(|absent| absent.to_vec()).unwrap_or_default();
                vec![Seen { absent, ..Seen::new(name, tensor.ty, tensor.extents.clone(), words.to_vec()) }]
            }
            Data::Q8 { codes, scales } => {
                let codes = codes.iter().map(|&code| i32::from(code) as u32).collect();
                let scales = scales.iter().map(|scale| scale.to_bits()).collect();
                blocks(name, tensor.extents.clone(), codes, scales)
            }
            Data::Rows { .. } => Vec::new(),
        }
    }

    /// The words that are compared: those without a value are zero.
    pub fn compared(&self, absent: &[bool]) -> Vec<u32> {
        let is_absent = |i: usize| absent.get(i) == Some(&true);
        self.words.iter().enumerate().map(|(i, &w)| if is_absent(i) { 0 } else { w }).collect()
    }
}

/// The two tensors of a q8 value.
fn blocks(name: &str, extents: Vec<usize>, codes: Vec<u32>, scales: Vec<u32>) -> Vec<Seen> {
    let mut of_scales = extents.clone();
    if let Some(last) = of_scales.last_mut() {
        *last /= 32;
    }
    vec![
        Seen::new(&format!("{name}.codes"), Type::I32, extents, codes),
        Seen::new(&format!("{name}.scales"), Type::F32, of_scales, scales),
    ]
}

/// Where a value can be seen in the memory of a runner.
pub struct Look {
    name: String,
    place: Place,
}

enum Place {
    Words(Reader),
    Blocks(Blocks),
}

/// A stored q8 value.
struct Blocks {
    value: Value,
    layout: Layout,
    /// First bytes of codes and scales in the arena.
    codes: usize,
    scales: usize,
}

impl Look {
    /// Where a value of entry point 0 can be seen; `None` if it has no memory there.
    pub fn of(graph: &Graph<'_>, plan: &Plan<'_>, runner: &dyn Runner, name: &str, value: Value) -> Option<Look> {
        let place = match graph.ty(value) {
            Type::Q8 => Place::Blocks(Blocks::of(graph, plan, runner.slots(0), value)?),
            _ => Place::Words(runner.readers(graph, plan, 0, &[value]).pop().flatten()?),
        };
        Some(Look { name: name.into(), place })
    }

    /// Whether the launch that stored `value` may have written elements of this one.
    pub fn is_written_by(&self, value: Value) -> bool {
        match &self.place {
            Place::Words(reader) => reader.roots.binary_search(&value).is_ok(),
            Place::Blocks(blocks) => blocks.value == value,
        }
    }

    /// The reader of a value of words.
    pub fn reader(&self) -> Option<&Reader> {
        match &self.place {
            Place::Words(reader) => Some(reader),
            Place::Blocks(_) => None,
        }
    }

    /// The value's tensors.
    pub fn see(&self, graph: &Graph<'_>, step: Step, view: View<'_>) -> Vec<Seen> {
        match &self.place {
            Place::Words(reader) => {
                let mut words = Vec::new();
                reader.read(graph.dims, step, view, &mut words);
                vec![Seen::new(&self.name, reader.ty, reader.extents(graph.dims, step), words)]
            }
            Place::Blocks(blocks) => blocks.see(&self.name, graph, step, view.arena),
        }
    }
}

impl Blocks {
    fn of(graph: &Graph<'_>, plan: &Plan<'_>, slots: &[SlotRow], value: Value) -> Option<Blocks> {
        let entry = plan.entries.first()?;
        let slot = slots.iter().find(|slot| slot.value == value)?;
        let layout = layouts(graph, plan.bounds(entry), slots)[value.0 as usize].clone()?;
        let is_own = layout.root == Root::Slot(value) && layout.shifts.is_empty();
        let codes = slot.offset as usize;
        let scales = codes + q8_scales_at(layout.extents.iter().product());
        is_own.then_some(Blocks { value, layout, codes, scales })
    }

    fn see(&self, name: &str, graph: &Graph<'_>, step: Step, arena: &[u8]) -> Vec<Seen> {
        let dims = graph.dims_of(self.value);
        let extents: Vec<usize> = dims.iter().map(|&d| dim_value(graph.dims, d, step) as usize).collect();
        let (mut codes, mut scales) = (Vec::new(), Vec::new());
        for i in 0..extents.iter().product() {
            let (mut rest, mut at) = (i, self.layout.offset);
            for (&extent, &stride) in extents.iter().zip(&self.layout.strides).rev() {
                at += rest % extent * stride;
                rest /= extent;
            }
            codes.push(i32::from(arena[self.codes + at] as i8) as u32);
            if at.is_multiple_of(32) {
                let first = self.scales + at / 32 * 4;
                scales.push(u32::from_le_bytes([0, 1, 2, 3].map(|i| arena[first + i])));
            }
        }
        blocks(name, extents, codes, scales)
    }
}
