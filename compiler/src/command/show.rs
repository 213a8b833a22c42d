//! `ds4c show`

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use ds4_ir::diagnostic::codes;
use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::output::{check_output, write_whole};
use ds4_ir::plan::{EntryRow, LaunchRow, Plan, PlanBytes, RegionRow, SlotRow};
use ds4_ir::rules::Exact;
use ds4_ir::text::{shape_text, value_lines};
use ds4_ir::{Diagnostic, Op, Place};
use memmap2::Mmap;
use serde_json::{Value as Json, json};

use super::report::{Summary, size};
use super::{EntryName, entry, inputs, open_plan, show_kernels};
use crate::picture::{Picture, Proof};
use crate::step::Step;

const EXAMPLES: &str = "\
Examples:
  ds4c show model.ds4plan
  ds4c show model.ds4plan --memory --taps
  ds4c show model.ds4plan --launches --json
  ds4c show model.ds4plan --kernels
  ds4c show model.ds4plan --kernel v120 --target wgsl
  ds4c show model.ds4plan --graph step.html
  ds4c show model.ds4plan --graph layer.svg --entry prefill --layer 4";

/// Arguments of `ds4c show`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Show {
    /// The plan file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// List every value as IR text
    #[arg(long)]
    values: bool,
    /// List the launches of each entry point: values, and where the result lies
    #[arg(long)]
    launches: bool,
    /// Show where the memory goes: states, and the largest values of each entry point
    #[arg(long)]
    memory: bool,
    /// List the values that `ds4-run --tap` can record
    #[arg(long)]
    taps: bool,
    /// List the kernels for devices
    #[arg(long)]
    kernels: bool,
    /// Print the text of a kernel, by its name or by the value that it computes (v123), and nothing else
    #[arg(long, value_name = "NAME", conflicts_with_all = ["values", "launches", "memory", "taps", "kernels", "json"])]
    kernel: Option<String>,
    /// The language of that text [default: the plan's first]
    #[arg(long, value_name = "TARGET", requires = "kernel")]
    target: Option<String>,
    /// Draw a step and write the picture: .svg, or .html, which tells more about what is pointed at
    #[arg(long, value_name = "FILE", conflicts_with_all = ["values", "launches", "memory", "taps", "kernels", "kernel", "json"])]
    graph: Option<PathBuf>,
    /// The entry point that is drawn [default: decode1]
    #[arg(long, value_enum, value_name = "ENTRY", requires = "graph")]
    entry: Option<EntryName>,
    /// Draw this layer only [default: one of each kind]
    #[arg(long, value_name = "N", requires = "graph")]
    layer: Option<u32>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Values that `--memory` lists for each entry point.
const LISTED_SLOTS: usize = 12;

impl Show {
    /// Checks the plan and prints what it holds.
    pub fn run(self) -> Result<(), Diagnostic> {
        let bytes = open_plan(&self.plan)?;
        let (graph, plan, _) = bytes.verified()?;
        if let Some(name) = &self.kernel {
            let file = self.plan.display().to_string();
            return super::print(&show_kernels::source(&plan, &file, name, self.target.as_deref())?);
        }
        if let Some(output) = &self.graph {
            return self.draw(&bytes, output);
        }
        let report = Report { graph, plan };
        let summary = Summary::new(&graph, &plan);
        let text = if self.json { self.json(&report, &summary) } else { self.text(&report, &summary) };
        super::print(&text)
    }

    /// Writes a picture: the whole file or nothing.
    fn draw(&self, bytes: &PlanBytes<Mmap>, output: &Path) -> Result<(), Diagnostic> {
        let is_page = match output.extension().and_then(|e| e.to_str()) {
            Some("svg") => false,
            Some("html") => true,
            _ => {
                return Err(Diagnostic::new(codes::OPTION_RANGE, "the kind of a picture is not known")
                    .at(Place::item("the command line", "--graph"))
                    .wanted("a name that ends in .svg or .html", output.display())
                    .help("name the file after what it is to be"));
            }
        };
        let (graph, plan, _) = bytes.verified()?;
        check_output(output, inputs(&self.plan, &plan).iter().map(PathBuf::as_path))?;
        let file = self.plan.display().to_string();
        let step = Step::new(graph, plan, entry(&plan, &file, self.entry.unwrap_or(EntryName::Decode1))?);
        let (certificate, report) = (bytes.certificate()?, bytes.proved(Exact::rules())?);
        let proof = Proof::new(certificate.as_ref().zip(report.as_ref()));
        let name = plan.option("model.name").map_or(file.clone(), String::from);
        let mut picture = Picture::new(step, proof, name);
        if let Some(number) = self.layer {
            let part = picture.parts.layer(number).ok_or_else(|| {
                Diagnostic::new(codes::REGION_UNKNOWN, "no launches of the step belong to this layer alone")
                    .at(Place::file(&file))
                    .wanted("a layer that `ds4c explain PLAN` lists", number)
                    .help("leave `--layer` out to see one layer of each kind")
            })?;
            picture.drawn = vec![part];
        }
        let text = if is_page { picture.html() } else { picture.svg() };
        write_whole(output, text.as_bytes())?;
        let (drawn, parts) = (picture.drawn.len(), picture.parts.parts.len());
        super::print(&format!("{}: {drawn} of {parts} parts drawn, {}\n", output.display(), size(text.len() as u64)))
    }

