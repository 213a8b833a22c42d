//! Bytes at an address at which plans can be viewed.

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// A copy of some bytes, aligned to 64 as a mapping is.
pub struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    /// Copies `bytes`.
    pub fn new(bytes: &[u8]) -> Aligned {
        let mut lines = vec![Line([0; 64]); bytes.len().div_ceil(64)];
        for (line, chunk) in lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..chunk.len()].copy_from_slice(chunk);
        }
        Aligned { lines, len: bytes.len() }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the lines are 64 plain bytes each, in one allocation of at least `len` bytes.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}
