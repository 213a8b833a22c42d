//! Sums and maxima over leaves, shared out among lanes in the order of their tree.

use ds4_ir::numerics::{Arith, order};
use ds4_ir::{ReduceKind, Type as ValueType, Value};

use crate::kernel::{Builder, ExtentRow, Handle, Number, Truth, Var, Word};
use crate::schedule::body::Element;

use super::arrays::Cells;
use super::index::Index;
use super::kernel::{Emit, Positions, extent_row};
use super::refusal::Refusal;
use super::share::{SHUFFLED, Share, leaves};
use super::space::Space;
use super::steps::Step;

/// What sums and maxima are made of.
pub(super) trait Joined: Handle {
    /// The result of no leaves, which changes nothing: of sums -0.0.
    fn none(b: &Builder, kind: ReduceKind) -> Self;
    /// The result of two parts, the earlier first.
    fn join(b: &Builder, kind: ReduceKind, x: Self, y: Self) -> Self;
    /// The element as this type.
    fn of_element(emit: &Emit<'_>, v: Value, element: Element) -> Self;
    /// This as an element.
    fn element(self) -> Element;
}

impl Joined for Number {
    fn none(b: &Builder, kind: ReduceKind) -> Number {
        b.number(if kind == ReduceKind::Sum { -0.0 } else { f32::NEG_INFINITY })
    }
    fn join(b: &Builder, kind: ReduceKind, x: Number, y: Number) -> Number {
        if kind == ReduceKind::Sum { b.add(x, y) } else { order::max(b, x, y) }
    }
    fn of_element(emit: &Emit<'_>, v: Value, element: Element) -> Number {
        super::element::number(emit, v, element)
    }
    fn element(self) -> Element {
        Element::F(self)
    }
}

impl Joined for Word {
    fn none(b: &Builder, kind: ReduceKind) -> Word {
        b.word(if kind == ReduceKind::Sum { 0 } else { i32::MIN as u32 })
    }
    fn join(b: &Builder, kind: ReduceKind, x: Word, y: Word) -> Word {
        if kind == ReduceKind::Sum { b.add_int(x, y) } else { b.select_int(b.less_int(x, y), y, x) }
    }
    fn of_element(emit: &Emit<'_>, v: Value, element: Element) -> Word {
        match element {
            Element::I(x) => x,
            _ => {
                emit.refuse(Refusal::NoSchedule(v));
                emit.b.word(0)
            }
        }
    }
    fn element(self) -> Element {
        Element::I(self)
    }
}

/// The first value of a sum.
pub(super) struct Rule<T> {
    pub(super) none: T,
}

/// The rule of a kind.
pub(super) fn rule_of<T: Joined>(b: &Builder, kind: ReduceKind) -> Rule<T> {
    Rule { none: T::none(b, kind) }
}

/// The leaves that a lane takes: from `first`, every `step`-th.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) first: Word,
    pub(super) step: u32,
}

impl Emit<'_> {
    /// `reduce`
    pub(super) fn reduce(&self, step: &Step) {
        let i = step.values[0];
        let v = self.region.values[i];
        let Some(kind) = ReduceKind::from_number(self.graph.attrs(v)[0]) else {
            return self.refuse(Refusal::NoSchedule(v));
        };
        let share = match Share::of(&self.graph, self.scene.bounds, v, self.plan.lanes) {
            Ok(share) => share,
            Err(refusal) => return self.refuse(refusal),
        };
        match (share, self.graph.ty(v)) {
            (Share::Unrolled(_), _) => self.each(&self.space(i), |at| self.settle(step, at, self.unrolled(v, at))),
            (_, ValueType::F32) => self.reduce_as::<Number>(step, kind, share),
            _ => self.reduce_as::<Word>(step, kind, share),
        }
    }

    fn reduce_as<T: Joined>(&self, step: &Step, kind: ReduceKind, share: Share) {
        let i = step.values[0];
        let v = self.region.values[i];
        let leaves_of = |at: &[Index], part: Part, sums: &[Var<T>]| {
            let end = extent_row(self.scene, leaves(&self.graph, v));
            let below = u64::from(end.largest().unwrap_or(u32::MAX)).max(1);
            self.b.repeat("u", part.first, end, part.step, |u| {
                self.leaf(v, kind, at, Index::word(&self.b, u, below), sums[0]);
            });
        };
        let finish = |at: &[Index], totals: &[T]| self.settle(step, at, totals[0].element());
        let sums = Sums { share, kind, results: 1, scratch: step.scratch };
        self.sums(&self.space(i), &sums, leaves_of, finish);
    }

    fn leaf<T: Joined>(&self, v: Value, kind: ReduceKind, at: &[Index], u: Index, sum: Var<T>) {
        let args = self.graph.args(v);
        let mut leaf_at = at.to_vec();
        leaf_at.insert(self.graph.attrs(v)[2] as usize, u);
        let add = || {
            let leaf = T::of_element(self, args[0], self.element(args[0], &leaf_at));
            self.b.update(sum, |so_far| T::join(&self.b, kind, so_far, leaf));
        };
        self.guarded(args.get(1).copied(), &leaf_at, add);
    }

    /// Runs `then` where the leaf exists that a mask has at a position.
    pub(super) fn guarded(&self, mask: Option<Value>, at: &[Index], then: impl FnOnce()) {
        let Some(mask) = mask else { return then() };
        match self.element(mask, at) {
            Element::Id(id) => self.b.present(id, |_| then(), || {}),
            _ => self.refuse(Refusal::NoSchedule(mask)),
        }
    }
}

