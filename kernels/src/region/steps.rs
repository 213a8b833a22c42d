//! What a workgroup does, one step after the other.

use ds4_ir::{Dim, Op};

use super::arrays::Cells;
use super::existence::{Existence, Facts, Kept, lead};
use super::refusal::Refusal;
use super::share::{Block, Share};

/// What a barrier orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Workgroup memory.
    Arrays,
    /// And the slots of the region's values.
    Slots,
}

/// A step: one value that all lanes compute, with the maps of its elements that follow; or several that one lane computes in
/// locals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// Places in the region's list.
    pub(super) values: Vec<usize>,
    /// Whether this is a chain of small values.
    pub(super) chain: bool,
    /// What is ordered by a barrier in front of it, if lanes meet there.
    pub(crate) barrier: Option<Order>,
    /// Cells that it needs while it runs.
    pub(super) scratch: Option<Cells>,
}

impl Step {
    fn one(i: usize) -> Step {
        Step { values: vec![i], chain: false, barrier: None, scratch: None }
    }
}

/// A chain that grows while nothing outside reads it.
struct Chain {
    values: Vec<usize>,
    /// What all its values share: the axis whose positions lanes take, and the axes of the grid that split them. A lane that
    /// has all of a value cannot pick the element of its workgroup from its locals.
    shared: (Option<Dim>, Vec<bool>),
    number: u32,
}

/// The steps of a region in an order in which each reads what earlier ones computed.
///
/// # Errors
/// A value has no schedule.
pub(super) fn steps(facts: &Facts<'_>, existence: &Existence) -> Result<Vec<Step>, Refusal> {
    let mut steps = Vec::new();
    let mut open = Chain { values: Vec::new(), shared: (None, Vec::new()), number: 1 };
    // The last chain that each value depends on.
    let mut touched = vec![0u32; facts.region.values.len()];
    for i in 0..facts.region.values.len() {
        let v = facts.value(i);
        let operands = facts.graph.args(v).iter().filter_map(|&a| facts.find(a));
        let reads = operands.map(|at| touched[at]).max().unwrap_or(0);
        let has_step = existence.kept[i] != Kept::No || existence.stored[i];
        if reads != open.number && follows(facts, existence, steps.last(), i) {
            steps.last_mut().into_iter().for_each(|step| step.values.push(i));
            continue;
        }
        if existence.kept[i] == Kept::Small {
            let shared = (lead(facts, i), facts.locality.atoms_of(i));
            if open.shared != shared {
                close(&mut open, &mut steps);
            }
            open.shared = shared;
            open.values.push(i);
            touched[i] = open.number;
            continue;
        }
        if has_step && reads == open.number {
            close(&mut open, &mut steps);
        }
        if has_step && is_needed(facts, existence, i) {
            check(facts, i)?;
            steps.push(Step::one(i));
        }
        touched[i] = if existence.kept[i] == Kept::No { reads } else { 0 };
    }
    close(&mut open, &mut steps);
    Ok(steps)
}

/// Whether a map takes the elements of a step's sums one by one, and nothing else that the step computes.
fn follows(facts: &Facts<'_>, existence: &Existence, step: Option<&Step>, i: usize) -> bool {
    let Some(step) = step.filter(|step| !step.chain) else { return false };
    let first = step.values[0];
    let (graph, v, sum) = (facts.graph, facts.value(i), facts.value(step.values[0]));
    let same = graph.dims_of(v) == graph.dims_of(sum) && facts.locality.axes[i] == facts.locality.axes[first];
    let sums = matches!(graph.op(sum), Op::Reduce | Op::Product);
    if !sums || !same || graph.op(v) != Op::Map || existence.kept[i] == Kept::No {
        return false;
    }
    let mut operands: Vec<usize> = graph.args(v).iter().filter_map(|&a| facts.find(a)).collect();
    let all = operands.len();
    operands.retain(|at| !step.values.contains(at));
    operands.len() < all && !reaches(facts, existence, operands, &step.values)
}

/// Whether values that are not kept lead from operands to one of these values.
fn reaches(facts: &Facts<'_>, existence: &Existence, mut pending: Vec<usize>, values: &[usize]) -> bool {
    let mut seen = Vec::new();
    while let Some(at) = pending.pop() {
        if values.contains(&at) {
            return true;
        }
        if existence.kept[at] == Kept::No && !seen.contains(&at) {
            seen.push(at);
            pending.extend(facts.graph.args(facts.value(at)).iter().filter_map(|&a| facts.find(a)));
        }
    }
    false
}

fn close(open: &mut Chain, steps: &mut Vec<Step>) {
    open.number += 1;
    let values = std::mem::take(&mut open.values);
    match values[..] {
        [] => {}
        [i] => steps.push(Step::one(i)),
        _ => steps.push(Step { values, chain: true, barrier: None, scratch: None }),
    }
}

/// Whether anybody needs a value: a reader here, its slot, or its state.
fn is_needed(facts: &Facts<'_>, existence: &Existence, i: usize) -> bool {
    existence.is_read(i) || existence.stored[i] || facts.graph.op(facts.value(i)) == Op::Write
}

fn check(facts: &Facts<'_>, i: usize) -> Result<(), Refusal> {
    let v = facts.value(i);
    match facts.graph.op(v) {
        Op::Reduce | Op::Product => Share::of(facts.graph, facts.bounds, v, facts.lanes).map(|_| ()),
        _ => Ok(()),
    }
}

/// Barriers that a lane comes by.
pub(super) fn barriers(facts: &Facts<'_>, steps: &[Step]) -> Result<u32, Refusal> {
    let mut count = 0u32;
    for step in steps {
        count += u32::from(step.barrier.is_some());
        if !step.chain {
            count = count.saturating_add(inner(facts, step.values[0])?);
        }
    }
    Ok(count)
}

fn inner(facts: &Facts<'_>, i: usize) -> Result<u32, Refusal> {
    let (graph, v) = (facts.graph, facts.value(i));
    let space = facts.space(i);
    let results = u32::try_from(space.count(graph.dims, facts.bounds)).unwrap_or(u32::MAX);
    Ok(match graph.op(v) {
        Op::Reduce | Op::Product => {
            let share = Share::of(graph, facts.bounds, v, facts.lanes)?;
            let block = match graph.op(v) {
                Op::Product => Block::of(graph, facts.bounds, v, &space, share, facts.lanes),
                _ => Block::ONE,
            };
            results.div_ceil(block.results() * share.trees(facts.lanes)).saturating_mul(share.barriers())
        }
        Op::TopK => results / graph.dims_of(v).last().map_or(1, |_| last_extent(facts, i)).max(1) * 66,
        Op::ArgMax => results.saturating_mul(2),
        _ => 0,
    })
}

fn last_extent(facts: &Facts<'_>, i: usize) -> u32 {
    let space = facts.space(i);
    space.axes.len().checked_sub(1).and_then(|axis| space.local_constant(axis)).unwrap_or(1)
}
