//! `top_k`, `arg_max` and `sort_ids`: a workgroup a row.

use ds4_ir::numerics::{Arith, order};
use ds4_ir::{Op, Value};

use crate::kernel::{Access, Builder, ExtentRow, Kernel, MaskedId, Memory, Truth, Type, Var, Word};

use super::axes::Axes;
use super::body::{self, Element};
use super::moves::load_element;
use super::operand::Operand;
use super::scene::{Refusal, Scene};

/// Lanes of a workgroup, which is one row.
const LANES: u32 = 64;
const KEYS: usize = 0;
const OUT: usize = 1;
const CANDIDATES: usize = 2;

/// The row of a workgroup.
struct Rows {
    keys: Operand,
    out: Operand,
    candidates: Option<Operand>,
    axes: Axes,
    /// Elements of a row.
    n: ExtentRow,
    key_step: u32,
    out_step: u32,
    candidate_step: u32,
}

/// `top_k`, `arg_max` or `sort_ids`
pub(super) fn choose(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let rows = Rows::of(scene, v)?;
    let b = scene.builder(v, LANES);
    let group = b.group(rows.axes.total(1)?);
    let item = rows.axes.item(&b, group)?;
    let at: Vec<Word> = item.at.iter().map(|&i| b.name("at", i)).collect();
    let place = |operand: &Operand, index: usize| b.add_int(operand.first(&b), rows.axes.offset(&b, index, &at));
    let keys = b.name("keys_at", place(&rows.keys, KEYS));
    let out = b.name("out_at", place(&rows.out, OUT));
    let candidates = rows.candidates.as_ref().map(|c| b.name("candidates_at", place(c, CANDIDATES)));
    let key_memory = rows.keys.memory(&b, Access::Read, "keys")?;
    let out_memory = rows.out.memory(&b, Access::Write, "out")?;
    let candidate_memory = rows.candidates.as_ref().map(|c| c.memory(&b, Access::Read, "candidates")).transpose()?;
    let step = |first: Word, i: Word, step: u32| b.add_int(first, b.mul_int(i, b.word(step)));
    let key = |i: Word| load_element(&b, rows.keys.element(), key_memory, step(keys, i, rows.key_step));
    let store = |i: Word, element: Element| {
        // Elements of these operations are words and ids, which are always stored.
        let _ = body::store(&b, out_memory, step(out, i, rows.out_step), element);
    };
    let candidate = candidates.zip(candidate_memory).map(|(first, memory)| {
        let b = &b;
        let by = rows.candidate_step;
        move |i: Word| -> MaskedId { b.load("candidate", memory, b.add_int(first, b.mul_int(i, b.word(by)))) }
    });
    let row = Row {
        b: &b,
        inside: item.inside,
        n: rows.n,
        key: &key,
        candidate: candidate.as_ref().map(|c| c as &dyn Fn(Word) -> MaskedId),
        store: &store,
    };
    let k = scene.extents(v).last().and_then(ExtentRow::largest).unwrap_or(0);
    let scratch = |name: &str| (b.shared(Type::Word, 2 * LANES, name), 0);
    match graph.op(v) {
        Op::TopK if k == 0 => {}
        Op::TopK => row.top_k(k, scratch("counts")),
        Op::ArgMax => row.arg_max(scratch("best")),
        _ => row.sort_ids(),
    }
    Ok(b.finish())
}

impl Rows {
    fn of(scene: &Scene<'_>, v: Value) -> Result<Rows, Refusal> {
        let args = scene.graph.args(v);
        let (mut keys, mut out) = (Operand::of(scene, args[0])?, Operand::of(scene, v)?);
        let mut candidates = args.get(1).map(|&c| Operand::of(scene, c)).transpose()?;
        if let Some(gather) = [Some(&keys), candidates.as_ref()].into_iter().flatten().find(|o| o.ids.is_some()) {
            return Err(Refusal::Store(gather.value));
        }
        let mut extents = scene.extents(args[0]);
        let n = extents.pop().unwrap_or(ExtentRow::constant(1));
        let key_step = keys.strides.pop().unwrap_or(1);
        let out_step = if scene.graph.op(v) == Op::ArgMax { 0 } else { out.strides.pop().unwrap_or(1) };
        let candidate_step = candidates.as_mut().and_then(|c| c.strides.pop()).unwrap_or(0);
        let candidate_strides = candidates.as_ref().map_or_else(|| vec![0; extents.len()], |c| c.strides.clone());
        let axes = Axes::merged(&extents, &[keys.strides.clone(), out.strides.clone(), candidate_strides]);
        Ok(Rows { keys, out, candidates, axes, n, key_step, out_step, candidate_step })
    }
}

