//! Sums in the order of a tree, written as the contract's page says it: lanes are made one by one, then folded.

use crate::tree::Tree;

/// The sum of `count` leaves in the order of `tree`; `leaf` gives `None` where a leaf is absent.
///
/// No leaves at all sum to -0.0, which adds nothing to anything.
pub fn sum(tree: Tree, count: usize, leaf: impl Fn(usize) -> Option<f32>) -> f32 {
    let total = match tree {
        Tree::Free | Tree::Seq => chain(0..count, &leaf),
        Tree::Lanes(width) if width <= 32 => lanes::<32>(width as usize, count, &leaf),
        Tree::Lanes(width) if width <= 128 => lanes::<128>(width as usize, count, &leaf),
        Tree::Lanes(width) => lanes::<1024>(width as usize, count, &leaf),
    };
    total.unwrap_or(-0.0)
}

/// Leaves added in the order of `indices`, starting from the first that exists.
fn chain(indices: impl Iterator<Item = usize>, leaf: &impl Fn(usize) -> Option<f32>) -> Option<f32> {
    let mut total = None;
    for u in indices {
        total = join(total, leaf(u));
    }
    total
}

/// `lanes(width)`; `MOST` bounds the width.
fn lanes<const MOST: usize>(width: usize, count: usize, leaf: &impl Fn(usize) -> Option<f32>) -> Option<f32> {
    let mut lane = [None; MOST];
    for (l, total) in lane.iter_mut().enumerate().take(width.min(count)) {
        *total = chain((l..count).step_by(width), leaf);
    }
    let mut half = width / 2;
    while half > 0 {
        for l in 0..half {
            lane[l] = join(lane[l], lane[l + half]);
        }
        half /= 2;
    }
    lane[0]
}

/// The rounded sum of two terms, either of which may be absent.
fn join(left: Option<f32>, right: Option<f32>) -> Option<f32> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left + right),
        (left, right) => left.or(right),
    }
}
