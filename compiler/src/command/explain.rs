//! `ds4c explain`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::layout::stored_bytes;
use ds4_ir::plan::{EntryRow, Plan, RegionRow};
use ds4_ir::text::shape_text;
use ds4_ir::{Bounds, Diagnostic, Op, Place};
use serde_json::{Value as Json, json};

use super::report::size;
use super::{EntryName, open_plan};
use crate::fuse::{Profile, why_not};
use crate::schedule::schedule;

const EXAMPLES: &str = "\
Examples:
  ds4c explain model.ds4plan
  ds4c explain model.ds4plan 12.0
  ds4c explain model.ds4plan v3209
  ds4c explain model.ds4plan --why-not v3209 v3222";

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
    /// Why two values are not computed by one launch
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "region")]
    why_not: Option<Vec<String>>,
    /// Device profile for --why-not [default: the one that the plan was fused for]
    #[arg(long, value_name = "NAME|FILE", requires = "why_not")]
    profile: Option<String>,
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
        let (_, entry) = plan.entry(self.entry.name()).ok_or_else(|| {
            Diagnostic::new(codes::PLAN_FACT, "the plan has no such entry point")
                .at(Place::file(&file))
                .wanted(self.entry.name(), "other entry points")
                .help("see the entry points with `ds4c show PLAN`")
        })?;
        let report = Report::new(graph, plan, entry);
        let text = match (&self.why_not, &self.region) {
            (Some(pair), _) => self.refused(&report, pair)?,
            (None, Some(name)) => {
                let found = report.find(name).ok_or_else(|| unknown(&file, name))?;
                if self.json { format!("{:#}\n", report.json(found)) } else { report.text(found) }
            }
            (None, None) if self.json => report.all_json(),
            (None, None) => report.all_text(),
        };
        super::print(&text)
    }

    fn refused(&self, report: &Report<'_>, pair: &[String]) -> Result<String, Diagnostic> {
        let file = self.plan.display().to_string();
        let fusion = report.plan.option("fusion").filter(|&name| name != "off").ok_or_else(|| {
            Diagnostic::new(codes::OPTION_NO_EFFECT, "nothing was joined in this plan, so nothing was refused")
                .at(Place::file(&file))
                .wanted("a plan of `ds4c compile --fuse exact`", "a plan compiled without fusion")
                .help("compile the model with `--fuse exact`")
        })?;
        let value = |name: &String| report.value(name).ok_or_else(|| unknown(&file, name));
        let (a, b) = (value(&pair[0])?, value(&pair[1])?);
        let profile = Profile::find(self.profile.as_deref().unwrap_or(fusion))?;
        let lists = report.plan.lists(report.entry);
        let answer = why_not(&report.graph, report.bounds, &profile, &lists, [a, b]).text();
        Ok(match self.json {
            true => format!("{:#}\n", json!({ "a": a.0, "b": b.0, "answer": answer })),
            false => format!("{a} and {b}: {answer}\n"),
        })
    }
}

fn unknown(file: &str, name: &str) -> Diagnostic {
    Diagnostic::new(codes::REGION_UNKNOWN, "the plan has no such region or value at this entry point")
        .at(Place::file(file))
        .wanted("a region such as 12.0, or a value that a launch computes", name)
        .help("see the regions with `ds4c explain PLAN`")
}

/// The launches of an entry point.
struct Report<'a> {
    graph: Graph<'a>,
    plan: Plan<'a>,
    entry: &'a EntryRow,
    bounds: Bounds,
    /// Values that a launch of their own would compute, were nothing fused.
    unfused: Vec<bool>,
}

/// A region: its launch, and its number there.
type Found = (usize, usize);

impl<'a> Report<'a> {
    fn new(graph: Graph<'a>, plan: Plan<'a>, entry: &'a EntryRow) -> Report<'a> {
        let bounds = plan.bounds(entry);
        let mut unfused = vec![false; graph.len()];
        for launch in schedule(&graph, bounds).lists() {
            launch.iter().filter_map(|values| values.last()).for_each(|v| unfused[v.0 as usize] = true);
        }
        Report { graph, plan, entry, bounds, unfused }
    }

    fn regions(&self, launch: usize) -> &'a [RegionRow] {
        self.plan.regions(&self.entry.launches.of(self.plan.launches)[launch])
    }

    fn launches(&self) -> usize {
        self.entry.launches.len as usize
    }

    fn all(&self) -> impl Iterator<Item = Found> + use<'_, 'a> {
        (0..self.launches()).flat_map(|launch| (0..self.regions(launch).len()).map(move |region| (launch, region)))
    }

