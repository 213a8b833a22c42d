//! Where the elements of a value lie: a root and strides, the same at every step of an entry point.
//!
//! Strides follow from the largest extents, so a step only changes how far its loops run. Views move no bytes: their
//! layout is that of their operand, seen differently.

use crate::dim::{Bounds, Dim};
use crate::graph::{Constant, Graph, State, Value, Weight};
use crate::op::Op;
use crate::plan::tables::SlotRow;

/// What the elements of a value are found in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    /// The slot of a value in the arena.
    Slot(Value),
    /// A tensor of the checkpoint.
    Weight(Weight),
    /// A table of the plan.
    Constant(Constant),
    /// A state.
    State(State),
    /// A gather that its readers do themselves: strides refer to its packed elements, which exist nowhere.
    Gather(Value),
}

/// Where the elements of a value lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// What they are found in.
    pub root: Root,
    /// First element, counted in elements of the root.
    pub offset: usize,
    /// Largest extents at the entry point's bounds.
    pub extents: Vec<usize>,
    /// Elements of the root between neighbours along each axis; 0 where the value is broadcast.
    pub strides: Vec<usize>,
    /// What a step adds to the offset: the value of a dimension times a number of elements (slices whose start follows
    /// from the step scalars).
    pub shifts: Vec<(Dim, usize)>,
}

impl Layout {
    fn whole(root: Root, extents: &[usize]) -> Layout {
        Layout { root, offset: 0, extents: extents.to_vec(), strides: packed(extents), shifts: Vec::new() }
    }

    fn with_strides(&self, strides: Vec<usize>) -> Layout {
        Layout { strides, ..self.clone() }
    }

    /// Whether `place` gives every element of this value the same place: strides of axes with one index do not matter.
    fn is_at(&self, place: &Layout) -> bool {
        let mut axes = self.extents.iter().zip(self.strides.iter().zip(&place.strides));
        self.root == place.root
            && self.offset == place.offset
            && self.shifts == place.shifts
            && axes.all(|(&extent, (a, b))| extent <= 1 || a == b)
    }
}

/// Strides of a row-major array with these extents.
pub fn packed(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis] * extents[axis].max(1);
    }
    strides
}

/// The layouts of all values of an entry point that have one: stored values, leaves with memory, gathers without a
/// slot, and views on these. `slots` are the entry's, ascending by value.
///
/// A view whose operand's strides cannot express it has no layout unless it has a slot of its own.
pub fn layouts(graph: &Graph<'_>, bounds: Bounds, slots: &[SlotRow]) -> Vec<Option<Layout>> {
    let mut finder = Finder { graph, bounds, found: vec![None; graph.len()] };
    // A concat comes behind its operands; those inside it need its layout first.
    for slot in slots.iter().filter(|slot| slot.within == slot.value) {
        let extents = graph.max_extents(graph.value_shape[slot.value.0 as usize], bounds);
        finder.found[slot.value.0 as usize] = Some(Layout::whole(Root::Slot(slot.value), &extents));
    }
    for slot in slots.iter().rev().filter(|slot| slot.within != slot.value) {
        finder.place_within(slot);
    }
    for v in graph.values() {
        if finder.found[v.0 as usize].is_none() {
            finder.found[v.0 as usize] = finder.unstored(v);
        }
        let extents = finder.extents(v);
        if let Some(layout) = &mut finder.found[v.0 as usize] {
            layout.extents = extents;
        }
    }
    finder.found
}

struct Finder<'a> {
    graph: &'a Graph<'a>,
    bounds: Bounds,
    found: Vec<Option<Layout>>,
}

