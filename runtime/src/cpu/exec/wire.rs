//! From layouts to memory: the access of every operand of an entry point.

use ds4_ir::graph::Graph;
use ds4_ir::op::{Op, Type};
use ds4_ir::plan::layout::{packed, q8_scales_at};
use ds4_ir::plan::{Layout, Plan, Root, SlotRow};
use ds4_ir::{Bounds, Value};

use super::access::{Access, Base, Ptr, Selection};
use super::extents::{Ext, Extents};
use super::weights::Tensor;

/// Starts of the memory that operands lie in.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    /// Intermediate values.
    pub(crate) arena: Ptr,
    /// States.
    pub(crate) state: Ptr,
    /// Words of the constants.
    pub(crate) constants: Ptr,
    /// Tensors of the checkpoint.
    pub(crate) tensors: &'a [Tensor],
}

/// Why an operand cannot be used as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It has to be stored first.
    Store(Value),
    /// There is no kernel for it.
    Unsupported(String),
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Unsupported(text)
    }
}

fn without_memory() -> Refusal {
    Refusal::Unsupported("an operand has no memory".into())
}

/// Tables to resolve operands with.
pub(crate) struct Wiring<'a> {
    pub(crate) graph: &'a Graph<'a>,
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) bounds: Bounds,
    pub(crate) slots: Vec<SlotRow>,
    pub(crate) layouts: Vec<Option<Layout>>,
    pub(crate) memory: Memory<'a>,
    pub(crate) extents: Extents,
}

