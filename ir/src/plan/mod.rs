//! The plan file: all that passes from the compiler to the runtime.
//!
//! A plan is a header, a table of sections and the sections: the graph's tables and the plan's own, little-endian,
//! 64-byte aligned, each with its BLAKE3 hash. It is mapped and viewed in place. Weights stay in the checkpoint; the
//! plan holds their place. Opening checks, in this order: header and version, bounds and hashes of the sections, every
//! index, the graph ([`crate::verify`]), the launches ([`launches`]) and the memory ([`check`]).

mod bindings;
pub mod check;
mod check_kernels;
pub mod contents;
mod facts;
pub mod file;
pub mod launches;
pub mod layout;
pub mod split;
pub mod tables;
#[cfg(test)]
mod tests;
mod uses;

pub use file::{PlanBytes, write_plan};
pub use layout::{Layout, Root};
pub use tables::{
    BindingRow, DispatchRow, EntryRow, ExtentRow, FieldRow, FileRow, KernelRow, LaunchRow, OptionRow, PartRow, Plan,
    PlanTables, RegionRow, SlotRow, StatePlaceRow, WeightPlaceRow,
};
pub use uses::uses;

/// Version of the plan format. A reader takes this one only.
pub const VERSION: u32 = 5;

/// Slots and states begin at a multiple of this: no device binds memory at a finer one.
pub const ALIGN: u64 = 256;

/// Name of the numeric contract that plans of this compiler obey.
pub const CONTRACT: &str = "rn32-v1";
