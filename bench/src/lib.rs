//! Benchmarks against named peers and limits.
//!
//! Speed is a ratio in one run, never a timed test. `bench/llama` alternates `ds4-run` with llama.cpp on the CPU;
//! `ds4-bench compile` measures the compiler on the small model and on models of V4's sizes.

pub mod child;
