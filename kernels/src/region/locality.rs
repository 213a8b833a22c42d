//! Which part of each value of a region a workgroup computes.
//!
//! The region's last value, its anchor, is split by tiles; the others follow from what reads them. A value whose readers want
//! different parts, or that knows no part on an axis, is computed whole on that axis by every workgroup.

use ds4_ir::graph::Graph;
use ds4_ir::{Dim, Op, Value};

use super::axes::{Axis, Extent, Factor, Walk, reshaped};
use super::refusal::Refusal;

/// Elements of a block of `q8`.
pub(super) const BLOCK: u32 = 32;

/// Values that one kind of workgroup computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region<'a> {
    /// Its values, ascending, views and gathers that readers do themselves included; the last is the anchor.
    pub values: &'a [Value],
    /// For each axis of the anchor (of a write: of its rows) 0 where it is whole, otherwise how many neighbouring positions a
    /// workgroup has.
    pub tiles: &'a [u32],
}

/// The parts of a region's values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Locality {
    /// Axes of the grid: workgroups along each.
    pub atoms: Vec<Extent>,
    /// The axes of each value of the region, in its order; of a write those of its rows.
    pub axes: Vec<Vec<Axis>>,
}

impl Locality {
    /// The axes of a value of the region.
    pub fn of(&self, region: &Region<'_>, v: Value) -> Option<&[Axis]> {
        region.values.binary_search(&v).ok().map(|i| &self.axes[i][..])
    }

    /// The atoms along which a value is split; along the others every workgroup computes it again.
    pub fn atoms_of(&self, index: usize) -> Vec<bool> {
        let split = atoms(&self.axes[index]);
        (0..self.atoms.len() as u32).map(|atom| split.contains(&atom)).collect()
    }
}

/// The atoms along which axes are split, ascending.
pub(super) fn atoms(axes: &[Axis]) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for axis in axes {
        let Axis::Split(factors) = axis else { continue };
        found.extend(factors.iter().filter_map(|factor| match factor.walk {
            Walk::Grid { atom, .. } => Some(atom),
            Walk::Local | Walk::Fixed => None,
        }));
    }
    found.sort();
    found.dedup();
    found
}

/// The dimensions over which a value's work is spread: of a write those of its rows.
pub fn work_dims<'a>(graph: &Graph<'a>, v: Value) -> &'a [Dim] {
    match graph.op(v) {
        Op::Write => graph.dims_of(graph.args(v)[2]),
        _ => graph.dims_of(v),
    }
}

/// The parts of a region's values.
///
/// # Errors
/// The tiles do not divide the anchor, or an operation needs an axis whole that its readers have split.
pub fn locality(graph: &Graph<'_>, region: &Region<'_>) -> Result<Locality, Refusal> {
    let Some(&anchor) = region.values.last() else {
        return Err(Refusal::Empty);
    };
    let (atoms, anchor_axes) = anchor_axes(graph, anchor, region.tiles)?;
    let mut wanted: Vec<Option<Vec<Axis>>> = vec![None; region.values.len()];
    for (i, &v) in region.values.iter().enumerate().rev() {
        let axes = match wanted[i].take() {
            Some(axes) => axes,
            None if v == anchor => anchor_axes.clone(),
            None => sink_axes(graph, (anchor, &anchor_axes), v)?,
        };
        check(graph, v, &axes)?;
        for (operand, part) in demands(graph, v, &axes) {
            let Ok(at) = region.values.binary_search(&operand) else { continue };
            if graph.op(operand) == Op::Write {
                return Err(Refusal::WriteIsRead(operand));
            }
            let mut joined: Vec<Axis> = match wanted[at].take() {
                None => part,
                Some(known) => known.into_iter().zip(&part).map(|(a, b)| a.joined(b)).collect(),
            };
            // What chooses among a row's elements has the whole row, whatever its readers want of it.
            if matches!(graph.op(operand), Op::TopK | Op::SortIds)
                && let Some(last) = joined.last_mut()
            {
                *last = Axis::Whole;
            }
            wanted[at] = Some(joined);
        }
        wanted[i] = Some(axes);
    }
    Ok(Locality { atoms, axes: wanted.into_iter().flatten().collect() })
}

