//! Measuring an engine: the rates of prefill and of decode.

use ds4_ir::Diagnostic;

use super::{Engine, Feed, Phase, check_context};
use crate::sample::{Generator, arg_max};

/// The phases of a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// A prompt of drawn tokens, with the logits of the last.
    pub prefill: Phase,
    /// Single steps behind it, each with logits and arg-max.
    pub decode: Phase,
}

/// Feeds `prefill` tokens, then `decode` single ones, after a short sequence that brings the weights into memory.
///
/// The tokens of the prompt are drawn from the vocabulary with a fixed seed, so that routing meets many experts.
pub fn measure(
    engine: &mut dyn Engine,
    prefill: usize,
    decode: usize,
    progress: &mut dyn FnMut(usize),
) -> Result<Measured, Diagnostic> {
    check_context(engine.facts(), prefill, decode)?;
    let prompt = drawn_tokens(engine.facts().vocabulary, prefill);
    warm(engine, &prompt)?;
    let mut measured = Measured { prefill: Phase::default(), decode: Phase::default() };
    for step in Feed::new(engine.facts(), None, false).steps(prefill) {
        let outputs = usize::from(step.end == prefill);
        let tokens = &prompt[step.clone()];
        (measured.prefill).timed(tokens.len(), || engine.step(tokens, outputs))?;
        progress(step.end);
    }
    for _ in 0..decode {
        (measured.decode).timed(1, || {
            // A measurement goes on where a request would stop at a NaN.
            let known = engine.greedy().last().copied();
            let token = known.unwrap_or_else(|| arg_max(engine.logits()).unwrap_or(0));
            engine.step(&[token], 1)
        })?;
    }
    Ok(measured)
}

fn drawn_tokens(vocabulary: usize, count: usize) -> Vec<u32> {
    let mut generator = Generator::new(0);
    (0..count).map(|_| (generator.next_bits() % vocabulary as u64) as u32).collect()
}

/// One step of the prompt's width and one of decode, then a new sequence.
fn warm(engine: &mut dyn Engine, prompt: &[u32]) -> Result<(), Diagnostic> {
    let first = Feed::new(engine.facts(), None, false).steps(prompt.len()).next();
    if let Some(step) = first {
        engine.step(&prompt[step], 1)?;
    }
    if engine.position() < engine.facts().context {
        engine.step(&[0], 1)?;
    }
    engine.reset();
    Ok(())
}
