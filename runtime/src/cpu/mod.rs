//! The CPU: product primitives over slices, and the threads that run them.

pub mod products;
pub mod team;
