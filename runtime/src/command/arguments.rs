//! The arguments: what each means, and which have no effect together.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory, Parser};
use globset::Glob;

use crate::device::select::Choice;
use crate::sample::Sampling;

const EXAMPLES: &str = "\
Examples:
  ds4-run model.ds4plan -p 'Once upon a time' -n 64
  ds4-run model.ds4plan -p 'Who are you?' --chat --temp 1 --seed 7
  ds4-run model.ds4plan --tokens 0,17,5 -n 16 --ids
  ds4-run model.ds4plan --tokens-file prompt.txt --chunk 1 --logits logits.npy
  ds4-run model.ds4plan --tokens 0,17,5 --tap 'layer.*.route.ids' --tap-out taps.npz
  ds4-run model.ds4plan --bench --prefill 512 --decode 64 --json
  ds4-run model.ds4plan --device wgpu -p 'Once upon a time' -n 64
  ds4-run --list-devices";

/// What a run does; exactly one of these is given.
const INPUTS: [&str; 5] = ["prompt", "tokens", "tokens_file", "bench", "list_devices"];

/// Tokens that are generated from a text by default.
const TEXT_COUNT: usize = 128;

const PROMPT: &str = "Prompt";
const GENERATION: &str = "Generation";
const FILES: &str = "Output files";
const MEASUREMENT: &str = "Measurement";
const MACHINE: &str = "Machine";

/// Executes a plan that `ds4c compile` made, on the CPU or on a GPU of this machine.
#[derive(Parser, Clone, Debug)]
#[command(name = "ds4-run", version, after_help = EXAMPLES)]
#[command(
    override_usage = "ds4-run <PLAN> <-p TEXT | --tokens ID,.. | --tokens-file FILE | --bench> [OPTIONS]\n       ds4-run --list-devices [--json]"
)]
#[command(group(ArgGroup::new("input").required(true).args(INPUTS)))]
pub(super) struct Arguments {
    /// The plan file
    #[arg(value_name = "PLAN", required_unless_present = "list_devices")]
    pub(super) plan: Option<PathBuf>,

    /// Feed a text, after the token that begins texts
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, help_heading = PROMPT)]
    pub(super) prompt: Option<String>,
    /// Wrap the text as a turn of a chat, answered without thinking
    #[arg(long, help_heading = PROMPT)]
    pub(super) chat: bool,
    /// Feed token ids as they are, separated by commas or white space
    #[arg(long, value_name = "ID,ID,..", help_heading = PROMPT)]
    pub(super) tokens: Option<String>,
    /// Feed the token ids in a file, separated by white space or commas
    #[arg(long, value_name = "FILE", help_heading = PROMPT)]
    pub(super) tokens_file: Option<PathBuf>,
    /// Feed the prompt N tokens at a time [default: as many as the plan's prefill takes]
    #[arg(long, value_name = "N", value_parser = at_least_1, conflicts_with = "bench", help_heading = PROMPT)]
    pub(super) chunk: Option<usize>,

    /// Generate at most N tokens [default: 128 after -p, else 0]
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "bench", help_heading = GENERATION)]
    pub(super) count: Option<usize>,
    /// Draw tokens at this temperature; 0 takes the most probable one [default: 0]
    #[arg(long, value_name = "T", value_parser = temperature, conflicts_with = "bench", help_heading = GENERATION)]
    pub(super) temp: Option<f32>,
    /// Draw from the most probable tokens that reach this sum of probabilities [default: 1]
    #[arg(long, value_name = "P", value_parser = probability, conflicts_with = "bench", help_heading = GENERATION)]
    pub(super) top_p: Option<f32>,
    /// Seed of the draws; a seed gives one text on every machine [default: 0]
    #[arg(long, value_name = "S", conflicts_with = "bench", help_heading = GENERATION)]
    pub(super) seed: Option<u64>,
    /// End in front of this text; may be repeated
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    #[arg(allow_hyphen_values = true, conflicts_with = "bench", help_heading = GENERATION)]
    pub(super) stop: Vec<String>,
    /// Print the ids of generated tokens instead of their text
    #[arg(long, conflicts_with = "bench", help_heading = GENERATION)]
    pub(super) ids: bool,

    /// Write the logits behind each fed token, float32 [tokens, vocabulary]
    #[arg(long, value_name = "OUT.npy", conflicts_with = "bench", help_heading = FILES)]
    pub(super) logits: Option<PathBuf>,
    /// Keep the named values that match; * matches any characters; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Glob::new, requires = "tap_out", conflicts_with = "bench")]
    #[arg(help_heading = FILES)]
    pub(super) tap: Vec<Glob>,
    /// Write the kept values; steps are joined along axis 0
    #[arg(long, value_name = "OUT.npz", requires = "tap", help_heading = FILES)]
    pub(super) tap_out: Option<PathBuf>,

    /// Measure the rates of prefill and decode
    #[arg(long, help_heading = MEASUREMENT)]
    pub(super) bench: bool,
    /// Tokens of the measured prompt [default: 512, or what the context takes]
    #[arg(long, value_name = "N", value_parser = at_least_1, help_heading = MEASUREMENT)]
    pub(super) prefill: Option<usize>,
    /// Measured decode steps [default: 64, or what the context takes]
    #[arg(long, value_name = "N", value_parser = at_least_1, help_heading = MEASUREMENT)]
    pub(super) decode: Option<usize>,
    /// Print the measurement, or the devices, as JSON
    #[arg(long, help_heading = MEASUREMENT)]
    pub(super) json: bool,

    /// Execute on this device: cpu, wgpu[:N], cuda[:N] or hip[:N] [default: cpu]
    #[arg(long, value_name = "DEVICE", conflicts_with = "list_devices", help_heading = MACHINE)]
    pub(super) device: Option<Choice>,
    /// List the devices of this machine, with limits, and whether they keep the numeric contract
    #[arg(long, help_heading = MACHINE)]
    pub(super) list_devices: bool,
    /// Execute on N threads, on the CPU only [default: one per core]
    #[arg(long, value_name = "N", value_parser = thread_count, help_heading = MACHINE)]
    pub(super) threads: Option<usize>,
    /// Where the checkpoint is, if it is not where the plan says
    #[arg(long, value_name = "PATH", help_heading = MACHINE)]
    pub(super) model: Option<PathBuf>,
    /// Check the certificate in the plan first, as `ds4c check` does
    #[arg(long, help_heading = MACHINE)]
    pub(super) verify: bool,
    /// Compare the weights with the hash that `ds4c compile --contents` stored; this reads the whole checkpoint
    #[arg(long, help_heading = MACHINE)]
    pub(super) contents: bool,
    /// Instruction set, on the CPU only, equal in bits [default: the widest of this machine]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(["baseline", "avx2", "avx512"]))]
    #[arg(help_heading = MACHINE)]
    pub(super) isa: Option<String>,
}

