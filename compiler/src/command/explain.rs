//! `ds4c explain`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Value;
use ds4_ir::{Diagnostic, Place};
use serde_json::{Value as Json, json};

use super::report::size;
use super::{EntryName, entry, open_plan};
use crate::fuse::{Profile, why_not};
use crate::step::parts::{Kind, Parts, Sums};
use crate::step::{Found, Source, Step, Traffic};

const EXAMPLES: &str = "\
Examples:
  ds4c explain model.ds4plan
  ds4c explain model.ds4plan 12.0
  ds4c explain model.ds4plan v3209
  ds4c explain model.ds4plan --why-not v3209 v3222
  ds4c explain model.ds4plan --once hc_pre";

/// Arguments of `ds4c explain`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The plan file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// One region: its launch and its number there (12.0), or a value that it computes (v3209)
    #[arg(value_name = "REGION")]
    region: Option<String>,
    /// The entry point
    #[arg(long, value_enum, default_value = "decode1")]
    entry: EntryName,
    /// Why two values are not computed by one launch: `v12`, or a name of `ds4c show --taps`
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "region")]
    why_not: Option<Vec<String>>,
    /// Device profile for --why-not [default: the one that the plan was fused for]
    #[arg(long, value_name = "NAME|FILE", requires = "why_not")]
    profile: Option<String>,
    /// Also count the launches with those taken as one that follow each other where one of them computes nothing but a part of a
    /// span of this name, such as `hc_pre`, and the other the rest: its work is spread over workgroups, which meet in between
    #[arg(long, value_name = "SPAN", conflicts_with_all = ["region", "why_not"])]
    once: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Prints the regions of a plan, one of them, or why there is none.
    pub fn run(self) -> Result<(), Diagnostic> {
        let bytes = open_plan(&self.plan)?;
        let (graph, plan, _) = bytes.verified()?;
        let file = self.plan.display().to_string();
        let report = Report { step: Step::new(graph, plan, entry(&plan, &file, self.entry)?) };
        if let Some(span) = self.once.as_ref().filter(|span| !report.has_span(span)) {
            return Err(Diagnostic::new(codes::REGION_UNKNOWN, "the plan has no such span")
                .at(Place::file(&file))
                .wanted("a part of a path, such as `hc_pre` of layer.4.ffn.hc_pre", span)
                .help("see the paths with `ds4c explain PLAN`"));
        }
        let text = match (&self.why_not, &self.region) {
            (Some(pair), _) => self.refused(&report, pair)?,
            (None, Some(name)) => {
                let found = report.find(name).ok_or_else(|| unknown(&file, name))?;
                if self.json { format!("{:#}\n", report.json(found)) } else { report.text(found) }
            }
            (None, None) if self.json => report.all_json(self.once.as_deref()),
            (None, None) => report.all_text(self.once.as_deref()),
        };
        super::print(&text)
    }

    fn refused(&self, report: &Report<'_>, pair: &[String]) -> Result<String, Diagnostic> {
        let file = self.plan.display().to_string();
        let fusion = report.step.plan.option("fusion").filter(|&name| name != "off").ok_or_else(|| {
            Diagnostic::new(codes::OPTION_NO_EFFECT, "nothing was joined in this plan, so nothing was refused")
                .at(Place::file(&file))
                .wanted("a plan of `ds4c compile --fuse exact`", "a plan compiled without fusion")
                .help("compile the model with `--fuse exact`")
        })?;
        let value = |name: &String| report.value(name).ok_or_else(|| unknown(&file, name));
        let (a, b) = (value(&pair[0])?, value(&pair[1])?);
        if self.profile.is_none() && !Profile::names().any(|name| name == fusion) {
            return Err(Diagnostic::new(
                codes::PROFILE,
                "the plan was fused for a profile of a file, which it does not hold",
            )
            .at(Place::file(&file))
            .wanted("the file of that profile", fusion)
            .help("give the file with --profile FILE"));
        }
        let profile = Profile::find(self.profile.as_deref().unwrap_or(fusion))?;
        let lists = &report.step.lists.launches;
        let answer = why_not(&report.step.graph, report.step.bounds, &profile, lists, [a, b]).text();
        Ok(match self.json {
            true => format!("{:#}\n", json!({ "a": a.0, "b": b.0, "answer": answer })),
            false => format!("{a} and {b}: {answer}\n"),
        })
    }
}

