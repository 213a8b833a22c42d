//! The command line of `ds4c`.
//!
//! Exit codes: 0, 1 for a diagnostic, 2 for wrong usage.

mod certificate;
mod check;
mod compile;
mod explain;
mod fuse;
mod ir;
mod report;
mod rules;
mod show;
mod show_kernels;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ds4_ir::diagnostic::codes;
use ds4_ir::plan::{EntryRow, Plan, PlanBytes};
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::Target;
use memmap2::Mmap;

use crate::lower::{Activations, Head, KvRows, Options, Sims};
use crate::model::Architecture;

/// Compiles a DeepSeek V4 checkpoint to a plan that `ds4-run` executes (today on one device of one machine).
#[derive(Parser)]
#[command(name = "ds4c", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ds4c compile model.gguf -o model.ds4plan
  ds4c compile checkpoint-directory -o model.ds4plan --context 32768
  ds4c show model.ds4plan --memory
  ds4c ir model.gguf --entry prefill -o model.ds4ir
  ds4c rules --json";

#[derive(Subcommand)]
enum Command {
    /// Compiles a checkpoint to a plan file.
    ///
    /// MODEL is a GGUF file (any part of a split one) or a directory with config.json and .safetensors files. Only
    /// headers are read; the weights stay where they are.
    Compile(compile::Compile),
    /// Shows what a plan holds.
    Show(show::Show),
    /// Prints the value graph of a model as IR text.
    Ir(ir::Ir),
    /// Fuses a value graph that is given as IR text, and prints its launches.
    Fuse(fuse::Fuse),
    /// Explains what is computed together, by which rule, and what that saves.
    Explain(explain::Explain),
    /// Checks a plan with the certificate in it, as `ds4-run --verify` does.
    Check(check::Check),
    /// Shows the laws that rewriting may use, with their proofs.
    Rules(rules::Rules),
}

/// Options that decide the graph.
#[derive(Args)]
struct Lowering {
    /// Largest number of tokens of a sequence [default: 4096, at most the model's]
    #[arg(long, value_name = "N")]
    context: Option<u32>,
    /// Largest number of tokens of a prefill step [default: 512]
    #[arg(long, value_name = "N")]
    prefill: Option<u32>,
    /// Largest number of tokens of a decode step, 1 to 8 [default: 8]
    #[arg(long, value_name = "N")]
    columns: Option<u32>,
    /// Activations of products with quantised weights [default: q8 where a weight takes it]
    #[arg(long, value_enum)]
    activations: Option<Activations>,
    /// How cached keys and values (window rows and pooled rows) are kept
    #[arg(long, value_enum, default_value = "f32")]
    kv: KvRows,
    /// Roundings that the official code simulates, for comparing with it
    #[arg(long, value_enum, default_value = "none")]
    sims: Sims,
    /// What a step gives: the logits, or the most probable token alone, for which no logit is stored
    #[arg(long, value_enum, default_value = "logits")]
    head: Head,
}

impl Lowering {
    /// A plan was compiled already: options for compiling it have no effect.
    fn refuse_for_plan(&self) -> Result<(), Diagnostic> {
        let sizes = self.context.is_some() || self.prefill.is_some() || self.columns.is_some();
        let values = self.activations.is_some() || self.kv != KvRows::F32 || self.sims != Sims::None;
        if !sizes && !values && self.head == Head::Logits {
            return Ok(());
        }
        Err(Diagnostic::new(codes::OPTION_NO_EFFECT, "options of compilation have no effect on a plan")
            .at(Place::item("the command line", "the options of the graph"))
            .help("leave them out, or give the model instead of the plan"))
    }

    fn options(&self, architecture: &Architecture) -> Options {
        let default = Options::for_model(architecture);
        let context = self.context.unwrap_or(default.context);
        Options {
            activations: self.activations,
            kv: self.kv,
            sims: self.sims,
            head: self.head,
            context,
            prefill: self.prefill.unwrap_or(context.min(512)),
            columns: self.columns.unwrap_or(context.min(8).min(self.prefill.unwrap_or(8))),
        }
    }
}

