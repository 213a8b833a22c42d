//! `ds4c compile`

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use ds4_ir::diagnostic::codes;
use ds4_ir::output::check_output;
use ds4_ir::plan::contents::CONTENTS;
use ds4_ir::plan::write_plan;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::parallel;
use indicatif::ProgressBar;

use super::{Lowering, ModelPath, TargetName, report};
use crate::assemble::{compile_on, remembered_path};
use crate::frame::Form;
use crate::fuse::Profile;
use crate::model::Model;
use crate::rewrite::Limits;

const EXAMPLES: &str = "\
Examples:
  ds4c compile model.gguf -o model.ds4plan
  ds4c compile checkpoint-directory -o model.ds4plan --context 32768 --prefill 256
  ds4c compile model.gguf -o model.ds4plan --activations f32
  ds4c compile model.gguf -o model.ds4plan --target wgsl,ptx";

/// Arguments of `ds4c compile`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Compile {
    #[command(flatten)]
    model: ModelPath,
    /// The plan file to write
    #[arg(short, long, value_name = "PLAN")]
    output: PathBuf,
    #[command(flatten)]
    lowering: Lowering,
    /// Languages that the plan has kernels in: of wgsl, ptx and hip, or none for the CPU only
    #[arg(long, value_enum, value_name = "TARGETS", value_delimiter = ',', default_value = "wgsl,ptx,hip")]
    target: Vec<TargetName>,
    /// Which values are computed together
    #[arg(long, value_enum, default_value = "exact")]
    fuse: Fusion,
    /// Device whose costs decide what is computed together: generic, h200, lavapipe, or a file [default: generic]
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Most rounds of applying the laws of values in a part of the graph [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rewrite_rounds: Option<u16>,
    /// Most terms that the laws may add in a part of the graph [default: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rewrite_nodes: Option<u32>,
    /// Also store a hash of the weights, for `ds4-run --contents`; this reads the whole checkpoint
    #[arg(long)]
    contents: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Which values are computed together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fusion {
    /// Every value by itself.
    Off,
    /// What costs least together, with the same bits.
    Exact,
}

impl Compile {
    /// The device whose costs decide.
    fn profile(&self) -> Result<Option<Profile>, Diagnostic> {
        match (self.fuse, &self.profile) {
            (Fusion::Exact, name) => Profile::find(name.as_deref().unwrap_or("generic")).map(Some),
            (Fusion::Off, None) => Ok(None),
            (Fusion::Off, Some(_)) => {
                Err(Diagnostic::new(codes::OPTION_NO_EFFECT, "a device profile has no effect without fusion")
                    .at(Place::item("the command line", "--profile"))
                    .help("leave it out, or leave out `--fuse off`"))
            }
        }
    }

    /// Within what the laws of values are applied. Counts, and no time: a plan does not depend on how fast a machine is.
    fn limits(&self) -> Result<Limits, Diagnostic> {
        let given =
            [("--rewrite-rounds", self.rewrite_rounds.is_some()), ("--rewrite-nodes", self.rewrite_nodes.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given && self.fuse == Fusion::Off) {
            return Err(Diagnostic::new(codes::OPTION_NO_EFFECT, "nothing is rewritten without fusion")
                .at(Place::item("the command line", *name))
                .help("leave it out, or leave out `--fuse off`"));
        }
        let mut limits = Limits::default();
        limits.values.iterations = self.rewrite_rounds.map_or(limits.values.iterations, usize::from);
        limits.values.nodes = self.rewrite_nodes.map_or(limits.values.nodes, |nodes| nodes as usize);
        Ok(limits)
    }

    /// Reads the checkpoint's headers and writes the plan: the whole file or nothing.
    pub fn run(self) -> Result<(), Diagnostic> {
        let begin = Instant::now();
        if self.target.contains(&TargetName::None) && self.target.len() > 1 {
            return Err(Diagnostic::new(codes::OPTION_NO_EFFECT, "`none` and languages exclude each other")
                .at(Place::item("the command line", "--target"))
                .help("give languages, or `none` alone"));
        }
        let (profile, limits) = (self.profile()?, self.limits()?);
        let progress = progress();
        progress.set_message("reading the checkpoint's headers");
        let checkpoint = crate::read::open(&self.model.model)?;
        check_output(&self.output, checkpoint.inputs())?;
        let model = Model::read(&checkpoint)?;
        let options = self.lowering.options(&model.architecture);
        progress.set_message("compiling");
        let path = remembered_path(&self.model.model, &self.output);
        let form = Form { targets: &TargetName::targets(&self.target), fusion: profile.as_ref() };
        let mut compiled = compile_on(parallel::available(), &checkpoint, &model, &options, &path, &form, &limits)?;
        if self.contents {
            progress.set_message("hashing the weights");
            compiled.plan.set_option(CONTENTS, &checkpoint.contents_hash(|_| ()));
        }
        progress.set_message("writing the plan");
        let bytes = write_plan(&self.output, &compiled.graph, &compiled.plan, compiled.certificate.as_ref())?;
        progress.finish_and_clear();
        for warning in model.warnings(&checkpoint).iter().take(8) {
            super::tell(&format!("warning: {warning}"));
        }
        if path.contains(char::REPLACEMENT_CHARACTER) {
            super::tell(
                "warning: the model's path is no UTF-8, so the plan cannot remember it; give it with `ds4-run --model`",
            );
        }
        let done = report::Done {
            summary: report::Summary::new(&compiled.graph.view(), &compiled.plan.view()),
            output: &self.output,
            bytes,
            time: begin.elapsed(),
            rewriting: compiled.rewriting.as_ref().map(|outcome| (outcome, limits.values)),
        };
        let text = if self.json { done.json() } else { done.text() };
        super::print(&text)
    }
}

/// A spinner on a terminal, nothing in a pipe.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
