//! Checks of a plan beyond its bytes: every index, the places of weights and states, the launches, the memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::entity::Run;
use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::plan::ALIGN;
use crate::plan::bindings::check_bindings;
use crate::plan::check_kernels::{check_dispatches, check_fields, check_kernels};
use crate::plan::launches::{Lives, lifetimes, slot_index};
use crate::plan::layout::{Layout, layouts, operand_within, start_within, stored_bytes};
use crate::plan::split::{check_split, split_dims};
use crate::plan::tables::{EntryRow, Plan, RegionRow, SlotRow};
use crate::rules::launch::Condition;
use crate::verify::Facts;

/// Largest value of an offset or size that is taken: keeps every sum below far from overflow.
const LARGEST: u64 = 1 << 50;

/// Checks graph and plan. The fault says what is wrong, for people who look into a damaged or hand-made plan.
pub fn check(graph: &Graph<'_>, plan: &Plan<'_>) -> Result<Facts, String> {
    let facts = crate::verify::verify(graph).map_err(|fault| fault.to_string())?;
    check_texts(plan)?;
    check_weights(graph, plan)?;
    check_states(graph, plan)?;
    check_kernels(graph, plan)?;
    check_names(plan)?;
    super::facts::check_facts(graph, plan)?;
    for entry in plan.entries {
        let name = plan.str(entry.name);
        check_entry(graph, plan, entry).map_err(|fault| format!("entry `{name}`: {fault}"))?;
    }
    Ok(facts)
}

pub(super) fn in_pool(run: Run, len: usize) -> bool {
    (run.start as usize).checked_add(run.len as usize).is_some_and(|end| end <= len)
}

pub(super) fn ensure(holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(fault()) }
}

fn check_texts(plan: &Plan<'_>) -> Result<(), String> {
    for (i, &run) in plan.texts.iter().enumerate() {
        let valid = in_pool(run, plan.text.len()) && std::str::from_utf8(run.of(plan.text)).is_ok();
        ensure(valid, || format!("text {i} is out of range or no UTF-8"))?;
    }
    let text_ids = plan.options.iter().flat_map(|o| [o.key, o.value]);
    let text_ids = text_ids.chain(plan.files.iter().map(|f| f.path)).chain(plan.entries.iter().map(|e| e.name));
    for text in text_ids {
        ensure((text.0 as usize) < plan.texts.len(), || format!("text {text} does not exist"))?;
    }
    ensure(plan.model_hash.len() == 1 && plan.context.len() == 1, || "identity or context is no single row".into())?;
    ensure(plan.context[0] > 0 && plan.context[0] < 1 << 30, || format!("context {} is out of range", plan.context[0]))
}

/// Entry points are found by their names.
fn check_names(plan: &Plan<'_>) -> Result<(), String> {
    let names: BTreeSet<&str> = plan.entries.iter().map(|entry| plan.str(entry.name)).collect();
    ensure(names.len() == plan.entries.len(), || "two entry points have one name".into())?;
    let mut spare = plan.entries.iter().map(|e| e.reserved).chain(plan.files.iter().map(|f| f.reserved));
    ensure(spare.all(|word| word == 0), || "a word that means nothing is not zero".into())
}

fn check_weights(graph: &Graph<'_>, plan: &Plan<'_>) -> Result<(), String> {
    ensure(plan.weight_places.len() == graph.weights.len(), || "weights and their places differ in number".into())?;
    for file in plan.files {
        ensure(file.size < LARGEST && file.header_len <= file.size, || "a file's size is out of range".into())?;
    }
    for (i, place) in plan.weight_places.iter().enumerate() {
        ensure(in_pool(place.parts, plan.parts.len()), || format!("the parts of weight {i} do not exist"))?;
        check_weight(graph, plan, i)
            .ok_or_else(|| format!("weight `{}` does not lie inside its files", graph.name(graph.weights[i].name)))?;
        check_fields(graph, plan, i)
            .ok_or_else(|| format!("the fields of weight `{}` are no blocks", graph.name(graph.weights[i].name)))?;
    }
    Ok(())
}

