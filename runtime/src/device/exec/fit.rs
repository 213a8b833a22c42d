//! Whether a plan fits a device, before anything is allocated; and what would fit.

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::plan::Plan;
use ds4_ir::{Diagnostic, Place};

use super::memory::{Kind, Memory};
use crate::device::backend::Limits;

/// A demand of the plan.
struct Demand {
    item: String,
    what: &'static str,
    bytes: u64,
    kind: Kind,
    /// Bytes of it that do not grow with its kind.
    rest: u64,
}

/// An error if the device is too small for the plan: for the longest kernel, for the largest binding, then the largest buffer, then all together.
pub(super) fn check(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    memory: &Memory<'_>,
    device: &str,
    limits: Limits,
) -> Result<(), Diagnostic> {
    longest_kernel(plan, device, limits)?;
    let demands = [
        (largest_binding(graph, plan, memory), limits.binding_bytes),
        (largest_buffer(memory), limits.buffer_bytes),
        (Some(all(memory, limits.memory_bytes)), limits.memory_bytes),
    ];
    let beyond = |(demand, most): (Option<Demand>, u64)| demand.filter(|d| d.bytes > most).map(|d| (d, most));
    match demands.into_iter().find_map(beyond) {
        Some((demand, available)) => Err(too_small(plan, device, &demand, available)),
        None => Ok(()),
    }
}

/// An error if a kernel may have more loop iterations than the device does: it would store wrong results and say nothing.
fn longest_kernel(plan: &Plan<'_>, device: &str, limits: Limits) -> Result<(), Diagnostic> {
    let Some(row) = plan.kernels.iter().rev().max_by_key(|row| row.iterations) else { return Ok(()) };
    if row.iterations <= limits.iterations {
        return Ok(());
    }
    let found = format!("up to {}", row.iterations);
    Err(Diagnostic::new(codes::DEVICE_SMALL, "the device ends loops before a kernel of the plan is done")
        .at(Place::item(format!("device {device}"), format!("kernel {}", plan.str(row.name))))
        .wanted(format!("at most {} loop iterations of a lane", limits.iterations), found)
        .help("compile the model for this device (`--profile lavapipe`), or with smaller --prefill, --columns or --context"))
}

/// The first of the largest bindings.
fn largest_binding(graph: &Graph<'_>, plan: &Plan<'_>, memory: &Memory<'_>) -> Option<Demand> {
    let mut largest = None;
    for entry in plan.entries {
        let (bounds, slots) = (plan.bounds(entry), entry.slots.of(plan.slots));
        let launches = entry.launches.of(plan.launches).iter();
        let dispatches = launches.flat_map(|launch| launch.dispatches.of(plan.dispatches));
        for row in dispatches.flat_map(|dispatch| dispatch.bindings.of(plan.bindings)) {
            let bytes = memory.bytes(graph, bounds, slots, row);
            if largest.is_none_or(|(most, _, _)| bytes > most) {
                largest = Some((bytes, row, entry));
            }
        }
    }
    let (bytes, row, entry) = largest?;
    let (item, kind) = memory.describe(graph, row);
    let item = match kind {
        Kind::Values => format!("{item} at entry `{}`", plan.str(entry.name)),
        _ => item,
    };
    Some(Demand { item, what: "bytes in a binding", bytes, kind, rest: 0 })
}

fn largest_buffer(memory: &Memory<'_>) -> Option<Demand> {
    let row = memory.rows().iter().rev().max_by_key(|row| row.bytes)?;
    Some(Demand { item: row.name.clone(), what: "bytes in a buffer", bytes: row.bytes, kind: row.kind, rest: 0 })
}

/// All buffers. Of what can be made smaller the larger part is to give way, unless the rest alone does not fit.
fn all(memory: &Memory<'_>, available: u64) -> Demand {
    let of = |kind| memory.rows().iter().filter(|row| row.kind == kind).map(|row| row.bytes).sum::<u64>();
    let [fixed, values, states] = [Kind::Fixed, Kind::Values, Kind::States].map(of);
    let (kind, rest) = match fixed >= available {
        true => (Kind::Fixed, 0),
        false if values >= states => (Kind::Values, fixed + states),
        false => (Kind::States, fixed + values),
    };
    let item = format!("all of the plan: {fixed} bytes of weights, {values} of values, {states} of states");
    Demand { item, what: "bytes of memory", bytes: fixed + values + states, kind, rest }
}

fn too_small(plan: &Plan<'_>, device: &str, demand: &Demand, available: u64) -> Diagnostic {
    // What grows with a number of tokens fits with fewer of them, in proportion.
    let (grows, room) = (demand.bytes - demand.rest, available.saturating_sub(demand.rest));
    let fewer = |tokens: u32| (u128::from(tokens) * u128::from(room) / u128::from(grows.max(1))) as u32;
    let columns = plan.entries.iter().map(|entry| entry.columns).max().unwrap_or(1);
    let help = match (demand.kind, fewer(columns), fewer(plan.context[0])) {
        (Kind::Values, 1.., _) => format!("`ds4c compile --prefill {}` would fit", fewer(columns)),
        (Kind::States, _, 1..) => format!("`ds4c compile --context {}` would fit", fewer(plan.context[0])),
        (Kind::Fixed, ..) => "the model does not fit this device: take another one with --device".into(),
        _ => "not even one token would fit: take another device with --device".into(),
    };
    Diagnostic::new(codes::DEVICE_SMALL, "the device is too small for the plan")
        .at(Place::item(format!("device {device}"), &demand.item))
        .wanted(format!("{} {}", demand.bytes, demand.what), format!("at most {available}"))
        .help(help)
}
