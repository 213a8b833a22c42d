//! Schedules of fused launches: what is stored, and where.

use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::RegionRow;
use ds4_ir::plan::layout::layouts;
use ds4_ir::schedule::{assign, lives, slot};
use ds4_ir::{Bounds, Op};

use super::Schedule;
use crate::fuse::Launch;

/// The schedule of launches that a search found.
///
/// A value is stored exactly if a region that does not compute it reads it, or if outputs or names want it. Views are none's
/// own: a region follows them by coordinates.
pub fn fused(graph: &Graph<'_>, bounds: Bounds, found: &[Launch]) -> Schedule {
    let mut schedule = Schedule::default();
    for launch in found {
        let regions: Vec<RegionRow> = launch
            .regions
            .iter()
            .map(|region| RegionRow {
                values: Run::push(&mut schedule.values, &region.values),
                tiles: Run::push(&mut schedule.tiles, &region.tiles),
            })
            .collect();
        let run = Run::push(&mut schedule.regions, &regions);
        schedule.launches.push(run);
    }
    let stored = read_outside(graph, &schedule);
    schedule.slots = graph.values().filter(|v| stored[v.0 as usize]).filter_map(|v| slot(graph, bounds, v)).collect();
    let found = layouts(graph, bounds, &schedule.slots);
    let lives = lives(graph, &schedule.lists(), &schedule.slots, &found);
    schedule.arena_bytes = assign(&mut schedule.slots, &lives);
    schedule
}

/// The values that are read by regions that do not compute them, as outputs, or under their names.
fn read_outside(graph: &Graph<'_>, schedule: &Schedule) -> Vec<bool> {
    let mut stored = vec![false; graph.len()];
    let mut mark = |operand: Value, own: &[Value]| {
        let mut at = operand;
        while graph.op(at).is_view() {
            at = graph.args(at)[0];
        }
        let elsewhere = matches!(graph.op(at), Op::Weight | Op::Const | Op::Read | Op::Write);
        if !elsewhere && own.binary_search(&at).is_err() {
            stored[at.0 as usize] = true;
        }
    };
    for region in &schedule.regions {
        let own = region.values.of(&schedule.values);
        own.iter().flat_map(|&v| graph.args(v)).for_each(|&operand| mark(operand, own));
    }
    graph.outputs.iter().chain(graph.named).for_each(|row| mark(row.value, &[]));
    stored
}
