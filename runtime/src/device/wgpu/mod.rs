//! Devices through wgpu on Vulkan, with strict modules.
//!
//! ```text
//! adapter    what this machine has
//! backend    what the executor asks of a device
//! device     an opened adapter: pipelines, bindings, submissions
//! memory     arenas: upload in pieces, reading back
//! pipeline   strict modules made executable, and the cache of that on disk
//! limits     what the bounds of a device refuse
//! fault      errors of the device as diagnostics
//! wait       futures
//! ```

mod adapter;
mod backend;
mod device;
mod fault;
mod limits;
mod memory;
mod pipeline;
mod wait;

pub use adapter::{About, Adapters, Limits};
pub use backend::WgpuBackend;
pub use device::{Device, Launch};
pub use memory::{Arena, Piece};
pub use pipeline::{Bound, Pipeline};

#[cfg(test)]
pub(in crate::device) mod tests;
