//! Gathers, widening, order.

use ds4_ir::{Builder, Format, ScalarOp, Type};

use super::Case;
use super::maps::{binary, floats, ints, masked, unary};

#[test]
fn weights_are_widened() {
    let mut b = Builder::new();
    let tokens = b.tokens();
    for format in Format::ALL {
        let w = b.add_weight(format.name(), Type::weight(format), &[9, 256]);
        let w = b.weight(w);
        let whole = b.widen(w);
        b.tap(&format!("{}.whole", format.name()), whole);
        b.output(&format!("{}.whole", format.name()), whole);
        let rows = b.gather(0, 0, w, tokens);
        let rows = b.widen(rows);
        b.tap(&format!("{}.rows", format.name()), rows);
        b.output(&format!("{}.rows", format.name()), rows);
    }
    Case::new(b, 64, 5).check(&[1, 5]);
}

/// Nobody but other values reads these, so the executor need not store them.
#[test]
fn widened_weights_are_read_where_they_lie() {
    for format in [Format::F32, Format::F16, Format::BF16, Format::Q8_0] {
        let mut b = Builder::new();
        let (t, one, n) = (b.columns(), b.n(1), b.n(64));
        let tokens = b.tokens();
        let w = b.add_weight("rows", Type::weight(format), &[9, 64]);
        let w = b.weight(w);
        let scale = b.add_weight("scale", Type::weight(format), &[64]);
        let scale = b.weight(scale);
        let wide = b.widen(w);
        let rows = b.gather(0, 0, wide, tokens);
        let scale = b.widen(scale);
        let scale = b.reshape(scale, &[one, n]);
        let scale = b.broadcast(scale, &[t, n]);
        let scaled = binary(&mut b, ScalarOp::Mul, rows, scale);
        let part = b.cut(scaled, 1, 4, 3);
        let part = unary(&mut b, ScalarOp::Neg, part);
        for (name, v) in [("scaled", scaled), ("part", part)] {
            b.tap(name, v);
            b.output(name, v);
        }
        Case::new(b, 64, 5).check(&[1, 5, 2]);
    }
}

#[test]
fn gathers_of_all_kinds() {
    let mut b = Builder::new();
    let x = floats(&mut b, "x", &[4, 9, 6]);
    let ids = ints(&mut b, "ids", &[4, 5], 9);
    let flat = ints(&mut b, "flat", &[3, 2], 6);
    let batched = b.gather(1, 1, x, ids);
    let middle = b.gather(1, 0, x, flat);
    let last = b.gather(2, 0, x, flat);
    let front = b.cut(ids, 1, 1, 2);
    let four = b.permute(x, &[1, 0, 2]);
    let seven = b.cut(four, 0, 0, 9);
    let rows = b.gather(0, 0, seven, front);
    let some = masked(&mut b, ids);
    let sparse = b.gather(1, 1, x, some);
    let neg = unary(&mut b, ScalarOp::Neg, sparse);
    let table = ints(&mut b, "table", &[9, 3], 50);
    let numbers = b.gather(0, 0, table, ids);
    for (name, v) in
        [("batched", batched), ("middle", middle), ("last", last), ("rows", rows), ("neg", neg), ("numbers", numbers)]
    {
        b.tap(name, v);
        if name != "neg" {
            b.output(name, v);
        }
    }
    Case::new(b, 4, 1).check(&[1]);
}

#[test]
fn the_largest() {
    let mut b = Builder::new();
    let keys = floats(&mut b, "keys", &[5, 50]);
    let n = b.dims_of(keys);
    let index = b.iota(&n, 1);
    let candidates = masked(&mut b, index);
    let turned = floats(&mut b, "turned", &[50, 5]);
    let turned = b.permute(turned, &[1, 0]);
    for k in [1, 4, 37, 60] {
        for (name, keys) in [("straight", keys), ("turned", turned)] {
            let all = b.top_k(k, keys, None);
            let some = b.top_k(k, keys, Some(candidates));
            let sorted = b.sort_ids(some);
            for (what, v) in [("all", all), ("some", some), ("sorted", sorted)] {
                b.tap(&format!("{what}.{name}.{k}"), v);
                b.output(&format!("{what}.{name}.{k}"), v);
            }
        }
    }
    let most = b.arg_max(keys);
    b.tap("most", most);
    b.output("most", most);
    let ids = ints(&mut b, "unsorted", &[3, 9], 100);
    let ids = masked(&mut b, ids);
    let sorted = b.sort_ids(ids);
    b.tap("ids", sorted);
    b.output("ids", sorted);
    Case::new(b, 4, 1).check(&[1]);
}
