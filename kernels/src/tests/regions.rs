//! Regions: one kernel of many values, every stored one compared with the evaluator's, bit by bit.

use ds4_ir::{Builder, Format, ReduceKind, ScalarOp, Tree, Type, Value};

use super::bench::{Bench, COLUMNS, Checkpoint, Fused, Random, Small};

/// `div(1, sqrt(add(div(x, n), eps)))`
pub(crate) fn inverse_root(b: &mut Builder, x: Value, n: f32) -> Value {
    let p = b.scalars.param(0, ds4_ir::ScalarType::F32);
    let [n, eps, one] = [n, 1e-6, 1.0].map(|c| b.scalars.f32(c));
    let mean = b.scalars.op(ScalarOp::Div, &[p, n]).unwrap();
    let sum = b.scalars.op(ScalarOp::Add, &[mean, eps]).unwrap();
    let root = b.scalars.op(ScalarOp::Sqrt, &[sum]).unwrap();
    let result = b.scalars.op(ScalarOp::Div, &[one, root]).unwrap();
    let body = b.scalars.body(&[ds4_ir::ScalarType::F32], result).unwrap();
    b.map(body, &[x])
}

/// `x` scaled to unit mean square along its last axis.
pub(crate) fn normed(b: &mut Builder, x: Value, n: u32) -> Value {
    let shape = b.dims_of(x);
    let mut beside = shape.clone();
    beside.insert(shape.len() - 1, b.n(1));
    let row = b.reshape(x, &beside);
    let squares = b.product(Tree::for_leaves(n), x, row, None);
    let r = inverse_root(b, squares, n as f32);
    let r = b.broadcast(r, &shape);
    b.apply(ScalarOp::Mul, &[x, r])
}

#[test]
fn a_norm_and_its_quantisation_are_one_kernel() {
    for (n, lanes) in [(32, 64), (96, 64), (544, 128), (1024, 256)] {
        let mut random = Random(400 + u64::from(n));
        let mut b = Builder::new();
        let w = b.add_weight("w", Type::weight(Format::F32), &[n]);
        let w = b.weight(w);
        let x = b.floats(&[8, n], &random.tame(8 * n as usize));
        let x = b.per_column(x);
        let y = b.apply(ScalarOp::Mul, &[x, x]);
        let scaled = normed(&mut b, y, n);
        let wide = b.widen(w);
        let one = b.n(1);
        let len = b.n(n);
        let wide = b.reshape(wide, &[one, len]);
        let shape = b.dims_of(x);
        let wide = b.broadcast(wide, &shape);
        let z = b.apply(ScalarOp::Mul, &[scaled, wide]);
        let q = b.quantise(z);
        let mut checkpoint = Checkpoint::default();
        checkpoint.random(Format::F32, [1, 1, n as usize], &mut random);
        let tables = b.finish();
        for tiles in [[1, 0], [0, 0]] {
            let fused = Fused::range(y, q, &tiles, &[z, q]).lanes(lanes);
            if tiles[0] == 0 && n > 500 {
                continue;
            }
            Bench::fused(&tables, &checkpoint, vec![fused]).check(&COLUMNS);
        }
    }
}

#[test]
fn reductions_of_every_kind_follow_each_other() {
    let mut random = Random(410);
    let mut b = Builder::new();
    let n = 40;
    let x = b.floats(&[8, 3, n], &random.adversarial(24 * n as usize));
    let x = b.per_column(x);
    let ids: Vec<i32> = (0..24 * n as i32).map(|j| if j % 3 == 1 { -1 } else { j }).collect();
    let mask = b.ids(&[8, 3, n], &ids);
    let mask = b.per_column(mask);
    let y = b.apply(ScalarOp::Neg, &[x]);
    let mut stored = Vec::new();
    for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(16), Tree::Lanes(8)] {
        stored.push(b.reduce(ReduceKind::Sum, tree, 2, y, None));
        stored.push(b.reduce(ReduceKind::Sum, tree, 2, y, Some(mask)));
        stored.push(b.reduce(ReduceKind::Sum, tree, 1, y, Some(mask)));
    }
    let max = b.reduce(ReduceKind::Max, Tree::Free, 2, y, Some(mask));
    let all = b.reduce(ReduceKind::Max, Tree::Free, 1, max, None);
    stored.extend([max, all]);
    let last = b.apply(ScalarOp::Exp, &[all]);
    stored.push(last);
    let tables = b.finish();
    for lanes in [64, 128, 256] {
        for tiles in [[1], [0]] {
            let fused = Fused::range(y, last, &tiles, &stored).lanes(lanes);
            Bench::fused(&tables, &Checkpoint::default(), vec![fused]).check(&[1, 3, 8]);
        }
    }
}

