//! An entry point as a sequence of dispatches.

use std::collections::BTreeMap;
use std::ops::Range;

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, State};
use ds4_ir::plan::tables::ExtentRow;
use ds4_ir::plan::{EntryRow, Plan, SlotRow};
use ds4_ir::{Diagnostic, Op, Place, Value};
use ds4_kernels::kernel::Grid;

use super::memory::Memory;
use crate::device::backend::{Backend, Dispatch, Function, Sequence};

/// An entry point on a device.
pub(super) struct Program {
    pub(super) sequence: Sequence,
    /// For each launch its last value and its dispatches.
    pub(super) launches: Vec<(Value, Range<usize>)>,
    /// The stored values, ascending.
    pub(super) slots: Vec<SlotRow>,
    /// The state of each value that writes one.
    pub(super) written: BTreeMap<Value, State>,
    /// The axes of each part of each dispatch's grid.
    grids: Vec<Vec<Vec<ExtentRow>>>,
}

impl Program {
    pub(super) fn new(
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        row: &EntryRow,
        functions: &[Function],
        memory: &Memory<'_>,
        backend: &mut dyn Backend,
    ) -> Result<Program, Diagnostic> {
        let (bounds, slots) = (plan.bounds(row), row.slots.of(plan.slots));
        let (mut dispatches, mut launches, mut grids) = (Vec::new(), Vec::new(), Vec::new());
        for launch in row.launches.of(plan.launches) {
            let first = dispatches.len();
            for dispatch in launch.dispatches.of(plan.dispatches) {
                let bindings = dispatch.bindings.of(plan.bindings);
                let arguments = bindings.iter().map(|binding| memory.piece(graph, bounds, slots, binding));
                let arguments = std::iter::once(Some(memory.step())).chain(arguments).collect::<Option<_>>();
                let kernel = dispatch.kernel.0 as usize;
                dispatches.push(Dispatch { function: functions[kernel], arguments: arguments.ok_or_else(unbound)? });
                let parts = plan.kernels[kernel].grid.of(plan.grid_parts).iter();
                grids.push(parts.map(|part| part.of(plan.extents).to_vec()).collect());
            }
            let values = launch.values.of(plan.launch_values);
            launches.extend(values.last().map(|&v| (v, first..dispatches.len())));
        }
        let writes = graph.values().filter(|&v| graph.op(v) == Op::Write);
        let written = writes.filter_map(|v| Some((v, graph.state_of(v)?))).collect();
        Ok(Program { sequence: backend.sequence(&dispatches)?, launches, slots: slots.to_vec(), written, grids })
    }

    /// Number of dispatches.
    pub(super) fn len(&self) -> usize {
        self.grids.len()
    }

    /// Bytes of the memory that slot `at` lies in: of the outermost value around it, where all have their offset.
    pub(super) fn outer_bytes(&self, mut at: usize) -> u64 {
        while self.slots[at].within != self.slots[at].value {
            match self.slots.binary_search_by_key(&self.slots[at].within, |slot| slot.value) {
                Ok(outer) if outer > at => at = outer,
                _ => break,
            }
        }
        self.slots[at].bytes
    }

    /// The dispatches that have something to do in a step with these words, and their grids.
    pub(super) fn grids(&self, dispatches: Range<usize>, words: &[u32]) -> Result<Vec<(u32, [u32; 2])>, Diagnostic> {
        let mut grids = Vec::with_capacity(dispatches.len());
        for at in dispatches {
            let axes = |part: &Vec<ExtentRow>| part.iter().map(|row| extent(row, words)).collect();
            let grid = Grid { parts: self.grids[at].iter().map(axes).collect() };
            if grid.total() > 0 {
                let (width, height) = grid.folded().ok_or_else(unbound)?;
                grids.push((at as u32, [width, height]));
            }
        }
        Ok(grids)
    }
}

/// The value of an extent; the plan's check has shown that it fits.
fn extent(row: &ExtentRow, words: &[u32]) -> u32 {
    let word = words.get(row.word as usize).map_or(row.most, |&word| word.min(row.most));
    (row.times * word).div_ceil(row.per)
}

/// What the check of a plan excludes.
fn unbound() -> Diagnostic {
    Diagnostic::new(codes::PLAN_FACT, "the plan's kernels do not fit its memory")
        .at(Place::item("the plan", "its dispatches"))
        .help("compile the model again with `ds4c compile`")
}
