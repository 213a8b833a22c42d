//! From a set of nodes to the regions of one launch.

use std::collections::{BTreeSet, HashMap};

use ds4_ir::Op;
use ds4_ir::graph::Value;
use ds4_kernels::region::{Locality, Refusal, Region, locality, plan_parts, with_views, work_dims};

use super::cost::{Cost, Scene};
use super::pack::packed_time;
use super::signature::signature;

/// Most columns that a workgroup takes together.
const COLUMNS: u32 = 8;

/// A region with its cost.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its nodes, ascending, with what they make or look up themselves.
    pub values: Vec<Value>,
    /// The split of the last one.
    pub tiles: Vec<u32>,
    /// What a workgroup does.
    pub cost: Cost,
    /// Buffers that it binds.
    pub arguments: BTreeSet<Root>,
}

/// What [`best`] found for equal sets of nodes, by signature: the split and its cost, as long as that has a schedule.
pub type Known = HashMap<Vec<u32>, Result<(Vec<u32>, Cost), Refusal>>;

/// Memory that a region binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Root {
    /// A value: its slot, tensor, table, or the state whose version it is.
    Value(Value),
    /// The scales of such a value.
    Scales(Value),
    /// The table of a format.
    Table,
}

/// Why a set of nodes is no launch.
#[derive(Clone, PartialEq, Debug)]
pub enum Unfit {
    /// A value has to be complete before another is computed.
    Order {
        /// What is needed.
        needed: Value,
        /// By which value.
        by: Value,
    },
    /// A region is none.
    Region(Refusal),
    /// More buffers than a launch binds.
    Arguments {
        /// Buffers.
        wanted: usize,
        /// Of the device.
        available: u32,
    },
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Order { needed, by } => {
                write!(f, "{needed} has to be complete before {by} is computed: a state is written in place")
            }
            Unfit::Region(why) => why.fmt(f),
            Unfit::Arguments { wanted, available } => {
                write!(f, "{wanted} buffers would be bound at once, {available} can be")
            }
        }
    }
}

/// The regions of a launch that computes exactly these nodes, ascending.
///
/// Nodes that depend on each other inside the set share a region. Where one region does not serve all of its last values, each
/// has a region of its own with all that it needs inside the set, computed again.
///
/// # Errors
/// The nodes are no launch.
pub fn regions(scene: &Scene<'_>, known: &mut Known, set: &[Value]) -> Result<Vec<Planned>, Unfit> {
    let mut found = Vec::new();
    for component in components(scene, set)? {
        found.extend(component_regions(scene, known, &component)?);
    }
    Ok(found)
}