/// `silu(min(gate, limit)) * clamp(up)`, as one body.
fn gated(b: &mut Builder, gate: Value, up: Value) -> Value {
    let ty = ds4_ir::ScalarType::F32;
    let [g, u] = [0, 1].map(|i| b.scalars.param(i, ty));
    let (limit, lower, one) = (b.scalars.f32(0.75), b.scalars.f32(-0.75), b.scalars.f32(1.0));
    let g = b.scalars.op(ScalarOp::Min, &[g, limit]).unwrap();
    let negative = b.scalars.op(ScalarOp::Neg, &[g]).unwrap();
    let e = b.scalars.op(ScalarOp::Exp, &[negative]).unwrap();
    let sum = b.scalars.op(ScalarOp::Add, &[one, e]).unwrap();
    let s = b.scalars.op(ScalarOp::Div, &[g, sum]).unwrap();
    let u = b.scalars.op(ScalarOp::Min, &[u, limit]).unwrap();
    let u = b.scalars.op(ScalarOp::Max, &[u, lower]).unwrap();
    let y = b.scalars.op(ScalarOp::Mul, &[s, u]).unwrap();
    let body = b.scalars.body(&[ty, ty], y).unwrap();
    b.map(body, &[gate, up])
}

#[test]
fn a_gated_pair_and_its_quantisation_are_one_kernel() {
    for (formats, k) in [
        ([Format::Q8_0, Format::Q8_0], 256),
        ([Format::Q4_K, Format::MXFP4], 256),
        ([Format::IQ2_XXS, Format::Q2_K], 1280),
        ([Format::Fp4, Format::Q8_0], 64),
    ] {
        let mut random = Random(420 + k);
        let (n, k) = (64, k as u32);
        let mut b = Builder::new();
        let w: Vec<Value> = (0..2)
            .map(|i| {
                let w = b.add_weight(["gate", "up"][i], Type::weight(formats[i]), &[n, k]);
                b.weight(w)
            })
            .collect();
        let x = b.floats(&[8, k], &random.tame(8 * k as usize));
        let x = b.per_column(x);
        let x = b.quantise(x);
        let gate = b.product(Tree::BLOCKS, x, w[0], None);
        let up = b.product(Tree::BLOCKS, x, w[1], None);
        let y = gated(&mut b, gate, up);
        let q = b.quantise(y);
        let mut checkpoint = Checkpoint::default();
        formats.iter().for_each(|&f| checkpoint.random(f, [1, n as usize, k as usize], &mut random));
        let tables = b.finish();
        for (tiles, stored) in [([1, 32], vec![q]), ([0, 32], vec![q]), ([0, 0], vec![gate, y, q]), ([1, 0], vec![q])] {
            let columns: &[u32] = if tiles == [0, 32] { &COLUMNS } else { &[2] };
            let fused = Fused::range(gate, q, &tiles, &stored);
            Bench::fused(&tables, &checkpoint, vec![fused]).check(columns);
        }
    }
}

