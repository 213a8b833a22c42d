//! The step of an entry point as people ask for it: its regions, what they read and write, and which launches are alike.
//!
//! [`traffic`] counts bytes, [`parts`] divides the launches by layers. `ds4c explain` prints it, [`crate::picture`] draws it.

pub mod parts;
#[cfg(test)]
pub(crate) mod tests;
pub mod traffic;

use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::{EntryRow, LaunchRow, Plan};
use ds4_ir::text::shape_text;
use ds4_ir::{Bounds, Op};

pub use traffic::{Found, Lists, Source, Traffic, size};

use crate::schedule::schedule;

/// The launches of an entry point of a verified plan.
pub struct Step<'a> {
    /// The graph.
    pub graph: Graph<'a>,
    /// The plan.
    pub plan: Plan<'a>,
    /// The entry point.
    pub entry: &'a EntryRow,
    /// Its bounds.
    pub bounds: Bounds,
    /// Its regions.
    pub lists: Lists<'a>,
    /// What the launch of each value would move, were nothing fused; none where it would not be launched.
    unfused: Vec<Option<Traffic>>,
    /// For each launch the values whose own launches it does the work of.
    owned: Vec<Vec<Value>>,
}

impl<'a> Step<'a> {
    /// The step of an entry point.
    pub fn new(graph: Graph<'a>, plan: Plan<'a>, entry: &'a EntryRow) -> Step<'a> {
        let bounds = plan.bounds(entry);
        let slots = entry.slots.of(plan.slots).iter().map(|slot| slot.value);
        let lists = Lists::new(graph, bounds, plan.lists(entry), slots);
        let unfused = unfused(graph, bounds);
        let mut owned = vec![Vec::new(); lists.launches.len()];
        for (v, owner) in graph.values().zip(owners(&graph, &lists)) {
            match owner {
                Some(launch) if unfused[v.0 as usize].is_some() => owned[launch].push(v),
                _ => {}
            }
        }
        Step { graph, plan, entry, bounds, lists, unfused, owned }
    }

    /// Number of launches.
    pub fn launches(&self) -> usize {
        self.lists.launches.len()
    }

    /// Number of launches, were nothing fused.
    pub fn launches_before(&self) -> usize {
        self.unfused.iter().flatten().count()
    }

    /// The row of a launch.
    pub fn launch(&self, launch: usize) -> &'a LaunchRow {
        &self.entry.launches.of(self.plan.launches)[launch]
    }

    /// The regions of a launch.
    pub fn regions(&self, launch: usize) -> impl Iterator<Item = Found> + use<> {
        (0..self.lists.launches[launch].len()).map(move |region| (launch, region))
    }

    /// All regions.
    pub fn all(&self) -> impl Iterator<Item = Found> + use<'_, 'a> {
        (0..self.launches()).flat_map(|launch| self.regions(launch))
    }