    fn json<'r>(&self, report: &Report<'r>, summary: &Summary) -> String {
        let mut all = summary.json();
        let parts: [(bool, &str, AsJson<'r>); 5] = [
            (self.kernels, "kernels", |report| show_kernels::list_json(&report.plan)),
            (self.taps, "taps", Report::taps_json),
            (self.memory, "memory", Report::memory_json),
            (self.launches, "launches", Report::launches_json),
            (self.values, "values", Report::values_json),
        ];
        for (wanted, key, part) in parts {
            if wanted {
                all[key] = part(report);
            }
        }
        format!("{all:#}\n")
    }

    fn text<'r>(&self, report: &Report<'r>, summary: &Summary) -> String {
        let mut text = summary.text();
        let parts: [(bool, AsText<'r>); 5] = [
            (self.kernels, |report, text| show_kernels::list_text(&report.plan, text)),
            (self.taps, Report::taps_text),
            (self.memory, Report::memory_text),
            (self.launches, Report::launches_text),
            (self.values, Report::values_text),
        ];
        for (wanted, part) in parts {
            if wanted {
                part(report, &mut text);
            }
        }
        text
    }
}

type AsJson<'r> = fn(&Report<'r>) -> Json;
type AsText<'r> = fn(&Report<'r>, &mut String);

/// A verified plan.
struct Report<'a> {
    graph: Graph<'a>,
    plan: Plan<'a>,
}

