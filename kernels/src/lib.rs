//! Kernels: the intermediate representation of launches, its emitters and readers, and the machine that runs kernels
//! without a GPU.
//!
//! What stands here so far is the one fact about kernels that planning needs already: the [`Target`]s that a plan may carry
//! source for.

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

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Target::Wgsl => "wgsl",
            Target::Ptx => "ptx",
            Target::Hip => "hip",
        }
    }
}
