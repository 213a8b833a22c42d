//! Maps, reductions and movements.

use ds4_ir::{Builder, DimOp, ReduceKind, ScalarOp, ScalarType, Tree, Type, Value};

use super::{Case, Random};

/// Words with the values that arithmetic stumbles over.
fn words(count: usize, seed: u64) -> Vec<u32> {
    let special = [0, 0x8000_0000, 1, 0x807f_ffff, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x7f7f_ffff];
    let mut random = Random(seed);
    let mut word = |i: usize| match i % 11 {
        3 => special[random.below(8) as usize],
        _ => (random.float() * 8.0).to_bits(),
    };
    (0..count).map(&mut word).collect()
}

pub(crate) fn floats(b: &mut Builder, name: &str, shape: &[u32]) -> Value {
    let count: u32 = shape.iter().product();
    let seed = name.bytes().fold(88172645463325252, |s: u64, b| s.wrapping_mul(31) + u64::from(b));
    let c = b.add_constant(name, Type::F32, shape, &words(count as usize, seed));
    b.constant(c)
}

pub(crate) fn ints(b: &mut Builder, name: &str, shape: &[u32], bound: u32) -> Value {
    let count: u32 = shape.iter().product();
    let mut random = Random(name.len() as u64 * 77 + 5);
    let list: Vec<u32> = (0..count).map(|_| random.below(bound)).collect();
    let c = b.add_constant(name, Type::I32, shape, &list);
    b.constant(c)
}

/// Ids of which some are masked.
pub(crate) fn masked(b: &mut Builder, ids: Value) -> Value {
    let (p, three) = (b.scalars.param(0, ScalarType::I32), b.scalars.i32(3));
    let (one, zero) = (b.scalars.i32(7), b.scalars.i32(0));
    let low = b.scalars.op(ScalarOp::AndI, &[p, three]).unwrap();
    let keep = b.scalars.op(ScalarOp::EqI, &[low, zero]).unwrap();
    let keep = b.scalars.op(ScalarOp::Not, &[keep]).unwrap();
    let _ = one;
    let id = b.scalars.op(ScalarOp::IdWhere, &[keep, p]).unwrap();
    let body = b.scalars.body(&[ScalarType::I32], id).unwrap();
    b.map(body, &[ids])
}

pub(crate) fn binary(b: &mut Builder, op: ScalarOp, x: Value, y: Value) -> Value {
    let (p, q) = (b.scalars.param(0, ScalarType::F32), b.scalars.param(1, ScalarType::F32));
    let r = b.scalars.op(op, &[p, q]).unwrap();
    let body = b.scalars.body(&[ScalarType::F32; 2], r).unwrap();
    b.map(body, &[x, y])
}

pub(crate) fn unary(b: &mut Builder, op: ScalarOp, x: Value) -> Value {
    let p = b.scalars.param(0, ScalarType::F32);
    let r = b.scalars.op(op, &[p]).unwrap();
    let body = b.scalars.body(&[ScalarType::F32], r).unwrap();
    b.map(body, &[x])
}

#[test]
fn every_scalar_operation() {
    let mut b = Builder::new();
    let shape = [3, 37];
    let (x, y) = (floats(&mut b, "x", &shape), floats(&mut b, "y", &shape));
    let (i, j) = (ints(&mut b, "i", &shape, 1 << 20), ints(&mut b, "jj", &shape, 900));
    for (n, &op) in ScalarOp::ALL.iter().enumerate() {
        let (params, result) = op.signature().unwrap();
        let mut args = Vec::new();
        for (at, ty) in params.iter().enumerate() {
            let constant =
                matches!(op, ScalarOp::DivI | ScalarOp::RemI | ScalarOp::ShlI | ScalarOp::ShrI | ScalarOp::SarI);
            let (f, k) = (at as u32 % 2, 2 + at as u32 % 2);
            args.push(match ty {
                ScalarType::I32 if at == 1 && constant => b.scalars.i32(7),
                ScalarType::I32 => b.scalars.param(k, ScalarType::I32),
                ScalarType::F32 => b.scalars.param(f, ScalarType::F32),
                ScalarType::Bool => {
                    let (p, q) = (b.scalars.param(at as u32 % 2, ScalarType::F32), b.scalars.f32(0.5));
                    b.scalars.op(ScalarOp::LtF, &[p, q]).unwrap()
                }
                ScalarType::Id => {
                    let (p, q) = (b.scalars.param(2, ScalarType::I32), b.scalars.param(3, ScalarType::I32));
                    let c = b.scalars.op(ScalarOp::LtI, &[p, q]).unwrap();
                    b.scalars.op(ScalarOp::IdWhere, &[c, p]).unwrap()
                }
            });
        }
        let mut r = b.scalars.op(op, &args).unwrap();
        if result == ScalarType::Bool {
            let (one, two) = (b.scalars.i32(1), b.scalars.i32(2));
            r = b.scalars.op(ScalarOp::SelectI, &[r, one, two]).unwrap();
        }
        use ScalarType::{F32, I32};
        let body = b.scalars.body(&[F32, F32, I32, I32], r).unwrap();
        let v = b.map(body, &[x, y, i, j]);
        b.tap(&format!("{n}.{}", op.name()), v);
        b.output(&format!("{n}.{}", op.name()), v);
    }
    Case::new(b, 4, 1).check(&[1, 1]);
}

