//! `ds4c show`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use ds4_ir::diagnostic::{Place, codes};
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::{EntryRow, Plan, PlanBytes};
use ds4_ir::{Diagnostic, Op};
use serde_json::{Value as Json, json};

use super::report::{Summary, size};

/// Arguments of `ds4c show`.
#[derive(Args)]
pub struct Show {
    /// The plan file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// List every value: operation, type, shape, span
    #[arg(long)]
    values: bool,
    /// Show where the memory goes: states, and the largest slots of each entry point
    #[arg(long)]
    memory: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Slots that `--memory` lists for each entry point.
const LISTED_SLOTS: usize = 12;

impl Show {
    /// Checks the plan and prints what it holds.
    pub fn run(self) -> Result<(), Diagnostic> {
        let name = self.plan.display().to_string();
        let file = std::fs::File::open(&self.plan)
            // SAFETY: the mapping is read only; a file that others truncate meanwhile ends this process, as with any
            // program that maps its input.
            .and_then(|file| unsafe { memmap2::Mmap::map(&file) })
            .map_err(|error| {
                Diagnostic::new(codes::FILE_OPEN, "the plan cannot be opened")
                    .at(Place::file(&name))
                    .wanted("", error.kind())
                    .help("`ds4c compile MODEL -o PLAN` makes a plan")
            })?;
        let bytes = PlanBytes::open(file, &name)?;
        let (graph, plan, _) = bytes.verified()?;
        let summary = Summary::new(&graph, &plan);
        if self.json {
            let mut report = summary.json();
            if self.values {
                report["values_list"] = graph.values().map(|v| value_json(&graph, v)).collect();
            }
            if self.memory {
                report["memory"] = memory_json(&graph, &plan);
            }
            return super::print(&format!("{report:#}\n"));
        }
        let mut text = summary.text();
        if self.memory {
            memory_text(&mut text, &graph, &plan);
        }
        if self.values {
            values_text(&mut text, &graph);
        }
        super::print(&text)
    }
}

fn value_json(graph: &Graph<'_>, v: Value) -> Json {
    json!({
        "id": v.0,
        "op": graph.op(v).name(),
        "type": graph.ty(v).name(),
        "args": graph.args(v).iter().map(|a| a.0).collect::<Vec<_>>(),
        "span": graph.span_path(graph.value_span[v.0 as usize]),
        "name": name_of(graph, v),
    })
}

/// The name of a value: its tap, or the weight, constant or state that it is.
fn name_of(graph: &Graph<'_>, v: Value) -> Option<String> {
    let attr = || graph.attrs(v)[0] as usize;
    let name = match graph.op(v) {
        Op::Weight => Some(graph.weights[attr()].name),
        Op::Const => Some(graph.constants[attr()].name),
        Op::Read => Some(graph.states[attr()].name),
        _ => graph.named.iter().find(|row| row.value == v).map(|row| row.name),
    };
    name.map(|n| graph.name(n).to_string())
}

fn values_text(text: &mut String, graph: &Graph<'_>) {
    let _ = writeln!(text, "\nvalues");
    for v in graph.values() {
        let args: Vec<String> = graph.args(v).iter().map(Value::to_string).collect();
        let name = name_of(graph, v).unwrap_or_default();
        let span = graph.span_path(graph.value_span[v.0 as usize]);
        let shape = ds4_ir::text::shape_text(graph.dims, graph.dims_of(v));
        let _ = writeln!(
            text,
            "{:<8} {:<9} {:<10} {:<32} {:<24} {span} {name}",
            v.to_string(),
            graph.op(v).name(),
            graph.ty(v).name(),
            shape,
            args.join(" ")
        );
    }
}

/// The outermost slots of an entry point, largest first.
fn largest_slots(plan: &Plan<'_>, entry: &EntryRow) -> Vec<(Value, u64)> {
    let slots = entry.slots.of(plan.slots).iter().filter(|s| s.within == s.value);
    let mut sizes: Vec<(Value, u64)> = slots.map(|s| (s.value, s.bytes)).collect();
    sizes.sort_by_key(|&(v, bytes)| (std::cmp::Reverse(bytes), v));
    sizes.truncate(LISTED_SLOTS);
    sizes
}

fn memory_text(text: &mut String, graph: &Graph<'_>, plan: &Plan<'_>) {
    let _ = writeln!(text, "\nstates");
    for (state, place) in graph.states.iter().zip(plan.state_places) {
        let _ = writeln!(text, "  {:<36} {:>12}", graph.name(state.name), size(place.bytes));
    }
    for entry in plan.entries {
        let _ = writeln!(text, "\nlargest values of {} ({} in all)", plan.str(entry.name), size(entry.arena_bytes));
        for (v, bytes) in largest_slots(plan, entry) {
            let span = graph.span_path(graph.value_span[v.0 as usize]);
            let _ = writeln!(text, "  {:<8} {:>12}  {:<9} {span}", v.to_string(), size(bytes), graph.op(v).name());
        }
    }
}

fn memory_json(graph: &Graph<'_>, plan: &Plan<'_>) -> Json {
    let states = graph.states.iter().zip(plan.state_places);
    let states = states.map(|(s, p)| json!({ "name": graph.name(s.name), "bytes": p.bytes }));
    let entries = plan.entries.iter().map(|entry| {
        let slots = entry
            .slots
            .of(plan.slots)
            .iter()
            .map(|s| json!({ "value": s.value.0, "within": s.within.0, "offset": s.offset, "bytes": s.bytes }));
        json!({ "name": plan.str(entry.name), "bytes": entry.arena_bytes, "slots": slots.collect::<Vec<_>>() })
    });
    json!({ "states": states.collect::<Vec<_>>(), "entries": entries.collect::<Vec<_>>() })
}
