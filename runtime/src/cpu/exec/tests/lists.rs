//! Launches of test plans: every value alone, as much as possible together, or any regions in any order.

use std::collections::BTreeSet;

use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::SlotRow;
use ds4_ir::plan::layout::layouts;
use ds4_ir::{Bounds, Op};

use super::Random;

/// How a test plan stores values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storing {
    /// Every value has a slot, gathers too; one launch each.
    All,
    /// Gathers of weights and those whose readers are products have none.
    Absorbed,
    /// One launch for all between two writes; only what other launches read, outputs and named values have slots.
    Fused,
    /// Regions by chance from this seed, several in a launch, with duplicates, the launches in any order that is allowed.
    Regions(u64),
}

/// Launches as lists of regions, and the values that have slots, ascending.
pub(crate) struct Lists {
    pub(crate) launches: Vec<Vec<Vec<Value>>>,
    pub(crate) stored: Vec<Value>,
}

impl Lists {
    pub(crate) fn of(graph: &Graph<'_>, bounds: Bounds, storing: Storing) -> Lists {
        let computed: Vec<Value> = graph.values().filter(|&v| is_computed(graph, v, storing)).collect();
        let is_write = |v: &Value| graph.op(*v) == Op::Write;
        match storing {
            Storing::All | Storing::Absorbed => {
                let stored = computed.iter().copied().filter(|v| !is_write(v)).collect();
                Lists::alone(graph, bounds, stored)
            }
            Storing::Fused => {
                let parts = computed.chunk_by(|a, b| !is_write(a) && !is_write(b));
                Lists::storing_what_is_read(graph, parts.map(|part| vec![part.to_vec()]).collect())
            }
            Storing::Regions(seed) => {
                Drawing { graph, random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }.lists(&computed)
            }
        }
    }

    /// Every value a launch of its own, views that strides cannot express too.
    fn alone(graph: &Graph<'_>, bounds: Bounds, mut stored: Vec<Value>) -> Lists {
        loop {
            let slot = |&value: &Value| SlotRow { value, within: value, offset: 0, bytes: 0 };
            let found = layouts(graph, bounds, &stored.iter().map(slot).collect::<Vec<_>>());
            let hard = |v: &Value| graph.op(*v).is_view() && found[v.0 as usize].is_none();
            let Some(v) = graph.values().find(hard) else { break };
            stored.push(v);
            stored.sort();
        }
        let launched = graph.values().filter(|v| graph.op(*v) == Op::Write || stored.contains(v));
        Lists { launches: launched.map(|v| vec![vec![v]]).collect(), stored }
    }

    /// These launches, with slots for outputs, named values, the last values of regions, and all that a region reads
    /// without computing it.
    pub(crate) fn storing_what_is_read(graph: &Graph<'_>, launches: Vec<Vec<Vec<Value>>>) -> Lists {
        let mut read = BTreeSet::new();
        for row in graph.outputs.iter().chain(graph.named) {
            read.extend(sources(graph, row.value, &[]));
        }
        for region in launches.iter().flatten() {
            read.extend(region.last());
            for operand in region.iter().flat_map(|&v| graph.args(v)) {
                read.extend(sources(graph, *operand, region));
            }
        }
        let elsewhere = |v: &Value| matches!(graph.op(*v), Op::Read | Op::Write);
        Lists { launches, stored: read.into_iter().filter(|v| !elsewhere(v)).collect() }
    }
}

fn is_computed(graph: &Graph<'_>, v: Value, storing: Storing) -> bool {
    let op = graph.op(v);
    let leaf = matches!(op, Op::Weight | Op::Const | Op::Read);
    let named = graph.named.iter().any(|row| row.value == v);
    let weight = graph.ty(v).format().is_some();
    let absorbed = op == Op::Gather && (weight || storing == Storing::Absorbed && !named);
    !leaf && !op.is_view() && !absorbed
}

/// What a reader of `v` outside of a region reads: computed values and versions of states, through views and the gathers
/// that nothing computes.
fn sources(graph: &Graph<'_>, v: Value, region: &[Value]) -> Vec<Value> {
    let absorbed = graph.op(v) == Op::Gather && graph.ty(v).format().is_some();
    match graph.op(v) {
        Op::Weight | Op::Const => Vec::new(),
        _ if region.contains(&v) && graph.op(v) != Op::Write => Vec::new(),
        op if op.is_view() || absorbed => graph.args(v).iter().flat_map(|&a| sources(graph, a, region)).collect(),
        _ => vec![v],
    }
}

/// Draws regions by chance.
struct Drawing<'a> {
    graph: &'a Graph<'a>,
    random: Random,
}

impl Drawing<'_> {
    fn lists(&mut self, computed: &[Value]) -> Lists {
        let mut left = computed.to_vec();
        let mut there = BTreeSet::new();
        let mut launches = Vec::new();
        while !left.is_empty() {
            let regions = self.launch(&left, &there);
            left.retain(|v| !regions.iter().flatten().any(|other| other == v));
            there.extend(regions.iter().flatten().copied());
            launches.push(regions);
        }
        launches.iter_mut().flatten().for_each(|region| self.duplicate(region));
        Lists::storing_what_is_read(self.graph, launches)
    }

    /// The next launch: one write, or some regions of values that what is there allows to compute.
    fn launch(&mut self, left: &[Value], there: &BTreeSet<Value>) -> Vec<Vec<Value>> {
        let graph = self.graph;
        let mut regions: Vec<Vec<Value>> = Vec::new();
        for &v in left {
            let reads: Vec<Value> = graph.args(v).iter().flat_map(|&a| sources(graph, a, &[])).collect();
            let is_there = |r: &Value| graph.op(*r) == Op::Read || there.contains(r);
            if graph.op(v) == Op::Write {
                if regions.is_empty() && reads.iter().all(is_there) && !self.is_read(left, v) {
                    return vec![vec![v]];
                }
                continue;
            }
            let inside = |r: &Value| graph.op(*r) != Op::Write && regions.iter().flatten().any(|other| other == r);
            if !reads.iter().all(|r| is_there(r) || inside(r)) || !regions.is_empty() && self.random.below(2) == 0 {
                continue;
            }
            let (own, others): (Vec<_>, Vec<_>) =
                regions.into_iter().partition(|region| region.iter().any(|other| reads.contains(other)));
            regions = others;
            regions.push(own.into_iter().flatten().chain([v]).collect());
            regions.last_mut().unwrap().sort();
        }
        regions
    }

    /// Whether something else that is left reads the version which a write replaces.
    fn is_read(&self, left: &[Value], write: Value) -> bool {
        let graph = self.graph;
        let old = graph.args(write)[0];
        let reads = |&v: &Value| graph.args(v).iter().any(|&a| sources(graph, a, &[]).contains(&old));
        left.iter().any(|v| *v != write && reads(v))
    }

    /// Adds values to a region that it could read from memory, as long as they read no state.
    fn duplicate(&mut self, region: &mut Vec<Value>) {
        let graph = self.graph;
        for _ in 0..self.random.below(4) {
            let read: Vec<Value> =
                region.iter().flat_map(|&v| graph.args(v)).flat_map(|&a| sources(graph, a, region)).collect();
            if read.is_empty() {
                return;
            }
            let v = read[self.random.below(read.len() as u32) as usize];
            let mut operands = graph.args(v).iter().flat_map(|&a| sources(graph, a, &[]));
            let reads_state = operands.any(|s| matches!(graph.op(s), Op::Read | Op::Write));
            if !matches!(graph.op(v), Op::Read | Op::Write) && !reads_state {
                region.push(v);
                region.sort();
            }
        }
    }
}
