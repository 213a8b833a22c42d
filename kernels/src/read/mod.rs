//! Readers of emitted text: each gives back a kernel that the [machine](crate::machine) runs.
//!
//! ```text
//! WGSL --naga--> wgsl --+
//! HIP  ----------> hip -+--> raw --recover--> kernel
//! PTX  ----------> ptx -+
//! ```
//!
//! A reader takes what its printer writes and nothing beside it: an unknown token, instruction or declaration is an error,
//! and so is a header that does not fold the grid as all headers do. It knows nothing of the kernel that was printed.

mod header;
pub mod hip;
pub mod ptx;
pub mod raw;
mod recover;
pub mod wgsl;

pub use recover::recover;

use std::fmt;

use crate::kernel::Kernel;

/// The kernel of a text.
///
/// # Errors
/// The text is not what the printer of this language writes.
pub fn read(target: crate::Target, text: &str) -> Result<Reading, Fault> {
    match target {
        crate::Target::Wgsl => wgsl::read(text),
        crate::Target::Ptx => ptx::read(text),
        crate::Target::Hip => hip::read(text),
    }
}

/// Why a text is not a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// What is wrong there.
    pub what: String,
}

impl Fault {
    /// A fault in a line.
    pub fn new(line: u32, what: impl Into<String>) -> Fault {
        Fault { line, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Fault {}

/// A kernel that was read. Its arguments are numbered ([`crate::kernel::Source::Argument`]), the scalars of its extents are
/// places in the step's block instead of dimensions, a masked id is a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The kernel; its name is that of the entry point.
    pub kernel: Kernel,
    /// For each statement of the kernel, its line in the text, from 1.
    pub lines: Vec<u32>,
}
