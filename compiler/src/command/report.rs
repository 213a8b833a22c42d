//! Reports of `ds4c` about a plan.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use ds4_ir::entity::Run;
use ds4_ir::graph::Graph;
use ds4_ir::plan::{EntryRow, Plan};
use ds4_ir::schedule::schedule;
use serde_json::{Value as Json, json};

use super::show_kernels::Needs;
use crate::rewrite::{Caps, Outcome};
pub use crate::step::size;

/// What a person wants to know of a plan at first.
pub struct Summary {
    /// Options and facts in the order of the plan.
    pub facts: Vec<(String, String)>,
    /// Values of the graph.
    pub values: usize,
    /// Bytes of all states.
    pub state_bytes: u64,
    /// Bytes of the largest arena on the CPU, which makes a schedule of its own.
    pub cpu_arena_bytes: u64,
    /// Bytes of all weights' files.
    pub file_bytes: u64,
    /// Entry points.
    pub entries: Vec<EntrySummary>,
    /// Languages of the kernels.
    pub targets: Vec<String>,
    /// Number of kernels, and what a device must have for them.
    pub kernels: Option<(usize, Needs)>,
    /// BLAKE3 of the model's tensor table and metadata, in hexadecimal.
    pub model_hash: String,
}

/// An entry point.
pub struct EntrySummary {
    /// Name.
    pub name: String,
    /// Largest number of columns.
    pub columns: u32,
    /// Launches of a step.
    pub launches: u32,
    /// Bytes of the arena.
    pub arena_bytes: u64,
}

impl Summary {
    /// Gathers the facts of a plan.
    pub fn new(graph: &Graph<'_>, plan: &Plan<'_>) -> Summary {
        let entries = plan.entries.iter().map(|e| EntrySummary {
            name: plan.str(e.name).to_string(),
            columns: e.columns,
            launches: run_len(e.launches),
            arena_bytes: e.arena_bytes,
        });
        let cpu_arena = |entry: &EntryRow| schedule(graph, plan.bounds(entry)).arena_bytes;
        Summary {
            facts: plan.options.iter().map(|o| (plan.str(o.key).to_string(), plan.str(o.value).to_string())).collect(),
            values: graph.len(),
            state_bytes: plan.state_places.iter().map(|s| s.bytes).sum(),
            cpu_arena_bytes: plan.entries.iter().map(cpu_arena).max().unwrap_or(0),
            file_bytes: plan.files.iter().map(|f| f.size).sum(),
            entries: entries.collect(),
            targets: plan.targets.iter().map(|&text| plan.str(text).to_string()).collect(),
            kernels: Needs::of(graph, plan).map(|needs| (plan.kernels.len(), needs)),
            model_hash: plan.model_hash[0].iter().map(|b| format!("{b:02x}")).collect(),
        }
    }

    /// Bytes of the arena, which all entry points share.
    fn arena_bytes(&self) -> u64 {
        self.entries.iter().map(|e| e.arena_bytes).max().unwrap_or(0)
    }

    /// Bytes that running on a device needs beside the weights, at the bounds of the plan.
    fn memory_bytes(&self) -> u64 {
        self.state_bytes + self.arena_bytes()
    }

    /// Bytes that running on the CPU needs beside the mapped checkpoint, at the bounds of the plan.
    fn cpu_memory_bytes(&self) -> u64 {
        self.state_bytes + self.cpu_arena_bytes
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.facts {
            let _ = writeln!(text, "{key:<23}{value}");
        }
        let _ = writeln!(text, "{:<23}{}", "model.hash", self.model_hash);
        let _ = writeln!(text, "{:<23}{}", "values", self.values);
        let _ = writeln!(text, "{:<23}{}", "checkpoint", size(self.file_bytes));
        let _ = writeln!(text, "{:<23}{}", "state", size(self.state_bytes));
        let _ = writeln!(text, "{:<23}{}", "arena", size(self.arena_bytes()));
        let _ = writeln!(
            text,
            "{:<23}{} beside the checkpoint, {} on the CPU",
            "memory",
            size(self.memory_bytes()),
            size(self.cpu_memory_bytes())
        );
        if let Some((count, needs)) = &self.kernels {
            let _ = writeln!(text, "{:<23}{count} in {}", "kernels", self.targets.join(", "));
            let _ = writeln!(text, "{:<23}{}", "device", needs.text());
        }
        let _ = writeln!(text, "\n{:<10} {:>8} {:>9} {:>12}", "entry", "columns", "launches", "arena");
        for e in &self.entries {
            let _ = writeln!(text, "{:<10} {:>8} {:>9} {:>12}", e.name, e.columns, e.launches, size(e.arena_bytes));
        }
        text
    }

    /// The report as JSON.
    pub fn json(&self) -> Json {
        let facts: serde_json::Map<String, Json> =
            self.facts.iter().map(|(k, v)| (k.clone(), Json::from(v.clone()))).collect();
        let entries = self.entries.iter().map(|e| {
            json!({
                "name": e.name, "columns": e.columns, "launches": e.launches, "arena_bytes": e.arena_bytes,
            })
        });
        json!({
            "facts": facts,
            "model_hash": self.model_hash,
            "value_count": self.values,
            "checkpoint_bytes": self.file_bytes,
            "state_bytes": self.state_bytes,
            "memory_bytes": self.memory_bytes(),
            "cpu_memory_bytes": self.cpu_memory_bytes(),
            "entries": entries.collect::<Vec<_>>(),
            "targets": self.targets,
            "kernel_count": self.kernels.map_or(0, |(count, _)| count),
            "device_needs": self.kernels.map(|(_, needs)| needs.json()),
        })
    }
}

fn run_len(run: Run) -> u32 {
    run.len
}

/// A compilation that is done.
pub struct Done<'a> {
    /// The plan.
    pub summary: Summary,
    /// Its file.
    pub output: &'a Path,
    /// Bytes of that.
    pub bytes: u64,
    /// What it took.
    pub time: Duration,
    /// What rewriting did, within which caps.
    pub rewriting: Option<(&'a Outcome, Caps)>,
}

impl Done<'_> {
    /// What `ds4c compile` prints.
    pub fn text(&self) -> String {
        let summary = &self.summary;
        let steps = summary.entries.iter().find(|e| e.columns == 1).map_or(0, |e| e.launches);
        format!(
            "{}: {} in {:.2} s; {steps} launches for one token; running needs {} of memory ({} on the CPU) beside the checkpoint's {}\n",
            self.output.display(),
            size(self.bytes),
            self.time.as_secs_f64(),
            size(summary.memory_bytes()),
            size(summary.cpu_memory_bytes()),
            size(summary.file_bytes),
        )
    }

    /// What `ds4c compile --json` prints.
    pub fn json(&self) -> String {
        let mut report = self.summary.json();
        report["plan"] = json!(self.output.display().to_string());
        report["plan_bytes"] = json!(self.bytes);
        report["seconds"] = json!(self.time.as_secs_f64());
        report["rewriting"] = json!(self.rewriting.map(|(outcome, caps)| json!({
            "rounds": caps.iterations,
            "nodes": caps.nodes,
            "blocks": outcome.blocks[0],
            "blocks_changed": outcome.blocks[1],
            "blocks_stopped_by_rounds": outcome.hit[0].iterations,
            "blocks_stopped_by_nodes": outcome.hit[0].nodes,
        })));
        format!("{report:#}\n")
    }
}
