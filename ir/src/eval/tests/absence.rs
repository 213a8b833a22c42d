//! Elements without a value: where they may go, and where they are a fault.

use super::*;
use crate::{ReduceKind, Tree};

/// Rows `[2, -1, 0]` of a table of three rows of two.
fn gathered(b: &mut Builder) -> (Value, Value) {
    let source = b.table_f32(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let ids = b.table_ids(&[3], &[2, -1, 0]);
    (b.gather(0, 0, source, ids), ids)
}

fn mask_of(b: &mut Builder, ids: Value) -> Value {
    let column = b.view(Op::Reshape, ids, &[3, 1]);
    b.view(Op::Broadcast, column, &[3, 2])
}

#[test]
fn a_masked_id_selects_no_value() {
    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b);
    let doubled = b.apply(ScalarOp::Add, &[rows, rows]);
    let turned = b.permute(doubled, &[1, 0]);
    let got = run(b, turned).unwrap();
    assert_eq!(got.floats(), [10.0, 0.0, 2.0, 12.0, 0.0, 4.0]);
    let absent: Vec<bool> = (0..6).map(|i| got.is_absent(i)).collect();
    assert_eq!(absent, [false, true, false, false, true, false]);
}

#[test]
fn the_same_mask_takes_it() {
    let mut b = Builder::new();
    let (rows, ids) = gathered(&mut b);
    let mask = mask_of(&mut b, ids);
    let v = b.reduce(ReduceKind::Sum, Tree::Seq, 0, rows, Some(mask));
    b.output("sum", v);
    assert_eq!(floats(b, v), [6.0, 8.0]);

    // [2, 3] x [1, 3] under the mask.
    let mut b = Builder::new();
    let (rows, ids) = gathered(&mut b);
    let w = b.permute(rows, &[1, 0]);
    let x = b.table_f32(&[1, 3], &[1.0, f32::NAN, 100.0]);
    let v = b.product(Tree::Seq, x, w, Some(ids));
    b.output("product", v);
    assert_eq!(floats(b, v), [105.0, 206.0]);
}

#[test]
fn products_and_quantise_pass_it_on() {
    let mut b = Builder::new();
    let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let source = b.table_f32(&[2, 32], &values);
    let ids = b.table_ids(&[2], &[-1, 1]);
    let rows = b.gather(0, 0, source, ids);
    let quantised = b.quantise(rows);
    let weight = b.add_weight("w", Type::weight(Format::Q8_0), &[3, 32]);
    let w = b.weight(weight);
    let v = b.product(Tree::BLOCKS, quantised, w, None);
    let tables = b.finish();
    let memory = Memory::random(&tables.view(), 1);
    let mut states = States::new(&tables.view());
    let got = run_step(&tables, &memory, &mut states, FIRST, &[v]).unwrap();
    let absent: Vec<bool> = (0..6).map(|i| got[0].is_absent(i)).collect();
    assert_eq!(absent, [true, true, true, false, false, false]);
}

#[test]
fn a_masked_expert_gives_no_value_and_its_rows_are_not_read() {
    let mut b = Builder::new();
    let weight = b.add_weight("experts", Type::weight(Format::F32), &[2, 1, 2]);
    let w = b.weight(weight);
    let ids = b.table_ids(&[2], &[1, -1]);
    let chosen = b.gather(0, 0, w, ids);
    let x = b.table_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let terms = b.product(Tree::Seq, x, chosen, None);
    let mask = b.view(Op::Reshape, ids, &[2, 1]);
    let v = b.reduce(ReduceKind::Sum, Tree::Seq, 0, terms, Some(mask));
    b.output("sum", v);
    let mut memory = Memory::default();
    memory.add_floats(2, &[f32::NAN, f32::NAN, 5.0, 6.0]);
    assert_eq!(run_with(b, &memory, v).unwrap().floats(), [17.0]);
}

/// Tables whose guards are wrong are refused by the verifier; the evaluator finds out by itself.
fn unverified(b: Builder) -> Fault {
    let tables = b.finish();
    let graph = tables.view();
    let mut states = States::new(&graph);
    let memory = Memory::default();
    Evaluator::new(graph, &memory).step(&mut states, FIRST, &[0], &[]).unwrap_err()
}

#[test]
fn an_output_without_a_value_is_a_fault() {
    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b);
    b.output("rows", rows);
    let fault = unverified(b);
    assert_eq!(fault.message, "the output has no value at [1, 0]");
    assert_eq!(fault.value, Some(rows));
}

#[test]
fn another_mask_does_not_take_it() {
    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b);
    let other = b.table_ids(&[3], &[0, 0, -1]);
    let mask = mask_of(&mut b, other);
    let v = b.reduce(ReduceKind::Sum, Tree::Seq, 0, rows, Some(mask));
    b.output("sum", v);
    assert!(unverified(b).message.contains("the output has no value"));
}

#[test]
fn keys_ids_and_states_need_values() {
    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b);
    let v = b.top_k(1, rows, None);
    b.output("top", v);
    assert!(unverified(b).message.contains("key 0 of row 1 has no value"));

    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b);
    let v = b.arg_max(rows);
    b.output("index", v);
    assert!(unverified(b).message.contains("has no value"));

    let mut b = Builder::new();
    let table = b.table_i32(&[2], &[0, 1]);
    let ids = b.table_ids(&[2], &[1, -1]);
    let absent = b.gather(0, 0, table, ids);
    let v = b.gather(0, 0, table, absent);
    b.output("rows", v);
    assert!(unverified(b).message.contains("the ids has no value"));

    let mut b = Builder::new();
    let (rows, _) = gathered(&mut b);
    let state = b.add_state("s", Type::F32, &[8, 2]);
    let read = b.read(state);
    let places = b.table_i32(&[3], &[0, 1, 2]);
    b.write(read, places, rows);
    let fault = unverified(b);
    assert!(fault.message.contains("row 1, written to 1, has no value"), "{fault}");
    assert_eq!(fault.span, "");
}
