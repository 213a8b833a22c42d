//! Checks of what a plan says about kernels: texts, grids, bindings, fields of weights.

use std::collections::BTreeSet;

use crate::entity::Run;
use crate::graph::Graph;
use crate::op::Type;
use crate::plan::check::{ensure, in_pool};
use crate::plan::tables::{BindingRow, DispatchRow, EntryRow, ExtentRow, KernelRow, Plan, SlotRow, binding};

/// Most lanes of a workgroup on any device.
const MOST_LANES: u32 = 1024;
/// Most workgroups of a grid: two axes of 65,535.
const MOST_GROUPS: u64 = 65_535 * 65_535;

/// Checks all that does not belong to an entry point.
pub(super) fn check_kernels(graph: &Graph<'_>, plan: &Plan<'_>) -> Result<(), String> {
    let is_text = |text: crate::plan::tables::Text| (text.0 as usize) < plan.texts.len();
    ensure(plan.targets.iter().all(|&t| is_text(t)), || "a target has no name".into())?;
    ensure(plan.step_dims.iter().all(|d| (d.0 as usize) < graph.dims.len()), || {
        "a word of the step's block is no dimension".into()
    })?;
    ensure(plan.sources.len() == plan.kernels.len() * plan.targets.len(), || {
        "kernels and their texts differ in number".into()
    })?;
    for (i, &run) in plan.sources.iter().enumerate() {
        let valid = in_pool(run, plan.source_text.len()) && std::str::from_utf8(run.of(plan.source_text)).is_ok();
        ensure(valid, || format!("kernel text {i} is out of range or no UTF-8"))?;
    }
    let names: BTreeSet<&str> =
        plan.kernels.iter().map(|kernel| kernel.name).filter(|&t| is_text(t)).map(|t| plan.str(t)).collect();
    ensure(names.len() == plan.kernels.len(), || "two kernels have one name, or one has none".into())?;
    let targets: BTreeSet<&str> = plan.targets.iter().map(|&t| plan.str(t)).collect();
    ensure(targets.len() == plan.targets.len(), || "a target stands there twice".into())?;
    for (i, kernel) in plan.kernels.iter().enumerate() {
        let arguments = kernel.arguments <= 32 && u64::from(kernel.written) < 1 << kernel.arguments;
        ensure(arguments, || format!("kernel {i} writes arguments that it does not have"))?;
        let lanes = (1..=MOST_LANES).contains(&kernel.lanes) && kernel.exchange <= kernel.lanes;
        ensure(is_text(kernel.name) && is_text(kernel.entry) && lanes, || format!("kernel {i} has no name or lanes"))?;
        ensure(check_grid(plan, kernel).is_some(), || format!("the grid of kernel {i} is out of range"))?;
    }
    Ok(())
}

fn check_grid(plan: &Plan<'_>, kernel: &KernelRow) -> Option<()> {
    let parts = in_pool(kernel.grid, plan.grid_parts.len()).then(|| kernel.grid.of(plan.grid_parts))?;
    let groups = parts.iter().try_fold(0u64, |groups, &part| groups.checked_add(check_part(plan, part)?))?;
    (!parts.is_empty() && groups <= MOST_GROUPS).then_some(())
}

/// The largest number of workgroups of a part.
fn check_part(plan: &Plan<'_>, part: Run) -> Option<u64> {
    let axes = in_pool(part, plan.extents.len()).then(|| part.of(plan.extents))?;
    let words = 2 + plan.step_dims.len() as u32;
    let mut groups = 1u64;
    for &ExtentRow { word, most, times, per } in axes {
        if word != u32::MAX && word >= words || per == 0 {
            return None;
        }
        groups = groups.checked_mul(most.checked_mul(times)?.div_ceil(per).max(1).into())?;
    }
    Some(groups)
}

/// Checks the fields of weight `index`: they take every byte of a block once.
pub(super) fn check_fields(graph: &Graph<'_>, plan: &Plan<'_>, index: usize) -> Option<()> {
    let run = plan.weight_places[index].fields;
    let fields = in_pool(run, plan.weight_fields.len()).then(|| run.of(plan.weight_fields))?;
    let block = graph.weights[index].ty.format()?.block_bytes() as u32;
    let mut ranges: Vec<(u32, u32)> = fields.iter().map(|f| (f.begin, f.end)).collect();
    ranges.sort();
    let whole = ranges.iter().try_fold(0, |at, &(begin, end)| (begin == at && end > begin).then_some(end));
    (fields.is_empty() || whole == Some(block)).then_some(())
}

/// Checks the dispatches of an entry point.
pub(super) fn check_dispatches(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    slots: &[SlotRow],
) -> Result<(), String> {
    for (at, launch) in entry.launches.of(plan.launches).iter().enumerate() {
        let has_some = plan.targets.is_empty() || launch.dispatches.len > 0;
        ensure(has_some && in_pool(launch.dispatches, plan.dispatches.len()), || {
            format!("launch {at} has no dispatches")
        })?;
        for dispatch in launch.dispatches.of(plan.dispatches) {
            ensure(check_dispatch(graph, plan, dispatch, slots).is_some(), || {
                format!("a kernel of launch {at} is bound to what does not exist, or twice to one thing")
            })?;
        }
    }
    Ok(())
}

fn check_dispatch(graph: &Graph<'_>, plan: &Plan<'_>, dispatch: &DispatchRow, slots: &[SlotRow]) -> Option<()> {
    let kernel = plan.kernels.get(dispatch.kernel.0 as usize)?;
    let bindings = in_pool(dispatch.bindings, plan.bindings.len()).then(|| dispatch.bindings.of(plan.bindings))?;
    let known = bindings.iter().all(|b| check_binding(graph, b, slots).is_some());
    let may_write =
        |row: &BindingRow| matches!(row.kind, binding::SLOT | binding::CODES | binding::SCALES | binding::STATE);
    let known = known && (0..32).zip(bindings).all(|(i, row)| kernel.written >> i & 1 == 0 || may_write(row));
    // What a kernel writes is no other argument of it: languages may take arguments to be apart.
    let places: BTreeSet<(u32, u32)> = bindings.iter().map(|row| (row.kind, row.id)).collect();
    let apart = places.len() == bindings.len();
    (bindings.len() == kernel.arguments as usize && known && apart).then_some(())
}

fn check_binding(graph: &Graph<'_>, row: &BindingRow, slots: &[SlotRow]) -> Option<()> {
    let id = row.id as usize;
    let holds = match row.kind {
        binding::SLOT | binding::CODES | binding::SCALES => {
            let slot = &slots[slots.binary_search_by_key(&row.id, |slot| slot.value.0).ok()?];
            let is_q8 = graph.ty(slot.value) == Type::Q8;
            slot.within == slot.value && is_q8 == (row.kind != binding::SLOT)
        }
        binding::STATE => id < graph.states.len(),
        binding::WEIGHT => id < graph.weights.len(),
        binding::WEIGHT_SCALES => graph.weights.get(id)?.ty.format()?.has_scales(),
        binding::CONSTANT => id < graph.constants.len(),
        binding::MAGNITUDES | binding::TOKENS => id == 0,
        _ => false,
    };
    holds.then_some(())
}
