//! runtime

pub mod command;
pub mod cpu;
pub mod generate;
pub mod output;
pub mod sample;
pub mod session;
pub mod text;
