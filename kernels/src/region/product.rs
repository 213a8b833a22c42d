//! Products: rows of `x` with rows of `w`, several of both on what is loaded once.

use ds4_ir::numerics::Arith;
use ds4_ir::{ReduceKind, Type as ValueType, Value};

use crate::kernel::{Access, Memory, Number, Source, Truth, Type, Var, Word};
use crate::schedule::body::Element;
use crate::schedule::decode::{Row, Tensor};
use crate::schedule::leaf::{Activations, Weights};

use super::arrays::Cells;
use super::axes::Factor;
use super::element::number;
use super::index::Index;
use super::kernel::{Emit, extent_row};
use super::plan::Place;
use super::refusal::Refusal;
use super::share::{Block, Share, leaves};
use super::space::Space;
use super::steps::Step;
use super::sums::{Part, Sums};

/// A leaf of a row of `w`.
enum Right {
    /// 32 weights.
    Weights(Weights),
    /// An element.
    Number(Number),
}

/// A product and what one lane sums at once.
struct Product<'p> {
    v: Value,
    x: Value,
    w: Value,
    mask: Option<Value>,
    block: Block,
    batch: usize,
    sums: &'p Sums,
}

impl Emit<'_> {
    /// `product`
    pub(super) fn product(&self, step: &Step) {
        let i = step.values[0];
        let v = self.region.values[i];
        let args = self.graph.args(v);
        let share = match Share::of(&self.graph, self.scene.bounds, v, self.plan.lanes) {
            Ok(share) => share,
            Err(refusal) => return self.refuse(refusal),
        };
        let space = self.space(i);
        let block = Block::of(&self.graph, self.scene.bounds, v, &space, share, self.plan.lanes);
        let sums = Sums { share, kind: ReduceKind::Sum, results: block.results(), scratch: step.scratch };
        let batch = self.graph.dims_of(args[1]).len() - 2;
        let product = Product { v, x: args[0], w: args[1], mask: args.get(2).copied(), block, batch, sums: &sums };
        let leaves = |at: &[Index], part: Part, vars: &[Var<Number>]| product.leaves(self, at, part, vars);
        let finish = |at: &[Index], totals: &[Number]| product.finish(self, step, at, totals);
        self.sums(&blocked(&space, block), &sums, leaves, finish);
    }
}

/// The space of a product's blocks: the columns as one position, the rows of a block as one.
fn blocked(space: &Space, block: Block) -> Space {
    let mut space = space.clone();
    if let Some((axis, _)) = block.columns {
        space.axes[axis].clear();
    }
    let last = space.axes.len() - 1;
    if block.rows > 1
        && let Some(factor) = space.axes[last].last_mut()
        && let Some(n) = factor.extent.constant()
    {
        *factor = Factor { extent: super::axes::Extent::Const(n / block.rows), ..*factor };
        space.axes[last]
            .push(Factor { extent: super::axes::Extent::Const(block.rows), walk: super::axes::Walk::Fixed });
    }
    space
}

