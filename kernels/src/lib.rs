//! Kernels: what a launch does on a device, and a machine that shows without a device that it does the right thing.
//!
//! ```text
//! value graph, layouts --schedule--> kernels --verify--> emit: text of a target
//!                                       |
//!                                       +--> machine: runs them, over numbers (over terms to come)
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`kernel`] | the kernel IR: tables, builder, verifier. **Begin here** |
//! | [`schedule`] | from one value of the graph to its kernels, generic over operation, type and tree |
//! | [`region`] | from many values, split among workgroups, to one kernel |
//! | [`weight_layout`] | how a tensor's bytes lie in words, and back |
//! | [`emit`] | the text of a kernel: WGSL for strict lowering, PTX, HIP C++ |
//! | [`plan`] | the kernels of a plan's launches, and whether those in a plan are these |
//! | [`read`] | from the text of a target back to a kernel |
//! | [`machine`] | executes kernels on the CPU, generic over the domain of floats; refuses races, bounds, unwritten memory |
//!
//! What holds:
//! - A kernel computes with the rounded and exact operations of the contract and no others; the functions are emitted from
//!   their one definition in [`ds4_ir::numerics`]. A tree of the value graph is honoured exactly, by position of leaves.
//! - An argument is a plan constant, a buffer, or a step scalar in the step's block. There is no other input.
//! - A masked id has one use besides being stored, a guarded branch. Loops and grids have static bounds.
//! - The crate knows the value graph and its layouts, and no file, device, thread or model construct.
//!
//! What exists: schedules for all 21 operations of the value graph and all storage formats, one value a launch (with the
//! gathers that its reader does itself); regions of any values, on chip, in locals or read back from their slots; independent
//! kernels side by side in one launch. Each is compared with the evaluator bit by bit, as kernels and through the text of every
//! target. What does not exist yet: the domain of terms outside of tests.

pub mod emit;
pub mod kernel;
pub mod machine;
pub mod parallel;
pub mod plan;
pub mod read;
pub mod region;
pub mod schedule;
pub mod weight_layout;

#[cfg(test)]
mod tests;

/// A language that kernels are emitted in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// WebGPU's shading language, for wgpu.
    Wgsl,
    /// NVIDIA's virtual instruction set, for the CUDA driver.
    Ptx,
    /// HIP C++, for AMD's runtime compiler.
    Hip,
}

impl Target {
    /// All targets, in the order in which plans list them.
    pub const ALL: [Target; 3] = [Target::Wgsl, Target::Ptx, Target::Hip];

    /// The target with a name.
    pub fn named(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The text of a kernel. `None` if the block lacks a dimension that the kernel needs.
    pub fn emit(self, kernel: &kernel::Kernel, block: &emit::StepBlock) -> Option<String> {
        match self {
            Target::Wgsl => emit::wgsl::emit(kernel, block),
            Target::Ptx => emit::ptx::emit(kernel, block),
            Target::Hip => emit::hip::emit(kernel, block),
        }
    }

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Target::Wgsl => "wgsl",
            Target::Ptx => "ptx",
            Target::Hip => "hip",
        }
    }
}
