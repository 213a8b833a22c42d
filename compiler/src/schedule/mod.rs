//! Scheduling: the graph's values become launches and memory, for each entry point. Launches of single values are the
//! runtime's too and made in [`ds4_ir::schedule`].

mod fused;

pub use ds4_ir::schedule::{Schedule, needed, schedule};
pub use fused::fused;