#[test]
fn routed_experts_are_one_kernel() {
    let mut random = Random(430);
    let (experts, routes, n, k) = (5, 3, 64, 96);
    let mut b = Builder::new();
    let w: Vec<Value> = ["gate", "up"]
        .map(|name| {
            let w = b.add_weight(name, Type::weight(Format::Q8_0), &[experts, n, k]);
            b.weight(w)
        })
        .to_vec();
    let ids: Vec<i32> = (0..8 * routes).map(|i| if i % 4 == 2 { -1 } else { (i * 7 % experts) as i32 }).collect();
    let ids = b.ids(&[8, routes], &ids);
    let ids = b.per_column(ids);
    let x = b.floats(&[8, k], &random.tame(8 * k as usize));
    let x = b.per_column(x);
    let x = b.quantise(x);
    let (columns, one, route_dim, k_dim) = (b.columns(), b.n(1), b.n(routes), b.n(k));
    let beside = b.reshape(x, &[columns, one, k_dim]);
    let all = b.broadcast(beside, &[columns, route_dim, k_dim]);
    let rows: Vec<Value> = w.iter().map(|&w| b.gather(0, 0, w, ids)).collect();
    let gate = b.product(Tree::BLOCKS, all, rows[0], None);
    let up = b.product(Tree::BLOCKS, all, rows[1], None);
    let y = gated(&mut b, gate, up);
    let n_dim = b.n(n);
    let mask = b.reshape(ids, &[columns, route_dim, one]);
    let mask = b.broadcast(mask, &[columns, route_dim, n_dim]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Seq, 1, y, Some(mask));
    let mut checkpoint = Checkpoint::default();
    (0..2).for_each(|_| checkpoint.random(Format::Q8_0, [experts as usize, n as usize, k as usize], &mut random));
    let tables = b.finish();
    for tiles in [[1, 32], [0, 32], [1, 0], [1, 1]] {
        let fused = Fused::range(beside, sum, &tiles, &[sum]);
        Bench::fused(&tables, &checkpoint, vec![fused]).check(&COLUMNS);
    }
}

/// A masked id of each element where `holds` says so.
fn some_ids(b: &mut Builder, extents: &[u32], holds: impl Fn(u32) -> Option<u32>) -> Value {
    let count: u32 = extents.iter().product();
    let ids: Vec<i32> = (0..count).map(|i| holds(i).map_or(-1, |id| id as i32)).collect();
    let ids = b.ids(extents, &ids);
    b.per_column(ids)
}

/// `x` divided by its sums along an axis of `[columns, s, s]`, each plus a little.
fn balanced(b: &mut Builder, x: Value, axis: u32) -> Value {
    let shape = b.dims_of(x);
    let sums = b.reduce(ReduceKind::Sum, Tree::Seq, axis, x, None);
    let mut beside = shape.clone();
    beside[axis as usize] = b.n(1);
    let sums = b.reshape(sums, &beside);
    let sums = b.broadcast(sums, &shape);
    let ty = ds4_ir::ScalarType::F32;
    let (p, q, eps) = (b.scalars.param(0, ty), b.scalars.param(1, ty), b.scalars.f32(1e-6));
    let sum = b.scalars.op(ScalarOp::Add, &[q, eps]).unwrap();
    let result = b.scalars.op(ScalarOp::Div, &[p, sum]).unwrap();
    let body = b.scalars.body(&[ty, ty], result).unwrap();
    b.map(body, &[x, sums])
}

