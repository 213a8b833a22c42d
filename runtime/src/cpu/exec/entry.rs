//! An entry point as a list of prepared kernels.

use std::collections::BTreeMap;

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::op::Op;
use ds4_ir::plan::layout::{layouts, stored_bytes};
use ds4_ir::plan::{ALIGN, EntryRow, Plan, SlotRow};
use ds4_ir::{Diagnostic, Place as SourcePlace, Value};

use super::chain::Chain;
use super::chaining::Chaining;
use super::extents::Extents;
use super::kernel::Kernel;
use super::prepare::Preparation;
use super::scalar_program::ConstantPool;
use super::wire::{Memory, Refusal, Wiring};

/// A kernel and what it computes.
pub(crate) struct Prepared {
    pub(crate) kernel: Box<dyn Kernel>,
    /// The value that is stored by this kernel.
    pub(crate) value: Value,
}

/// A piece of work of a step that nobody watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A kernel, by its number.
    Kernel(usize),
    /// A chain in place of several kernels.
    Chain(usize),
}

/// An entry point made ready.
pub(crate) struct Program {
    /// A kernel for each value, in order.
    pub(crate) kernels: Vec<Prepared>,
    chains: Vec<Chain>,
    /// The same work in fewer pieces, which leave out what only they would read.
    pub(crate) work: Vec<Work>,
    pub(crate) extents: Extents,
    /// Slots, those that the executor added included; ascending by value.
    pub(crate) slots: Vec<SlotRow>,
    /// Chunks that the kernels point into.
    _pool: ConstantPool,
}

/// Values that get memory here although the plan gives them none: interiors of regions, gathers whose reader has no
/// kernel for them, views that strides cannot express. Each with the launches that need it.
#[derive(Clone, Default)]
struct Extra {
    launches: BTreeMap<Value, Vec<usize>>,
}

impl Extra {
    fn add(&mut self, v: Value, launch: usize) -> bool {
        let list = self.launches.entry(v).or_default();
        let new = !list.contains(&launch);
        if new {
            list.push(launch);
        }
        new
    }
}

/// Bytes of arena that an entry point needs, with the memory that the executor adds.
pub(crate) fn arena_bytes(slots: &[SlotRow], entry: &EntryRow) -> u64 {
    let ends = slots.iter().map(|s| s.offset + s.bytes);
    ends.chain([entry.arena_bytes]).max().unwrap_or(0)
}

/// The slots of an entry point with all that the executor adds: made once before memory is mapped.
pub(crate) fn slots(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    memory: Memory<'_>,
) -> Result<Vec<SlotRow>, Diagnostic> {
    let mut extra = interiors(graph, plan, entry);
    loop {
        let slots = with_extra(graph, plan, entry, &extra)?;
        let mut pass = Pass::new(graph, plan, entry, &extra, slots, memory);
        let missing = pass.launches()?;
        let slots = pass.wiring.slots;
        let mut grew = false;
        for (v, launch) in missing {
            grew |= extra.add(v, launch);
        }
        if !grew {
            return Ok(slots);
        }
    }
}

/// The program of an entry point whose slots are known.
pub(crate) fn program(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    slots: Vec<SlotRow>,
    memory: Memory<'_>,
) -> Result<Program, Diagnostic> {
    let extra = added(plan, entry, &slots);
    let mut pass = Pass::new(graph, plan, entry, &extra, slots, memory);
    if let Some((v, _)) = pass.launches()?.first() {
        return Err(unsupported(graph, *v, "it has no memory"));
    }
    let Pass { mut wiring, mut pool, kernels, .. } = pass;
    let (work, chains) = Chaining::new(&mut wiring, &mut pool, &kernels).work();
    Ok(Program { kernels, chains, work, extents: wiring.extents, slots: wiring.slots, _pool: pool })
}

impl Program {
    /// The kernel that does a piece of work.
    pub(crate) fn kernel(&self, work: Work) -> &dyn Kernel {
        match work {
            Work::Kernel(i) => &*self.kernels[i].kernel,
            Work::Chain(i) => &self.chains[i],
        }
    }
}

/// Slots that the plan does not have.
fn added(plan: &Plan<'_>, entry: &EntryRow, slots: &[SlotRow]) -> Extra {
    let own = entry.slots.of(plan.slots);
    let mut extra = Extra::default();
    for slot in slots {
        if own.binary_search_by_key(&slot.value, |s| s.value).is_err() {
            extra.launches.insert(slot.value, Vec::new());
        }
    }
    extra
}

/// Values that live inside regions only.
fn interiors(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow) -> Extra {
    let slots = entry.slots.of(plan.slots);
    let mut extra = Extra::default();
    for (at, launch) in entry.launches.of(plan.launches).iter().enumerate() {
        for &v in plan.regions(launch).iter().flat_map(|region| plan.values(region)) {
            let op = graph.op(v);
            let free = op.is_view() || matches!(op, Op::Gather | Op::Write);
            let free = free || matches!(op, Op::Weight | Op::Const | Op::Read);
            if !free && slots.binary_search_by_key(&v, |s| s.value).is_err() {
                extra.add(v, at);
            }
        }
    }
    extra
}

