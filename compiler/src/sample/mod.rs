//! Checkpoints of any shape without weights, for tests, benches and users who want to try shapes.
//!
//! A sample is a header of the right size and a hole: it compiles as the real model does and takes
//! almost no room on disk. Its weights read as zeros. [`Fuzzer`] feeds faulty samples to the readers.

mod fuzz;
mod gguf;
mod mutate;
mod released;
mod spec;

pub use fuzz::Fuzzer;
pub use gguf::{GgufWriter, gguf_header, gguf_parts, write_gguf};
pub use mutate::Mutator;
pub use released::{config_json, safetensors_header, write_released};
pub use spec::{Formats, Spec};
