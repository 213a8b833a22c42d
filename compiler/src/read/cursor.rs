//! A bounds-checked walk over header bytes.

use ds4_ir::diagnostic::{Diagnostic, Place, codes};

/// A file to parse: its name for messages, the bytes at hand and the size of the whole file.
///
/// `bytes` may stop anywhere behind the header; `size` is what offsets of tensor data are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// File name as the user gave it.
    pub name: &'a str,
    /// The beginning of the file, up to all of it.
    pub bytes: &'a [u8],
    /// Bytes of the whole file.
    pub size: u64,
}

impl Input<'_> {
    /// A diagnostic at an item of this file.
    pub(super) fn error(&self, code: ds4_ir::Code, message: impl Into<String>, item: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, message).at(Place::item(self.name, item))
    }
}

/// Position in an [`Input`]. Reads are little endian and never pass the end.
pub(super) struct Cursor<'a> {
    pub(super) input: Input<'a>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(input: Input<'a>) -> Self {
        Cursor { input, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.at as u64
    }

    /// Bytes left.
    pub(super) fn left(&self) -> u64 {
        (self.input.bytes.len() - self.at) as u64
    }

    /// The next `len` bytes, which `what` names in messages.
    pub(super) fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8], Diagnostic> {
        if len > self.left() {
            return Err(self.too_short(len, what));
        }
        let start = self.at;
        self.at += len as usize;
        Ok(&self.input.bytes[start..self.at])
    }

    fn too_short(&self, len: u64, what: &str) -> Diagnostic {
        let item = format!("byte {}", self.at);
        // Numbers are eight bytes at most: only lengths that a file states can be wrong.
        let (code, message) = if len > self.input.size.max(8) {
            (codes::LENGTH, format!("the length of {what} is larger than the file"))
        } else {
            (codes::TRUNCATED, format!("the file ends inside {what}"))
        };
        self.input.error(code, message, item).wanted(format!("{len} bytes"), format!("{} bytes", self.left()))
    }

    /// A count of items that take at least `least` bytes each.
    pub(super) fn count(&mut self, least: u64, what: &str) -> Result<usize, Diagnostic> {
        let item = format!("byte {}", self.at);
        let count = self.u64(what)?;
        let room = self.left() / least.max(1);
        if count > room {
            let message = format!("{what} is larger than the file can hold");
            let error = self.input.error(codes::LENGTH, message, item);
            return Err(error.wanted(format!("at most {room}"), count));
        }
        Ok(count as usize)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Diagnostic> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64, what)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, Diagnostic> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, Diagnostic> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Diagnostic> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Diagnostic> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A string: a 64-bit length and that many bytes of UTF-8.
    pub(super) fn string(&mut self, what: &str) -> Result<String, Diagnostic> {
        let len = self.u64(what)?;
        let item = format!("byte {}", self.at);
        let bytes = self.take(len, what)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => {
                let message = format!("{what} is not UTF-8");
                Err(self.input.error(codes::METADATA, message, item))
            }
        }
    }
}
