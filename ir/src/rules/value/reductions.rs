//! Maxima may be regrouped. Sums may not: their trees are part of them.

use super::concats::root_inferred;
use super::names::*;
use super::{Args::List, Kind::Is, Made, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::dim::DimOp;
use crate::op::{Op, ReduceKind, Type};
use crate::scalar::{ScalarOp, ScalarType};

pub(super) const RULES: &[ValueRule] = value_laws! { "maxima";
    421 "max-of-concat" "max over concat(x, y) = max(max over x, max over y)":
        Node(ROOT, Is(Op::Reduce), List(&[Node(INNER, Is(Op::Concat), List(&[Any(X), Any(Y)]))]))
        => Right::Node(make!(larger), RightArgs::List(&[
            Right::Node(make!(root_inferred), RightArgs::List(&[Right::Bound(X)])),
            Right::Node(make!(root_inferred), RightArgs::List(&[Right::Bound(Y)]))])), if is_max, along_the_parts;
    422 "max-of-max" "max over max over x = max over both axes of x as one":
        Node(ROOT, Is(Op::Reduce), List(&[Node(INNER, Is(Op::Reduce), List(&[Any(X)]))]))
        => Right::Node(make!(max_of_merged), RightArgs::List(&[
            Right::Node(make!(merged), RightArgs::List(&[Right::Bound(X)]))])), if is_max, inner_is_max;
};

fn max(scope: &Scope<'_>, variable: u8) -> bool {
    scope.attr(variable, 0) == Some(ReduceKind::Max as u32)
}

fn is_max(scope: &mut Scope<'_>) -> bool {
    max(scope, ROOT)
}

fn inner_is_max(scope: &mut Scope<'_>) -> bool {
    max(scope, INNER)
}

fn along_the_parts(scope: &mut Scope<'_>) -> bool {
    scope.attr(INNER, 0).is_some() && scope.attr(ROOT, 2) == scope.attr(INNER, 0)
}

/// The body `max(x0, x1)`.
fn larger(scope: &mut Scope<'_>) -> Option<Made> {
    if scope.ty(ROOT)? != Type::F32 {
        return None;
    }
    let types = [ScalarType::F32; 2];
    let (x, y) = (scope.scalars.param(0, types[0]), scope.scalars.param(1, types[1]));
    let result = scope.scalars.op(ScalarOp::Max, &[x, y]).ok()?;
    let body = scope.scalars.body(&types, result).ok()?;
    Some(Made { op: Op::Map, attrs: vec![body.0], shape: None })
}

/// The first of the two neighbouring axes of x that are reduced.
fn first_axis(scope: &Scope<'_>) -> Option<u32> {
    let (outer, inner) = (scope.attr(ROOT, 2)?, scope.attr(INNER, 2)?);
    match inner.checked_sub(outer)? {
        0 => Some(inner),
        1 => Some(outer),
        _ => None,
    }
}

fn max_of_merged(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = first_axis(scope)?;
    Some(Made { op: Op::Reduce, attrs: vec![scope.attr(ROOT, 0)?, scope.attr(ROOT, 1)?, axis], shape: None })
}

fn merged(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = first_axis(scope)?;
    let (_, factor) = (scope.extent(X, axis)?, scope.number(X, axis + 1)?);
    let mut extents = scope.extents(X)?;
    extents.remove(axis as usize + 1);
    extents[axis as usize] = scope.dims.dim(DimOp::Scale(extents[axis as usize], factor));
    Some(Made { op: Op::Reshape, attrs: vec![], shape: Some(scope.dims.shape(&extents)) })
}
