//! What a prepared kernel is, and what it is given when it runs.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use ds4_ir::Value;
use ds4_ir::entity::Entity as _;

use super::weights::Tensor;
use super::width::Width;
use crate::cpu::products::Isa;

/// The word of a masked id.
pub(crate) const MASKED: u32 = u32::MAX;

/// One stored value's computation, prepared at load.
pub(crate) trait Kernel: Send + Sync {
    /// How much there is to do in this step.
    fn size(&self, step: &StepView<'_>) -> Size;

    /// Does a range of the tasks that `size` counted. Different tasks write different elements.
    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>);
}

/// The work of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Parts that may run at the same time. None: there is nothing to do.
    pub(crate) tasks: usize,
    /// About how many nanoseconds all of them take on one thread.
    pub(crate) nanoseconds: usize,
}

impl Size {
    /// Nothing to do.
    pub(crate) const NOTHING: Size = Size { tasks: 0, nanoseconds: 0 };
}

/// What kernels know of a step.
#[derive(Clone, Copy)]
pub(crate) struct StepView<'a> {
    /// Values of the extents.
    pub(crate) values: &'a [usize],
    /// Token ids.
    pub(crate) tokens: &'a [u32],
    /// Instruction-set level of product primitives.
    pub(crate) isa: Isa,
    /// The same for loops of this module.
    pub(crate) width: Width,
    /// What goes wrong.
    pub(crate) faults: &'a Faults,
    /// Tensors of the checkpoint.
    pub(crate) tensors: &'a [Tensor],
}

impl StepView<'_> {
    /// The value of an extent.
    #[inline]
    pub(crate) fn get(&self, ext: super::extents::Ext) -> usize {
        self.values[ext as usize]
    }
}

/// What can go wrong while a kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultKind {
    /// An id selects no row.
    Id,
    /// A stored integer does not fit 32 bits.
    Integer,
}

/// The first fault of a step, whichever worker had it.
#[derive(Default)]
pub(crate) struct Faults(AtomicU64);

impl Faults {
    /// Notes a fault at a value. Earlier ones stand.
    #[cold]
    pub(crate) fn note(&self, kind: FaultKind, value: Value) {
        let word = 1 + 2 * (value.index() as u64) + u64::from(kind == FaultKind::Integer);
        let _ = self.0.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The fault, if there was one; forgets it.
    pub(crate) fn take(&self) -> Option<(FaultKind, Value)> {
        let word = self.0.swap(0, Ordering::Relaxed).checked_sub(1)?;
        let kind = match word % 2 {
            0 => FaultKind::Id,
            _ => FaultKind::Integer,
        };
        Some((kind, Value((word / 2) as u32)))
    }
}

/// Memory of one worker, kept from launch to launch and grown to what the largest needs.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Registers of scalar programs.
    pub(crate) registers: Vec<u32>,
    /// Pointers to the registers.
    pub(crate) pointers: Vec<*mut u32>,
    /// Offsets of operands.
    pub(crate) offsets: Vec<usize>,
    /// Floats: columns, lanes, leaves.
    pub(crate) floats: Vec<f32>,
    /// Floats: results.
    pub(crate) results: Vec<f32>,
    /// Codes of packed columns.
    pub(crate) codes: Vec<i8>,
    /// Scales of packed columns.
    pub(crate) scales: Vec<f32>,
    /// Sums of 16 codes.
    pub(crate) sums: Vec<i16>,
    /// Starts of rows or columns.
    pub(crate) starts: Vec<usize>,
    /// Where results go.
    pub(crate) targets: Vec<usize>,
    /// Their weights.
    pub(crate) weights: Vec<f32>,
    /// Indices that go with them.
    pub(crate) indices: Vec<u32>,
    /// Counters.
    pub(crate) counters: Vec<u32>,
    /// Integers of a row.
    pub(crate) integers: Vec<i64>,
}

// SAFETY: the pointers are set by each run of a kernel before it uses them, on the worker that has the scratch.
unsafe impl Send for Scratch {}

/// The first `len` elements of a buffer, which grows if it must. What they hold is left from earlier.
#[inline]
pub(crate) fn grown<T: Clone + Default>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
    &mut buffer[..len]
}
