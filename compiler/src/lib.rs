//! `ds4c`: lowers a DeepSeek V4 checkpoint to a plan file.
//!
//! [`read`] opens checkpoints (headers only), [`model`] says what they hold, [`lower`] spells the step as a value graph,
//! [`rewrite`] changes its terms by proved laws, [`schedule`] makes launches and memory of it, [`frame`] a plan of any graph,
//! [`assemble`] that of a model, [`same_model`] says whether a plan is a model's. [`step`] says what the launches of a plan move and
//! which are alike, [`picture`] draws them, [`command`] is the command line. [`sample`] writes checkpoints of any shape for tests and
//! for people who want to try one.

pub mod assemble;
pub mod command;
pub mod frame;
pub mod fuse;
pub mod lower;
pub mod model;
pub mod picture;
pub mod read;
pub mod rewrite;
pub mod same_model;
pub mod sample;
pub mod schedule;
pub mod step;
