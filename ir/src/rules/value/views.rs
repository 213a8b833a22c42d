//! Views of views, and views that change nothing.

use super::names::*;
use super::{Args::List, Kind::Is, Made, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::dim::DimOp;
use crate::op::Op;

pub(super) const RULES: &[ValueRule] = value_laws! { "views";
    301 "reshape-of-reshape" "reshape(reshape(x)) = reshape(x)":
        Node(ROOT, Is(Op::Reshape), List(&[Node(INNER, Is(Op::Reshape), List(&[Any(X)]))]))
        => Right::Node(make!(as_root), RightArgs::List(&[Right::Bound(X)]));
    302 "reshape-same" "reshape(x) = x where the shape is the same":
        Node(ROOT, Is(Op::Reshape), List(&[Any(X)])) => Right::Bound(X), if same_shape;
    303 "slice-of-slice" "slices along one axis: the starts add":
        Node(ROOT, Is(Op::Slice), List(&[Node(INNER, Is(Op::Slice), List(&[Any(X)]))]))
        => Right::Node(make!(added_starts), RightArgs::List(&[Right::Bound(X)])), if same_axis;
    304 "slice-whole" "slice(x) = x where it takes the whole axis":
        Node(ROOT, Is(Op::Slice), List(&[Any(X)])) => Right::Bound(X), if same_shape, starts_at_zero;
    305 "permute-of-permute" "permute(permute(x)) = permute(x) by the composed axes":
        Node(ROOT, Is(Op::Permute), List(&[Node(INNER, Is(Op::Permute), List(&[Any(X)]))]))
        => Right::Node(make!(composed_axes), RightArgs::List(&[Right::Bound(X)]));
    306 "permute-same" "permute(x) = x where no axis moves":
        Node(ROOT, Is(Op::Permute), List(&[Any(X)])) => Right::Bound(X), if axes_stay;
    307 "slice-of-permute" "slice(permute(x)) = permute(slice(x)) along the axis that moved":
        Node(ROOT, Is(Op::Slice), List(&[Node(INNER, Is(Op::Permute), List(&[Any(X)]))]))
        => Right::Node(make!(inner_inferred), RightArgs::List(&[
            Right::Node(make!(slice_of_moved_axis), RightArgs::List(&[Right::Bound(X)]))]));
    308 "permute-of-reshaped-units" "permute(x) = reshape(x) where only axes of extent 1 move":
        Node(ROOT, Is(Op::Permute), List(&[Any(X)]))
        => Right::Node(make!(reshape_to_root), RightArgs::List(&[Right::Bound(X)])), if units_move;
};

pub(super) fn as_root(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like(ROOT)
}

fn inner_inferred(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(INNER)
}

pub(super) fn reshape_to_root(scope: &mut Scope<'_>) -> Option<Made> {
    Some(Made { op: Op::Reshape, attrs: vec![], shape: Some(scope.shape(ROOT)?) })
}

fn same_shape(scope: &mut Scope<'_>) -> bool {
    scope.shape(ROOT).is_some() && scope.shape(ROOT) == scope.shape(X)
}

pub(super) fn same_axis(scope: &mut Scope<'_>) -> bool {
    scope.attr(ROOT, 0).is_some() && scope.attr(ROOT, 0) == scope.attr(INNER, 0)
}

fn starts_at_zero(scope: &mut Scope<'_>) -> bool {
    scope.attr(ROOT, 1).is_some_and(|start| scope.dims.constant(crate::Dim(start)) == Some(0))
}

fn added_starts(scope: &mut Scope<'_>) -> Option<Made> {
    let starts = (scope.attr(ROOT, 1)?, scope.attr(INNER, 1)?);
    let start = scope.dims.dim(DimOp::Add(crate::Dim(starts.0), crate::Dim(starts.1)));
    Some(Made { op: Op::Slice, attrs: vec![scope.attr(ROOT, 0)?, start.0], shape: Some(scope.shape(ROOT)?) })
}

fn composed_axes(scope: &mut Scope<'_>) -> Option<Made> {
    let inner = scope.attrs(INNER)?;
    let attrs: Option<Vec<u32>> = scope.attrs(ROOT)?.iter().map(|&axis| inner.get(axis as usize).copied()).collect();
    Some(Made { op: Op::Permute, attrs: attrs?, shape: None })
}

fn axes_stay(scope: &mut Scope<'_>) -> bool {
    scope.attrs(ROOT).is_some_and(|axes| axes.iter().enumerate().all(|(i, &axis)| i as u32 == axis))
}

fn slice_of_moved_axis(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = scope.attr(ROOT, 0)?;
    let (start, extent) = (scope.attr(ROOT, 1)?, scope.extent(ROOT, axis)?);
    let moved = scope.attr(INNER, axis as usize)?;
    scope.slice_of(X, moved, start, extent)
}

/// The axes that are longer than 1 keep their order.
fn units_move(scope: &mut Scope<'_>) -> bool {
    let (Some(axes), Some(extents)) = (scope.attrs(ROOT), scope.extents(X)) else { return false };
    let long = axes
        .iter()
        .filter(|&&axis| extents.get(axis as usize).is_some_and(|&extent| scope.dims.constant(extent) != Some(1)));
    long.is_sorted()
}
