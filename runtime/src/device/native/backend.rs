//! A device as what the executor asks of one.

use std::ops::Range as Numbers;
use std::ptr::null_mut;

use ds4_ir::Diagnostic;
use ds4_kernels::Target;

use super::api::Address;
use super::device::{About, Device};
use super::fault;
use super::memory::{Memory, Range};
use super::module::{Language, Loaded, load_all};
use crate::device::backend::{Backend, Buffer, Dispatch, Function, Limits, Piece, Sequence, Text};

/// A device with all that a plan has on it.
pub struct NativeBackend {
    device: Device,
    language: Language,
    buffers: Vec<Memory>,
    kernels: Vec<Loaded>,
    dispatches: Vec<Prepared>,
    sequences: Vec<Numbers<usize>>,
}

/// A dispatch whose addresses are known.
struct Prepared {
    kernel: usize,
    addresses: Vec<Address>,
}

impl NativeBackend {
    pub(super) fn new(device: Device, language: Language) -> NativeBackend {
        let (buffers, kernels) = (Vec::new(), Vec::new());
        NativeBackend { device, language, buffers, kernels, dispatches: Vec::new(), sequences: Vec::new() }
    }

    /// What the device is.
    pub fn about(&self) -> &About {
        &self.device.about
    }

    fn range(&self, piece: Piece) -> Result<Range<'_>, Diagnostic> {
        self.device.range(&self.buffers[piece.buffer.0 as usize], piece.offset, piece.bytes)
    }

    fn prepared(&self, dispatch: &Dispatch) -> Result<Prepared, Diagnostic> {
        let kernel = dispatch.function.0 as usize;
        let Loaded { name, arguments, .. } = &self.kernels[kernel];
        if dispatch.arguments.len() != *arguments as usize {
            let (wanted, found) = (format!("{arguments} buffers"), dispatch.arguments.len().to_string());
            return Err(fault::refuses(&self.device.name, &format!("kernel {name}"), &wanted, &found));
        }
        let addresses = dispatch.arguments.iter().map(|&piece| Ok(self.range(piece)?.start()));
        Ok(Prepared { kernel, addresses: addresses.collect::<Result<_, Diagnostic>>()? })
    }

    fn launch(&self, prepared: &Prepared, grid: [u32; 2]) -> Result<(), Diagnostic> {
        let Loaded { name, kernel, lanes, .. } = &self.kernels[prepared.kernel];
        let device = &self.device;
        if let Some((wanted, most)) = grid.into_iter().zip(device.about.grid).find(|(wanted, most)| wanted > most) {
            let pair = [format!("{wanted} workgroups along an axis"), format!("at most {most}")];
            let help = "compile the model again with smaller --prefill";
            return Err(fault::too_small(&device.name, &format!("kernel {name}"), pair, help));
        }
        let [width, height] = grid;
        let addresses = prepared.addresses.iter();
        let mut parameters: Vec<_> = addresses.map(|address| (&raw const *address).cast_mut().cast()).collect();
        // SAFETY: the kernel is loaded and takes as many addresses as there are parameters, each a pointer to one; the driver
        // reads them during the call and writes none. The ranges that they begin lie in buffers that live as long as `self`,
        // which waits for the stream before it frees them.
        let status = unsafe {
            let parameters = parameters.as_mut_ptr();
            (device.api.launch)(*kernel, width, height, 1, *lanes, 1, 1, 0, device.stream, parameters, null_mut())
        };
        device.guard(&format!("launching {name}"), status)
    }
}

impl Backend for NativeBackend {
    fn target(&self) -> Target {
        self.language.target()
    }

    fn name(&self) -> &str {
        &self.device.name
    }

    fn limits(&self) -> Limits {
        Limits { memory_bytes: self.device.about.bytes, ..Limits::default() }
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.device.enter()?;
        self.buffers.push(self.device.memory(name, bytes)?);
        Ok(Buffer(self.buffers.len() as u32 - 1))
    }

    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.device.enter()?;
        self.device.fill(self.range(piece)?, write)
    }

    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        self.device.enter()?;
        self.device.read(self.range(piece)?, bytes)
    }

    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        self.device.enter()?;
        let first = self.kernels.len();
        self.kernels.extend(load_all(&self.device, &self.language, texts, progress)?);
        Ok((first..self.kernels.len()).map(|i| Function(i as u32)).collect())
    }

    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        let prepared: Vec<Prepared> = dispatches.iter().map(|d| self.prepared(d)).collect::<Result<_, _>>()?;
        let first = self.dispatches.len();
        self.dispatches.extend(prepared);
        self.sequences.push(first..self.dispatches.len());
        Ok(Sequence(self.sequences.len() as u32 - 1))
    }

    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        self.device.enter()?;
        let own = &self.dispatches[self.sequences[sequence.0 as usize].clone()];
        dispatches.iter().try_for_each(|&(at, grid)| self.launch(&own[at as usize], grid))
    }
}

impl Drop for NativeBackend {
    fn drop(&mut self) {
        // A lost device fails here, and has nothing left to free.
        let _ = self.device.enter();
        let _ = self.device.wait("the end");
        self.kernels.drain(..).for_each(|kernel| kernel.unload(&self.device.api));
        self.buffers.drain(..).for_each(|buffer| buffer.free(&self.device.api));
    }
}
