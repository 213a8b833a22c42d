//! Text of kernels in the languages of devices.
//!
//! A structured language is a table ([`structured::Dialect`]): how it writes an operator, a local, a load. The walk over
//! statements, the names and the temporaries are the same for all of them ([`structured`]).
//!
//! | target | the step's block | arguments, in the order of [`crate::kernel::Kernel::arguments`] | number of the workgroup |
//! |---|---|---|---|
//! | WGSL | binding 0 of group 0, `step` | bindings 1, 2, ... | `workgroup_id.x + workgroup_id.y * num_workgroups.x` |
//! | PTX | first parameter, a global address | one global address each | `%ctaid.x + %ctaid.y * %nctaid.x` |
//! | HIP | first parameter, `const unsigned *step` | one pointer each | `blockIdx.x + blockIdx.y * gridDim.x` |
//!
//! Where a kernel has one part, workgroups behind its grid leave first. Where it has several, each part stands in a branch for
//! the numbers below its count, and the count is taken off the number for the parts that follow.
//!
//! The entry point is called [`entry_point`] in all of them, and a workgroup has the kernel's lanes along x.
//!
//! The text is made to be read: names come from the schedule, one comment line says which value is computed, what is used
//! twice or is too long for a line gets a name of its own.

pub mod hip;
mod names;
pub mod ptx;
pub mod structured;
pub mod wgsl;

use ds4_ir::Dim;

use crate::kernel::Kernel;
use names::identifier;

/// The name of a kernel's entry point.
pub fn entry_point(kernel: &Kernel) -> String {
    identifier(&kernel.name)
}

/// The step's block: words that the host writes once a step, the same for all kernels of a plan.
///
/// Word 0 holds the bits of +0.0, word 1 those of -0.0 (compilers fold literal zeros, and a loaded one they cannot), then
/// come the dimensions that some kernel needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepBlock {
    dims: Vec<Dim>,
}

impl StepBlock {
    /// Words in front of the dimensions.
    const FIRST: usize = 2;

    /// The block that serves these kernels.
    pub fn of<'k>(kernels: impl IntoIterator<Item = &'k Kernel>) -> StepBlock {
        let mut dims: Vec<Dim> = kernels.into_iter().flat_map(|k| k.scalars()).collect();
        dims.sort();
        dims.dedup();
        StepBlock { dims }
    }

    /// The dimensions, in the order of their words.
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// The place of a dimension's word.
    pub fn place(&self, dim: Dim) -> Option<usize> {
        self.dims.binary_search(&dim).ok().map(|i| i + Self::FIRST)
    }

    /// The words in a step; `value` gives that of a dimension.
    pub fn words(&self, value: &dyn Fn(Dim) -> u32) -> Vec<u32> {
        let zeros = [0.0f32.to_bits(), (-0.0f32).to_bits()];
        zeros.into_iter().chain(self.dims.iter().map(|&dim| value(dim))).collect()
    }
}