/// One row of keys, in which all lanes of a workgroup choose together.
pub(crate) struct Row<'r> {
    pub(crate) b: &'r Builder,
    /// Whether there is such a row; the same in every lane.
    pub(crate) inside: Truth,
    /// Elements of the row.
    pub(crate) n: ExtentRow,
    /// A key: a float, an integer or an id.
    pub(crate) key: &'r dyn Fn(Word) -> Element,
    /// Whether a key may be chosen.
    pub(crate) candidate: Option<&'r dyn Fn(Word) -> MaskedId>,
    /// Stores an element of the result.
    pub(crate) store: &'r dyn Fn(Word, Element),
}

impl Row<'_> {
    fn store(&self, i: Word, id: MaskedId) {
        (self.store)(i, Element::Id(id));
    }

    /// Runs `then` with the rank of key `i`, as a word whose unsigned order is that of ranks, if it may be chosen.
    fn rank(&self, i: Word, then: impl FnOnce(Word)) {
        let b = self.b;
        let ranked = || {
            let Element::F(key) = (self.key)(i) else { return };
            then(b.name("rank", b.xor(order::rank(b, key), b.word(1 << 31))));
        };
        match self.candidate {
            Some(candidate) => b.present(candidate(i), |_| ranked(), || {}),
            None => ranked(),
        }
    }

    /// Each element of the row once, shared out among the lanes.
    fn each(&self, body: impl FnOnce(Word)) {
        self.b.repeat("j", self.b.lane(), self.n, self.b.lanes(), body);
    }

    fn count(&self, var: Var<Word>, holds: Truth) {
        let b = self.b;
        b.update(var, |n| b.add_int(n, b.select_int(holds, b.word(1), b.word(0))));
    }

    /// The k largest, ascending by index.
    ///
    /// The rank of the k-th is found bit by bit, each time counting the keys that are not below; of those with just that
    /// rank the first ones fill up. Then each lane takes a run of neighbouring elements and knows from the others' counts
    /// where its chosen ones go.
    ///
    /// The scratch has two words a lane.
    pub(crate) fn top_k(&self, k: u32, scratch: (Memory, u32)) {
        let b = self.b;
        let cell = |i: Word| b.add_int(i, b.word(scratch.1));
        let array = scratch.0;
        let threshold = b.var("threshold", b.word(0));
        b.repeat("bit", b.word(0), ExtentRow::constant(32), 1, |bit| {
            let trial = b.name("trial", b.or(b.value("so_far", threshold), b.shr(b.word(1 << 31), bit)));
            let mine = b.var("mine", b.word(0));
            self.each(|j| self.rank(j, |rank| self.count(mine, b.not(b.below(rank, trial)))));
            b.store(array, cell(b.lane()), b.value("count", mine));
            b.barrier();
            let all = b.var("all", b.word(0));
            b.repeat("lane", b.word(0), ExtentRow::constant(b.lanes()), 1, |l| {
                let other: Word = b.load("other", array, cell(l));
                b.update(all, |n| b.add_int(n, other));
            });
            b.barrier();
            let enough = b.not(b.below(b.value("count", all), b.word(k)));
            b.update(threshold, |t| b.select_int(enough, trial, t));
        });
        let threshold = b.value("kth_rank", threshold);
        self.place(k, threshold, scratch);
    }

    /// Runs `body` for the elements of this lane's run.
    fn run(&self, body: impl FnOnce(Word)) {
        let b = self.b;
        let chunk = ExtentRow { per: b.lanes(), ..self.n };
        let first = b.name("run_at", b.mul_int(b.lane(), b.extent_value(chunk)));
        b.repeat("t", b.word(0), chunk, 1, |t| {
            let j = b.name("j", b.add_int(first, t));
            b.when(b.below(j, b.extent_value(self.n)), || body(j));
        });
    }

    fn place(&self, k: u32, threshold: Word, (array, first): (Memory, u32)) {
        let b = self.b;
        let cell = |i: Word, half: u32| b.add_int(i, b.word(first + half * b.lanes()));
        let (above, ties) = (b.var("above", b.word(0)), b.var("ties", b.word(0)));
        self.run(|j| {
            self.rank(j, |rank| {
                self.count(above, b.below(threshold, rank));
                self.count(ties, b.equal_int(threshold, rank));
            });
        });
        b.store(array, cell(b.lane(), 0), b.value("my_above", above));
        b.store(array, cell(b.lane(), 1), b.value("my_ties", ties));
        b.barrier();
        let zero = b.word(0);
        let [before, ties_before, all, all_ties] =
            ["before", "ties_before", "all", "all_ties"].map(|name| b.var(name, zero));
        b.repeat("lane", zero, ExtentRow::constant(b.lanes()), 1, |l| {
            let above: Word = b.load("above", array, cell(l, 0));
            let ties: Word = b.load("ties", array, cell(l, 1));
            b.update(all, |n| b.add_int(n, above));
            b.update(all_ties, |n| b.add_int(n, ties));
            b.when(b.below(l, b.lane()), || {
                b.update(before, |n| b.add_int(n, above));
                b.update(ties_before, |n| b.add_int(n, ties));
            });
        });
        let all = b.value("all_above", all);
        let wanted = b.name("wanted_ties", b.sub_int(b.word(k), all));
        let least = |n: Word| b.select_int(b.below(n, wanted), n, wanted);
        let tie = b.var("tie", b.value("first_tie", ties_before));
        let next = b.var("next", b.add_int(b.value("above_before", before), least(b.value("tie_now", tie))));
        self.run(|j| {
            self.rank(j, |rank| {
                let is_tie = b.name("is_tie", b.equal_int(rank, threshold));
                let taken = b.both(is_tie, b.below(b.value("tie_now", tie), wanted));
                let chosen = b.name("chosen", b.either(b.below(threshold, rank), taken));
                self.count(tie, is_tie);
                b.when(chosen, || {
                    self.store(b.value("place", next), b.id_where(b.truth(true), j));
                    b.update(next, |n| b.add_int(n, b.word(1)));
                });
            });
        });
        let total = b.name("total", b.add_int(all, least(b.value("ties_in_all", all_ties))));
        b.repeat("p", b.lane(), ExtentRow::constant(k), b.lanes(), |p| {
            b.when(b.not(b.below(p, total)), || self.store(p, b.masked()));
        });
    }

    /// The index of the largest, the lower one if several are. The scratch has two words a lane.
    pub(crate) fn arg_max(&self, (array, first): (Memory, u32)) {
        let b = self.b;
        let cell = |i: Word, half: u32| b.add_int(i, b.word(first + half * b.lanes()));
        let (best, index) = (b.var("best", b.word(0)), b.var("index", b.word(u32::MAX)));
        let better = |rank: Word, at: Word, best: Word, index: Word| {
            let tie = b.both(b.equal_int(rank, best), b.below(at, index));
            b.name("better", b.either(b.below(best, rank), tie))
        };
        let take = |rank: Word, at: Word| {
            let better = better(rank, at, b.value("so_far", best), b.value("its_index", index));
            b.update(best, |old| b.select_int(better, rank, old));
            b.update(index, |old| b.select_int(better, at, old));
        };
        self.each(|j| self.rank(j, |rank| take(rank, j)));
        b.store(array, cell(b.lane(), 0), b.value("my_best", best));
        b.store(array, cell(b.lane(), 1), b.value("my_index", index));
        b.barrier();
        b.when(b.both(self.inside, b.equal_int(b.lane(), b.word(0))), || {
            b.repeat("lane", b.word(1), ExtentRow::constant(b.lanes()), 1, |l| {
                take(b.load("rank", array, cell(l, 0)), b.load("at", array, cell(l, 1)));
            });
            (self.store)(b.word(0), Element::I(b.value("arg_max", index)));
        });
    }

    /// Ascending, masked last: an id goes behind all smaller ones and behind equal ones in front of it.
    pub(crate) fn sort_ids(&self) {
        let b = self.b;
        self.each(|j| {
            let key = self.id_key(j);
            let place = b.var("place", b.word(0));
            b.repeat("other", b.word(0), self.n, 1, |o| {
                let other = self.id_key(o);
                let tie = b.both(b.equal_int(other, key), b.below(o, j));
                self.count(place, b.either(b.below(other, key), tie));
            });
            let masked = b.equal_int(key, b.word(u32::MAX));
            self.store(b.value("sorted_at", place), b.id_where(b.not(masked), key));
        });
    }

    /// The id as a word whose unsigned order puts masked ids last.
    fn id_key(&self, i: Word) -> Word {
        let b = self.b;
        match (self.key)(i) {
            Element::Id(id) => {
                let key = b.var("id_key", b.word(u32::MAX));
                b.present(id, |id| b.set(key, id), || {});
                b.value("key", key)
            }
            Element::I(id) => id,
            _ => b.word(u32::MAX),
        }
    }
}
