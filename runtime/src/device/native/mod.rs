//! Devices through the driver of their maker, by hand: no toolkit, no header, no link to the driver. CUDA's and HIP's have the
//! same entry points under other names, so one backend serves both.
//!
//! ```text
//! interface   which driver, and what is said of it
//! api         the entry points, loaded when they are asked for
//! fault       what the driver reports, as diagnostics
//! device      what this machine has, and an opened device with its stream
//! memory      buffers: cleared, filled in parts, read back
//! compiler    code from HIP text, kept in the cache: hiprtc and NVRTC
//! module      kernels from texts, made on several threads
//! backend     all of it as what the executor asks of a device
//! ```
//!
//! | opened by | device | texts | compiled by |
//! |---|---|---|---|
//! | [`open_cuda`] | NVIDIA's | PTX | the driver |
//! | [`open_cuda_with_hip`] | NVIDIA's | HIP | NVRTC |
//! | [`open_hip`] | AMD's | HIP | hiprtc |
//!
//! All work goes to one stream, so that it is done in the order of the calls.

mod api;
mod backend;
mod compiler;
mod device;
mod fault;
mod interface;
mod memory;
mod module;

pub use backend::NativeBackend;
pub use device::{About, Architecture, devices};
pub use interface::Interface;

use ds4_ir::Diagnostic;

use super::cache::Cache;
use api::Api;
use compiler::Compiler;
use device::Device;
use module::Language;

/// Opens the device of NVIDIA with a number, for PTX.
///
/// # Errors
/// The driver is missing or too old, there is no such device, it is too old, or its driver refuses.
pub fn open_cuda(number: usize) -> Result<NativeBackend, Diagnostic> {
    Ok(NativeBackend::new(device(Interface::Cuda, number)?, Language::Ptx))
}

/// Opens the device of NVIDIA with a number, for HIP: so that the kernels of AMD's devices run without one.
///
/// # Errors
/// As [`open_cuda`], or NVRTC is missing.
pub fn open_cuda_with_hip(number: usize, cache: &Cache) -> Result<NativeBackend, Diagnostic> {
    with_compiler(device(Interface::Cuda, number)?, cache)
}

/// Opens the device of AMD with a number.
///
/// # Errors
/// The driver or hiprtc is missing, there is no such device, it does not say what it executes, or its driver refuses.
pub fn open_hip(number: usize, cache: &Cache) -> Result<NativeBackend, Diagnostic> {
    with_compiler(device(Interface::Hip, number)?, cache)
}

fn device(interface: Interface, number: usize) -> Result<Device, Diagnostic> {
    let api = Api::load(interface).map_err(|reason| fault::without_driver(interface, number, &reason))?;
    Device::open(api, number)
}

/// The backend of a device with the compiler of its interface.
fn with_compiler(device: Device, cache: &Cache) -> Result<NativeBackend, Diagnostic> {
    let interface = device.api.interface;
    let compiler = compiler::Api::load(interface).and_then(|api| Compiler::new(api, interface, cache.clone()));
    let missing = |reason: String| fault::without_compiler(interface, &device.name, &reason);
    let language = Language::Hip(compiler.map_err(missing)?);
    Ok(NativeBackend::new(device, language))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