fn unknown(file: &str, name: &str) -> Diagnostic {
    Diagnostic::new(codes::REGION_UNKNOWN, "the plan has no such region or value at this entry point")
        .at(Place::file(file))
        .wanted("a region such as 12.0, or a value that a launch computes: an id such as v120, or a name", name)
        .help("see the regions with `ds4c explain PLAN`, the names with `ds4c show PLAN --taps`")
}

/// The launches of an entry point.
struct Report<'a> {
    step: Step<'a>,
}

impl Report<'_> {
    /// A value that a launch computes, by its id or its name.
    fn value(&self, name: &str) -> Option<Value> {
        let graph = &self.step.graph;
        let named = graph.named.iter().chain(graph.outputs).find(|row| graph.name(row.name) == name);
        let id = || name.strip_prefix('v')?.parse().ok().map(Value).filter(|v| (v.0 as usize) < graph.len());
        let mut v = named.map(|row| row.value).or_else(id)?;
        while named.is_some() && graph.op(v).is_view() {
            v = graph.args(v)[0];
        }
        self.step.lists.first(v).map(|_| v)
    }

    /// Whether a value stands in a span of this name.
    fn has_span(&self, name: &str) -> bool {
        self.step.graph.values().any(|v| self.step.span(v).split('.').any(|part| part == name))
    }

    fn find(&self, name: &str) -> Option<Found> {
        if let Some(v) = self.value(name) {
            return self.step.lists.first(v);
        }
        let (launch, region) = name.split_once('.')?;
        let found = (launch.parse().ok()?, region.parse().ok()?);
        self.step.all().any(|known| known == found).then_some(found)
    }

    /// The rule by which a value is in its region.
    fn rule(&self, found: Found, v: Value) -> String {
        let inside = |operand: &Value| {
            let mut at = *operand;
            while self.step.graph.op(at).is_view() {
                at = self.step.graph.args(at)[0];
            }
            self.step.values(found).binary_search(&at).is_ok().then_some(at)
        };
        let mut read: Vec<Value> = self.step.graph.args(v).iter().filter_map(inside).collect();
        read.sort();
        read.dedup();
        let read = read.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        let also = self.step.also(found, v);
        match (read.is_empty(), also.is_empty()) {
            (true, true) => "begins".into(),
            (false, true) => format!("absorb: reads {read}"),
            (_, false) if also.len() > 3 => format!("duplicate: also in {} regions", also.len()),
            (_, false) => format!(
                "duplicate: also in {}",
                also.iter().map(|(launch, region)| format!("{launch}.{region}")).collect::<Vec<_>>().join(" ")
            ),
        }
    }

    fn head(&self, found: Found) -> String {
        let values = self.step.values(found);
        let Some(&last) = values.last() else { return String::new() };
        let tiles = self.step.tiles(found);
        let tiles = tiles.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "{}.{:<3} {:>3} values  {:>3} launches before  {:>10} no longer stored  {last} {} by [{tiles}]  {}",
            found.0,
            found.1,
            values.len(),
            self.step.before(found),
            size(self.step.saved(found)),
            self.step.typed(last),
            self.step.name(found)
        )
    }

    fn text(&self, found: Found) -> String {
        let mut text = self.head(found) + "\n";
        let beside = self.step.regions(found.0).count() - 1;
        if beside > 0 {
            let _ = writeln!(text, "pair: side by side with {beside} other regions of launch {}", found.0);
        }
        let reads = self.step.lists.reads(self.step.values(found)).into_iter().map(|read| ("reads", read));
        let writes = self.step.written(found).map(|write| ("writes", write));
        for (what, (source, bytes)) in reads.chain(writes) {
            let (kind, name) = (self.step.source_kind(source), self.step.source_name(source));
            let _ = writeln!(text, "{what:<6} {:>10}  {kind} {name}", size(bytes));
        }
        for &v in self.step.values(found) {
            let op = self.step.graph.op(v).name();
            let stored = if self.step.lists.is_stored(v) { "stored" } else { "" };
            let path = self.step.span(v);
            let _ = writeln!(
                text,
                "  {v:<7} {op:<9} {:<34} {stored:<7} {:<28} {path}",
                self.step.typed(v),
                self.rule(found, v)
            );
        }
        text
    }

    fn all_text(&self, once: Option<&str>) -> String {
        let mut text = String::new();
        for found in self.step.all() {
            text += &self.head(found);
            text.push('\n');
        }
        text + &parts_text(&self.step, once)
    }

    fn json(&self, found: Found) -> Json {
        let value = |&v: &Value| {
            json!({
                "value": v.0,
                "op": self.step.graph.op(v).name(),
                "type": self.step.typed(v),
                "span": self.step.span(v),
                "stored": self.step.lists.is_stored(v),
                "rule": self.rule(found, v),
            })
        };
        let moved = |(source, bytes): (Source, u64)| json!({ "kind": self.step.source_kind(source), "name": self.step.source_name(source), "bytes": bytes });
        json!({
            "launch": found.0,
            "region": found.1,
            "name": self.step.name(found),
            "launches_before": self.step.before(found),
            "bytes_saved": self.step.saved(found),
            "reads": self.step.lists.reads(self.step.values(found)).into_iter().map(moved).collect::<Vec<_>>(),
            "writes": self.step.written(found).map(moved).collect::<Vec<_>>(),
            "tiles": self.step.tiles(found),
            "values": self.step.values(found).iter().map(value).collect::<Vec<_>>(),
        })
    }

    fn all_json(&self, once: Option<&str>) -> String {
        let regions: Vec<Json> = self.step.all().map(|found| self.json(found)).collect();
        let parts = Parts::new(&self.step);
        let kind = |kind: &Kind| {
            let example = &parts.parts[kind.parts[0]];
            json!({
                "name": parts.names(kind),
                "is_layer": example.is_layer(),
                "marks": kind.marks,
                "parts": kind.parts.len(),
                "launches": kind.parts.iter().map(|&part| &parts.parts[part].launches).collect::<Vec<_>>(),
                "each": sums_json(&parts.sums(&self.step, example)),
                "all": sums_json(&parts.kind_sums(&self.step, kind)),
            })
        };
        let report = json!({
            "launches": self.step.launches(),
            "launches_before": self.step.launches_before(),
            "launches_with_once": once.map(|name| self.step.launches() - parts.split(&self.step, name)),
            "layers": parts.layers.len(),
            "launches_outside": parts.outside(),
            "bytes": sums_json(&parts.all_sums(&self.step)),
            "kinds": parts.kinds.iter().map(kind).collect::<Vec<_>>(),
            "regions": regions,
        });
        format!("{report:#}\n")
    }
}

