//! The launches of an entry point: the cheapest way through the depths.

use std::collections::{BTreeSet, HashMap};

use ds4_ir::graph::Value;

use super::cost::{Cost, Scene};
use super::pack::pack;
use super::regions::{Known, Planned, Unfit, best, regions};
use super::signature::signature;

/// Depths that one launch spans at most.
const SPAN: usize = 8;

/// Regions side by side, and what they cost.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The regions.
    pub regions: Vec<Planned>,
    /// Microseconds.
    pub time: f64,
}

/// A set of nodes that could not be one launch.
#[derive(Clone, Debug)]
pub struct Declined {
    /// The nodes, ascending.
    pub nodes: Vec<Value>,
    /// Why.
    pub why: Unfit,
}

/// What a search found.
#[derive(Default)]
pub struct Found {
    /// The launches, in their order.
    pub launches: Vec<Launch>,
    /// Sets of nodes that were tried.
    pub tried: usize,
    /// Sets that were answered from equal ones.
    pub repeated: usize,
    /// Sets of nodes that are no launch.
    pub declined: Vec<Declined>,
}

/// The cheapest launches for nodes in the order of their depths. `known` serves further searches of the same scene.
pub fn shortest(scene: &Scene<'_>, known: &mut Known, levels: &[Vec<Value>]) -> Found {
    let mut search = Search { scene, known, memory: HashMap::new(), found: Found::default() };
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    let mut chosen: Vec<Vec<Launch>> = vec![Vec::new()];
    for end in 1..=levels.len() {
        let mut least: Option<(f64, usize, Vec<Launch>)> = None;
        for span in 1..=SPAN.min(end) {
            let mut set: Vec<Value> = levels[end - span..end].concat();
            set.sort();
            let launches = match search.launches(&set) {
                Ok(launches) => launches,
                Err(why) => {
                    search.found.declined.push(Declined { nodes: set.clone(), why });
                    if span > 1 {
                        continue;
                    }
                    search.cut(&set)
                }
            };
            let time = best[end - span].0 + time(&launches);
            if least.as_ref().is_none_or(|(known, ..)| time < *known) {
                least = Some((time, end - span, launches));
            }
        }
        let (time, from, launches) = least.expect("invariant: a single depth has launches");
        best.push((time, from));
        chosen.push(launches);
    }
    let mut order = Vec::new();
    let mut at = levels.len();
    while at > 0 {
        order.push(at);
        at = best[at].1;
    }
    let launches: Vec<Launch> = order.into_iter().rev().flat_map(|at| std::mem::take(&mut chosen[at])).collect();
    search.found.launches = search.joined(launches);
    search.found
}

/// A node in a launch of its own; without a split where there is no region of it, which whoever makes its kernel then tells.
pub fn alone(scene: &Scene<'_>, known: &mut Known, v: Value) -> Launch {
    let region = best(scene, known, &[v]).unwrap_or_else(|_| {
        let values = scene.nodes.with_free(&scene.graph, &[v]);
        Planned { values, tiles: Vec::new(), cost: Cost::default(), arguments: BTreeSet::new() }
    });
    Launch { time: scene.launch_time([&region.cost].into_iter()), regions: vec![region] }
}

fn time(launches: &[Launch]) -> f64 {
    launches.iter().map(|launch| launch.time).sum()
}

struct Search<'s, 'a> {
    scene: &'s Scene<'a>,
    known: &'s mut Known,
    /// What equal sets gave: regions with values as places in the set and what it makes itself.
    memory: HashMap<Vec<u32>, Result<Vec<Vec<Recipe>>, Unfit>>,
    found: Found,
}

/// A region of a set by places.
#[derive(Clone)]
struct Recipe {
    nodes: Vec<usize>,
    tiles: Vec<u32>,
    cost: Cost,
}

impl Search<'_, '_> {
    fn launches(&mut self, set: &[Value]) -> Result<Vec<Launch>, Unfit> {
        self.found.tried += 1;
        let key = signature(self.scene, set);
        if let Some(known) = self.memory.get(&key) {
            self.found.repeated += 1;
            return known.clone().map(|launches| self.rebuilt(set, &launches));
        }
        let result = regions(self.scene, self.known, set).map(|found| self.least(set, found));
        let recipes = result.as_ref().map_err(Clone::clone).map(|launches| {
            let recipe = |region: &Planned| Recipe {
                nodes: (0..set.len()).filter(|&i| region.values.binary_search(&set[i]).is_ok()).collect(),
                tiles: region.tiles.clone(),
                cost: region.cost,
            };
            launches.iter().map(|launch| launch.regions.iter().map(recipe).collect()).collect()
        });
        self.memory.insert(key, recipes);
        result
    }

