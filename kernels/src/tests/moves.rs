//! Views that are stored, `concat`, `gather` and `write`.

use ds4_ir::{Builder, DimOp, Op, ScalarOp, Step, Type};

use super::bench::{Bench, COLUMNS, Checkpoint, Random, Small};

#[test]
fn views_are_stored() {
    let mut random = Random(100);
    let mut b = Builder::new();
    let x = b.floats(&[8, 3, 5], &random.adversarial(120));
    let x = b.per_column(x);
    let x = b.apply(ScalarOp::Neg, &[x]);
    let turned = b.permute(x, &[2, 1, 0]);
    let cut = b.cut(turned, 1, 1, 2);
    let (ten, columns) = (b.n(10), b.columns());
    let back = b.permute(cut, &[2, 0, 1]);
    let flat = b.reshape(back, &[columns, ten]);
    let first = b.cut(x, 1, 0, 1);
    let five = b.n(5);
    let three = b.n(3);
    let wide = b.broadcast(first, &[columns, three, five]);
    Bench::placed(b, Checkpoint::default(), &[], &[turned, cut, back, flat, wide], &[]).check(&COLUMNS);
}

#[test]
fn a_slice_follows_the_step() {
    let mut random = Random(101);
    let mut b = Builder::new();
    let x = b.floats(&[8, 5], &random.adversarial(40));
    let x = b.per_column(x);
    let x = b.apply(ScalarOp::Neg, &[x]);
    let (columns, outputs) = (b.columns(), b.dims.dim(DimOp::Outputs));
    let start = b.dims.dim(DimOp::Sub(columns, outputs));
    let last = b.slice(x, 0, start, outputs);
    b.apply(ScalarOp::Abs, &[last]);
    let bench = Bench::placed(b, Checkpoint::default(), &[], &[last], &[]);
    let step = |columns, outputs| Step { position: 0, columns, outputs };
    bench.check_steps(&[step(1, 1), step(1, 0), step(8, 0), step(8, 1), step(5, 3), step(8, 8)]);
}

#[test]
fn operands_of_a_concat_stand_behind_each_other() {
    let mut random = Random(102);
    let mut b = Builder::new();
    let x = b.floats(&[8, 3], &random.adversarial(24));
    let y = b.floats(&[8, 3], &random.adversarial(24));
    let (x, y) = (b.per_column(x), b.per_column(y));
    let wide = b.concat(1, &[x, y, x]);
    b.concat(0, &[x, y]);
    b.apply(ScalarOp::Neg, &[wide]);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

/// What a map and a stored view write into the concat's own memory is not copied, and later operands find their place.
#[test]
fn operands_inside_a_concat_are_not_copied() {
    let mut random = Random(105);
    let mut b = Builder::new();
    let x = b.floats(&[8, 3, 2], &random.adversarial(48));
    let x = b.per_column(x);
    let made = b.apply(ScalarOp::Neg, &[x]);
    let turned = b.permute(made, &[0, 2, 1]);
    let (columns, six) = (b.columns(), b.n(6));
    let flat = b.reshape(turned, &[columns, six]);
    let inside = b.reshape(made, &[columns, six]);
    let doubled = b.apply(ScalarOp::Abs, &[inside]);
    let third = b.apply(ScalarOp::Neg, &[inside]);
    let wide = b.concat(1, &[doubled, flat, third]);
    let sum = b.apply(ScalarOp::Neg, &[wide]);
    let bench = Bench::placed(b, Checkpoint::default(), &[], &[flat], &[(doubled, wide), (flat, wide)]);
    // The third operand has memory of its own and is copied.
    assert_eq!(bench.kernels(wide).len(), 1);
    assert_eq!((bench.kernels(flat).len(), bench.kernels(inside).len(), bench.kernels(sum).len()), (1, 0, 1));
    bench.check(&COLUMNS);
}

#[test]
fn gathers_follow_batches_axes_and_masks() {
    let mut random = Random(103);
    let mut b = Builder::new();
    let source = b.floats(&[8, 3, 6, 2], &random.adversarial(288));
    let source = b.per_column(source);
    let ids: Vec<i32> = (0..32).map(|i| if i % 5 == 4 { -1 } else { i % 6 }).collect();
    let ids = b.ids(&[8, 4], &ids);
    let ids = b.per_column(ids);
    let chosen = b.gather(2, 1, source, ids);
    b.apply(ScalarOp::Neg, &[chosen]);
    let table = b.ids(&[6], &[5, -1, 3, 2, -1, 0]);
    let picks = b.ints(&[4], &[5, 1, 0, 4]);
    b.gather(0, 0, table, picks);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

#[test]
fn rows_of_a_state_are_replaced() {
    let mut random = Random(104);
    let mut b = Builder::new();
    let state = b.add_state("rows", Type::F32, &[16, 3, 2]);
    let old = b.read(state);
    let ids = b.ids(&[8], &[7, -1, 3, 0, 15, -1, 2, 4]);
    let ids = b.per_column(ids);
    let rows = b.floats(&[8, 3, 2], &random.adversarial(48));
    let rows = b.per_column(rows);
    let before = b.reduce(ds4_ir::ReduceKind::Max, ds4_ir::Tree::Free, 0, old, None);
    let new = b.write(old, ids, rows);
    let after = b.reduce(ds4_ir::ReduceKind::Max, ds4_ir::Tree::Free, 0, new, None);
    b.apply(ScalarOp::Add, &[before, after]);
    let bench = Bench::new(b, Checkpoint::default(), &[]);
    assert!(bench.tables.value_op.contains(&(Op::Write as u32)));
    bench.check(&COLUMNS);
}