/// Launches and bytes of each kind of layer and boundary, and of the step.
fn parts_text(step: &Step<'_>, once: Option<&str>) -> String {
    let parts = Parts::new(step);
    let mut text = format!(
        "\nlaunches and bytes of each kind of layer, and outside of layers; bytes at the largest extents of {}\n{:>5}  {:>16}  \
         {:>24}  {:>24}\n",
        step.plan.str(step.entry.name),
        "times",
        "launches",
        "weights read",
        "values and states moved"
    );
    let mut line = |times: usize, sums: &Sums, name: &str| {
        let _ = writeln!(
            text,
            "{times:>5}  {:>6} -> {:>6}  {:>10} -> {:>10}  {:>10} -> {:>10}  {name}",
            sums.launches_before,
            sums.launches,
            size(sums.before.weights),
            size(sums.after.weights),
            size(sums.before.activations()),
            size(sums.after.activations()),
        );
    };
    for kind in &parts.kinds {
        let marks = if kind.marks.is_empty() { String::new() } else { format!(" (with {})", kind.marks.join(", ")) };
        line(kind.parts.len(), &parts.sums(step, &parts.parts[kind.parts[0]]), &(parts.names(kind) + &marks));
    }
    line(1, &parts.all_sums(step), "the step");
    let layers = parts.layers.len();
    let average = |launches: usize| match layers {
        0 => String::new(),
        _ => {
            let average = (launches - parts.outside()) as f64 / layers as f64;
            format!("; {average:.2} for each of {layers} layers, {} outside of layers", parts.outside())
        }
    };
    let launches = step.launches();
    text += &format!("{launches} launches; {} without fusion{}\n", step.launches_before(), average(launches));
    if let Some(name) = once {
        let launches = launches - parts.split(step, name);
        text += &format!("{launches} with a {name} that is divided counted once{}\n", average(launches));
    }
    text
}

fn sums_json(sums: &Sums) -> Json {
    let traffic = |traffic: &Traffic| {
        json!({
            "weights_read": traffic.weights,
            "states_read": traffic.states_read,
            "states_written": traffic.states_written,
            "values_read": traffic.values_read,
            "values_written": traffic.values_written,
        })
    };
    json!({
        "launches_before": sums.launches_before,
        "launches": sums.launches,
        "bytes_before": traffic(&sums.before),
        "bytes": traffic(&sums.after),
    })
}