/// The boundary between two blocks of a model with `streams` streams: the streams mixed, the statistic and the mix of the new
/// state, its matrix balanced, the streams collapsed, normed and quantised.
fn boundary(streams: u32, n: u32, turns: u32, limits: crate::region::Limits, columns: &[u32]) {
    let mut random = Random(440 + u64::from(streams));
    let mut b = Builder::new();
    let mixes = streams * streams + streams;
    let w = b.add_weight("mix", Type::weight(Format::F16), &[mixes, streams * n]);
    let w = b.weight(w);
    let state = b.floats(&[8, streams, n], &random.tame(8 * (streams * n) as usize));
    let delta = b.floats(&[8, 1, n], &random.tame(8 * n as usize));
    let (state, delta) = (b.per_column(state), b.per_column(delta));
    let shape = b.dims_of(state);
    let wide = b.broadcast(delta, &shape);
    let post = b.apply(ScalarOp::Add, &[state, wide]);
    let (c, one, flat) = (shape[0], b.n(1), b.n(streams * n));
    let row = b.reshape(post, &[c, flat]);
    let beside = b.reshape(row, &[c, one, flat]);
    let squares = b.product(Tree::for_leaves(streams * n), row, beside, None);
    let r = inverse_root(&mut b, squares, (streams * n) as f32);
    let mix = b.product(Tree::for_leaves(streams * n), row, w, None);
    let mix_shape = b.dims_of(mix);
    let r = b.broadcast(r, &mix_shape);
    let mix = b.apply(ScalarOp::Mul, &[mix, r]);
    let pre = b.cut(mix, 1, 0, streams);
    let pre = b.apply(ScalarOp::Exp, &[pre]);
    let matrix = b.cut(mix, 1, streams, streams * streams);
    let s = b.n(streams);
    let matrix = b.reshape(matrix, &[c, s, s]);
    let mut matrix = b.apply(ScalarOp::Exp, &[matrix]);
    for turn in 0..turns {
        matrix = balanced(&mut b, matrix, 2 - turn % 2);
    }
    let n_dim = b.n(n);
    let mut collapsed: Option<Value> = None;
    for stream in 0..streams {
        let weight = b.cut(pre, 1, stream, 1);
        let weight = b.broadcast(weight, &[c, n_dim]);
        let part = b.cut(post, 1, stream, 1);
        let part = b.reshape(part, &[c, n_dim]);
        let term = b.apply(ScalarOp::Mul, &[weight, part]);
        collapsed = Some(collapsed.map_or(term, |sum| b.apply(ScalarOp::Add, &[sum, term])));
    }
    let y = normed(&mut b, collapsed.unwrap(), n);
    let q = b.quantise(y);
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(Format::F16, [1, mixes as usize, (streams * n) as usize], &mut random);
    let tables = b.finish();
    let mut fused = Fused::range(post, q, &[1, 0], &[post, matrix, q]);
    fused.limits = limits;
    Bench::fused(&tables, &checkpoint, vec![fused]).check(columns);
}

#[test]
fn a_boundary_between_blocks_is_one_kernel() {
    let limits = |workgroup_bytes, lanes| crate::region::Limits { workgroup_bytes, lanes, iterations: u32::MAX };
    boundary(2, 96, 5, limits(16 << 10, 128), &[1, 3]);
    boundary(3, 64, 4, limits(16 << 10, 256), &[2, 8]);
    boundary(4, 128, 20, limits(16 << 10, 128), &[1, 5]);
    // The new state does not fit and is read back from its slot.
    boundary(4, 256, 4, limits(4 << 10, 128), &[1, 2]);
}

