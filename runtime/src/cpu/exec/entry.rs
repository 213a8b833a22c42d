//! An entry point as a list of prepared kernels.

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::plan::layout::layouts;
use ds4_ir::plan::{EntryRow, Plan, SlotRow};
use ds4_ir::schedule::{Keep, Schedule, schedule_keeping, slot};
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
    /// Slots, ascending by value.
    pub(crate) slots: Vec<SlotRow>,
    /// Chunks that the kernels point into.
    _pool: ConstantPool,
}

/// Launches and memory of an entry point: each value once, in the order of ids, whatever regions the plan has. Regions say
/// what workgroups share and compute again because they cannot; here memory is one.
///
/// Made once before memory is mapped. The memory of `lasting` values is theirs to the end of a step.
pub(crate) fn schedule(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    memory: Memory<'_>,
    lasting: &[Value],
) -> Result<Schedule, Diagnostic> {
    let mut stored = Vec::new();
    loop {
        let schedule = schedule_keeping(graph, plan.bounds(entry), Keep { stored: &stored, lasting });
        let missing = Pass::new(graph, plan, entry, &schedule, memory).launches(&schedule)?;
        let before = stored.len();
        for v in missing {
            slot(graph, plan.bounds(entry), v).ok_or_else(|| unsupported(graph, v, "it cannot be stored"))?;
            stored.push(v);
        }
        stored.sort();
        stored.dedup();
        if stored.len() == before {
            return Ok(schedule);
        }
    }
}

/// The program of an entry point whose launches and memory are known.
pub(crate) fn program(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    entry: &EntryRow,
    schedule: &Schedule,
    memory: Memory<'_>,
    lasting: &[Value],
) -> Result<Program, Diagnostic> {
    let mut pass = Pass::new(graph, plan, entry, schedule, memory);
    if let Some(v) = pass.launches(schedule)?.first() {
        return Err(unsupported(graph, *v, "it has no memory"));
    }
    let Pass { mut wiring, mut pool, kernels, .. } = pass;
    let (work, chains) = Chaining::new(&mut wiring, &mut pool, &kernels, lasting).work();
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
    kernels: Vec<Prepared>,
    missing: Vec<Value>,
}

impl<'a> Pass<'a> {
    fn new(
        graph: &'a Graph<'a>,
        plan: &'a Plan<'a>,
        entry: &EntryRow,
        schedule: &Schedule,
        memory: Memory<'a>,
    ) -> Pass<'a> {
        let (bounds, slots) = (plan.bounds(entry), schedule.slots.clone());
        let layouts = layouts(graph, bounds, &slots);
        let wiring = Wiring { graph, plan, bounds, slots, layouts, memory, extents: Extents::default() };
        Pass { wiring, pool: ConstantPool::default(), kernels: Vec::new(), missing: Vec::new() }
    }

    /// Prepares all launches; gives the values that must be stored first.
    fn launches(&mut self, schedule: &Schedule) -> Result<Vec<Value>, Diagnostic> {
        for &v in schedule.lists().into_iter().flatten().flatten() {
            if !self.wiring.is_free(v) {
                self.value(v)?;
            }
        }
        Ok(std::mem::take(&mut self.missing))
    }

    fn value(&mut self, v: Value) -> Result<(), Diagnostic> {
        match (Preparation { wiring: &mut self.wiring, pool: &mut self.pool }).value(v) {
            Ok(kernels) => {
                self.kernels.extend(kernels.into_iter().map(|kernel| Prepared { kernel, value: v }));
                Ok(())
            }
            Err(Refusal::Store(value)) => {
                self.missing.push(value);
                Ok(())
            }
            Err(Refusal::Unsupported(why)) => Err(unsupported(self.wiring.graph, v, &why)),
        }
    }
}
