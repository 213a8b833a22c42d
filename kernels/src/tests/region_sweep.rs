//! Whole models cut into regions at random: every stored value and every state has the evaluator's bits.

use ds4_ir::graph::{Graph, GraphTables};
use ds4_ir::{Bounds, Format, Op, Step, Value};

use crate::region::{self, Limits, Region, with_views, work_dims};

use super::bench::{Bench, Checkpoint, Fused, Random};

/// Weights of a graph at random; integers are below `rows`.
fn checkpoint(graph: &Graph<'_>, random: &mut Random) -> Checkpoint {
    let mut checkpoint = Checkpoint::default();
    for row in graph.weights {
        let extents = graph.max_extents(row.shape, Bounds { context: 64, columns: 8, outputs: 8 });
        let format = row.ty.format().unwrap();
        let (len, rows) = extents.split_last().unwrap();
        let (inner, outer) = rows.split_last().map_or((1, 1), |(&inner, outer)| (inner, outer.iter().product()));
        match format {
            Format::I32 => {
                let ids = (0..outer * inner * len).flat_map(|i| (i as u32 % 3).to_le_bytes()).collect();
                checkpoint.add(format, [outer, inner, *len], ids, Vec::new(), Default::default());
            }
            Format::F32 => {
                let values = random.tame(outer * inner * len);
                let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                checkpoint.add(format, [outer, inner, *len], data, Vec::new(), Default::default());
            }
            _ => checkpoint.random(format, [outer, inner, *len], random),
        }
    }
    checkpoint
}

/// Tiles that may split a value: none, its first axes position by position, parts of its last axis.
fn splits(graph: &Graph<'_>, v: Value) -> Vec<Vec<u32>> {
    let dims = work_dims(graph, v);
    let mut all = vec![vec![0; dims.len()]];
    for lead in 1..=dims.len().min(3) {
        let mut tiles = vec![0; dims.len()];
        tiles[..lead].fill(1);
        all.push(tiles.clone());
        if lead < dims.len() {
            for tile in [8, 32, 64] {
                tiles[dims.len() - 1] = tile;
                all.push(tiles.clone());
            }
        }
    }
    all
}

/// Whether a region may not write what it reads.
fn meets_state(graph: &Graph<'_>, values: &[Value]) -> bool {
    let root = |mut v: Value| loop {
        match graph.op(v) {
            Op::Gather => v = graph.args(v)[0],
            op if op.is_view() => v = graph.args(v)[0],
            _ => return graph.state_of(v),
        }
    };
    let written: Vec<_> = values.iter().filter(|&&v| graph.op(v) == Op::Write).map(|&v| graph.state_of(v)).collect();
    values.iter().any(|&v| {
        let args = graph.args(v);
        let read = if graph.op(v) == Op::Write { &args[1..] } else { args };
        read.iter().any(|&a| root(a).is_some() && written.contains(&root(a)))
    })
}

/// The values of a region with the gathers that they read, and the views between.
fn closed(graph: &Graph<'_>, values: &[Value]) -> Vec<Value> {
    let mut all = values.to_vec();
    let mut pending: Vec<Value> = values.iter().flat_map(|&v| graph.args(v).to_vec()).collect();
    while let Some(v) = pending.pop() {
        match graph.op(v) {
            Op::Gather if !all.contains(&v) => {
                all.push(v);
                pending.extend(graph.args(v));
            }
            op if op.is_view() => pending.extend(graph.args(v)),
            _ => {}
        }
    }
    all.sort();
    with_views(graph, &all)
}

struct Cut<'g> {
    graph: Graph<'g>,
    limits: Limits,
    bounds: Bounds,
}

