//! PTX, as [`crate::emit::ptx`] writes it, back to a kernel.
//!
//! The parser goes line by line: one instruction a line, its mnemonic and operands spelled as the printer spells them. What a
//! line means is looked up in tables of this module, which know the instruction set and not the printer.
//!
//! | what | becomes |
//! |---|---|
//! | a named register | a local: a let if it is declared in the list at the top, else a mutable one |
//! | a numbered register | an expression; it is known up to the end of the statement that it belongs to, and set once |
//! | `mul.wide.u32` by 4, `add.u64` to an argument | the index of an element; no other arithmetic makes an address |
//! | a jump over a block, a jump back to a head | a branch, a loop; labels must nest |
//!
//! A rounded operation without `.rn` is refused, and so is every instruction, modifier, operand or directive that is not in
//! the tables.

mod body;
mod frame;
mod instruction;
mod line;
mod memory;
mod registers;

use super::raw::Raw;
use super::{Fault, Reading, recover};

/// Reads the text of one kernel.
///
/// # Errors
/// The text is not what the printer writes for some kernel.
pub fn read(text: &str) -> Result<Reading, Fault> {
    recover(parse(text)?)
}

/// Expressions and statements of a text, the header not understood yet.
fn parse(text: &str) -> Result<Raw, Fault> {
    let mut lines = line::Lines::of(text);
    let frame = frame::read(&mut lines)?;
    body::read(&mut lines, frame)
}

#[cfg(test)]
pub(crate) mod tests;
