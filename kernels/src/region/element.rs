//! Elements where they are read: loaded where the value is kept, otherwise computed from elements of its operands.

use ds4_ir::numerics::{Arith, order};
use ds4_ir::plan::Root;
use ds4_ir::{Body, Dim, Op, Type as ValueType, Value};

use crate::kernel::{Access, Handle, MaskedId, Memory, Number, Source, Truth, Type, Var, Word};
use crate::schedule::body::{self, Element, Param};
use crate::schedule::decode::Tensor;
use crate::schedule::operand::Operand;

use super::axes::blocks;
use super::index::Index;
use super::kernel::Emit;
use super::plan::Place;
use super::refusal::Refusal;

/// A local that holds an element.
#[derive(Clone, Copy)]
enum Holder {
    F(Var<Number>),
    I(Var<Word>),
    Id(Var<MaskedId>),
}

impl Emit<'_> {
    /// An element of a value at a position.
    pub(super) fn element(&self, v: Value, at: &[Index]) -> Element {
        if let Some(element) = self.registers.borrow().get(&key(v, at)) {
            return *element;
        }
        if let Some(i) = self.find(v) {
            match self.plan.values[i].place {
                Place::OnChip => return self.on_chip(i, at),
                Place::View | Place::Inline => {}
                Place::Stored => {
                    return self.laid(v, at).unwrap_or_else(|| self.refused(Refusal::NotStored(v), v));
                }
                Place::Registers => return self.refused(Refusal::NoSchedule(v), v),
            }
        } else if let Some(element) = self.laid(v, at) {
            return element;
        }
        self.made(v, at)
    }

    /// An element that its operands make.
    pub(super) fn made(&self, v: Value, at: &[Index]) -> Element {
        let (args, attrs) = (self.graph.args(v), self.graph.attrs(v));
        match self.op(v) {
            Op::Map => self.mapped(v, at),
            Op::Iota => Element::I(at[attrs[0] as usize].value(&self.b)),
            Op::Extent => Element::I(self.b.extent_value(self.dim(Dim(attrs[0])))),
            Op::Tokens => {
                let memory = self.b.argument(Source::Tokens, Type::Word, Access::Read, "tokens");
                Element::I(self.b.load("token", memory, at[0].value(&self.b)))
            }
            Op::Reshape | Op::Slice | Op::Permute | Op::Broadcast => self.element(args[0], &self.through(v, at)),
            Op::Gather => self.gathered(v, at),
            Op::Concat => self.joined(v, at),
            Op::Widen => self.widened(v, at),
            Op::Const | Op::Read => self.laid(v, at).unwrap_or_else(|| self.refused(Refusal::NotStored(v), v)),
            _ => self.refused(Refusal::NotStored(v), v),
        }
    }

    /// Notes a fault; the element does not matter.
    pub(super) fn refused(&self, refusal: Refusal, v: Value) -> Element {
        self.refuse(refusal);
        nothing(self, v)
    }

    fn on_chip(&self, i: usize, at: &[Index]) -> Element {
        let v = self.region.values[i];
        let ([Some(cells), _], cell) = (self.plan.arrays.of(i), self.cell(i, at)) else {
            return self.refused(Refusal::NoSchedule(v), v);
        };
        let Some(memory) = self.pools[cells.pool] else { return self.refused(Refusal::NoSchedule(v), v) };
        self.load(v, memory, cell.plus(&Index::constant(cells.from)).value(&self.b))
    }

    fn load(&self, v: Value, memory: Memory, index: Word) -> Element {
        match self.graph.ty(v) {
            ValueType::F32 => Element::F(self.b.load("x", memory, index)),
            ValueType::ID => Element::Id(self.b.load("id", memory, index)),
            _ => Element::I(self.b.load("n", memory, index)),
        }
    }

    /// The place of an element of a value that has memory of its own, or is a view of what has.
    pub(super) fn place(&self, v: Value, at: &[Index]) -> Option<(Operand, Index)> {
        let layout = self.scene.layout(v).ok()?;
        if matches!(layout.root, Root::Gather(_)) {
            return None;
        }
        let operand = Operand::of(self.scene, v).ok()?;
        let mut place = Index::constant(operand.offset);
        for (coordinate, &stride) in at.iter().zip(&operand.strides) {
            place = place.plus(&coordinate.times(stride));
        }
        for &shift in &operand.shifts {
            let most = u64::from(shift.largest().unwrap_or(u32::MAX - 1)) + 1;
            place = place.plus(&Index::word(&self.b, self.b.extent_value(shift), most));
        }
        Some((operand, place))
    }

    fn laid(&self, v: Value, at: &[Index]) -> Option<Element> {
        if self.graph.ty(v).format().is_some() || self.graph.ty(v) == ValueType::Q8 {
            return None;
        }
        let (operand, place) = self.place(v, at)?;
        let memory = operand.memory(&self.b, Access::Read, "in").ok()?;
        Some(self.load(v, memory, place.value(&self.b)))
    }

    /// The position in a view's operand of a position in the view.
    pub(super) fn through(&self, v: Value, at: &[Index]) -> Vec<Index> {
        let (operand, attrs) = (self.graph.args(v)[0], self.graph.attrs(v));
        let (own, theirs) = (self.graph.dims_of(v), self.graph.dims_of(operand));
        match self.op(v) {
            Op::Permute => {
                let mut inner = vec![Index::default(); theirs.len()];
                for (coordinate, &axis) in at.iter().zip(attrs) {
                    inner[axis as usize] = coordinate.clone();
                }
                inner
            }
            Op::Broadcast => {
                let same = own.iter().zip(theirs).map(|(a, b)| a == b);
                at.iter().zip(same).map(|(c, same)| if same { c.clone() } else { Index::default() }).collect()
            }
            Op::Slice => {
                let mut inner = at.to_vec();
                let axis = attrs[0] as usize;
                inner[axis] = inner[axis].plus(&self.dim_index(Dim(attrs[1])));
                inner
            }
            _ => self.reshaped(v, at),
        }
    }

    fn reshaped(&self, v: Value, at: &[Index]) -> Vec<Index> {
        let (own, theirs) = (self.graph.dims_of(v), self.graph.dims_of(self.graph.args(v)[0]));
        let constant = |dim: Dim| {
            self.scene.constant(dim).unwrap_or_else(|| {
                self.refuse(Refusal::NoSchedule(v));
                1
            })
        };
        let mut inner = vec![Index::default(); theirs.len()];
        // Axes of one position say nothing.
        let several = |dims: &[Dim], axes: std::ops::Range<usize>| -> Vec<usize> {
            axes.filter(|&axis| self.scene.constant(dims[axis]) != Some(1)).collect()
        };
        for (source, target) in blocks(self.graph.dims, own, theirs) {
            let (source, target) = (several(own, source), several(theirs, target));
            if let ([from], [to]) = (&source[..], &target[..]) {
                inner[*to] = at[*from].clone();
                continue;
            }
            let mut number = Index::default();
            for (turn, &axis) in source.iter().enumerate() {
                let outer = if turn == 0 { Index::default() } else { number.times(constant(own[axis])) };
                number = outer.plus(&at[axis]);
            }
            for (turn, &axis) in target.iter().enumerate().rev() {
                if turn == 0 {
                    inner[axis] = number;
                    break;
                }
                let (outer, here) = number.split(&self.b, constant(theirs[axis]).max(1));
                inner[axis] = here;
                number = outer;
            }
        }
        inner
    }

    fn mapped(&self, v: Value, at: &[Index]) -> Element {
        let args = self.graph.args(v);
        let params: Vec<Param> = args.iter().map(|&a| self.param(self.element(a, at))).collect();
        let result = body::body(self.scene, &self.b, Body(self.graph.attrs(v)[0]), &params);
        result.unwrap_or_else(|_| self.refused(Refusal::NoSchedule(v), v))
    }

    fn param(&self, element: Element) -> Param {
        match element {
            Element::F(x) => Param::F(x),
            Element::I(x) => Param::I(x),
            Element::B(x) => Param::Present(x),
            Element::Id(id) => Param::Present(self.is_present(id)),
        }
    }

    fn is_present(&self, id: MaskedId) -> Truth {
        let present = self.b.var("present", self.b.truth(false));
        self.b.present(id, |_| self.b.set(present, self.b.truth(true)), || {});
        self.b.value("is_present", present)
    }

    /// Position of the id and position in the source, but for the id, of a position in a gather.
    pub(super) fn selected(&self, v: Value, at: &[Index]) -> (Vec<Index>, Vec<Index>, usize) {
        let (axis, batch) = (self.graph.attrs(v)[0] as usize, self.graph.attrs(v)[1] as usize);
        let own = self.graph.dims_of(self.graph.args(v)[1]).len() - batch;
        let ids = [&at[..batch], &at[axis..axis + own]].concat();
        let source = [&at[..axis], &[Index::default()], &at[axis + own..]].concat();
        (ids, source, axis)
    }

    /// Runs `then` with the id that a gather takes at a position, where it is present.
    pub(super) fn with_id(&self, v: Value, ids_at: &[Index], then: impl FnOnce(Index)) {
        let (source, ids) = (self.graph.args(v)[0], self.graph.args(v)[1]);
        let rows = self.graph.dims_of(source)[self.graph.attrs(v)[0] as usize];
        let below = u64::from(self.dim(rows).largest().unwrap_or(u32::MAX)).max(1);
        let key = key(v, ids_at);
        let known = self.known_ids.borrow().iter().find(|(k, _)| *k == key).map(|(_, id)| id.clone());
        if let Some(id) = known {
            return then(id);
        }
        let run = |id: Word| {
            let id = Index::word(&self.b, id, below);
            self.known_ids.borrow_mut().push((key, id.clone()));
            then(id);
            self.known_ids.borrow_mut().pop();
        };
        match self.element(ids, ids_at) {
            Element::I(id) => run(self.b.name("id", id)),
            Element::Id(id) => self.b.present(id, run, || {}),
            _ => self.refuse(Refusal::NoSchedule(v)),
        }
    }

    fn gathered(&self, v: Value, at: &[Index]) -> Element {
        let (ids_at, source_at, axis) = self.selected(v, at);
        let source = self.graph.args(v)[0];
        let holder = self.holder(v);
        self.with_id(v, &ids_at, |id| {
            let mut source_at = source_at;
            source_at[axis] = id;
            self.hold(holder, self.element(source, &source_at));
        });
        self.held(holder)
    }

    fn joined(&self, v: Value, at: &[Index]) -> Element {
        let axis = self.graph.attrs(v)[0] as usize;
        let args = self.graph.args(v);
        let mut start = Index::default();
        let mut pieces = Vec::with_capacity(args.len());
        for &operand in args {
            let end = start.plus(&self.dim_index(self.graph.dims_of(operand)[axis]));
            // Pieces that a known position cannot be in are left out.
            let constant = (start.known(), end.known());
            let before = constant.1.is_some_and(|end| at[axis].least() >= end);
            let behind = constant.0.is_some_and(|start| at[axis].below() <= u64::from(start));
            if !before && !behind {
                pieces.push((operand, start.clone(), end.clone()));
            }
            start = end;
        }
        if let [(operand, start, _)] = &pieces[..] {
            return self.element(*operand, &self.piece_at(at, axis, start));
        }
        let holder = self.holder(v);
        self.pieces(holder, at, axis, &pieces);
        self.held(holder)
    }

    fn pieces(&self, holder: Holder, at: &[Index], axis: usize, pieces: &[(Value, Index, Index)]) {
        let Some(((operand, start, end), rest)) = pieces.split_first() else { return };
        let take = || self.hold(holder, self.element(*operand, &self.piece_at(at, axis, start)));
        if rest.is_empty() {
            return take();
        }
        let inside = self.b.below(at[axis].value(&self.b), end.value(&self.b));
        self.b.branch(inside, take, || self.pieces(holder, at, axis, rest));
    }

    /// The position in an operand of a concat that begins at `start`.
    fn piece_at(&self, at: &[Index], axis: usize, start: &Index) -> Vec<Index> {
        let mut inner = at.to_vec();
        inner[axis] = inner[axis].minus(&self.b, start);
        inner
    }

    fn widened(&self, v: Value, at: &[Index]) -> Element {
        let Some((k, row_at)) = at.split_last() else { return self.refused(Refusal::NoSchedule(v), v) };
        let direct = std::cell::Cell::new(None);
        let w = self.graph.args(v)[0];
        let holder = self.masks_rows(w).then(|| self.holder(v));
        self.with_row(w, row_at, &mut |tensor, row| {
            let row = tensor.row(&self.b, row.value(&self.b));
            let k = k.value(&self.b);
            let element = match tensor.format.is_integer() {
                true => Element::I(tensor.integer(&self.b, &row, k)),
                false => match tensor.element(&self.b, &row, k) {
                    Ok(x) => Element::F(x),
                    Err(_) => self.refused(Refusal::NoSchedule(v), v),
                },
            };
            match holder {
                Some(holder) => self.hold(holder, element),
                None => direct.set(Some(element)),
            }
        });
        match (holder, direct.get()) {
            (Some(holder), _) => self.held(holder),
            (None, Some(element)) => element,
            (None, None) => self.refused(Refusal::NoSchedule(v), v),
        }
    }

    /// Whether masked ids choose rows of a weight.
    fn masks_rows(&self, w: Value) -> bool {
        let mut at = w;
        while self.op(at) != Op::Weight {
            if self.op(at) == Op::Gather {
                return true;
            }
            match self.graph.args(at).first() {
                Some(&inner) => at = inner,
                None => return false,
            }
        }
        false
    }

    /// Runs `then` with the tensor and the row that a position of weight type, without its last axis, means.
    pub(super) fn with_row(&self, w: Value, at: &[Index], then: &mut dyn FnMut(&Tensor, Index)) {
        match self.op(w) {
            Op::Weight => {
                let Ok(tensor) = Operand::of(self.scene, w).and_then(|o| Tensor::of(self.scene, &self.b, &o)) else {
                    return self.refuse(Refusal::NoSchedule(w));
                };
                let dims = self.graph.dims_of(w);
                let extents = dims.iter().map(|&d| self.scene.constant(d).unwrap_or(1));
                let row = at.iter().zip(extents).fold(Index::default(), |row, (c, n)| row.times(n).plus(c));
                then(&tensor, row);
            }
            Op::Gather => {
                let position = [at, &[Index::default()]].concat();
                let (ids_at, mut source_at, axis) = self.selected(w, &position);
                self.with_id(w, &ids_at, |id| {
                    source_at[axis] = id;
                    source_at.pop();
                    self.with_row(self.graph.args(w)[0], &source_at, then);
                });
            }
            op if op.is_view() => {
                let mut inner = self.through(w, &[at, &[Index::default()]].concat());
                inner.pop();
                self.with_row(self.graph.args(w)[0], &inner, then);
            }
            _ => self.refuse(Refusal::NoSchedule(w)),
        }
    }

    /// A local for an element of a value, which holds what stands where there is none.
    fn holder(&self, v: Value) -> Holder {
        match nothing(self, v) {
            Element::F(x) => Holder::F(self.b.var("x", x)),
            Element::Id(x) => Holder::Id(self.b.var("id", x)),
            Element::I(x) => Holder::I(self.b.var("n", x)),
            Element::B(_) => Holder::I(self.b.var("n", self.b.word(0))),
        }
    }

    fn hold(&self, holder: Holder, element: Element) {
        match (holder, element) {
            (Holder::F(var), Element::F(x)) => self.b.set(var, x),
            (Holder::I(var), Element::I(x)) => self.b.set(var, x),
            (Holder::Id(var), Element::Id(x)) => self.b.set(var, x),
            _ => self.refuse(Refusal::NoSchedule(*self.region.values.last().unwrap_or(&Value(0)))),
        }
    }

    fn held(&self, holder: Holder) -> Element {
        match holder {
            Holder::F(var) => Element::F(self.b.value("held", var)),
            Holder::I(var) => Element::I(self.b.value("held", var)),
            Holder::Id(var) => Element::Id(self.b.value("held", var)),
        }
    }

    /// Keeps an element: on chip, in the value's slot, or both.
    pub(super) fn keep(&self, i: usize, at: &[Index], element: Element) {
        self.keep_where(i, at, element, true);
    }

    /// The same; in the slot only if `slot` says so.
    pub(super) fn keep_where(&self, i: usize, at: &[Index], element: Element, slot: bool) {
        let v = self.region.values[i];
        let element = self.named(element);
        if let Some(cells) = self.plan.arrays.of(i)[0]
            && let Some(memory) = self.pools[cells.pool]
        {
            let cell = self.cell(i, at).plus(&Index::constant(cells.from));
            self.store(v, memory, cell.value(&self.b), element);
        }
        if self.plan.values[i].stored && slot {
            self.when(self.first_group(i), || {
                let Some((operand, place)) = self.place(v, at) else { return self.refuse(Refusal::NotStored(v)) };
                match operand.memory(&self.b, Access::Write, "out") {
                    Ok(memory) => self.store(v, memory, place.value(&self.b), element),
                    Err(_) => self.refuse(Refusal::NotStored(v)),
                }
            });
        }
    }

    pub(super) fn store(&self, v: Value, memory: Memory, index: Word, element: Element) {
        if body::store(&self.b, memory, index, element).is_err() {
            self.refuse(Refusal::NoSchedule(v));
        }
    }

    /// Names an element, so that it is computed once.
    pub(super) fn named(&self, element: Element) -> Element {
        match element {
            Element::F(x) => Element::F(self.b.name("y", x)),
            Element::I(x) => Element::I(self.b.name("y", x)),
            Element::Id(x) => Element::Id(self.b.name("y", x)),
            Element::B(x) => Element::B(self.b.name("y", x)),
        }
    }

    /// A float of a value, canonical where it is NaN.
    pub(super) fn canonical(&self, element: Element) -> Element {
        match element {
            Element::F(x) => Element::F(order::canonical(&self.b, x)),
            other => other,
        }
    }
}

/// What stands where there is no value.
fn nothing(emit: &Emit<'_>, v: Value) -> Element {
    match emit.graph.ty(v) {
        ValueType::ID => Element::Id(emit.b.masked()),
        ValueType::I32 => Element::I(emit.b.word(0)),
        _ => Element::F(emit.b.number(0.0)),
    }
}

/// Words that name an element.
pub(super) fn key(v: Value, at: &[Index]) -> Vec<u32> {
    let mut key = vec![v.0];
    at.iter().for_each(|index| index.key(&mut key));
    key
}

/// The expression of an element of a known type.
pub(super) fn number(emit: &Emit<'_>, v: Value, element: Element) -> Number {
    match element {
        Element::F(x) => x,
        _ => {
            emit.refuse(Refusal::NoSchedule(v));
            Number::of(emit.b.number(0.0).expr())
        }
    }
}