#[test]
fn a_head_of_attention_is_one_kernel() {
    let mut random = Random(450);
    let (heads, blocks, rows, n) = (3, 2, 8, 48);
    let mut b = Builder::new();
    let state = b.add_state("ring", Type::F32, &[20, n]);
    let ring = b.read(state);
    let table = b.floats(&[20, n], &random.tame(20 * n as usize));
    let mixed = b.apply(ScalarOp::Add, &[ring, table]);
    let q = b.floats(&[8, heads, n], &random.tame((8 * heads * n) as usize));
    let angles = b.floats(&[8, 1, 8, 1], &random.tame(64));
    let sinks = b.floats(&[1, heads], &random.tame(heads as usize));
    let (q, angles) = (b.per_column(q), b.per_column(angles));
    let ids = some_ids(&mut b, &[8, blocks, rows], |i| (i % 5 != 3 && i % 16 < 13).then_some(i * 7 % 20));
    let c = b.columns();
    let [h, k, r, d, one, eight, two] = [heads, blocks, rows, n, 1, 8, 2].map(|n| b.n(n));
    // Rope on the last 16 elements.
    let cos = b.broadcast(angles, &[c, h, eight, one]);
    let first = b.apply(ScalarOp::Cos, &[cos]);
    let plain = b.cut(q, 2, 0, n - 16);
    let turned = b.cut(q, 2, n - 16, 16);
    let pairs = b.reshape(turned, &[c, h, eight, two]);
    let (x0, x1) = (b.cut(pairs, 3, 0, 1), b.cut(pairs, 3, 1, 1));
    let (y0, y1) = (b.apply(ScalarOp::Mul, &[x0, first]), b.apply(ScalarOp::Mul, &[x1, first]));
    let (z0, z1) = (b.apply(ScalarOp::Sub, &[y0, x1]), b.apply(ScalarOp::Add, &[y1, x0]));
    let turned = b.concat(3, &[z0, z1]);
    let sixteen = b.n(16);
    let turned = b.reshape(turned, &[c, h, sixteen]);
    let query = b.concat(2, &[plain, turned]);
    // Scores in blocks, their maxima and sums.
    let window = b.gather(0, 0, mixed, ids);
    let all = b.n(blocks * rows);
    let flat = b.reshape(window, &[c, all, d]);
    let scores = b.product(Tree::Lanes(32), query, flat, None);
    let scores = b.reshape(scores, &[c, h, k, r]);
    let mask = b.reshape(ids, &[c, one, k, r]);
    let mask = b.broadcast(mask, &[c, h, k, r]);
    let max = b.reduce(ReduceKind::Max, Tree::Free, 3, scores, Some(mask));
    let beside = b.reshape(max, &[c, h, k, one]);
    let beside = b.broadcast(beside, &[c, h, k, r]);
    let e = b.apply(ScalarOp::Sub, &[scores, beside]);
    let e = b.apply(ScalarOp::Exp, &[e]);
    let sums = b.reduce(ReduceKind::Sum, Tree::Seq, 3, e, Some(mask));
    let by_block = b.permute(e, &[0, 2, 1, 3]);
    let columns_of_rows = b.permute(window, &[0, 1, 3, 2]);
    let parts = b.product(Tree::Seq, by_block, columns_of_rows, Some(ids));
    // Merged over the blocks, with a sink.
    let sinks = b.broadcast(sinks, &[c, h]);
    let block_max = b.reduce(ReduceKind::Max, Tree::Free, 2, max, None);
    let most = b.apply(ScalarOp::Max, &[block_max, sinks]);
    let most = b.reshape(most, &[c, h, one]);
    let scale = b.broadcast(most, &[c, h, k]);
    let scale = b.apply(ScalarOp::Sub, &[max, scale]);
    let scale = b.apply(ScalarOp::Exp, &[scale]);
    let sums = b.reshape(sums, &[c, h, one, k]);
    let total_of_head = b.product(Tree::Seq, scale, sums, None);
    let by_head = b.permute(parts, &[0, 2, 3, 1]);
    let acc = b.product(Tree::Seq, scale, by_head, None);
    let total = b.broadcast(total_of_head, &[c, h, d]);
    let out = b.apply(ScalarOp::Div, &[acc, total]);
    let flat = b.n(heads * n / 2);
    let out = b.reshape(out, &[c, two, flat]);
    let last = match (heads * n / 2) % 32 {
        0 => b.quantise(out),
        _ => b.apply(ScalarOp::Neg, &[out]),
    };
    let tables = b.finish();
    for (tiles, lanes) in [([1, 0, 0], 128), ([0, 0, 0], 64)] {
        let fused = Fused::range(cos, last, &tiles, &[last]).lanes(lanes);
        Bench::fused(&tables, &Checkpoint::default(), vec![fused]).check(&[1, 3]);
    }
    // Head by head, as far as the value whose axis the heads are.
    let heads = Fused::range(cos, acc, &[1, 1, 0], &[total_of_head, acc]);
    let rest = Fused::range(Value(acc.0 + 1), last, &[1, 0, 0], &[last]);
    Bench::fused(&tables, &Checkpoint::default(), vec![heads, rest]).check(&[2]);
}

#[test]
fn a_router_is_one_kernel() {
    let mut random = Random(460);
    let (experts, k) = (24, 4);
    let mut b = Builder::new();
    let x = b.floats(&[8, experts], &random.tame(8 * experts as usize));
    let x = b.per_column(x);
    let candidates = some_ids(&mut b, &[8, experts], |i| (i % 24 > 2 || i < 24).then_some(i % 24));
    let scores = b.apply(ScalarOp::Exp, &[x]);
    let chosen = b.top_k(k, scores, None);
    let among = b.top_k(k, x, Some(candidates));
    let picked = b.gather(1, 1, scores, chosen);
    let sum = b.reduce(ReduceKind::Sum, Tree::Seq, 1, picked, Some(chosen));
    let c = b.columns();
    let [k_dim, one] = [k, 1].map(|n| b.n(n));
    let sum = b.reshape(sum, &[c, one]);
    let sum = b.broadcast(sum, &[c, k_dim]);
    let weights = b.apply(ScalarOp::Div, &[picked, sum]);
    let sorted = b.sort_ids(among);
    let best = b.arg_max(scores);
    let best = b.reshape(best, &[c, one]);
    let best = b.broadcast(best, &[c, k_dim]);
    let last = b.apply(ScalarOp::AddI, &[best, best]);
    let tables = b.finish();
    for (tiles, lanes) in [([1, 0], 64), ([0, 0], 128), ([1, 0], 256)] {
        let fused = Fused::range(scores, last, &tiles, &[chosen, among, weights, sorted, last]).lanes(lanes);
        Bench::fused(&tables, &Checkpoint::default(), vec![fused]).check(&[1, 3]);
    }
}

