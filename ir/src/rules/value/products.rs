//! Products: each element is computed whole, so rows of the weight and rows of the activation may be cut and repeated.

use super::concats::root_inferred;
use super::names::*;
use super::repeated::broadcast_to_root;
use super::views::reshape_to_root;
use super::{Args::List, Kind::Is, Made, Pattern, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::op::Op;

/// Variable of the weight.
const W: u8 = Y;
const PRODUCT: Pattern = Node(INNER, Is(Op::Product), List(&[Any(X), Any(W)]));

pub(super) const RULES: &[ValueRule] = value_laws! { "products";
    401 "product-of-weight-rows" "slice(product(x, w)) = product(x, slice(w)) along the rows of w":
        Node(ROOT, Is(Op::Slice), List(&[PRODUCT]))
        => Right::Node(make!(inner_inferred), RightArgs::List(&[
            Right::Bound(X),
            Right::Node(make!(slice_of_weight), RightArgs::List(&[Right::Bound(W)]))])), if along_last_axis;
    402 "product-of-rows" "slice(product(x, w)) = product(slice(x), w) along rows of x":
        Node(ROOT, Is(Op::Slice), List(&[PRODUCT]))
        => Right::Node(make!(inner_inferred), RightArgs::List(&[
            Right::Node(make!(slice_of_rows), RightArgs::List(&[Right::Bound(X)])),
            Right::Bound(W)])), if along_rows;
    403 "product-of-reshaped" "product(reshape(x), w) = reshape(product(x, w)) for one matrix w":
        Node(ROOT, Is(Op::Product), List(&[Node(INNER, Is(Op::Reshape), List(&[Any(X)])), Any(W)]))
        => Right::Node(make!(reshape_to_root), RightArgs::List(&[
            Right::Node(make!(root_inferred), RightArgs::List(&[Right::Bound(X), Right::Bound(W)]))])), if one_matrix;
    404 "product-of-repeated" "product(broadcast(x), w) = broadcast(product(x, w)) for one matrix w":
        Node(ROOT, Is(Op::Product), List(&[Node(INNER, Is(Op::Broadcast), List(&[Any(X)])), Any(W)]))
        => Right::Node(make!(broadcast_to_root), RightArgs::List(&[
            Right::Node(make!(root_inferred), RightArgs::List(&[Right::Bound(X), Right::Bound(W)]))])), if one_matrix;
};

fn inner_inferred(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(INNER)
}

/// Number of batch axes.
fn batch(scope: &Scope<'_>) -> Option<u32> {
    u32::try_from(scope.extents(W)?.len()).ok()?.checked_sub(2)
}

fn last_axis(scope: &Scope<'_>) -> Option<u32> {
    u32::try_from(scope.extents(ROOT)?.len()).ok()?.checked_sub(1)
}

fn along_last_axis(scope: &mut Scope<'_>) -> bool {
    scope.attr(ROOT, 0).is_some() && scope.attr(ROOT, 0) == last_axis(scope)
}

fn along_rows(scope: &mut Scope<'_>) -> bool {
    let (Some(axis), Some(batch), Some(last)) = (scope.attr(ROOT, 0), batch(scope), last_axis(scope)) else {
        return false;
    };
    (batch..last).contains(&axis)
}

fn one_matrix(scope: &mut Scope<'_>) -> bool {
    batch(scope) == Some(0)
}

fn slice_of_weight(scope: &mut Scope<'_>) -> Option<Made> {
    let (axis, batch) = (scope.attr(ROOT, 0)?, batch(scope)?);
    let (start, extent) = (scope.attr(ROOT, 1)?, scope.extent(ROOT, axis)?);
    scope.slice_of(W, batch, start, extent)
}

fn slice_of_rows(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = scope.attr(ROOT, 0)?;
    let (start, extent) = (scope.attr(ROOT, 1)?, scope.extent(ROOT, axis)?);
    scope.slice_of(X, axis, start, extent)
}
