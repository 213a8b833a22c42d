//! Graphs that are in order, graphs that are not, and tables that are no graphs.

mod guards;
mod hostile;
mod sample;
mod versions;

use super::{END, Facts, check_bounds, verify};
use crate::eval::tests::Small;
use crate::graph::{GraphTables, Value};
use crate::{Bounds, Builder, DimOp, Op, ScalarOp, Type};

/// The facts of tables that are in order.
fn facts(tables: &GraphTables) -> Facts {
    match verify(&tables.view()) {
        Ok(facts) => facts,
        Err(fault) => panic!("{fault}"),
    }
}

/// The fault of tables that are not.
fn fault(tables: &GraphTables) -> String {
    match verify(&tables.view()) {
        Ok(_) => panic!("nothing is wrong"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn the_sample_is_in_order() {
    let sample = sample::sample();
    let facts = facts(&sample);
    let graph = sample.view();
    let used: std::collections::BTreeSet<Op> = graph.values().map(|v| graph.op(v)).collect();
    assert_eq!(used.len(), Op::ALL.len(), "the sample has every operation");
    check_bounds(&graph, Bounds { context: 64, columns: 4, outputs: 2 }).unwrap();
    for v in graph.values() {
        for &reader in facts.readers_of(v) {
            assert!(graph.args(reader).contains(&v) && reader <= facts.last_use[v.0 as usize]);
        }
        assert_eq!(
            facts.live[v.0 as usize],
            facts.last_use[v.0 as usize] == END || facts.readers_of(v).iter().any(|r| facts.live[r.0 as usize])
        );
    }
}

#[test]
fn a_fault_says_value_span_and_what_is_wrong() {
    let mut b = Builder::new();
    let v = b.within("layer.3", |b| b.within("norm", |b| b.table_f32(&[2], &[0.0; 2])));
    let mut tables = b.finish();
    tables.value_type[v.0 as usize] = Type::I32;
    assert_eq!(fault(&tables), "v0 in `layer.3.norm`: `const` gives f32, not i32");
}

#[test]
fn references_stay_in_their_tables() {
    let sample = sample::sample();
    let broken = |change: &dyn Fn(&mut GraphTables)| {
        let mut tables = sample.clone();
        change(&mut tables);
        fault(&tables)
    };
    let last = sample.value_op.len() - 1;
    assert!(broken(&|t| t.value_op[last] = 21).contains("no operation"));
    assert!(broken(&|t| t.value_span[3].0 = 900).contains("sp900, which does not exist"));
    assert!(broken(&|t| t.value_args[last].start = u32::MAX).contains("reaches beyond its pool"));
    assert!(broken(&|t| t.value_type.truncate(last)).contains("differ in length"));
    assert!(broken(&|t| t.dims[0].op = 9).contains("unknown operation"));
    assert!(broken(&|t| t.shape_dims[0].0 = 999).contains("which does not exist"));
    assert!(broken(&|t| t.spans[1].parent.0 = 1).contains("does not come before it"));
    assert!(broken(&|t| t.spans.clear()).contains("no root span"));
    assert!(broken(&|t| t.outputs[0].value = Value(9999)).contains("which does not exist"));
    assert!(broken(&|t| t.text[1] = 0xff).contains("no UTF-8"));
    assert!(broken(&|t| t.scalars[0].op = 99).contains("unknown operation"));
    assert!(broken(&|t| t.bodies[0].result.0 = 999).contains("which does not exist"));
    assert!(broken(&|t| t.weights[1].name = t.weights[0].name).contains("two of the weights"));
    assert!(broken(&|t| t.constant_words.clear()).contains("beyond its pool"));
    assert!(broken(&|t| t.states[0].ty = Type::Q8).contains("holds rows of f32"));
}

#[test]
fn operands_come_first() {
    let mut b = Builder::new();
    let x = b.table_f32(&[2], &[1.0, 2.0]);
    let v = b.apply(ScalarOp::Neg, &[x]);
    let mut tables = b.finish();
    tables.args[0] = v;
    assert!(fault(&tables).contains("does not come behind its operand v1"));
}

#[test]
fn dimensions_are_bounded_trees() {
    let mut b = Builder::new();
    let mut dim = b.columns();
    for _ in 0..12 {
        let position = b.dims.dim(DimOp::Position);
        let more = b.dims.dim(DimOp::Add(dim, position));
        dim = b.dims.dim(DimOp::Add(more, dim));
    }
    assert!(fault(&b.finish()).contains("more than 256 nodes"));
    let mut b = Builder::new();
    let columns = b.columns();
    b.dims.dim(DimOp::Div(columns, 0));
    assert!(fault(&b.finish()).contains("divides by zero"));
}

#[test]
fn bounds_of_an_entry_point() {
    let bounds = Bounds { context: 100, columns: 8, outputs: 8 };
    let with = |make: &dyn Fn(&mut Builder)| {
        let mut b = Builder::new();
        make(&mut b);
        let tables = b.finish();
        facts(&tables);
        check_bounds(&tables.view(), bounds).map_err(|fault| fault.message)
    };
    let rows = |n: u32| {
        with(&|b| {
            let (zero, columns) = (b.n(0), b.columns());
            let position = b.dims.dim(DimOp::Position);
            let end = b.dims.dim(DimOp::Add(position, columns));
            let quarter = b.dims.dim(DimOp::Div(end, 4));
            let state = b.add_state("s", Type::F32, &[n, 2]);
            let read = b.read(state);
            b.slice(read, 0, zero, quarter);
        })
    };
    assert_eq!(rows(25), Ok(()));
    assert!(rows(24).unwrap_err().contains("beyond the largest"));
    let huge = with(&|b| {
        let (columns, n) = (b.columns(), b.n(1 << 30));
        b.iota(&[columns, n, n], 0);
    });
    assert!(huge.unwrap_err().contains("elements within"));
    let saturated = with(&|b| {
        let columns = b.columns();
        let dim = b.dims.dim(DimOp::Scale(columns, 1 << 30));
        b.iota(&[dim], 0);
    });
    assert!(saturated.unwrap_err().contains("overflows"));
    let negative = with(&|b| {
        let (four, columns) = (b.n(4), b.columns());
        let dim = b.dims.dim(DimOp::Sub(four, columns));
        b.extent(dim);
    });
    assert!(negative.unwrap_err().contains("negative"));
}

/// 40000 values are checked in well under a second.
#[test]
fn time_is_close_to_linear() {
    let mut b = Builder::new();
    let mut x = b.table_f32(&[4], &[0.0; 4]);
    for _ in 0..20_000 {
        let y = b.apply(ScalarOp::Neg, &[x]);
        x = b.apply(ScalarOp::Add, &[x, y]);
    }
    b.output("x", x);
    let tables = b.finish();
    let start = std::time::Instant::now();
    facts(&tables);
    assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
}