/// The plan's slots and those of `extra`, behind the plan's arena; values of one launch do not overlap.
fn with_extra(graph: &Graph<'_>, plan: &Plan<'_>, entry: &EntryRow, extra: &Extra) -> Result<Vec<SlotRow>, Diagnostic> {
    let mut slots = entry.slots.of(plan.slots).to_vec();
    let bounds = plan.bounds(entry);
    let first = entry.arena_bytes.next_multiple_of(ALIGN);
    let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
    for (&value, launches) in &extra.launches {
        let extents = graph.max_extents(graph.value_shape[value.0 as usize], bounds);
        let bytes =
            stored_bytes(graph.ty(value), &extents).ok_or_else(|| unsupported(graph, value, "it cannot be stored"))?;
        let end = |l: &usize| ends.get(l).copied().unwrap_or(first);
        let offset = launches.iter().map(end).max().unwrap_or(first);
        for &launch in launches {
            ends.insert(launch, (offset + bytes).next_multiple_of(ALIGN));
        }
        slots.push(SlotRow { value, within: value, offset, bytes });
    }
    slots.sort_by_key(|slot| slot.value);
    Ok(slots)
}

/// A diagnostic for what the CPU has no kernel for.
fn unsupported(graph: &Graph<'_>, v: Value, why: &str) -> Diagnostic {
    let path = graph.span_path(graph.value_span[v.0 as usize]);
    let op = graph.op(v).name();
    Diagnostic::new(codes::UNSUPPORTED_LAUNCH, format!("the CPU has no kernel for a `{op}` of the plan: {why}"))
        .at(SourcePlace::item("the plan", format!("{v} in `{path}`")))
        .help("this is a fault of the compiler that wrote the plan; report it with the plan")
}

/// One walk over the launches of an entry point.
struct Pass<'a> {
    wiring: Wiring<'a>,
    pool: ConstantPool,
    entry: &'a EntryRow,
    extra: &'a Extra,
    kernels: Vec<Prepared>,
    /// Values of the present launch that have their kernels already, and those in the plan's slots, which keep what an
    /// earlier launch stored.
    done: Vec<Value>,
    stored: Vec<bool>,
    missing: Vec<(Value, usize)>,
}

impl<'a> Pass<'a> {
    fn new(
        graph: &'a Graph<'a>,
        plan: &'a Plan<'a>,
        entry: &'a EntryRow,
        extra: &'a Extra,
        slots: Vec<SlotRow>,
        memory: Memory<'a>,
    ) -> Pass<'a> {
        let bounds = plan.bounds(entry);
        let layouts = layouts(graph, bounds, &slots);
        let wiring = Wiring { graph, plan, bounds, slots, layouts, memory, extents: Extents::default() };
        Pass {
            wiring,
            pool: ConstantPool::default(),
            entry,
            extra,
            kernels: Vec::new(),
            done: Vec::new(),
            stored: vec![false; graph.len()],
            missing: Vec::new(),
        }
    }

    /// Prepares all launches; gives the values that must be stored first, with their launches.
    fn launches(&mut self) -> Result<Vec<(Value, usize)>, Diagnostic> {
        let plan = self.wiring.plan;
        let launches = self.entry.launches.of(plan.launches);
        for (at, launch) in launches.iter().enumerate() {
            self.done.clear();
            for &v in plan.regions(launch).iter().flat_map(|region| plan.values(region)) {
                if !self.wiring.is_free(v) {
                    self.value(v, at)?;
                }
            }
        }
        Ok(std::mem::take(&mut self.missing))
    }

    /// Prepares a value of launch `at`, and before it what it reads that only the executor stores.
    fn value(&mut self, v: Value, at: usize) -> Result<(), Diagnostic> {
        if self.stored[v.0 as usize] || self.done.contains(&v) {
            return Ok(());
        }
        self.done.push(v);
        self.stored[v.0 as usize] = !self.extra.launches.contains_key(&v);
        let graph = self.wiring.graph;
        for &operand in graph.args(v) {
            self.operand(operand, at)?;
        }
        let prepared = Preparation { wiring: &mut self.wiring, pool: &mut self.pool }.value(v);
        match prepared {
            Ok(kernels) => {
                let kernels = kernels.into_iter();
                self.kernels.extend(kernels.map(|kernel| Prepared { kernel, value: v }));
                Ok(())
            }
            Err(Refusal::Store(value)) => {
                self.missing.push((value, at));
                Ok(())
            }
            Err(Refusal::Unsupported(why)) => Err(unsupported(graph, v, &why)),
        }
    }

    fn operand(&mut self, v: Value, at: usize) -> Result<(), Diagnostic> {
        let graph = self.wiring.graph;
        if self.extra.launches.contains_key(&v) {
            return self.value(v, at);
        }
        if self.wiring.is_free(v) {
            for &operand in graph.args(v) {
                self.operand(operand, at)?;
            }
        }
        Ok(())
    }
}
