//! How deep each node lies: how many times all workgroups have to meet before it can be computed.
//!
//! A node goes on in the workgroups of what it reads where its part there follows from theirs. Where it needs an axis that a
//! producer has split over workgroups, or takes one workgroup long, it lies one deeper and begins a chain of its own, with the
//! coarsest split that serves it. Whether a meeting is worth its cost is not decided here: the search joins depths again.

use ds4_ir::graph::{Graph, Value};
use ds4_ir::{DimOp, Op};
use ds4_kernels::region::{Axis, Extent, Factor, Walk, forward, work_dims};

use super::cost::{Cost, Scene};
use super::nodes::Kind;

/// Where a value stands.
#[derive(Clone, PartialEq, Debug)]
struct Place {
    /// How many meetings are before it.
    depth: u32,
    /// Its part in the workgroups of this depth; `None` if only a deeper reader finds it complete.
    axes: Option<Vec<Axis>>,
}

/// The depth of each node; 0 for all else.
///
/// A node waits for its first reader where it can share the reader's workgroups then. Products with tensors do not wait, nor does
/// what has to be complete before a reader begins.
pub fn depths(scene: &Scene<'_>) -> Vec<u32> {
    let mut places: Vec<Option<Place>> = vec![None; scene.graph.len()];
    let mut depths = vec![0; scene.graph.len()];
    for v in scene.graph.values() {
        match scene.nodes.kinds[v.0 as usize] {
            Kind::Unneeded | Kind::Leaf | Kind::Free => {}
            Kind::View | Kind::Gather => places[v.0 as usize] = through(&scene.graph, v, &|a| place(&places, a)),
            Kind::Node => {
                let found = node(scene, v, &places);
                depths[v.0 as usize] = found.depth;
                places[v.0 as usize] = Some(found);
            }
        }
    }
    wait(scene, &places, &mut depths);
    depths
}

/// Moves nodes down to their readers.
fn wait(scene: &Scene<'_>, places: &[Option<Place>], depths: &mut [u32]) {
    let graph = &scene.graph;
    for v in graph.values().rev() {
        let readers = scene.nodes.readers(v);
        let tensor = graph.op(v) == Op::Product && graph.ty(graph.args(v)[1]).format().is_some();
        if !scene.nodes.is_node(v) || readers.is_empty() || tensor {
            continue;
        }
        let strict = |reader: &Value| scene.nodes.needs(*reader).iter().any(|need| need.value == v && need.strict);
        if readers.iter().any(strict) {
            continue;
        }
        let latest = |reader: &Value| {
            let depth = depths[reader.0 as usize];
            if shares(scene, places, v, *reader) { depth } else { depths[v.0 as usize] }
        };
        if let Some(depth) = readers.iter().map(latest).min() {
            depths[v.0 as usize] = depths[v.0 as usize].max(depth);
        }
    }
}

/// Whether the workgroups that compute `reader` as it stands could compute `v` as it stands beside it.
fn shares(scene: &Scene<'_>, places: &[Option<Place>], v: Value, reader: Value) -> bool {
    let graph = &scene.graph;
    let axes = |x: Value| places[x.0 as usize].as_ref().and_then(|p| p.axes.clone());
    let Some(own) = axes(v) else { return false };
    // The axes of `v` as the reader's operands show them.
    fn seen(scene: &Scene<'_>, x: Value, v: Value, own: &[Axis]) -> Result<Option<Vec<Axis>>, ()> {
        if x == v {
            return Ok(Some(own.to_vec()));
        }
        if !matches!(scene.nodes.kinds[x.0 as usize], Kind::View | Kind::Gather) {
            return Ok(None);
        }
        let args = scene.graph.args(x);
        let live: Vec<Option<Vec<Axis>>> = args.iter().map(|&a| seen(scene, a, v, own)).collect::<Result<_, _>>()?;
        if live.iter().all(Option::is_none) {
            return Ok(None);
        }
        forward(&scene.graph, x, &live).map(Some).ok_or(())
    }
    let live: Result<Vec<Option<Vec<Axis>>>, ()> =
        graph.args(reader).iter().map(|&a| seen(scene, a, v, &own)).collect();
    live.is_ok_and(|live| forward(graph, reader, &live).is_some_and(|found| Some(found) == axes(reader)))
}

fn place(places: &[Option<Place>], v: Value) -> Option<Place> {
    places[v.0 as usize].clone()
}

/// The place of a view, or of a gather that its reader does itself.
fn through(graph: &Graph<'_>, v: Value, of: &dyn Fn(Value) -> Option<Place>) -> Option<Place> {
    let args = graph.args(v);
    let depth = args.iter().filter_map(|&a| of(a)).map(|p| ready(&p)).max()?;
    let live: Vec<Option<Vec<Axis>>> =
        args.iter().map(|&a| of(a).filter(|p| p.depth == depth).and_then(|p| p.axes)).collect();
    if live.iter().all(Option::is_none) {
        // Complete by then: as good as a leaf for readers of this depth.
        return Some(Place { depth: depth.saturating_sub(1), axes: None });
    }
    Some(Place { depth, axes: forward(graph, v, &live) })
}

/// The first depth at which a reader may stand.
fn ready(place: &Place) -> u32 {
    place.depth + u32::from(place.axes.is_none())
}