#[test]
fn strides_of_all_kinds() {
    let mut b = Builder::new();
    let n = |b: &mut Builder, n: &[u32]| n.iter().map(|&n| b.n(n)).collect::<Vec<_>>();
    let x = floats(&mut b, "x", &[5, 4, 70]);
    let y = floats(&mut b, "y", &[4, 1]);
    let shape = n(&mut b, &[1, 4, 1]);
    let y = b.reshape(y, &shape);
    let shape = n(&mut b, &[5, 4, 70]);
    let wide = b.broadcast(y, &shape);
    let a = binary(&mut b, ScalarOp::Mul, x, wide);
    let turned = b.permute(a, &[2, 0, 1]);
    let other = floats(&mut b, "other", &[70, 5, 4]);
    let c = binary(&mut b, ScalarOp::Sub, turned, other);
    let small = b.cut(c, 0, 3, 4);
    let e = unary(&mut b, ScalarOp::Exp, small);
    let again = b.permute(e, &[1, 2, 0]);
    let shape = n(&mut b, &[20, 4]);
    let flat = b.reshape(again, &shape);
    let neg = unary(&mut b, ScalarOp::Neg, flat);
    let odd = b.cut(x, 2, 1, 35);
    let even = b.cut(x, 2, 35, 35);
    let (odd, even) = (unary(&mut b, ScalarOp::Sqrt, odd), unary(&mut b, ScalarOp::Abs, even));
    let shape = n(&mut b, &[5, 4, 35, 1]);
    let (odd, even) = (b.reshape(odd, &shape), b.reshape(even, &shape));
    let pairs = b.concat(3, &[odd, even]);
    let front = b.concat(2, &[x, a, x]);
    for (name, v) in [("a", a), ("c", c), ("e", e), ("neg", neg), ("pairs", pairs), ("front", front)] {
        b.tap(name, v);
        b.output(name, v);
    }
    Case::new(b, 4, 1).check(&[1]);
}

#[test]
fn reductions() {
    let mut b = Builder::new();
    for (t, &(n, m)) in [(1, 1), (4, 4), (4, 40), (33, 7), (64, 100), (200, 3), (600, 17), (3, 600)].iter().enumerate()
    {
        let x = floats(&mut b, &format!("x{t}"), &[2, n, m]);
        let ids = ints(&mut b, &format!("ids{t}"), &[2, n, m], 1000);
        let mask = masked(&mut b, ids);
        let rows = ints(&mut b, &format!("rows{t}xx"), &[2, n, 1], 1000);
        let rows = masked(&mut b, rows);
        let shape = b.dims_of(x);
        let rows = b.broadcast(rows, &shape);
        for axis in 0..3 {
            let leaves = [2, n, m][axis as usize];
            let trees = [Tree::for_leaves(leaves), Tree::Seq, Tree::Lanes(8), Tree::Lanes(32)];
            for (k, tree) in trees.into_iter().enumerate() {
                for (j, mask) in [None, Some(mask), Some(rows)].into_iter().enumerate() {
                    let v = b.reduce(ReduceKind::Sum, tree, axis, x, mask);
                    let name = format!("sum.{t}.{axis}.{k}.{j}");
                    b.tap(&name, v);
                    b.output(&name, v);
                }
            }
            for (j, mask) in [None, Some(mask), Some(rows)].into_iter().enumerate() {
                for (what, x) in [("f", x), ("i", ids)] {
                    let kinds = [ReduceKind::Max, ReduceKind::Sum];
                    for kind in kinds.into_iter().filter(|&k| what == "i" || k == ReduceKind::Max) {
                        let v = b.reduce(kind, Tree::Free, axis, x, mask);
                        let name = format!("{}.{what}.{t}.{axis}.{j}", kind.name());
                        b.tap(&name, v);
                        b.output(&name, v);
                    }
                }
            }
        }
    }
    Case::new(b, 4, 1).check(&[1]);
}

#[test]
fn columns_that_change_and_vanish() {
    let mut b = Builder::new();
    let columns = b.columns();
    let completed = b.dims.dim(DimOp::Completed(4));
    let outputs = b.dims.dim(DimOp::Outputs);
    let tokens = b.tokens();
    let k = b.n(6);
    let i = b.iota(&[columns, k], 1);
    let t = b.iota(&[completed, k], 0);
    let (p, q) = (b.scalars.param(0, ScalarType::I32), b.scalars.param(1, ScalarType::I32));
    let float = b.scalars.op(ScalarOp::FloatOf, &[p]).unwrap();
    let float_body = b.scalars.body(&[ScalarType::I32], float).unwrap();
    let sum = b.scalars.op(ScalarOp::AddI, &[p, q]).unwrap();
    let sum_body = b.scalars.body(&[ScalarType::I32; 2], sum).unwrap();
    let one = b.n(1);
    let wide = b.reshape(tokens, &[columns, one]);
    let wide = b.broadcast(wide, &[columns, k]);
    let x = b.map(sum_body, &[i, wide]);
    let x = b.map(float_body, &[x]);
    let y = b.map(float_body, &[t]);
    let both = b.concat(0, &[y, x]);
    let back = b.dims.dim(DimOp::Sub(columns, outputs));
    let last = b.slice(x, 0, back, outputs);
    let last = unary(&mut b, ScalarOp::Neg, last);
    let extent = b.extent(columns);
    let summed = b.reduce(ReduceKind::Sum, Tree::Seq, 0, y, None);
    let most = b.reduce(ReduceKind::Max, Tree::Free, 0, y, None);
    let pooled = b.concat(1, &[x, x]);
    for (name, v) in [
        ("tokens", tokens),
        ("x", x),
        ("y", y),
        ("both", both),
        ("last", last),
        ("extent", extent),
        ("summed", summed),
        ("most", most),
        ("pooled", pooled),
    ] {
        b.tap(name, v);
        b.output(name, v);
    }
    Case::new(b, 64, 8).check(&[1, 2, 3, 5, 8, 1]);
}
