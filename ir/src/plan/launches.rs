//! The order of launches: what each reads is there by then, states are replaced behind all readers of what they held, and
//! how long memory is needed.

use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::plan::layout::{Layout, Root, lies_within};
use crate::plan::tables::SlotRow;
use crate::rules::launch::Condition;

/// First and last launch at which each slot's memory is needed; memory of nested slots counts for the outermost. A slot
/// that no launch touches has `(usize::MAX, 0)`.
pub type Lives = Vec<(usize, usize)>;

/// No launch.
const NEVER: usize = usize::MAX;

/// The slot of a value.
pub(super) fn slot_index(slots: &[SlotRow], value: Value) -> Option<usize> {
    slots.binary_search_by_key(&value.0, |slot| slot.value.0).ok()
}

/// First and last launch that touch each slot's memory, with the launches as lists of their regions' values; outputs are
/// touched behind the last.
///
/// Regions of a launch run side by side, so the lists are in order only if each region reads
/// - values of its own list, which it computes itself, whether or not they have a slot;
/// - values with a slot that an earlier launch has computed;
/// - versions of states that no launch up to this one has replaced, and that no launch but an earlier one has written.
///
/// A write's own look at what it replaces is no reading. Outputs, named values and writes are all computed, a write once.
///
/// # Errors
/// The lists are not in order; the text says what is wrong.
pub fn lifetimes(
    graph: &Graph<'_>,
    launches: &[Vec<&[Value]>],
    slots: &[SlotRow],
    layouts: &[Option<Layout>],
) -> Result<Lives, String> {
    let mut walk = Walk {
        graph,
        slots,
        layouts,
        lives: vec![(NEVER, 0); slots.len()],
        computed: vec![NEVER; graph.len()],
        last_read: vec![None; graph.len()],
    };
    for (at, regions) in launches.iter().enumerate() {
        for values in regions {
            walk.region(at, values)?;
        }
    }
    walk.end(launches.len())?;
    walk.replacements()?;
    Ok(walk.lives)
}

/// One walk over the launches of an entry point.
struct Walk<'a> {
    graph: &'a Graph<'a>,
    slots: &'a [SlotRow],
    layouts: &'a [Option<Layout>],
    lives: Lives,
    /// The first launch that computes each value.
    computed: Vec<usize>,
    /// The last launch that reads each version of a state.
    last_read: Vec<Option<usize>>,
}

impl Walk<'_> {
    fn region(&mut self, at: usize, values: &[Value]) -> Result<(), String> {
        for &v in values {
            let is_write = self.graph.op(v) == Op::Write;
            for (i, &operand) in self.graph.args(v).iter().enumerate() {
                match is_write && i == 0 {
                    true => self.replaces(at, v, operand)?,
                    false => self.reads(at, operand, values).map_err(|fault| format!("launch {at} ({v}) {fault}"))?,
                }
            }
            let once = !is_write || self.computed[v.0 as usize] == NEVER;
            Condition::WrittenOnce.ensure(once, || format!("launch {at} writes {v} again"))?;
            self.computed[v.0 as usize] = self.computed[v.0 as usize].min(at);
            if slot_index(self.slots, v).is_some() {
                self.touch(v, at);
            }
        }
        Ok(())
    }

    /// Launch `at` replaces the version `old`.
    fn replaces(&self, at: usize, v: Value, old: Value) -> Result<(), String> {
        let there = self.graph.op(old) == Op::Read || self.is_computed(old, at);
        Condition::Versions.ensure(there, || format!("launch {at} ({v}) replaces {old} before it is computed"))
    }

    fn is_computed(&self, v: Value, before: usize) -> bool {
        self.computed[v.0 as usize] < before
    }

    /// Launch `at` reads an operand in a region of these values.
    fn reads(&mut self, at: usize, operand: Value, region: &[Value]) -> Result<(), String> {
        for root in self.memory_of(operand, region)? {
            let op = self.graph.op(root);
            let there = op == Op::Read || self.is_computed(root, at);
            let beside = self.computed[root.0 as usize] == at;
            let condition = if beside { Condition::Apart } else { Condition::Before };
            condition.ensure(there, || match beside {
                true => format!("reads {root} before it is computed: another region of this launch computes it"),
                false => format!("reads {root} before it is computed"),
            })?;
            match op {
                // Launches come in order, so this one is the last so far.
                Op::Read | Op::Write => self.last_read[root.0 as usize] = Some(at),
                _ => self.touch(root, at),
            }
        }
        Ok(())
    }

    fn touch(&mut self, v: Value, at: usize) {
        let root = match &self.layouts[v.0 as usize] {
            Some(Layout { root: Root::Slot(root), .. }) => *root,
            _ => v,
        };
        if let Some(i) = slot_index(self.slots, root) {
            let (first, last) = self.lives[i];
            self.lives[i] = (first.min(at), last.max(at));
        }
    }

    /// Behind the last launch, number `count`, outputs are read; what else a step is for has been computed.
    fn end(&mut self, count: usize) -> Result<(), String> {
        for row in self.graph.outputs {
            self.reads(count, row.value, &[]).map_err(|fault| format!("an output {fault}"))?;
        }
        let writes = self.graph.values().filter(|&v| self.graph.op(v) == Op::Write);
        for v in self.graph.named.iter().map(|row| row.value).chain(writes) {
            for root in self.memory_of(v, &[]).map_err(|fault| format!("a named value {fault}"))? {
                let there = self.graph.op(root) == Op::Read || self.is_computed(root, count);
                Condition::Needed.ensure(there, || format!("{root} is never computed"))?;
            }
        }
        Ok(())
    }

    /// Every write comes behind all launches that read the version that it replaces.
    fn replacements(&self) -> Result<(), String> {
        for v in self.graph.values().filter(|&v| self.graph.op(v) == Op::Write) {
            let (old, at) = (self.graph.args(v)[0], self.computed[v.0 as usize]);
            if let Some(last) = self.last_read[old.0 as usize].filter(|&last| last >= at) {
                let read = || format!("launch {at} replaces {old} by {v}, but launch {last} reads it");
                Condition::Replaced.ensure(false, read)?;
            }
        }
        Ok(())
    }

    /// What a reader of `v` reads: values with memory and versions of states, through views, and for a gather that its
    /// reader does the source and the ids. Values of the same region and constant leaves need nothing.
    fn memory_of(&self, v: Value, region: &[Value]) -> Result<Vec<Value>, String> {
        let (graph, layouts) = (self.graph, self.layouts);
        let mut found = Vec::new();
        let mut stack = vec![v];
        while let Some(v) = stack.pop() {
            let op = graph.op(v);
            let slot = match &layouts[v.0 as usize] {
                Some(Layout { root: Root::Slot(root), .. }) => Some(*root),
                _ => None,
            };
            match op {
                Op::Weight | Op::Const => {}
                // A region sees a write of its own no earlier than other regions do.
                Op::Read | Op::Write => found.push(v),
                _ if region.binary_search(&v).is_ok() => {}
                Op::Concat if graph.args(v).iter().all(|&a| lies_within(graph, layouts, v, a)) => {
                    stack.extend(graph.args(v))
                }
                _ if slot == Some(v) || slot.is_some() && !op.is_view() => found.push(v),
                _ if op.is_view() => stack.push(graph.args(v)[0]),
                Op::Gather => stack.extend(graph.args(v)),
                _ => Condition::Memory.ensure(false, || format!("reads {v}, which has no memory"))?,
            }
        }
        Ok(found)
    }
}
