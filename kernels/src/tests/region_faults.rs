//! Faults planted in kernels of regions, and regions that are refused, with their numbers.

use ds4_ir::{Builder, Format, ReduceKind, ScalarOp, Tree, Type, Value};

use crate::kernel::{ExprRow, Kernel, Operator, verify};
use crate::machine::Check;
use crate::region::{self, Axis, Extent, Factor, Limits, Place, Refusal, Region, Walk, locality};

use super::bench::{Bench, Caught, Checkpoint, Fused, Random, Small};
use super::regions::normed;

/// A norm, its quantisation and a product of the row; every workgroup has part of the product and computes the rest again.
fn prologue() -> (Bench, Fused) {
    let mut random = Random(500);
    let mut b = Builder::new();
    let n = 128;
    let w = b.add_weight("w", Type::weight(Format::Q8_0), &[96, n]);
    let w = b.weight(w);
    let x = b.floats(&[8, n], &random.tame(8 * n as usize));
    let x = b.per_column(x);
    let first = b.apply(ScalarOp::Exp, &[x]);
    let y = normed(&mut b, first, n);
    let q = b.quantise(y);
    let last = b.product(Tree::BLOCKS, q, w, None);
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(Format::Q8_0, [1, 96, n as usize], &mut random);
    let fused = Fused::range(first, last, &[1, 32], &[y, q, last]);
    let tables = b.finish();
    (Bench::fused(&tables, &checkpoint, vec![fused.clone()]), fused)
}

#[test]
fn a_prologue_that_every_workgroup_computes_is_stored_by_one() {
    let (bench, fused) = prologue();
    bench.check(&[1, 3]);
    let (plan, kernel) = bench.region(&fused).unwrap();
    assert_eq!(plan.workgroups().len(), 2);
    let kernels = vec![kernel.clone()];
    let unguarded = without_first_group(&kernel);
    assert_ne!(unguarded, kernel);
    assert_eq!(bench.caught(&kernels, 0, &unguarded, 2), Some(Caught::Machine(Check::Race)));
}

/// The kernel in which all workgroups store what one of them should.
fn without_first_group(kernel: &Kernel) -> Kernel {
    let mut faulty = kernel.clone();
    let is_group = |row: &ExprRow| row.operands().any(|x| kernel.expr(x).op == Operator::Group);
    for row in faulty.exprs.iter_mut().filter(|row| row.op == Operator::EqualInt && is_group(row)) {
        *row = ExprRow { op: Operator::Truth, words: [1, 0, 0] };
    }
    faulty
}

#[test]
fn every_barrier_between_steps_is_needed() {
    let (bench, fused) = prologue();
    let region = Region { values: &fused.values, tiles: &fused.tiles };
    let (plan, kernel) = bench.region(&fused).unwrap();
    let kernels = vec![kernel];
    let barriers: Vec<usize> = (0..plan.steps.len()).filter(|&s| plan.steps[s].barrier.is_some()).collect();
    assert!(barriers.len() >= 3, "{:?}", plan.steps);
    for s in barriers {
        let mut faulty = plan.clone();
        faulty.steps[s].barrier = None;
        let faulty = region::kernel(&bench.scene(), &region, &faulty).unwrap();
        let caught = bench.caught(&kernels, 0, &faulty, 2);
        let expected = [Check::Race, Check::Unwritten].map(|check| Some(Caught::Machine(check)));
        assert!(expected.contains(&caught), "the barrier in front of step {s}: {caught:?}");
    }
}

/// The parts of the values of a region.
fn parts(b: Builder, values: &[Value], tiles: &[u32]) -> Result<Vec<Vec<Axis>>, Refusal> {
    let tables = b.finish();
    locality(&tables.view(), &Region { values, tiles }).map(|found| found.axes)
}

fn grid(atom: u32, step: u32, n: u32) -> Factor {
    Factor { extent: Extent::Const(n), walk: Walk::Grid { atom, step } }
}

fn local(n: u32) -> Factor {
    Factor { extent: Extent::Const(n), walk: Walk::Local }
}

#[test]
fn parts_follow_views() {
    let mut b = Builder::new();
    let x = b.floats(&[4, 512], &vec![0.5; 2048]);
    let y = b.apply(ScalarOp::Neg, &[x]);
    let [four, eight, d] = [4, 8, 64].map(|n| b.n(n));
    let heads = b.reshape(y, &[four, eight, d]);
    let turned = b.permute(heads, &[1, 0, 2]);
    let z = b.apply(ScalarOp::Abs, &[turned]);
    // Two heads and all rows to a workgroup.
    let axes = parts(b, &[y, heads, turned, z], &[2, 0, 0]).unwrap();
    let pairs = Axis::Split(vec![grid(0, 1, 4), local(2)]);
    assert_eq!(axes[3], [pairs.clone(), Axis::Whole, Axis::Whole]);
    assert_eq!(axes[2], axes[3]);
    assert_eq!(axes[1], [Axis::Whole, pairs, Axis::Whole]);
    assert_eq!(axes[0], [Axis::Whole, Axis::Split(vec![grid(0, 1, 4), local(128)])]);
}

