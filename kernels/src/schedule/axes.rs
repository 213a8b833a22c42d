//! Loop axes: merged where all operands allow it, and split again from one index.

use ds4_ir::numerics::Arith;

use crate::kernel::{Builder, ExtentRow, Truth, Word};

use super::scene::Refusal;

/// Axes of a loop nest, slowest first, with the strides of several operands along each.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    /// Extents.
    pub(super) extents: Vec<ExtentRow>,
    /// For each operand, elements between neighbours along each axis.
    pub(super) strides: Vec<Vec<u32>>,
}

/// Where one lane works: a position along each axis, and whether it is inside all of them.
pub(super) struct Item {
    pub(super) at: Vec<Word>,
    pub(super) inside: Truth,
}

impl Axes {
    /// The axes with those of one index dropped and neighbours merged where every operand's strides allow it.
    ///
    /// An axis whose extent a step chooses stays apart from the one in front of it: its largest extent says where the
    /// elements lie, its own how many there are.
    pub(super) fn merged(extents: &[ExtentRow], strides: &[Vec<u32>]) -> Axes {
        let mut axes = Axes { extents: Vec::new(), strides: vec![Vec::new(); strides.len()] };
        for (axis, &extent) in extents.iter().enumerate() {
            if extent.is_constant() != Some(1) {
                let inner: Vec<u32> = strides.iter().map(|s| s[axis]).collect();
                axes.push(extent, &inner);
            }
        }
        axes
    }

    fn push(&mut self, extent: ExtentRow, inner: &[u32]) {
        let count = extent.is_constant().filter(|&n| n > 0);
        let outer = self.extents.last().copied();
        if let (Some(n), Some(outer)) = (count, outer) {
            let fits = |(strides, &inner): (&Vec<u32>, &u32)| {
                strides.last().copied().map(u64::from) == Some(u64::from(inner) * u64::from(n))
            };
            let whole = outer.largest().and_then(|o| o.checked_mul(n));
            if self.strides.iter().zip(inner).all(fits) && whole.is_some() {
                let last = self.extents.len() - 1;
                self.extents[last] = ExtentRow { times: outer.times * n, ..outer };
                self.strides.iter_mut().zip(inner).for_each(|(s, &inner)| s[last] = inner);
                return;
            }
        }
        self.extents.push(extent);
        self.strides.iter_mut().zip(inner).for_each(|(s, &inner)| s.push(inner));
    }

    /// All positions in a row: the outermost extent as it is, the others at their largest, `per` of them to a workgroup.
    pub(super) fn total(&self, per: u32) -> Result<ExtentRow, Refusal> {
        let Some((&first, rest)) = self.extents.split_first() else {
            return Ok(ExtentRow { scalar: None, most: 1, times: 1, per });
        };
        let times = rest.iter().try_fold(first.times, |n, e| n.checked_mul(e.largest()?));
        let row = times.map(|times| ExtentRow { times, per, ..first });
        row.filter(|row| ExtentRow { per: 1, ..*row }.largest().is_some())
            .ok_or_else(|| Refusal::Unsupported("more positions than 32 bits count".into()))
    }

    /// The item of a number below [`Axes::total`] and beyond.
    pub(super) fn item(&self, b: &Builder, number: Word) -> Result<Item, Refusal> {
        let total = self.total(1)?;
        let mut inside = b.below(number, b.extent_value(total));
        let mut at = Vec::with_capacity(self.extents.len());
        let mut rest = number;
        for (i, extent) in self.extents.iter().enumerate().rev() {
            let Some(most) = extent.largest().filter(|&n| i > 0 && n > 0) else {
                at.push(rest);
                continue;
            };
            let here = b.rem_int(rest, most);
            rest = b.div_int(rest, most);
            if extent.scalar.is_some() {
                inside = b.both(inside, b.below(here, b.extent_value(*extent)));
            }
            at.push(here);
        }
        at.reverse();
        Ok(Item { at, inside })
    }

    /// The offset of an item in an operand.
    pub(super) fn offset(&self, b: &Builder, operand: usize, at: &[Word]) -> Word {
        at.iter()
            .zip(&self.strides[operand])
            .fold(b.word(0), |sum, (&i, &stride)| b.add_int(sum, b.mul_int(i, b.word(stride))))
    }
}