    /// The regions of a set in as few launches as they fit, or, where that takes less time, what several of them would compute in
    /// launches before the others.
    fn least(&mut self, set: &[Value], found: Vec<Planned>) -> Vec<Launch> {
        let lists = |v: &Value| found.iter().filter(|region| region.values.binary_search(v).is_ok()).count();
        let (shared, rest): (Vec<Value>, Vec<Value>) = set.iter().partition(|v| lists(v) > 1);
        let packed = pack(self.scene, found).into_iter().map(|regions| self.timed(regions)).collect();
        if shared.is_empty() || rest.is_empty() {
            return packed;
        }
        match (self.launches(&shared), self.launches(&rest)) {
            (Ok(first), Ok(then)) if time(&first) + time(&then) < time(&packed) => [first, then].concat(),
            _ => packed,
        }
    }

    /// Launches with neighbours joined where that takes less time: those of a depth that was cut, and the last of one depth with
    /// the first of the next.
    fn joined(&mut self, launches: Vec<Launch>) -> Vec<Launch> {
        let mut kept: Vec<Launch> = Vec::new();
        for launch in launches {
            kept.push(launch);
            while let Some((at, pair)) = kept.len().checked_sub(2).map(|at| (at, &kept[at..])) {
                let values = pair.iter().flat_map(|launch| &launch.regions).flat_map(|region| &region.values);
                let mut set: Vec<Value> = values.copied().filter(|&v| self.scene.nodes.is_node(v)).collect();
                set.sort();
                set.dedup();
                let apart = time(pair);
                match self.launches(&set) {
                    Ok(found) if time(&found) < apart => {
                        kept.truncate(at);
                        kept.extend(found);
                    }
                    _ => break,
                }
            }
        }
        kept
    }

    /// Nodes in an order that keeps to their needs and does not depend on ids: by how many others of the set lie below them, one on
    /// the other, then by what they compute.
    fn in_order(&self, set: &[Value]) -> Vec<Value> {
        let mut heights: HashMap<Value, u32> = HashMap::with_capacity(set.len());
        for &v in set {
            let below = self.scene.nodes.needs(v).iter().filter_map(|need| heights.get(&need.value));
            let height = below.max().map_or(0, |height| height + 1);
            heights.insert(v, height);
        }
        let mut order = set.to_vec();
        order.sort_by_key(|v| (heights[v], self.scene.order[v.0 as usize], *v));
        order
    }

    /// Launches for a depth that is none: as many of its first nodes as are one, then the rest.
    fn cut(&mut self, set: &[Value]) -> Vec<Launch> {
        let mut launches = Vec::new();
        let order = self.in_order(set);
        let mut rest = &order[..];
        while !rest.is_empty() {
            let (mut fits, mut fails) = (0, rest.len() + 1);
            let mut found = None;
            while fails - fits > 1 {
                let middle = (fits + fails) / 2;
                let mut nodes = rest[..middle].to_vec();
                nodes.sort();
                match self.launches(&nodes) {
                    Ok(launches) => (fits, found) = (middle, Some(launches)),
                    Err(why) => {
                        fails = middle;
                        self.found.declined.push(Declined { nodes, why });
                    }
                }
            }
            launches.extend(found.unwrap_or_else(|| vec![alone(self.scene, self.known, rest[0])]));
            rest = &rest[fits.max(1)..];
        }
        launches
    }

    fn timed(&self, regions: Vec<Planned>) -> Launch {
        let time = self.scene.launch_time(regions.iter().map(|r| &r.cost));
        Launch { regions, time }
    }

    fn rebuilt(&self, set: &[Value], launches: &[Vec<Recipe>]) -> Vec<Launch> {
        let region = |recipe: &Recipe| {
            let nodes: Vec<Value> = recipe.nodes.iter().map(|&i| set[i]).collect();
            let values = self.scene.nodes.with_free(&self.scene.graph, &nodes);
            let (tiles, cost) = (recipe.tiles.clone(), recipe.cost);
            Planned { values, tiles, cost, arguments: BTreeSet::new() }
        };
        launches.iter().map(|launch| self.timed(launch.iter().map(region).collect())).collect()
    }
}
