//! What the executor asks of a device, and nothing more: buffers, kernels from text, sequences of launches.

use ds4_ir::Diagnostic;
use ds4_kernels::Target;

ds4_ir::entities! {
    /// A buffer of a device.
    Buffer = "b";
    /// A kernel of a device, ready to run.
    Function = "f";
    /// A prepared list of dispatches.
    Sequence = "q";
}

/// A range of a buffer, in bytes; both numbers are multiples of 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The buffer.
    pub buffer: Buffer,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// A kernel as text in the device's language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<'a> {
    /// What it is called in messages.
    pub name: &'a str,
    /// Its entry point.
    pub entry: &'a str,
    /// The text.
    pub source: &'a str,
    /// Lanes of a workgroup.
    pub lanes: u32,
    /// Buffers it takes, the step's block included.
    pub arguments: u32,
}

/// A kernel with its buffers: the step's block, then the arguments in the kernel's order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// The kernel.
    pub function: Function,
    /// The buffers.
    pub arguments: Vec<Piece>,
}

/// How much a device holds, in bytes, and how long a kernel may be about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest buffer.
    pub buffer_bytes: u64,
    /// The largest piece that a kernel sees.
    pub binding_bytes: u64,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Iterations of all loops of a lane; behind them the device ends every loop.
    pub iterations: u32,
}

impl Default for Limits {
    /// No bounds are known.
    fn default() -> Self {
        Limits { buffer_bytes: u64::MAX, binding_bytes: u64::MAX, memory_bytes: u64::MAX, iterations: u32::MAX }
    }
}

/// A device that runs kernels. Work is done in the order of the calls: each launch sees what calls before it wrote.
pub trait Backend {
    /// The language it takes.
    fn target(&self) -> Target;

    /// What it is called: `wgpu:0 llvmpipe`.
    fn name(&self) -> &str;

    /// How much it holds, as far as its driver says.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// A buffer of zeros, at least one word long.
    ///
    /// # Errors
    /// The device is too small, or was lost.
    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic>;

    /// Fills a piece part by part: `write` gets the distance from the piece's start and the bytes to write there.
    ///
    /// # Errors
    /// The device was lost, or memory is exhausted.
    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic>;

    /// Reads a piece of `bytes.len()` bytes back, behind everything before.
    ///
    /// # Errors
    /// The device was lost, or reported an error while it worked.
    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic>;

    /// Makes kernels ready, in the order of their texts; `progress` is called as each is.
    ///
    /// # Errors
    /// A text is malformed, needs more than the device has, or the driver refuses it.
    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic>;

    /// Prepares a list of dispatches.
    ///
    /// # Errors
    /// A piece is larger than the device binds.
    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic>;

    /// Queues dispatches of a sequence, each over a grid of `width` times `height` workgroups, which is not empty: pairs of
    /// a dispatch's number and its grid, ascending by number. Does not wait.
    ///
    /// # Errors
    /// A grid is larger than the device takes, or the device was lost.
    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic>;
}
