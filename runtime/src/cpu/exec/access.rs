//! Where the elements of an operand lie, resolved to memory.

use ds4_ir::Value;

use super::extents::Ext;

/// A pointer into the memory of an executor: its arenas, its constants or its checkpoint files.
///
/// All of these live as long as the executor, which is the only one to use kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ptr(pub(crate) *mut u8);

// SAFETY: kernels run under `Executor::run`, which has the executor exclusively; the workers of one launch write
// disjoint elements (a launch's tasks are disjoint parts of its output) and read what earlier launches wrote.
unsafe impl Send for Ptr {}
// SAFETY: as above.
unsafe impl Sync for Ptr {}

/// What the elements of an operand are found in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    /// Words: f32, i32 or ids.
    Words(Ptr),
    /// q8: codes, and one scale per 32 of them.
    Q8(Ptr, Ptr),
    /// A tensor of the checkpoint; offsets and strides count rows.
    Weight(usize),
}

/// Where the elements of an operand lie: root, offset and strides in elements (rows for weights), and for a gather
/// done by the reader the ids that select.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The memory.
    pub(crate) base: Base,
    /// Elements (rows) that the memory has.
    pub(crate) len: usize,
    /// First element (row).
    pub(crate) offset: usize,
    /// Elements (rows) between neighbours along each axis.
    pub(crate) strides: Vec<usize>,
    /// What a step adds to the offset.
    pub(crate) shifts: Vec<(Ext, usize)>,
    /// Ids that select along one axis of the memory.
    pub(crate) ids: Option<Selection>,
}

/// The ids of a gather done by its reader.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The ids.
    pub(crate) place: Place,
    /// Ids between neighbours along each axis of the operand.
    pub(crate) strides: Vec<usize>,
    /// Elements (rows) of the memory per unit of id.
    pub(crate) step: usize,
    /// What an id is below.
    pub(crate) bound: Ext,
    /// Whether ids may be masked.
    pub(crate) maskable: bool,
    /// The gather, for reports.
    pub(crate) value: Value,
}

/// Words at a place that may shift from step to step.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The memory.
    pub(crate) base: Ptr,
    /// Words that the memory has.
    pub(crate) len: usize,
    /// First word.
    pub(crate) offset: usize,
    /// What a step adds to the offset.
    pub(crate) shifts: Box<[(Ext, usize)]>,
}

impl Place {
    /// Offset of the first word in this step.
    #[inline]
    pub(crate) fn first(&self, values: &[usize]) -> usize {
        let shifts = self.shifts.iter();
        self.offset + shifts.map(|&(e, s)| values[e as usize] * s).sum::<usize>()
    }

    /// Pointer to the first word in this step.
    #[inline]
    pub(crate) fn at(&self, values: &[usize]) -> *mut u32 {
        self.base.0.cast::<u32>().wrapping_add(self.first(values))
    }
}

impl Access {
    /// The place of words that no ids select; `None` for other memory.
    pub(crate) fn words(&self) -> Option<Place> {
        match (self.base, &self.ids) {
            (Base::Words(base), None) => Some(self.place(base)),
            _ => None,
        }
    }

    /// The place with another pointer as base.
    pub(crate) fn place(&self, base: Ptr) -> Place {
        Place { base, len: self.len, offset: self.offset, shifts: self.shifts.clone().into() }
    }
}