/// An entry point, by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EntryName {
    /// Decode of one column.
    Decode1,
    /// Decode of several columns.
    Decode,
    /// Prefill.
    Prefill,
}

impl EntryName {
    /// The name in a plan.
    fn name(self) -> &'static str {
        match self {
            EntryName::Decode1 => "decode1",
            EntryName::Decode => "decode",
            EntryName::Prefill => "prefill",
        }
    }
}

/// A target, by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TargetName {
    /// For wgpu.
    Wgsl,
    /// For CUDA.
    Ptx,
    /// For HIP.
    Hip,
    /// No kernels: the plan is for the CPU only.
    None,
}

impl TargetName {
    /// The target; none for `none`.
    fn target(self) -> Option<Target> {
        match self {
            TargetName::Wgsl => Some(Target::Wgsl),
            TargetName::Ptx => Some(Target::Ptx),
            TargetName::Hip => Some(Target::Hip),
            TargetName::None => None,
        }
    }

    /// The targets of a list, each once, in the order of plans.
    fn targets(list: &[TargetName]) -> Vec<Target> {
        Target::ALL.into_iter().filter(|&target| list.iter().any(|name| name.target() == Some(target))).collect()
    }
}

/// Whether a file begins as a plan does.
fn is_plan(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == ds4_ir::plan::file::MAGIC
}

/// A mapped plan, its bytes checked.
fn open_plan(path: &Path) -> Result<PlanBytes<Mmap>, Diagnostic> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path)
        // SAFETY: the mapping is read only; a file that others truncate meanwhile ends this process, as with any
        // program that maps its input.
        .and_then(|file| unsafe { Mmap::map(&file) })
        .map_err(|error| {
            Diagnostic::new(codes::FILE_OPEN, "the plan cannot be opened")
                .at(Place::file(&name))
                .wanted("a file that can be read", error.kind())
                .help("`ds4c compile MODEL -o PLAN` makes a plan")
        })?;
    PlanBytes::open(file, &name)
}

/// The files that a plan stands for: itself, its model as it is remembered, and the model's files. Outputs must be none of them.
fn inputs(path: &Path, plan: &Plan<'_>) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let model = folder.join(plan.option("model.path").unwrap_or(""));
    let beside = model.parent().unwrap_or(Path::new("")).to_path_buf();
    let files = plan.files.iter().flat_map(|row| [&model, &beside].map(|folder| folder.join(plan.str(row.path))));
    [path.to_path_buf(), model.clone()].into_iter().chain(files).collect()
}

/// The entry point of a plan.
fn entry<'a>(plan: &Plan<'a>, file: &str, name: EntryName) -> Result<&'a EntryRow, Diagnostic> {
    let found = plan.entry(name.name()).map(|(_, entry)| entry);
    found.ok_or_else(|| {
        Diagnostic::new(codes::PLAN_FACT, "the plan has no such entry point")
            .at(Place::file(file))
            .wanted(name.name(), "other entry points")
            .help("see the entry points with `ds4c show PLAN`")
    })
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Compile(command) => command.run(),
        Command::Show(command) => command.run(),
        Command::Ir(command) => command.run(),
        Command::Fuse(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Rules(command) => command.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(diagnostic) => {
            tell(&diagnostic.to_string());
            ExitCode::FAILURE
        }
    }
}

/// A message that nobody may read is no reason to fail.
fn tell(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes to standard output; a reader that left ends the program quietly.
fn print(text: &str) -> Result<(), Diagnostic> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Diagnostic::new(codes::OUTPUT_WRITE, "standard output cannot be written")
                .at(Place::file("standard output"))
                .wanted("an output that takes the report", error.kind())
                .help("outputs named with `-o` are whole; only the report is lost"))
        }
        _ => Ok(()),
    }
}

/// A model file or directory on the command line.
#[derive(Args)]
struct ModelPath {
    /// GGUF file or checkpoint directory
    #[arg(value_name = "MODEL")]
    model: PathBuf,
}
