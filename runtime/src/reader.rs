//! Looking at values in the memory of an executor: outputs and taps.

use ds4_ir::diagnostic::codes;
use ds4_ir::dim::{DimRow, dim_value};
use ds4_ir::graph::Graph;
use ds4_ir::op::{Op, Type};
use ds4_ir::plan::layout::layouts;
use ds4_ir::plan::{Plan, Root, SlotRow};
use ds4_ir::{Diagnostic, Dim, Step, Value};
use memmap2::MmapMut;

/// The memory of an executor, to look at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Intermediate values, at the offsets of their slots.
    pub arena: &'a [u8],
    /// States, at the offsets of their places.
    pub state: &'a [u8],
}

/// Looks at memory behind a kernel that stored a value.
pub type Observer<'a> = dyn FnMut(Value, View<'_>) + 'a;

/// Where the elements of a value can be seen.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Type of the elements: f32, i32 or ids.
    pub ty: Type,
    /// The values whose kernels write the elements.
    pub roots: Vec<Value>,
    memory: Memory,
    offset: usize,
    strides: Vec<usize>,
    shifts: Vec<(Dim, usize)>,
    dims: Vec<Dim>,
}

/// The memory, with the first byte.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Arena(usize),
    State(usize),
}

/// Readers of values at an entry point whose slots are these; `None` for a value that has no memory of words there.
pub fn readers(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: usize,
    slots: &[SlotRow],
    values: &[Value],
) -> Vec<Option<Reader>> {
    let found = layouts(graph, plan.bounds(&plan.entries[entry]), slots);
    let reader = |&v: &Value| {
        let layout = found[v.0 as usize].as_ref()?;
        graph.ty(v).scalar()?;
        let memory = match layout.root {
            Root::Slot(owner) => {
                let at = slots.binary_search_by_key(&owner, |s| s.value).ok()?;
                Memory::Arena(slots[at].offset as usize)
            }
            Root::State(state) => Memory::State(plan.state_places[state.0 as usize].offset as usize),
            _ => return None,
        };
        Some(Reader {
            ty: graph.ty(v),
            roots: roots(graph, v),
            memory,
            offset: layout.offset,
            strides: layout.strides.clone(),
            shifts: layout.shifts.clone(),
            dims: graph.dims_of(v).to_vec(),
        })
    };
    values.iter().map(reader).collect()
}

/// The computed values that a value is a view of. A concat may be computed by its operands alone.
fn roots(graph: &Graph<'_>, v: Value) -> Vec<Value> {
    let mut roots = Vec::new();
    let mut stack = vec![v];
    while let Some(v) = stack.pop() {
        roots.push(v);
        if graph.op(v).is_view() || graph.op(v) == Op::Concat {
            stack.extend(graph.args(v));
        }
    }
    roots.sort();
    roots
}

impl Reader {
    /// The extents in a step.
    pub fn extents(&self, dims: &[DimRow], step: Step) -> Vec<usize> {
        let extents = self.dims.iter();
        extents.map(|&d| dim_value(dims, d, step) as usize).collect()
    }

    /// Appends the elements' words in row-major order.
    pub fn read(&self, dims: &[DimRow], step: Step, view: View<'_>, out: &mut Vec<u32>) {
        let extents = self.extents(dims, step);
        let shifts = self.shifts.iter();
        let shift: usize = shifts.map(|&(d, s)| dim_value(dims, d, step) as usize * s).sum();
        let (bytes, start) = match self.memory {
            Memory::Arena(start) => (view.arena, start),
            Memory::State(start) => (view.state, start),
        };
        let words: &[u32] = bytemuck::cast_slice(&bytes[start..bytes.len() & !3]);
        let mut at = vec![0; extents.len()];
        for _ in 0..extents.iter().product() {
            let steps = at.iter().zip(&self.strides);
            let place = self.offset + shift + steps.map(|(i, s)| i * s).sum::<usize>();
            out.push(words[place]);
            for (i, &extent) in at.iter_mut().zip(&extents).rev() {
                *i += 1;
                if *i < extent {
                    break;
                }
                *i = 0;
            }
        }
    }

    /// First byte and length of the arena's part that holds the elements; `None` if there are none, or not there.
    pub fn span(&self, dims: &[DimRow], step: Step) -> Option<(u64, u64)> {
        let Memory::Arena(start) = self.memory else { return None };
        let extents = self.extents(dims, step);
        let shift: usize = self.shifts.iter().map(|&(d, s)| dim_value(dims, d, step) as usize * s).sum();
        let last: usize = extents.iter().zip(&self.strides).map(|(&e, s)| e.saturating_sub(1) * s).sum();
        let first = start + 4 * (self.offset + shift);
        (!extents.contains(&0)).then_some((first as u64, 4 * (last as u64 + 1)))
    }

    /// The elements as a slice, if they lie together in the arena.
    pub fn slice<'a>(&self, dims: &[DimRow], step: Step, view: View<'a>) -> Option<&'a [u32]> {
        let extents = self.extents(dims, step);
        let wanted = ds4_ir::plan::layout::packed(&extents);
        let axes = extents.iter().zip(self.strides.iter().zip(&wanted));
        let packed = axes.skip(1).all(|(&e, (s, w))| e <= 1 || s == w);
        // The outermost stride counts where there is more than one row.
        let outer = extents.first().is_none_or(|&e| e <= 1) || self.strides[0] == wanted[0];
        let Memory::Arena(start) = self.memory else {
            return None;
        };
        if !packed || !outer || !self.shifts.is_empty() {
            return None;
        }
        let words: &[u32] = bytemuck::cast_slice(&view.arena[start..view.arena.len() & !3]);
        words[self.offset..].get(..extents.iter().product())
    }
}

/// Memory that the system gives page by page as it is touched; all zeros at first.
pub(crate) fn anonymous(bytes: u64) -> Result<MmapMut, Diagnostic> {
    let refused = |found: String| {
        Diagnostic::new(codes::MEMORY, "there is not enough memory for the plan")
            .wanted(format!("{bytes} bytes"), found)
            .help("compile for a shorter context or for fewer columns at a time")
    };
    let len = usize::try_from(bytes.max(64)).map_err(|error| refused(error.to_string()))?;
    MmapMut::map_anon(len).map_err(|error| refused(error.to_string()))
}
