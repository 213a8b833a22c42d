//! `reduce`: sums in a tree and maxima along one axis.

use super::tensor::{MASKED, Tensor, count};
use super::tree;
use crate::numerics::max;
use crate::op::{ReduceKind, Type};
use crate::tree::Tree;

/// The leaves of the result's elements: strided runs of the operand.
struct Leaves<'a> {
    x: &'a Tensor,
    mask: Option<&'a Tensor>,
    /// Number of leaves, and of elements between two of them.
    len: usize,
    stride: usize,
}

impl Leaves<'_> {
    /// The word of leaf `u` of the element whose first leaf stands at `first`; `None` if the leaf is absent.
    fn word(&self, first: usize, u: usize) -> Option<u32> {
        let at = first + u * self.stride;
        let exists = self.mask.is_none_or(|mask| mask.bits()[at] != MASKED);
        exists.then(|| self.x.bits()[at])
    }

    /// Whether a leaf that exists has no value.
    fn lacks_value(&self, first: usize) -> bool {
        (0..self.len).any(|u| self.word(first, u).is_some() && self.x.is_absent(first + u * self.stride))
    }

    /// The reduction of one element.
    fn reduce(&self, kind: ReduceKind, tree: Tree, first: usize) -> u32 {
        let ints = || (0..self.len).filter_map(|u| self.word(first, u)).map(|word| word as i32);
        match (self.x.ty, kind) {
            (Type::F32, ReduceKind::Sum) => {
                tree::sum(tree, self.len, |u| self.word(first, u).map(f32::from_bits)).to_bits()
            }
            (Type::F32, ReduceKind::Max) => (0..self.len)
                .filter_map(|u| self.word(first, u))
                .fold(f32::NEG_INFINITY, |m, word| max(m, f32::from_bits(word)))
                .to_bits(),
            (_, ReduceKind::Sum) => ints().fold(0, i32::wrapping_add) as u32,
            (_, ReduceKind::Max) => ints().max().unwrap_or(i32::MIN) as u32,
        }
    }
}

/// `reduce` of `axis`, which the result drops. Leaves whose mask id is masked are absent.
///
/// An element has no value where one of its leaves exists and has none.
pub(super) fn reduce(
    kind: ReduceKind,
    tree: Tree,
    axis: usize,
    x: &Tensor,
    mask: Option<&Tensor>,
    extents: Vec<usize>,
) -> Result<Tensor, String> {
    if let Some(mask) = mask {
        mask.expect_present("the mask")?;
    }
    let elements = count(&extents);
    let stride = count(&x.extents[axis + 1..]);
    let leaves = Leaves { x, mask, len: x.extents[axis], stride };
    let first = |i: usize| i / stride * leaves.len * stride + i % stride;
    let words = (0..elements).map(|i| leaves.reduce(kind, tree, first(i))).collect();
    let result = Tensor::words(x.ty, extents, words);
    if x.absent.is_none() {
        return Ok(result);
    }
    Ok(result.with_absent((0..elements).map(|i| leaves.lacks_value(first(i))).collect()))
}
