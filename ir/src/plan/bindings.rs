//! What ties a launch to its kernels: they write what it stores and read what it reads, and have the workgroups of its splits.
//!
//! What a kernel does with its arguments is said by its text, of which nothing is known here.

use std::collections::BTreeSet;

use crate::dim::dim_max;
use crate::entity::Run;
use crate::format::Format;
use crate::graph::{Graph, Value};
use crate::op::{Op, Type};
use crate::plan::launches::slot_index;
use crate::plan::layout::{Layout, Root};
use crate::plan::split::{Groups, workgroups};
use crate::plan::tables::{EntryRow, ExtentRow, KernelRow, LaunchRow, Plan, RegionRow, SlotRow, binding};
use crate::rules::launch::Condition;

/// Words of the step's block in front of the dimensions.
const FIRST_DIM: u32 = 2;

/// Kind and id of what an argument is bound to.
type Bound = (u32, u32);

/// Checks the kernels of all launches of an entry point against its lists. Whatever is bound exists.
pub(super) fn check_bindings(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    slots: &[SlotRow],
    layouts: &[Option<Layout>],
) -> Result<(), String> {
    if plan.targets.is_empty() {
        return Ok(());
    }
    let mut memory = Memory { graph, slots, layouts, stored: vec![false; graph.len()] };
    for (at, launch) in entry.launches.of(plan.launches).iter().enumerate() {
        check_memory(&mut memory, plan, launch).map_err(|fault| format!("launch {at}: {fault}"))?;
        check_grid(graph, plan, entry, launch).map_err(|fault| format!("launch {at}: {fault}"))?;
    }
    Ok(())
}

/// The memory of an entry point.
struct Memory<'a> {
    graph: &'a Graph<'a>,
    slots: &'a [SlotRow],
    layouts: &'a [Option<Layout>],
    /// Values that a launch has stored.
    stored: Vec<bool>,
}

fn check_memory(memory: &mut Memory<'_>, plan: &Plan<'_>, launch: &LaunchRow) -> Result<(), String> {
    let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
    for region in plan.regions(launch) {
        memory.region(plan.values(region), &mut reads, &mut writes);
    }
    let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
    for dispatch in launch.dispatches.of(plan.dispatches) {
        let kernel = &plan.kernels[dispatch.kernel.0 as usize];
        for (i, row) in dispatch.bindings.of(plan.bindings).iter().enumerate() {
            let set = if kernel.written >> i & 1 == 1 { &mut written } else { &mut read };
            set.insert((row.kind, row.id));
        }
    }
    Condition::Writes.ensure(written == writes, || {
        format!("its kernels write {}, but it stores {}", list(&written), list(&writes))
    })?;
    let strange: BTreeSet<Bound> =
        read.into_iter().filter(|bound| !reads.contains(bound) && !writes.contains(bound)).collect();
    Condition::Reads
        .ensure(strange.is_empty(), || format!("its kernels read {}, but it reads {}", list(&strange), list(&reads)))
}