impl Cut<'_> {
    /// The first split, in a random order, with which values are a region.
    fn fits(&self, values: &[Value], random: &mut Random) -> Option<Vec<u32>> {
        let closed = closed(&self.graph, values);
        if meets_state(&self.graph, &closed) {
            return None;
        }
        let mut splits = splits(&self.graph, *values.last().unwrap());
        for i in (1..splits.len()).rev() {
            splits.swap(i, random.next() as usize % (i + 1));
        }
        splits.into_iter().find(|tiles| {
            let region = Region { values: &closed, tiles };
            let anchor = values.last();
            let stored: [&dyn Fn(Value) -> bool; 2] = [&|_| true, &|v| Some(&v) == anchor];
            stored.iter().all(|stored| region::plan(&self.graph, self.bounds, &region, stored, self.limits).is_ok())
        })
    }

    /// All values in regions of at most `most`.
    fn regions(&self, random: &mut Random, most: usize) -> Vec<(Vec<Value>, Vec<u32>)> {
        let mut found: Vec<(Vec<Value>, Vec<u32>)> = Vec::new();
        let mut open: Option<(Vec<Value>, Vec<u32>)> = None;
        for v in self.graph.values() {
            let op = self.graph.op(v);
            let free = matches!(op, Op::Weight | Op::Const | Op::Read) || op.is_view();
            if free || op == Op::Gather {
                continue;
            }
            let grown = open.as_ref().filter(|(values, _)| values.len() < most).and_then(|(values, _)| {
                let grown = [&values[..], &[v]].concat();
                let tiles = self.fits(&grown, random)?;
                Some((grown, tiles))
            });
            open = match grown {
                Some(grown) => Some(grown),
                None => {
                    found.extend(open.take());
                    let tiles = self.fits(&[v], random).unwrap_or_else(|| panic!("{v} alone"));
                    Some((vec![v], tiles))
                }
            };
        }
        found.extend(open);
        found
    }
}

/// The values of a graph's regions that somebody else reads.
fn stored(graph: &Graph<'_>, regions: &[(Vec<Value>, Vec<u32>)]) -> Vec<Vec<Value>> {
    let mut home = vec![usize::MAX; graph.len()];
    for (r, (values, _)) in regions.iter().enumerate() {
        values.iter().for_each(|v| home[v.0 as usize] = r);
    }
    let mut read = vec![false; graph.len()];
    let mut note = |at: Value, by: usize| {
        let mut pending = vec![at];
        while let Some(at) = pending.pop() {
            match graph.op(at) {
                Op::Gather => pending.extend(graph.args(at)),
                op if op.is_view() => pending.extend(graph.args(at)),
                _ => read[at.0 as usize] |= home[at.0 as usize] != by,
            }
        }
    };
    for v in graph.values().filter(|&v| !graph.op(v).is_view() && graph.op(v) != Op::Gather) {
        graph.args(v).iter().for_each(|&a| note(a, home[v.0 as usize]));
    }
    graph.outputs.iter().chain(graph.named).for_each(|row| note(row.value, usize::MAX - 1));
    let kept = |v: &Value| read[v.0 as usize] && graph.op(*v) != Op::Write;
    regions.iter().map(|(values, _)| values.iter().copied().filter(kept).collect()).collect()
}

/// Cuts a graph and runs it.
pub(crate) fn sweep(tables: &GraphTables, seed: u64, most: usize, lanes: u32, steps: &[Step]) -> usize {
    let graph = tables.view();
    let mut random = Random(seed);
    let checkpoint = checkpoint(&graph, &mut random);
    let limits = Limits { workgroup_bytes: 16 << 10, lanes, iterations: u32::MAX };
    let cut = Cut { graph, limits, bounds: Bounds { context: 64, columns: 8, outputs: 8 } };
    let regions = cut.regions(&mut random, most);
    let stored = stored(&graph, &regions);
    let fused = regions.into_iter().zip(stored).map(|((values, tiles), stored)| Fused {
        values: closed(&graph, &values),
        tiles,
        stored,
        limits,
    });
    let fused: Vec<Fused> = fused.collect();
    let count = fused.len();
    Bench::fused(tables, &checkpoint, fused).check_ir(steps);
    count
}

#[test]
fn sample_graphs_cut_at_random_keep_their_bits() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ir/tests/files");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "ds4ir"));
    names.sort();
    let mut cuts = 0;
    for path in names {
        // Samples of errors are no graphs.
        let text = std::fs::read_to_string(&path).unwrap();
        let input = text.split("; ----\n").next().unwrap();
        let Ok(tables) = ds4_ir::text::parse(input, "sample") else { continue };
        if ds4_ir::verify::verify(&tables.view()).is_err() {
            continue;
        }
        for (seed, most, lanes) in [(1, 4, 128), (2, 12, 256), (3, 60, 128)] {
            let steps = [1, 3].map(|columns| Step { position: 5, columns, outputs: columns });
            cuts += sweep(&tables, seed, most, lanes, &steps);
        }
    }
    assert!(cuts > 30, "{cuts} regions");
}
