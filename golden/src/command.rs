//! The command line of `ds4-golden`.
//!
//! Exit codes: 0, 1 for a difference or a diagnostic, 2 for wrong usage.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use ds4_compiler::fuse::Profile;
use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use indicatif::ProgressBar;

use crate::bless::{changes, write};
use crate::cases::{Case, FAMILIES};
use crate::check::{Device, Verdict};
use crate::expect::FamilyFile;
use crate::models::{self, FEEDS, Row, SHORT_FEEDS, Thorough, cases, compare_on};
use crate::report::{Table, json};

/// Compares devices with golden files, bit by bit.
#[derive(Parser)]
#[command(name = "ds4-golden", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ds4-golden check --device wgpu
  ds4-golden models --device wgpu --long
  ds4-golden check --device cpu --family product --case q8_0.q8.256
  ds4-golden bless --family map";

#[derive(Subcommand)]
enum Command {
    /// Runs the kernel suite on a device and compares every tensor with its golden words.
    Check(Check),
    /// Writes golden files anew from the evaluator's words, after showing what changes.
    Bless(Bless),
    /// Feeds the models of this repository to a device and compares their logits with the stored hashes.
    Models(Models),
    /// Lists the cases.
    List(Selection),
}

/// Which cases.
#[derive(Args)]
struct Selection {
    /// Only cases of this family
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Only cases whose name begins so
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
}

#[derive(Args)]
struct Check {
    /// The device: cpu, wgpu, cuda or hip, with a number behind a colon if there are several; machine[:wgsl|:ptx|:hip] for
    /// the kernel machine, nvrtc for HIP text on a device of NVIDIA
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    device: String,
    #[command(flatten)]
    selection: Selection,
    /// The report as JSON
    #[arg(long)]
    json: bool,
    /// Folder of the golden files
    #[arg(long, value_name = "FOLDER", default_value_os_t = folder())]
    golden: PathBuf,
}

#[derive(Args)]
struct Models {
    /// The device, named as for `check`
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    device: String,
    /// Also feed 300 tokens, in one step and one by one
    #[arg(long)]
    long: bool,
    /// Only models whose name begins so
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Device profile by which values are fused, or off
    #[arg(long, value_name = "NAME|off", default_value = "generic")]
    fuse: String,
    /// Feed each sequence so many times from the beginning; the same launches and the same bits have to come every time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..))]
    replays: u8,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Bless {
    /// Only this family's file
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Write even where golden words change or go
    #[arg(long)]
    yes: bool,
    /// Folder of the golden files
    #[arg(long, value_name = "FOLDER", default_value_os_t = folder())]
    golden: PathBuf,
}

/// The folder of the golden files.
pub fn folder() -> PathBuf {
    crate::data("kernels")
}

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Check(command) => command.run(),
        Command::Bless(command) => command.run(),
        Command::Models(command) => command.run(),
        Command::List(selection) => selection.list(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(diagnostic) => {
            // A closed standard error leaves the exit code to tell.
            let _ = writeln!(io::stderr(), "{diagnostic}");
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output; a reader that left is no fault.
fn print(text: &str) -> Result<(), Diagnostic> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Diagnostic::new(codes::OUTPUT_WRITE, "standard output cannot be written")
                .at(Place::file("standard output"))
                .wanted("an output that takes the report", error.kind())
                .help("name another output"))
        }
        _ => Ok(()),
    }
}

fn check_family(family: Option<&str>) -> Result<(), Diagnostic> {
    let names: Vec<&str> = FAMILIES.iter().map(|family| family.0).collect();
    match family.filter(|family| !names.contains(family)) {
        None => Ok(()),
        Some(family) => Err(Diagnostic::new(codes::OPTION_RANGE, "there is no such family of cases")
            .at(Place::item("the command line", "--family"))
            .wanted(format!("one of {}", names.join(", ")), family)
            .help("`ds4-golden list` lists the cases")),
    }
}

impl Selection {
    fn cases(&self) -> Result<Vec<Case>, Diagnostic> {
        check_family(self.family.as_deref())?;
        let families = FAMILIES.iter().filter(|family| self.family.as_deref().is_none_or(|name| name == family.0));
        let is_wanted = |case: &Case| self.case.as_ref().is_none_or(|name| case.name.starts_with(name));
        let cases: Vec<Case> = families.flat_map(|(_, cases)| cases()).filter(is_wanted).collect();
        match &self.case {
            Some(name) if cases.is_empty() => Err(Diagnostic::new(codes::OPTION_RANGE, "there is no such case")
                .at(Place::item("the command line", "--case"))
                .wanted("the beginning of a case's name", name)
                .help("`ds4-golden list` lists the cases")),
            _ => Ok(cases),
        }
    }

