//! A request: a prompt is fed, tokens are chosen and fed back until something ends it.

use std::time::{Duration, Instant};

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;

use super::{Engine, Facts, Feed, Flow, Printer, Recorder};
use crate::sample::{Sampler, Sampling};

/// What is asked of an engine.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// Tokens to feed, at least one.
    pub prompt: Vec<u32>,
    /// Tokens of a step while the prompt is fed; by default as many as the plan takes.
    pub chunk: Option<usize>,
    /// Most tokens to generate.
    pub count: usize,
    /// How tokens are drawn; arg-max if `None`.
    pub sampling: Option<Sampling>,
}

/// Why generation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// As many tokens as were asked for.
    Count,
    /// A token that ends a text.
    EndOfText,
    /// A stop string.
    Stopped,
    /// The reader of the output went away.
    Closed,
}

/// Tokens that were fed in one phase, and the time of their steps.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Phase {
    /// Number of tokens.
    pub tokens: usize,
    /// Time of the steps and of choosing tokens; not of printing or writing.
    pub time: Duration,
    /// Number of steps.
    pub steps: usize,
}

impl Phase {
    /// Adds what `work` took for `tokens` tokens.
    pub(super) fn timed<T>(&mut self, tokens: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.time += start.elapsed();
        self.tokens += tokens;
        self.steps += 1;
        result
    }

    /// Milliseconds of a step on average; 0 if there was none.
    pub fn milliseconds(&self) -> f64 {
        1000.0 * self.time.as_secs_f64() / self.steps.max(1) as f64
    }

    /// Tokens per second; 0 if nothing was fed.
    pub fn rate(&self) -> f64 {
        match self.tokens {
            0 => 0.0,
            tokens => tokens as f64 / self.time.as_secs_f64().max(1e-9),
        }
    }
}

/// The result of a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Generated tokens, with the one that ended the text.
    pub generated: Vec<u32>,
    /// Why it ended.
    pub end: End,
    /// The prompt.
    pub prefill: Phase,
    /// Generated tokens that were fed back.
    pub decode: Phase,
}

/// An error if `prompt` tokens and `count` generated ones do not fit in the context.
pub fn check_context(facts: &Facts, prompt: usize, count: usize) -> Result<(), Diagnostic> {
    if prompt.saturating_add(count) <= facts.context {
        return Ok(());
    }
    let room = facts.context.saturating_sub(prompt);
    let help = match room {
        0 => format!("shorten the prompt, or compile with a context of {} or more", prompt.saturating_add(count)),
        _ => format!("generate at most {room} tokens, shorten the prompt, or compile with a larger context"),
    };
    let message = "the prompt and the tokens to generate do not fit in the plan's context";
    Err(Diagnostic::new(codes::CONTEXT_EXCEEDED, message)
        .wanted(format!("at most {} tokens", facts.context), format!("{prompt} of the prompt and {count} to generate"))
        .help(help))
}

/// Runs a request on an engine at the beginning of a sequence. `progress` is told how many tokens of the prompt are fed.
pub fn generate(
    engine: &mut dyn Engine,
    request: &Request,
    recorder: &mut Recorder,
    printer: &mut Printer<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<Outcome, Diagnostic> {
    check_context(engine.facts(), request.prompt.len(), request.count)?;
    let mut run = Run {
        sampler: Sampler::new(request.sampling),
        outcome: Outcome {
            generated: Vec::new(),
            end: End::Count,
            prefill: Phase::default(),
            decode: Phase::default(),
        },
        engine,
        recorder,
    };
    run.feed(request, progress)?;
    if request.count > 0 {
        run.decode(request.count, printer)?;
    }
    Ok(run.outcome)
}

struct Run<'a> {
    engine: &'a mut dyn Engine,
    recorder: &'a mut Recorder,
    sampler: Sampler,
    outcome: Outcome,
}

impl Run<'_> {
    /// Feeds the prompt. Only the last step needs logits, and only if a token is chosen from them, unless all are kept.
    fn feed(&mut self, request: &Request, progress: &mut dyn FnMut(usize)) -> Result<(), Diagnostic> {
        let all = self.recorder.wants_logits();
        let prompt = &request.prompt;
        for step in Feed::new(self.engine.facts(), request.chunk, all).steps(prompt.len()) {
            let chosen_from = request.count > 0 && step.end == prompt.len();
            let outputs = if all { step.len() } else { usize::from(chosen_from) };
            let position = self.engine.position();
            let tokens = &prompt[step.clone()];
            let engine = &mut *self.engine;
            (self.outcome.prefill).timed(tokens.len(), || engine.step(tokens, outputs))?;
            self.recorder.record(self.engine, position)?;
            progress(step.end);
        }
        Ok(())
    }

    /// Chooses tokens and feeds them back; the last one is not fed.
    fn decode(&mut self, count: usize, printer: &mut Printer<'_>) -> Result<(), Diagnostic> {
        loop {
            let token = self.choose()?;
            let flow = printer.token(token)?;
            self.outcome.generated.push(token);
            if let Some(end) = self.end_after(token, flow, count) {
                self.outcome.end = end;
                return Ok(());
            }
            let position = self.engine.position();
            let engine = &mut *self.engine;
            (self.outcome.decode).timed(1, || engine.step(&[token], 1))?;
            self.recorder.record(self.engine, position)?;
        }
    }

    /// The token of the last row of logits.
    fn choose(&mut self) -> Result<u32, Diagnostic> {
        let (engine, sampler) = (&*self.engine, &mut self.sampler);
        let choice = || match engine.greedy().last() {
            Some(&token) => Ok(token),
            None => {
                let logits = engine.logits();
                sampler.choose(&logits[logits.len() - engine.facts().vocabulary..])
            }
        };
        // The first token belongs to the prompt's phase, as it needs no other step.
        match self.outcome.generated.is_empty() {
            true => self.outcome.prefill.timed(0, choice),
            false => self.outcome.decode.timed(0, choice),
        }
    }

    fn end_after(&self, token: u32, flow: Flow, count: usize) -> Option<End> {
        match flow {
            Flow::Closed => Some(End::Closed),
            _ if self.engine.facts().end.contains(&token) => Some(End::EndOfText),
            Flow::Stopped => Some(End::Stopped),
            Flow::Continue => (self.outcome.generated.len() >= count).then_some(End::Count),
        }
    }
}