#[test]
fn completed_blocks_are_pooled_and_written_in_one_kernel() {
    let mut random = Random(470);
    let n = 32;
    let mut b = Builder::new();
    let pooled = b.add_state("pooled", Type::F32, &[16, n]);
    let pooled = b.read(pooled);
    let ring = b.floats(&[24, n], &random.adversarial(24 * n as usize));
    let scores = b.floats(&[24, n], &random.tame(24 * n as usize));
    let blocks = b.dims.dim(ds4_ir::DimOp::Completed(4));
    let zero = b.n(0);
    let ids = b.ids(&[8, 8], &(0..64).map(|i| if i % 7 == 5 { -1 } else { i % 24 }).collect::<Vec<_>>());
    let ids = b.slice(ids, 0, zero, blocks);
    let places = b.ints(&[8], &[3, 1, 4, 0, 5, 9, 2, 6]);
    let places = b.slice(places, 0, zero, blocks);
    let [one, eight, n_dim] = [1, 8, n].map(|n| b.n(n));
    let u = b.gather(0, 0, ring, ids);
    let s = b.gather(0, 0, scores, ids);
    let mask = b.reshape(ids, &[blocks, eight, one]);
    let mask = b.broadcast(mask, &[blocks, eight, n_dim]);
    let max = b.reduce(ReduceKind::Max, Tree::Free, 1, s, Some(mask));
    let beside = b.reshape(max, &[blocks, one, n_dim]);
    let beside = b.broadcast(beside, &[blocks, eight, n_dim]);
    let e = b.apply(ScalarOp::Sub, &[s, beside]);
    let e = b.apply(ScalarOp::Exp, &[e]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, e, Some(mask));
    let beside = b.reshape(sum, &[blocks, one, n_dim]);
    let beside = b.broadcast(beside, &[blocks, eight, n_dim]);
    let p = b.apply(ScalarOp::Div, &[e, beside]);
    let p = b.apply(ScalarOp::Mul, &[p, u]);
    let row = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, p, Some(mask));
    let row = normed(&mut b, row, n);
    let write = b.write(pooled, places, row);
    let tables = b.finish();
    for tiles in [[1, 0], [0, 0]] {
        let fused = Fused::range(u, write, &tiles, &[]);
        Bench::fused(&tables, &Checkpoint::default(), vec![fused]).check(&[1, 2, 3, 7, 8]);
    }
}

#[test]
fn operands_that_lie_inside_a_concat_are_not_copied() {
    let mut random = Random(480);
    let mut b = Builder::new();
    let [x, z] = [24, 8].map(|n| b.floats(&[8, n], &random.tame(8 * n as usize)));
    let (x, z) = (b.per_column(x), b.per_column(z));
    let first = b.apply(ScalarOp::Exp, &[x]);
    let second = b.apply(ScalarOp::Neg, &[z]);
    let all = b.concat(1, &[first, second]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, all, None);
    let tables = b.finish();
    for stored in [vec![first, all, sum], vec![first, second, all]] {
        let within: Vec<(Value, Value)> = stored.iter().filter(|&&v| v < all).map(|&v| (v, all)).collect();
        let fused = Fused::range(first, sum, &[1], &stored);
        let bench = Bench::fused_within(&tables, &Checkpoint::default(), vec![fused], &within);
        bench.check(&[1, 3, 8]);
    }
}
