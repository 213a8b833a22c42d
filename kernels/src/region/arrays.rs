//! Workgroup memory: an array for each type of element, in which values that do not live at the same time share places.

use ds4_ir::{Op, Type, Value};

use crate::kernel;

use super::existence::{Existence, Facts, Kept};
use super::share::{Block, SHUFFLED, Share};
use super::steps::{Order, Step};

/// The arrays of a workgroup, by the type of their elements.
pub(super) const POOLS: [(kernel::Type, &str); 3] =
    [(kernel::Type::F32, "floats"), (kernel::Type::Word, "words"), (kernel::Type::Id, "ids")];
const FLOATS: usize = 0;
const WORDS: usize = 1;
const IDS: usize = 2;
/// From here on the slots of the region's values, which are no workgroup memory but ordered like it.
const SLOTS: usize = 3;

/// Cells of one array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cells {
    /// Which array.
    pub(super) pool: usize,
    /// The first.
    pub(super) from: u32,
    /// Number of them.
    pub(super) count: u32,
}

impl Cells {
    fn meets(&self, other: &Cells) -> bool {
        self.pool == other.pool && self.from < other.end() && other.from < self.end()
    }

    /// Behind the last. What is far too large for any device stays that large, so that it is refused.
    fn end(&self) -> u32 {
        self.from.saturating_add(self.count)
    }
}

/// Where the values of a region lie in workgroup memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Arrays {
    /// Of each value its cells: of q8 codes, then scales.
    cells: Vec<[Option<Cells>; 2]>,
    /// Elements of each array.
    pub(super) lens: [u32; 3],
}

impl Arrays {
    /// Whether a value has cells.
    pub(super) fn is_on_chip(&self, i: usize) -> bool {
        self.cells[i][0].is_some()
    }

    /// First cell of a value: pool and place; the second one is that of q8 scales.
    pub(super) fn of(&self, i: usize) -> [Option<Cells>; 2] {
        self.cells[i]
    }

    /// Bytes of all arrays.
    pub(super) fn bytes(&self) -> u32 {
        self.lens.iter().fold(0u32, |n, &len| n.saturating_add(len.saturating_mul(4)))
    }
}

/// Places arrays for all kept values that a later step reads, and scratch for the steps that need it; marks the steps in
/// front of which lanes have to meet.
pub(super) fn place(facts: &Facts<'_>, existence: &Existence, steps: &mut [Step]) -> Arrays {
    let readers = Readers::of(facts, existence, steps);
    let mut found = Arrays { cells: vec![[None; 2]; facts.region.values.len()], lens: [0; 3] };
    let mut live: Vec<(Cells, usize)> = Vec::new();
    let mut used: Vec<(Cells, bool)> = Vec::new();
    for (s, step) in steps.iter_mut().enumerate() {
        live.retain(|(_, last)| *last >= s);
        let mut take = |pool: usize, count: u32, last: usize, lens: &mut [u32; 3]| {
            let cells = free(&live, pool, count);
            lens[pool] = lens[pool].max(cells.end());
            live.push((cells, last));
            cells
        };
        let mut writes = Vec::new();
        for &i in &step.values {
            if existence.slot_only[i] {
                writes.push(slot(i));
                continue;
            }
            let Some(last) = readers.last_behind(i, s).filter(|_| existence.kept[i] != Kept::No) else { continue };
            let wanted = cells_wanted(facts, existence, i);
            found.cells[i] = wanted.map(|w| w.map(|(pool, count)| take(pool, count, last, &mut found.lens)));
            writes.extend(found.cells[i].into_iter().flatten());
        }
        step.scratch = scratch(facts, step).map(|(pool, count)| take(pool, count, s, &mut found.lens));
        writes.extend(step.scratch);
        let read = |&i: &usize| -> Vec<Cells> {
            let in_slot = existence.slot_only[i].then(|| slot(i));
            found.cells[i].into_iter().flatten().chain(in_slot).collect()
        };
        let reads: Vec<Cells> = readers.of_step[s].iter().flat_map(read).collect();
        let clash = |(cells, written): &&(Cells, bool)| {
            writes.iter().any(|w| w.meets(cells)) || *written && reads.iter().any(|r| r.meets(cells))
        };
        let in_slots = used.iter().filter(clash).any(|(cells, _)| cells.pool >= SLOTS);
        step.barrier = match used.iter().any(|used| clash(&used)) {
            true => Some(if in_slots { Order::Slots } else { Order::Arrays }),
            false => None,
        };
        if let Some(order) = step.barrier {
            used.retain(|(cells, _)| cells.pool >= SLOTS && order == Order::Arrays);
        }
        used.extend(writes.into_iter().map(|cells| (cells, true)));
        used.extend(reads.into_iter().map(|cells| (cells, false)));
    }
    found
}

