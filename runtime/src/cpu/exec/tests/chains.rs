//! Chains of small values.

use ds4_ir::{Builder, ReduceKind, ScalarOp, Tree, Value};

use super::maps::{binary, floats, ints, masked, unary};
use super::{Case, Executor, FileBytes, Isa, plan};

/// Rows of a table, one a column: `[columns, n]`.
fn rows(b: &mut Builder, name: &str, n: u32) -> Value {
    let table = floats(b, name, &[16, n]);
    let tokens = b.tokens();
    b.gather(0, 0, table, tokens)
}

/// Pieces of work of a step in which no value takes another one's memory.
fn pieces(case: &Case) -> usize {
    let graph = case.graph.view();
    let tables = plan(&graph, &case.checkpoint, case.context, case.columns);
    let files: Vec<FileBytes> = vec![Box::new(case.checkpoint.bytes.clone())];
    let all: Vec<Value> = graph.values().collect();
    Executor::keeping(&graph, &tables.view(), files, 1, Isa::best(), &all).unwrap().kernel_count(0)
}

/// Rows and columns of a matrix divided by their sums, again and again.
#[test]
fn sums_along_two_axes_in_turn() {
    for columns in [1, 5] {
        let mut b = Builder::new();
        let (t, one, four) = (b.columns(), b.n(1), b.n(4));
        let x = rows(&mut b, "rows", 24);
        let (front, middle) = (b.cut(x, 1, 0, 4), b.cut(x, 1, 8, 16));
        let scale = floats(&mut b, "scale", &[3]);
        let scale = b.cut(scale, 0, 1, 1);
        let scale = b.reshape(scale, &[one, one]);
        let scale = b.broadcast(scale, &[t, four]);
        let front = binary(&mut b, ScalarOp::Mul, front, scale);
        let mut m = b.reshape(middle, &[t, four, four]);
        for axis in [2, 1, 2, 1, 2, 1] {
            let sums = b.reduce(ReduceKind::Sum, Tree::Seq, axis, m, None);
            let shape = if axis == 2 { [t, four, one] } else { [t, one, four] };
            let sums = b.reshape(sums, &shape);
            let sums = b.broadcast(sums, &[t, four, four]);
            m = binary(&mut b, ScalarOp::Div, m, sums);
        }
        let turned = b.permute(m, &[0, 2, 1]);
        let turned = unary(&mut b, ScalarOp::Exp, turned);
        let last = b.cut(turned, 1, 3, 1);
        let last = b.reshape(last, &[t, four]);
        let joined = binary(&mut b, ScalarOp::Sub, last, front);
        for (name, v) in [("joined", joined), ("turned", turned)] {
            b.tap(name, v);
            b.output(name, v);
        }
        let case = Case::new(b, 64, columns);
        // The tokens, their rows, and a chain.
        assert_eq!(pieces(&case), 3);
        case.check(&[1, columns, 1, columns]);
    }
}

#[test]
fn reductions_of_every_rule_tree_and_axis() {
    let mut b = Builder::new();
    let t = b.columns();
    for (outer, leaves, inner) in [(1, 3, 1), (3, 5, 4), (2, 8, 4), (1, 40, 1), (1, 64, 1), (4, 2, 8)] {
        let name = format!("{outer}x{leaves}x{inner}");
        let shape = [t, b.n(outer), b.n(leaves), b.n(inner)];
        let x = rows(&mut b, &name, outer * leaves * inner);
        let x = unary(&mut b, ScalarOp::Neg, x);
        let x = b.reshape(x, &shape);
        for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(4)] {
            let sum = b.reduce(ReduceKind::Sum, tree, 2, x, None);
            let sum = unary(&mut b, ScalarOp::Abs, sum);
            b.tap(&format!("sum.{name}.{tree:?}"), sum);
        }
        let most = b.reduce(ReduceKind::Max, Tree::Free, 2, x, None);
        let most = unary(&mut b, ScalarOp::Neg, most);
        b.tap(&format!("most.{name}"), most);
    }
    let numbers = ints(&mut b, "numbers", &[2, 6, 3], 1000);
    for kind in [ReduceKind::Sum, ReduceKind::Max] {
        for axis in 0..3 {
            let v = b.reduce(kind, Tree::Free, axis, numbers, None);
            b.tap(&format!("numbers.{kind:?}.{axis}"), v);
        }
    }
    let first = b.tokens();
    b.output("tokens", first);
    Case::new(b, 64, 3).check(&[1, 3, 2]);
}

/// Ids, vectors that are not full, values read from inside and outside, and constants alone.
#[test]
fn views_of_members_and_of_memory() {
    let mut b = Builder::new();
    let t = b.columns();
    let (two, three, nine) = (b.n(2), b.n(3), b.n(9));
    let x = rows(&mut b, "rows", 18);
    let a = unary(&mut b, ScalarOp::Neg, x);
    let folded = b.reshape(a, &[t, two, nine]);
    let turned = b.permute(folded, &[0, 2, 1]);
    let other = b.reshape(turned, &[t, three, three, two]);
    let flat = b.permute(other, &[0, 3, 1, 2]);
    let outside = b.reshape(x, &[t, two, three, three]);
    let sum = binary(&mut b, ScalarOp::Add, flat, outside);
    let shorter = b.cut(sum, 3, 1, 2);
    let shorter = unary(&mut b, ScalarOp::Exp, shorter);
    let index = b.iota(&[t, three], 1);
    let ids = masked(&mut b, index);
    let constant = floats(&mut b, "constant", &[3, 7]);
    let turned = b.permute(constant, &[1, 0]);
    let alone = unary(&mut b, ScalarOp::Abs, turned);
    for (name, v) in [("sum", sum), ("shorter", shorter), ("ids", ids), ("alone", alone)] {
        b.tap(name, v);
    }
    b.output("sum", sum);
    Case::new(b, 64, 4).check(&[1, 4, 2, 3]);
}
