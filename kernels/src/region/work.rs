//! Steps: elements one by one, rows of states, and chains of small values in one lane's locals.

use ds4_ir::numerics::Arith;
use ds4_ir::plan::layout::lies_within;
use ds4_ir::{Op, ReduceKind, Tree, Type as ValueType, Value};

use crate::kernel::{Access, Number, Word};
use crate::schedule::body::Element;

use super::axes::{Axis, Extent};
use super::element::key;
use super::index::Index;
use super::kernel::Emit;
use super::refusal::Refusal;
use super::roll::roll;
use super::space::Space;
use super::steps::{Order, Step};
use super::sums::{Joined, rule_of};

impl Emit<'_> {
    /// Does one step.
    pub(super) fn step(&self, step: &Step) {
        match step.barrier {
            Some(Order::Arrays) => self.b.barrier(),
            Some(Order::Slots) => self.b.barrier_with_buffers(),
            None => {}
        }
        match step.values[..] {
            _ if step.chain => self.chain(&step.values),
            [i, ..] => self.single(i, step),
            [] => self.refuse(Refusal::Empty),
        }
    }

    fn single(&self, i: usize, step: &Step) {
        let v = self.region.values[i];
        match self.op(v) {
            Op::Reduce => self.reduce(step),
            Op::Product => self.product(step),
            Op::Quantise => self.quantise(i),
            Op::TopK | Op::ArgMax | Op::SortIds => self.choose(i, step.scratch),
            Op::Write => self.write(i),
            Op::Concat => self.concat(i),
            _ => self.each(&self.space(i), |at| self.keep(i, at, self.made(v, at))),
        }
    }

    /// Keeps the first value of a step at a position, and the maps that take its element.
    pub(super) fn settle(&self, step: &Step, at: &[Index], element: Element) {
        let mut element = self.named(element);
        for (turn, &i) in step.values.iter().enumerate() {
            let v = self.region.values[i];
            if turn > 0 {
                element = self.named(self.made(v, at));
            }
            if step.values.len() > 1 {
                self.registers.borrow_mut().insert(key(v, at), element);
            }
            self.keep(i, at, element);
        }
        step.values.iter().for_each(|&i| {
            self.registers.borrow_mut().remove(&key(self.region.values[i], at));
        });
    }

    /// `concat`: one operand after the other, but for those that lie in its slot already.
    fn concat(&self, i: usize) {
        let v = self.region.values[i];
        let axis = self.graph.attrs(v)[0] as usize;
        let on_chip = self.plan.arrays.is_on_chip(i);
        let mut start = Index::default();
        for &operand in self.graph.args(v) {
            let dims = self.graph.dims_of(operand);
            let mut axes = self.plan.locality.axes[i].clone();
            axes[axis] = Axis::Whole;
            let within = self.plan.values[i].stored && lies_within(&self.graph, self.scene.layouts, v, operand);
            if on_chip || !within {
                self.each(&Space::of(self.graph.dims, dims, &axes), |at| {
                    let mut place = at.to_vec();
                    place[axis] = place[axis].plus(&start);
                    let element = self.element(operand, at);
                    self.keep_where(i, &place, element, !within);
                });
            }
            start = start.plus(&self.dim_index(dims[axis]));
        }
    }

    /// `write`: rows of a state replaced, NaN made canonical; masked ids are skipped.
    fn write(&self, i: usize) {
        let v = self.region.values[i];
        let &[state, ids, rows] = self.graph.args(v) else { return self.refuse(Refusal::NoSchedule(v)) };
        self.when(self.first_group(i), || {
            self.each(&self.space(i), |at| {
                let put = |id: Index| {
                    let mut place = at.to_vec();
                    place[0] = id;
                    let element = self.canonical(self.element(rows, at));
                    let Some((operand, place)) = self.place(state, &place) else {
                        return self.refuse(Refusal::NotStored(state));
                    };
                    match operand.memory(&self.b, Access::Write, "state") {
                        Ok(memory) => self.store(v, memory, place.value(&self.b), element),
                        Err(_) => self.refuse(Refusal::NotStored(state)),
                    }
                };
                let below = self.scene.extent(self.graph.dims_of(state)[0], 1).largest().unwrap_or(u32::MAX);
                let index = |id: Word| Index::word(&self.b, id, below.into());
                match self.element(ids, &at[..1]) {
                    Element::I(id) => put(index(self.b.name("id", id))),
                    Element::Id(id) => self.b.present(id, |id| put(index(id)), || {}),
                    _ => self.refuse(Refusal::NoSchedule(v)),
                }
            });
        });
    }

    /// A chain: each lane takes one position of the axis that all its values begin with and a step chooses, if there is one;
    /// otherwise one lane does everything.
    fn chain(&self, values: &[usize]) {
        let first = values[0];
        let lead = super::existence::lead_of(&self.graph, self.region, &self.plan.locality, first);
        match lead {
            Some(dim) => {
                let row = self.dim(dim);
                let most = u64::from(row.largest().unwrap_or(u32::MAX)).max(1);
                self.b.repeat("row", self.b.lane(), row, self.b.lanes(), |row| {
                    self.chain_at(values, Some(Index::word(&self.b, row, most)));
                });
            }
            None => {
                let alone = self.b.equal_int(self.b.lane(), self.b.word(0));
                self.b.when(alone, || self.chain_at(values, None));
            }
        }
        self.registers.borrow_mut().clear();
    }

    fn chain_at(&self, values: &[usize], lead: Option<Index>) {
        match roll(self, values) {
            Some(roll) => self.chain_with_loop(values, &roll, lead.as_ref()),
            None => self.chain_part(values, lead.as_ref()),
        }
    }

    /// Values of a chain, element by element.
    pub(super) fn chain_part(&self, values: &[usize], lead: Option<&Index>) {
        for &i in values {
            let v = self.region.values[i];
            for at in self.chain_positions(i, lead) {
                let element = match self.op(v) {
                    Op::Reduce => self.unrolled(v, &at),
                    _ => self.made(v, &at),
                };
                let element = self.named(element);
                self.insert(v, &at, element);
                self.keep(i, &at, element);
            }
        }
    }

    /// An element is in a local from here on.
    pub(super) fn insert(&self, v: Value, at: &[Index], element: Element) {
        self.registers.borrow_mut().insert(key(v, at), element);
    }

    /// The positions of a value of a chain, with the lane's own one along the axis that lanes share out.
    pub(super) fn chain_positions(&self, i: usize, lead: Option<&Index>) -> Vec<Vec<Index>> {
        let space = self.space(i);
        let mut extents: Vec<u32> = space.locals().filter_map(Extent::constant).collect();
        if let Some(Extent::Dim(_)) = space.locals().next() {
            extents.insert(0, 1);
        }
        let count: u32 = extents.iter().product();
        let position = |number: u32| {
            let mut rest = number;
            let mut digit = |&n: &u32| {
                let here = rest % n;
                rest /= n;
                Index::constant(here)
            };
            let mut locals: Vec<Index> = extents.iter().rev().map(&mut digit).collect();
            locals.reverse();
            if let (Some(lead), Some(first)) = (lead, locals.first_mut()) {
                *first = lead.clone();
            }
            self.coordinates(&space, &locals)
        };
        (0..count).map(position).collect()
    }

    /// Notes that no schedule does a value.
    pub(super) fn no_schedule(&self, v: Value) {
        self.refuse(Refusal::NoSchedule(v));
    }

    /// A reduction of few leaves, in its tree.
    pub(super) fn unrolled(&self, v: Value, at: &[Index]) -> Element {
        let attrs = self.graph.attrs(v);
        let lanes = match Tree::from_number(attrs[1]) {
            Some(Tree::Lanes(n)) => n,
            _ => 1,
        };
        match (self.graph.ty(v), ReduceKind::from_number(attrs[0])) {
            (ValueType::F32, Some(kind)) => Element::F(self.unrolled_as::<Number>(v, at, kind, lanes)),
            (_, Some(kind)) => Element::I(self.unrolled_as::<Word>(v, at, kind, lanes)),
            _ => self.refused(Refusal::NoSchedule(v), v),
        }
    }

    fn unrolled_as<T: Joined>(&self, v: Value, at: &[Index], kind: ReduceKind, lanes: u32) -> T {
        let count = super::share::leaves(&self.graph, v).constant().unwrap_or(0);
        let rule = rule_of::<T>(&self.b, kind);
        let leaves: Vec<T> = (0..count).map(|u| self.leaf_alone(v, at, u, rule.none)).collect();
        let join = |x: T, y: T| self.b.name("sum", T::join(&self.b, kind, x, y));
        tree(&leaves, lanes, &join).unwrap_or(rule.none)
    }

    /// Leaf `u` of a reduction, or what changes nothing where it is absent.
    fn leaf_alone<T: Joined>(&self, v: Value, at: &[Index], u: u32, none: T) -> T {
        let args = self.graph.args(v);
        let axis = self.graph.attrs(v)[2] as usize;
        let mut leaf_at = at.to_vec();
        leaf_at.insert(axis, Index::constant(u));
        let leaf = || T::of_element(self, args[0], self.element(args[0], &leaf_at));
        let Some(&mask) = args.get(1) else { return leaf() };
        match self.element(mask, &leaf_at) {
            Element::Id(id) => {
                let held = self.b.var("leaf", none);
                self.b.present(id, |_| self.b.set(held, leaf()), || {});
                self.b.value("leaf", held)
            }
            _ => leaf(),
        }
    }
}

/// Leaves joined as a tree of so many lanes does: each lane ascending, then the lanes by halving.
pub(super) fn tree<T: Copy>(leaves: &[T], lanes: u32, join: &dyn Fn(T, T) -> T) -> Option<T> {
    let lanes = lanes.max(1) as usize;
    let mut partial: Vec<Option<T>> =
        (0..lanes).map(|lane| leaves.iter().skip(lane).step_by(lanes).copied().reduce(join)).collect();
    let mut half = lanes / 2;
    while half > 0 {
        for lane in 0..half {
            partial[lane] = match (partial[lane], partial[lane + half]) {
                (Some(x), Some(y)) => Some(join(x, y)),
                (x, y) => x.or(y),
            };
        }
        half /= 2;
    }
    partial.first().copied().flatten()
}
