//! What a model's plan says of itself must be so: the vocabulary, and what a step gives.

use super::Plan;
use crate::Value;
use crate::dim::DimOp;
use crate::graph::Graph;
use crate::op::{Op, Type};

/// What sessions read of a step, by the fact `head`: names and types of the outputs.
const HEADS: [(&str, &[(&str, Type)]); 2] =
    [("logits", &[("logits", Type::F32)]), ("greedy", &[("greedy", Type::I32), ("peak", Type::F32)])];

/// Compares the facts of a model's plan with its graph. A plan of another graph has none of them.
pub fn check_facts(graph: &Graph<'_>, plan: &Plan<'_>) -> Result<(), String> {
    let Some(vocabulary) = plan.option("model.vocab_size") else { return Ok(()) };
    let number = vocabulary.parse().map_err(|_| format!("`model.vocab_size` is {vocabulary}, no number"))?;
    let other = |what: &str, n: Option<u32>| match n {
        Some(n) if n == number => Ok(()),
        _ => Err(format!(
            "`model.vocab_size` is {vocabulary}, and {what} {}",
            n.map_or("no number".into(), |n| n.to_string())
        )),
    };
    for v in graph.values().filter(|&v| looks_up_tokens(graph, v)) {
        other(&format!("{v} looks tokens up in rows that are"), extent(graph, graph.args(v)[0], 0))?;
    }
    let head = plan.option("head").unwrap_or("missing");
    let outputs = HEADS.iter().find(|(name, _)| *name == head).map(|(_, outputs)| *outputs);
    for &(name, ty) in outputs.ok_or_else(|| format!("`head` is {head}, neither logits nor greedy"))? {
        let found = graph.output(name).filter(|&v| graph.ty(v) == ty);
        let v = found.ok_or_else(|| format!("`head` is {head}, and there is no such output `{name}`"))?;
        if name == "logits" {
            other("the logits are", extent(graph, v, 1))?;
        }
    }
    Ok(())
}

/// Whether a value is the rows of a table that the step's tokens select.
fn looks_up_tokens(graph: &Graph<'_>, v: Value) -> bool {
    graph.op(v) == Op::Gather && graph.attrs(v)[0] == 0 && graph.op(graph.args(v)[1]) == Op::Tokens
}

/// An extent of a value, if it is constant.
fn extent(graph: &Graph<'_>, v: Value, axis: usize) -> Option<u32> {
    match DimOp::of(graph.dims[graph.dims_of(v).get(axis)?.0 as usize]) {
        Some(DimOp::Const(n)) => Some(n),
        _ => None,
    }
}