fn list(bound: &BTreeSet<Bound>) -> String {
    let name = |&(kind, id): &Bound| match kind {
        binding::SLOT => format!("v{id}"),
        binding::CODES => format!("the codes of v{id}"),
        binding::SCALES => format!("the scales of v{id}"),
        binding::STATE => format!("state {id}"),
        binding::WEIGHT => format!("weight {id}"),
        binding::WEIGHT_SCALES => format!("the scales of weight {id}"),
        binding::CONSTANT => format!("table {id}"),
        binding::MAGNITUDES => "magnitudes".into(),
        _ => "tokens".into(),
    };
    match bound.is_empty() {
        true => "nothing".into(),
        false => bound.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

impl Memory<'_> {
    /// Adds what a region of these values reads and writes.
    fn region(&mut self, values: &[Value], reads: &mut BTreeSet<Bound>, writes: &mut BTreeSet<Bound>) {
        let graph = self.graph;
        for &v in values {
            let op = graph.op(v);
            for (i, &operand) in graph.args(v).iter().enumerate() {
                let replaced = op == Op::Write && i == 0;
                self.add(operand, values, if replaced { &mut *writes } else { &mut *reads });
            }
            if op == Op::Tokens {
                reads.insert((binding::TOKENS, 0));
            }
            if let Some(root) = self.root(v).filter(|_| slot_index(self.slots, v).is_some() && op != Op::Write) {
                let first = !std::mem::replace(&mut self.stored[v.0 as usize], true);
                add_slot(graph, root, if first { &mut *writes } else { &mut *reads });
            }
        }
    }

    /// The slot that a value lies in.
    fn root(&self, v: Value) -> Option<Value> {
        match self.layouts[v.0 as usize] {
            Some(Layout { root: Root::Slot(root), .. }) => Some(root),
            _ => None,
        }
    }

    /// Adds the memory of an operand, as a region that computes these values finds it.
    fn add(&self, operand: Value, region: &[Value], found: &mut BTreeSet<Bound>) {
        let graph = self.graph;
        let mut stack = vec![operand];
        while let Some(v) = stack.pop() {
            let attr = graph.attrs(v).first().copied().unwrap_or(0);
            match graph.op(v) {
                Op::Weight => add_weight(graph, attr, found),
                Op::Const => _ = found.insert((binding::CONSTANT, attr)),
                Op::Read => _ = found.insert((binding::STATE, attr)),
                Op::Write => stack.push(graph.args(v)[0]),
                // It is computed there; where it has a slot, it may be read back.
                _ if region.binary_search(&v).is_ok() => {}
                op => match self.root(v) {
                    Some(root) => add_slot(graph, root, found),
                    None if op.is_view() => stack.push(graph.args(v)[0]),
                    None if op == Op::Gather => stack.extend(graph.args(v)),
                    None => {}
                },
            }
        }
    }
}

fn add_slot(graph: &Graph<'_>, v: Value, found: &mut BTreeSet<Bound>) {
    match graph.ty(v) == Type::Q8 {
        true => found.extend([(binding::CODES, v.0), (binding::SCALES, v.0)]),
        false => _ = found.insert((binding::SLOT, v.0)),
    }
}

fn add_weight(graph: &Graph<'_>, weight: u32, found: &mut BTreeSet<Bound>) {
    found.insert((binding::WEIGHT, weight));
    let format = graph.weights[weight as usize].ty.format();
    if format.is_some_and(Format::has_scales) {
        found.insert((binding::WEIGHT_SCALES, weight));
    }
    if format == Some(Format::IQ2_XXS) {
        found.insert((binding::MAGNITUDES, 0));
    }
}

/// A launch of split regions is one kernel, whose grid has a part for each region, in their order.
fn check_grid(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow, launch: &LaunchRow) -> Result<(), String> {
    let regions = plan.regions(launch);
    let is_split = regions.iter().any(|region| region.tiles.len > 0);
    let &[dispatch] = launch.dispatches.of(plan.dispatches) else {
        let one = || format!("it has {} kernels, but one computes split regions", launch.dispatches.len);
        return Condition::Grid.ensure(!is_split, one);
    };
    if !is_split {
        return Ok(());
    }
    let kernel: &KernelRow = &plan.kernels[dispatch.kernel.0 as usize];
    let parts = kernel.grid.of(plan.grid_parts);
    let same = |(part, region): (&Run, &RegionRow)| {
        let values = plan.values(region);
        let wanted = values.last().map(|&anchor| workgroups(graph, anchor, plan.tiles(region))).unwrap_or_default();
        let axes = part.of(plan.extents);
        axes.len() == wanted.len()
            && axes.iter().zip(&wanted).all(|(axis, groups)| is_axis(graph, plan, entry, axis, *groups))
    };
    let holds = parts.len() == regions.len() && parts.iter().zip(regions).all(same);
    Condition::Grid.ensure(holds, || {
        let tiles = |region: &RegionRow| format!("{:?}", plan.tiles(region));
        let grid: Vec<String> = parts.iter().map(|part| format!("{:?}", part.of(plan.extents))).collect();
        format!(
            "the grid of kernel `{}` has not the workgroups of its regions' splits: it is {}, but the splits are {}",
            plan.str(kernel.name),
            grid.join("; "),
            regions.iter().map(tiles).collect::<Vec<_>>().join("; ")
        )
    })
}

/// Whether an axis of a grid has these workgroups in every step of the entry point.
fn is_axis(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow, axis: &ExtentRow, groups: Groups) -> bool {
    let exact = axis.times == 1 && axis.per == 1;
    match groups {
        Groups::Const(n) => {
            let groups =
                axis.most.checked_mul(axis.times).and_then(|all| all.is_multiple_of(axis.per).then(|| all / axis.per));
            axis.word == u32::MAX && groups == Some(n)
        }
        Groups::Dim(dim) => {
            let place = plan.step_dims.iter().position(|&known| known == dim);
            let most = dim_max(graph.dims, dim, plan.bounds(entry));
            place.is_some_and(|place| axis.word == FIRST_DIM + place as u32) && axis.most >= most && exact
        }
    }
}
