//! Golden files and the equivalence suites.
//!
//! `golden/oracle` holds small random checkpoints with the numbers that an independent float64 implementation gives for
//! them, `golden/models` a small trained model, `golden/formats` decoded blocks of every storage format. [`oracle`] reads
//! them, [`weights`] gives the evaluator a checkpoint's rows, [`evaluated`] runs whole models through the evaluator. The
//! suites over models are this crate's tests.
//!
//! The kernel suite is a program too, `ds4-golden`, which a user runs on a device of his own:
//!
//! ```text
//! cases     small graphs with inputs that show faults, a family for each kind of kernel
//! expect    golden files, `golden/kernels`: hashes and first words, from the evaluator
//! check     every case on a device, compared bit by bit; seen: how values are looked at
//! report    the table; bless: writing golden files; command: the command line
//! ```

pub mod aligned;
pub mod bless;
pub mod cases;
pub mod check;
pub mod command;
pub mod devices;
pub mod evaluated;
pub mod expect;
pub mod fuzz;
pub mod machine;
pub mod machine_device;
pub mod models;
pub mod oracle;
pub mod proofs;
pub mod report;
pub mod run;
pub mod seen;
pub mod shared;
pub mod trace;
pub mod weights;

use std::path::PathBuf;

/// A file or folder of this crate's data: in the folder `DS4_GOLDEN` if that is set, else where the crate was built.
pub fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("DS4_GOLDEN").map(PathBuf::from);
    folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR"))).join(path)
}
