//! `reduce`: every tree, kind and axis, masked and not.

use ScalarOp::Neg;
use ds4_ir::{DimOp, ReduceKind, ScalarOp, Tree, Value};

use super::Case;
use super::draft::Draft;

/// The family's name.
pub const FAMILY: &str = "reduce";

/// Leaves and trees of the sums: the contract's, each at the ends of its range and with lanes that have no leaf or one more
/// than others; and trees of other widths.
const SUMS: [(u32, Tree); 17] = [
    (1, Tree::Seq),
    (2, Tree::Seq),
    (4, Tree::Seq),
    (70, Tree::Seq),
    (5, Tree::Lanes(32)),
    (31, Tree::Lanes(32)),
    (37, Tree::Lanes(32)),
    (64, Tree::Lanes(32)),
    (511, Tree::Lanes(32)),
    (512, Tree::Lanes(128)),
    (129, Tree::Lanes(128)),
    (600, Tree::Lanes(128)),
    (3, Tree::Lanes(2)),
    (11, Tree::Lanes(4)),
    (45, Tree::Lanes(16)),
    (150, Tree::Lanes(64)),
    (300, Tree::Lanes(256)),
];

/// All cases.
pub fn cases() -> Vec<Case> {
    let sums = SUMS.iter().map(|&(n, tree)| sum(n, tree));
    sums.chain([maxima(), integers(), masked(), of_columns(), of_nothing(), large()]).collect()
}

fn tree_name(tree: Tree) -> String {
    match tree {
        Tree::Free => "free".into(),
        Tree::Seq => "seq".into(),
        Tree::Lanes(n) => format!("lanes{n}"),
    }
}

/// A sum along the last axis, and along the one before it.
fn sum(n: u32, tree: Tree) -> Case {
    let mut d = Draft::new(FAMILY, &format!("sum.{}.{n}", tree_name(tree)));
    let x = d.activations(&[3, n]);
    let last = d.b.reduce(ReduceKind::Sum, tree, 2, x, None);
    let turned = d.b.permute(x, &[0, 2, 1]);
    let middle = d.b.reduce(ReduceKind::Sum, tree, 1, turned, None);
    d.output("last", last);
    d.output("middle", middle);
    d.steps(&[8, 1, 3])
}

/// Maxima of floats, few and many leaves.
fn maxima() -> Case {
    let mut d = Draft::new(FAMILY, "max");
    for n in [1, 9, 65, 150, 300] {
        let x = d.activations(&[n]);
        let y = d.b.reduce(ReduceKind::Max, Tree::Free, 1, x, None);
        d.output(&format!("of_{n}"), y);
    }
    let pairs = super::inputs::pairs(&super::inputs::SPECIAL);
    let x = d.floats(&[2, pairs[0].len() as u32], &pairs.concat());
    let y = d.b.reduce(ReduceKind::Max, Tree::Free, 0, x, None);
    d.output("of_pairs", y);
    d.steps(&[8, 1, 3])
}

/// Sums and maxima of integers, which wrap.
fn integers() -> Case {
    let mut d = Draft::new(FAMILY, "integers");
    for n in [7, 150] {
        let values: Vec<i32> = d.random.patterns(8 * n as usize).iter().map(|&w| w as i32).collect();
        let x = d.ints(&[8, n], &values);
        let x = d.per_column(x);
        for kind in [ReduceKind::Sum, ReduceKind::Max] {
            let y = d.b.reduce(kind, Tree::Free, 1, x, None);
            d.output(&format!("{}_of_{n}", kind.name()), y);
        }
    }
    d.steps(&[8, 1, 3])
}

/// A mask `[8, n]`: row 4 has no leaf at all, row 6 only one.
fn mask(d: &mut Draft, n: u32) -> Value {
    let is_masked = |r: u32, i: u32| r == 4 || (r == 6 && i != n / 2) || (i * 7 + r).is_multiple_of(3);
    let ids: Vec<i32> = (0..8 * n).map(|j| if is_masked(j / n, j % n) { -1 } else { j as i32 }).collect();
    let ids = d.ids(&[8, n], &ids);
    d.per_column(ids)
}