impl Product<'_> {
    /// The position of one result of a block.
    fn at(&self, at: &[Index], row: u32, column: Option<u32>) -> Vec<Index> {
        let mut at = at.to_vec();
        if let (Some(column), Some((axis, _))) = (column, self.block.columns) {
            at[axis] = Index::constant(column);
        }
        if let Some(last) = at.last_mut() {
            *last = last.plus(&Index::constant(row));
        }
        at
    }

    /// The columns of a block, each with the condition that a step has it.
    fn columns(&self, emit: &Emit<'_>) -> Vec<(Option<u32>, Option<Truth>)> {
        let Some((axis, most)) = self.block.columns else { return vec![(None, None)] };
        let extent = super::axes::Extent::of(emit.graph.dims, emit.graph.dims_of(self.v)[axis]);
        let row = extent_row(emit.scene, extent);
        let holds = |column: u32| {
            let below = emit.b.below(emit.b.word(column), emit.b.extent_value(row));
            (extent.constant().is_none()).then_some(below)
        };
        (0..most).map(|column| (Some(column), holds(column))).collect()
    }

    fn finish(&self, emit: &Emit<'_>, step: &Step, at: &[Index], totals: &[Number]) {
        for (c, (column, holds)) in self.columns(emit).into_iter().enumerate() {
            emit.when(holds, || {
                for row in 0..self.block.rows {
                    let total = totals[c * self.block.rows as usize + row as usize];
                    emit.settle(step, &self.at(at, row, column), Element::F(total));
                }
            });
        }
    }

    /// Adds one lane's leaves. Ids that do not change along K are looked up once, in front of the loop.
    fn leaves(&self, emit: &Emit<'_>, at: &[Index], part: Part, vars: &[Var<Number>]) {
        let length = leaves(&emit.graph, self.v);
        let end = extent_row(emit.scene, length);
        let below = u64::from(end.largest().unwrap_or(u32::MAX)).max(1);
        let w_at = self.w_at(at, &Index::unknown(below * self.unit(emit)));
        emit.with_fixed_ids(self.w, &w_at, &mut || {
            if let Share::Unrolled(lanes) = self.sums.share {
                return self.unrolled(emit, at, end.largest().unwrap_or(0), lanes, vars);
            }
            emit.b.repeat("k", part.first, end, part.step, |k| {
                self.term(emit, at, &Index::word(&emit.b, k, below), vars);
            });
        });
    }

    /// Elements of a leaf.
    fn unit(&self, emit: &Emit<'_>) -> u64 {
        if emit.graph.ty(self.x) == ValueType::Q8 { 32 } else { 1 }
    }

    /// All leaves of one lane, joined as the tree joins lanes.
    fn unrolled(&self, emit: &Emit<'_>, at: &[Index], count: u32, lanes: u32, vars: &[Var<Number>]) {
        let leaf = |k: u32| {
            let var = emit.b.var("term", emit.b.number(-0.0));
            self.term(emit, at, &Index::constant(k), &[var]);
            emit.b.value("term", var)
        };
        let terms: Vec<Number> = (0..count).map(leaf).collect();
        if let Some(total) = super::work::tree(&terms, lanes, &|x, y| emit.b.add(x, y)) {
            emit.b.set(vars[0], total);
        }
    }

    /// Adds leaf `k` of every result of a block.
    fn term(&self, emit: &Emit<'_>, at: &[Index], k: &Index, vars: &[Var<Number>]) {
        let mask_at = [&at[..self.batch], std::slice::from_ref(k)].concat();
        emit.guarded(self.mask, &mask_at, || self.rows(emit, at, k, 0, &mut Vec::new(), vars));
    }

    /// Loads the leaf of each row of `w`, then those of `x`. Where a row is masked its sum gets nothing; rows of one block
    /// have one id.
    fn rows(&self, emit: &Emit<'_>, at: &[Index], k: &Index, row: u32, found: &mut Vec<Right>, vars: &[Var<Number>]) {
        if row == self.block.rows {
            return self.add(emit, at, k, found, vars);
        }
        let at_row = self.at(at, row, None);
        let w_at = self.w_at(&at_row, k);
        let several = self.block.results() > self.block.rows;
        if emit.graph.ty(self.w).format().is_none() {
            let element = number(emit, self.w, emit.element(self.w, &w_at));
            found.push(Right::Number(element));
            return self.rows(emit, at, k, row + 1, found, vars);
        }
        let (_, row_at) = w_at.split_last().map_or((None, &w_at[..]), |(k, rest)| (Some(k), rest));
        emit.with_row(self.w, row_at, &mut |tensor, index| {
            let tensor_row = tensor.row(&emit.b, index.value(&emit.b));
            match self.right(emit, tensor, &tensor_row, k.value(&emit.b), several) {
                Some(right) => found.push(right),
                None => return emit.refuse(Refusal::NoSchedule(self.v)),
            }
            self.rows(emit, at, k, row + 1, found, vars);
        });
    }

    fn right(&self, emit: &Emit<'_>, tensor: &Tensor, row: &Row, k: Word, several: bool) -> Option<Right> {
        let b = &emit.b;
        if emit.graph.ty(self.x) != ValueType::Q8 {
            let element = tensor.element(b, row, k).ok()?;
            return Some(Right::Number(if several { b.name("w", element) } else { element }));
        }
        let weights = tensor.weights(b, row, k).ok()?;
        Some(Right::Weights(if several { weights.named(b) } else { weights }))
    }

    fn add(&self, emit: &Emit<'_>, at: &[Index], k: &Index, rows: &[Right], vars: &[Var<Number>]) {
        for (c, (column, holds)) in self.columns(emit).into_iter().enumerate() {
            emit.when(holds, || {
                let mut x_at = self.at(at, 0, column);
                x_at.pop();
                x_at.push(k.times(self.unit(emit) as u32));
                let vars = &vars[c * rows.len()..];
                self.add_column(emit, &x_at, rows, vars);
            });
        }
    }

    fn add_column(&self, emit: &Emit<'_>, x_at: &[Index], rows: &[Right], vars: &[Var<Number>]) {
        let b = &emit.b;
        if emit.graph.ty(self.x) == ValueType::Q8 {
            let Some(x) = emit.activations(self.x, x_at) else {
                return emit.refuse(Refusal::NotStored(self.x));
            };
            for (right, &var) in rows.iter().zip(vars) {
                let Right::Weights(weights) = right else { continue };
                let term = b.name("term", weights.leaf(b, &x));
                b.update(var, |sum| b.add(sum, term));
            }
            return;
        }
        let x = number(emit, self.x, emit.element(self.x, x_at));
        let x = if rows.len() > 1 { b.name("x", x) } else { x };
        for (right, &var) in rows.iter().zip(vars) {
            let Right::Number(w) = right else { continue };
            let term = b.name("term", b.mul(*w, x));
            b.update(var, |sum| b.add(sum, term));
        }
    }

    /// The position in `w` of leaf `k`: elements, or blocks.
    fn w_at(&self, at: &[Index], k: &Index) -> Vec<Index> {
        let last = at.len() - 1;
        [&at[..self.batch], &at[last..], std::slice::from_ref(k)].concat()
    }
}

