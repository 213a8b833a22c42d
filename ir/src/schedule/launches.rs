//! Which values are launched, and which are stored.

use super::Schedule;
use crate::dim::Bounds;
use crate::entity::Run;
use crate::graph::{Graph, Value};
use crate::op::{Op, Type};
use crate::plan::layout::{Layout, layouts, lies_within, operand_within, start_within, stored_bytes};
use crate::plan::{RegionRow, SlotRow};

/// Whether each value is needed for an output, a named value or a state.
pub fn needed(graph: &Graph<'_>) -> Vec<bool> {
    let mut needed = vec![false; graph.len()];
    for row in graph.outputs.iter().chain(graph.named) {
        needed[row.value.0 as usize] = true;
    }
    for v in graph.values().rev() {
        if graph.op(v) == Op::Write {
            needed[v.0 as usize] = true;
        }
        if needed[v.0 as usize] {
            for operand in graph.args(v) {
                needed[operand.0 as usize] = true;
            }
        }
    }
    needed
}

/// Gathers that their readers do themselves: all readers are `widen`, or products that take it (or a view of it) as `w`. None
/// of those that are to be `kept`.
pub fn absorbed_gathers(graph: &Graph<'_>, needed: &[bool], kept: &[Value]) -> Vec<bool> {
    let mut absorbed: Vec<bool> = graph.values().map(|v| needed[v.0 as usize] && graph.op(v) == Op::Gather).collect();
    // The gather under each value, through views.
    let mut under: Vec<Option<Value>> = vec![None; graph.len()];
    for v in graph.values() {
        let op = graph.op(v);
        under[v.0 as usize] = match op {
            Op::Gather => Some(v),
            _ if op.is_view() => under[graph.args(v)[0].0 as usize],
            _ => None,
        };
        if op.is_view() || !needed[v.0 as usize] {
            continue;
        }
        for (i, operand) in graph.args(v).iter().enumerate() {
            let Some(gather) = under[operand.0 as usize] else { continue };
            let takes = op == Op::Product && i == 1 || op == Op::Widen && *operand == gather;
            absorbed[gather.0 as usize] &= takes;
        }
    }
    for row in graph.outputs.iter().chain(graph.named) {
        if let Some(gather) = under[row.value.0 as usize] {
            absorbed[gather.0 as usize] = false;
        }
    }
    kept.iter().for_each(|v| absorbed[v.0 as usize] = false);
    absorbed
}

/// The slot of a value, not yet placed; `None` for what cannot be stored: weights, be they gathered or viewed.
pub fn slot(graph: &Graph<'_>, bounds: Bounds, v: Value) -> Option<SlotRow> {
    let extents = graph.max_extents(graph.value_shape[v.0 as usize], bounds);
    let bytes = stored_bytes(graph.ty(v), &extents)?;
    Some(SlotRow { value: v, within: v, offset: 0, bytes })
}

/// A slot for each computed value that exists in memory and for each of `kept`, ascending, not yet placed.
pub fn stored(graph: &Graph<'_>, bounds: Bounds, needed: &[bool], absorbed: &[bool], kept: &[Value]) -> Vec<SlotRow> {
    let is_stored = |v: &Value| {
        let op = graph.op(*v);
        let elsewhere = op.is_view() || matches!(op, Op::Weight | Op::Const | Op::Read | Op::Write);
        needed[v.0 as usize] && !elsewhere && !absorbed[v.0 as usize] || kept.binary_search(v).is_ok()
    };
    graph.values().filter(is_stored).filter_map(|v| slot(graph, bounds, v)).collect()
}

fn find(slots: &[SlotRow], v: Value) -> Option<usize> {
    slots.binary_search_by_key(&v, |slot| slot.value).ok()
}

/// The stored value that a chain of reshapes ends in, if it does.
fn reshaped_value(graph: &Graph<'_>, slots: &[SlotRow], operand: Value) -> Option<usize> {
    let mut at = operand;
    while graph.op(at) == Op::Reshape && find(slots, at).is_none() {
        at = graph.args(at)[0];
    }
    find(slots, at)
}

/// Places operands of concats in the concats' memory. An operand has one place at most, the first found; where strides
/// cannot express it, it keeps its own memory.
pub fn place_in_concats(graph: &Graph<'_>, bounds: Bounds, slots: &mut [SlotRow]) {
    for v in graph.values().filter(|&v| graph.op(v) == Op::Concat) {
        if find(slots, v).is_none() {
            continue;
        }
        for &operand in graph.args(v) {
            let Some(i) = reshaped_value(graph, slots, operand) else { continue };
            let free = slots[i].within == slots[i].value && graph.ty(operand) != Type::Q8;
            let inside = operand_within(graph, v, slots[i].value) == Some(operand);
            if free && inside && start_within(graph, v, operand).is_some() {
                slots[i].within = v;
            }
        }
    }
    // Outer concats come later: one pass over the layouts tells which places strides express.
    let found = layouts(graph, bounds, slots);
    for slot in slots.iter_mut().filter(|slot| slot.within != slot.value) {
        if found[slot.value.0 as usize].is_none() {
            slot.within = slot.value;
        }
    }
}

/// Gives a slot to each needed view that strides cannot express, and the layouts of all values.
pub fn store_hard_views(
    graph: &Graph<'_>,
    bounds: Bounds,
    needed: &[bool],
    slots: &mut Vec<SlotRow>,
) -> Vec<Option<Layout>> {
    loop {
        let found = layouts(graph, bounds, slots);
        let is_hard = |v: &Value| {
            needed[v.0 as usize]
                && graph.op(*v).is_view()
                && found[v.0 as usize].is_none()
                && found[graph.args(*v)[0].0 as usize].is_some()
        };
        let hard: Vec<SlotRow> = graph.values().filter(is_hard).filter_map(|v| slot(graph, bounds, v)).collect();
        if hard.is_empty() {
            return found;
        }
        slots.extend(hard);
        slots.sort_by_key(|slot| slot.value);
    }
}

/// The launches in the order of their values, each of one region: absorbed gathers, then the value. A concat whose operands
/// all lie in its memory needs none.
pub fn in_order(
    graph: &Graph<'_>,
    needed: &[bool],
    absorbed: &[bool],
    slots: &[SlotRow],
    found: &[Option<Layout>],
) -> Schedule {
    let mut schedule = Schedule::default();
    for v in graph.values().filter(|v| needed[v.0 as usize]) {
        let op = graph.op(v);
        let is_launched = find(slots, v).is_some() || op == Op::Write;
        let is_free = op == Op::Concat && graph.args(v).iter().all(|&a| lies_within(graph, found, v, a));
        if !is_launched || is_free {
            continue;
        }
        let mut launch: Vec<Value> = graph.args(v).iter().filter_map(|&a| gather_under(graph, absorbed, a)).collect();
        launch.sort();
        launch.dedup();
        launch.push(v);
        let values = Run::push(&mut schedule.values, &launch);
        let region = RegionRow { values, tiles: Run::default() };
        let regions = Run::push(&mut schedule.regions, &[region]);
        schedule.launches.push(regions);
    }
    schedule
}

fn gather_under(graph: &Graph<'_>, absorbed: &[bool], operand: Value) -> Option<Value> {
    let mut at = operand;
    while graph.op(at).is_view() {
        at = graph.args(at)[0];
    }
    absorbed[at.0 as usize].then_some(at)
}
