//! Quantisation and widening of views. Rows of the last axis stay whole, else the view has no type on blocks.

use super::names::*;
use super::{Args::List, Kind::*, Made, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::op::Op;

pub(super) const RULES: &[ValueRule] = value_laws! { "quantised and stored elements";
    381 "quantise-of-view" "quantise(view(x)) = view(quantise(x)) where rows stay whole":
        Node(ROOT, Is(Op::Quantise), List(&[Node(INNER, View, List(&[Any(X)]))]))
        => Right::Node(make!(inner_view), RightArgs::List(&[
            Right::Node(make!(root_inferred), RightArgs::List(&[Right::Bound(X)]))]));
    382 "widen-of-view" "widen(view(w)) = view(widen(w))":
        Node(ROOT, Is(Op::Widen), List(&[Node(INNER, View, List(&[Any(X)]))]))
        => Right::Node(make!(inner_view), RightArgs::List(&[
            Right::Node(make!(root_inferred), RightArgs::List(&[Right::Bound(X)]))]));
};

fn inner_view(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like(INNER)
}

fn root_inferred(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(ROOT)
}
