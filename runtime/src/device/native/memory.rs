//! Buffers of a device.

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;

use super::api::{Address, Api};
use super::device::Device;
use super::fault;

/// Bytes that are copied at a time.
const PART: u64 = 16 << 20;
/// Bytes that pieces are a multiple of.
const WORD: u64 = 4;

/// A buffer. It is freed by its owner, which knows the device.
pub(super) struct Memory {
    name: String,
    bytes: u64,
    start: Address,
}

impl Memory {
    /// Frees it.
    pub(super) fn free(self, api: &Api) {
        // SAFETY: it was allocated once, and its owner is at its end, after all work. What fails here fails because the
        // device is lost, with its memory.
        unsafe { (api.free)(self.start) };
    }
}

/// A range of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Range<'m> {
    memory: &'m Memory,
    offset: u64,
    bytes: u64,
}

impl Range<'_> {
    /// Its first byte.
    pub(super) fn start(&self) -> Address {
        self.memory.start + self.offset
    }
}

impl Device {
    /// A buffer of zeros.
    pub(super) fn memory(&self, name: &str, bytes: u64) -> Result<Memory, Diagnostic> {
        let bytes = bytes.max(WORD).checked_next_multiple_of(WORD).unwrap_or(u64::MAX);
        let total = self.about.bytes;
        if bytes > total {
            return Err(self.too_small(name, bytes, total));
        }
        let mut start = 0;
        // SAFETY: the address lives through the call.
        let status = unsafe { (self.api.allocate)(&mut start, bytes as usize) };
        self.guard(&format!("{bytes} bytes for {name}"), status).map_err(|fault| self.with_room(fault))?;
        let memory = Memory { name: name.into(), bytes, start };
        // SAFETY: the buffer has so many bytes.
        let status = unsafe { (self.api.clear)(start, 0, bytes as usize, self.stream) };
        match self.guard(&format!("clearing {name}"), status) {
            Ok(()) => Ok(memory),
            Err(fault) => {
                memory.free(&self.api);
                Err(fault)
            }
        }
    }

    fn too_small(&self, name: &str, bytes: u64, total: u64) -> Diagnostic {
        let pair = [format!("{bytes} bytes in a buffer"), format!("at most {total}")];
        let help = "compile with smaller --context or --prefill, or take a device with more memory with --device";
        fault::too_small(&self.name, name, pair, help)
    }

    /// Says how much memory is free, where there is not enough.
    fn with_room(&self, mut fault: Diagnostic) -> Diagnostic {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both numbers live through the call.
        let known = unsafe { (self.api.free_bytes)(&mut free, &mut total) } == 0;
        if known && fault.code == codes::DEVICE_MEMORY {
            fault.found = format!("{free} bytes are free of {total}");
        }
        fault
    }

    /// A range of whole words of a buffer.
    pub(super) fn range<'m>(&self, memory: &'m Memory, offset: u64, bytes: u64) -> Result<Range<'m>, Diagnostic> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= memory.bytes);
        if inside && bytes > 0 && offset.is_multiple_of(WORD) && bytes.is_multiple_of(WORD) {
            return Ok(Range { memory, offset, bytes });
        }
        let wanted = format!("a range of whole words below {}", memory.bytes);
        Err(fault::refuses(&self.name, &memory.name, &wanted, &format!("{bytes} bytes at {offset}")))
    }

    /// Fills a range part by part.
    pub(super) fn fill(&self, range: Range<'_>, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        let what = format!("filling {}", range.memory.name);
        let mut host = vec![0; range.bytes.min(PART) as usize];
        for at in (0..range.bytes).step_by(PART as usize) {
            let part = &mut host[..(range.bytes - at).min(PART) as usize];
            write(at, part);
            // SAFETY: source and destination have so many bytes, and the source is neither changed nor freed before the wait
            // below has returned.
            let status =
                unsafe { (self.api.upload)(range.start() + at, part.as_ptr().cast(), part.len(), self.stream) };
            let queued = self.guard(&what, status);
            self.wait(&what)?;
            queued?;
        }
        Ok(())
    }

    /// Reads a range back, behind all work before.
    pub(super) fn read(&self, range: Range<'_>, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        let what = format!("reading {}", range.memory.name);
        if bytes.len() as u64 != range.bytes {
            let wanted = format!("{} bytes", range.bytes);
            return Err(fault::refuses(&self.name, &what, &wanted, &bytes.len().to_string()));
        }
        // SAFETY: source and destination have so many bytes, and the destination is borrowed until the wait has returned.
        let status = unsafe { (self.api.download)(bytes.as_mut_ptr().cast(), range.start(), bytes.len(), self.stream) };
        let queued = self.guard(&what, status);
        self.wait(&what)?;
        queued
    }
}
