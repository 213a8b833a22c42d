//! A number for each value that follows from what it computes, not from ids or names: what comes first where costs are equal.

use ds4_ir::graph::{Graph, Value};
use ds4_ir::scalar::Scalar;
use ds4_ir::{Dim, DimOp, Op, ScalarOp};

/// For each value a number; values that compute the same from leaves of the same types and shapes have the same.
pub fn term_numbers(graph: &Graph<'_>) -> Vec<u64> {
    let mut dims: Vec<u64> = Vec::with_capacity(graph.dims.len());
    for i in 0..graph.dims.len() {
        let number = dim_number(graph, Dim(i as u32), &dims);
        dims.push(number);
    }
    let mut scalars: Vec<u64> = Vec::with_capacity(graph.scalars.len());
    for i in 0..graph.scalars.len() {
        let number = scalar_number(graph, Scalar(i as u32), &scalars);
        scalars.push(number);
    }
    let mut values: Vec<u64> = Vec::with_capacity(graph.len());
    for v in graph.values() {
        let op = graph.op(v);
        let mut number = mixed(op as u64, u64::from(graph.ty(v).0));
        number = graph.dims_of(v).iter().fold(number, |n, d| mixed(n, dims[d.0 as usize]));
        number = match op {
            Op::Map => mixed(number, scalars[graph.bodies[graph.attrs(v)[0] as usize].result.0 as usize]),
            Op::Weight | Op::Const | Op::Read => number,
            Op::Extent => mixed(number, dims[graph.attrs(v)[0] as usize]),
            Op::Slice => mixed(mixed(number, graph.attrs(v)[0].into()), dims[graph.attrs(v)[1] as usize]),
            _ => graph.attrs(v).iter().fold(number, |n, &attr| mixed(n, attr.into())),
        };
        values.push(graph.args(v).iter().fold(number, |n, a: &Value| mixed(n, values[a.0 as usize])));
    }
    values
}

fn dim_number(graph: &Graph<'_>, dim: Dim, known: &[u64]) -> u64 {
    let of = |d: Dim| known.get(d.0 as usize).copied().unwrap_or(0);
    match DimOp::of(graph.dims[dim.0 as usize]) {
        Some(DimOp::Add(a, b)) => mixed(1, of(a).wrapping_add(of(b))),
        Some(DimOp::Sub(a, b)) => mixed(mixed(2, of(a)), of(b)),
        Some(DimOp::Scale(a, n)) => mixed(mixed(3, of(a)), n.into()),
        Some(DimOp::Div(a, n)) => mixed(mixed(4, of(a)), n.into()),
        Some(DimOp::Const(n)) => mixed(5, n.into()),
        Some(DimOp::Completed(n)) => mixed(6, n.into()),
        Some(DimOp::Position) => 7,
        Some(DimOp::Columns) => 8,
        Some(DimOp::Outputs) => 9,
        None => 0,
    }
}

fn scalar_number(graph: &Graph<'_>, x: Scalar, known: &[u64]) -> u64 {
    let row = &graph.scalars[x.0 as usize];
    let number = mixed(11, row.op.into());
    match ScalarOp::from_number(row.op).and_then(ScalarOp::signature) {
        Some((operands, _)) => {
            let of = |word: u32| known.get(word as usize).copied().unwrap_or(0);
            row.words[..operands.len()].iter().fold(number, |n, &word| mixed(n, of(word)))
        }
        None => mixed(number, row.words[0].into()),
    }
}

/// Two numbers as one, their order told apart (the finaliser of splitmix64 over a multiple and a sum).
fn mixed(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b).wrapping_add(0x632b_e59b_d9b4_e019);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
