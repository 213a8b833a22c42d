//! Where the elements of an operand lie, and how a kernel reaches them.

use ds4_ir::numerics::Arith;
use ds4_ir::plan::layout::packed;
use ds4_ir::plan::{Layout, Root};
use ds4_ir::{Dim, Type as ValueType, Value};

use crate::kernel::{Access, Builder, ExtentRow, MaskedId, Memory, Source, Type, Word};

use super::scene::{Refusal, Scene};

/// An operand: memory, first element, strides in elements (rows for weights, whose last axis has none), and what a step adds.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// The value.
    pub(crate) value: Value,
    /// Its type.
    pub(crate) ty: ValueType,
    /// The memory.
    pub(crate) root: Root,
    /// First element or row.
    pub(crate) offset: u32,
    /// Elements or rows between neighbours along each axis.
    pub(crate) strides: Vec<u32>,
    /// What a step adds to the offset.
    pub(crate) shifts: Vec<ExtentRow>,
    /// Ids that select, where a gather is done by its reader.
    pub(crate) ids: Option<Box<Selection>>,
}

/// The ids of a gather done by its reader.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The ids, with strides along the operand's axes.
    pub(crate) ids: Operand,
    /// Elements or rows of the memory per unit of id.
    pub(crate) step: u32,
}

fn too_large() -> Refusal {
    Refusal::Unsupported("an operand has more elements than 32 bits count".into())
}

fn small(n: usize) -> Result<u32, Refusal> {
    u32::try_from(n).map_err(|_| too_large())
}

impl Operand {
    /// The operand that `v` is.
    pub(crate) fn of(scene: &Scene<'_>, v: Value) -> Result<Operand, Refusal> {
        let layout = scene.layout(v)?;
        match layout.root {
            Root::Gather(gather) => gathered(scene, v, gather, layout),
            _ => Operand::plain(scene, v, layout),
        }
    }

    fn plain(scene: &Scene<'_>, v: Value, layout: &Layout) -> Result<Operand, Refusal> {
        let ty = scene.graph.ty(v);
        let by = unit(scene, v);
        let mut strides = Vec::with_capacity(layout.strides.len());
        for (axis, &stride) in layout.strides.iter().enumerate() {
            let row_axis = ty.format().is_some() && axis + 1 == layout.strides.len();
            strides.push(small(if row_axis { 0 } else { stride / by })?);
        }
        let shifts = layout.shifts.iter().map(|&(dim, stride)| shift(scene, dim, stride / by));
        let shifts = shifts.collect::<Result<_, _>>()?;
        let offset = small(layout.offset / by)?;
        let reach = layout.extents.iter().zip(&strides).map(|(&e, &s)| e.saturating_sub(1) as u64 * u64::from(s));
        if reach.sum::<u64>() + u64::from(offset) > u64::from(u32::MAX) {
            return Err(too_large());
        }
        Ok(Operand { value: v, ty, root: layout.root, offset, strides, shifts, ids: None })
    }

    /// The source of words.
    pub(crate) fn words(&self) -> Result<Source, Refusal> {
        match self.root {
            Root::Slot(v) => Ok(Source::Slot(v)),
            Root::State(s) => Ok(Source::State(s)),
            Root::Constant(c) => Ok(Source::Constant(c)),
            Root::Weight(_) | Root::Gather(_) => Err(Refusal::Unsupported(format!("{} is not words", self.value))),
        }
    }

    /// The type of its elements in memory.
    pub(crate) fn element(&self) -> Type {
        match self.ty {
            ValueType::F32 => Type::F32,
            ValueType::ID => Type::Id,
            _ => Type::Word,
        }
    }

    /// The argument that holds its words.
    pub(crate) fn memory(&self, b: &Builder, access: Access, name: &str) -> Result<Memory, Refusal> {
        Ok(b.argument(self.words()?, self.element(), access, name))
    }

    /// The element where all indices are zero.
    pub(crate) fn first(&self, b: &Builder) -> Word {
        self.shifts.iter().fold(b.word(self.offset), |sum, &shift| b.add_int(sum, b.extent_value(shift)))
    }

    /// Strides of its ids along its axes; zeros if it has none.
    pub(crate) fn id_strides(&self) -> Vec<u32> {
        self.ids.as_ref().map_or_else(|| vec![0; self.strides.len()], |s| s.ids.strides.clone())
    }
}

impl Selection {
    /// Runs `then` with what the id at `index` adds to the operand's offset, `otherwise` if it is masked.
    pub(crate) fn select(
        &self,
        b: &Builder,
        index: Word,
        then: impl FnOnce(Word),
        otherwise: impl FnOnce(),
    ) -> Result<(), Refusal> {
        let memory = self.ids.memory(b, Access::Read, "ids")?;
        let at = b.add_int(self.ids.first(b), index);
        let scaled = |id: Word| b.mul_int(id, b.word(self.step));
        if self.ids.ty == ValueType::ID {
            let id: MaskedId = b.load("id", memory, at);
            b.present(id, |id| then(scaled(id)), otherwise);
        } else {
            let id: Word = b.load("id", memory, at);
            then(scaled(id));
        }
        Ok(())
    }
}

/// Elements of the root that one unit of an operand's strides means: a row for weights.
fn unit(scene: &Scene<'_>, v: Value) -> usize {
    match scene.graph.ty(v).format() {
        Some(_) => scene.graph.dims_of(v).last().and_then(|&d| scene.constant(d)).unwrap_or(1).max(1) as usize,
        None => 1,
    }
}

