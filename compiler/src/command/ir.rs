//! `ds4c ir`

use std::path::PathBuf;

use clap::Args;
use ds4_ir::graph::Graph;
use ds4_ir::output::check_output;
use ds4_ir::plan::Plan;
use ds4_ir::{Bounds, Diagnostic};

use super::{EntryName, Lowering, inputs, open_plan};
use crate::assemble::compile;
use crate::frame::Form;
use crate::model::Model;

/// Arguments of `ds4c ir`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Ir {
    /// GGUF file, checkpoint directory, or a plan
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The entry point whose bounds the first lines name; the graph is the same for all
    #[arg(long, value_enum, default_value = "decode1")]
    entry: EntryName,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    lowering: Lowering,
}

const EXAMPLES: &str = "\
Examples:
  ds4c ir model.gguf | less
  ds4c ir model.ds4plan --entry prefill -o model.ds4ir";

impl Ir {
    /// Prints the graph of a model, or of a plan as it was compiled.
    pub fn run(self) -> Result<(), Diagnostic> {
        if super::is_plan(&self.model) {
            self.lowering.refuse_for_plan()?;
            let bytes = open_plan(&self.model)?;
            let (graph, plan, _) = bytes.verified()?;
            if let Some(output) = &self.output {
                check_output(output, inputs(&self.model, &plan).iter().map(PathBuf::as_path))?;
            }
            return self.write(&graph, &plan);
        }
        let checkpoint = crate::read::open(&self.model)?;
        if let Some(output) = &self.output {
            check_output(output, checkpoint.inputs())?;
        }
        let model = Model::read(&checkpoint)?;
        let options = self.lowering.options(&model.architecture);
        let compiled = compile(&checkpoint, &model, &options, &self.model.to_string_lossy(), &Form::default())?;
        self.write(&compiled.graph.view(), &compiled.plan.view())
    }

    fn write(&self, graph: &Graph<'_>, plan: &Plan<'_>) -> Result<(), Diagnostic> {
        let text = head(plan, self.entry) + &ds4_ir::text::print(graph);
        match &self.output {
            Some(path) => ds4_ir::output::write_whole(path, text.as_bytes()),
            None => super::print(&text),
        }
    }
}

/// Comment lines: what the graph is of, and the bounds of its step scalars.
fn head(plan: &Plan<'_>, entry: EntryName) -> String {
    let fact = |key| plan.option(key).unwrap_or("?");
    let Bounds { context, columns, outputs } =
        plan.entry(entry.name()).map_or(Bounds { context: 0, columns: 0, outputs: 0 }, |(_, row)| plan.bounds(row));
    format!(
        "; {} under {}: activations {}, kv {}, sims {}, head {}\n; entry {}: columns at most {columns}, outputs at most \
         {outputs}, position + columns at most {context}\n",
        fact("model.name"),
        fact("contract"),
        fact("activations"),
        fact("kv"),
        fact("sims"),
        fact("head"),
        entry.name(),
    )
}