/// The set divided where nothing inside it connects.
pub fn components(scene: &Scene<'_>, set: &[Value]) -> Result<Vec<Vec<Value>>, Unfit> {
    let mut parent: Vec<usize> = (0..set.len()).collect();
    fn find(parent: &mut [usize], mut i: usize) -> usize {
        while parent[i] != i {
            parent[i] = parent[parent[i]];
            i = parent[i];
        }
        i
    }
    for (i, &v) in set.iter().enumerate() {
        for need in scene.nodes.needs(v) {
            let Ok(j) = set.binary_search(&need.value) else { continue };
            if need.strict {
                return Err(Unfit::Order { needed: need.value, by: v });
            }
            let (a, b) = (find(&mut parent, i), find(&mut parent, j));
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Vec<Value>> = vec![Vec::new(); set.len()];
    for (i, &v) in set.iter().enumerate() {
        let root = find(&mut parent, i);
        groups[root].push(v);
    }
    groups.retain(|group| !group.is_empty());
    Ok(groups)
}

fn component_regions(scene: &Scene<'_>, known: &mut Known, nodes: &[Value]) -> Result<Vec<Planned>, Unfit> {
    let joint = bound(scene, known, nodes);
    let mut sinks: Vec<Value> = nodes.iter().copied().filter(|&v| !is_read_within(scene, nodes, v)).collect();
    sinks.sort_by_key(|&v| (scene.order[v.0 as usize], v));
    if sinks.len() == 1 {
        return joint.map(|region| vec![region]);
    }
    let apart = apart(scene, known, nodes, &sinks);
    match (joint, apart) {
        (Ok(joint), Ok(apart)) => {
            let single = scene.launch_time([&joint.cost].into_iter());
            let several = packed_time(scene, &apart.iter().collect::<Vec<_>>());
            Ok(if single <= several { vec![joint] } else { apart })
        }
        (Ok(joint), Err(_)) => Ok(vec![joint]),
        (Err(_), Ok(apart)) => Ok(apart),
        (Err(why), Err(_)) => Err(why),
    }
}

/// The best region of these nodes, if a launch can bind what it reads and stores.
fn bound(scene: &Scene<'_>, known: &mut Known, nodes: &[Value]) -> Result<Planned, Unfit> {
    let region = best(scene, known, nodes).map_err(Unfit::Region)?;
    let (wanted, available) = (region.arguments.len(), scene.profile.arguments);
    if wanted > available as usize { Err(Unfit::Arguments { wanted, available }) } else { Ok(region) }
}

fn is_read_within(scene: &Scene<'_>, nodes: &[Value], v: Value) -> bool {
    scene.nodes.readers(v).iter().any(|reader| nodes.binary_search(reader).is_ok())
}

/// A region for each last value, or for several where that costs less.
fn apart(scene: &Scene<'_>, known: &mut Known, nodes: &[Value], sinks: &[Value]) -> Result<Vec<Planned>, Unfit> {
    let mut fit = |set: &Vec<Value>| bound(scene, known, set);
    let mut sets: Vec<Vec<Value>> = sinks.iter().map(|&sink| closure(scene, nodes, sink)).collect();
    let mut regions: Vec<Planned> = sets.iter().map(&mut fit).collect::<Result<_, _>>()?;
    let mut i = 0;
    while i < sets.len() {
        let mut j = i + 1;
        while j < sets.len() {
            if sets[i].iter().all(|v| sets[j].binary_search(v).is_err()) {
                j += 1;
                continue;
            }
            let mut union = [&sets[i][..], &sets[j][..]].concat();
            union.sort();
            union.dedup();
            let both = packed_time(scene, &[&regions[i], &regions[j]]);
            match fit(&union) {
                Ok(region) if scene.launch_time([&region.cost].into_iter()) <= both => {
                    (sets[i], regions[i]) = (union, region);
                    sets.remove(j);
                    regions.remove(j);
                    j = i + 1;
                }
                _ => j += 1,
            }
        }
        i += 1;
    }
    Ok(regions)
}

/// The nodes of the set that a value needs, and itself.
fn closure(scene: &Scene<'_>, nodes: &[Value], sink: Value) -> Vec<Value> {
    let mut found = BTreeSet::from([sink]);
    let mut stack = vec![sink];
    while let Some(v) = stack.pop() {
        for need in scene.nodes.needs(v) {
            if nodes.binary_search(&need.value).is_ok() && found.insert(need.value) {
                stack.push(need.value);
            }
        }
    }
    found.into_iter().collect()
}

/// The region of these nodes with the split that takes the least time.
pub fn best(scene: &Scene<'_>, known: &mut Known, nodes: &[Value]) -> Result<Planned, Refusal> {
    let values = scene.nodes.with_free(&scene.graph, nodes);
    let signed = signature(scene, nodes);
    let given_up = scene.unscheduled.contains(&signed);
    let refused = |tiles: &[u32]| given_up || scene.unscheduled.contains(&[&signed[..], tiles].concat());
    let stands = |split: &&Result<(Vec<u32>, Cost), Refusal>| split.as_ref().map_or(true, |(tiles, _)| !refused(tiles));
    let split = match known.get(&signed).filter(stands) {
        Some(split) => split.clone(),
        None => {
            let split = least(scene, nodes, &values, &refused);
            known.insert(signed, split.clone());
            split
        }
    };
    let (tiles, cost) = split?;
    let arguments = arguments(scene, nodes, &values);
    Ok(Planned { values, tiles, cost, arguments })
}

/// The split of a region that takes the least time and is not `refused`.
fn least(
    scene: &Scene<'_>,
    nodes: &[Value],
    values: &[Value],
    refused: &dyn Fn(&[u32]) -> bool,
) -> Result<(Vec<u32>, Cost), Refusal> {
    let all = with_views(&scene.graph, values);
    let Some(&anchor) = nodes.last() else { return Err(Refusal::Empty) };
    let splits = splits(scene, anchor);
    // Of several refusals the last split's is told.
    let mut refusal = (0, Refusal::Empty);
    let mut open: Vec<(f64, usize, Cost, Locality)> = Vec::new();
    for (i, tiles) in splits.iter().enumerate() {
        let region = Region { values: &all, tiles };
        match locality(&scene.graph, &region) {
            _ if refused(tiles) => refusal = (i, Refusal::NoSchedule(anchor)),
            Ok(parts) => {
                let cost = scene.cost(&region, &parts);
                open.push((scene.launch_time([&cost].into_iter()), i, cost, parts));
            }
            Err(why) => refusal = (i, why),
        }
    }
    // A cost follows from the parts alone: the first one that fits, in the order of their times, takes the least.
    open.sort_by(|a, b| a.0.total_cmp(&b.0));
    let stored = |v: Value| is_stored(scene, nodes, v);
    for (_, i, cost, parts) in open {
        let region = Region { values: &all, tiles: &splits[i] };
        match plan_parts(&scene.graph, scene.bounds, &region, parts, &stored, scene.profile.limits()) {
            Ok(plan) => return Ok((splits[i].clone(), Cost { arrays: plan.array_words(), ..cost })),
            Err(why) if i >= refusal.0 => refusal = (i, why),
            Err(_) => {}
        }
    }
    Err(refusal.1)
}

/// Whether somebody beside these nodes reads the value.
fn is_stored(scene: &Scene<'_>, nodes: &[Value], v: Value) -> bool {
    let outside = |reader: &Value| nodes.binary_search(reader).is_err();
    let readers = scene.nodes.readers(v);
    let wanted = readers.is_empty() || readers.iter().any(outside) || scene.nodes.wanted[v.0 as usize];
    wanted && nodes.binary_search(&v).is_ok()
}

/// The splits of an anchor that are worth a try: its first axes position by position, the last one in tiles; and columns together
/// where they are few.
fn splits(scene: &Scene<'_>, anchor: Value) -> Vec<Vec<u32>> {
    let dims = work_dims(&scene.graph, anchor);
    let rank = dims.len();
    let constant = |axis: usize| match ds4_ir::DimOp::of(scene.dims()[dims[axis].0 as usize]) {
        Some(ds4_ir::DimOp::Const(n)) => Some(n),
        _ => None,
    };
    let mut found = vec![vec![0; rank]];
    if rank == 0 {
        return found;
    }
    let single = |axis: usize| if constant(axis) == Some(1) { 0 } else { 1 };
    for prefix in 1..=rank {
        found.push((0..rank).map(|axis| if axis < prefix { single(axis) } else { 0 }).collect());
    }
    if let Some(n) = constant(rank - 1) {
        for tile in [256, 128, 64, 32, 16, 8, 4, 2].into_iter().filter(|&t| t < n && n.is_multiple_of(t)) {
            let mut tiles: Vec<u32> = (0..rank - 1).map(single).collect();
            tiles.push(tile);
            found.push(tiles);
        }
    }
    let together: Vec<Vec<u32>> = found
        .iter()
        .filter(|tiles| tiles[0] == 1 && constant(0).is_none() && (2..=COLUMNS).contains(&scene.most(dims[0])))
        .map(|tiles| [&[0], &tiles[1..]].concat())
        .collect();
    found.extend(together);
    found.sort();
    found.dedup();
    found
}

/// What a region binds: what it reads from outside, and what others read of it.
fn arguments(scene: &Scene<'_>, nodes: &[Value], values: &[Value]) -> BTreeSet<Root> {
    let graph = &scene.graph;
    let mut found = BTreeSet::new();
    let mut add = |v: Value| {
        let mut at = v;
        while graph.op(at).is_view() || graph.op(at) == Op::Write {
            at = graph.args(at)[0];
        }
        found.insert(Root::Value(at));
        let format = graph.ty(at).format();
        if graph.ty(at) == ds4_ir::Type::Q8 || format.is_some_and(|f| f.has_scales()) {
            found.insert(Root::Scales(at));
        }
        if format == Some(ds4_ir::Format::IQ2_XXS) {
            found.insert(Root::Table);
        }
    };
    for &v in values {
        if graph.op(v) == Op::Tokens {
            add(v);
        }
        for &operand in graph.args(v) {
            let mut at = operand;
            while graph.op(at).is_view() {
                at = graph.args(at)[0];
            }
            if values.binary_search(&at).is_err() {
                add(at);
            }
        }
    }
    for &v in nodes {
        if is_stored(scene, nodes, v) {
            add(v);
        }
    }
    found
}
