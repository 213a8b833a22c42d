//! Scheduling: the graph's values become launches and memory, for each entry point.

mod launches;
mod memory;

use ds4_ir::Bounds;
use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::SlotRow;

pub use launches::{absorbed_gathers, needed};

/// Launches and memory of an entry point.
pub struct Schedule {
    /// Values of each launch, in `values`.
    pub launches: Vec<Run>,
    /// Pool of the launches.
    pub values: Vec<Value>,
    /// Stored values, ascending.
    pub slots: Vec<SlotRow>,
    /// Bytes of the arena.
    pub arena_bytes: u64,
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
    let (launches, values) = launches::in_order(graph, &needed, &absorbed, &slots, &layouts);
    let arena_bytes = memory::assign(graph, &launches, &values, &mut slots, &layouts);
    Schedule { launches, values, slots, arena_bytes }
}
