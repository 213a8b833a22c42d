//! `read` and `write` over several steps.

use ScalarOp::{Add, AddI, AndI, EqI, IdWhere, Neg, Not, RemI};
use ds4_ir::{DimOp, ReduceKind, ScalarOp, Tree, Type, Value};

use super::Case;
use super::draft::Draft;

/// The family's name.
pub const FAMILY: &str = "states";

/// All cases.
pub fn cases() -> Vec<Case> {
    vec![ring(), masked_rows(), two_writes(), canonical()]
}

/// The position of each column.
fn positions(d: &mut Draft) -> Value {
    let (columns, one) = (d.b.columns(), d.b.n(1));
    let position = d.b.dims.dim(DimOp::Position);
    let start = d.b.extent(position);
    let start = d.b.reshape(start, &[one]);
    let start = d.b.broadcast(start, &[columns]);
    let index = d.b.iota(&[columns], 0);
    d.apply(AddI, &[index, start])
}

/// A ring by position: read before, written, read behind.
fn ring() -> Case {
    let mut d = Draft::new(FAMILY, "ring");
    let state = d.b.add_state("ring", Type::F32, &[12, 37]);
    let positions = positions(&mut d);
    let places = d.map(&[positions], |m, p| m.op(RemI, &[p[0], m.i(12)]));
    let rows = d.activations(&[37]);
    let rows = d.apply(Neg, &[rows]);
    let old = d.b.read(state);
    let before = d.b.gather(0, 0, old, places);
    let sum = d.apply(Add, &[before, rows]);
    let before = d.apply(Neg, &[before]);
    let new = d.b.write(old, places, sum);
    let behind = d.b.gather(0, 0, new, places);
    let behind = d.apply(Neg, &[behind]);
    d.output("before", before);
    d.output("behind", behind);
    d.tap("ring", new);
    d.steps(&[8, 1, 5, 8, 3])
}

/// Rows of three axes under masked ids: what is masked is not written.
fn masked_rows() -> Case {
    let mut d = Draft::new(FAMILY, "masked_rows");
    let state = d.b.add_state("rows", Type::F32, &[40, 3, 2]);
    let positions = positions(&mut d);
    let ids = d.map(&[positions], |m, p| {
        let fourth = m.op(EqI, &[m.op(AndI, &[p[0], m.i(3)]), m.i(2)]);
        m.op(IdWhere, &[m.op(Not, &[fourth]), p[0]])
    });
    let rows = d.activations(&[3, 2]);
    let old = d.b.read(state);
    let largest_before = d.b.reduce(ReduceKind::Max, Tree::Free, 0, old, None);
    let new = d.b.write(old, ids, rows);
    let largest = d.b.reduce(ReduceKind::Max, Tree::Free, 0, new, None);
    d.output("largest_before", largest_before);
    d.output("largest", largest);
    d.output("ids", ids);
    d.tap("rows", new);
    d.steps(&[8, 1, 3, 8])
}

/// Two writes of one state in a step, the second over the first; a second state beside it.
fn two_writes() -> Case {
    let mut d = Draft::new(FAMILY, "two_writes");
    let (a, b) = (d.b.add_state("a", Type::F32, &[16, 5]), d.b.add_state("b", Type::F32, &[3, 7]));
    let rows = d.plain(&[5]);
    let columns = d.b.columns();
    let first = d.b.iota(&[columns], 0);
    let second = d.map(&[first], |m, p| m.op(AddI, &[p[0], m.i(3)]));
    let old = d.b.read(a);
    let middle = d.b.write(old, first, rows);
    let sum = d.b.reduce(ReduceKind::Sum, Tree::Lanes(32), 0, middle, None);
    let negated = d.apply(Neg, &[rows]);
    let new = d.b.write(middle, second, negated);
    let words = d.random.patterns(7);
    let row = d.floats(&[1, 7], &words);
    let place = d.ids(&[1], &[1]);
    let other = d.b.read(b);
    let other = d.b.write(other, place, row);
    d.output("sum", sum);
    d.tap("a", new);
    d.tap("b", other);
    d.steps(&[8, 3])
}

/// NaN of any pattern is written as the one that may be seen; zeros keep their signs.
fn canonical() -> Case {
    let mut d = Draft::new(FAMILY, "canonical");
    let state = d.b.add_state("words", Type::F32, &[2, 67]);
    let mut words = super::inputs::SPECIAL.to_vec();
    words.extend([0x7f80_0001, 0xff80_0001, 0xffff_ffff, 0x7fff_ffff, 0xffbf_ffff, 0x7fa0_0000]);
    let row = d.floats(&[1, 67], &words);
    let place = d.ids(&[1], &[1]);
    let old = d.b.read(state);
    let new = d.b.write(old, place, row);
    let bits = d.apply(ScalarOp::ToBits, &[new]);
    d.output("bits", bits);
    d.tap("words", new);
    d.once()
}