/// Every part of weight `index` inside its file, with the right number of parts and scales.
fn check_weight(graph: &Graph<'_>, plan: &Plan<'_>, index: usize) -> Option<()> {
    let (row, place) = (&graph.weights[index], &plan.weight_places[index]);
    let format = row.ty.format()?;
    let extents: Vec<u64> = graph
        .shape(row.shape)
        .iter()
        .map(|&d| crate::dim::dim_max(graph.dims, d, crate::Bounds { context: 0, columns: 0, outputs: 0 }).into())
        .collect();
    let (&cols, outer) = extents.split_last()?;
    let rows = outer.iter().try_fold(1u64, |n, &e| n.checked_mul(e))?;
    let parts = place.parts.of(plan.parts);
    let part_count = parts.len() as u64;
    if part_count != 1 && Some(&part_count) != outer.first() {
        return None;
    }
    let part_rows = rows / part_count;
    let row_bytes = format.row_bytes(cols as usize)? as u64;
    let bytes = part_rows.checked_mul(row_bytes)?;
    let scales = if format.has_scales() {
        let (r, c) = (u64::from(place.scale_rows), u64::from(place.scale_cols));
        if r == 0 || c == 0 {
            return None;
        }
        part_rows.div_ceil(r).checked_mul(cols.div_ceil(c))?
    } else {
        0
    };
    for part in parts {
        let inside = |file: u32, offset: u64, len: u64| {
            let file = plan.files.get(file as usize)?;
            (offset < LARGEST && offset.checked_add(len)? <= file.size).then_some(())
        };
        inside(part.file.0, part.offset, bytes)?;
        inside(part.scale_file.0, part.scale_offset, scales)?;
    }
    Some(())
}

fn check_states(graph: &Graph<'_>, plan: &Plan<'_>) -> Result<(), String> {
    ensure(plan.state_places.len() == graph.states.len(), || "states and their places differ in number".into())?;
    let none = crate::Bounds { context: 0, columns: 0, outputs: 0 };
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for (i, place) in plan.state_places.iter().enumerate() {
        let wanted = stored_bytes(graph.states[i].ty, &graph.max_extents(graph.states[i].shape, none));
        let fits = wanted == Some(place.bytes)
            && place.offset.is_multiple_of(ALIGN)
            && place.offset < LARGEST
            && place.bytes < LARGEST;
        ensure(fits, || format!("the place of state {i} has a wrong size or alignment"))?;
        taken.push((place.offset, place.offset + place.bytes));
    }
    taken.sort();
    ensure(taken.windows(2).all(|w| w[0].1 <= w[1].0), || "two states share memory".into())
}

fn check_entry(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow) -> Result<(), String> {
    let bounds = plan.bounds(entry);
    let sane = (1..=bounds.context).contains(&entry.columns) && entry.outputs <= entry.columns;
    ensure(sane, || "columns or outputs are out of range".into())?;
    crate::verify::check_bounds(graph, bounds).map_err(|fault| fault.to_string())?;
    ensure(in_pool(entry.launches, plan.launches.len()), || "its launches do not exist".into())?;
    ensure(in_pool(entry.slots, plan.slots.len()), || "its slots do not exist".into())?;
    let slots = entry.slots.of(plan.slots);
    check_slots(graph, entry, slots, bounds)?;
    let layouts = layouts(graph, bounds, slots);
    let lives = check_launches(graph, plan, entry, slots, &layouts)?;
    check_overlap(slots, &lives)?;
    check_dispatches(graph, plan, entry, slots)?;
    check_bindings(graph, plan, entry, slots, &layouts)
}

fn check_slots(graph: &Graph<'_>, entry: &EntryRow, slots: &[SlotRow], bounds: crate::Bounds) -> Result<(), String> {
    ensure(slots.is_sorted_by(|a, b| a.value < b.value), || "its slots are not in order".into())?;
    ensure(entry.arena_bytes < LARGEST, || "its arena is too large".into())?;
    for slot in slots {
        let v = slot.value;
        ensure((v.0 as usize) < graph.len(), || format!("{v} does not exist"))?;
        let elsewhere = matches!(graph.op(v), Op::Weight | Op::Const | Op::Read | Op::Write);
        ensure(!elsewhere, || format!("{v} has a slot, but lies elsewhere"))?;
        let wanted = stored_bytes(graph.ty(v), &graph.max_extents(graph.value_shape[v.0 as usize], bounds));
        let fits = wanted == Some(slot.bytes) && slot.offset < LARGEST && slot.bytes < LARGEST;
        ensure(fits, || format!("the slot of {v} has a wrong size"))?;
        if slot.within == v {
            let inside = slot.offset.is_multiple_of(ALIGN) && slot.offset + slot.bytes <= entry.arena_bytes;
            ensure(inside, || format!("the slot of {v} leaves the arena"))?;
        } else {
            let outer = slot_index(slots, slot.within).map(|i| &slots[i]);
            let inside = outer.is_some_and(|o| {
                graph.op(o.value) == Op::Concat
                    && o.value > v
                    && graph.ty(v) != crate::Type::Q8
                    && operand_within(graph, o.value, v)
                        .is_some_and(|operand| start_within(graph, o.value, operand).is_some())
                    && o.offset == slot.offset
            });
            Condition::Within.ensure(inside, || format!("{v} does not lie inside {}", slot.within))?;
        }
    }
    Ok(())
}