/// Grid and axes of the anchor.
fn anchor_axes(graph: &Graph<'_>, anchor: Value, tiles: &[u32]) -> Result<(Vec<Extent>, Vec<Axis>), Refusal> {
    let dims = work_dims(graph, anchor);
    if dims.len() != tiles.len() {
        return Err(Refusal::Tiles { value: anchor, axis: dims.len().min(tiles.len()) });
    }
    let (mut atoms, mut axes) = (Vec::new(), Vec::new());
    for (axis, (&dim, &tile)) in dims.iter().zip(tiles).enumerate() {
        let extent = Extent::of(graph.dims, dim);
        if tile == 0 || extent.constant() == Some(tile) {
            axes.push(Axis::Whole);
            continue;
        }
        let count = match extent {
            Extent::Const(n) if n.is_multiple_of(tile) => Extent::Const(n / tile),
            Extent::Dim(_) if tile == 1 => extent,
            _ => return Err(Refusal::Tiles { value: anchor, axis }),
        };
        let atom = atoms.len() as u32;
        atoms.push(count);
        let grid = Factor { extent: count, walk: Walk::Grid { atom, step: 1 } };
        axes.push(Axis::of([grid, Factor { extent: Extent::Const(tile), walk: Walk::Local }]));
    }
    Ok((atoms, axes))
}

/// The axes of a value that nothing in the region reads, beside the anchor: those of the anchor where both have one shape; where
/// the anchor is split along its first axes only, position by position, the same along the same axes.
fn sink_axes(graph: &Graph<'_>, anchor: (Value, &[Axis]), v: Value) -> Result<Vec<Axis>, Refusal> {
    let (own, theirs) = (work_dims(graph, v), work_dims(graph, anchor.0));
    if own == theirs {
        return Ok(anchor.1.to_vec());
    }
    let split = anchor.1.iter().rposition(|axis| !axis.is_whole()).map_or(0, |last| last + 1);
    let single = |axis: &Axis| match axis {
        Axis::Whole => true,
        Axis::Split(factors) => factors.iter().all(|f| matches!(f.walk, Walk::Grid { .. })),
    };
    if own.len() < split || own[..split] != theirs[..split] || !anchor.1[..split].iter().all(single) {
        return Err(Refusal::OtherSink { value: v, anchor: anchor.0 });
    }
    let mut axes = vec![Axis::Whole; own.len()];
    axes[..split].clone_from_slice(&anchor.1[..split]);
    Ok(axes)
}

/// What an operation needs of its own axes.
fn check(graph: &Graph<'_>, v: Value, axes: &[Axis]) -> Result<(), Refusal> {
    let Some(last) = axes.last() else { return Ok(()) };
    match graph.op(v) {
        Op::Quantise => match last {
            Axis::Split(factors) => {
                let inner = factors.last().filter(|f| f.walk == Walk::Local).and_then(|f| f.extent.constant());
                match inner.is_some_and(|n| n.is_multiple_of(BLOCK)) {
                    true => Ok(()),
                    false => Err(Refusal::Blocks(v)),
                }
            }
            Axis::Whole => Ok(()),
        },
        // Where the parts of a concat meet need not be where tiles do.
        Op::Concat if !axes[graph.attrs(v)[0] as usize].is_whole() => {
            Err(Refusal::AxisSplit { value: v, axis: graph.attrs(v)[0] as usize })
        }
        Op::TopK | Op::SortIds if !last.is_whole() => Err(Refusal::AxisSplit { value: v, axis: axes.len() - 1 }),
        _ => Ok(()),
    }
}

