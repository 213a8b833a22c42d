//! A graph with every operation in it: a layer in miniature.

use super::*;
use crate::graph::GraphTables;
use crate::{Format, ReduceKind, Tree};

/// Embedding, a window of four rows with attention over it, two experts of three, logits of the last columns.
pub(super) fn sample() -> GraphTables {
    let mut b = Builder::new();
    let embedding = b.add_weight("embedding", Type::weight(Format::F16), &[16, 32]);
    let experts = b.add_weight("experts", Type::weight(Format::Q8_0), &[3, 4, 32]);
    let tokens = b.tokens();
    let table = b.weight(embedding);
    let rows = b.gather(0, 0, table, tokens);
    let x = b.widen(rows);
    let window = b.within("window", |b| window(b, x));
    let attended = b.within("attend", |b| attend(b, x, window));
    let experts = b.weight(experts);
    let mixed = b.within("experts", |b| route(b, attended, experts));
    b.tap("mixed", mixed);
    logits(&mut b, mixed);
    b.finish()
}

/// Writes the columns' rows behind each other, modulo 4; gives the state's new version.
fn window(b: &mut Builder, x: Value) -> Value {
    let (columns, one) = (b.columns(), b.n(1));
    let position = b.dims.dim(DimOp::Position);
    let first = b.extent(position);
    let first = b.reshape(first, &[one]);
    let first = b.broadcast(first, &[columns]);
    let index = b.iota(&[columns], 0);
    let positions = b.apply(ScalarOp::AddI, &[index, first]);
    let slots = {
        let (p, four) = (b.scalars.param(0, crate::ScalarType::I32), b.scalars.i32(4));
        let slot = b.scalars.op(ScalarOp::RemI, &[p, four]).unwrap();
        let body = b.scalars.body(&[crate::ScalarType::I32], slot).unwrap();
        b.map(body, &[positions])
    };
    let state = b.add_state("window", Type::F32, &[4, 32]);
    let read = b.read(state);
    b.write(read, slots, x)
}

/// Scores each column against the window rows that exist and sums them by weight.
fn attend(b: &mut Builder, x: Value, window: Value) -> Value {
    let (columns, four) = (b.columns(), b.n(4));
    let ids = b.table_ids(&[4], &[2, 0, -1, 1]);
    let ids = b.sort_ids(ids);
    let rows = b.gather(0, 0, window, ids);
    let scores = b.product(Tree::Lanes(32), x, rows, None);
    let one = b.n(1);
    let mask = b.reshape(ids, &[one, four]);
    let mask = b.broadcast(mask, &[columns, four]);
    let most = b.reduce(ReduceKind::Max, Tree::Free, 1, scores, Some(mask));
    let most = b.reshape(most, &[columns, one]);
    let most = b.broadcast(most, &[columns, four]);
    let shifted = b.apply(ScalarOp::Sub, &[scores, most]);
    let weights = b.apply(ScalarOp::Exp, &[shifted]);
    let turned = b.permute(rows, &[1, 0]);
    let sum = b.product(Tree::Seq, weights, turned, Some(ids));
    b.apply(ScalarOp::Add, &[x, sum])
}

/// Two experts of three, those whose keys are largest.
fn route(b: &mut Builder, x: Value, experts: Value) -> Value {
    let (columns, two, width, one) = (b.columns(), b.n(2), b.n(32), b.n(1));
    let keys = b.cut(x, 1, 0, 3);
    let chosen = b.top_k(2, keys, None);
    let weights = b.gather(0, 0, experts, chosen);
    let quantised = b.quantise(x);
    let quantised = b.reshape(quantised, &[columns, one, width]);
    let quantised = b.broadcast(quantised, &[columns, two, width]);
    let hidden = b.product(Tree::BLOCKS, quantised, weights, None);
    let four = b.n(4);
    let mask = b.reshape(chosen, &[columns, two, one]);
    let mask = b.broadcast(mask, &[columns, two, four]);
    b.reduce(ReduceKind::Sum, Tree::Seq, 1, hidden, Some(mask))
}

fn logits(b: &mut Builder, mixed: Value) {
    let (columns, outputs) = (b.columns(), b.dims.dim(DimOp::Outputs));
    let start = b.dims.dim(DimOp::Sub(columns, outputs));
    let last = b.slice(mixed, 0, start, outputs);
    let logits = b.concat(1, &[last, last]);
    let best = b.arg_max(logits);
    b.output("logits", logits);
    b.output("best", best);
}
