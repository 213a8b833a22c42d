//! Whether the schedules have a kernel for every region.

use std::collections::HashSet;

use ds4_ir::graph::Value;
use ds4_ir::plan::layout::layouts;
use ds4_kernels::plan::region_kernel;
use ds4_kernels::schedule::ScaleBlocks;

use super::cost::Scene;
use super::path::Launch;
use super::signature::signature;
use crate::schedule::fused;

/// A region for which there is no kernel.
pub struct Unscheduled {
    /// Signature of its nodes.
    pub nodes: Vec<u32>,
    /// How many these are.
    pub count: usize,
    /// The split.
    pub tiles: Vec<u32>,
}

/// The regions for which there is no kernel. Those in `known` have been tried before.
pub fn refused(
    scene: &Scene<'_>,
    launches: &[Launch],
    scales: &[ScaleBlocks],
    known: &mut HashSet<Vec<u32>>,
) -> Vec<Unscheduled> {
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
    let mut refused = Vec::new();
    let mut stored = vec![false; graph.len()];
    for region in launches.iter().flat_map(|launch| &launch.regions) {
        let nodes: Vec<Value> = region.values.iter().copied().filter(|&v| scene.nodes.is_node(v)).collect();
        let signed = signature(scene, &nodes);
        // Equal regions that store the same have equal kernels.
        let stores = nodes.iter().map(|v| {
            let has_slot = schedule.slots.binary_search_by_key(v, |slot| slot.value).is_ok();
            u32::from(has_slot && !stored[v.0 as usize])
        });
        let first = known.insert(signed.iter().chain(&region.tiles).copied().chain(stores).collect());
        if first && region_kernel(&around, &region.values, &region.tiles, scene.profile.limits(), &stored).is_err() {
            refused.push(Unscheduled { nodes: signed, count: nodes.len(), tiles: region.tiles.clone() });
        }
        region.values.iter().for_each(|v| stored[v.0 as usize] = true);
    }
    refused
}
