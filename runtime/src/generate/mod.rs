//! Feeding a prompt and generating: steps of an engine, the tokens chosen from them, and what is kept of each step.

mod bench;
mod engine;
#[cfg(test)]
pub(crate) mod fake;
mod feed;
mod glob;
mod printer;
mod recorder;
mod request;
mod taps;

pub use bench::{Measured, measure};
pub use engine::{Engine, Facts, Tap, TapData, Width};
pub use feed::Feed;
pub use glob::select;
pub use printer::{Flow, Printer, Watched};
pub use recorder::Recorder;
pub use request::{End, Outcome, Phase, Request, check_context, generate};
pub use taps::TapArchive;

#[cfg(test)]
mod tests;
