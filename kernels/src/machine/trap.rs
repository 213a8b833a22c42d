//! What the machine refuses.

use std::fmt;

/// The check that refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// An index outside its memory.
    OutOfBounds,
    /// A read of memory that nothing has written.
    Unwritten,
    /// Two lanes on one cell, one of them writing, and nothing that orders them.
    Race,
    /// A barrier or shuffle that some lane does not reach.
    Diverged,
    /// A memory, scalar or grid that does not fit the kernel.
    Arguments,
    /// An index, a branch or an operation depends on what the domain does not know.
    Unknown,
}

/// A refusal: check, place and what happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Which check.
    pub check: Check,
    /// Name of the kernel.
    pub kernel: String,
    /// Number of the statement, if it is one's fault.
    pub statement: Option<usize>,
    /// Its line, if the kernel was [read](crate::read) from a text.
    pub line: Option<u32>,
    /// What happened, one line without a full stop.
    pub message: String,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kernel)?;
        match (self.line, self.statement) {
            (Some(line), _) => write!(f, "line {line}: ")?,
            (None, Some(statement)) => write!(f, "statement {statement}: ")?,
            (None, None) => {}
        }
        write!(f, "{} ({:?})", self.message, self.check)
    }
}

impl std::error::Error for Trap {}

/// A refusal on its way to where kernel and statement are known.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) check: Check,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(check: Check, message: impl Into<String>) -> Refused {
        Refused { check, message: message.into() }
    }
}
