//! HIP text and outside tools: the CPU's compiler, clang with AMD's back end, hiprtc.

#![allow(clippy::unwrap_used)]

mod clang;
mod code;
mod cpu;
mod hiprtc;
mod samples;
mod tools;
