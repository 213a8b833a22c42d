//! `ds4c check`

use std::path::{Path, PathBuf};

use clap::Args;
use ds4_ir::Diagnostic;
use ds4_ir::certificate::Report;
use ds4_ir::graph::Graph;
use ds4_ir::plan::{EntryRow, Plan, PlanBytes};
use ds4_ir::rules::{Exact, Reasons};
use ds4_kernels::plan::check_kernels;
use memmap2::Mmap;
use serde_json::{Value as Json, json};

use super::open_plan;
use crate::model::Model;
use crate::same_model::check_model;

const EXAMPLES: &str = "\
Examples:
  ds4c check model.ds4plan
  ds4c check model.ds4plan model.gguf
  ds4c check model.ds4plan --json";

/// Arguments of `ds4c check`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// The plan file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// The model: it is lowered again, and the graph that the plan's proof begins with is compared
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Checks tables, launches, kernels and certificate, and that the plan is the model's; says what was proved.
    pub fn run(self) -> Result<(), Diagnostic> {
        let bytes = open_plan(&self.plan)?;
        let file = self.plan.display().to_string();
        let (graph, plan, _) = bytes.verified()?;
        let proved = bytes.proved(Exact::rules())?;
        let kernels = check_kernels(&graph, &plan, &file)?;
        let model = self.model.as_ref().map(|model| compared(model, &bytes, &graph, &plan, &file)).transpose()?;
        let found = Found { kernels, model, ..Found::new(&graph, &plan, proved.as_ref()) };
        super::print(&if self.json { found.json() } else { found.text() })
    }
}

fn compared(
    path: &Path,
    bytes: &PlanBytes<Mmap>,
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    file: &str,
) -> Result<usize, Diagnostic> {
    let checkpoint = crate::read::open(path)?;
    let model = Model::read(&checkpoint)?;
    check_model(&checkpoint, &model, graph, plan, bytes.certificate()?.as_ref(), file)
}

/// What a check found.
struct Found {
    /// For each entry point its name, launches and regions.
    entries: Vec<(String, usize, usize)>,
    /// Values of the source graph, of the plan's, and terms.
    terms: Option<[usize; 3]>,
    /// Steps of the certificate, and uses of laws of launches.
    steps: Reasons,
    launches: Reasons,
    /// Kernels that are those of the launches.
    kernels: usize,
    /// Values of the model's graph, if a model was given.
    model: Option<usize>,
}

impl Found {
    fn new(graph: &Graph<'_>, plan: &Plan<'_>, proved: Option<&Report>) -> Found {
        let entry = |entry: &EntryRow| {
            let launches = entry.launches.of(plan.launches);
            let regions = launches.iter().map(|launch| plan.regions(launch).len()).sum();
            (plan.str(entry.name).to_string(), launches.len(), regions)
        };
        let terms = proved.map(|report| [report.source_values, report.plan_values, report.terms]);
        Found {
            entries: plan.entries.iter().map(entry).collect(),
            terms,
            steps: proved.map(Reasons::of_certificate).unwrap_or_default(),
            launches: Reasons::of_launches(graph, plan),
            kernels: 0,
            model: None,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, launches, regions) in &self.entries {
            text += &format!(
                "{name:<9} {regions} regions in {launches} launches: every value computed, nothing read too early, states in order\n"
            );
        }
        text += &lines(&self.launches);
        match self.terms {
            Some([source, plan, terms]) => {
                text +=
                    &format!("values    {source} of the model's graph, {plan} of the plan's, {terms} terms: equal\n");
            }
            None => {
                text += "values    no certificate: the graph is taken for the model's, which `ds4c check PLAN MODEL` compares\n"
            }
        }
        text += &lines(&self.steps);
        if self.kernels > 0 {
            let count = self.kernels;
            text +=
                &format!("kernels   {count}, each the one that this build makes for its launches; texts unproved\n");
        }
        text += &match self.model {
            Some(values) => format!("model     lowered again: the same {values} values, weights at the same places\n"),
            None => "model     not given: that the proof begins with its graph is taken on trust\n".into(),
        };
        text + "accepted\n"
    }

    fn json(&self) -> String {
        let entry = |(name, launches, regions): &(String, usize, usize)| json!({ "entry": name, "launches": launches, "regions": regions });
        let terms = self.terms.map(|[source, plan, terms]| json!({ "source": source, "plan": plan, "terms": terms }));
        let entries: Vec<_> = self.entries.iter().map(entry).collect();
        let report = json!({
            "entries": entries,
            "values": terms,
            "steps": self.steps.kinds(),
            "rules": rows(&self.steps),
            "launch_steps": self.launches.kinds(),
            "launch_rules": rows(&self.launches),
            "kernels": self.kernels,
            "model_values": self.model,
            "accepted": true,
        });
        format!("{report:#}\n")
    }
}

fn lines(reasons: &Reasons) -> String {
    reasons.lines().iter().map(|line| format!("          {line}\n")).collect()
}

fn rows(reasons: &Reasons) -> Vec<Json> {
    let row = |one: &ds4_ir::rules::Use| json!({ "rule": one.rule, "proof": one.proof, "uses": one.count });
    reasons.0.iter().map(row).collect()
}