impl Wiring<'_> {
    /// The extents of a value.
    pub(crate) fn axes(&mut self, v: Value) -> Vec<Ext> {
        let dims = self.graph.dims_of(v).iter();
        dims.map(|&d| self.extents.dim(self.graph, d, self.bounds)).collect()
    }

    fn largest(&self, v: Value) -> Vec<usize> {
        let shape = self.graph.value_shape[v.0 as usize];
        self.graph.max_extents(shape, self.bounds)
    }

    /// The slot of a value.
    pub(crate) fn slot(&self, v: Value) -> Option<&SlotRow> {
        let found = self.slots.binary_search_by_key(&v.0, |slot| slot.value.0);
        found.ok().map(|i| &self.slots[i])
    }

    /// Where the elements of an operand lie.
    pub(crate) fn access(&mut self, v: Value) -> Result<Access, Refusal> {
        let Some(layout) = self.layouts[v.0 as usize].clone() else {
            return Err(Refusal::Store(v));
        };
        let access = match layout.root {
            Root::Gather(gather) => self.gathered(gather, &layout, v)?,
            root => self.direct(root, &layout)?,
        };
        self.check(v, &access)?;
        Ok(access)
    }

    /// The same for operands that are read as words: a gather has to be stored.
    pub(crate) fn words(&mut self, v: Value) -> Result<Access, Refusal> {
        let access = self.access(v)?;
        match (&access.ids, access.base) {
            (Some(selection), _) => Err(Refusal::Store(selection.value)),
            (None, Base::Words(_)) => Ok(access),
            _ => Err(Refusal::Unsupported(format!("{v} is not made of words"))),
        }
    }

    /// Where a value is written: in its slot, whether or not it is read there.
    pub(crate) fn written(&mut self, v: Value) -> Result<Access, Refusal> {
        let layout = self.layouts[v.0 as usize].clone().ok_or(Refusal::Store(v))?;
        let access = match layout.root {
            Root::Slot(owner) => self.in_slot(owner, &layout)?,
            root => self.direct(root, &layout)?,
        };
        self.check(v, &access)?;
        Ok(access)
    }

    /// The words of the checkpoint that a value consists of: a tensor that is widened without a change.
    pub(crate) fn in_checkpoint(&self, v: Value) -> Option<Ptr> {
        let &[arg] = self.graph.args(v) else { return None };
        let is_widened = self.graph.op(v) == Op::Widen && self.graph.op(arg) == Op::Weight;
        is_widened.then(|| self.memory.tensors[self.graph.attrs(arg)[0] as usize].words())?
    }

    /// Access to a slot as the plan has it.
    fn in_slot(&mut self, owner: Value, layout: &Layout) -> Result<Access, Refusal> {
        let slot = *self.slot(owner).ok_or_else(without_memory)?;
        let start = self.memory.arena.0.wrapping_add(slot.offset as usize);
        let count: usize = self.largest(owner).iter().product();
        let base = match self.graph.ty(owner) {
            Type::Q8 => {
                let scales = start.wrapping_add(q8_scales_at(count));
                Base::Q8(Ptr(start), Ptr(scales))
            }
            _ => Base::Words(Ptr(start)),
        };
        Ok(self.within(base, count, 1, layout))
    }

    fn direct(&mut self, root: Root, layout: &Layout) -> Result<Access, Refusal> {
        let (base, len, by) = match root {
            Root::Slot(owner) => match self.in_checkpoint(owner) {
                Some(words) => (Base::Words(words), self.largest(owner).iter().product(), 1),
                None => return self.in_slot(owner, layout),
            },
            Root::Constant(constant) => {
                let words = self.graph.constants[constant.0 as usize].words;
                let start = self.memory.constants.0.cast::<u32>();
                let start = start.wrapping_add(words.start as usize).cast();
                (Base::Words(Ptr(start)), words.len as usize, 1)
            }
            Root::State(state) => {
                let place = self.plan.state_places[state.0 as usize];
                let start = self.memory.state.0.wrapping_add(place.offset as usize);
                (Base::Words(Ptr(start)), place.bytes as usize / 4, 1)
            }
            Root::Weight(weight) => {
                let tensor = &self.memory.tensors[weight.0 as usize];
                let cols = tensor.cols.max(1);
                (Base::Weight(weight.0 as usize), tensor.rows, cols)
            }
            Root::Gather(_) => return Err(without_memory()),
        };
        Ok(self.within(base, len, by, layout))
    }

    /// The place of a layout in memory whose elements it counts `by` at a time.
    fn within(&mut self, base: Base, len: usize, by: usize, layout: &Layout) -> Access {
        // The last axis of a weight stays as it is; the strides of the others count rows.
        let strides = layout.strides.iter().map(|s| s / by).collect();
        let shifts = layout.shifts.iter();
        let shifts = shifts.map(|&(d, s)| (self.extents.dim(self.graph, d, self.bounds), s / by)).collect();
        Access { base, len, offset: layout.offset / by, strides, shifts, ids: None }
    }

    /// What one step along each axis of a gather's result means: elements of the source, and ids.
    pub(crate) fn steps(&self, gather: Value, source: &Access, ids: &Access) -> Vec<(usize, usize)> {
        let attrs = self.graph.attrs(gather);
        let (axis, batch) = (attrs[0] as usize, attrs[1] as usize);
        let front = (0..axis).map(|j| {
            let id = if j < batch { ids.strides[j] } else { 0 };
            (source.strides[j], id)
        });
        let middle = ids.strides[batch..].iter().map(|&s| (0, s));
        let back = source.strides[axis + 1..].iter().map(|&s| (s, 0));
        front.chain(middle).chain(back).collect()
    }

    /// The ids of a gather, with the strides of its result's axes.
    pub(crate) fn selection(&mut self, gather: Value, source: &Access, ids: &Access) -> Result<Selection, Refusal> {
        let args = self.graph.args(gather);
        let axis = self.graph.attrs(gather)[0] as usize;
        let place = ids.words().ok_or_else(|| "ids are words".to_string())?;
        let bound = self.axes(args[0])[axis];
        let strides = self.steps(gather, source, ids);
        Ok(Selection {
            place,
            strides: strides.into_iter().map(|(_, id)| id).collect(),
            step: source.strides[axis],
            bound,
            maskable: self.graph.ty(args[1]) == Type::ID,
            value: gather,
        })
    }

    /// A view of a gather that its reader does: each stride of the view is a sum of steps along the gather's axes.
    fn gathered(&mut self, gather: Value, layout: &Layout, v: Value) -> Result<Access, Refusal> {
        let args = self.graph.args(gather);
        let mut source = self.access(args[0])?;
        if let Some(inner) = &source.ids {
            return Err(Refusal::Store(inner.value));
        }
        let ids = self.words(args[1])?;
        let steps = self.steps(gather, &source, &ids);
        let mut selection = self.selection(gather, &source, &ids)?;
        let axes = Axes::of(&self.largest(gather), steps);
        let (offset, id_offset) = axes.split(layout.offset);
        source.offset += offset;
        selection.place.offset += id_offset;
        let mut id_shifts = selection.place.shifts.to_vec();
        for &(dim, stride) in &layout.shifts {
            let ext = self.extents.dim(self.graph, dim, self.bounds);
            let (s, i) = axes.split(stride);
            source.shifts.push((ext, s));
            id_shifts.push((ext, i));
        }
        selection.place.shifts = id_shifts.into();
        let largest = self.largest(v);
        let mut strides = Vec::new();
        selection.strides.clear();
        for (axis, &stride) in layout.strides.iter().enumerate() {
            if !axes.holds(stride, largest[axis]) {
                return Err(Refusal::Store(gather));
            }
            let (s, i) = axes.split(stride);
            strides.push(s);
            selection.strides.push(i);
        }
        source.strides = strides;
        source.ids = Some(selection);
        Ok(source)
    }

    /// No element of the operand lies outside its memory: what the kernels' unsafe code relies on.
    ///
    /// What shifts from step to step is bounded by the slice that it comes from, and selected rows by their ids.
    fn check(&self, v: Value, access: &Access) -> Result<(), Refusal> {
        let mut extents = self.largest(v);
        if matches!(access.base, Base::Weight(_)) {
            extents.pop();
        }
        if extents.contains(&0) {
            return Ok(());
        }
        let reach = |offset: usize, strides: &[usize]| {
            let steps = extents.iter().zip(strides);
            offset + steps.map(|(e, s)| (e - 1) * s).sum::<usize>()
        };
        let selected = access.ids.as_ref().map_or(0, |ids| {
            let most = self.extents.largest(ids.bound).max(1);
            (most - 1) * ids.step
        });
        let inside = reach(access.offset, &access.strides) + selected < access.len;
        let ids_inside = access.ids.as_ref().is_none_or(|ids| reach(ids.place.offset, &ids.strides) < ids.place.len);
        match inside && ids_inside {
            true => Ok(()),
            false => Err(format!("{v} reaches beyond its memory").into()),
        }
    }

    /// The operation of a value and whether it is a view that borrows its operand's memory.
    pub(crate) fn borrows(&self, v: Value) -> bool {
        self.graph.op(v).is_view() && self.slot(v).is_none()
    }

    /// Whether nothing needs to be done for a value: leaves, views, gathers that readers do.
    pub(crate) fn is_free(&self, v: Value) -> bool {
        match self.graph.op(v) {
            Op::Weight | Op::Const | Op::Read => true,
            Op::Gather => self.slot(v).is_none(),
            _ => self.borrows(v),
        }
    }
}

