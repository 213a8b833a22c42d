//! The reader of HIP text: exactly what the printer writes.
//!
//! The language is small. Every operator stands in its own parentheses, so there is no precedence; every name is new and none
//! hides another; a float and a word never mix, and a signed word occurs only where the sign is read at once. Numbers are
//! taken only in the form that the printer gives them. The functions in front are not read but compared: the tokens must be
//! those of the prelude for exactly the functions that the kernel calls, the guard included. The body must begin with the
//! pragma that turns contraction off.

mod lexer;
mod number;
mod parser;

use super::{Fault, Reading, recover};

/// The kernel of a text.
///
/// # Errors
/// The text holds anything that the printer does not write.
pub fn read(text: &str) -> Result<Reading, Fault> {
    recover(parser::raw(text)?)
}

#[cfg(test)]
mod tests;
