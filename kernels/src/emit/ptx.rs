//! PTX for the CUDA driver: text that keeps its bits on every device from compute capability 7.5 on.
//!
//! Rounded operations carry `.rn`, which keeps the driver's compiler from contracting them; without it a product and a sum
//! become one fma. There is no `.ftz`, no `.approx`, no `mad` and no `fma`. Sign and magnitude work on the bits, comparisons
//! are the ordered ones, and constants are written by their bits.
//!
//! How the text is laid out:
//!
//! | what | where |
//! |---|---|
//! | parameters | the step's block, then the arguments: addresses in the global space, which point at words |
//! | `%sum`, `%x_at` | a register for each local, by its name; declared at the top, or where it begins if it changes |
//! | `%r3 %f3 %c3 %a3` | a word, float, condition, address within one statement |
//! | `[%a3]` | an element: four times its index, widened to 64 bits, behind the first address; `[%x+12]` if the index is known |
//! | `$if3_else`, `$if3_end`, `$for4_head`, `$for4_end` | labels of statement 3 and 4 of the text |
//!
//! Instructions are the operators of the kernel IR, one for one. Lanes may part in a branch; each has its end, where they
//! meet again before a shuffle or a barrier, which all lanes reach.
//!
//! When `bar.sync` completes, what each lane asked of memory before it is performed relative to all lanes that take part, in the
//! workgroup's memory and the global one alike. Where a kernel needs that for buffers, `fence.acq_rel.cta` stands in front and
//! says so; it asks for nothing that the barrier does not do.

mod body;
mod header;
mod instruction;
mod registers;

use std::fmt::Write as _;

use crate::kernel::{Kernel, Space, Type};

use super::{StepBlock, entry_point};
use registers::Class;

/// The first version that knows compute capability 7.5.
const VERSION: &str = "6.3";
/// The least device.
const TARGET: &str = "sm_75";

/// The text of a kernel; its entry point is [`entry_point`]. `None` if the block lacks a dimension that
/// the kernel needs.
pub fn emit(kernel: &Kernel, block: &StepBlock) -> Option<String> {
    let pieces = body::write(kernel, block)?;
    let mut text = format!("// {}\n.version {VERSION}\n.target {TARGET}\n.address_size 64\n\n", kernel.about);
    let _ = writeln!(text, ".visible .entry {}(", entry_point(kernel));
    let parameters: Vec<String> = std::iter::once("step".to_string())
        .chain(kernel.arguments().map(|(memory, _, _)| pieces.memories[memory.0 as usize].clone()))
        .map(|name| format!("    .param .u64 .ptr .global .align 4 {name}"))
        .collect();
    let _ = writeln!(text, "{}\n)\n.reqntid {}, 1, 1\n{{", parameters.join(",\n"), kernel.lanes);
    for (name, row) in pieces.memories.iter().zip(&kernel.memories) {
        if row.space == Space::Workgroup {
            let _ = writeln!(text, "    .shared .align 4 .{} {name}[{}];", keyword(row.element), row.len);
        }
    }
    Some(text + &pieces.declarations + &pieces.body + "}\n")
}

/// The type of an element or register.
fn keyword(ty: Type) -> &'static str {
    Class::of(ty).keyword()
}

#[cfg(test)]
pub(crate) mod tests;