impl Finder<'_> {
    fn extents(&self, v: Value) -> Vec<usize> {
        self.graph.max_extents(self.graph.value_shape[v.0 as usize], self.bounds)
    }

    /// An operand that lies inside its concat: behind the operands before it, whose extents are constant. The slot may be
    /// that of a value which the operand reshapes.
    fn place_within(&mut self, slot: &SlotRow) {
        let expected = operand_within(self.graph, slot.within, slot.value)
            .and_then(|operand| Some((operand, self.within_concat(slot.within, operand)?)));
        let Some((operand, layout)) = expected else { return };
        self.found[slot.value.0 as usize] = self.through_reshape(operand, &layout, slot.value);
    }

    /// Where operand `operand` of a concat lies if its elements are in the concat's memory.
    fn within_concat(&self, concat: Value, operand: Value) -> Option<Layout> {
        let outer = self.found[concat.0 as usize].as_ref()?;
        let axis = self.graph.attrs(concat)[0] as usize;
        let start = start_within(self.graph, concat, operand)?;
        Some(Layout { offset: outer.offset + start * outer.strides[axis], ..outer.clone() })
    }

    /// The layout of `to`, whose elements are those of `from` in row-major order.
    fn through_reshape(&self, from: Value, layout: &Layout, to: Value) -> Option<Layout> {
        let (extents, wanted) = (self.extents(from), self.extents(to));
        if wanted.contains(&0) {
            // Nothing is ever there: any strides will do.
            return Some(layout.with_strides(packed(&wanted)));
        }
        let strides = reshaped(&extents, &layout.strides, &wanted)?;
        let symbolic = |v| self.graph.dims_of(v).iter().map(|&d| constant(self.graph, d).is_none()).collect();
        merges_outermost(&extents, symbolic(from), &wanted, symbolic(to)).then(|| layout.with_strides(strides))
    }

    fn unstored(&self, v: Value) -> Option<Layout> {
        let whole = |root| Some(Layout::whole(root, &self.extents(v)));
        let attrs = self.graph.attrs(v);
        match self.graph.op(v) {
            Op::Weight => whole(Root::Weight(Weight(attrs[0]))),
            Op::Const => whole(Root::Constant(Constant(attrs[0]))),
            Op::Read => whole(Root::State(State(attrs[0]))),
            Op::Write => self.found[self.graph.args(v)[0].0 as usize].clone(),
            Op::Gather => whole(Root::Gather(v)),
            op if op.is_view() => self.view(op, v),
            _ => None,
        }
    }

    fn view(&self, op: Op, v: Value) -> Option<Layout> {
        let operand = self.graph.args(v)[0];
        let inner = self.found[operand.0 as usize].as_ref()?;
        let attrs = self.graph.attrs(v);
        match op {
            Op::Permute => Some(inner.with_strides(attrs.iter().map(|&a| inner.strides[a as usize]).collect())),
            Op::Broadcast => {
                let (from, to) = (self.graph.dims_of(operand), self.graph.dims_of(v));
                let strides = (0..to.len()).map(|a| if from[a] == to[a] { inner.strides[a] } else { 0 }).collect();
                Some(inner.with_strides(strides))
            }
            Op::Slice => {
                let (start, stride) = (Dim(attrs[1]), inner.strides[attrs[0] as usize]);
                let mut layout = inner.clone();
                match constant(self.graph, start) {
                    Some(start) => layout.offset += start * stride,
                    None => layout.shifts.push((start, stride)),
                }
                Some(layout)
            }
            _ => self.through_reshape(operand, inner, v),
        }
    }
}

/// The operand of `concat` that is `value` or a reshape of it.
pub fn operand_within(graph: &Graph<'_>, concat: Value, value: Value) -> Option<Value> {
    let is_value = |&operand: &Value| {
        let mut at = operand;
        while at != value && graph.op(at) == Op::Reshape {
            at = graph.args(at)[0];
        }
        at == value
    };
    graph.args(concat).iter().copied().find(is_value)
}

/// Whether operand `operand` of a concat already lies at its place in the concat's memory, so that nothing is copied.
pub fn lies_within(graph: &Graph<'_>, found: &[Option<Layout>], concat: Value, operand: Value) -> bool {
    let place = || {
        let outer = found[concat.0 as usize].as_ref()?;
        let axis = graph.attrs(concat)[0] as usize;
        let start = start_within(graph, concat, operand)?;
        Some(Layout { offset: outer.offset + start * outer.strides[axis], ..outer.clone() })
    };
    let layout = found[operand.0 as usize].as_ref();
    layout.zip(place().as_ref()).is_some_and(|(l, place)| matches!(l.root, Root::Slot(_)) && l.is_at(place))
}

