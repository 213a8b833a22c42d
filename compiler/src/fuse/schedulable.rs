//! Whether the schedules have a kernel for every region.

use std::collections::HashSet;

use ds4_ir::graph::Value;
use ds4_ir::plan::layout::layouts;
use ds4_kernels::schedule::ScaleBlocks;

use super::cost::Scene;
use super::path::Launch;
use super::signature::signature;
use crate::kernels::region_kernel;
use crate::schedule::fused;

/// The regions, by signature and split, for which there is no kernel.
pub fn refused(scene: &Scene<'_>, launches: &[Launch], scales: &[ScaleBlocks]) -> Vec<Vec<u32>> {
    let graph = &scene.graph;
    let schedule = fused(graph, scene.bounds, launches);
    let found = layouts(graph, scene.bounds, &schedule.slots);
    let around = ds4_kernels::schedule::Scene {
        graph: *graph,
        bounds: scene.bounds,
        slots: &schedule.slots,
        layouts: &found,
        scales,
    };
    let mut known: HashSet<Vec<u32>> = HashSet::new();
    let mut refused = Vec::new();
    let mut stored = vec![false; graph.len()];
    for region in launches.iter().flat_map(|launch| &launch.regions) {
        let nodes: Vec<Value> = region.values.iter().copied().filter(|&v| scene.nodes.is_node(v)).collect();
        let key = [&signature(scene, &nodes)[..], &region.tiles[..]].concat();
        // Equal regions have equal kernels but for what they store: the first of them tells.
        let first = known.insert(key.clone());
        if first && region_kernel(&around, &region.values, &region.tiles, scene.profile.limits(), &stored).is_err() {
            refused.push(key);
        }
        region.values.iter().for_each(|v| stored[v.0 as usize] = true);
    }
    refused
}
