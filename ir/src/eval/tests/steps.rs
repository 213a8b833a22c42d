//! Steps: states, dimensions and what a step is.

use super::*;
use crate::DimOp;
use crate::graph::State;

/// A state of four rows in which each column writes its position at `position mod 4`.
fn ring() -> (GraphTables, Value) {
    let mut b = Builder::new();
    let columns = b.columns();
    let position = b.dims.dim(DimOp::Position);
    let one = b.n(1);
    let index = b.iota(&[columns], 0);
    let first = b.extent(position);
    let first = b.reshape(first, &[one]);
    let first = b.broadcast(first, &[columns]);
    let positions = b.apply(ScalarOp::AddI, &[index, first]);
    let (p, four) = (b.scalars.param(0, ScalarType::I32), b.scalars.i32(4));
    let slot = b.scalars.op(ScalarOp::RemI, &[p, four]).unwrap();
    let body = b.scalars.body(&[ScalarType::I32], slot).unwrap();
    let slots = b.map(body, &[positions]);
    let rows = b.apply(ScalarOp::FloatOf, &[positions]);
    let rows = b.reshape(rows, &[columns, one]);
    let state = b.add_state("ring", Type::F32, &[4, 1]);
    let read = b.read(state);
    let written = b.write(read, slots, rows);
    b.output("ring", written);
    (b.finish(), read)
}

fn step_at(position: u32, columns: u32) -> Step {
    Step { position, columns, outputs: 0 }
}

#[test]
fn states_advance_at_the_end_of_a_step() {
    let (tables, read) = ring();
    let graph = tables.view();
    let memory = Memory::default();
    let mut states = States::new(&graph);
    let read = run_step(&tables, &memory, &mut states, step_at(0, 3), &[read]).unwrap();
    assert_eq!(read[0].floats(), [0.0; 4]);
    let floats = |states: &States| states.words(State(0)).iter().map(|&w| f32::from_bits(w)).collect::<Vec<_>>();
    assert_eq!(floats(&states), [0.0, 1.0, 2.0, 0.0]);
    run_step(&tables, &memory, &mut states, step_at(3, 2), &[]).unwrap();
    assert_eq!(floats(&states), [4.0, 1.0, 2.0, 3.0]);
}

#[test]
fn a_row_written_twice_is_a_fault_and_the_states_stay() {
    let (tables, _) = ring();
    let mut states = States::new(&tables.view());
    let before = states.clone();
    let fault = run_step(&tables, &Memory::default(), &mut states, step_at(0, 5), &[]).unwrap_err();
    assert_eq!(fault.message, "row 0 of the state is written twice");
    assert_eq!(states, before);
}

#[test]
fn masked_writes_are_skipped_and_others_must_fit() {
    for (ids, wanted) in [([-1, 1], Ok([0.0, 6.0])), ([0, 2], Err("id 2 is outside the state's 2 rows"))] {
        let mut b = Builder::new();
        let state = b.add_state("s", Type::F32, &[2]);
        let read = b.read(state);
        let ids = b.table_ids(&[2], &ids);
        let rows = b.table_f32(&[2], &[5.0, 6.0]);
        let v = b.write(read, ids, rows);
        match (run(b, v), wanted) {
            (Ok(got), Ok(wanted)) => assert_eq!(got.floats(), wanted),
            (Err(fault), Err(wanted)) => assert_eq!(fault.message, wanted),
            (got, _) => panic!("{got:?}"),
        }
    }
}

/// Rows that a masked id selected may be written under the same ids.
#[test]
fn rows_without_a_value_are_not_written_under_their_ids() {
    let mut b = Builder::new();
    let state = b.add_state("s", Type::F32, &[3]);
    let read = b.read(state);
    let ids = b.table_ids(&[2], &[2, -1]);
    let table = b.table_f32(&[3], &[f32::NAN, 6.0, 7.0]);
    let rows = b.gather(0, 0, table, ids);
    let v = b.write(read, ids, rows);
    assert_eq!(floats(b, v), [0.0, 0.0, 7.0]);
}

#[test]
fn a_state_holds_the_canonical_nan() {
    let mut b = Builder::new();
    let state = b.add_state("s", Type::F32, &[1]);
    let read = b.read(state);
    let ids = b.table_i32(&[1], &[0]);
    let rows = b.table_f32(&[1], &[f32::from_bits(0xffc1_2345)]);
    b.write(read, ids, rows);
    let tables = b.finish();
    let mut states = States::new(&tables.view());
    run_step(&tables, &Memory::default(), &mut states, FIRST, &[]).unwrap();
    assert_eq!(states.words(State(0)), [0x7fc0_0000]);
}

#[test]
fn a_dimension_below_zero_is_a_fault() {
    let mut b = Builder::new();
    let position = b.dims.dim(DimOp::Position);
    let three = b.n(3);
    let left = b.dims.dim(DimOp::Sub(three, position));
    let v = b.extent(left);
    let tables = b.finish();
    let mut states = States::new(&tables.view());
    let mut at = |position| run_step(&tables, &Memory::default(), &mut states, step_at(position, 1), &[v]);
    assert_eq!(at(1).unwrap()[0].bits(), [2]);
    assert!(at(4).unwrap_err().message.contains("negative"));
}

#[test]
fn what_no_step_is() {
    let tables = Builder::new().finish();
    let graph = tables.view();
    let memory = Memory::default();
    let run = |states: &mut States, step, tokens: &[u32], wanted: &[Value]| {
        super::super::evaluate(&graph, &memory, states, step, tokens, wanted).unwrap_err().message
    };
    let mut states = States::new(&graph);
    assert!(run(&mut states, step_at(0, 0), &[], &[]).contains("no step"));
    assert!(run(&mut states, step_at(u32::MAX, 1), &[1], &[]).contains("no step"));
    assert!(run(&mut states, step_at(0, 2), &[1], &[]).contains("1 tokens for 2 columns"));
    assert!(run(&mut states, step_at(0, 1), &[1], &[Value(9)]).contains("v9 does not exist"));
    let other = ring().0;
    assert!(run(&mut States::new(&other.view()), step_at(0, 1), &[1], &[]).contains("another graph"));
}
