//! `ds4c ir`

use std::path::PathBuf;

use clap::Args;
use ds4_ir::Diagnostic;

use super::{EntryName, Lowering, ModelPath};
use crate::lower::lower;
use crate::model::Model;

/// Arguments of `ds4c ir`.
#[derive(Args)]
pub struct Ir {
    #[command(flatten)]
    model: ModelPath,
    /// The entry point whose bounds the text names; the graph is the same
    #[arg(long, value_enum, default_value = "decode1")]
    entry: EntryName,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    lowering: Lowering,
}

impl Ir {
    /// Prints the graph.
    pub fn run(self) -> Result<(), Diagnostic> {
        let checkpoint = crate::read::open(&self.model.model)?;
        let model = Model::read(&checkpoint)?;
        let options = self.lowering.options(&model.architecture);
        let graph = lower(&model, &options)?;
        let (name, columns) = match self.entry {
            EntryName::Decode1 => ("decode1", 1),
            EntryName::Prefill => ("prefill", options.prefill),
        };
        let head =
            format!("; entry {name}: columns at most {columns}, position + columns at most {}\n", options.context);
        let text = head + &ds4_ir::text::print(&graph.view());
        match self.output {
            Some(path) => ds4_ir::plan::file::write_whole(&path, text.as_bytes()),
            None => super::print(&text),
        }
    }
}