fn node(scene: &Scene<'_>, v: Value, places: &[Option<Place>]) -> Place {
    let graph = &scene.graph;
    let args = graph.args(v);
    let strict = scene.nodes.needs(v).iter().filter(|need| need.strict);
    let strict = strict.filter_map(|need| places[need.value.0 as usize].as_ref()).map(|p| p.depth + 1).max();
    let free = |a: Value| free_place(scene, a, places);
    let depth = args.iter().filter_map(|&a| free(a)).map(|p| ready(&p)).chain(strict).max().unwrap_or(0);
    let live: Vec<Option<Vec<Axis>>> =
        args.iter().map(|&a| free(a).filter(|p| p.depth == depth).and_then(|p| p.axes)).collect();
    let begins = live.iter().all(Option::is_none);
    match forward(graph, v, &live) {
        // What takes a workgroup long is better split, even if that costs a meeting.
        Some(axes) if !begins && !pays(scene, v, &axes) => Place { depth, axes: Some(axes) },
        _ => Place { depth: depth + u32::from(!begins), axes: Some(begin(scene, v)) },
    }
}

/// The place of an operand; of a free value that of what it looks up with.
fn free_place(scene: &Scene<'_>, v: Value, places: &[Option<Place>]) -> Option<Place> {
    match scene.nodes.kinds[v.0 as usize] {
        Kind::Free => through(&scene.graph, v, &|a| free_place(scene, a, places)),
        _ => place(places, v),
    }
}

/// Whether a workgroup that goes on with these axes takes longer for `v` than a launch with the finest split does.
fn pays(scene: &Scene<'_>, v: Value, axes: &[Axis]) -> bool {
    let time = |axes: &[Axis]| scene.workgroup_time(&scene.value_cost(v, axes));
    let least = starts(scene, v).iter().map(|axes| time(axes)).fold(f64::INFINITY, f64::min);
    time(axes) > scene.profile.launch + least
}

/// The split with which a chain begins at `v`: the coarsest with which no workgroup takes long.
fn begin(scene: &Scene<'_>, v: Value) -> Vec<Axis> {
    let mut starts = starts(scene, v);
    let groups = |axes: &Vec<Axis>| scene.workgroups_of(axes);
    starts.sort_by(|a, b| groups(a).total_cmp(&groups(b)));
    let fits = starts.iter().position(|axes| !pays(scene, v, axes));
    starts.swap_remove(fits.unwrap_or(0))
}

/// The splits that a chain may begin with: the first axes position by position, and a product's rows in tiles.
fn starts(scene: &Scene<'_>, v: Value) -> Vec<Vec<Axis>> {
    let graph = &scene.graph;
    let dims = work_dims(graph, v);
    let constant = |axis: usize| match DimOp::of(graph.dims[dims[axis].0 as usize]) {
        Some(DimOp::Const(n)) => Some(n),
        _ => None,
    };
    let rank = dims.len();
    let mut found = vec![vec![Axis::Whole; rank]];
    let in_tiles = graph.op(v) == Op::Product && rank > 0 && constant(rank - 1).is_some_and(|n| n.is_multiple_of(32));
    for prefix in 1..=rank - usize::from(in_tiles) {
        found.push(
            (0..rank).map(|axis| if axis < prefix { single(graph, dims[axis], axis) } else { Axis::Whole }).collect(),
        );
    }
    if rank > 0 && graph.op(v) == Op::Product {
        // Columns and batch as they are, the last axis apart: a product's rows.
        let mut axes: Vec<Axis> = (0..rank)
            .map(|axis| if constant(axis).is_none() { single(graph, dims[axis], axis) } else { Axis::Whole })
            .collect();
        axes[rank - 1] = match constant(rank - 1) {
            None => single(graph, dims[rank - 1], rank - 1),
            Some(n) => match [32, 16, 8, 4].into_iter().find(|&t| n > t && n.is_multiple_of(t)) {
                Some(tile) => tiled(n, tile, rank - 1),
                None => Axis::Whole,
            },
        };
        found.push(axes.clone());
        for (axis, &dim) in dims.iter().enumerate().take(rank - 1) {
            axes[axis] = single(graph, dim, axis);
        }
        found.push(axes);
    }
    found.dedup();
    found
}

fn single(graph: &Graph<'_>, dim: ds4_ir::Dim, axis: usize) -> Axis {
    let extent = Extent::of(graph.dims, dim);
    match extent {
        Extent::Const(1) => Axis::Whole,
        _ => Axis::of([Factor { extent, walk: Walk::Grid { atom: axis as u32, step: 1 } }]),
    }
}

fn tiled(n: u32, tile: u32, axis: usize) -> Axis {
    let grid = Factor { extent: Extent::Const(n / tile), walk: Walk::Grid { atom: axis as u32, step: 1 } };
    Axis::of([grid, Factor { extent: Extent::Const(tile), walk: Walk::Local }])
}

impl Scene<'_> {
    /// What a workgroup does for a value with these axes, all operands read from outside.
    fn value_cost(&self, v: Value, axes: &[Axis]) -> Cost {
        let mut cost = Cost { workgroups: self.workgroups_of(axes), ..Cost::default() };
        let region = ds4_kernels::region::Region { values: &[v], tiles: &[] };
        self.add_value(&mut cost, &region, v, axes);
        cost
    }

    /// Workgroups that these axes need.
    fn workgroups_of(&self, axes: &[Axis]) -> f64 {
        let factors = axes.iter().flat_map(|axis| match axis {
            Axis::Whole => &[][..],
            Axis::Split(factors) => factors,
        });
        factors.filter(|f| f.walk != Walk::Local).map(|f| self.extent(f.extent)).product()
    }
}
