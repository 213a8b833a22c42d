//! From logits to a token: arg-max, or a seeded draw. `docs/sampling.md` defines both to the bit.
//!
//! All arithmetic is that of the numeric contract, so a seed gives one text on every machine.

mod draw;
mod generator;
mod greedy;

pub use draw::{Candidates, Sampling};
pub use generator::Generator;
pub use greedy::arg_max;

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;

/// Chooses the tokens of one request.
#[derive(Clone, Debug)]
pub enum Sampler {
    /// The largest logit; the lower id wins ties.
    Greedy,
    /// A draw for each token; boxed for its buffers.
    Draw(Box<Candidates>),
}

impl Sampler {
    /// Arg-max if `sampling` is `None`.
    pub fn new(sampling: Option<Sampling>) -> Self {
        sampling.map_or(Sampler::Greedy, |sampling| Sampler::Draw(Box::new(Candidates::new(sampling))))
    }

    /// The token that one row of logits gives. An error if a logit is NaN, and for a draw also if one is +infinite.
    pub fn choose(&mut self, logits: &[f32]) -> Result<u32, Diagnostic> {
        match self {
            Sampler::Greedy => arg_max(logits),
            Sampler::Draw(candidates) => candidates.draw(logits),
        }
        .map_err(|Invalid(id)| invalid(logits, id))
    }
}

/// The id of a logit from which no token can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invalid(pub u32);

fn invalid(logits: &[f32], id: u32) -> Diagnostic {
    let found = match logits.get(id as usize) {
        Some(logit) => format!("{logit} for token {id}"),
        None => "no logits".into(),
    };
    Diagnostic::new(codes::LOGITS_INVALID, "no token can be chosen from the logits")
        .wanted("numbers", found)
        .help("write the named values with --tap to find the first layer that has such a value")
}

#[cfg(test)]
mod tests;
