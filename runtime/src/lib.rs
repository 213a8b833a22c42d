//! `ds4-run`: executes a plan file.
//!
//! - [`session`]: a plan and its model, opened and checked; steps, logits, named values.
//! - [`cpu`]: the CPU executor. Kernels are prepared when a plan is opened; a step only changes how far loops run. Nothing
//!   is allocated per token, and bits depend on neither threads nor instruction set.
//! - [`device`]: devices that take kernels as text, and the executor of plans on them. [`reader`]: looking at values.
//! - [`generate`]: requests over an [`generate::Engine`]: feeding, sampling ([`sample`]), stopping, recording.
//! - [`text`]: tokens and text. [`output`]: files, whole or not at all. [`command`]: the command line.
//!
//! A step is a transaction: the position advances at its end, or nothing does.

pub mod command;
pub mod cpu;
pub mod device;
pub mod generate;
pub mod output;
pub mod reader;
pub mod sample;
pub mod session;
pub mod text;
