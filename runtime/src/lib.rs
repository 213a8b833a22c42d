//! runtime

pub mod cpu;
pub mod output;
pub mod sample;
pub mod text;