    fn list(&self) -> Result<bool, Diagnostic> {
        let cases = self.cases()?;
        let lines = cases.iter().map(|case| {
            let names: Vec<String> = case.compared().into_iter().map(|row| row.0).collect();
            format!("{} {}: {} steps; {}", case.family, case.name, case.feeds.len(), names.join(", "))
        });
        print(&lines.collect::<Vec<_>>().join("\n"))?;
        Ok(true)
    }
}

impl Check {
    fn run(&self) -> Result<bool, Diagnostic> {
        let cases = self.selection.cases()?;
        let files: Vec<(&str, Option<FamilyFile>)> = FAMILIES
            .iter()
            .map(|(family, _)| Ok((*family, FamilyFile::read(&self.golden, family)?)))
            .collect::<Result<_, Diagnostic>>()?;
        let device = Device::open(&self.device)?;
        let table = Table::of(cases.iter().map(|case| (case.family, case.name.as_str())));
        // A table that grows on a terminal shows the progress itself. A bar is drawn on a terminal only.
        let is_seen = !self.json && io::stdout().is_terminal();
        let bar = if is_seen { ProgressBar::hidden() } else { ProgressBar::new(cases.len() as u64) };
        let say = |text: &str| if self.json { Ok(()) } else { bar.suspend(|| print(text)) };
        say(&format!("device: {}\n{}", device.name(), table.title()))?;
        let mut rows = Vec::new();
        for case in &cases {
            let file = files.iter().find(|file| file.0 == case.family).and_then(|file| file.1.as_ref());
            let row = device.check(case, file.and_then(|file| file.case(&case.name)));
            say(&table.row(&row))?;
            rows.push(row);
            bar.inc(1);
        }
        bar.finish_and_clear();
        match self.json {
            true => print(json(&device.name(), &rows).trim_end())?,
            false => print(&table.total(&rows))?,
        }
        Ok(rows.iter().all(|row| row.verdict == Verdict::Equal))
    }
}

impl Models {
    fn run(&self) -> Result<bool, Diagnostic> {
        let feeds = if self.long { FEEDS.len() } else { SHORT_FEEDS };
        let how = Thorough { feeds, replays: self.replays.into() };
        let profile = (self.fuse != "off").then(|| Profile::find(&self.fuse)).transpose()?;
        let mut rows = Vec::new();
        let chosen = |case: &models::Case| self.case.as_ref().is_none_or(|name| case.name.starts_with(name));
        for case in cases()?.into_iter().filter(chosen) {
            let row = compare_on(&self.device, &case, profile.as_ref(), how)?;
            if !self.json {
                print(row.text().trim_end())?;
            }
            rows.push(row);
        }
        if let (true, Some(name)) = (rows.is_empty(), &self.case) {
            return Err(Diagnostic::new(codes::OPTION_RANGE, "there is no such model")
                .at(Place::item("the command line", "--case"))
                .wanted("the beginning of a model's name, such as `tiny-r`", name)
                .help("without --case all models are fed"));
        }
        let failed: usize = rows.iter().map(Row::failed).sum();
        match self.json {
            true => print(&models::json(&rows))?,
            false => print(&format!("{} models, {failed} comparisons failed", rows.len()))?,
        }
        Ok(failed == 0)
    }
}

impl Bless {
    fn run(&self) -> Result<bool, Diagnostic> {
        check_family(self.family.as_deref())?;
        let changes = changes(&self.golden, |family| self.family.as_deref().is_none_or(|name| name == family))?;
        for line in changes.iter().flat_map(|change| &change.lines) {
            print(line)?;
        }
        let changed = changes.iter().filter(|change| change.is_any()).count();
        if changed == 0 {
            print("nothing changes")?;
            return Ok(true);
        }
        if changes.iter().any(|change| change.loses) && !self.yes {
            print("golden words would change: nothing was written; `bless --yes` writes")?;
            return Ok(false);
        }
        write(&self.golden, &changes)?;
        print(&format!("{changed} of {} files written", changes.len()))?;
        Ok(true)
    }
}
