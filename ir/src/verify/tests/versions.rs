//! Versions of states.

use super::*;

struct Parts {
    b: Builder,
    read: Value,
    ids: Value,
    rows: Value,
}

fn parts() -> Parts {
    let mut b = Builder::new();
    let state = b.add_state("s", Type::F32, &[4, 2]);
    let (ids, rows) = (b.table_i32(&[1], &[2]), b.table_f32(&[1, 2], &[1.0, 2.0]));
    let read = b.read(state);
    Parts { b, read, ids, rows }
}

#[test]
fn a_chain_of_writes() {
    let Parts { mut b, read, ids, rows } = parts();
    let before = b.gather(0, 0, read, ids);
    let copy = b.apply(ScalarOp::Neg, &[before]);
    let first = b.write(read, ids, rows);
    let second = b.write(first, ids, copy);
    let facts = facts(&b.finish());
    assert_eq!(facts.final_versions, [Some(second)]);
    assert_eq!(facts.replaced_by[read.0 as usize], Some(first));
    assert_eq!(facts.replaced_by[second.0 as usize], None);
    assert_eq!(facts.last_use[second.0 as usize], END);
    assert_eq!(facts.version[before.0 as usize], Some(read));
    assert_eq!(facts.version[copy.0 as usize], None);
}

#[test]
fn a_version_is_written_once() {
    let Parts { mut b, read, ids, rows } = parts();
    b.write(read, ids, rows);
    let other = b.table_f32(&[1, 2], &[3.0, 4.0]);
    b.write(read, ids, other);
    assert!(fault(&b.finish()).contains("is written twice, first by v3"));
}

#[test]
fn only_states_are_written() {
    let Parts { mut b, read, ids, rows } = parts();
    let copy = b.apply(ScalarOp::Neg, &[read]);
    b.write(copy, ids, rows);
    assert!(fault(&b.finish()).contains("is no state"));
    let Parts { mut b, read, ids, rows } = parts();
    let turned = b.view(Op::Reshape, read, &[8]);
    let back = b.view(Op::Reshape, turned, &[4, 2]);
    b.write(back, ids, rows);
    assert!(fault(&b.finish()).contains("is no state"));
}

#[test]
fn nothing_looks_at_a_replaced_version() {
    let Parts { mut b, read, ids, rows } = parts();
    b.write(read, ids, rows);
    b.cut(read, 0, 1, 1);
    assert!(fault(&b.finish()).contains("shows a state that v3 has replaced by then"));

    let Parts { mut b, read, ids, rows } = parts();
    let before = b.gather(0, 0, read, ids);
    let part = b.cut(before, 1, 0, 1);
    b.write(read, ids, rows);
    b.apply(ScalarOp::Neg, &[part]);
    assert!(fault(&b.finish()).contains("shows a state"));

    let Parts { mut b, read, ids, rows } = parts();
    b.write(read, ids, rows);
    b.output("before", read);
    assert!(fault(&b.finish()).contains("shows a state"));
}

#[test]
fn copies_outlive_a_version() {
    let Parts { mut b, read, ids, rows } = parts();
    let copy = b.apply(ScalarOp::Neg, &[read]);
    b.write(read, ids, rows);
    let again = b.apply(ScalarOp::Neg, &[copy]);
    b.output("copy", again);
    facts(&b.finish());
}
