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
pub use why_not::{Answer, why_not};

/// Searches that a region without a schedule may cost.
const ROUNDS: usize = 32;

/// The launches of a graph at an entry point. `scales` are those of the graph's weights; where there are none, their scales are
/// in their formats.
///
/// Every region has been scheduled: a split for which the schedules turn out to have no kernel is not taken again.
pub fn fuse(graph: &Graph<'_>, bounds: Bounds, profile: &Profile, scales: &[ScaleBlocks]) -> Found {
    let nodes = Nodes::of(graph);
    let mut scales = scales.to_vec();
    scales.resize(graph.weights.len(), ScaleBlocks::default());
    let mut scene = Scene::new(*graph, &nodes, bounds, profile);
    let levels = levels(&scene, &depth::depths(&scene));
    let mut known = regions::Known::new();
    let mut found = path::shortest(&scene, &mut known, &levels);
    let mut scheduled = HashSet::new();
    for _ in 0..ROUNDS {
        let refused = schedulable::refused(&scene, &found.launches, &scales, &mut scheduled);
        if refused.is_empty() {
            break;
        }
        scene.unscheduled.extend(refused);
        found = path::shortest(&scene, &mut known, &levels);
    }
    found
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