    /// The values of a region.
    pub fn values(&self, (launch, region): Found) -> &'a [Value] {
        self.lists.launches[launch][region]
    }

    /// How the last value of a region is split.
    pub fn tiles(&self, (launch, region): Found) -> &'a [u32] {
        self.plan.tiles(&self.plan.regions(self.launch(launch))[region])
    }

    /// Whether a launch of its own would compute the value, were nothing fused.
    pub fn is_launched_alone(&self, v: Value) -> bool {
        self.unfused[v.0 as usize].is_some()
    }

    /// The values whose work a launch does, of those that would be launched, were nothing fused.
    pub fn owned(&self, launch: usize) -> &[Value] {
        &self.owned[launch]
    }

    /// What the work of a launch would move, were nothing fused.
    pub fn traffic_before(&self, launch: usize) -> Traffic {
        let mut sum = Traffic::default();
        self.owned(launch).iter().filter_map(|v| self.unfused[v.0 as usize]).for_each(|traffic| sum += traffic);
        sum
    }

    /// What a launch moves.
    pub fn traffic(&self, launch: usize) -> Traffic {
        let mut sum = Traffic::default();
        self.regions(launch).for_each(|found| sum += self.lists.traffic(found));
        sum
    }

    /// Launches that the values of a region would be, were nothing fused.
    pub fn before(&self, found: Found) -> usize {
        self.values(found).iter().filter(|&&v| self.is_launched_alone(v)).count()
    }

    /// Bytes of values of a region that were stored and no longer are.
    pub fn saved(&self, found: Found) -> u64 {
        let gone =
            |v: &&Value| self.is_launched_alone(**v) && !self.lists.is_stored(**v) && self.graph.op(**v) != Op::Write;
        self.values(found).iter().filter(gone).map(|&v| self.lists.bytes(v)).sum()
    }

    /// The other regions that compute a value, too.
    pub fn also(&self, found: Found, v: Value) -> Vec<Found> {
        self.all().filter(|&other| other != found && self.values(other).binary_search(&v).is_ok()).collect()
    }

    /// The span of a value.
    pub fn span(&self, v: Value) -> String {
        self.graph.span_path(self.graph.value_span[v.0 as usize])
    }

    /// Type and shape of a value.
    pub fn typed(&self, v: Value) -> String {
        format!("{}{}", self.graph.ty(v).name(), shape_text(self.graph.dims, self.graph.dims_of(v)))
    }

    /// What a region is called after: the span that all of its values that are launched have in common.
    pub fn name(&self, found: Found) -> String {
        let launched = self.values(found).iter().filter(|&&v| self.is_launched_alone(v));
        common(launched.map(|&v| self.span(v)))
    }

    /// What a region writes, as what others read.
    pub fn written(&self, found: Found) -> impl Iterator<Item = (Source, u64)> + use<> {
        self.lists.writes(found).into_iter().map(|(v, bytes)| (Source::Value(v), bytes))
    }

    /// What kind of thing a source of a region is.
    pub fn source_kind(&self, source: Source) -> &'static str {
        match source {
            Source::Weight(_) => "weight",
            Source::Constant(_) => "table",
            Source::State(_) => "state",
            Source::Value(v) if self.graph.op(v) == Op::Write => "state",
            Source::Value(_) => "value",
        }
    }

    /// What a source of a region is called.
    pub fn source_name(&self, source: Source) -> String {
        match source {
            Source::Weight(w) => self.graph.name(self.graph.weights[w.0 as usize].name).to_string(),
            Source::Constant(c) => self.graph.name(self.graph.constants[c.0 as usize].name).to_string(),
            Source::State(s) => self.graph.name(self.graph.states[s.0 as usize].name).to_string(),
            Source::Value(v) => match self.graph.state_of(v) {
                Some(s) => format!("{v} {}", self.graph.name(self.graph.states[s.0 as usize].name)),
                None => v.to_string(),
            },
        }
    }
}

/// The path that all paths begin with.
pub(crate) fn common(mut paths: impl Iterator<Item = String>) -> String {
    let Some(first) = paths.next() else { return String::new() };
    let mut common: Vec<&str> = first.split('.').collect();
    for path in paths {
        let same = path.split('.').zip(&common).take_while(|(a, b)| a == *b).count();
        common.truncate(same);
    }
    common.join(".")
}

/// What the launch of each value would move, were nothing fused.
fn unfused(graph: Graph<'_>, bounds: Bounds) -> Vec<Option<Traffic>> {
    let schedule = schedule(&graph, bounds);
    let lists = Lists::new(graph, bounds, schedule.lists(), schedule.slots.iter().map(|slot| slot.value));
    let mut unfused = vec![None; graph.len()];
    for (launch, regions) in lists.launches.iter().enumerate() {
        for (region, values) in regions.iter().enumerate() {
            let Some(last) = values.last() else { continue };
            unfused[last.0 as usize] = Some(lists.traffic((launch, region)));
        }
    }
    unfused
}

/// The launch that computes each value first; for what no launch lists, such as a view that strides express by now, the
/// owner of its first reader.
fn owners(graph: &Graph<'_>, lists: &Lists<'_>) -> Vec<Option<usize>> {
    let mut owners: Vec<Option<usize>> = graph.values().map(|v| lists.first(v).map(|found| found.0)).collect();
    for v in graph.values().rev() {
        for &operand in graph.args(v) {
            if lists.first(operand).is_none() && owners[v.0 as usize].is_some() {
                owners[operand.0 as usize] = owners[v.0 as usize];
            }
        }
    }
    owners
}
