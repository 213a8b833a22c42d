//! Chains that repeat themselves: a loop where iterations are alike, text where they are not, the same bits.

use ds4_ir::{Builder, ReduceKind, ScalarOp, Tree, Value};

use super::bench::{Bench, Checkpoint, Fused, Random, Small};
use crate::kernel::Stmt;
use crate::region::Place;

/// What an iteration does beside dividing rows, then columns, by their sums.
#[derive(Clone, Copy, PartialEq)]
enum Odd {
    /// Nothing.
    No,
    /// This one has another formula.
    Formula(u32),
    /// Its matrix is stored.
    Stored(u32),
    /// Behind the last one, this one's matrix is read again.
    Read(u32),
}

/// A matrix of 3 by 3 for each column, divided over and over; the kernel's loops of several turns and its statements.
fn balanced(turns: u32, odd: Odd) -> (Vec<u32>, usize) {
    let mut random = Random(500);
    let mut b = Builder::new();
    let x = b.floats(&[8, 3, 3], &random.tame(72));
    let x = b.per_column(x);
    let first = b.apply(ScalarOp::Abs, &[x]);
    let shape = b.dims_of(first);
    let mut matrices = vec![first];
    for turn in 0..turns {
        let mut matrix = *matrices.last().unwrap();
        for axis in [2, 1] {
            let sums = b.reduce(ReduceKind::Sum, Tree::Seq, axis, matrix, None);
            let mut beside = shape.clone();
            beside[axis as usize] = b.n(1);
            let sums = b.reshape(sums, &beside);
            let sums = b.broadcast(sums, &shape);
            let by = if odd == Odd::Formula(turn) { ScalarOp::Max } else { ScalarOp::Add };
            let sums = b.apply(by, &[sums, sums]);
            matrix = b.apply(ScalarOp::Div, &[matrix, sums]);
        }
        matrices.push(matrix);
    }
    let mut last = *matrices.last().unwrap();
    let mut stored: Vec<Value> = Vec::new();
    match odd {
        Odd::Stored(turn) => stored.push(matrices[turn as usize]),
        Odd::Read(turn) => last = b.apply(ScalarOp::Sub, &[last, matrices[turn as usize]]),
        _ => {}
    }
    stored.push(last);
    let tables = b.finish();
    let fused = || Fused::range(first, last, &[1, 0, 0], &stored);
    let bench = Bench::fused(&tables, &Checkpoint::default(), vec![fused()]);
    bench.check(&[1, 5]);
    let (_, kernel) = bench.region(&fused()).unwrap();
    let turns = kernel.stmts.iter().filter_map(|stmt| match stmt {
        Stmt::For { end, .. } => kernel.extents[end.0 as usize].is_constant(),
        _ => None,
    });
    (turns.collect(), kernel.stmts.len())
}

#[test]
fn iterations_that_are_alike_are_a_loop() {
    let (turns, statements) = balanced(20, Odd::No);
    assert_eq!(turns, [18]);
    assert_eq!(balanced(12, Odd::No), (vec![10], statements));
    // Few are written out.
    assert_eq!(balanced(3, Odd::No).0, []);
    let (_, few) = balanced(2, Odd::No);
    assert!(few < statements && statements < 2 * few, "{few} {statements}");
}

/// A loop ends in front of what is not like it, and never has what others read.
#[test]
fn what_is_not_alike_is_no_part_of_a_loop() {
    assert_eq!(balanced(16, Odd::Formula(11)).0, [10]);
    assert_eq!(balanced(16, Odd::Formula(4)).0, [9]);
    assert_eq!(balanced(16, Odd::Stored(10)).0, [8]);
    assert_eq!(balanced(9, Odd::Read(9)).0, [8]);
    // The last matrix is read once, so its reader computes it.
    assert_eq!(balanced(9, Odd::Read(1)).0, [7]);
    assert_eq!(balanced(9, Odd::Read(4)).0, []);
}

/// A kernel is built by walking down the values that are computed where they are read: never far.
#[test]
fn long_chains_of_maps_are_kept_now_and_then() {
    let mut random = Random(501);
    let mut b = Builder::new();
    let x = b.floats(&[8, 96], &random.tame(8 * 96));
    let x = b.per_column(x);
    let first = b.apply(ScalarOp::Abs, &[x]);
    let mut last = first;
    for _ in 0..1000 {
        last = b.apply(ScalarOp::Neg, &[last]);
        last = b.apply(ScalarOp::Abs, &[last]);
    }
    let tables = b.finish();
    let fused = || Fused::range(first, last, &[1, 0], &[last]);
    let bench = Bench::fused(&tables, &Checkpoint::default(), vec![fused()]);
    bench.check(&[2]);
    let (plan, _) = bench.region(&fused()).unwrap();
    let kept = plan.values.iter().filter(|planned| planned.place == Place::OnChip).count();
    assert!((19..=21).contains(&kept), "{kept} of 2001 values are kept");
}
