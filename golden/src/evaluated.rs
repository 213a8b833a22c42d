//! Whole models through the evaluator.

use ds4_ir::eval::{Evaluator, Fault, States};
use ds4_ir::graph::Graph;
use ds4_ir::{Step, Value};

use crate::weights::Rows;

/// Logits of every token, row after row, with the tokens fed `chunk` at a time; `visit` sees the wanted values of each step.
pub fn logits(
    graph: &Graph<'_>,
    rows: &Rows<'_>,
    tokens: &[u32],
    chunk: usize,
    wanted: &[Value],
    mut visit: impl FnMut(Step, Vec<ds4_ir::eval::Tensor>),
) -> Result<Vec<f32>, Fault> {
    let evaluator = Evaluator::new(*graph, rows);
    let mut states = States::new(graph);
    let output = graph.output("logits").ok_or_else(|| Fault::new("no output `logits`"))?;
    let wanted = [&[output], wanted].concat();
    let mut all = Vec::new();
    for (i, part) in tokens.chunks(chunk).enumerate() {
        let columns = part.len() as u32;
        let step = Step { position: (i * chunk) as u32, columns, outputs: columns };
        let mut results = evaluator.step(&mut states, step, part, &wanted)?;
        all.extend_from_slice(results.remove(0).floats());
        visit(step, results);
    }
    Ok(all)
}
