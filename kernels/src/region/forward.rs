//! Which part of a value follows from the parts of its operands that one workgroup has.

use ds4_ir::Op;
use ds4_ir::graph::{Graph, Value};

use super::axes::{Axis, Walk, reshaped};
use super::locality::{BLOCK, atoms, work_dims};

/// The axes of `v` where the workgroups of some operands go on: `live` has their axes; the other operands are complete. `None` if an
/// operand's part does not suffice for any part of `v`, or two of them differ.
pub fn forward(graph: &Graph<'_>, v: Value, live: &[Option<Vec<Axis>>]) -> Option<Vec<Axis>> {
    let (args, attrs) = (graph.args(v), graph.attrs(v));
    let part = |i: usize| live.get(i).and_then(Option::as_ref);
    match graph.op(v) {
        Op::Weight | Op::Const | Op::Tokens | Op::Extent | Op::Iota | Op::Read => None,
        Op::Map | Op::Widen => agreed(live),
        Op::Quantise => part(0).filter(|axes| whole_blocks(axes.last())).cloned(),
        Op::Reduce => agreed(live).and_then(|axes| without(axes, attrs[2] as usize)),
        Op::Product => product(graph, args, live),
        Op::Reshape => {
            let from = part(0)?;
            let axes = reshaped(graph.dims, (graph.dims_of(args[0]), from), graph.dims_of(v));
            (atoms(&axes) == atoms(from)).then_some(axes)
        }
        Op::Slice => {
            let axis = attrs[0] as usize;
            let whole = graph.dims_of(args[0])[axis] == graph.dims_of(v)[axis];
            part(0).filter(|axes| whole || axes[axis].is_whole()).cloned()
        }
        Op::Permute => part(0).map(|axes| attrs.iter().map(|&a| axes[a as usize].clone()).collect()),
        Op::Broadcast => {
            let pairs = graph.dims_of(args[0]).iter().zip(graph.dims_of(v)).zip(part(0)?);
            Some(pairs.map(|((a, b), axis)| if a == b { axis.clone() } else { Axis::Whole }).collect())
        }
        Op::Concat => agreed(live).filter(|axes| axes[attrs[0] as usize].is_whole()),
        Op::Gather => gather(graph, args, attrs, live),
        Op::TopK | Op::SortIds => agreed(live).filter(|axes| axes.last().is_some_and(Axis::is_whole)),
        Op::ArgMax => part(0).and_then(|axes| without(axes.clone(), axes.len() - 1)),
        Op::Write => {
            let rank = work_dims(graph, v).len();
            let ids = part(1).map(|axes| [&axes[..], &vec![Axis::Whole; rank - 1]].concat());
            match (ids, part(2)) {
                (Some(ids), Some(rows)) => (ids[0] == rows[0]).then(|| rows.clone()),
                (ids, rows) => rows.cloned().or(ids),
            }
        }
    }
}

/// The axes that all live operands have.
fn agreed(live: &[Option<Vec<Axis>>]) -> Option<Vec<Axis>> {
    let mut parts = live.iter().flatten();
    let first = parts.next()?;
    parts.all(|part| part == first).then(|| first.clone())
}

fn without(mut axes: Vec<Axis>, axis: usize) -> Option<Vec<Axis>> {
    axes.remove(axis).is_whole().then_some(axes)
}

fn whole_blocks(last: Option<&Axis>) -> bool {
    match last {
        Some(Axis::Split(factors)) => {
            let inner = factors.last().filter(|f| f.walk == Walk::Local).and_then(|f| f.extent.constant());
            inner.is_some_and(|n| n.is_multiple_of(BLOCK))
        }
        _ => true,
    }
}

/// `w [B.., N, K]`, `x [B.., M.., K]`, mask `[B.., K]`, result `[B.., M.., N]`: K is whole, batch axes agree.
fn product(graph: &Graph<'_>, args: &[Value], live: &[Option<Vec<Axis>>]) -> Option<Vec<Axis>> {
    let batch = graph.dims_of(args[1]).len() - 2;
    let rank = graph.dims_of(args[0]).len();
    let mut axes: Vec<Option<Axis>> = vec![None; rank];
    let mut set = |at: usize, axis: &Axis| match &axes[at] {
        Some(known) if known != axis => false,
        _ => {
            axes[at] = Some(axis.clone());
            true
        }
    };
    if let Some(x) = &live[0] {
        let fits = (0..rank - 1).all(|at| set(at, &x[at]));
        if !fits || !x[rank - 1].is_whole() {
            return None;
        }
    }
    if let Some(w) = &live[1] {
        let fits = (0..batch).all(|at| set(at, &w[at])) && set(rank - 1, &w[batch]);
        if !fits || !w[batch + 1].is_whole() {
            return None;
        }
    }
    if let Some(Some(mask)) = live.get(2) {
        let fits = (0..batch).all(|at| set(at, &mask[at]));
        if !fits || !mask[batch].is_whole() {
            return None;
        }
    }
    Some(axes.into_iter().map(|axis| axis.unwrap_or(Axis::Whole)).collect())
}

/// Result `source[..axis] ++ ids[batch..] ++ source[axis + 1..]`.
fn gather(graph: &Graph<'_>, args: &[Value], attrs: &[u32], live: &[Option<Vec<Axis>>]) -> Option<Vec<Axis>> {
    let (axis, batch) = (attrs[0] as usize, attrs[1] as usize);
    let own = graph.dims_of(args[1]).len() - batch;
    let rank = graph.dims_of(args[0]).len() - 1 + own;
    let mut axes = vec![Axis::Whole; rank];
    if let Some(source) = &live[0] {
        if !source[axis].is_whole() {
            return None;
        }
        axes[..axis].clone_from_slice(&source[..axis]);
        axes[axis + own..].clone_from_slice(&source[axis + 1..]);
    }
    if let Some(ids) = &live[1] {
        if live[0].is_some() && ids[..batch] != axes[..batch] {
            return None;
        }
        axes[..batch].clone_from_slice(&ids[..batch]);
        axes[axis..axis + own].clone_from_slice(&ids[batch..]);
    }
    Some(axes)
}
