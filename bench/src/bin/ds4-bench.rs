//! Measures the compiler, and writes header-only checkpoints of V4's sizes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand, ValueEnum};
use ds4_bench::child::measure;
use ds4_compiler::sample::{Spec, write_gguf};

#[derive(Parser)]
#[command(name = "ds4-bench", version, about = "Measures the compiler")]
struct Cli {
    #[command(subcommand)]
    command: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Compiles models with `ds4c` and prints time, memory and size of the plan
    Compile {
        /// Folder for the checkpoints and plans
        #[arg(long, default_value = "target/bench")]
        folder: PathBuf,
        /// Times each model is compiled
        #[arg(long, default_value_t = 5)]
        rounds: u32,
        /// The small model
        #[arg(long, default_value = "golden/models/kjv-9m/model.q8.gguf")]
        small: PathBuf,
    },
    /// Writes a GGUF with the header of a V4 model and a hole for its data
    Sample {
        /// Which model's dimensions
        #[arg(value_enum)]
        size: Size,
        /// The file to write
        file: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Size {
    /// 43 layers
    Flash,
    /// 61 layers
    Pro,
}

impl Size {
    fn spec(self) -> Spec {
        match self {
            Size::Flash => Spec::flash(43),
            Size::Pro => Spec::pro(61),
        }
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Job::Sample { size, file } => write_gguf(&file, &size.spec()),
        Job::Compile { folder, rounds, small } => compile_all(&folder, rounds, &small),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compile_all(folder: &Path, rounds: u32, small: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let compiler = std::env::current_exe()?.with_file_name("ds4c");
    let (flash, pro) = (folder.join("flash.gguf"), folder.join("pro.gguf"));
    write_gguf(&flash, &Size::Flash.spec())?;
    write_gguf(&pro, &Size::Pro.spec())?;
    println!("{:<14} {:>10} {:>10} {:>12} {:>12}", "model", "median s", "worst s", "memory MiB", "plan MiB");
    for (name, model) in [("small", small), ("V4-Flash", &flash), ("V4-Pro", &pro)] {
        let plan = folder.join(format!("{name}.ds4plan"));
        let mut runs = Vec::new();
        for _ in 0..rounds {
            runs.push(measure(Command::new(&compiler).arg("compile").arg(model).arg("-o").arg(&plan))?);
        }
        runs.sort_by_key(|run| run.time);
        let mib = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
        let memory = runs.iter().filter_map(|run| run.memory).max().map_or("?".into(), |m| format!("{:.0}", mib(m)));
        println!(
            "{name:<14} {:>10.3} {:>10.3} {memory:>12} {:>12.2}",
            runs[runs.len() / 2].time.as_secs_f64(),
            runs[runs.len() - 1].time.as_secs_f64(),
            mib(std::fs::metadata(&plan)?.len()),
        );
    }
    Ok(())
}
