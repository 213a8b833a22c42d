//! Dimensions and shapes.

use std::collections::HashSet;

use super::ranges;
use crate::dim::{Dim, DimOp, DimRow};
use crate::fault::Fault;
use crate::graph::Graph;

/// Largest number of nodes of a dimension written out as a tree: its values are computed by plain recursion.
const MOST_NODES: u32 = 256;

/// Largest rank of a shape.
const MOST_AXES: usize = 8;

/// Dimensions refer to earlier ones and divide by positive numbers, shapes refer to dimensions, nothing occurs twice.
pub(super) fn check(graph: &Graph) -> Result<(), Fault> {
    let mut nodes: Vec<u32> = Vec::with_capacity(graph.dims.len());
    let mut seen = HashSet::new();
    for (i, &row) in graph.dims.iter().enumerate() {
        let dim = Dim(i as u32);
        let count = count_nodes(row, &nodes).map_err(|what| Fault::new(format!("dimension {dim} {what}")))?;
        if count > MOST_NODES {
            return Err(Fault::new(format!("dimension {dim} has more than {MOST_NODES} nodes")));
        }
        if !seen.insert(row) {
            return Err(Fault::new(format!("dimension {dim} occurs twice")));
        }
        nodes.push(count);
    }
    check_shapes(graph)
}

/// Number of nodes of a row, given those of the rows before it.
fn count_nodes(row: DimRow, before: &[u32]) -> Result<u32, &'static str> {
    let of = |d: Dim| before.get(d.0 as usize).copied().ok_or("does not come behind its operands");
    Ok(match DimOp::of(row).ok_or("has an unknown operation")? {
        DimOp::Const(_) | DimOp::Position | DimOp::Columns | DimOp::Outputs => 1,
        DimOp::Add(a, b) | DimOp::Sub(a, b) => of(a)? + of(b)? + 1,
        DimOp::Scale(a, _) => of(a)? + 1,
        DimOp::Div(_, 0) | DimOp::Completed(0) => return Err("divides by zero"),
        DimOp::Div(a, _) => of(a)? + 1,
        DimOp::Completed(_) => 1,
    })
}

fn check_shapes(graph: &Graph) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (i, &run) in graph.shapes.iter().enumerate() {
        let dims = ranges::run(run, graph.shape_dims, || format!("shape s{i}"))?;
        if dims.len() > MOST_AXES {
            return Err(Fault::new(format!("shape s{i} has more than {MOST_AXES} axes")));
        }
        for &dim in dims {
            ranges::id(dim, graph.dims.len(), || format!("shape s{i}"))?;
        }
        if !seen.insert(dims) {
            return Err(Fault::new(format!("shape s{i} occurs twice")));
        }
    }
    Ok(())
}
