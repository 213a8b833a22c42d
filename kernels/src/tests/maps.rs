//! Scalar bodies of every operation, and values made from nothing.

use ds4_ir::{Builder, ScalarOp, ScalarType, Type};

use super::bench::{Bench, COLUMNS, Checkpoint, Random, Small};

/// Every float and integer operation over adversarial operands, per column.
#[test]
fn every_scalar_operation_has_the_evaluators_bits() {
    let mut random = Random(1);
    let mut b = Builder::new();
    let n = 37;
    let floats: Vec<_> = (0..2).map(|_| b.floats(&[8, n], &random.adversarial(8 * n as usize))).collect();
    let words: Vec<i32> = (0..8 * n).map(|_| random.next() as i32 >> (random.next() % 32)).collect();
    let ints = [b.ints(&[8, n], &words), b.ints(&[8, n], &words.iter().rev().copied().collect::<Vec<_>>())];
    let floats: Vec<_> = floats.into_iter().map(|t| b.per_column(t)).collect();
    let ints = ints.map(|t| b.per_column(t));
    for &op in ScalarOp::ALL {
        use ScalarOp::*;
        let (args, result) = op.signature().unwrap();
        let constant = matches!(op, DivI | RemI | ShlI | ShrI | SarI);
        if matches!(op, RoundE2m1 | IdWhere | Present | And | Or | Not) || args[0] == ScalarType::Bool || constant {
            continue;
        }
        let operands: Vec<_> = (0..args.len())
            .map(|i| match args[i] {
                ScalarType::F32 => floats[i],
                _ => ints[i],
            })
            .collect();
        let v = match result {
            ScalarType::Bool => compared(&mut b, op, args, &operands),
            _ => b.apply(op, &operands),
        };
        assert!(matches!(b.ty(v), Type::F32 | Type::I32));
    }
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

/// A comparison as a number, through `select`, `and`, `or` and `not`.
fn compared(b: &mut Builder, op: ScalarOp, types: &[ScalarType], args: &[ds4_ir::Value]) -> ds4_ir::Value {
    let s = &mut b.scalars;
    let params: Vec<_> = (0..).zip(types).map(|(i, &ty)| s.param(i, ty)).collect();
    let (holds, swapped) = (s.op(op, &params).unwrap(), s.op(op, &[params[1], params[0]]).unwrap());
    let not = s.op(ScalarOp::Not, &[swapped]).unwrap();
    let (both, either) = (s.op(ScalarOp::And, &[holds, not]).unwrap(), s.op(ScalarOp::Or, &[holds, not]).unwrap());
    let (one, two, three) = (s.i32(1), s.i32(2), s.f32(-0.0));
    let inner = s.op(ScalarOp::SelectI, &[either, one, two]).unwrap();
    let float = s.op(ScalarOp::FloatOf, &[inner]).unwrap();
    let result = s.op(ScalarOp::SelectF32, &[both, three, float]).unwrap();
    let body = s.body(types, result).unwrap();
    b.map(body, args)
}

#[test]
fn division_rounds_down_and_shifts_are_constant() {
    let mut b = Builder::new();
    let values = [0, 1, -1, 7, -7, 8, -8, i32::MAX, i32::MIN, i32::MIN + 1, 1 << 30, -(1 << 24) - 1];
    let x = b.ints(&[12], &values);
    for (op, constants) in [
        (ScalarOp::DivI, &[1, 2, 7, 8, i32::MAX][..]),
        (ScalarOp::RemI, &[1, 2, 7, 8, i32::MAX][..]),
        (ScalarOp::ShlI, &[0, 1, 31][..]),
        (ScalarOp::ShrI, &[0, 1, 31][..]),
        (ScalarOp::SarI, &[0, 1, 31][..]),
    ] {
        for &constant in constants {
            let s = &mut b.scalars;
            let (param, by) = (s.param(0, ScalarType::I32), s.i32(constant));
            let result = s.op(op, &[param, by]).unwrap();
            let body = s.body(&[ScalarType::I32], result).unwrap();
            b.map(body, &[x]);
        }
    }
    Bench::new(b, Checkpoint::default(), &[]).check(&[1]);
}

#[test]
fn ids_are_made_and_asked_for() {
    let mut b = Builder::new();
    let ids = b.ids(&[8, 3], &(0..24).map(|i| if i % 5 == 2 { -1 } else { i }).collect::<Vec<_>>());
    let ids = b.per_column(ids);
    let s = &mut b.scalars;
    let (id, one, two) = (s.param(0, ScalarType::Id), s.f32(1.0), s.f32(2.0));
    let present = s.op(ScalarOp::Present, &[id]).unwrap();
    let result = s.op(ScalarOp::SelectF32, &[present, one, two]).unwrap();
    let body = s.body(&[ScalarType::Id], result).unwrap();
    b.map(body, &[ids]);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

#[test]
fn operands_are_strided_permuted_and_broadcast() {
    let mut random = Random(2);
    let mut b = Builder::new();
    let (three, five, columns) = (b.n(3), b.n(5), b.columns());
    let x = b.floats(&[8, 3, 5], &random.adversarial(120));
    let x = b.per_column(x);
    let y = b.floats(&[5, 8], &random.adversarial(40));
    let y = b.cut(y, 1, 2, 1);
    let y = b.reshape(y, &[five]);
    let one = b.n(1);
    let y = b.reshape(y, &[one, one, five]);
    let y = b.broadcast(y, &[columns, three, five]);
    let sum = b.apply(ScalarOp::Add, &[x, y]);
    let turned = b.permute(sum, &[2, 0, 1]);
    let twice = b.apply(ScalarOp::Add, &[turned, turned]);
    let inner = b.cut(twice, 0, 1, 3);
    b.apply(ScalarOp::Neg, &[inner]);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

#[test]
fn values_are_made_from_the_step() {
    let mut b = Builder::new();
    let (columns, three) = (b.columns(), b.n(3));
    b.tokens();
    let position = b.dims.dim(ds4_ir::DimOp::Position);
    let end = b.dims.dim(ds4_ir::DimOp::Add(position, columns));
    b.extent(end);
    for axis in 0..3 {
        b.iota(&[three, columns, three], axis);
    }
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}
