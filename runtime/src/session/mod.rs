//! A sequence on a plan: opening, steps, logits, taps.
//!
//! ```text
//! open     the plan and the model's files: mapped, checked, prepared
//! mod      steps and logits
//! runner   what executes: the CPU's executor, or a device's
//! taps     named values of each step
//! nan      where a NaN in the logits came from
//! engine   what generation asks of a session
//! ```

mod engine;
mod nan;
mod open;
mod runner;
mod taps;

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::plan::{Plan, PlanBytes};
use ds4_ir::{Diagnostic, Place, Step};
use memmap2::Mmap;

use crate::generate::{Facts, Width};
use crate::reader::{Observer, Reader, View};

pub use open::OpenOptions;
pub use runner::Runner;
pub use taps::TapValue;

use taps::Taps;

/// An entry point of the plan.
struct Entry {
    /// Its index in the plan.
    index: usize,
    width: Width,
    answer: Answer,
}

/// What a step gives.
enum Answer {
    /// The logits, `[outputs, vocabulary]`.
    Logits(Reader),
    /// The most probable tokens alone.
    Greedy {
        /// The tokens, `[outputs]`.
        tokens: Reader,
        /// Their logits, NaN where any logit is.
        peak: Reader,
    },
}

impl Answer {
    /// The values to bring from a device.
    fn readers(&self) -> impl Iterator<Item = &Reader> {
        let (first, second) = match self {
            Answer::Logits(logits) => (logits, None),
            Answer::Greedy { tokens, peak } => (tokens, Some(peak)),
        };
        std::iter::once(first).chain(second)
    }
}