/// More threads than any machine has cores are a slip.
fn thread_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err("1 to 1024".into()),
    }
}

fn at_least_1(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// Bounds keep the division of any sane logit finite.
fn temperature(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value == 0.0 || (0.001..=1000.0).contains(&value) => Ok(value),
        _ => Err("0, or from 0.001 to 1000".into()),
    }
}

fn probability(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err("larger than 0, at most 1".into()),
    }
}

impl Arguments {
    /// The arguments of this process; an error to be printed for wrong usage and for `--help`.
    pub(super) fn of_process() -> Result<Self, clap::Error> {
        Arguments::checked(Arguments::try_parse()?)
    }

    /// An error if an argument has no effect beside the others.
    ///
    /// Not with clap's `requires`, which is waived where the required argument conflicts with one that is given.
    pub(super) fn checked(self) -> Result<Self, clap::Error> {
        let draws = self.temp.is_some_and(|value| value > 0.0);
        let generates = self.default_count() > 0;
        let (runs, on_cpu) = (!self.list_devices, self.device.unwrap_or_default() == Choice::Cpu);
        let needs = [
            ("PLAN", self.plan.is_some(), runs, "one of -p, --tokens, --tokens-file, --bench"),
            ("--model", self.model.is_some(), runs, "a plan that is run"),
            ("--contents", self.contents, runs, "a plan that is run"),
            ("--verify", self.verify, runs, "a plan that is run"),
            ("--threads", self.threads.is_some(), runs && on_cpu, "a plan that is run on the CPU"),
            ("--isa", self.isa.is_some(), runs && on_cpu, "a plan that is run on the CPU"),
            ("--chat", self.chat, self.prompt.is_some(), "-p"),
            ("--prefill", self.prefill.is_some(), self.bench, "--bench"),
            ("--decode", self.decode.is_some(), self.bench, "--bench"),
            ("--json", self.json, self.bench || self.list_devices, "--bench or --list-devices"),
            ("--temp", self.temp.is_some(), generates, "-n larger than 0"),
            ("--stop", !self.stop.is_empty(), generates, "-n larger than 0"),
            ("--ids", self.ids, generates, "-n larger than 0"),
            ("--top-p", self.top_p.is_some(), draws, "--temp larger than 0"),
            ("--seed", self.seed.is_some(), draws, "--temp larger than 0"),
        ];
        match needs.into_iter().find(|&(_, given, effective, _)| given && !effective) {
            Some((name, _, _, without)) => Err(no_effect(name, without)),
            None => Ok(self),
        }
    }

    /// Most tokens to generate, before the context bounds the default.
    fn default_count(&self) -> usize {
        self.count.unwrap_or(if self.prompt.is_some() { TEXT_COUNT } else { 0 })
    }

    /// Most tokens to generate behind `prompt` tokens. Only the default gives way to the context.
    pub(super) fn count(&self, prompt: usize, context: usize) -> usize {
        match self.count {
            Some(count) => count,
            None => self.default_count().min(context.saturating_sub(prompt)),
        }
    }

    /// How tokens are drawn; `None` for arg-max.
    pub(super) fn sampling(&self) -> Option<Sampling> {
        let temperature = self.temp.filter(|&value| value > 0.0)?;
        Some(Sampling { temperature, top_p: self.top_p.unwrap_or(1.0), seed: self.seed.unwrap_or(0) })
    }
}

fn no_effect(name: &str, without: &str) -> clap::Error {
    let message = format!("{name} has no effect without {without}");
    Arguments::command().error(ErrorKind::MissingRequiredArgument, message)
}