fn check_launches(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    slots: &[SlotRow],
    layouts: &[Option<Layout>],
) -> Result<Lives, String> {
    for (at, launch) in entry.launches.of(plan.launches).iter().enumerate() {
        ensure(launch.device.0 == 0, || format!("launch {at} is for a device that the plan does not have"))?;
        let has_regions = launch.regions.len > 0 && in_pool(launch.regions, plan.regions.len());
        ensure(has_regions, || format!("launch {at} has no regions"))?;
        for region in plan.regions(launch) {
            check_region(graph, plan, slots, region).map_err(|fault| format!("launch {at}: {fault}"))?;
        }
    }
    lifetimes(graph, &plan.lists(entry), slots, layouts)
}

/// A region's values are in order, the last one is stored, and its split is one of the last one's axes.
fn check_region(graph: &Graph<'_>, plan: &Plan<'_>, slots: &[SlotRow], region: &RegionRow) -> Result<(), String> {
    ensure(in_pool(region.values, plan.region_values.len()), || "the values of a region do not exist".into())?;
    ensure(in_pool(region.tiles, plan.region_tiles.len()), || "the split of a region does not exist".into())?;
    let (values, tiles) = (plan.values(region), plan.tiles(region));
    let exist = values.iter().all(|v| (v.0 as usize) < graph.len());
    ensure(exist && values.is_sorted_by(|a, b| a < b), || "the values of a region are not in order".into())?;
    let (&last, before) = values.split_last().ok_or("a region has no values")?;
    for &v in values {
        let is_leaf = matches!(graph.op(v), Op::Weight | Op::Const | Op::Read);
        ensure(!is_leaf, || format!("{v} is in a region, but nothing computes it"))?;
    }
    let stored = slot_index(slots, last).is_some() || graph.op(last) == Op::Write;
    ensure(stored, || format!("the region of {last} stores nothing"))?;
    if tiles.is_empty() && !split_dims(graph, last).is_empty() {
        let own: Vec<Value> = graph.args(last).iter().map(|&operand| viewed(graph, operand)).collect();
        let is_own = |v: &Value| graph.op(*v) == Op::Gather && slot_index(slots, *v).is_none() && own.contains(v);
        return ensure(before.iter().all(is_own), || format!("the region of {last} has no split"));
    }
    check_split(graph, last, tiles)
}

/// The value that a chain of views shows.
fn viewed(graph: &Graph<'_>, v: Value) -> Value {
    let mut at = v;
    while graph.op(at).is_view() {
        at = graph.args(at)[0];
    }
    at
}

/// No two slots that are needed at one time share a byte.
fn check_overlap(slots: &[SlotRow], lives: &Lives) -> Result<(), String> {
    let mut order: Vec<usize> =
        (0..slots.len()).filter(|&i| slots[i].within == slots[i].value && lives[i].0 != usize::MAX).collect();
    order.sort_by_key(|&i| lives[i].0);
    let mut active: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let mut ends: std::collections::BinaryHeap<std::cmp::Reverse<(usize, u64)>> = Default::default();
    for i in order {
        let (first, last) = lives[i];
        while let Some(std::cmp::Reverse((end, offset))) = ends.peek().copied() {
            if end >= first {
                break;
            }
            ends.pop();
            active.remove(&offset);
        }
        let (start, end) = (slots[i].offset, slots[i].offset + slots[i].bytes);
        if start == end {
            continue;
        }
        let before = active.range(..end).next_back();
        if let Some((_, &(other_end, other))) = before
            && other_end > start
        {
            let both = || format!("{} and {} share memory", slots[i].value, slots[other].value);
            Condition::Lives.ensure(false, both)?;
        }
        active.insert(start, (end, i));
        ends.push(std::cmp::Reverse((last, start)));
    }
    Ok(())
}
