//! Splits: which parts of a region's last value its workgroups compute.
//!
//! A split says nothing of the values before the last one: what a workgroup needs of them follows from the operations, and an
//! axis that a tree runs along is no axis of its result, so no split divides a tree.

use crate::dim::{Dim, DimOp};
use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::rules::launch::Condition;

/// Elements of a block that is quantised together.
const BLOCK: u32 = 32;

/// The dimensions that a split of a value divides: of a write those of the rows that it writes.
pub fn split_dims<'a>(graph: &Graph<'a>, v: Value) -> &'a [Dim] {
    match (graph.op(v), graph.args(v)) {
        (Op::Write, &[_, _, rows]) => graph.dims_of(rows),
        _ => graph.dims_of(v),
    }
}

/// The constant that a dimension is.
pub(super) fn constant(graph: &Graph<'_>, dim: Dim) -> Option<u32> {
    match DimOp::of(graph.dims[dim.0 as usize]) {
        Some(DimOp::Const(n)) => Some(n),
        _ => None,
    }
}

/// Whether the tiles are a split of the value.
pub(super) fn check_split(graph: &Graph<'_>, v: Value, tiles: &[u32]) -> Result<(), String> {
    let dims = split_dims(graph, v);
    let divides = |(&dim, &tile): (&Dim, &u32)| match constant(graph, dim) {
        _ if tile == 0 => true,
        Some(n) => n.is_multiple_of(tile),
        None => tile == 1,
    };
    let fits = tiles.len() == dims.len() && dims.iter().zip(tiles).all(divides);
    Condition::Tiles.ensure(fits, || {
        format!("the split {tiles:?} of the region of {v} is not one of its axes: wanted for each axis 0, or a number that divides it, or 1 where a step chooses it")
    })?;
    Condition::Whole.ensure(stays_whole(graph, v, dims, tiles), || {
        format!("the split {tiles:?} of the region of {v} divides what `{}` needs in one piece", graph.op(v).name())
    })
}

fn stays_whole(graph: &Graph<'_>, v: Value, dims: &[Dim], tiles: &[u32]) -> bool {
    let is_whole = |axis: usize| match (tiles.get(axis), dims.get(axis)) {
        (Some(&tile), Some(&dim)) => tile == 0 || constant(graph, dim) == Some(tile),
        _ => true,
    };
    let last = dims.len().wrapping_sub(1);
    match graph.op(v) {
        Op::TopK | Op::SortIds => is_whole(last),
        Op::Quantise => is_whole(last) || tiles.get(last).is_some_and(|tile| tile.is_multiple_of(BLOCK)),
        Op::Concat => is_whole(graph.attrs(v)[0] as usize),
        _ => true,
    }
}

/// Workgroups along an axis of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Groups {
    /// So many.
    Const(u32),
    /// As many as the dimension is.
    Dim(Dim),
}

/// The workgroups of a split, axis by axis; axes that stay whole have none.
pub(super) fn workgroups(graph: &Graph<'_>, v: Value, tiles: &[u32]) -> Vec<Groups> {
    let groups = |(&dim, &tile): (&Dim, &u32)| match constant(graph, dim) {
        _ if tile == 0 => None,
        Some(n) => (n != tile).then(|| Groups::Const(n / tile)),
        None => Some(Groups::Dim(dim)),
    };
    split_dims(graph, v).iter().zip(tiles).filter_map(groups).collect()
}
