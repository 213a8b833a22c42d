//! Memory of a device: arenas, filled in pieces and read back.

use ds4_ir::Diagnostic;

use super::device::Device;

/// Bytes that are copied at a time; the host holds no more than this and one piece of staging memory beside it.
const PIECE: u64 = 16 << 20;
/// Bytes that copies are a multiple of.
const WORD: u64 = wgpu::COPY_BUFFER_ALIGNMENT;

/// A buffer that a plan divides.
pub struct Arena {
    name: String,
    bytes: u64,
    raw: wgpu::Buffer,
}

/// A range of an arena.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    /// Where it lies.
    pub arena: &'a Arena,
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Arena {
    /// All of the arena.
    pub fn whole(&self) -> Piece<'_> {
        Piece { arena: self, offset: 0, bytes: self.bytes }
    }

    /// A range of the arena.
    pub fn piece(&self, offset: u64, bytes: u64) -> Piece<'_> {
        Piece { arena: self, offset, bytes }
    }
}

impl Piece<'_> {
    pub(super) fn entry(&self, binding: u32) -> wgpu::BindGroupEntry<'_> {
        let size = wgpu::BufferSize::new(self.bytes);
        let buffer = wgpu::BufferBinding { buffer: &self.arena.raw, offset: self.offset, size };
        wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(buffer) }
    }

    fn is_inside(&self) -> bool {
        self.bytes > 0 && self.offset.checked_add(self.bytes).is_some_and(|end| end <= self.arena.bytes)
    }
}

impl Device {
    /// An arena of at least one byte, cleared.
    ///
    /// # Errors
    /// The arena is larger than a buffer of the device may be, or memory is exhausted.
    pub fn arena(&self, name: &str, bytes: u64) -> Result<Arena, Diagnostic> {
        let bytes = bytes.max(WORD).checked_next_multiple_of(WORD).unwrap_or(u64::MAX);
        let what = format!("arena {name}");
        self.about().check_buffer(&what, bytes)?;
        let usages = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::UNIFORM;
        let copies = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let raw = self.buffer(&what, bytes, usages | copies)?;
        Ok(Arena { name: name.into(), bytes, raw })
    }

    fn buffer(&self, what: &str, size: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer, Diagnostic> {
        let descriptor = wgpu::BufferDescriptor { label: Some(what), size, usage, mapped_at_creation: false };
        self.faults.guard(&self.raw, &format!("{what} of {size} bytes"), || self.raw.create_buffer(&descriptor))
    }

    /// Copies bytes, a whole number of words, to an arena. Launches that are submitted later see them.
    ///
    /// # Errors
    /// The bytes do not lie in the arena, memory is exhausted, or the device was lost.
    pub fn upload(&self, arena: &Arena, offset: u64, bytes: &[u8]) -> Result<(), Diagnostic> {
        self.fill(arena.piece(offset, bytes.len() as u64), |at, piece| {
            let at = at as usize;
            piece.copy_from_slice(&bytes[at..at + piece.len()]);
        })
    }

    /// Fills a piece of an arena, some bytes at a time: `write` gets the distance from the piece's start and the bytes
    /// to write there. A layout of weights is applied here, without a second copy of them.
    ///
    /// # Errors
    /// The piece is no range of whole words of its arena, memory is exhausted, or the device was lost.
    pub fn fill(&self, piece: Piece<'_>, mut write: impl FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.check_words(&piece)?;
        let what = format!("arena {}", piece.arena.name);
        let mut host = vec![0; piece.bytes.min(PIECE) as usize];
        for at in (0..piece.bytes).step_by(PIECE as usize) {
            let part = &mut host[..(piece.bytes - at).min(PIECE) as usize];
            write(at, part);
            self.faults.guard(&self.raw, &what, || {
                self.queue.write_buffer(&piece.arena.raw, piece.offset + at, part);
            })?;
            if piece.bytes > PIECE {
                // Gives the staging memory back before the next piece.
                self.submit(&[])?;
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Reads a piece of an arena back, behind all that was submitted.
    ///
    /// # Errors
    /// The piece is no range of whole words of its arena, memory is exhausted, or the device was lost.
    pub fn read(&self, piece: Piece<'_>) -> Result<Vec<u8>, Diagnostic> {
        self.check_words(&piece)?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = self.buffer("memory to read back", piece.bytes.min(PIECE), usage)?;
        let mut bytes = Vec::with_capacity(piece.bytes as usize);
        for at in (0..piece.bytes).step_by(PIECE as usize) {
            let part = Piece { offset: piece.offset + at, bytes: (piece.bytes - at).min(PIECE), ..piece };
            self.read_part(&staging, &part, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn read_part(&self, staging: &wgpu::Buffer, part: &Piece<'_>, bytes: &mut Vec<u8>) -> Result<(), Diagnostic> {
        let what = format!("reading arena {}", part.arena.name);
        self.faults.guard(&self.raw, &what, || {
            let mut encoder = self.raw.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&part.arena.raw, part.offset, staging, 0, part.bytes);
            self.queue.submit([encoder.finish()]);
            // Failures of mapping are met by the wait, or by the range that is asked for below.
            staging.map_async(wgpu::MapMode::Read, 0..part.bytes, |_| ());
        })?;
        self.wait()?;
        match staging.get_mapped_range(0..part.bytes) {
            Ok(view) => bytes.extend_from_slice(&view),
            Err(error) => return Err(self.about().refuses(&what, "a mapped buffer", &error.to_string())),
        }
        staging.unmap();
        Ok(())
    }

    fn check_words(&self, piece: &Piece<'_>) -> Result<(), Diagnostic> {
        if piece.is_inside() && piece.offset.is_multiple_of(WORD) && piece.bytes.is_multiple_of(WORD) {
            return Ok(());
        }
        let found = format!("{} bytes at {}", piece.bytes, piece.offset);
        let wanted = format!("a range of whole words below {}", piece.arena.bytes);
        Err(self.about().refuses(&format!("arena {}", piece.arena.name), &wanted, &found))
    }

    /// An error if a piece cannot be bound.
    pub(super) fn check_piece(&self, piece: &Piece<'_>, what: &str) -> Result<(), Diagnostic> {
        let item = format!("{what}, arena {}", piece.arena.name);
        self.about().check_binding(&item, piece.bytes)?;
        let alignment = u64::from(self.about().limits.binding_alignment);
        if !piece.is_inside() || !piece.offset.is_multiple_of(alignment) {
            let wanted = format!("a range below {} that starts at a multiple of {alignment}", piece.arena.bytes);
            let found = format!("{} bytes at {}", piece.bytes, piece.offset);
            return Err(self.about().refuses(&item, &wanted, &found));
        }
        Ok(())
    }
}