impl Emit<'_> {
    /// Runs `then` where the ids that do not depend on what is unknown in a position are present, and known.
    fn with_fixed_ids(&self, v: Value, at: &[Index], then: &mut dyn FnMut()) {
        if let Some(i) = self.find(v)
            && matches!(self.plan.values[i].place, Place::OnChip | Place::Stored)
        {
            return then();
        }
        match self.op(v) {
            ds4_ir::Op::Gather if self.place(v, at).is_none() => {
                let (ids_at, _, _) = self.selected(v, at);
                if ids_at.iter().any(Index::is_unknown) {
                    return then();
                }
                self.with_id(v, &ids_at, |_| then());
            }
            op if op.is_view() => self.with_fixed_ids(self.graph.args(v)[0], &self.through(v, at), then),
            _ => then(),
        }
    }

    /// 32 activations at a position, a multiple of 32 along the last axis.
    fn activations(&self, x: Value, at: &[Index]) -> Option<Activations> {
        let b = &self.b;
        let (codes, scales) = self.q8_place(x, at)?;
        let codes = (codes.0, b.name("codes_at", codes.1.value(b)));
        Some(Activations::at(b, codes, (scales.0, scales.1.value(b))))
    }

    /// Memory and place of the codes, four to a word, and of the scale of a block.
    fn q8_place(&self, x: Value, at: &[Index]) -> Option<((Memory, Index), (Memory, Index))> {
        let b = &self.b;
        if let Some(i) = self.find(x) {
            if let [Some(codes), Some(scales)] = self.plan.arrays.of(i) {
                let cell = self.cell(i, at);
                let place = |cells: Cells, unit: u32| {
                    Some((self.pools[cells.pool]?, cell.split(b, unit).0.plus(&Index::constant(cells.from))))
                };
                return Some((place(codes, 4)?, place(scales, 32)?));
            }
            if self.op(x).is_view() {
                return self.q8_place(self.graph.args(x)[0], &self.through(x, at));
            }
            if self.plan.values[i].place != Place::Stored {
                return None;
            }
        }
        let Some((operand, place)) = self.place(x, at) else {
            return match self.op(x).is_view() {
                true => self.q8_place(self.graph.args(x)[0], &self.through(x, at)),
                false => None,
            };
        };
        let Source::Slot(owner) = operand.words().ok()? else { return None };
        let codes = b.argument(Source::Codes(owner), Type::Word, Access::Read, "x_codes");
        let scales = b.argument(Source::Scales(owner), Type::F32, Access::Read, "x_scales");
        Some(((codes, place.split(b, 4).0), (scales, place.split(b, 32).0)))
    }
}
