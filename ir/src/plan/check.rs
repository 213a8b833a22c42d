//! Checks of a plan beyond its bytes: every index, the places of weights and states, the launches, the memory.

use std::collections::BTreeMap;

use crate::entity::Run;
use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::plan::ALIGN;
use crate::plan::check_kernels::{check_dispatches, check_fields, check_kernels};
use crate::plan::layout::{Layout, Root, layouts, lies_within, operand_within, start_within, stored_bytes};
use crate::plan::tables::{EntryRow, Plan, SlotRow};
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
    check_dispatches(graph, plan, entry, slots)
}

fn slot_index(slots: &[SlotRow], value: Value) -> Option<usize> {
    slots.binary_search_by_key(&value.0, |slot| slot.value.0).ok()
}

fn check_slots(graph: &Graph<'_>, entry: &EntryRow, slots: &[SlotRow], bounds: crate::Bounds) -> Result<(), String> {
    ensure(slots.is_sorted_by(|a, b| a.value < b.value), || "its slots are not in order".into())?;
    ensure(entry.arena_bytes < LARGEST, || "its arena is too large".into())?;
    for slot in slots {
        let v = slot.value;
        ensure((v.0 as usize) < graph.len(), || format!("{v} does not exist"))?;
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
            ensure(inside, || format!("{v} does not lie inside {}", slot.within))?;
        }
    }
    Ok(())
}

/// First and last launch at which each slot's memory is needed; memory of nested slots counts for the outermost.
pub type Lives = Vec<(usize, usize)>;

fn check_launches(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    slots: &[SlotRow],
    layouts: &[Option<Layout>],
) -> Result<Lives, String> {
    let launches = entry.launches.of(plan.launches);
    for (at, launch) in launches.iter().enumerate() {
        ensure(launch.device.0 == 0, || format!("launch {at} is for a device that the plan does not have"))?;
        ensure(in_pool(launch.values, plan.launch_values.len()), || format!("launch {at} has no values"))?;
        let values = launch.values.of(plan.launch_values);
        let sorted = !values.is_empty() && values.is_sorted_by(|a, b| a < b);
        ensure(sorted && values.iter().all(|v| (v.0 as usize) < graph.len()), || {
            format!("the values of launch {at} are not in order")
        })?;
        let last = values[values.len() - 1];
        let stored = slot_index(slots, last).is_some() || graph.op(last) == Op::Write;
        ensure(stored, || format!("launch {at} stores nothing"))?;
    }
    let values = launches.iter().map(|launch| launch.values.of(plan.launch_values));
    lifetimes(graph, values, slots, layouts)
}

/// First and last launch that touch each slot's memory, with the launches as lists of values; outputs are touched behind
/// the last. A launch that reads what is not computed before it is a fault.
pub fn lifetimes<'a>(
    graph: &Graph<'_>,
    launches: impl Iterator<Item = &'a [Value]>,
    slots: &[SlotRow],
    layouts: &[Option<Layout>],
) -> Result<Lives, String> {
    let mut lives: Lives = vec![(usize::MAX, 0); slots.len()];
    let mut computed = vec![false; graph.len()];
    let touch = |lives: &mut Lives, v: Value, at: usize| {
        if let Some(i) = slot_index(slots, root_slot(layouts, v)) {
            lives[i] = (lives[i].0.min(at), lives[i].1.max(at));
        }
    };
    let mut count = 0;
    for (at, values) in launches.enumerate() {
        count = at + 1;
        for &v in values {
            for operand in graph.args(v) {
                for root in memory_of(graph, layouts, *operand, values)? {
                    ensure(computed[root.0 as usize], || {
                        format!("launch {at} ({v}) reads {root} before it is computed")
                    })?;
                    touch(&mut lives, root, at);
                }
            }
            computed[v.0 as usize] = true;
            if slot_index(slots, v).is_some() {
                touch(&mut lives, v, at);
            }
        }
    }
    let outputs = graph.outputs.iter().map(|row| row.value);
    for value in outputs.chain(graph.values().filter(|&v| graph.op(v) == Op::Write)) {
        for root in memory_of(graph, layouts, value, &[])? {
            ensure(computed[root.0 as usize], || format!("{root} is never computed"))?;
            touch(&mut lives, root, count);
        }
    }
    Ok(lives)
}

fn root_slot(layouts: &[Option<Layout>], v: Value) -> Value {
    match &layouts[v.0 as usize] {
        Some(Layout { root: Root::Slot(root), .. }) => *root,
        _ => v,
    }
}

/// The computed values whose memory a reader of `v` touches: through views, and for a gather done by its reader the
/// source and the ids. Values of the same launch and leaves need nothing.
fn memory_of(graph: &Graph<'_>, layouts: &[Option<Layout>], v: Value, launch: &[Value]) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    let mut stack = vec![v];
    while let Some(v) = stack.pop() {
        let op = graph.op(v);
        let has_slot = matches!(&layouts[v.0 as usize], Some(Layout { root: Root::Slot(_), .. })) && !op.is_view();
        let own_slot =
            op.is_view() && matches!(&layouts[v.0 as usize], Some(Layout { root: Root::Slot(r), .. }) if *r == v);
        match op {
            _ if launch.binary_search(&v).is_ok() => {}
            Op::Weight | Op::Const | Op::Read => {}
            Op::Concat if graph.args(v).iter().all(|&a| lies_within(graph, layouts, v, a)) => {
                stack.extend(graph.args(v))
            }
            _ if has_slot || own_slot => found.push(v),
            Op::Write => found.push(v),
            _ if op.is_view() => stack.push(graph.args(v)[0]),
            Op::Gather => stack.extend(graph.args(v)),
            _ => return Err(format!("{v} has no memory")),
        }
    }
    Ok(found)
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
            return Err(format!("{} and {} share memory", slots[i].value, slots[other].value));
        }
        active.insert(start, (end, i));
        ends.push(std::cmp::Reverse((last, start)));
    }
    Ok(())
}
