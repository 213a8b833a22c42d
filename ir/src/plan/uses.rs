//! How often each law of launches is used: what stands between a plan's lists and a launch for every value.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::plan::launches::slot_index;
use crate::plan::tables::{EntryRow, LaunchRow, Plan, SlotRow};
use crate::rules::launch::{
    ABSORB, DUPLICATE, IN_PLACE, INTERIOR, KERNELS, LEAVE_OUT, LOOK_UP, PAIR, REORDER, REPLACE, REUSE, SPLIT,
};

/// For each law of launches, by number, how often the entry point uses it; laws that it does not use are left out. The plan
/// has passed [`crate::plan::check`].
pub fn uses(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow) -> BTreeMap<u32, usize> {
    let slots = entry.slots.of(plan.slots);
    let launches = entry.launches.of(plan.launches);
    let lists = plan.lists(entry);
    let mut times: BTreeMap<Value, usize> = BTreeMap::new();
    lists.iter().flatten().flat_map(|list| list.iter()).for_each(|&v| *times.entry(v).or_default() += 1);
    let looked_up = |v: &Value| graph.op(*v) == Op::Gather && slot_index(slots, *v).is_none();
    let joined = |wanted: bool| -> usize {
        let before_last = lists.iter().flatten().filter_map(|list| list.split_last()).flat_map(|(_, before)| before);
        before_last.filter(|v| looked_up(v) == wanted).count()
    };
    let computed = || times.iter().filter(|(v, _)| !looked_up(v));
    let interior = |v: &Value| slot_index(slots, *v).is_none() && graph.op(*v) != Op::Write && !graph.op(*v).is_view();
    let is_split = |tiles: &[u32]| tiles.iter().any(|&tile| tile > 0);
    let regions = || launches.iter().flat_map(|launch| plan.regions(launch));
    let counts = [
        (ABSORB, joined(false)),
        (DUPLICATE, computed().map(|(_, n)| n - 1).sum()),
        (LOOK_UP, joined(true)),
        (PAIR, lists.iter().map(|regions| regions.len() - 1).sum()),
        (REORDER, out_of_order(&lists)),
        (LEAVE_OUT, graph.values().filter(|v| is_work(graph.op(*v)) && !times.contains_key(v)).count()),
        (SPLIT, regions().filter(|region| is_split(plan.tiles(region))).count()),
        (INTERIOR, computed().filter(|(v, _)| interior(v)).count()),
        (REUSE, reused(slots)),
        (IN_PLACE, slots.iter().filter(|slot| slot.within != slot.value).count()),
        (REPLACE, times.keys().filter(|v| graph.op(**v) == Op::Write).count()),
        (KERNELS, launches.iter().map(|launch: &LaunchRow| launch.dispatches.len as usize).sum()),
    ];
    counts.into_iter().filter(|&(_, count)| count > 0).collect()
}

/// Whether an operation computes something: leaves lie somewhere, and views are seen.
fn is_work(op: Op) -> bool {
    !op.is_view() && !matches!(op, Op::Weight | Op::Const | Op::Read)
}

/// Launches that compute a value in front of which the order of the graph has one of a later launch.
fn out_of_order(lists: &[Vec<&[Value]>]) -> usize {
    let (mut last, mut count) = (None, 0);
    for regions in lists {
        let values: BTreeSet<Value> = regions.iter().flat_map(|list| list.iter().copied()).collect();
        count += usize::from(values.first().copied() < last);
        last = last.max(values.last().copied());
    }
    count
}

/// Slots that have bytes in common with another one.
fn reused(slots: &[SlotRow]) -> usize {
    let mut places: Vec<(u64, u64)> =
        slots.iter().filter(|s| s.within == s.value && s.bytes > 0).map(|s| (s.offset, s.offset + s.bytes)).collect();
    places.sort();
    let (mut end, mut count) = (0, 0);
    for (from, to) in places {
        count += usize::from(from < end);
        end = end.max(to);
    }
    count
}