/// Elements of the concat's axis in front of an operand, if they are constant. An operand that occurs twice has two places
/// and is always copied.
pub fn start_within(graph: &Graph<'_>, concat: Value, operand: Value) -> Option<usize> {
    let axis = *graph.attrs(concat).first()? as usize;
    let args = graph.args(concat);
    let index = args.iter().position(|&a| a == operand)?;
    if args[index + 1..].contains(&operand) {
        return None;
    }
    args[..index].iter().map(|&a| constant(graph, graph.dims_of(a)[axis])).sum()
}

fn constant(graph: &Graph<'_>, dim: Dim) -> Option<usize> {
    match crate::DimOp::of(graph.dims[dim.0 as usize])? {
        crate::DimOp::Const(n) => Some(n as usize),
        _ => None,
    }
}

/// Splits both extents into groups of axes with equal element counts: `(from range, to range)` each.
fn groups(from: &[usize], to: &[usize]) -> Option<Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>> {
    let (mut f, mut t) = (0, 0);
    let mut groups = Vec::new();
    while f < from.len() || t < to.len() {
        let (f0, t0) = (f, t);
        let (mut a, mut b) = (1usize, 1usize);
        loop {
            if f < from.len() && (a < b || f == f0) {
                a = a.checked_mul(from[f])?;
                f += 1;
            } else if t < to.len() && (b < a || t == t0) {
                b = b.checked_mul(to[t])?;
                t += 1;
            } else {
                break;
            }
        }
        if a != b {
            return None;
        }
        groups.push((f0..f, t0..t));
    }
    Some(groups)
}

/// Strides of a reshaped array, if strides can express it.
fn reshaped(from: &[usize], strides: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let mut result = vec![0; to.len()];
    for (f, t) in groups(from, to)? {
        let axes: Vec<usize> = f.filter(|&a| from[a] != 1).collect();
        let mergeable = axes.windows(2).all(|w| strides[w[0]] == strides[w[1]] * from[w[1]]);
        if !mergeable {
            return None;
        }
        let mut stride = axes.last().map_or(0, |&a| strides[a]);
        for axis in t.rev() {
            result[axis] = stride;
            stride *= to[axis];
        }
    }
    Some(result)
}

/// Within each group of merged or split axes only the outermost axis may change from step to step: an inner one would
/// leave holes that the other side does not know.
fn merges_outermost(from: &[usize], from_symbolic: Vec<bool>, to: &[usize], to_symbolic: Vec<bool>) -> bool {
    let Some(groups) = groups(from, to) else {
        return false;
    };
    groups.into_iter().all(|(f, t)| {
        let inner_symbolic = |axes: std::ops::Range<usize>, extents: &[usize], symbolic: &[bool]| {
            let mut axes = axes.filter(|&a| extents[a] != 1 || symbolic[a]);
            axes.next();
            axes.any(|a| symbolic[a])
        };
        let trivial = f.len() == 1 && t.len() == 1;
        trivial || (!inner_symbolic(f, from, &from_symbolic) && !inner_symbolic(t, to, &to_symbolic))
    })
}

/// Bytes of a value stored with these extents: 4 an element; q8 as all codes, then, aligned, all scales.
pub fn stored_bytes(ty: crate::Type, extents: &[usize]) -> Option<u64> {
    let count = extents.iter().try_fold(1u64, |n, &e| n.checked_mul(e as u64))?;
    match ty {
        crate::Type::Q8 => count.checked_next_multiple_of(super::ALIGN)?.checked_add(count / 32 * 4),
        ty if ty.format().is_some() => None,
        _ => count.checked_mul(4),
    }
}

/// First byte of the scales of a stored q8 value with `count` elements.
pub fn q8_scales_at(count: usize) -> usize {
    count.next_multiple_of(super::ALIGN as usize)
}