/// Leaves that are absent: of sums in every tree, of maxima.
fn masked() -> Case {
    let mut d = Draft::new(FAMILY, "masked");
    for (n, tree) in [(7, Tree::Seq), (101, Tree::Lanes(32)), (519, Tree::Lanes(128))] {
        let (x, mask) = (d.activations(&[n]), mask(&mut d, n));
        let y = d.b.reduce(ReduceKind::Sum, tree, 1, x, Some(mask));
        d.output(&format!("sum_{}", tree_name(tree)), y);
    }
    for n in [5, 83] {
        let (x, mask) = (d.activations(&[n]), mask(&mut d, n));
        let y = d.b.reduce(ReduceKind::Max, Tree::Free, 1, x, Some(mask));
        d.output(&format!("max_of_{n}"), y);
    }
    // Rows that a masked id selects have no value, and the same mask takes them.
    let words = d.random.rows(6, 9);
    let table = d.floats(&[6, 9], &words);
    let ids: Vec<i32> = (0..72).map(|i| if i % 4 == 1 { -1 } else { i * 5 % 6 }).collect();
    let ids = d.ids(&[8, 9], &ids);
    let ids = d.per_column(ids);
    let rows = d.b.gather(0, 0, table, ids);
    let (columns, one, nine) = (d.b.columns(), d.b.n(1), d.b.n(9));
    let guard = d.b.reshape(ids, &[columns, nine, one]);
    let guard = d.b.broadcast(guard, &[columns, nine, nine]);
    let sum = d.b.reduce(ReduceKind::Sum, Tree::Seq, 1, rows, Some(guard));
    d.output("of_gathered", sum);
    d.steps(&[8, 1, 3])
}

/// Axes whose length is the number of columns.
fn of_columns() -> Case {
    let mut d = Draft::new(FAMILY, "columns");
    let x = d.plain(&[8, 3]);
    let (zero, columns) = (d.b.n(0), d.b.columns());
    let x = d.b.slice(x, 1, zero, columns);
    let inner = d.b.reduce(ReduceKind::Sum, Tree::Seq, 1, x, None);
    let outer = d.b.reduce(ReduceKind::Sum, Tree::Lanes(32), 0, x, None);
    let largest = d.b.reduce(ReduceKind::Max, Tree::Free, 0, x, None);
    for (name, v) in [("inner", inner), ("outer", outer), ("largest", largest)] {
        d.output(name, v);
    }
    d.steps(&[8, 1, 3, 5])
}

/// Axes without elements: the sum is -0, the maximum -inf.
fn of_nothing() -> Case {
    let mut d = Draft::new(FAMILY, "nothing");
    let x = d.plain(&[5]);
    let x = d.apply(Neg, &[x]);
    let (columns, outputs) = (d.b.columns(), d.b.dims.dim(DimOp::Outputs));
    let start = d.b.dims.dim(DimOp::Sub(columns, outputs));
    let last = d.b.slice(x, 0, start, outputs);
    let sum = d.b.reduce(ReduceKind::Sum, Tree::Lanes(32), 0, last, None);
    let few = d.b.reduce(ReduceKind::Sum, Tree::Seq, 0, last, None);
    let largest = d.b.reduce(ReduceKind::Max, Tree::Free, 0, last, None);
    for (name, v) in [("sum", sum), ("few", few), ("largest", largest)] {
        d.output(name, v);
    }
    d.steps_with_outputs(&[[3, 0], [8, 1], [8, 8]])
}

/// A workgroup for each of 65,541 sums: more than one axis of a grid has.
fn large() -> Case {
    let mut d = Draft::new(FAMILY, "large");
    let shape = [d.b.n(65_541), d.b.n(6)];
    let (i, j) = (d.b.iota(&shape, 0), d.b.iota(&shape, 1));
    let x = d.map(&[i, j], |m, p| {
        let seven = m.op(ScalarOp::AddI, &[m.op(ScalarOp::MulI, &[p[0], m.i(7)]), p[1]]);
        let mixed = m.op(ScalarOp::MulI, &[seven, m.i(0x9e37_79b1u32 as i32)]);
        m.op(ScalarOp::FloatOf, &[mixed])
    });
    let y = d.b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, x, None);
    d.output("y", y);
    d.once()
}
