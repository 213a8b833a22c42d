//! How a prompt is cut into steps.

use std::ops::Range;

use super::{Facts, Width};

/// The cuts of a prompt.
#[derive(Clone, Debug)]
pub struct Feed {
    decode: Width,
    prefill: Width,
    chunk: usize,
    all_outputs: bool,
}

impl Feed {
    /// Cuts of `chunk` tokens, by default as wide as the plan's prefill. `all_outputs` asks for logits of each token.
    pub fn new(facts: &Facts, chunk: Option<usize>, all_outputs: bool) -> Self {
        Feed { decode: facts.decode, prefill: facts.prefill, chunk: chunk.unwrap_or(usize::MAX).max(1), all_outputs }
    }

    /// The tokens of each step, ascending.
    pub fn steps(&self, tokens: usize) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let len = self.width(tokens - start);
            let step = start..start + len;
            start = step.end;
            (len > 0).then_some(step)
        })
    }

    /// What to tell the user if steps are narrower than the chunk that was asked for.
    pub fn note(&self, chunk: usize) -> Option<String> {
        let width = self.width(usize::MAX);
        let reason = match self.all_outputs && width < self.columns() {
            true => "give the logits of",
            false => "feed",
        };
        (width < chunk)
            .then(|| format!("--chunk {chunk} is split: a step of this plan can {reason} up to {width} tokens"))
    }

    fn columns(&self) -> usize {
        self.prefill.columns.max(self.decode.columns)
    }

    /// Width of the next step, at most `rest`: the widest entry that takes the chunk and gives its outputs.
    fn width(&self, rest: usize) -> usize {
        let wanted = rest.min(self.chunk);
        let usable = |entry: Width| match self.all_outputs {
            true => entry.columns.min(entry.outputs),
            false => entry.columns,
        };
        let wide = usable(self.prefill).min(wanted);
        if wide > self.decode.columns { wide } else { usable(self.decode).max(1).min(wanted) }
    }
}
