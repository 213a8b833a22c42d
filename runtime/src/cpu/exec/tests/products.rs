//! Products of all forms.

use ds4_ir::{Builder, Format, ScalarOp, Tree, Type, Value};

use super::Case;
use super::maps::{binary, floats, ints, masked, unary};

const FORMATS: [Format; 10] = [
    Format::F32,
    Format::F16,
    Format::BF16,
    Format::Q8_0,
    Format::Q2_K,
    Format::Q4_K,
    Format::IQ2_XXS,
    Format::MXFP4,
    Format::Fp8,
    Format::Fp4,
];

/// Finite columns `[columns, k]` that depend on the tokens.
fn columns(b: &mut Builder, k: u32) -> Value {
    let (columns, one, k_dim) = (b.columns(), b.n(1), b.n(k));
    let tokens = b.tokens();
    let p = b.scalars.param(0, ds4_ir::ScalarType::I32);
    let float = b.scalars.op(ScalarOp::FloatOf, &[p]).unwrap();
    let body = b.scalars.body(&[ds4_ir::ScalarType::I32], float).unwrap();
    let t = b.map(body, &[tokens]);
    let t = b.reshape(t, &[columns, one]);
    let t = b.broadcast(t, &[columns, k_dim]);
    let i = b.iota(&[columns, k_dim], 1);
    let i = b.map(body, &[i]);
    let sum = binary(b, ScalarOp::Add, t, i);
    unary(b, ScalarOp::Sin, sum)
}

fn keep(b: &mut Builder, name: &str, v: Value) {
    b.tap(name, v);
    b.output(name, v);
}

#[test]
fn matrices_of_every_format() {
    let mut b = Builder::new();
    let x = columns(&mut b, 256);
    let q = b.quantise(x);
    for format in FORMATS {
        let w = b.add_weight(format.name(), Type::weight(format), &[70, 256]);
        let w = b.weight(w);
        for tree in [Tree::Lanes(32), Tree::Lanes(128), Tree::Seq, Tree::Lanes(8)] {
            let v = b.product(tree, x, w, None);
            keep(&mut b, &format!("{}.{tree:?}", format.name()), v);
        }
        if format.takes_q8() {
            let v = b.product(Tree::BLOCKS, q, w, None);
            keep(&mut b, &format!("{}.q8", format.name()), v);
            let rows = b.cut(w, 0, 5, 40);
            let v = b.product(Tree::BLOCKS, q, rows, None);
            keep(&mut b, &format!("{}.q8.rows", format.name()), v);
        }
        let rows = b.cut(w, 0, 5, 40);
        let v = b.product(Tree::Lanes(32), x, rows, None);
        keep(&mut b, &format!("{}.rows", format.name()), v);
    }
    Case::new(b, 64, 8).check(&[1, 2, 3, 8]);
}

#[test]
fn expert_matrices() {
    let mut b = Builder::new();
    let (t, k, one) = (b.columns(), b.n(3), b.n(1));
    let x = columns(&mut b, 256);
    let columns_of = b.dims_of(x);
    let shape = [columns_of[0], one, columns_of[1]];
    let x1 = b.reshape(x, &shape);
    let ids = b.iota(&[t, k], 1);
    let tokens = b.tokens();
    let tokens = b.reshape(tokens, &[t, one]);
    let tokens = b.broadcast(tokens, &[t, k]);
    let (p, r) = (b.scalars.param(0, ds4_ir::ScalarType::I32), b.scalars.param(1, ds4_ir::ScalarType::I32));
    let seven = b.scalars.i32(7);
    let m = b.scalars.op(ScalarOp::MulI, &[p, r]).unwrap();
    let m = b.scalars.op(ScalarOp::AddI, &[m, p]).unwrap();
    let m = b.scalars.op(ScalarOp::RemI, &[m, seven]).unwrap();
    let body = b.scalars.body(&[ds4_ir::ScalarType::I32; 2], m).unwrap();
    let ids = b.map(body, &[ids, tokens]);
    let some = masked(&mut b, ids);
    let wide = [shape[0], k, shape[2]];
    for format in [Format::Q8_0, Format::Q2_K, Format::MXFP4, Format::Fp8, Format::Fp4, Format::F16] {
        let w = b.add_weight(format.name(), Type::weight(format), &[7, 40, 256]);
        let w = b.weight(w);
        for (name, ids) in [("all", ids), ("some", some)] {
            let chosen = b.gather(0, 0, w, ids);
            let xs = b.broadcast(x1, &wide);
            let v = b.product(Tree::Lanes(32), xs, chosen, None);
            b.tap(&format!("{}.{name}", format.name()), v);
            if format.takes_q8() {
                let q = b.quantise(x1);
                let q = b.broadcast(q, &wide);
                let v = b.product(Tree::BLOCKS, q, chosen, None);
                b.tap(&format!("{}.{name}.q8", format.name()), v);
                let q = b.quantise(xs);
                let v = b.product(Tree::BLOCKS, q, chosen, None);
                b.tap(&format!("{}.{name}.q8.each", format.name()), v);
            }
        }
    }
    Case::new(b, 64, 8).check(&[1, 2, 3, 8, 5]);
}

