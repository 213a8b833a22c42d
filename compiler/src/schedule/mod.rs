//! Scheduling: the graph's values become launches and memory, for each entry point.

mod fused;
mod launches;
mod memory;

use ds4_ir::Bounds;
use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::{RegionRow, SlotRow};

pub use fused::fused;
pub use launches::needed;

/// Launches and memory of an entry point.
#[derive(Default)]
pub struct Schedule {
    /// Regions of each launch, in `regions`.
    pub launches: Vec<Run>,
    /// Regions: their values in `values`, their splits in `tiles`.
    pub regions: Vec<RegionRow>,
    /// Values of the regions.
    pub values: Vec<Value>,
    /// Splits of the regions.
    pub tiles: Vec<u32>,
    /// Stored values, ascending.
    pub slots: Vec<SlotRow>,
    /// Bytes of the arena.
    pub arena_bytes: u64,
}

impl Schedule {
    /// For each launch the values of its regions.
    pub fn lists(&self) -> Vec<Vec<&[Value]>> {
        let values = |region: &RegionRow| region.values.of(&self.values);
        self.launches.iter().map(|run| run.of(&self.regions).iter().map(values).collect()).collect()
    }
}

/// Schedules a graph, each value a launch of its own, at an entry point with these bounds.
///
/// A gather that only products and `widen` read is done by them. A view that strides cannot express is stored. An operand
/// of a `concat` is computed in its place where nothing else keeps it from that.
pub fn schedule(graph: &Graph<'_>, bounds: Bounds) -> Schedule {
    let needed = needed(graph);
    let absorbed = launches::absorbed_gathers(graph, &needed);
    let mut slots = launches::stored(graph, bounds, &needed, &absorbed);
    launches::place_in_concats(graph, bounds, &mut slots);
    let layouts = launches::store_hard_views(graph, bounds, &needed, &mut slots);
    let mut schedule = launches::in_order(graph, &needed, &absorbed, &slots, &layouts);
    schedule.arena_bytes = memory::assign(graph, &schedule.lists(), &mut slots, &layouts);
    Schedule { slots, ..schedule }
}
