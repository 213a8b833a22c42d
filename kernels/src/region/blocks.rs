//! `quantise`: eight lanes a block of 32, each with the four elements of one word of codes.

use ds4_ir::Value;
use ds4_ir::numerics::{Arith, order, quantise as q8};

use crate::kernel::{Access, ExtentRow, Number, Source, Truth, Type, Word};

use super::axes::{Extent, Factor, Walk};
use super::element::number;
use super::index::Index;
use super::kernel::{Emit, Positions};
use super::refusal::Refusal;
use super::space::Space;

/// Lanes of a block.
const LANES: u32 = 8;
/// Elements of a word of codes.
const CODES: u32 = 4;

impl Emit<'_> {
    /// `quantise`
    pub(super) fn quantise(&self, i: usize) {
        let b = &self.b;
        let blocks = in_blocks(&self.space(i));
        let walk = Positions::of(self, &blocks);
        let groups = b.lanes() / LANES;
        let part = b.name("part", b.rem_int(b.lane(), LANES));
        let turn = |turn: Word| {
            let group = b.div_int(b.lane(), LANES);
            let number = b.add_int(b.mul_int(turn, b.word(groups)), group);
            let below = b.below(number, b.extent_value(walk.total));
            let number = Index::word(b, number, walk.most);
            let (at, inside) = self.position(&blocks, &walk, &number);
            let all = walk.total.is_constant().is_some_and(|n| n.is_multiple_of(groups));
            let inside = match inside {
                Some(inside) => Some(b.both(below, inside)),
                None => (!all).then_some(below),
            };
            self.block(i, &at, part, inside);
        };
        match walk.total.is_constant() {
            Some(n) if n <= groups => turn(b.word(0)),
            _ => b.repeat("turn", b.word(0), ExtentRow { per: groups, ..walk.total }, 1, turn),
        }
    }

    /// One block, of which `at` is the first element.
    fn block(&self, i: usize, at: &[Index], part: Word, inside: Option<Truth>) {
        let b = &self.b;
        let x = self.graph.args(self.region.values[i])[0];
        let zero = b.number(0.0);
        let held = [(); CODES as usize].map(|_| b.var("x", zero));
        let first = Index::word(b, part, LANES.into()).times(CODES);
        self.when(inside, || {
            for (j, &var) in (0..).zip(&held) {
                let mut at = at.to_vec();
                if let Some(last) = at.last_mut() {
                    *last = last.plus(&first).plus(&Index::constant(j));
                }
                b.set(var, number(self, x, self.element(x, &at)));
            }
        });
        let elements = held.map(|var| b.value("x", var));
        let amax = elements.iter().fold(zero, |m, &x| b.name("amax", order::amax(b, m, x)));
        let amax = [4, 2, 1].into_iter().fold(amax, |amax, distance| {
            let other = b.shuffle("other", amax, distance, LANES);
            b.name("amax", order::amax(b, amax, other))
        });
        let (d, id) = q8::q8_scales(b, amax);
        let id = b.name("id", id);
        let code = |(j, &x): (u32, &Number)| b.shl(b.and(q8::q8_code(b, x, id), b.word(0xff)), b.word(8 * j));
        let codes = (0..).zip(&elements).map(|pair| b.name("code", code(pair)));
        let word = codes.reduce(|x, y| b.or(x, y)).unwrap_or_else(|| b.word(0));
        self.when(inside, || self.keep_block(i, at, part, b.name("codes", word), d));
    }

    fn keep_block(&self, i: usize, at: &[Index], part: Word, word: Word, d: Number) {
        let b = &self.b;
        let v = self.region.values[i];
        let first = b.equal_int(part, b.word(0));
        let put = |codes: (crate::kernel::Memory, Index), scales: (crate::kernel::Memory, Index)| {
            b.store(codes.0, b.add_int(codes.1.value(b), part), word);
            b.when(first, || b.store(scales.0, scales.1.value(b), d));
        };
        if let [Some(codes), Some(scales)] = self.plan.arrays.of(i)
            && let (Some(words), Some(floats)) = (self.pools[codes.pool], self.pools[scales.pool])
        {
            let cell = self.cell(i, at);
            let place = |unit: u32, from: u32| cell.split(b, unit).0.plus(&Index::constant(from));
            put((words, place(CODES, codes.from)), (floats, place(CODES * LANES, scales.from)));
        }
        if self.plan.values[i].stored {
            self.when(self.first_group(i), || self.store_block(v, at, &put));
        }
    }

    fn store_block(
        &self,
        v: Value,
        at: &[Index],
        put: &dyn Fn((crate::kernel::Memory, Index), (crate::kernel::Memory, Index)),
    ) {
        let b = &self.b;
        let slot = self.place(v, at).and_then(|(operand, place)| Some((operand.words().ok()?, place)));
        let Some((Source::Slot(owner), place)) = slot else { return self.refuse(Refusal::NotStored(v)) };
        let codes = b.argument(Source::Codes(owner), Type::Word, Access::Write, "codes");
        let scales = b.argument(Source::Scales(owner), Type::F32, Access::Write, "scales");
        put((codes, place.split(b, CODES).0), (scales, place.split(b, CODES * LANES).0));
    }
}

/// The space of the first elements of blocks.
fn in_blocks(space: &Space) -> Space {
    let mut space = space.clone();
    if let Some(factor) = space.axes.last_mut().and_then(|axis| axis.last().copied())
        && let (Some(axis), Some(n)) = (space.axes.last_mut(), factor.extent.constant())
    {
        axis.pop();
        axis.push(Factor { extent: Extent::Const(n / (CODES * LANES)), ..factor });
        axis.push(Factor { extent: Extent::Const(CODES * LANES), walk: Walk::Fixed });
    }
    space
}