#[test]
fn readers_of_different_parts_get_all() {
    let mut b = Builder::new();
    let x = b.floats(&[4, 64], &[0.5; 256]);
    let y = b.apply(ScalarOp::Neg, &[x]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, y, None);
    let [four, one] = [4, 1].map(|n| b.n(n));
    let sum_column = b.reshape(sum, &[four, one]);
    let shape = b.dims_of(y);
    let wide = b.broadcast(sum_column, &shape);
    let z = b.apply(ScalarOp::Mul, &[y, wide]);
    let axes = parts(b, &[y, sum, sum_column, wide, z], &[1, 16]).unwrap();
    let row = Axis::Split(vec![grid(0, 1, 4)]);
    assert_eq!(axes[0], [row.clone(), Axis::Whole]);
    assert_eq!(axes[1], std::slice::from_ref(&row));
    assert_eq!(axes[4], [row, Axis::Split(vec![grid(1, 1, 4), local(16)])]);
}

#[test]
fn refusals_have_numbers() {
    let limits = Limits { workgroup_bytes: 1000, lanes: 64, iterations: u32::MAX };
    let bounds = ds4_ir::Bounds { context: 64, columns: 8, outputs: 8 };
    let mut b = Builder::new();
    let x = b.floats(&[4, 640], &vec![0.5; 2560]);
    let y = b.apply(ScalarOp::Exp, &[x]);
    let narrow = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, y, None);
    let [four, one] = [4, 1].map(|n| b.n(n));
    let column = b.reshape(narrow, &[four, one]);
    let shape = b.dims_of(y);
    let wide = b.broadcast(column, &shape);
    let z = b.apply(ScalarOp::Mul, &[y, wide]);
    let z = b.apply(ScalarOp::Mul, &[z, y]);
    let z = b.apply(ScalarOp::Add, &[z, y]);
    let z = b.apply(ScalarOp::Sub, &[z, y]);
    let broad = b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, z, None);
    let q = b.quantise(z);
    let chosen = b.top_k(3, z, None);
    let tables = b.finish();
    let graph = tables.view();
    let plan = |values: &[Value], tiles: &[u32]| {
        region::plan(&graph, bounds, &Region { values, tiles }, &|v| v == z || v == broad, limits)
            .map(|plan| plan.barriers)
    };
    let all: Vec<Value> = (y.0..=z.0).map(Value).collect();
    let Err(Refusal::OnChip { wanted, available: 1000 }) = plan(&all, &[1, 0]) else {
        panic!("{:?}", plan(&all, &[1, 0]));
    };
    assert!((2560..4000).contains(&wanted), "{wanted}");
    assert_eq!(plan(&[broad], &[1]), Err(Refusal::Lanes { value: broad, wanted: 128, available: 64 }));
    assert_eq!(plan(&[z], &[3, 0]), Err(Refusal::Tiles { value: z, axis: 0 }));
    assert_eq!(plan(&[q], &[1, 16]), Err(Refusal::Blocks(q)));
    assert_eq!(plan(&[chosen], &[1, 1]), Err(Refusal::AxisSplit { value: chosen, axis: 1 }));
    assert_eq!(plan(&[narrow, q], &[1, 32]), Err(Refusal::OtherSink { value: narrow, anchor: q }));
    assert_eq!(plan(&[], &[]), Err(Refusal::Empty));
}

#[test]
fn what_is_neither_computed_nor_stored_is_refused() {
    let mut b = Builder::new();
    let x = b.floats(&[4, 32], &[0.5; 128]);
    let y = b.apply(ScalarOp::Exp, &[x]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, y, None);
    let z = b.apply(ScalarOp::Neg, &[sum]);
    let first = Fused::range(y, sum, &[1], &[]);
    let second = Fused::range(z, z, &[1], &[z]);
    let tables = b.finish();
    let bench = Bench::fused(&tables, &Checkpoint::default(), vec![first, second.clone()]);
    assert_eq!(bench.region(&second).map(|_| ()), Err(Refusal::NotStored(sum)));
}

#[test]
fn cheap_values_are_computed_where_they_are_read() {
    let (bench, fused) = prologue();
    let (plan, kernel) = bench.region(&fused).unwrap();
    verify(&kernel).unwrap();
    let places: Vec<Place> = plan.values.iter().map(|v| v.place).filter(|place| *place != Place::View).collect();
    // The exponential is read three times; the norm is cheap enough to be computed twice.
    assert_eq!(places[0], Place::OnChip);
    assert_eq!(places[3], Place::Inline, "{plan:#?}");
}
