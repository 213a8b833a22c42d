//! Concatenations: parts of them, and concatenations of concatenations.

use super::names::*;
use super::views::same_axis;
use super::{Args::*, Kind::Is, Made, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::dim::Dim;
use crate::op::Op;

pub(super) const RULES: &[ValueRule] = value_laws! { "concatenations";
    341 "slice-of-part" "slice(concat(.., x, ..)) = slice(x) where it lies within x":
        Node(ROOT, Is(Op::Slice), List(&[Node(INNER, Is(Op::Concat), One(&Any(X), REST))]))
        => Right::Node(make!(slice_of_part), RightArgs::List(&[Right::Bound(X)])), if same_axis;
    342 "slice-beside-concat" "slice(concat(x, ..)) = concat(slice(x), ..) along another axis":
        Node(ROOT, Is(Op::Slice), List(&[Node(INNER, Is(Op::Concat), Each(&Any(X)))]))
        => Right::Node(make!(inner_inferred), RightArgs::Each(X,
            &Right::Node(make!(slice_each), RightArgs::List(&[Right::Bound(X)])))), if other_axis;
    343 "concat-of-concat" "concat(.., concat(x, ..), ..) = concat(.., x, .., ..) along one axis":
        Node(ROOT, Is(Op::Concat), One(&Node(INNER, Is(Op::Concat), Each(&Any(X))), REST))
        => Right::Node(make!(root_inferred), RightArgs::Splice(X, REST)), if same_axis;
    344 "concat-of-one" "concat(x) = x":
        Node(ROOT, Is(Op::Concat), List(&[Any(X)])) => Right::Bound(X);
};

fn inner_inferred(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(INNER)
}

pub(super) fn root_inferred(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(ROOT)
}

fn other_axis(scope: &mut Scope<'_>) -> bool {
    !same_axis(scope)
}

/// Parts have constant extents up to the one that holds the slice.
fn slice_of_part(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = scope.attr(ROOT, 0)?;
    let before = scope.list(REST).get(..scope.bound.at)?;
    let constant = |label: u32| scope.dims.constant(*scope.dims.of(scope.labels.shape(label)).get(axis as usize)?);
    let offset = before.iter().try_fold(0u32, |sum, part| sum.checked_add(constant(part.label)?))?;
    let start = scope.dims.constant(Dim(scope.attr(ROOT, 1)?))?.checked_sub(offset)?;
    let (extent, whole) = (scope.number(ROOT, axis)?, scope.number(X, axis)?);
    if start.checked_add(extent)? > whole {
        return None;
    }
    let (start, extent) = (scope.dims.number(start), scope.extent(ROOT, axis)?);
    scope.slice_of(X, axis, start.0, extent)
}

fn slice_each(scope: &mut Scope<'_>) -> Option<Made> {
    let axis = scope.attr(ROOT, 0)?;
    let (start, extent) = (scope.attr(ROOT, 1)?, scope.extent(ROOT, axis)?);
    scope.slice_of(X, axis, start, extent)
}
