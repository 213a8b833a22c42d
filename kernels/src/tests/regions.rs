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
            let fused = Fused::range(gate, q, &tiles, &stored);
            Bench::fused(&tables, &checkpoint, vec![fused]).check(&COLUMNS);
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
