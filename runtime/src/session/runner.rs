//! What a session asks of the thing that executes the plan's entry points: the CPU's executor, or a device's.

use ds4_ir::graph::Graph;
use ds4_ir::plan::{Plan, SlotRow};
use ds4_ir::{Diagnostic, Step, Value};

use crate::cpu::exec::Executor;
use crate::reader::{Observer, Reader, View, readers};

/// Executes the entry points of a plan.
pub trait Runner {
    /// Runs a step at entry point `entry` of the plan; `after(value, memory)` is called behind each launch with the value
    /// that it stored.
    ///
    /// # Errors
    /// The step fails; states hold what the step may write again.
    fn run(
        &mut self,
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        entry: usize,
        step: Step,
        tokens: &[u32],
        after: Option<&mut Observer<'_>>,
    ) -> Result<(), Diagnostic>;

    /// Brings a value that the step left in the arena to where [`Runner::view`] shows it.
    ///
    /// # Errors
    /// The device was lost.
    fn output(&mut self, graph: &Graph<'_>, reader: &Reader, step: Step) -> Result<(), Diagnostic>;

    /// Readers of values; `None` for a value that has no memory of words.
    fn readers(&self, graph: &Graph<'_>, plan: &Plan<'_>, entry: usize, values: &[Value]) -> Vec<Option<Reader>>;

    /// Where the stored values of an entry point lie in its memory, which need not be where the plan has them.
    fn slots(&self, entry: usize) -> &[SlotRow];

    /// The memory of values and states.
    fn view(&self) -> View<'_>;

    /// Sets all states to their beginning.
    fn clear_states(&mut self);

    /// Kernels of an entry point.
    fn kernel_count(&self, entry: usize) -> usize;

    /// What executes, for people.
    fn device(&self) -> String;
}

impl Runner for Executor {
    fn run(
        &mut self,
        graph: &Graph<'_>,
        _: &Plan<'_>,
        entry: usize,
        step: Step,
        tokens: &[u32],
        after: Option<&mut Observer<'_>>,
    ) -> Result<(), Diagnostic> {
        self.run(graph, entry, step, tokens, after)
    }

    fn output(&mut self, _: &Graph<'_>, _: &Reader, _: Step) -> Result<(), Diagnostic> {
        Ok(())
    }

    fn readers(&self, graph: &Graph<'_>, plan: &Plan<'_>, entry: usize, values: &[Value]) -> Vec<Option<Reader>> {
        readers(graph, plan, entry, self.slots(entry), values)
    }

    fn slots(&self, entry: usize) -> &[SlotRow] {
        self.slots(entry)
    }

    fn view(&self) -> View<'_> {
        self.view()
    }

    fn clear_states(&mut self) {
        self.clear_states();
    }

    fn kernel_count(&self, entry: usize) -> usize {
        self.kernel_count(entry)
    }

    fn device(&self) -> String {
        format!("cpu, {} threads, {}", self.threads(), self.isa().name())
    }
}
