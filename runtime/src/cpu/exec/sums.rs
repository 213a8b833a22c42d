//! Sums in the order of a tree over leaves in memory. An absent leaf is read as -0.0, which adds nothing.

use ds4_ir::Tree;

/// What a lane without leaves holds: `x + -0.0` is `x` for every `x`.
pub(crate) const ABSENT: f32 = -0.0;

/// The sum of leaves that lie together, in `lanes`.
///
/// Lanes live in `space`; its contents are lost.
#[inline(always)]
pub(crate) fn sum_lanes(leaves: &[f32], lanes: usize, space: &mut Vec<f32>) -> f32 {
    let used = lanes.min(leaves.len());
    let acc = super::kernel::grown(space, lanes);
    acc[..used].copy_from_slice(&leaves[..used]);
    let mut rest = &leaves[used..];
    while !rest.is_empty() {
        let count = lanes.min(rest.len());
        for (lane, leaf) in acc[..count].iter_mut().zip(&rest[..count]) {
            *lane += leaf;
        }
        rest = &rest[count..];
    }
    halve(&mut acc[..used], lanes)
}

/// Combines the first `used` of `lanes` lanes by halving; absent ones are left out.
#[inline(always)]
pub(crate) fn halve(acc: &mut [f32], lanes: usize) -> f32 {
    let (mut half, mut used) = (lanes / 2, acc.len());
    while half > 0 {
        if used > half {
            let (low, high) = acc.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(&high[..used - half]) {
                *low += high;
            }
            used = half;
        }
        half /= 2;
    }
    acc.first().copied().unwrap_or(ABSENT)
}

/// The sum of leaves that lie together in the order of `tree`.
#[inline(always)]
pub(crate) fn sum(tree: Tree, leaves: &[f32], space: &mut Vec<f32>) -> f32 {
    match tree {
        Tree::Lanes(32) => sum_fixed::<32>(leaves),
        Tree::Lanes(128) if leaves.len() >= 128 => sum_fixed::<128>(leaves),
        Tree::Lanes(lanes) => sum_lanes(leaves, lanes as usize, space),
        Tree::Free | Tree::Seq => leaves.iter().fold(ABSENT, |sum, leaf| sum + leaf),
    }
}

#[inline(always)]
fn sum_fixed<const L: usize>(leaves: &[f32]) -> f32 {
    let mut lanes = [ABSENT; L];
    let (whole, rest) = leaves.as_chunks::<L>();
    for chunk in whole {
        for lane in 0..L {
            lanes[lane] += chunk[lane];
        }
    }
    for (lane, leaf) in lanes.iter_mut().zip(rest) {
        *lane += leaf;
    }
    let mut half = L / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}
