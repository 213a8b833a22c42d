//! Trees, by hand.

use super::Random;
use crate::Tree;
use crate::eval::sum;

const BIG: f32 = 16_777_216.0; // 2^24: adding 1 to it gives itself.

fn of(tree: Tree, leaves: &[f32]) -> f32 {
    sum(tree, leaves.len(), |u| Some(leaves[u]))
}

fn bits(tree: Tree, leaves: &[Option<f32>]) -> u32 {
    sum(tree, leaves.len(), |u| leaves[u]).to_bits()
}

#[test]
fn no_leaves_sum_to_minus_zero() {
    let minus_zero = (-0.0f32).to_bits();
    for tree in [Tree::Seq, Tree::Lanes(2), Tree::Lanes(32), Tree::Lanes(128), Tree::Lanes(1024)] {
        assert_eq!(bits(tree, &[]), minus_zero);
        assert_eq!(bits(tree, &[None; 200]), minus_zero);
        assert_eq!(bits(tree, &[Some(-0.0); 200]), minus_zero);
        assert_eq!(bits(tree, &[Some(-0.0), Some(0.0)]), 0);
    }
}

#[test]
fn a_chain_starts_from_its_first_leaf() {
    assert_eq!(of(Tree::Seq, &[BIG, 1.0, -BIG]), 0.0);
    assert_eq!(of(Tree::Seq, &[BIG, -BIG, 1.0]), 1.0);
    assert_eq!(bits(Tree::Seq, &[None, Some(-0.0), None]), (-0.0f32).to_bits());
}

#[test]
fn three_leaves_in_32_lanes() {
    // The last foldings are l0 + l2, then l0 + l1.
    assert_eq!(of(Tree::Lanes(32), &[BIG, 1.0, -BIG]), 1.0);
    assert_eq!(of(Tree::Lanes(32), &[BIG, -BIG, 1.0]), 0.0);
}

#[test]
fn four_lanes_fold_by_halves() {
    // (x0 + x2) + (x1 + x3), not ((x0 + x1) + x2) + x3.
    assert_eq!(of(Tree::Lanes(4), &[BIG, 1.0, 1.0, 1.0]), BIG + 2.0);
    assert_eq!(of(Tree::Lanes(4), &[1.0, BIG, 1.0, -BIG]), 2.0);
    // Eight leaves: lanes x0+x4, x1+x5, x2+x6, x3+x7.
    assert_eq!(of(Tree::Lanes(4), &[BIG, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]), BIG);
    assert_eq!(of(Tree::Lanes(4), &[BIG, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), BIG + 2.0);
}

#[test]
fn of_130_leaves_in_128_lanes_two_share_a_lane() {
    let mut leaves = [0.0; 130];
    (leaves[0], leaves[64], leaves[128]) = (BIG, 1.0, 1.0);
    assert_eq!(of(Tree::Lanes(128), &leaves), BIG);
    // In other lanes the two meet before they meet the first: 32 and 96, then 0 and 32.
    (leaves[64], leaves[128]) = (0.0, 0.0);
    (leaves[32], leaves[96]) = (1.0, 1.0);
    assert_eq!(of(Tree::Lanes(128), &leaves), BIG + 2.0);
}

#[test]
fn a_lane_starts_from_its_first_leaf_that_exists() {
    let mut leaves = [None; 70];
    (leaves[32], leaves[64], leaves[1]) = (Some(BIG), Some(1.0), Some(-BIG));
    assert_eq!(bits(Tree::Lanes(32), &leaves), 0.0f32.to_bits());
    leaves[64] = None;
    leaves[33] = Some(1.0);
    assert_eq!(bits(Tree::Lanes(32), &leaves), 1.0f32.to_bits());
}

/// `x + (-0.0) = x`, so an absent leaf may be read as -0.0, and a short sum as a long one.
#[test]
fn an_absent_leaf_is_a_minus_zero() {
    let mut random = Random(1);
    for round in 0..500 {
        let count = 1 + random.next() as usize % 300;
        let mut leaf = || (!random.next().is_multiple_of(4)).then(|| random.float());
        let absent: Vec<Option<f32>> = (0..count).map(|_| leaf()).collect();
        let mut dense: Vec<Option<f32>> = absent.iter().map(|x| Some(x.unwrap_or(-0.0))).collect();
        dense.resize(count + round % 7, Some(-0.0));
        for tree in [Tree::Seq, Tree::Lanes(8), Tree::Lanes(32), Tree::Lanes(128)] {
            assert_eq!(bits(tree, &absent), bits(tree, &dense), "{tree:?} of {count}");
        }
    }
}

/// A planted fault, two leaves exchanged across lanes, does not stay unseen; within the tree's symmetry it does.
#[test]
fn a_lane_exchange_changes_bits() {
    for (tree, count) in [(Tree::Lanes(32), 100), (Tree::Lanes(128), 600), (Tree::Seq, 4)] {
        let mut random = Random(7);
        let mut seen = 0;
        for _ in 0..200 {
            let leaves: Vec<f32> = (0..count).map(|_| random.float()).collect();
            let exchanged = |u: usize| Some(leaves[[2, 1, 0, 3].get(u).copied().unwrap_or(u)]);
            seen += u32::from(of(tree, &leaves).to_bits() != sum(tree, count, exchanged).to_bits());
        }
        assert!(seen > 0, "{tree:?} does not depend on its order");
    }
    // Leaves 0 and 32 begin the same lane: their sum commutes.
    let leaves: Vec<f32> = (0..64).map(|i| 1.0 / (i as f32 + 1.0)).collect();
    let exchanged = |u: usize| Some(leaves[u ^ if u.is_multiple_of(32) { 32 } else { 0 }]);
    assert_eq!(of(Tree::Lanes(32), &leaves), sum(Tree::Lanes(32), 64, exchanged));
}
