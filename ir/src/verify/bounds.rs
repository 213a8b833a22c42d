//! What must hold at an entry point: its steps are bounded.

use crate::dim::{Bounds, Dim, DimOp, DimRow, Step, dim_max};
use crate::entity::Entity;
use crate::fault::Fault;
use crate::graph::{Graph, Value};
use crate::op::Op;

/// No value has as many elements.
pub(super) const MOST_ELEMENTS: u64 = 1 << 40;

/// Checks a verified graph against the bounds of an entry point: dimensions do not overflow, slices fit their axes,
/// and values have less than 2^40 elements.
///
/// Slices with symbolic bounds and differences of dimensions are tried at the corners of the bounds.
pub fn check_bounds(graph: &Graph, bounds: Bounds) -> Result<(), Fault> {
    let valid = (1..=bounds.context).contains(&bounds.columns) && bounds.outputs <= bounds.columns;
    if !valid || bounds.context > i32::MAX as u32 {
        return Err(Fault::new(format!("{bounds:?} bound no steps")));
    }
    let largest = largest(graph.dims, bounds);
    let corners: Vec<(Step, Vec<Option<u64>>)> =
        corners(bounds).into_iter().map(|step| (step, values(graph.dims, step))).collect();
    for v in graph.values() {
        check_value(graph, v, &largest, &corners, bounds).map_err(|what| Fault::at(graph, v, what))?;
    }
    Ok(())
}

fn check_value(
    graph: &Graph,
    v: Value,
    largest: &[Option<u64>],
    corners: &[(Step, Vec<Option<u64>>)],
    bounds: Bounds,
) -> Result<(), String> {
    let mut elements = 1u64;
    for &dim in graph.dims_of(v) {
        let most = largest[dim.index()].ok_or_else(|| format!("{dim} overflows within {bounds:?}"))?;
        elements = elements.saturating_mul(most);
    }
    if elements >= MOST_ELEMENTS {
        return Err(format!("has up to {elements} elements within {bounds:?}"));
    }
    let attrs = graph.attrs(v);
    let start = match graph.op(v) {
        Op::Slice => Some(Dim(attrs[1])),
        Op::Extent => Some(Dim(attrs[0])),
        _ => None,
    };
    for (step, values) in corners {
        let of = |dim: Dim| values[dim.index()].ok_or_else(|| format!("{dim} is negative or overflows at {step:?}"));
        graph.dims_of(v).iter().copied().chain(start).try_for_each(|dim| of(dim).map(|_| ()))?;
    }
    match start {
        Some(start) if graph.op(v) == Op::Slice => check_slice(graph, v, start, largest, corners),
        _ => Ok(()),
    }
}

fn check_slice(
    graph: &Graph,
    v: Value,
    start: Dim,
    largest: &[Option<u64>],
    corners: &[(Step, Vec<Option<u64>>)],
) -> Result<(), String> {
    let axis = graph.attrs(v)[0] as usize;
    let (extent, whole) = (graph.dims_of(v)[axis], graph.dims_of(graph.args(v)[0])[axis]);
    let starts_at_zero = DimOp::of(graph.dims[start.index()]) == Some(DimOp::Const(0));
    if starts_at_zero && largest[extent.index()] > largest[whole.index()] {
        return Err(format!("the largest {extent} is beyond the largest {whole}"));
    }
    for (step, values) in corners {
        let [start, extent, whole] = [start, extent, whole].map(|dim| values[dim.index()].unwrap_or(0));
        if start + extent > whole {
            return Err(format!("{start} .. {start} + {extent} leaves the axis of {whole} at {step:?}"));
        }
    }
    Ok(())
}

/// The largest value of each dimension, as [`dim_max`] has it; `None` where it, or a part of it, overflows.
fn largest(rows: &[DimRow], bounds: Bounds) -> Vec<Option<u64>> {
    let mut largest: Vec<Option<u64>> = Vec::with_capacity(rows.len());
    for (i, &row) in rows.iter().enumerate() {
        let fits = match DimOp::of(row) {
            Some(DimOp::Add(a, b) | DimOp::Sub(a, b)) => largest[a.index()].and(largest[b.index()]).is_some(),
            Some(DimOp::Scale(a, _) | DimOp::Div(a, _)) => largest[a.index()].is_some(),
            _ => true,
        };
        // A constant of all ones cannot be told from a saturated sum, nor is it an extent that fits anywhere.
        let most = dim_max(rows, Dim(i as u32), bounds);
        largest.push((fits && most < u32::MAX).then_some(most.into()));
    }
    largest
}

/// Steps at the corners of the bounds and between.
fn corners(bounds: Bounds) -> Vec<Step> {
    let mut steps = Vec::new();
    for columns in [1, 2, bounds.columns / 2, bounds.columns] {
        if columns == 0 || columns > bounds.columns {
            continue;
        }
        let last = bounds.context - columns;
        for position in [0, 1, 2, 3, 127, last / 2, last.saturating_sub(1), last] {
            if position <= last {
                let outputs = [0, bounds.outputs.min(columns)];
                steps.extend(outputs.map(|outputs| Step { position, columns, outputs }));
            }
        }
    }
    steps
}

/// The value of every dimension in one step; `None` where it is negative or overflows.
fn values(rows: &[DimRow], step: Step) -> Vec<Option<u64>> {
    let (position, columns) = (u64::from(step.position), u64::from(step.columns));
    let mut values: Vec<Option<u64>> = Vec::with_capacity(rows.len());
    for &row in rows {
        let of = |dim: Dim| values[dim.index()];
        let value = match DimOp::of(row) {
            Some(DimOp::Const(n)) => Some(n.into()),
            Some(DimOp::Position) => Some(position),
            Some(DimOp::Columns) => Some(columns),
            Some(DimOp::Outputs) => Some(step.outputs.into()),
            Some(DimOp::Add(a, b)) => of(a).zip(of(b)).map(|(a, b)| a + b),
            Some(DimOp::Sub(a, b)) => of(a).zip(of(b)).and_then(|(a, b)| a.checked_sub(b)),
            Some(DimOp::Scale(a, n)) => of(a).map(|a| a * u64::from(n)),
            Some(DimOp::Div(a, n)) => of(a).and_then(|a| a.checked_div(n.into())),
            Some(DimOp::Completed(n)) => {
                let n = u64::from(n);
                (position + columns).checked_div(n).zip(position.checked_div(n)).map(|(end, start)| end - start)
            }
            None => None,
        };
        values.push(value.filter(|&value| value < u32::MAX.into()));
    }
    values
}
