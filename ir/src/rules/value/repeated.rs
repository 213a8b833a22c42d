//! Views of repeated elements: what is repeated is viewed before it is repeated.

use super::groups::groups;
use super::names::*;
use super::views::as_root;
use super::{Args::List, Kind::Is, Made, Pattern, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::dim::Dim;
use crate::op::Op;

const REPEATED: Pattern = Node(INNER, Is(Op::Broadcast), List(&[Any(X)]));

pub(super) const RULES: &[ValueRule] = value_laws! { "repeated elements";
    321 "broadcast-of-broadcast" "broadcast(broadcast(x)) = broadcast(x)":
        Node(ROOT, Is(Op::Broadcast), List(&[REPEATED]))
        => Right::Node(make!(as_root), RightArgs::List(&[Right::Bound(X)]));
    322 "broadcast-same" "broadcast(x) = x where the shape is the same":
        Node(ROOT, Is(Op::Broadcast), List(&[Any(X)])) => Right::Bound(X), if repeats_nothing;
    323 "slice-of-repeated-axis" "slice(broadcast(x)) = broadcast(x) along an axis of extent 1 of x":
        Node(ROOT, Is(Op::Slice), List(&[REPEATED]))
        => Right::Node(make!(broadcast_to_root), RightArgs::List(&[Right::Bound(X)])), if axis_is_one;
    324 "slice-of-kept-axis" "slice(broadcast(x)) = broadcast(slice(x)) along an axis that is not repeated":
        Node(ROOT, Is(Op::Slice), List(&[REPEATED]))
        => Right::Node(make!(broadcast_to_root), RightArgs::List(&[
            Right::Node(make!(slice_before), RightArgs::List(&[Right::Bound(X)]))])), if axis_is_kept;
    325 "permute-of-broadcast" "permute(broadcast(x)) = broadcast(permute(x))":
        Node(ROOT, Is(Op::Permute), List(&[REPEATED]))
        => Right::Node(make!(broadcast_to_root), RightArgs::List(&[
            Right::Node(make!(permute_before), RightArgs::List(&[Right::Bound(X)]))]));
    326 "reshape-of-broadcast" "reshape(broadcast(x)) = broadcast(reshape(x)) where groups of axes are repeated whole or not at all":
        Node(ROOT, Is(Op::Reshape), List(&[REPEATED]))
        => Right::Node(make!(broadcast_to_root), RightArgs::List(&[
            Right::Node(make!(reshape_before), RightArgs::List(&[Right::Bound(X)]))]));
};

fn repeats_nothing(scope: &mut Scope<'_>) -> bool {
    scope.shape(ROOT).is_some() && scope.shape(ROOT) == scope.shape(X)
}

pub(super) fn broadcast_to_root(scope: &mut Scope<'_>) -> Option<Made> {
    Some(Made { op: Op::Broadcast, attrs: vec![], shape: Some(scope.shape(ROOT)?) })
}

fn axis_is_one(scope: &mut Scope<'_>) -> bool {
    scope.attr(ROOT, 0).is_some_and(|axis| scope.number(X, axis) == Some(1))
}

fn axis_is_kept(scope: &mut Scope<'_>) -> bool {
    let Some(axis) = scope.attr(ROOT, 0) else { return false };
    scope.extent(X, axis).is_some() && scope.extent(X, axis) == scope.extent(INNER, axis)
}

fn slice_before(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = scope.attr(ROOT, 0)?;
    let (start, extent) = (scope.attr(ROOT, 1)?, scope.extent(ROOT, axis)?);
    scope.slice_of(X, axis, start, extent)
}

fn permute_before(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(ROOT)
}

fn reshape_before(scope: &mut Scope<'_>) -> Option<Made> {
    let (x, repeated, to) = (scope.extents(X)?, scope.extents(INNER)?, scope.extents(ROOT)?);
    let one = scope.dims.number(1);
    let mut extents: Vec<Dim> = vec![];
    let mut begin = (0, 0);
    for end in groups(scope.dims, &repeated, &to)? {
        let (before, after) = (&x[begin.0..end.0], &repeated[begin.0..end.0]);
        if before == after {
            extents.extend(&to[begin.1..end.1]);
        } else if before.iter().all(|&extent| extent == one) {
            extents.extend(to[begin.1..end.1].iter().map(|_| one));
        } else {
            return None;
        }
        begin = end;
    }
    Some(Made { op: Op::Reshape, attrs: vec![], shape: Some(scope.dims.shape(&extents)) })
}
