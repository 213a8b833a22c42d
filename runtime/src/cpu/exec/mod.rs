//! Executes the entry points of a plan.
//!
//! At load every launch becomes a list of prepared kernels: pointers, strides and loop nests are found once, and a
//! step only looks up how far its loops run. A kernel says how many independent tasks a step has for it and about how
//! long they take; long ones are divided over the threads. Since each element is computed whole by one task, the
//! number of threads changes no bits.
//!
//! ```text
//! extents         loop bounds as indices into one table, evaluated once a step
//! nest            loop nests over strided operands
//! access, wire    from the plan's layouts to memory
//! weights         the checkpoint's tensors
//! kernel, width   what a kernel is; instruction-set levels
//! scalar_program  bodies as register programs over chunks          -> map
//! sums            trees over leaves in memory                      -> reduce, row_product
//! map reduce matrix_product row_product rows quantise choose moves the kernels
//! prepare         from values to kernels
//! chain           small values that follow each other as one program; chain_builder makes it, chaining says of which
//! entry, executor programs of the entry points, and running them
//! ```

mod access;
mod chain;
mod chain_builder;
mod chaining;
mod choose;
mod entry;
mod executor;
mod extents;
mod kernel;
mod map;
mod matrix_product;
mod moves;
mod nest;
mod prepare;
mod quantise;
mod reduce;
mod row_product;
mod rows;
mod scalar_program;
mod sums;
mod weights;
mod width;
mod wire;

pub(crate) use executor::check_files;
pub use executor::{Executor, FileBytes};

#[cfg(test)]
pub(crate) mod tests;