/// What stands for the slot of a value.
fn slot(i: usize) -> Cells {
    Cells { pool: SLOTS + i, from: 0, count: 1 }
}

/// The first gap that is large enough.
fn free(live: &[(Cells, usize)], pool: usize, count: u32) -> Cells {
    let mut taken: Vec<Cells> = live.iter().map(|(cells, _)| *cells).filter(|cells| cells.pool == pool).collect();
    taken.sort_by_key(|cells| cells.from);
    let mut from = 0u32;
    for cells in taken {
        if cells.from >= from.saturating_add(count) {
            break;
        }
        from = from.max(cells.end());
    }
    Cells { pool, from, count }
}

/// Pool and number of cells of a value.
fn cells_wanted(facts: &Facts<'_>, existence: &Existence, i: usize) -> [Option<(usize, u32)>; 2] {
    // An array that is always empty has a cell, so that texts can name it.
    let count = u32::try_from(existence.elements(i)).unwrap_or(u32::MAX / 8).max(1);
    match facts.graph.ty(facts.value(i)) {
        Type::Q8 => [Some((WORDS, count.div_ceil(4))), Some((FLOATS, count.div_ceil(32)))],
        Type::F32 => [Some((FLOATS, count)), None],
        Type::ID => [Some((IDS, count)), None],
        _ => [Some((WORDS, count)), None],
    }
}

/// Pool and number of cells that a step needs while it runs.
fn scratch(facts: &Facts<'_>, step: &Step) -> Option<(usize, u32)> {
    let i = *step.values.first().filter(|_| !step.chain)?;
    let v = facts.value(i);
    let lanes = facts.lanes;
    match facts.graph.op(v) {
        Op::Reduce | Op::Product => {
            let share = Share::of(facts.graph, facts.bounds, v, lanes).ok()?;
            let Share::Lanes(n) = share else { return None };
            let results = match facts.graph.op(v) {
                Op::Product => Block::of(facts.graph, facts.bounds, v, &facts.space(i), share, lanes).results(),
                _ => 1,
            };
            let pool = if facts.graph.ty(v) == Type::F32 { FLOATS } else { WORDS };
            (n / 2 >= SHUFFLED).then_some((pool, lanes * results))
        }
        Op::TopK | Op::ArgMax => Some((WORDS, 2 * lanes)),
        _ => None,
    }
}

/// Which steps read which kept values.
struct Readers {
    /// For each value the steps that read it, through what is not kept as well, ascending.
    of_value: Vec<Vec<usize>>,
    /// For each step the kept values that it reads.
    of_step: Vec<Vec<usize>>,
}

impl Readers {
    fn of(facts: &Facts<'_>, existence: &Existence, steps: &[Step]) -> Readers {
        let count = facts.region.values.len();
        let mut own = vec![None; count];
        for (s, step) in steps.iter().enumerate() {
            step.values.iter().for_each(|&i| own[i] = Some(s));
        }
        let mut of_value: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut of_step: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for i in (0..count).rev() {
            let mut mine = std::mem::take(&mut of_value[i]);
            mine.sort_unstable();
            mine.dedup();
            if existence.kept[i] != Kept::No {
                mine.iter().for_each(|&s| of_step[s].push(i));
            }
            let passed: &[usize] = if existence.kept[i] == Kept::No { &mine } else { &[] };
            for operand in operands(facts, facts.value(i)) {
                of_value[operand].extend_from_slice(passed);
                of_value[operand].extend(own[i]);
            }
            of_value[i] = mine;
        }
        Readers { of_value, of_step }
    }

    /// The last step that reads value `i` behind step `s`, which computes it.
    fn last_behind(&self, i: usize, s: usize) -> Option<usize> {
        self.of_value[i].last().copied().filter(|&last| last > s)
    }
}

fn operands<'a>(facts: &'a Facts<'_>, v: Value) -> impl Iterator<Item = usize> + use<'a> {
    facts.graph.args(v).iter().filter_map(|&a| facts.find(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of any size are placed one behind the other; where they end beyond 32 bits, they stay too large.
    #[test]
    fn far_too_large_arrays_stay_too_large() {
        let cells = |from: u32| Cells { pool: WORDS, from, count: u32::MAX / 8 };
        let live: Vec<(Cells, usize)> = (0..9).map(|i| (cells(u32::MAX / 8 * i.min(8)), 0)).collect();
        let next = free(&live, WORDS, u32::MAX / 8);
        assert_eq!(next.end(), u32::MAX);
    }
}
