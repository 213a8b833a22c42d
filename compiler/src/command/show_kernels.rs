//! What `ds4c show` tells of the kernels of a plan.

use std::collections::BTreeSet;
use std::fmt::Write;

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::layout::q8_scales_at;
use ds4_ir::plan::tables::{Kernel, binding};
use ds4_ir::plan::{BindingRow, EntryRow, Plan, RegionRow};
use ds4_ir::{Diagnostic, Place};
use serde_json::{Value as Json, json};

use super::report::size;

/// What a device must have for the kernels of a plan.
#[derive(Clone, Copy, Default)]
pub struct Needs {
    lanes: u32,
    workgroup_bytes: u32,
    exchange: u32,
    buffers: u32,
    binding_bytes: u64,
}

impl Needs {
    /// The needs of all kernels; `None` of a plan without.
    pub fn of(graph: &Graph<'_>, plan: &Plan<'_>) -> Option<Needs> {
        let mut needs = Needs::default();
        for row in plan.kernels {
            needs.lanes = needs.lanes.max(row.lanes);
            needs.workgroup_bytes = needs.workgroup_bytes.max(row.workgroup_bytes);
            needs.exchange = needs.exchange.max(row.exchange);
            needs.buffers = needs.buffers.max(row.arguments + 1);
        }
        for entry in plan.entries {
            let launches = entry.launches.of(plan.launches).iter();
            let dispatches = launches.flat_map(|launch| launch.dispatches.of(plan.dispatches));
            for row in dispatches.flat_map(|dispatch| dispatch.bindings.of(plan.bindings)) {
                needs.binding_bytes = needs.binding_bytes.max(binding_bytes(graph, plan, entry, row));
            }
        }
        (!plan.kernels.is_empty()).then_some(needs)
    }

    /// One line.
    pub fn text(&self) -> String {
        let exchange = match self.exchange {
            0 => String::new(),
            n => format!(", subgroups of {n}"),
        };
        format!(
            "{} lanes, {} of workgroup memory, {} buffers of up to {}{exchange}",
            self.lanes,
            size(self.workgroup_bytes.into()),
            self.buffers,
            size(self.binding_bytes)
        )
    }

    /// The same as JSON.
    pub fn json(&self) -> Json {
        json!({
            "lanes": self.lanes,
            "workgroup_bytes": self.workgroup_bytes,
            "subgroup_lanes": self.exchange,
            "buffers": self.buffers,
            "binding_bytes": self.binding_bytes,
        })
    }
}

/// Bytes of a binding; those of a tensor as the checkpoint stores it, which its layout exceeds by some words a row.
fn binding_bytes(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow, row: &BindingRow) -> u64 {
    let count = |shape| graph.max_extents(shape, plan.bounds(entry)).iter().product::<usize>();
    let value_count = || count(graph.value_shape[row.id as usize]);
    match row.kind {
        binding::SLOT => 4 * value_count() as u64,
        binding::CODES => q8_scales_at(value_count()) as u64,
        binding::STATE => plan.state_places[row.id as usize].bytes,
        binding::WEIGHT => {
            let weight = &graph.weights[row.id as usize];
            let extents = graph.max_extents(weight.shape, plan.bounds(entry));
            let row_bytes = weight.ty.format().and_then(|f| f.row_bytes(*extents.last()?)).unwrap_or(0);
            extents.iter().rev().skip(1).product::<usize>() as u64 * row_bytes as u64
        }
        binding::CONSTANT => 4 * u64::from(graph.constants[row.id as usize].words.len),
        _ => 0,
    }
}

/// How often each kernel is launched at each entry point.
fn uses(plan: &Plan<'_>) -> Vec<Vec<usize>> {
    let mut uses = vec![vec![0; plan.entries.len()]; plan.kernels.len()];
    for (e, entry) in plan.entries.iter().enumerate() {
        for launch in entry.launches.of(plan.launches) {
            for dispatch in launch.dispatches.of(plan.dispatches) {
                uses[dispatch.kernel.0 as usize][e] += 1;
            }
        }
    }
    uses
}

/// What is proved of a kernel's text. A certificate is about values: that a text computes them is not proved.
const TEXT: &str = "unproved";