/// The part of each operand that a part of `v` needs, axis by axis.
pub fn demands(graph: &Graph<'_>, v: Value, axes: &[Axis]) -> Vec<(Value, Vec<Axis>)> {
    let (args, attrs) = (graph.args(v), graph.attrs(v));
    let rank = |operand: Value| graph.dims_of(operand).len();
    let whole = |operand: Value| vec![Axis::Whole; rank(operand)];
    match graph.op(v) {
        Op::Weight | Op::Const | Op::Tokens | Op::Extent | Op::Iota | Op::Read => Vec::new(),
        Op::Map | Op::Quantise | Op::Widen => args.iter().map(|&a| (a, axes.to_vec())).collect(),
        Op::Reduce => {
            let mut inner = axes.to_vec();
            inner.insert(attrs[2] as usize, Axis::Whole);
            args.iter().map(|&a| (a, inner.clone())).collect()
        }
        Op::Product => product_demands(graph, args, axes),
        Op::Reshape => {
            let (from, to) = (graph.dims_of(v), graph.dims_of(args[0]));
            vec![(args[0], reshaped(graph.dims, (from, axes), to))]
        }
        Op::Slice => {
            let mut inner = axes.to_vec();
            let axis = attrs[0] as usize;
            if graph.dims_of(args[0])[axis] != graph.dims_of(v)[axis] {
                inner[axis] = Axis::Whole;
            }
            vec![(args[0], inner)]
        }
        Op::Permute => {
            let mut inner = whole(args[0]);
            for (axis, &from) in axes.iter().zip(attrs) {
                inner[from as usize] = axis.clone();
            }
            vec![(args[0], inner)]
        }
        Op::Broadcast => {
            let pairs = graph.dims_of(args[0]).iter().zip(graph.dims_of(v)).zip(axes);
            vec![(args[0], pairs.map(|((a, b), axis)| if a == b { axis.clone() } else { Axis::Whole }).collect())]
        }
        Op::Concat => {
            let mut inner = axes.to_vec();
            inner[attrs[0] as usize] = Axis::Whole;
            args.iter().map(|&a| (a, inner.clone())).collect()
        }
        Op::Gather => gather_demands(graph, args, attrs, axes),
        Op::TopK | Op::SortIds => {
            let mut inner = axes.to_vec();
            if let Some(last) = inner.last_mut() {
                *last = Axis::Whole;
            }
            args.iter().map(|&a| (a, inner.clone())).collect()
        }
        Op::ArgMax => vec![(args[0], [axes, &[Axis::Whole]].concat())],
        Op::Write => vec![(args[0], whole(args[0])), (args[1], vec![axes[0].clone()]), (args[2], axes.to_vec())],
    }
}

/// `w [B.., N, K]`, `x [B.., M.., K]`, mask `[B.., K]`, result `[B.., M.., N]`.
fn product_demands(graph: &Graph<'_>, args: &[Value], axes: &[Axis]) -> Vec<(Value, Vec<Axis>)> {
    let batch = graph.dims_of(args[1]).len() - 2;
    let last = axes.len() - 1;
    let x = [&axes[..last], &[Axis::Whole]].concat();
    let w = [&axes[..batch], &[axes[last].clone(), Axis::Whole]].concat();
    let mask = [&axes[..batch], &[Axis::Whole]].concat();
    args.iter().copied().zip([x, w, mask]).collect()
}

/// Result `source[..axis] ++ ids[batch..] ++ source[axis + 1..]`.
fn gather_demands(graph: &Graph<'_>, args: &[Value], attrs: &[u32], axes: &[Axis]) -> Vec<(Value, Vec<Axis>)> {
    let (axis, batch) = (attrs[0] as usize, attrs[1] as usize);
    let own = graph.dims_of(args[1]).len() - batch;
    let source = [&axes[..axis], &[Axis::Whole], &axes[axis + own..]].concat();
    let ids = [&axes[..batch], &axes[axis..axis + own]].concat();
    vec![(args[0], source), (args[1], ids)]
}

/// The values of a region with the views that lie between them.
pub fn with_views(graph: &Graph<'_>, values: &[Value]) -> Vec<Value> {
    let mut all = values.to_vec();
    let mut path = Vec::new();
    for &v in values {
        for &operand in graph.args(v) {
            path.clear();
            let mut at = operand;
            while graph.op(at).is_view() && values.binary_search(&at).is_err() {
                path.push(at);
                at = graph.args(at)[0];
            }
            if values.binary_search(&at).is_ok() {
                all.extend_from_slice(&path);
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