impl Report<'_> {
    fn span(&self, v: Value) -> String {
        self.graph.span_path(self.graph.value_span[v.0 as usize])
    }

    fn shape(&self, v: Value) -> String {
        shape_text(self.graph.dims, self.graph.dims_of(v))
    }

    /// The name of a value: its tap, or the weight, constant or state that it is.
    fn name(&self, v: Value) -> Option<String> {
        let attr = || self.graph.attrs(v)[0] as usize;
        let name = match self.graph.op(v) {
            Op::Weight => Some(self.graph.weights[attr()].name),
            Op::Const => Some(self.graph.constants[attr()].name),
            Op::Read => Some(self.graph.states[attr()].name),
            _ => self.graph.named.iter().find(|row| row.value == v).map(|row| row.name),
        };
        name.map(|n| self.graph.name(n).to_string())
    }

    fn values_text(&self, text: &mut String) {
        let _ = writeln!(text, "\nvalues");
        for line in value_lines(&self.graph) {
            let _ = writeln!(text, "{line}");
        }
    }

    fn values_json(&self) -> Json {
        let lines = value_lines(&self.graph);
        let row = |(v, line): (Value, String)| {
            json!({
                "id": v.0,
                "op": self.graph.op(v).name(),
                "type": self.graph.ty(v).name(),
                "shape": self.shape(v),
                "args": self.graph.args(v).iter().map(|a| a.0).collect::<Vec<_>>(),
                "text": line,
                "span": self.span(v),
                "name": self.name(v),
            })
        };
        self.graph.values().zip(lines).map(row).collect()
    }

    fn taps_text(&self, text: &mut String) {
        let _ = writeln!(text, "\nvalues that `ds4-run --tap` records");
        for row in self.graph.named {
            let name = self.graph.name(row.name);
            let _ = writeln!(text, "  {name:<28} {:<5} {}", self.graph.ty(row.value).name(), self.shape(row.value));
        }
    }

    fn taps_json(&self) -> Json {
        let row = |row: &ds4_ir::graph::NamedRow| {
            json!({
                "name": self.graph.name(row.name),
                "type": self.graph.ty(row.value).name(),
                "shape": self.shape(row.value),
            })
        };
        self.graph.named.iter().map(row).collect()
    }

    fn slot(&self, entry: &EntryRow, v: Value) -> Option<&SlotRow> {
        let slots = entry.slots.of(self.plan.slots);
        slots.binary_search_by_key(&v, |slot| slot.value).ok().map(|i| &slots[i])
    }

    fn launches_text(&self, text: &mut String) {
        for entry in self.plan.entries {
            let _ =
                writeln!(text, "\nlaunches of {}: values, operation, where its result lies", self.plan.str(entry.name));
            for (i, launch) in entry.launches.of(self.plan.launches).iter().enumerate() {
                let mut number = i.to_string();
                for region in self.plan.regions(launch) {
                    let _ = writeln!(text, "  {number:<6} {}", self.region_text(entry, region));
                    number.clear();
                }
            }
        }
    }

    /// A region in one line; behind its values, how the axes of the last one are split.
    fn region_text(&self, entry: &EntryRow, region: &RegionRow) -> String {
        let values = self.plan.values(region);
        let Some(&last) = values.last() else { return String::new() };
        let place = match self.slot(entry, last) {
            Some(slot) if slot.within != last => format!("inside {}", slot.within),
            Some(slot) => format!("{} at {}", size(slot.bytes), slot.offset),
            None => "in a state".into(),
        };
        let mut list = values.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        let tiles: Vec<String> = self.plan.tiles(region).iter().map(u32::to_string).collect();
        if !tiles.is_empty() {
            list += &format!(" by [{}]", tiles.join(", "));
        }
        let op = self.graph.op(last).name();
        format!("{list:<16} {op:<9} {place:<24} {}", self.span(last))
    }

    fn launches_json(&self) -> Json {
        let region = |entry: &EntryRow, region: &RegionRow| {
            let values = self.plan.values(region);
            let slot = values.last().and_then(|&v| self.slot(entry, v));
            json!({
                "values": values.iter().map(|v| v.0).collect::<Vec<_>>(),
                "tiles": self.plan.tiles(region),
                "within": slot.map(|s| s.within.0),
                "offset": slot.map(|s| s.offset),
                "bytes": slot.map(|s| s.bytes),
            })
        };
        let launch = |entry: &EntryRow, launch: &LaunchRow| {
            let regions: Vec<Json> = self.plan.regions(launch).iter().map(|r| region(entry, r)).collect();
            json!({ "regions": regions })
        };
        let entry = |entry: &EntryRow| {
            let list: Run = entry.launches;
            let launches: Vec<Json> = list.of(self.plan.launches).iter().map(|l| launch(entry, l)).collect();
            json!({ "entry": self.plan.str(entry.name), "launches": launches })
        };
        self.plan.entries.iter().map(entry).collect()
    }

    /// The outermost slots of an entry point, largest first.
    fn largest_slots(&self, entry: &EntryRow) -> Vec<(Value, u64)> {
        let slots = entry.slots.of(self.plan.slots).iter().filter(|s| s.within == s.value);
        let mut sizes: Vec<(Value, u64)> = slots.map(|s| (s.value, s.bytes)).collect();
        sizes.sort_by_key(|&(v, bytes)| (std::cmp::Reverse(bytes), v));
        sizes.truncate(LISTED_SLOTS);
        sizes
    }

    fn memory_text(&self, text: &mut String) {
        let _ = writeln!(text, "\nstates");
        for (state, place) in self.graph.states.iter().zip(self.plan.state_places) {
            let _ = writeln!(text, "  {:<36} {:>12}", self.graph.name(state.name), size(place.bytes));
        }
        for entry in self.plan.entries {
            let name = self.plan.str(entry.name);
            let _ = writeln!(text, "\nlargest values of {name} (its arena has {})", size(entry.arena_bytes));
            for (v, bytes) in self.largest_slots(entry) {
                let op = self.graph.op(v).name();
                let _ = writeln!(text, "  {:<8} {:>12}  {op:<9} {}", v.to_string(), size(bytes), self.span(v));
            }
        }
    }

    fn memory_json(&self) -> Json {
        let states = self.graph.states.iter().zip(self.plan.state_places);
        let states = states.map(|(s, p)| json!({ "name": self.graph.name(s.name), "bytes": p.bytes }));
        let entries = self.plan.entries.iter().map(|entry| {
            let slots = entry
                .slots
                .of(self.plan.slots)
                .iter()
                .map(|s| json!({ "value": s.value.0, "within": s.within.0, "offset": s.offset, "bytes": s.bytes }));
            let name = self.plan.str(entry.name);
            json!({ "entry": name, "bytes": entry.arena_bytes, "slots": slots.collect::<Vec<_>>() })
        });
        json!({ "states": states.collect::<Vec<_>>(), "entries": entries.collect::<Vec<_>>() })
    }
}
