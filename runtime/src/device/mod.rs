//! Devices other than the CPU: what there is, whether it keeps the numeric contract, and how kernels run on it.
//!
//! ```text
//! select     `--device` and its meaning
//! list       `--list-devices`
//! driver     whether the drivers of CUDA, HIP and Vulkan are there
//! exec       executes plans through a backend
//! probe      the conformance probe
//! backend    what the executor asks of a device
//! wgpu       devices through Vulkan
//! native     devices through CUDA's and HIP's drivers
//! shader     from WGSL to strict SPIR-V
//! spirv      the pass over SPIR-V words that makes a module strict
//! cache      what is kept between runs
//! ```
//!
//! For a backend the unit of work is the text of a kernel, buffers, and a grid; plans are known to `exec` only.

pub mod backend;
pub mod cache;
pub mod driver;
pub mod exec;
pub mod list;
pub mod native;
pub mod probe;
pub mod select;
pub mod shader;
pub mod spirv;
pub mod wgpu;
