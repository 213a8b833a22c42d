//! Devices of NVIDIA through CUDA's driver API, by hand: no toolkit, no header, no link to the driver.
//!
//! ```text
//! api       the entry points, loaded when they are asked for
//! fault     what the driver reports, as diagnostics
//! device    what this machine has, and an opened device with its context and stream
//! memory    buffers: cleared, filled in parts, read back
//! module    kernels from PTX, compiled by the driver on several threads
//! backend   all of it as what the executor asks of a device
//! ```
//!
//! All work goes to one stream, so that it is done in the order of the calls.

mod api;
mod backend;
mod device;
mod fault;
mod memory;
mod module;

pub use backend::CudaBackend;
pub use device::{About, devices};

use ds4_ir::Diagnostic;

/// Opens the device with a number.
///
/// # Errors
/// The driver is missing or too old, there is no such device, it is too old, or its driver refuses.
pub fn open(number: usize) -> Result<CudaBackend, Diagnostic> {
    let api = api::Api::load().map_err(|reason| fault::without_driver(number, &reason))?;
    Ok(CudaBackend::new(device::Device::open(api, number)?))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