/// The axes of a gather's result that have more than one position, outermost first.
struct Axes {
    /// Packed stride, extent, and what one step means.
    list: Vec<(usize, usize, (usize, usize))>,
}

impl Axes {
    fn of(extents: &[usize], steps: Vec<(usize, usize)>) -> Axes {
        let strides = packed(extents);
        let all = strides.into_iter().zip(extents.iter().copied()).zip(steps);
        let list = all.map(|((stride, extent), step)| (stride, extent, step));
        Axes { list: list.filter(|axis| axis.1 > 1).collect() }
    }

    /// What a packed distance means.
    fn split(&self, mut distance: usize) -> (usize, usize) {
        let mut sum = (0, 0);
        for &(stride, _, (source, ids)) in &self.list {
            let count = distance / stride;
            distance %= stride;
            sum.0 += count * source;
            sum.1 += count * ids;
        }
        sum
    }

    /// Whether `extent` steps of a packed stride mean the same at every position.
    fn holds(&self, stride: usize, extent: usize) -> bool {
        if stride == 0 || extent <= 1 {
            return true;
        }
        let Some(j) = self.list.iter().position(|axis| axis.0 <= stride) else {
            return false;
        };
        let (packed, own, step) = self.list[j];
        if !stride.is_multiple_of(packed) {
            return false;
        }
        let mut reach = (extent - 1) * (stride / packed) + 1;
        let (mut at, mut own, mut step) = (j, own, step);
        // Beyond the axis's end the next outer one goes on; it must go on with the same steps.
        while reach > own {
            let Some(outer) = at.checked_sub(1) else {
                return false;
            };
            let (_, outer_extent, outer_step) = self.list[outer];
            if outer_step != (step.0 * own, step.1 * own) || !reach.is_multiple_of(own) {
                return false;
            }
            reach /= own;
            (at, own, step) = (outer, outer_extent, outer_step);
        }
        true
    }
}
