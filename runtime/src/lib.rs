//! runtime

pub mod cpu;