    fn values(&self, (launch, region): Found) -> &'a [Value] {
        self.plan.values(&self.regions(launch)[region])
    }

    fn value(&self, name: &str) -> Option<Value> {
        let v = Value(name.strip_prefix('v')?.parse().ok()?);
        self.all().any(|found| self.values(found).binary_search(&v).is_ok()).then_some(v)
    }

    fn find(&self, name: &str) -> Option<Found> {
        if let Some(v) = self.value(name) {
            return self.all().find(|&found| self.values(found).binary_search(&v).is_ok());
        }
        let (launch, region) = name.split_once('.')?;
        let found = (launch.parse().ok()?, region.parse().ok()?);
        self.all().any(|known| known == found).then_some(found)
    }

    /// Launches without fusion.
    fn before(&self, found: Found) -> usize {
        self.values(found).iter().filter(|v| self.unfused[v.0 as usize]).count()
    }

    fn bytes(&self, v: Value) -> u64 {
        stored_bytes(self.graph.ty(v), &self.graph.max_extents(self.graph.value_shape[v.0 as usize], self.bounds))
            .unwrap_or(0)
    }

    fn is_stored(&self, v: Value) -> bool {
        let slots = self.entry.slots.of(self.plan.slots);
        slots.binary_search_by_key(&v, |slot| slot.value).is_ok()
    }

    /// Bytes of values that were stored and no longer are.
    fn saved(&self, found: Found) -> u64 {
        let gone = |v: &&Value| self.unfused[v.0 as usize] && !self.is_stored(**v) && self.graph.op(**v) != Op::Write;
        self.values(found).iter().filter(gone).map(|&v| self.bytes(v)).sum()
    }

    /// The other regions that compute a value, too.
    fn also(&self, found: Found, v: Value) -> Vec<String> {
        let others = self.all().filter(|&other| other != found && self.values(other).binary_search(&v).is_ok());
        others.map(|(launch, region)| format!("{launch}.{region}")).collect()
    }

    /// What a region is called after: the span that all of its values that are launched have in common.
    fn name(&self, found: Found) -> String {
        let paths: Vec<String> = self
            .values(found)
            .iter()
            .filter(|v| self.unfused[v.0 as usize])
            .map(|v| self.graph.span_path(self.graph.value_span[v.0 as usize]))
            .collect();
        let Some(first) = paths.first() else { return String::new() };
        let mut common: Vec<&str> = first.split('.').collect();
        for path in &paths {
            let same = path.split('.').zip(&common).take_while(|(a, b)| a == *b).count();
            common.truncate(same);
        }
        common.join(".")
    }

    fn typed(&self, v: Value) -> String {
        format!("{}{}", self.graph.ty(v).name(), shape_text(self.graph.dims, self.graph.dims_of(v)))
    }

    /// The rule by which a value is in its region.
    fn rule(&self, found: Found, v: Value) -> String {
        let inside = |operand: &Value| {
            let mut at = *operand;
            while self.graph.op(at).is_view() {
                at = self.graph.args(at)[0];
            }
            self.values(found).binary_search(&at).is_ok().then_some(at)
        };
        let mut read: Vec<Value> = self.graph.args(v).iter().filter_map(inside).collect();
        read.sort();
        read.dedup();
        let read = read.iter().map(Value::to_string).collect::<Vec<_>>().join(" ");
        let also = self.also(found, v);
        match (read.is_empty(), also.is_empty()) {
            (true, true) => "begins".into(),
            (false, true) => format!("absorb: reads {read}"),
            (_, false) if also.len() > 3 => format!("duplicate: also in {} regions", also.len()),
            (_, false) => format!("duplicate: also in {}", also.join(" ")),
        }
    }

    fn head(&self, found: Found) -> String {
        let values = self.values(found);
        let Some(&last) = values.last() else { return String::new() };
        let tiles = self.plan.tiles(&self.regions(found.0)[found.1]);
        let tiles = tiles.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "{}.{:<3} {:>3} values  {:>3} launches before  {:>10} no longer stored  {last} {} by [{tiles}]  {}",
            found.0,
            found.1,
            values.len(),
            self.before(found),
            size(self.saved(found)),
            self.typed(last),
            self.name(found)
        )
    }

    fn text(&self, found: Found) -> String {
        let mut text = self.head(found) + "\n";
        let beside = self.regions(found.0).len() - 1;
        if beside > 0 {
            let _ = writeln!(text, "pair: side by side with {beside} other regions of launch {}", found.0);
        }
        for &v in self.values(found) {
            let op = self.graph.op(v).name();
            let stored = if self.is_stored(v) { "stored" } else { "" };
            let path = self.graph.span_path(self.graph.value_span[v.0 as usize]);
            let _ =
                writeln!(text, "  {v:<7} {op:<9} {:<34} {stored:<7} {:<28} {path}", self.typed(v), self.rule(found, v));
        }
        text
    }

    fn all_text(&self) -> String {
        let mut text = String::new();
        for found in self.all() {
            text += &self.head(found);
            text.push('\n');
        }
        let before = self.unfused.iter().filter(|&&launched| launched).count();
        text + &format!("{} launches; {before} without fusion\n", self.launches())
    }

    fn json(&self, found: Found) -> Json {
        let value = |&v: &Value| {
            json!({
                "value": v.0,
                "op": self.graph.op(v).name(),
                "type": self.typed(v),
                "span": self.graph.span_path(self.graph.value_span[v.0 as usize]),
                "stored": self.is_stored(v),
                "rule": self.rule(found, v),
            })
        };
        json!({
            "launch": found.0,
            "region": found.1,
            "name": self.name(found),
            "launches_before": self.before(found),
            "bytes_saved": self.saved(found),
            "tiles": self.plan.tiles(&self.regions(found.0)[found.1]),
            "values": self.values(found).iter().map(value).collect::<Vec<_>>(),
        })
    }

    fn all_json(&self) -> String {
        let regions: Vec<Json> = self.all().map(|found| self.json(found)).collect();
        let before = self.unfused.iter().filter(|&&launched| launched).count();
        format!("{:#}\n", json!({ "launches": self.launches(), "launches_before": before, "regions": regions }))
    }
}
