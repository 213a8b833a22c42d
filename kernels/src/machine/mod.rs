//! The kernel machine: executes kernels on the CPU, over any domain of values, and refuses what no device may be asked to do.
//!
//! A workgroup runs statement by statement. Statements between two meetings of the lanes (barriers, shuffles) are run by one
//! lane after the other, in one of two [orders](LaneOrder), so that a result that depends on the order shows. Beside that,
//! every access is logged, and a race is refused even where both orders agree.
//!
//! | check | [`Check`] |
//! |---|---|
//! | an index outside its memory | `OutOfBounds` |
//! | a read of memory that nothing has written | `Unwritten` |
//! | two lanes on one cell of the workgroup, one of them writing, and no barrier between | `Race` |
//! | two lanes of a workgroup on one cell of a buffer, one of them writing, and no barrier between that orders buffers | `Race` |
//! | two workgroups on one cell of a buffer, one of them writing | `Race` |
//! | a barrier or shuffle that some lane does not reach | `Diverged` |
//! | a memory, scalar or grid that does not fit the kernel | `Arguments` |
//! | an index or branch that depends on what the domain does not know | `Unknown` |
//!
//! Addresses are element numbers, and an element is a word: a kernel of this IR cannot express a misaligned access. Readers of
//! targets that count bytes have to refuse a remainder where they divide.
//!
//! The domain is a type parameter: [`Numbers`] are plain values; a domain of terms keeps what it knows of a word in
//! [`Domain::known`] and traps where an index or a branch depends on what it does not know.

mod domain;
mod memory;
mod program;
mod run;
mod trap;

pub use domain::{Domain, Numbers, Value};
pub use memory::Cells;
pub use run::{LaneOrder, Machine};
pub use trap::{Check, Trap};
