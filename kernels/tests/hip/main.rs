//! HIP text and outside tools: the CPU's compiler, clang with AMD's back end, hiprtc, NVRTC.

#![allow(clippy::unwrap_used)]

mod clang;
mod code;
mod cpu;
mod planted;
mod rtc;
mod samples;
mod tools;
