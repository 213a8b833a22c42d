//! One run on an engine: a request with its outputs, or a measurement.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ds4_ir::Diagnostic;
use ds4_ir::Place;
use ds4_ir::diagnostic::codes;
use ds4_ir::output::check_output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::arguments::Arguments;
use super::prompt::{LateTokenizer, prompt};
use super::report;
use crate::generate::{
    End, Engine, Facts, Feed, Printer, Recorder, Request, Watched, check_context, generate, measure, select,
};

/// Tokens of a measured prompt and measured steps, where the context takes them.
const BENCH: (usize, usize) = (512, 64);
/// A prefill that takes longer than this shows its progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Does what the arguments say. `tokenizer` are the bytes of the plan's tokenizer, `out` and `err` the outputs.
pub(super) fn execute(
    arguments: &Arguments,
    engine: &mut dyn Engine,
    tokenizer: &[u8],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Diagnostic> {
    match arguments.bench {
        true => bench(arguments, engine, out),
        false => run(arguments, engine, tokenizer, out, err),
    }
}

/// Everything that can be refused is refused before the first step.
fn run(
    arguments: &Arguments,
    engine: &mut dyn Engine,
    tokenizer: &[u8],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Diagnostic> {
    let facts = engine.facts().clone();
    check_logits(arguments, &facts)?;
    let tokenizer = LateTokenizer::new(tokenizer, &facts.plan);
    let prompt = prompt(arguments, &facts, &tokenizer)?;
    let count = arguments.count(prompt.len(), facts.context);
    check_context(&facts, prompt.len(), count)?;
    let mut printer = printer(arguments, count, &tokenizer, out)?;
    set_taps(arguments, engine)?;
    let files = (arguments.logits.as_deref(), arguments.tap_out.as_deref());
    check_outputs(arguments, engine)?;
    let mut recorder = Recorder::create(files.0, files.1, facts.vocabulary)?;
    if let Some(chunk) = arguments.chunk
        && let Some(note) = Feed::new(&facts, Some(chunk), recorder.wants_logits()).note(chunk)
    {
        tell(err, &format!("note: {note}\n"));
    }
    let request = Request { prompt, chunk: arguments.chunk, count, sampling: arguments.sampling() };
    let mut progress = Progress::new(request.prompt.len());
    let outcome = generate(engine, &request, &mut recorder, &mut printer, &mut |done| progress.fed(done))?;
    printer.finish(outcome.end == End::Stopped)?;
    recorder.finish()?;
    tell(err, &report::rates(&outcome));
    Ok(())
}

/// Where a plan gives the most probable tokens alone there are no logits to draw from, or to write.
fn check_logits(arguments: &Arguments, facts: &Facts) -> Result<(), Diagnostic> {
    let wanted = [("--temp", arguments.sampling().is_some()), ("--logits", arguments.logits.is_some())];
    match wanted.into_iter().find(|&(_, given)| given && facts.greedy) {
        Some((name, _)) => Err(Diagnostic::new(codes::NO_LOGITS, "the plan gives no logits")
            .at(Place::item("the command line", name))
            .wanted("a plan with logits", format!("{} gives the most probable tokens alone", facts.plan))
            .help(format!("leave `{name}` out, or compile the model without `--head greedy`"))),
        None => Ok(()),
    }
}

fn printer<'a>(
    arguments: &Arguments,
    count: usize,
    tokenizer: &'a LateTokenizer<'_>,
    out: &'a mut dyn Write,
) -> Result<Printer<'a>, Diagnostic> {
    let watch = |needed: bool| match needed {
        true => tokenizer.get().map(|tokenizer| Some(Watched::new(tokenizer, &arguments.stop))),
        false => Ok(None),
    };
    Ok(match watch(count > 0 && !arguments.ids)? {
        Some(text) => Printer::text(out, text),
        None => Printer::ids(out, watch(!arguments.stop.is_empty())?),
    })
}

fn set_taps(arguments: &Arguments, engine: &mut dyn Engine) -> Result<(), Diagnostic> {
    if arguments.tap.is_empty() {
        return Ok(());
    }
    let names = select(&engine.named_values(), &arguments.tap)?;
    engine.set_taps(&names)
}

fn bench(arguments: &Arguments, engine: &mut dyn Engine, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let (prefill, decode) = bench_lengths(arguments, engine.facts().context);
    let mut progress = Progress::new(prefill);
    let measured = measure(engine, prefill, decode, &mut |done| progress.fed(done))?;
    let text = match arguments.json {
        true => report::json(engine.facts(), &measured),
        false => report::table(engine.facts(), &measured),
    };
    print(&text, out)
}

/// Prints a result. That nobody reads to its end is no error.
pub(super) fn print(text: &str, out: &mut dyn Write) -> Result<(), Diagnostic> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Diagnostic::new(codes::OUTPUT_WRITE, "the output cannot be written")
                .at(Place::file("standard output"))
                .wanted("an output that takes text", error))
        }
        _ => Ok(()),
    }
}

/// Outputs replace neither inputs nor each other.
fn check_outputs(arguments: &Arguments, engine: &dyn Engine) -> Result<(), Diagnostic> {
    let mut inputs: Vec<&Path> = arguments.plan.iter().map(|plan| plan.as_path()).collect();
    inputs.extend(arguments.tokens_file.as_deref());
    inputs.extend(engine.facts().files.iter().map(PathBuf::as_path));
    for output in [&arguments.logits, &arguments.tap_out].into_iter().flatten() {
        check_output(output, inputs.iter().copied())?;
    }
    if let (Some(logits), Some(taps)) = (&arguments.logits, &arguments.tap_out)
        && logits == taps
    {
        return Err(Diagnostic::new(codes::OUTPUT_IS_INPUT, "two outputs have one name")
            .at(Place::file(logits.display().to_string()))
            .wanted("a file for the logits and one for the taps", "the same for both")
            .help("name another output"));
    }
    Ok(())
}

/// Lengths as asked for; a default gives way to the context.
fn bench_lengths(arguments: &Arguments, context: usize) -> (usize, usize) {
    let room = |other: usize| context.saturating_sub(other).max(1);
    match (arguments.prefill, arguments.decode) {
        (Some(prefill), Some(decode)) => (prefill, decode),
        (Some(prefill), None) => (prefill, BENCH.1.min(room(prefill))),
        (None, Some(decode)) => (BENCH.0.min(room(decode)), decode),
        (None, None) => {
            let decode = BENCH.1.min(context / 2).max(1);
            (BENCH.0.min(room(decode)), decode)
        }
    }
}

/// A message that nobody may read is no reason to fail.
fn tell(err: &mut dyn Write, text: &str) {
    let _ = err.write_all(text.as_bytes());
}

/// A line on a terminal, for a prefill that takes its time; nothing in a pipe.
struct Progress {
    bar: ProgressBar,
    total: usize,
}

impl Progress {
    fn new(total: usize) -> Self {
        // Stays hidden if standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let template = "{spinner} prefill {bar:40} {pos}/{len} tokens, {elapsed}";
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        // The first tick comes after the interval: a short prefill shows nothing, and one long step is alive.
        bar.enable_steady_tick(PATIENCE);
        Progress { bar, total }
    }

    fn fed(&mut self, done: usize) {
        if done >= self.total {
            self.bar.finish_and_clear();
        } else if self.bar.elapsed() > PATIENCE {
            self.bar.set_position(done as u64);
        }
    }
}
