//! The CPU: the executor of a plan, product primitives over slices, and the threads that run them.

pub mod exec;
pub mod products;
pub mod team;
