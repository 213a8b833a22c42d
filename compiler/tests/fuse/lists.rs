//! The lists of launches as a table, and what must hold of them whatever the graph is.

use std::collections::{BTreeMap, BTreeSet};

use ds4_compiler::fuse::Found;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::op::Op;

/// Launches, regions and their values.
pub struct Lists<'a> {
    graph: Graph<'a>,
    /// Launch and values of each region, in the order of the launches.
    pub regions: Vec<(usize, Vec<Value>)>,
    /// Number of launches.
    pub launches: usize,
}

impl<'a> Lists<'a> {
    /// The lists of a result.
    pub fn of(graph: Graph<'a>, found: &Found) -> Lists<'a> {
        let regions = found.launches.iter().enumerate();
        let regions = regions.flat_map(|(i, launch)| launch.regions.iter().map(move |r| (i, r.values.clone())));
        Lists { graph, regions: regions.collect(), launches: found.launches.len() }
    }

    /// The plan without fusion: each value that is needed is a launch.
    pub fn apart(graph: Graph<'a>) -> Lists<'a> {
        let none = Lists { graph, regions: Vec::new(), launches: 0 };
        let regions: Vec<_> = none.needed().into_iter().enumerate().map(|(i, v)| (i, vec![v])).collect();
        Lists { launches: regions.len(), regions, ..none }
    }

    /// All values in one region, as no order would allow it.
    pub fn whole(graph: Graph<'a>) -> Lists<'a> {
        let none = Lists { graph, regions: Vec::new(), launches: 0 };
        Lists { launches: 1, regions: vec![(0, none.needed().into_iter().collect())], ..none }
    }

    /// What has to be computed, for outputs, named values and states.
    fn needed(&self) -> BTreeSet<Value> {
        let mut needed = self.kept();
        for v in self.graph.values().rev() {
            if needed.contains(&v) {
                needed.extend(self.reads(v));
            }
        }
        needed.retain(|&v| !self.is_given(v));
        needed
    }

    /// The value whose elements a view shows.
    pub fn base(&self, v: Value) -> Value {
        let mut at = v;
        while self.graph.op(at).is_view() {
            at = self.graph.args(at)[0];
        }
        at
    }

    /// Regions that compute a value.
    pub fn computing(&self, v: Value) -> impl Iterator<Item = usize> + '_ {
        (0..self.regions.len()).filter(move |&r| self.lists(r, v))
    }

    /// Launches that compute a value, ascending, each once.
    pub fn launches_of(&self, v: Value) -> BTreeSet<usize> {
        self.computing(v).map(|r| self.regions[r].0).collect()
    }

    fn lists(&self, region: usize, v: Value) -> bool {
        self.regions[region].1.contains(&v)
    }

    /// What a value reads, behind its views.
    fn reads(&self, v: Value) -> impl Iterator<Item = Value> + '_ {
        self.graph.args(v).iter().map(|&arg| self.base(arg))
    }

    /// Whether memory holds the value before the step begins.
    fn is_given(&self, v: Value) -> bool {
        matches!(self.graph.op(v), Op::Weight | Op::Const | Op::Read | Op::Tokens)
    }

    /// Outputs, named values and versions of states.
    fn kept(&self) -> BTreeSet<Value> {
        let named = self.graph.outputs.iter().chain(self.graph.named).map(|row| self.base(row.value));
        named.chain(self.graph.values().filter(|&v| self.graph.op(v) == Op::Write)).collect()
    }

    /// Whether a value has memory of its own.
    pub fn is_stored(&self, v: Value) -> bool {
        let read_outside =
            |r: usize| self.regions[r].1.iter().any(|&by| self.reads(by).any(|x| x == v)) && !self.lists(r, v);
        self.kept().contains(&v) || (0..self.regions.len()).any(read_outside)
    }

    /// All that is wrong with the lists: values that are missing, read too early, computed for nothing, or states that are
    /// written under their readers.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.order_faults(&mut faults);
        self.cover_faults(&mut faults);
        self.read_faults(&mut faults);
        self.waste_faults(&mut faults);
        self.state_faults(&mut faults);
        faults
    }

    /// Lists ascend.
    fn order_faults(&self, faults: &mut Vec<String>) {
        for (launch, values) in &self.regions {
            if values.is_empty() || values.windows(2).any(|pair| pair[0] >= pair[1]) {
                faults.push(format!("a region of launch {launch} is no ascending list: {values:?}"));
            }
            for v in values.iter().filter(|&&v| self.is_given(v) && self.graph.op(v) != Op::Tokens) {
                faults.push(format!("launch {launch} computes {v}, which is given"));
            }
        }
        let filled: BTreeSet<usize> = self.regions.iter().map(|(launch, _)| *launch).collect();
        if filled.len() != self.launches {
            faults.push("a launch has no region".into());
        }
    }

    /// What outputs, named values and states need is computed.
    fn cover_faults(&self, faults: &mut Vec<String>) {
        for v in self.needed() {
            if self.computing(v).next().is_none() {
                faults.push(format!("no region computes {v}"));
            }
        }
    }

    /// A region reads what it computes itself or an earlier launch did.
    fn read_faults(&self, faults: &mut Vec<String>) {
        for (r, (launch, values)) in self.regions.iter().enumerate() {
            for &by in values {
                for read in self.reads(by).filter(|&x| !self.is_given(x) && !self.lists(r, x)) {
                    if self.launches_of(read).first().is_none_or(|first| first >= launch) {
                        faults.push(format!("{by} in launch {launch} reads {read}, which no earlier launch computes"));
                    }
                }
            }
        }
    }

    /// A region reads what it lists, or keeps it for others; one of them is enough for that.
    fn waste_faults(&self, faults: &mut Vec<String>) {
        let mut kept_by: BTreeMap<Value, usize> = BTreeMap::new();
        for (launch, values) in &self.regions {
            for &v in values.iter().filter(|&&v| !values.iter().any(|&by| self.reads(by).any(|x| x == v))) {
                *kept_by.entry(v).or_default() += 1;
                if !self.is_stored(v) {
                    faults.push(format!("launch {launch} computes {v} for nothing"));
                }
            }
        }
        for (v, _) in kept_by.into_iter().filter(|&(_, times)| times > 1) {
            faults.push(format!("several regions compute {v} for others only"));
        }
    }

    /// A write happens once, behind all readers of the version that it replaces and before those of its own.
    fn state_faults(&self, faults: &mut Vec<String>) {
        for write in self.graph.values().filter(|&v| self.graph.op(v) == Op::Write) {
            let replaced = self.base(self.graph.args(write)[0]);
            if self.computing(write).count() > 1 {
                faults.push(format!("{write} is written more than once"));
            }
            for at in self.launches_of(write) {
                for (launch, values) in &self.regions {
                    for &by in values.iter().filter(|&&by| by != write) {
                        if *launch >= at && self.reads(by).any(|x| x == replaced) {
                            faults.push(format!(
                                "{by} in launch {launch} reads {replaced}, which {write} replaces in launch {at}"
                            ));
                        }
                        if *launch <= at && self.reads(by).any(|x| x == write) {
                            faults.push(format!("{by} in launch {launch} reads {write} of launch {at}"));
                        }
                    }
                }
            }
        }
    }
}