#[test]
fn groups_of_columns() {
    let mut b = Builder::new();
    let x = columns(&mut b, 4 * 64);
    let (t, g, k, n) = (b.columns(), b.n(4), b.n(64), b.n(24));
    let x = b.reshape(x, &[t, g, k]);
    let q = b.quantise(x);
    for format in [Format::Q8_0, Format::Fp8, Format::BF16] {
        let w = b.add_weight(format.name(), Type::weight(format), &[4 * 24, 64]);
        let w = b.weight(w);
        let w = b.reshape(w, &[g, n, k]);
        let xs = b.permute(x, &[1, 0, 2]);
        let v = b.product(Tree::Lanes(32), xs, w, None);
        let v = b.permute(v, &[1, 0, 2]);
        let v = unary(&mut b, ScalarOp::Neg, v);
        keep(&mut b, format.name(), v);
        if format.takes_q8() {
            let q = b.permute(q, &[1, 0, 2]);
            let v = b.product(Tree::BLOCKS, q, w, None);
            let v = b.permute(v, &[1, 0, 2]);
            let gn = b.n(96);
            let v = b.reshape(v, &[t, gn]);
            let q = b.quantise(v);
            let w = b.add_weight("last", Type::weight(format), &[8, 96]);
            let w = b.weight(w);
            let v = b.product(Tree::BLOCKS, q, w, None);
            keep(&mut b, "second", v);
        }
    }
    Case::new(b, 64, 5).check(&[1, 2, 5]);
}

#[test]
fn rows_by_ids() {
    let mut b = Builder::new();
    let (t, r, d, h) = (b.columns(), b.n(24), b.n(40), b.n(3));
    let source = floats(&mut b, "source", &[60, 40]);
    let finite = unary(&mut b, ScalarOp::Floor, source);
    let ids = ints(&mut b, "ids", &[24], 60);
    let one = b.n(1);
    let ids = b.reshape(ids, &[one, r]);
    let ids = b.broadcast(ids, &[t, r]);
    let some = masked(&mut b, ids);
    let all = masked_none(&mut b, ids);
    let x = columns(&mut b, 120);
    let x = b.reshape(x, &[t, h, d]);
    for (name, ids) in [("all", all), ("some", some)] {
        let rows = b.gather(0, 0, finite, ids);
        for tree in [Tree::Lanes(32), Tree::Seq, Tree::Lanes(8)] {
            let scores = b.product(tree, x, rows, None);
            let turned = b.permute(rows, &[0, 2, 1]);
            let sums = b.product(Tree::Seq, scores, turned, Some(ids));
            keep(&mut b, &format!("{name}.{tree:?}.sums"), sums);
            let sums = b.product(Tree::Lanes(32), scores, turned, Some(ids));
            keep(&mut b, &format!("{name}.{tree:?}.lanes"), sums);
        }
        let (blocks, eight) = (b.n(3), b.n(8));
        let blocked = b.reshape(rows, &[t, blocks, eight, d]);
        let mask = b.reshape(ids, &[t, blocks, eight]);
        let shape = [t, blocks, h, d];
        let xs = b.reshape(x, &[t, one, h, d]);
        let xs = b.broadcast(xs, &shape);
        let scores = b.product(Tree::Lanes(32), xs, blocked, None);
        let turned = b.permute(blocked, &[0, 1, 3, 2]);
        let sums = b.product(Tree::Seq, scores, turned, Some(mask));
        keep(&mut b, &format!("{name}.blocked"), sums);
        let head = b.cut(turned, 2, 3, 20);
        let sums = b.product(Tree::Seq, scores, head, Some(mask));
        keep(&mut b, &format!("{name}.cut"), sums);
    }
    let norm = b.reshape(x, &[t, h, one, d]);
    let rows = b.reshape(x, &[t, h, one, d]);
    let v = b.product(Tree::Lanes(32), norm, rows, None);
    keep(&mut b, "norms", v);
    Case::new(b, 64, 5).check(&[1, 2, 5]);
}

fn masked_none(b: &mut Builder, ids: Value) -> Value {
    let p = b.scalars.param(0, ds4_ir::ScalarType::I32);
    let (zero, one) = (b.scalars.i32(0), b.scalars.i32(1));
    let yes = b.scalars.op(ScalarOp::LtI, &[zero, one]).unwrap();
    let id = b.scalars.op(ScalarOp::IdWhere, &[yes, p]).unwrap();
    let body = b.scalars.body(&[ds4_ir::ScalarType::I32], id).unwrap();
    b.map(body, &[ids])
}
