//! `ds4c`: lowers a DeepSeek V4 checkpoint to a plan file.
//!
//! [`read`] opens checkpoints (headers only), [`model`] says what they hold, [`lower`] spells the step as a value graph,
//! [`rewrite`] changes its terms by proved laws, [`schedule`] makes launches and memory of it, [`kernels`] the texts for devices, [`frame`] a plan of any graph,
//! [`assemble`] that of a model, [`command`] the command line. [`sample`] writes checkpoints of any shape for tests and for
//! people who want to try one.

pub mod assemble;
pub mod command;
pub mod frame;
pub mod fuse;
pub mod kernels;
pub mod lower;
pub mod model;
pub mod parallel;
pub mod read;
pub mod rewrite;
pub mod sample;
pub mod schedule;