/// The list of kernels.
pub fn list_text(plan: &Plan<'_>, text: &mut String) {
    let entries: String = plan.entries.iter().map(|e| format!(" {:>8}", plan.str(e.name))).collect();
    let _ = writeln!(
        text,
        "\nkernels: lanes, bytes of workgroup memory, most loop iterations of a lane, launches of each entry point, what is proved of the text\n  lanes memory iterations{entries}"
    );
    for (row, uses) in plan.kernels.iter().zip(uses(plan)) {
        let uses: String = uses.iter().map(|n| format!(" {n:>8}")).collect();
        let (name, iterations) = (plan.str(row.name), row.iterations);
        let _ =
            writeln!(text, "  {:>5} {:>6} {iterations:>10}{uses}  text {TEXT}  {name}", row.lanes, row.workgroup_bytes);
    }
}

/// The list as JSON.
pub fn list_json(plan: &Plan<'_>) -> Json {
    let kernel = |(row, uses): (&ds4_ir::plan::KernelRow, Vec<usize>)| {
        json!({
            "name": plan.str(row.name),
            "lanes": row.lanes,
            "workgroup_bytes": row.workgroup_bytes,
            "iterations": row.iterations,
            "subgroup_lanes": row.exchange,
            "arguments": row.arguments,
            "launches": uses,
            "text": TEXT,
        })
    };
    plan.kernels.iter().zip(uses(plan)).map(kernel).collect()
}

/// The text of the kernel with this name, or of those that compute the value with this name (`v123`).
///
/// # Errors
/// The plan has no such kernel, or none for the target.
pub fn source(plan: &Plan<'_>, file: &str, name: &str, target: Option<&str>) -> Result<String, Diagnostic> {
    let number = match target {
        Some(target) => plan.target(target),
        None => (!plan.targets.is_empty()).then_some(0),
    };
    if plan.kernels.is_empty() {
        return Err(Diagnostic::new(codes::KERNEL_UNKNOWN, "the plan has no kernels")
            .at(Place::file(file))
            .help("compile the model with `ds4c compile --target wgsl,ptx,hip`"));
    }
    let targets = || plan.targets.iter().map(|&t| plan.str(t)).collect::<Vec<_>>().join(", ");
    let number = number.ok_or_else(|| {
        Diagnostic::new(codes::KERNEL_UNKNOWN, "the plan has no kernels for this target")
            .at(Place::file(file))
            .wanted(format!("one of {}", targets()), target.unwrap_or("none"))
            .help("cuda takes ptx, hip takes hip, wgpu takes wgsl; `ds4c compile --target` says which a plan has")
    })?;
    let named = (0..).zip(plan.kernels).filter(|(_, row)| plan.str(row.name) == name).map(|(i, _)| Kernel(i));
    let mut found: Vec<Kernel> = named.collect();
    if found.is_empty() {
        found = of_value(plan, name);
    }
    if found.is_empty() {
        return Err(Diagnostic::new(codes::KERNEL_UNKNOWN, "the plan has no such kernel")
            .at(Place::file(file))
            .wanted("the name of a kernel, or a launched value such as v12", name)
            .help("`ds4c show PLAN --kernels` lists the kernels"));
    }
    let headed = found.len() > 1 || plan.str(plan.kernels[found[0].0 as usize].name) != name;
    let text = |kernel: &Kernel| {
        let row = &plan.kernels[kernel.0 as usize];
        let head = format!("// kernel {}, which computes {name}\n", plan.str(row.name));
        (if headed { head } else { String::new() }) + plan.source(*kernel, number)
    };
    Ok(found.iter().map(text).collect::<Vec<_>>().join("\n"))
}

/// The kernels of the launches with a region that ends in a value, over all entry points; without one, of those that compute it.
fn of_value(plan: &Plan<'_>, name: &str) -> Vec<Kernel> {
    let id = name.strip_prefix('v').and_then(|id| id.parse::<u32>().ok());
    let Some(id) = id.map(Value) else { return Vec::new() };
    let ends = |region: &RegionRow| plan.values(region).last() == Some(&id);
    let computes = |region: &RegionRow| plan.values(region).binary_search(&id).is_ok();
    let of = |holds: &dyn Fn(&RegionRow) -> bool| -> BTreeSet<Kernel> {
        let launches = plan.launches.iter().filter(|launch| plan.regions(launch).iter().any(holds));
        launches.flat_map(|launch| launch.dispatches.of(plan.dispatches)).map(|dispatch| dispatch.kernel).collect()
    };
    let found = of(&ends);
    if found.is_empty() { of(&computes) } else { found }.into_iter().collect()
}
