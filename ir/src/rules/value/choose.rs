//! Choices: the arg-max of a concatenation, and slices of gathered rows.

use super::names::*;
use super::{Args::List, Kind::Is, Made, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::op::Op;
use crate::scalar::{ScalarOp, ScalarType};

/// Variable of the ids.
const IDS: u8 = Y;

pub(super) const RULES: &[ValueRule] = value_laws! { "choices";
    441 "arg-max-of-concat" "arg_max(concat(x, y)) picks arg_max(x) or arg_max(y) by what lies there, the first on ties":
        Node(ROOT, Is(Op::ArgMax), List(&[Node(INNER, Is(Op::Concat), List(&[Any(X), Any(Y)]))]))
        => Right::Node(make!(pick), RightArgs::List(&[
            Right::Node(make!(arg_max), RightArgs::List(&[Right::Bound(X)])),
            Right::Node(make!(arg_max), RightArgs::List(&[Right::Bound(Y)])),
            Right::Node(make!(at_arg_max), RightArgs::List(&[
                Right::Bound(X), Right::Node(make!(arg_max), RightArgs::List(&[Right::Bound(X)]))])),
            Right::Node(make!(at_arg_max), RightArgs::List(&[
                Right::Bound(Y), Right::Node(make!(arg_max), RightArgs::List(&[Right::Bound(Y)]))]))])),
        if along_the_last_axis, parts_not_empty;
    442 "slice-of-gather" "slice(gather(x, ids)) = gather(x, slice(ids)) along an axis of the ids":
        Node(ROOT, Is(Op::Slice), List(&[Node(INNER, Is(Op::Gather), List(&[Any(X), Any(IDS)]))]))
        => Right::Node(make!(gather), RightArgs::List(&[
            Right::Bound(X),
            Right::Node(make!(slice_of_ids), RightArgs::List(&[Right::Bound(IDS)]))]));
};

fn last_axis(scope: &Scope<'_>) -> Option<u32> {
    u32::try_from(scope.extents(INNER)?.len()).ok()?.checked_sub(1)
}

fn along_the_last_axis(scope: &mut Scope<'_>) -> bool {
    scope.attr(INNER, 0).is_some() && scope.attr(INNER, 0) == last_axis(scope)
}

/// An arg-max of no elements is a fault.
fn parts_not_empty(scope: &mut Scope<'_>) -> bool {
    let Some(axis) = last_axis(scope) else { return false };
    [X, Y].into_iter().all(|part| scope.number(part, axis).is_some_and(|extent| extent > 0))
}

fn arg_max(_: &mut Scope<'_>) -> Option<Made> {
    Some(Made { op: Op::ArgMax, attrs: vec![], shape: None })
}

fn at_arg_max(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = last_axis(scope)?;
    Some(Made { op: Op::Gather, attrs: vec![axis, axis], shape: None })
}

/// `select(x2 < x3 or x2 is NaN and x3 is not, x1 + n, x0)`: NaN ranks below everything, the first index wins ties.
fn pick(scope: &mut Scope<'_>) -> Option<Made> {
    let n = scope.number(X, last_axis(scope)?)?;
    let types = [ScalarType::I32, ScalarType::I32, ScalarType::F32, ScalarType::F32];
    let scalars = &mut *scope.scalars;
    let [i, j, x, y] = [0, 1, 2, 3].map(|place| scalars.param(place, types[place as usize]));
    let n = scalars.i32(i32::try_from(n).ok()?);
    let mut op = |op, args: &[_]| scalars.op(op, args).ok();
    let less = op(ScalarOp::LtF, &[x, y])?;
    let is_number = op(ScalarOp::EqF, &[x, x])?;
    let is_nan = op(ScalarOp::Not, &[is_number])?;
    let other_is_number = op(ScalarOp::EqF, &[y, y])?;
    let only_other = op(ScalarOp::And, &[is_nan, other_is_number])?;
    let second = op(ScalarOp::Or, &[less, only_other])?;
    let behind = op(ScalarOp::AddI, &[j, n])?;
    let result = op(ScalarOp::SelectI, &[second, behind, i])?;
    let body = scalars.body(&types, result).ok()?;
    Some(Made { op: Op::Map, attrs: vec![body.0], shape: None })
}

fn gather(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(INNER)
}

fn slice_of_ids(scope: &mut Scope<'_>) -> Option<Made> {
    let (axis, start) = (scope.attr(ROOT, 0)?, scope.attr(ROOT, 1)?);
    let (at, batch) = (scope.attr(INNER, 0)?, scope.attr(INNER, 1)?);
    let own = u32::try_from(scope.extents(IDS)?.len()).ok()?.checked_sub(batch)?;
    if axis < at || axis - at >= own {
        return None;
    }
    let extent = scope.extent(ROOT, axis)?;
    scope.slice_of(IDS, batch + axis - at, start, extent)
}