/// One sequence of tokens on a plan.
///
/// A step that fails leaves position and states as they are for the next one: the rows that a step writes are those
/// that the same step, repeated, writes again.
pub struct Session {
    plan: PlanBytes<Mmap>,
    facts: Facts,
    runner: Box<dyn Runner>,
    /// Ascending by columns.
    entries: Vec<Entry>,
    position: usize,
    /// Entry point and scalars of the last step that succeeded.
    last: Option<(usize, Step)>,
    /// Logits of the last step where the arena does not hold them together.
    logits: Vec<f32>,
    /// Most probable tokens of the last step where the plan gives these alone.
    greedy: Vec<u32>,
    taps: Taps,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("facts", &self.facts).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Session {
    /// What is known of plan, model and machine.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Number of tokens fed.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Begins a new sequence.
    pub fn reset(&mut self) {
        self.runner.clear_states();
        self.position = 0;
        self.last = None;
        self.taps.clear();
    }

    /// Bytes of the tokenizer that the plan holds.
    ///
    /// # Errors
    /// The plan is damaged.
    pub fn tokenizer(&self) -> Result<&[u8], Diagnostic> {
        Ok(self.plan.tables()?.1.tokenizer)
    }

    /// The graph and the plan's tables.
    ///
    /// # Errors
    /// The plan is damaged.
    pub fn tables(&self) -> Result<(Graph<'_>, Plan<'_>), Diagnostic> {
        self.plan.tables()
    }

    /// Feeds tokens at the positions that follow; `outputs` of them, the last ones, get logits. The smallest entry
    /// point that takes them all runs.
    ///
    /// # Errors
    /// A token, the context or the width of the step is out of range, or the step itself fails; then nothing changes.
    pub fn step(&mut self, tokens: &[u32], outputs: usize) -> Result<(), Diagnostic> {
        let at = self.check_step(tokens, outputs)?;
        let step = Step { position: self.position as u32, columns: tokens.len() as u32, outputs: outputs as u32 };
        self.last = None;
        let (graph, plan) = self.plan.tables()?;
        let entry = &self.entries[at];
        self.taps.begin(at, step);
        let taps_wanted = !self.taps.is_empty();
        let taps = &mut self.taps;
        let mut keep = |value, view: View<'_>| taps.keep(graph.dims, value, view);
        let after: Option<&mut Observer<'_>> = if taps_wanted { Some(&mut keep) } else { None };
        self.runner.run(&graph, &plan, entry.index, step, tokens, after)?;
        for reader in entry.answer.readers() {
            self.runner.output(&graph, reader, step)?;
        }
        self.finish(at, step, tokens)
    }

    /// Finds what a step gave; the position advances if its logits are numbers.
    fn finish(&mut self, at: usize, step: Step, tokens: &[u32]) -> Result<(), Diagnostic> {
        let (graph, _) = self.plan.tables()?;
        let view = self.runner.view();
        self.logits.clear();
        self.greedy.clear();
        let reader = match &self.entries[at].answer {
            Answer::Logits(logits) => logits,
            Answer::Greedy { tokens, peak } => {
                tokens.read(graph.dims, step, view, &mut self.greedy);
                peak
            }
        };
        let in_place = reader.slice(graph.dims, step, view);
        let mut read = Vec::new();
        if in_place.is_none() {
            reader.read(graph.dims, step, view, &mut read);
        }
        if in_place.unwrap_or(&read).iter().any(|&w| w & 0x7fff_ffff > 0x7f80_0000) {
            return Err(self.find_nan(at, step, tokens));
        }
        if matches!(self.entries[at].answer, Answer::Logits(_)) {
            self.logits.extend(read.into_iter().map(f32::from_bits));
        }
        self.last = Some((at, step));
        self.position += tokens.len();
        Ok(())
    }

    /// Logits of the last step, `[outputs, vocabulary]`; empty before the first, behind one that failed, and where the plan gives
    /// the most probable tokens alone.
    pub fn logits(&self) -> &[f32] {
        let (Some((at, step)), Ok((graph, _))) = (self.last, self.plan.tables()) else {
            return &[];
        };
        let Answer::Logits(logits) = &self.entries[at].answer else { return &[] };
        match logits.slice(graph.dims, step, self.runner.view()) {
            Some(words) => bytemuck::cast_slice(words),
            None => &self.logits,
        }
    }

    /// The most probable tokens of the last step, `[outputs]`, where the plan gives these alone; else, before the first step and
    /// behind one that failed, none.
    pub fn greedy(&self) -> &[u32] {
        if self.last.is_some() { &self.greedy } else { &[] }
    }

    /// The smallest entry point that takes so many columns and outputs.
    fn entry(&self, columns: usize, outputs: usize) -> Option<usize> {
        self.entries.iter().position(|e| columns <= e.width.columns && outputs <= e.width.outputs)
    }

    fn check_step(&self, tokens: &[u32], outputs: usize) -> Result<usize, Diagnostic> {
        let vocabulary = self.facts.vocabulary;
        if let Some(&token) = tokens.iter().find(|&&t| t as usize >= vocabulary) {
            return Err(Diagnostic::new(codes::TOKEN_RANGE, "a token is outside of the vocabulary")
                .wanted(format!("ids below {vocabulary}"), token)
                .help("give ids that this model's tokenizer makes"));
        }
        if self.position + tokens.len() > self.facts.context {
            return Err(Diagnostic::new(codes::CONTEXT_EXCEEDED, "the step goes beyond the context")
                .wanted(
                    format!("at most {} tokens in a sequence", self.facts.context),
                    format!("{} and {} more", self.position, tokens.len()),
                )
                .help("compile with a longer --context, or begin a new sequence"));
        }
        let fits = self.entry(tokens.len(), outputs);
        let sane = !tokens.is_empty() && outputs <= tokens.len();
        fits.filter(|_| sane).ok_or_else(|| self.wrong_size(tokens.len(), outputs))
    }

    fn wrong_size(&self, columns: usize, outputs: usize) -> Diagnostic {
        let widths = self.entries.iter().map(|e| {
            let Width { columns, outputs } = e.width;
            format!("1 to {columns} tokens with logits of up to {outputs}")
        });
        Diagnostic::new(codes::STEP_SIZE, "no entry point of the plan takes the step")
            .at(Place::file(&self.facts.plan))
            .wanted(widths.collect::<Vec<_>>().join(", or "), format!("{columns} tokens with logits of {outputs}"))
            .help("feed fewer tokens at a time, or compile with a larger --prefill")
    }
}

#[cfg(test)]
mod tests;