fn shift(scene: &Scene<'_>, dim: Dim, stride: usize) -> Result<ExtentRow, Refusal> {
    let row = scene.extent(dim, small(stride)?);
    row.largest().map(|_| row).ok_or_else(too_large)
}

/// What one step along each axis of a gather's result means: elements of the source, and ids.
pub(crate) fn steps(scene: &Scene<'_>, gather: Value, source: &Operand, ids: &Operand) -> Vec<(u32, u32)> {
    let attrs = scene.graph.attrs(gather);
    let (axis, batch) = (attrs[0] as usize, attrs[1] as usize);
    let front = (0..axis).map(|j| (source.strides[j], if j < batch { ids.strides[j] } else { 0 }));
    let middle = ids.strides[batch..].iter().map(|&s| (0, s));
    let back = source.strides[axis + 1..].iter().map(|&s| (s, 0));
    front.chain(middle).chain(back).collect()
}

/// The selection of a gather, its ids' strides those of the gather's own axes.
pub(crate) fn selection(scene: &Scene<'_>, gather: Value) -> Result<(Operand, Selection), Refusal> {
    let args = scene.graph.args(gather);
    let (source, mut ids) = (Operand::of(scene, args[0])?, Operand::of(scene, args[1])?);
    for inner in [&source, &ids] {
        if inner.ids.is_some() {
            return Err(Refusal::Store(inner.value));
        }
    }
    let steps = steps(scene, gather, &source, &ids);
    let step = source.strides[scene.graph.attrs(gather)[0] as usize];
    ids.strides = steps.iter().map(|s| s.1).collect();
    let strides = steps.iter().map(|s| s.0).collect();
    Ok((Operand { strides, value: gather, ..source }, Selection { ids, step }))
}

/// A view of a gather that its reader does: each stride of the view is a sum of steps along the gather's axes.
fn gathered(scene: &Scene<'_>, v: Value, gather: Value, layout: &Layout) -> Result<Operand, Refusal> {
    let (mut source, mut selection) = selection(scene, gather)?;
    let extents = scene.graph.max_extents(scene.graph.value_shape[gather.0 as usize], scene.bounds);
    let steps = source.strides.iter().copied().zip(selection.ids.strides.iter().copied()).collect();
    let axes = GatherAxes::of(&extents, steps);
    let (offset, id_offset) = axes.split(layout.offset);
    source.offset = source.offset.checked_add(offset).ok_or_else(too_large)?;
    selection.ids.offset = selection.ids.offset.checked_add(id_offset).ok_or_else(too_large)?;
    for &(dim, stride) in &layout.shifts {
        let (s, i) = axes.split(stride);
        source.shifts.push(shift(scene, dim, s as usize)?);
        selection.ids.shifts.push(shift(scene, dim, i as usize)?);
    }
    source.strides.clear();
    selection.ids.strides.clear();
    for (&stride, &extent) in layout.strides.iter().zip(&layout.extents) {
        // Of a view without elements any strides will do.
        if !layout.extents.contains(&0) && !axes.holds(stride, extent) {
            return Err(Refusal::Store(gather));
        }
        let (s, i) = axes.split(stride);
        source.strides.push(s);
        selection.ids.strides.push(i);
    }
    let ty = scene.graph.ty(v);
    if ty.format().is_some()
        && let Some(last) = source.strides.last_mut()
    {
        *last = 0;
    }
    Ok(Operand { value: v, ty, ids: Some(Box::new(selection)), ..source })
}

/// The axes of a gather's result that have more than one position, outermost first.
struct GatherAxes {
    /// Packed stride, extent, and what one step means.
    list: Vec<(usize, usize, (u32, u32))>,
}

impl GatherAxes {
    fn of(extents: &[usize], steps: Vec<(u32, u32)>) -> GatherAxes {
        let all = packed(extents).into_iter().zip(extents.iter().copied()).zip(steps);
        let list = all.map(|((stride, extent), step)| (stride, extent, step));
        GatherAxes { list: list.filter(|axis| axis.1 > 1).collect() }
    }

    /// What a packed distance means.
    fn split(&self, mut distance: usize) -> (u32, u32) {
        let mut sum = (0u32, 0u32);
        for &(stride, _, (source, ids)) in &self.list {
            let count = (distance / stride) as u32;
            distance %= stride;
            sum.0 = sum.0.wrapping_add(count.wrapping_mul(source));
            sum.1 = sum.1.wrapping_add(count.wrapping_mul(ids));
        }
        sum
    }

    /// Whether `extent` steps of a packed stride mean the same at every position.
    fn holds(&self, stride: usize, extent: usize) -> bool {
        if stride == 0 || extent <= 1 {
            return true;
        }
        let Some(mut at) = self.list.iter().position(|axis| axis.0 <= stride) else {
            return false;
        };
        let (packed, mut own, mut step) = self.list[at];
        if !stride.is_multiple_of(packed) {
            return false;
        }
        let mut reach = (extent - 1) * (stride / packed) + 1;
        // Beyond the axis's end the next outer one goes on; it must go on with the same steps.
        while reach > own {
            let Some(outer) = at.checked_sub(1) else {
                return false;
            };
            let (_, outer_extent, outer_step) = self.list[outer];
            let continued = (step.0.wrapping_mul(own as u32), step.1.wrapping_mul(own as u32));
            if outer_step != continued || !reach.is_multiple_of(own) {
                return false;
            }
            reach /= own;
            (at, own, step) = (outer, outer_extent, outer_step);
        }
        true
    }
}
