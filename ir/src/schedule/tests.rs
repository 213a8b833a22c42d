//! Schedules of small graphs.

use super::{Keep, lives, schedule, schedule_keeping};
use crate::op::{ReduceKind, Type};
use crate::plan::launches::lifetimes;
use crate::plan::layout::layouts;
use crate::scalar::{ScalarOp, ScalarType};
use crate::{Bounds, Builder, GraphTables, Op, Tree, Value};

const BOUNDS: Bounds = Bounds { context: 64, columns: 3, outputs: 3 };

/// Rows of a state are summed, read once more, and replaced by others.
fn ring() -> GraphTables {
    let mut b = Builder::new();
    let state = b.add_state("ring", Type::F32, &[16, 24]);
    let tokens = b.tokens();
    let old = b.read(state);
    let seen = b.gather(0, 0, old, tokens);
    let p = b.scalars.param(0, ScalarType::F32);
    let negative = b.scalars.op(ScalarOp::Neg, &[p]).unwrap();
    let body = b.scalars.body(&[ScalarType::F32], negative).unwrap();
    let turned = b.map(body, &[seen]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, turned, None);
    let again = b.reduce(ReduceKind::Max, Tree::Free, 1, old, None);
    let write = b.write(old, tokens, turned);
    let after = b.gather(0, 0, write, tokens);
    b.output("sum", sum);
    b.output("again", again);
    b.output("after", after);
    b.finish()
}

#[test]
fn every_needed_value_is_launched_once() {
    let graph = ring();
    let graph = graph.view();
    let schedule = schedule(&graph, BOUNDS);
    let mut listed: Vec<Value> = schedule.lists().concat().concat();
    let computed = |v: &Value| !matches!(graph.op(*v), Op::Read);
    assert!(listed.is_sorted());
    listed.dedup();
    assert_eq!(listed, graph.values().filter(computed).collect::<Vec<_>>());
}

/// The planted fault: the write one launch too early.
#[test]
fn a_state_replaced_before_its_reader_is_noticed() {
    let graph = ring();
    let graph = graph.view();
    let schedule = schedule(&graph, BOUNDS);
    let found = layouts(&graph, BOUNDS, &schedule.slots);
    let mut lists = schedule.lists();
    lives(&graph, &lists, &schedule.slots, &found);
    let write = lists.iter().position(|launch| graph.op(launch[0][0]) == Op::Write).unwrap();
    lists.swap(write - 1, write);
    let fault = lifetimes(&graph, &lists, &schedule.slots, &found).unwrap_err();
    assert!(fault.contains("replaces"), "{fault}");
}

#[test]
fn memory_that_lasts_is_nobody_elses() {
    let graph = ring();
    let graph = graph.view();
    let turned = graph.values().find(|&v| graph.op(v) == Op::Map).unwrap();
    let overlaps = |keep: Keep<'_>| {
        let slots = schedule_keeping(&graph, BOUNDS, keep).slots;
        let own = *slots.iter().find(|slot| slot.value == turned).unwrap();
        let others = slots.iter().filter(|slot| slot.value > turned);
        others.filter(|s| s.offset < own.offset + own.bytes && own.offset < s.offset + s.bytes).count()
    };
    assert_eq!(overlaps(Keep { lasting: &[turned], ..Keep::default() }), 0);
    assert!(overlaps(Keep::default()) > 0, "the test has something to keep apart");
}
