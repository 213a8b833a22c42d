//! `reduce`: every tree, axis and kind, masked and not.

use ds4_ir::{Builder, ReduceKind, Tree};

use super::bench::{Bench, COLUMNS, Checkpoint, Random, Small};

#[test]
fn sums_keep_their_tree_along_any_axis() {
    let mut random = Random(3);
    for (n, tree) in [
        (1, Tree::Seq),
        (4, Tree::Seq),
        (70, Tree::Seq),
        (5, Tree::Lanes(32)),
        (37, Tree::Lanes(32)),
        (129, Tree::Lanes(128)),
        (600, Tree::Lanes(128)),
        (11, Tree::Lanes(4)),
        (300, Tree::Lanes(256)),
    ] {
        let mut b = Builder::new();
        let x = b.floats(&[8, n, 3], &random.tame(24 * n as usize));
        let x = b.per_column(x);
        b.reduce(ReduceKind::Sum, tree, 1, x, None);
        let last = b.permute(x, &[0, 2, 1]);
        b.reduce(ReduceKind::Sum, tree, 2, last, None);
        Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
    }
}

#[test]
fn special_values_pass_through_sums_and_maxima() {
    let mut random = Random(4);
    let mut b = Builder::new();
    let n = 150;
    let x = b.floats(&[8, n], &random.adversarial(8 * n as usize));
    let x = b.per_column(x);
    for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(128)] {
        b.reduce(ReduceKind::Sum, tree, 1, x, None);
    }
    b.reduce(ReduceKind::Max, Tree::Free, 1, x, None);
    let few = b.cut(x, 1, 3, 9);
    b.reduce(ReduceKind::Max, Tree::Free, 1, few, None);
    let ints: Vec<i32> = (0..8 * n).map(|_| random.next() as i32).collect();
    let i = b.ints(&[8, n], &ints);
    let i = b.per_column(i);
    for kind in [ReduceKind::Sum, ReduceKind::Max] {
        b.reduce(kind, Tree::Free, 1, i, None);
        b.reduce(kind, Tree::Free, 0, i, None);
    }
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

#[test]
fn masked_leaves_are_absent() {
    let mut random = Random(5);
    let mut b = Builder::new();
    let n = 40;
    let x = b.floats(&[8, n], &random.adversarial(8 * n as usize));
    // Row 1 has no leaf at all, row 2 only one, a zero or whatever it is.
    let masked = |r: u32, i: u32| r == 1 || (r == 2 && i != 33) || (i * 7 + r).is_multiple_of(3);
    let ids: Vec<i32> = (0..8 * n).map(|j| if masked(j / n, j % n) { -1 } else { j as i32 }).collect();
    let mask = b.ids(&[8, n], &ids);
    let (x, mask) = (b.per_column(x), b.per_column(mask));
    for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(128)] {
        b.reduce(ReduceKind::Sum, tree, 1, x, Some(mask));
    }
    b.reduce(ReduceKind::Max, Tree::Free, 1, x, Some(mask));
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

#[test]
fn an_axis_of_the_step_is_reduced() {
    let mut random = Random(6);
    let mut b = Builder::new();
    let x = b.floats(&[8, 8, 3], &random.tame(192));
    let x = b.per_column(x);
    let (zero, columns) = (b.n(0), b.columns());
    let x = b.slice(x, 1, zero, columns);
    b.reduce(ReduceKind::Sum, Tree::Seq, 1, x, None);
    b.reduce(ReduceKind::Sum, Tree::Lanes(32), 0, x, None);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}