/// What is summed at each position of a space.
pub(super) struct Sums {
    pub(super) share: Share,
    pub(super) kind: ReduceKind,
    /// Sums beside each other.
    pub(super) results: u32,
    pub(super) scratch: Option<Cells>,
}

impl Emit<'_> {
    /// Sums at each position of a space: `leaves` adds those of one lane to the variables, `finish` takes the totals.
    pub(super) fn sums<T: Joined>(
        &self,
        space: &Space,
        sums: &Sums,
        leaves: impl FnOnce(&[Index], Part, &[Var<T>]),
        finish: impl FnOnce(&[Index], &[T]),
    ) {
        let b = &self.b;
        let none = T::none(b, sums.kind);
        let begin = || -> Vec<Var<T>> { (0..sums.results).map(|_| b.var("sum", none)).collect() };
        let totals = |vars: &[Var<T>]| -> Vec<T> { vars.iter().map(|&var| b.value("total", var)).collect() };
        let Share::Lanes(width) = sums.share else {
            return self.each(space, |at| {
                let vars = begin();
                leaves(at, Part { first: b.word(0), step: 1 }, &vars);
                finish(at, &totals(&vars));
            });
        };
        let trees = b.lanes() / width;
        let walk = Positions::of(self, space);
        let leaf = if trees == 1 { b.lane() } else { b.name("leaf", b.rem_int(b.lane(), width)) };
        let tree = b.div_int(b.lane(), width);
        let turn = |turn: Word| {
            let number = b.add_int(b.mul_int(turn, b.word(trees)), tree);
            let below = b.below(number, b.extent_value(walk.total));
            let number = Index::word(b, number, walk.most);
            let (at, inside) = self.position(space, &walk, &number);
            let all = walk.total.is_constant().is_some_and(|n| n.is_multiple_of(trees));
            let inside = match inside {
                Some(inside) => Some(b.both(below, inside)),
                None => (!all).then_some(below),
            };
            let vars = begin();
            self.when(inside, || leaves(&at, Part { first: leaf, step: width }, &vars));
            self.fold(sums, width, leaf, &vars);
            let first: Truth = b.equal_int(leaf, b.word(0));
            let first = inside.map_or(first, |inside| b.both(inside, first));
            b.when(first, || finish(&at, &totals(&vars)));
        };
        match walk.total.is_constant() {
            Some(n) if n <= trees => turn(b.word(0)),
            _ => b.repeat("turn", b.word(0), ExtentRow { per: trees, ..walk.total }, 1, turn),
        }
    }

    /// Folds the sums of neighbouring lanes by halving; the first of them has the results.
    ///
    /// In each halving the upper half offers its sums in the workgroup's memory. A cell is written again behind a barrier
    /// that follows its last read: with at least two halvings in memory, those of a later turn. The last three halvings are
    /// shuffles among eight lanes.
    fn fold<T: Joined>(&self, sums: &Sums, width: u32, lane: Word, vars: &[Var<T>]) {
        let b = &self.b;
        let mut half = width / 2;
        if half == SHUFFLED {
            b.barrier();
        }
        while half >= SHUFFLED {
            let Some((cells, memory)) = sums.scratch.and_then(|c| Some((c, self.pools[c.pool]?))) else {
                return self.refuse(Refusal::Empty);
            };
            let cell = |of: usize, lane: Word| b.add_int(lane, b.word(cells.from + of as u32 * b.lanes()));
            let upper = b.not(b.below(lane, b.word(half)));
            let upper = if 2 * half == width { upper } else { b.both(upper, b.below(lane, b.word(2 * half))) };
            b.when(upper, || {
                for (of, &var) in vars.iter().enumerate() {
                    b.store(memory, cell(of, b.lane()), b.value("mine", var));
                }
            });
            b.barrier();
            b.when(b.below(lane, b.word(half)), || {
                for (of, &var) in vars.iter().enumerate() {
                    let other = b.load("other", memory, cell(of, b.add_int(b.lane(), b.word(half))));
                    b.update(var, |mine| T::join(b, sums.kind, mine, other));
                }
            });
            half /= 2;
        }
        while half > 0 {
            for &var in vars {
                let other = b.shuffle("other", b.value("mine", var), half, SHUFFLED);
                b.update(var, |mine| T::join(b, sums.kind, mine, other));
            }
            half /= 2;
        }
    }
}
