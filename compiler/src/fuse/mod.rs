//! Fusion: which values are computed together.
//!
//! [`nodes`] says what has to be computed and what it needs, [`depth`] how many meetings of all workgroups lie before it, [`path`]
//! the cheapest launches through the depths, [`regions`] how a set of nodes divides into regions, [`cost`] what they take on a
//! device of this [`profile`]. Nothing here knows a construct of a model.

pub mod cost;
pub mod depth;
pub mod nodes;
mod pack;
pub mod path;
pub mod profile;
pub mod regions;
mod schedulable;
mod signature;
mod terms;
mod why_not;

use std::collections::HashSet;

use ds4_ir::Bounds;
use ds4_ir::graph::{Graph, Value};

use cost::Scene;
use ds4_kernels::schedule::ScaleBlocks;
use nodes::Nodes;
pub use path::{Found, Launch};
pub use profile::Profile;
use schedulable::Unscheduled;
pub use why_not::{Answer, why_not};

/// Searches that regions without a schedule may cost.
const ROUNDS: usize = 32;
/// Of these, how many try the other splits of such regions; then their sets of values are given up.
const SPLITS: usize = 16;

/// The launches of a graph at an entry point. `scales` are those of the graph's weights; where there are none, their scales are
/// in their formats.
///
/// Every region has been scheduled: a split for which the schedules turn out to have no kernel is not taken again, nor a set of
/// values behind several such splits. What is left then is computed value by value.
pub fn fuse(graph: &Graph<'_>, bounds: Bounds, profile: &Profile, scales: &[ScaleBlocks]) -> Found {
    fuse_within(graph, bounds, profile, scales, ROUNDS)
}

/// The same with other numbers of searches.
fn fuse_within(graph: &Graph<'_>, bounds: Bounds, profile: &Profile, scales: &[ScaleBlocks], rounds: usize) -> Found {
    let nodes = Nodes::of(graph);
    let mut scales = scales.to_vec();
    scales.resize(graph.weights.len(), ScaleBlocks::default());
    let mut scene = Scene::new(*graph, &nodes, bounds, profile);
    let levels = levels(&scene, &depth::depths(&scene));
    let mut known = regions::Known::new();
    let mut found = path::shortest(&scene, &mut known, &levels);
    let mut scheduled = HashSet::new();
    for round in 0.. {
        let refused = schedulable::refused(&scene, &found.launches, &scales, &mut scheduled);
        if refused.is_empty() {
            break;
        }
        let search = round < rounds;
        let launches = std::mem::take(&mut found.launches);
        let broken = |launch: &Launch| launch.regions.iter().any(|region| is_refused(&scene, region, &refused));
        let broken: Vec<bool> = launches.iter().map(broken).collect();
        for Unscheduled { nodes, count, tiles } in refused {
            let give_up = search && round >= SPLITS && count > 1;
            scene.unscheduled.insert(if give_up { nodes } else { [&nodes[..], &tiles].concat() });
        }
        if search {
            found = path::shortest(&scene, &mut known, &levels);
            continue;
        }
        found.launches = launches
            .into_iter()
            .zip(broken)
            .flat_map(|(launch, broken)| if broken { single(&scene, &mut known, &launch) } else { vec![launch] })
            .collect();
    }
    found
}

fn nodes_of(scene: &Scene<'_>, region: &regions::Planned) -> Vec<Value> {
    region.values.iter().copied().filter(|&v| scene.nodes.is_node(v)).collect()
}

fn is_refused(scene: &Scene<'_>, region: &regions::Planned, refused: &[Unscheduled]) -> bool {
    let signed = signature::signature(scene, &nodes_of(scene, region));
    refused.iter().any(|other| other.nodes == signed && other.tiles == region.tiles)
}

/// The nodes of a launch, each in one of its own.
fn single(scene: &Scene<'_>, known: &mut regions::Known, launch: &Launch) -> Vec<Launch> {
    let mut values: Vec<Value> = launch.regions.iter().flat_map(|region| nodes_of(scene, region)).collect();
    values.sort();
    values.dedup();
    values.into_iter().map(|v| path::alone(scene, known, v)).collect()
}

/// The nodes of each depth.
fn levels(scene: &Scene<'_>, depths: &[u32]) -> Vec<Vec<Value>> {
    let mut levels: Vec<Vec<Value>> = Vec::new();
    for v in scene.graph.values().filter(|&v| scene.nodes.is_node(v)) {
        let depth = depths[v.0 as usize] as usize;
        levels.resize_with(levels.len().max(depth + 1), Vec::new);
        levels[depth].push(v);
    }
    levels.retain(|level| !level.is_empty());
    levels
}

#[cfg(test)]
mod tests;
