//! Maps, views, selections: every operation but products.

use super::*;
use crate::{DimOp, ReduceKind, Tree};

#[test]
fn leaves_of_the_graph() {
    let mut b = Builder::new();
    let columns = b.columns();
    let (tokens, extent) = (b.tokens(), b.extent(columns));
    let (two, three) = (b.n(2), b.n(3));
    let (rows, cols) = (b.iota(&[two, three], 0), b.iota(&[two, three], 1));
    let tables = b.finish();
    let mut states = States::new(&tables.view());
    let wanted = [tokens, extent, rows, cols];
    let got = run_step(&tables, &Memory::default(), &mut states, FIRST, &wanted).unwrap();
    assert_eq!(got[0].bits(), [7]);
    assert_eq!((got[1].bits(), got[1].extents.len()), (&[1][..], 0));
    assert_eq!(got[2].bits(), [0, 0, 0, 1, 1, 1]);
    assert_eq!(got[3].bits(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn scalar_operations() {
    use ScalarOp::*;
    let unary = |op, x: f32| {
        let mut b = Builder::new();
        let x = b.table_f32(&[1], &[x]);
        let v = b.apply(op, &[x]);
        floats(b, v)[0]
    };
    assert_eq!(unary(Neg, 0.0).to_bits(), 0x8000_0000);
    assert_eq!(unary(Floor, -1.5), -2.0);
    assert_eq!(unary(Ceil, -0.5).to_bits(), 0x8000_0000);
    assert_eq!(unary(RoundEven, 2.5), 2.0);
    assert_eq!(unary(Sqrt, -1.0).to_bits(), 0x7fc0_0000, "NaN leaves canonical");
    assert_eq!(unary(Exp, 0.0), 1.0);
    assert_eq!(unary(RoundF16, 1.0 + 1.0 / 4096.0), 1.0);
    let binary = |op, x: f32, y: f32| {
        let mut b = Builder::new();
        let (x, y) = (b.table_f32(&[1], &[x]), b.table_f32(&[1], &[y]));
        let v = b.apply(op, &[x, y]);
        floats(b, v)[0].to_bits()
    };
    assert_eq!(binary(Min, 0.0, -0.0), 0x8000_0000);
    assert_eq!(binary(Max, -0.0, f32::NAN), 0x7fc0_0000);
    assert_eq!(binary(Div, 1.0, 3.0), (1.0f32 / 3.0).to_bits());
}

#[test]
fn integer_operations() {
    use ScalarOp::*;
    // (op, x, constant, result)
    let cases = [
        (AddI, i32::MAX, 1, i32::MIN),
        (DivI, -7, 2, -4),
        (RemI, -7, 2, 1),
        (ShrI, -1, 28, 15),
        (SarI, -8, 1, -4),
        (ShlI, 3, 31, i32::MIN),
        (MinI, -3, 4, -3),
        (XorI, 6, 3, 5),
    ];
    for (op, x, constant, wanted) in cases {
        let mut b = Builder::new();
        let table = b.table_i32(&[1], &[x]);
        let (p, c) = (b.scalars.param(0, ScalarType::I32), b.scalars.i32(constant));
        let result = b.scalars.op(op, &[p, c]).unwrap();
        let body = b.scalars.body(&[ScalarType::I32], result).unwrap();
        let v = b.map(body, &[table]);
        assert_eq!(ints(b, v), [wanted], "{}", op.name());
    }
}

#[test]
fn an_id_of_a_negative_index_is_a_fault() {
    let mut b = Builder::new();
    let table = b.table_i32(&[1], &[-4]);
    let p = b.scalars.param(0, ScalarType::I32);
    let truth = b.scalars.op(ScalarOp::EqI, &[p, p]).unwrap();
    let id = b.scalars.op(ScalarOp::IdWhere, &[truth, p]).unwrap();
    let body = b.scalars.body(&[ScalarType::I32], id).unwrap();
    let v = b.map(body, &[table]);
    assert!(run(b, v).unwrap_err().message.contains("-4"));
}

#[test]
fn views_move_elements() {
    let cells: Vec<i32> = (0..12).collect();
    let with = |make: &dyn Fn(&mut Builder, Value) -> Value| {
        let mut b = Builder::new();
        let x = b.table_i32(&[2, 3, 2], &cells);
        let v = make(&mut b, x);
        ints(b, v)
    };
    assert_eq!(with(&|b, x| b.view(Op::Reshape, x, &[4, 3])), cells);
    assert_eq!(with(&|b, x| b.cut(x, 1, 1, 1)), [2, 3, 8, 9]);
    assert_eq!(with(&|b, x| b.cut(x, 2, 1, 1)), [1, 3, 5, 7, 9, 11]);
    assert_eq!(with(&|b, x| b.permute(x, &[2, 0, 1])), [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
    assert_eq!(
        with(&|b, x| {
            let row = b.cut(x, 1, 0, 1);
            b.view(Op::Broadcast, row, &[2, 2, 2])
        }),
        [0, 1, 0, 1, 6, 7, 6, 7]
    );
    assert_eq!(
        with(&|b, x| {
            let part = b.cut(x, 1, 2, 1);
            b.concat(1, &[part, x])
        }),
        [4, 5, 0, 1, 2, 3, 4, 5, 10, 11, 6, 7, 8, 9, 10, 11]
    );
}

#[test]
fn gather_takes_rows_by_id() {
    let cells: Vec<i32> = (0..12).collect();
    let mut b = Builder::new();
    let x = b.table_i32(&[2, 3, 2], &cells);
    let ids = b.table_i32(&[2], &[2, 0]);
    let v = b.gather(1, 0, x, ids);
    assert_eq!(ints(b, v), [4, 5, 0, 1, 10, 11, 6, 7]);

    let mut b = Builder::new();
    let x = b.table_i32(&[2, 3, 2], &cells);
    let ids = b.table_i32(&[2, 2], &[2, 0, 1, 1]);
    let v = b.gather(1, 1, x, ids);
    assert_eq!(ints(b, v), [4, 5, 0, 1, 8, 9, 8, 9]);

    // One axis stays before the ids.
    let mut b = Builder::new();
    let x = b.table_i32(&[2, 3, 2], &cells);
    let ids = b.table_i32(&[2, 1], &[1, 0]);
    let v = b.gather(2, 1, x, ids);
    assert_eq!(ints(b, v), [1, 3, 5, 6, 8, 10]);
}

#[test]
fn an_id_outside_its_axis_is_a_fault_that_names_it() {
    for id in [-1, 3] {
        let mut b = Builder::new();
        let x = b.table_f32(&[3], &[0.0; 3]);
        let ids = b.table_i32(&[1], &[id]);
        let v = b.within("lookup", |b| b.gather(0, 0, x, ids));
        let fault = run(b, v).unwrap_err();
        assert_eq!(fault.value, Some(v));
        assert_eq!(fault.to_string(), format!("{v} in `lookup`: id {id} is outside the axis of 3 rows"));
    }
}

#[test]
fn reductions() {
    let reduce = |kind, tree, axis, x: &[f32]| {
        let mut b = Builder::new();
        let x = b.table_f32(&[2, 3], x);
        let v = b.reduce(kind, tree, axis, x, None);
        floats(b, v)
    };
    let x = [1.0, 2.0, 4.0, 8.0, 16.0, f32::NAN];
    assert_eq!(reduce(ReduceKind::Sum, Tree::Seq, 0, &x)[..2], [9.0, 18.0]);
    assert_eq!(reduce(ReduceKind::Max, Tree::Free, 1, &x)[0], 4.0);
    assert!(reduce(ReduceKind::Max, Tree::Free, 1, &x)[1].is_nan());

    let mut b = Builder::new();
    let x = b.table_i32(&[3], &[i32::MAX, 1, -5]);
    let sum = b.reduce(ReduceKind::Sum, Tree::Free, 0, x, None);
    assert_eq!(ints(b, sum), [i32::MAX - 4]);
}

#[test]
fn reductions_of_nothing() {
    let reduce = |kind, tree| {
        let mut b = Builder::new();
        let x = b.table_f32(&[2, 0], &[]);
        let v = b.reduce(kind, tree, 1, x, None);
        floats(b, v).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(reduce(ReduceKind::Sum, Tree::Seq), [0x8000_0000; 2]);
    assert_eq!(reduce(ReduceKind::Max, Tree::Free), [0xff80_0000; 2]);
}

#[test]
fn masked_leaves_are_absent() {
    let mut b = Builder::new();
    let x = b.table_f32(&[4], &[1.0, f32::NAN, 4.0, -8.0]);
    let mask = b.table_ids(&[4], &[0, -1, 0, 9]);
    let v = b.reduce(ReduceKind::Sum, Tree::Seq, 0, x, Some(mask));
    assert_eq!(floats(b, v), [-3.0]);
}

#[test]
fn top_k_ranks_nan_last_and_prefers_lower_indices() {
    let top = |k, keys: &[f32], candidates: Option<&[i32]>| {
        let mut b = Builder::new();
        let n = keys.len() as u32;
        let keys = b.table_f32(&[1, n], keys);
        let candidates = candidates.map(|ids| b.table_ids(&[1, n], ids));
        let v = b.top_k(k, keys, candidates);
        ints(b, v)
    };
    let nan = f32::NAN;
    assert_eq!(top(2, &[1.0, 3.0, 2.0, 3.0], None), [1, 3]);
    assert_eq!(top(2, &[-0.0, 0.0, -1.0, 0.0], None), [0, 1]);
    assert_eq!(top(3, &[nan, -f32::INFINITY, nan, 1.0], None), [0, 1, 3]);
    assert_eq!(top(3, &[5.0, 1.0], None), [0, 1, -1]);
    assert_eq!(top(2, &[5.0, 1.0, 9.0, 7.0], Some(&[0, 1, -1, -1])), [0, 1]);
    assert_eq!(top(2, &[5.0, 1.0, 9.0], Some(&[-1, -1, -1])), [-1, -1]);
    assert_eq!(top(2, &[], None), [-1, -1]);
    assert_eq!(top(0, &[1.0], None), [0; 0]);
}

#[test]
fn a_candidate_is_its_own_index() {
    let mut b = Builder::new();
    let keys = b.table_f32(&[2], &[1.0, 2.0]);
    let ids = b.table_ids(&[2], &[0, 5]);
    let v = b.top_k(1, keys, Some(ids));
    assert!(run(b, v).unwrap_err().message.contains("its own index"));
}

#[test]
fn arg_max_and_sort_ids() {
    let arg_max = |rows: u32, x: &[f32]| {
        let mut b = Builder::new();
        let x = b.table_f32(&[rows, x.len() as u32 / rows], x);
        let v = b.arg_max(x);
        ints(b, v)
    };
    assert_eq!(arg_max(2, &[1.0, 1.0, 0.0, f32::NAN, -2.0, -3.0]), [0, 1]);
    assert_eq!(arg_max(1, &[f32::NAN, f32::NAN]), [0]);

    let mut b = Builder::new();
    let ids = b.table_ids(&[2, 3], &[-1, 5, 2, 9, -1, -1]);
    let v = b.sort_ids(ids);
    assert_eq!(ints(b, v), [2, 5, -1, 9, -1, -1]);
}

#[test]
fn zero_extents_work_everywhere() {
    let mut b = Builder::new();
    let (columns, outputs) = (b.columns(), b.dims.dim(DimOp::Outputs));
    let (k, n) = (b.n(4), b.n(3));
    let iota = b.iota(&[columns, k], 1);
    let x = b.apply(ScalarOp::FloatOf, &[iota]);
    let start = b.dims.dim(DimOp::Sub(columns, outputs));
    let none = b.slice(x, 0, start, outputs);
    let w = b.table_f32(&[3, 4], &[1.0; 12]);
    let product = b.product(Tree::Seq, none, w, None);
    let wide = b.broadcast(product, &[outputs, n]);
    let top = b.top_k(2, wide, None);
    let row = b.gather(0, 0, w, top);
    let sum = b.reduce(ReduceKind::Sum, Tree::Seq, 0, none, None);
    let max = b.arg_max(none);
    let turned = b.permute(none, &[1, 0]);
    let tables = b.finish();
    let step = Step { outputs: 0, ..FIRST };
    let wanted = [product, top, sum, max, turned];
    let mut states = States::new(&tables.view());
    let got = run_step(&tables, &Memory::default(), &mut states, step, &wanted).unwrap();
    assert_eq!(got.iter().map(|t| t.bits().len()).collect::<Vec<_>>(), [0, 0, 4, 0, 0]);
    assert_eq!(got[2].bits(), [0x8000_0000; 4]);
    let rows = run_step(&tables, &Memory::default(), &mut states, step, &[row]);
    assert_eq!(rows.unwrap()[0].extents, [0, 2, 4]);
}
