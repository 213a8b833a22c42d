//! Guards.

use super::*;
use crate::verify::{Guard, Root};
use crate::{ReduceKind, Tree};

/// Rows of a table by masked ids, `[3, 2]`, and the ids.
fn gathered(b: &mut Builder, ids: &[i32; 3]) -> (Value, Value) {
    let source = b.table_f32(&[3, 2], &[1.0; 6]);
    let ids = b.table_ids(&[3], ids);
    (b.gather(0, 0, source, ids), ids)
}

fn wide(b: &mut Builder, ids: Value, n: u32) -> Value {
    let column = b.view(Op::Reshape, ids, &[n, 1]);
    b.view(Op::Broadcast, column, &[n, 2])
}

#[test]
fn arithmetic_and_views_pass_a_guard_on_and_its_mask_takes_it() {
    let mut b = Builder::new();
    let (rows, ids) = gathered(&mut b, &[0, -1, 1]);
    let doubled = b.apply(ScalarOp::Add, &[rows, rows]);
    let flat = b.view(Op::Reshape, doubled, &[6]);
    let back = b.view(Op::Reshape, flat, &[3, 2]);
    let mask = wide(&mut b, ids, 3);
    let sum = b.reduce(ReduceKind::Sum, Tree::Seq, 0, back, Some(mask));
    b.output("sum", sum);
    let facts = facts(&b.finish());
    let guard = facts.guard[back.0 as usize];
    assert_eq!(facts.guards.root(guard), Some(&Root::Ids(ids)));
    assert_eq!((facts.root[mask.0 as usize], facts.guard[sum.0 as usize]), (guard, Guard::NONE));
}

#[test]
fn what_must_have_a_value() {
    let with = |make: &dyn Fn(&mut Builder, Value)| {
        let mut b = Builder::new();
        let (rows, _) = gathered(&mut b, &[0, -1, 1]);
        make(&mut b, rows);
        fault(&b.finish())
    };
    assert!(with(&|b, rows| b.output("rows", rows)).contains("output `rows` may have elements without a value"));
    let operand = "operand 0, v3, may have elements without a value";
    assert!(with(&|b, rows| _ = b.arg_max(rows)).contains(operand));
    assert!(with(&|b, rows| _ = b.top_k(1, rows, None)).contains(operand));
    let other = with(&|b, rows| {
        let ids = b.table_ids(&[3], &[1, -1, 2]);
        let candidates = wide(b, ids, 3);
        b.top_k(1, rows, Some(candidates));
    });
    assert!(other.contains(operand));
    let written = with(&|b, rows| {
        let state = b.add_state("s", Type::F32, &[3, 2]);
        let read = b.read(state);
        let ids = b.table_i32(&[3], &[0, 1, 2]);
        b.write(read, ids, rows);
    });
    assert!(written.contains("the rows, v3, may have"));
    let ids = with(&|b, _| {
        let table = b.table_i32(&[3], &[0, 1, 2]);
        let ids = b.table_ids(&[2], &[1, -1]);
        let absent = b.gather(0, 0, table, ids);
        b.gather(0, 0, table, absent);
    });
    assert!(ids.contains("the ids, v"));
}

#[test]
fn another_mask_is_an_error() {
    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b, &[0, -1, 1]);
    let (others, _) = gathered(&mut b, &[0, 1, -1]);
    b.apply(ScalarOp::Add, &[rows, others]);
    assert!(fault(&b.finish()).contains("under different masks"));

    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b, &[0, -1, 1]);
    let other = b.table_ids(&[3], &[0, 1, -1]);
    let mask = wide(&mut b, other, 3);
    let sum = b.reduce(ReduceKind::Sum, Tree::Seq, 0, rows, Some(mask));
    b.output("sum", sum);
    assert!(fault(&b.finish()).contains("output `sum`"));
}

#[test]
fn writes_and_selections_under_the_same_ids() {
    let mut b = Builder::new();
    let (rows, ids) = gathered(&mut b, &[0, -1, 1]);
    let candidates = wide(&mut b, ids, 3);
    let top = b.top_k(1, rows, Some(candidates));
    b.output("top", top);
    let state = b.add_state("s", Type::F32, &[3, 2]);
    let read = b.read(state);
    b.write(read, ids, rows);
    facts(&b.finish());
}

/// A concatenation of masks takes the concatenation of what each selected, and of what is there anyway.
#[test]
fn concatenations_match_part_by_part() {
    let with = |swapped: bool| {
        let mut b = Builder::new();
        let (one, one_ids) = gathered(&mut b, &[0, -1, 1]);
        let (two, two_ids) = gathered(&mut b, &[0, 1, -1]);
        let present = b.table_f32(&[3, 2], &[2.0; 6]);
        let all = b.table_ids(&[3], &[0, 1, 2]);
        let values = b.concat(0, &[one, present, two]);
        let masks = if swapped { [two_ids, all, one_ids] } else { [one_ids, all, two_ids] };
        let ids = b.concat(0, &masks);
        let mask = wide(&mut b, ids, 9);
        let sum = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 0, values, Some(mask));
        b.output("sum", sum);
        b.finish()
    };
    facts(&with(false));
    assert!(fault(&with(true)).contains("output `sum`"));
}

#[test]
fn parts_of_one_guard_are_one_guard() {
    let mut b = Builder::new();
    let (rows, ids) = gathered(&mut b, &[0, -1, 1]);
    let (upper, lower) = (b.cut(rows, 0, 0, 1), b.cut(rows, 0, 1, 2));
    let whole = b.concat(0, &[upper, lower]);
    let mask = wide(&mut b, ids, 3);
    let sum = b.reduce(ReduceKind::Sum, Tree::Seq, 0, whole, Some(mask));
    b.output("sum", sum);
    facts(&b.finish());
}
