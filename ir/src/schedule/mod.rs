//! Scheduling: the graph's values become launches and memory, for each entry point.
//!
//! Here every value is a launch of its own, in the order of ids: what a plan without fusion says, and what an executor
//! does for which regions mean nothing because its memory is one. In that order states are replaced behind their
//! readers; [`crate::verify`] refuses other graphs.

mod launches;
mod memory;
#[cfg(test)]
mod tests;

use crate::dim::Bounds;
use crate::entity::Run;
use crate::graph::{Graph, Value};
use crate::plan::{RegionRow, SlotRow};

pub use launches::{needed, slot};
pub use memory::{assign, lives};

/// Launches and memory of an entry point.
#[derive(Clone, Default)]
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

/// What an executor wants of memory beyond what a schedule gives by itself.
#[derive(Clone, Copy, Default)]
pub struct Keep<'a> {
    /// Values that have slots, ascending, though readers could do without: gathers, and views.
    pub stored: &'a [Value],
    /// Values whose memory nothing else takes before the step ends.
    pub lasting: &'a [Value],
}

/// Schedules a graph, each value a launch of its own, at an entry point with these bounds.
///
/// A gather that only products and `widen` read is done by them. A view that strides cannot express is stored. An operand
/// of a `concat` is computed in its place where nothing else keeps it from that.
pub fn schedule(graph: &Graph<'_>, bounds: Bounds) -> Schedule {
    schedule_keeping(graph, bounds, Keep::default())
}

/// The same with these wishes. What is to be stored has a size: it is of no weight's type.
pub fn schedule_keeping(graph: &Graph<'_>, bounds: Bounds, keep: Keep<'_>) -> Schedule {
    let needed = needed(graph);
    let absorbed = launches::absorbed_gathers(graph, &needed, keep.stored);
    let mut slots = launches::stored(graph, bounds, &needed, &absorbed, keep.stored);
    launches::place_in_concats(graph, bounds, &mut slots);
    let layouts = launches::store_hard_views(graph, bounds, &needed, &mut slots);
    let mut schedule = launches::in_order(graph, &needed, &absorbed, &slots, &layouts);
    let mut lives = lives(graph, &schedule.lists(), &slots, &layouts);
    memory::prolong(&mut lives, &slots, &layouts, keep.lasting);
    schedule.arena_bytes = assign(&mut slots, &lives);
    Schedule { slots, ..schedule }
}
