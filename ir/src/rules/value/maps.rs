//! Maps: copies, views of all operands alike, maps of maps, operands that occur twice or not at all.

use std::collections::HashMap;

use super::concats::root_inferred;
use super::names::*;
use super::{Args::*, Choose, Kind::*, Made, Pattern::*, Right, RightArgs, Scope, ValueRule, make, value_laws};
use crate::op::Op;
use crate::scalar::{Body, Scalar, ScalarOp, ScalarType, Scalars, operands, param_of, reachable};

/// Most operands of a map.
const MOST_OPERANDS: usize = 64;
/// Most nodes of a body that a law makes.
const MOST_NODES: usize = 256;

pub(super) const RULES: &[ValueRule] = value_laws! { "maps";
    361 "map-of-parameter" "map f (.., x, ..) = x where f gives that parameter":
        Node(ROOT, Is(Op::Map), One(&Any(X), REST)) => Right::Bound(X), if gives_the_parameter;
    362 "map-of-views" "map f (view(x), ..) = view(map f (x, ..)) where all operands are viewed alike, unsliced":
        Node(ROOT, Is(Op::Map), Each(&Node(INNER, View, List(&[Any(X)]))))
        => Right::Node(make!(first_view), RightArgs::List(&[
            Right::Node(make!(root_inferred), RightArgs::Each(X, &Right::Bound(X)))])), if viewed_alike, unsliced;
    363 "slice-of-map" "slice(map f (x, ..)) = map f (slice(x), ..)":
        Node(ROOT, Is(Op::Slice), List(&[Node(INNER, Is(Op::Map), Each(&Any(X)))]))
        => Right::Node(make!(inner_inferred), RightArgs::Each(X,
            &Right::Node(make!(as_root), RightArgs::List(&[Right::Bound(X)]))));
    364 "map-of-map" "map f (.., map g (x, ..), ..) = map f(.., g, ..) (.., x, .., ..)":
        Node(ROOT, Is(Op::Map), One(&Node(INNER, Is(Op::Map), Each(&Any(X))), REST))
        => Right::Node(make!(composed_body), RightArgs::Splice(X, REST));
    365 "map-of-used" "map f (x, ..) = map f' (x', ..) on the operands that f uses, each once":
        Node(ROOT, Is(Op::Map), Each(&Any(X)))
        => Right::Node(make!(body_of_used), RightArgs::Some(X, Choose { name: "used", of: used })), if some_unused;
};

fn as_root(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like(ROOT)
}

fn inner_inferred(scope: &mut Scope<'_>) -> Option<Made> {
    scope.like_inferred(INNER)
}

fn body(scope: &Scope<'_>, variable: u8) -> Option<Body> {
    let body = Body(scope.attr(variable, 0)?);
    ((body.0 as usize) < scope.scalars.columns().1.len()).then_some(body)
}

/// The parameter that a node is.
fn parameter(scalars: &Scalars, x: Scalar) -> Option<u32> {
    let row = scalars.columns().0[x.0 as usize];
    (row.op == ScalarOp::Param as u32).then(|| param_of(row.words[0])).flatten().map(|(index, _)| index)
}

fn gives_the_parameter(scope: &mut Scope<'_>) -> bool {
    let Some(body) = body(scope, ROOT) else { return false };
    let (_, result) = scope.scalars.of(body);
    parameter(scope.scalars, result) == Some(scope.bound.at as u32)
}

fn first_view(scope: &mut Scope<'_>) -> Option<Made> {
    let view = scope.list(INNER).first()?.label;
    let attrs = scope.labels.attrs(view).to_vec();
    Some(Made { op: scope.labels.op(view), attrs, shape: Some(scope.shape(ROOT)?) })
}

fn viewed_alike(scope: &mut Scope<'_>) -> bool {
    let labels = scope.labels;
    let alike = |list: &[super::Item], same: &dyn Fn(u32, u32) -> bool| {
        list.first().is_some_and(|first| list.iter().all(|item| same(item.label, first.label)))
    };
    alike(scope.list(INNER), &|a, b| labels.op(a) == labels.op(b) && labels.attrs(a) == labels.attrs(b))
        && alike(scope.list(X), &|a, b| labels.shape(a) == labels.shape(b))
}

fn unsliced(scope: &mut Scope<'_>) -> bool {
    scope.list(INNER).first().is_some_and(|view| scope.labels.op(view.label) != Op::Slice)
}

/// Replaces the parameters of an expression.
fn substituted(scalars: &mut Scalars, result: Scalar, of: &dyn Fn(u32) -> Option<Scalar>) -> Option<Scalar> {
    let order = reachable(scalars.columns().0, result);
    if order.len() > MOST_NODES {
        return None;
    }
    let mut new: HashMap<u32, Scalar> = HashMap::new();
    for x in order {
        let row = scalars.columns().0[x.0 as usize];
        let node = match ScalarOp::from_number(row.op)? {
            ScalarOp::Param => of(parameter(scalars, x)?)?,
            ScalarOp::F32 | ScalarOp::I32 => x,
            op => {
                let args: Option<Vec<Scalar>> = operands(&row).iter().map(|arg| new.get(arg).copied()).collect();
                scalars.op(op, &args?).ok()?
            }
        };
        new.insert(x.0, node);
    }
    new.get(&result.0).copied()
}

fn params(scalars: &mut Scalars, first: usize, types: &[ScalarType]) -> Vec<Scalar> {
    types.iter().enumerate().map(|(i, &ty)| scalars.param((first + i) as u32, ty)).collect()
}

/// The outer body with the inner one in place of the parameter that it feeds.
fn composed_body(scope: &mut Scope<'_>) -> Option<Made> {
    let (outer, inner) = (body(scope, ROOT)?, body(scope, INNER)?);
    let ((outer_params, outer_result), (inner_params, inner_result)) =
        (scope.scalars.of(outer), scope.scalars.of(inner));
    let at = scope.bound.at;
    let types = [outer_params.get(..at)?, &inner_params, outer_params.get(at + 1..)?].concat();
    if types.len() > MOST_OPERANDS {
        return None;
    }
    let new = params(scope.scalars, 0, &types);
    let inner_new = new[at..at + inner_params.len()].to_vec();
    let fed = substituted(scope.scalars, inner_result, &|i| inner_new.get(i as usize).copied())?;
    let result = substituted(scope.scalars, outer_result, &|i| match (i as usize).cmp(&at) {
        std::cmp::Ordering::Less => new.get(i as usize).copied(),
        std::cmp::Ordering::Equal => Some(fed),
        std::cmp::Ordering::Greater => new.get(i as usize + inner_params.len() - 1).copied(),
    })?;
    if reachable(scope.scalars.columns().0, result).len() > MOST_NODES {
        return None;
    }
    let body = scope.scalars.body(&types, result).ok()?;
    Some(Made { op: Op::Map, attrs: vec![body.0], shape: None })
}

/// Places of the operands that are used, each value once. A map keeps an operand for its shape.
fn used(scope: &mut Scope<'_>) -> Option<Vec<usize>> {
    let (_, result) = scope.scalars.of(body(scope, ROOT)?);
    let rows = scope.scalars.columns().0;
    let taken: Vec<u32> = reachable(rows, result).into_iter().filter_map(|x| parameter(scope.scalars, x)).collect();
    let list = scope.list(X);
    let first =
        |i: usize| list[..i].iter().all(|item| item.id != list[i].id || !taken_before(list, &taken, item.id, i));
    let places: Vec<usize> = (0..list.len()).filter(|&i| taken.contains(&(i as u32)) && first(i)).collect();
    Some(if places.is_empty() { vec![0] } else { places })
}

/// Whether a used operand before `end` is this value.
fn taken_before(list: &[super::Item], taken: &[u32], id: u32, end: usize) -> bool {
    (0..end).any(|i| list[i].id == id && taken.contains(&(i as u32)))
}

fn some_unused(scope: &mut Scope<'_>) -> bool {
    used(scope).is_some_and(|places| places.len() < scope.list(X).len())
}

fn body_of_used(scope: &mut Scope<'_>) -> Option<Made> {
    let places = used(scope)?;
    let (types, result) = scope.scalars.of(body(scope, ROOT)?);
    let list = scope.list(X).to_vec();
    let types: Option<Vec<ScalarType>> = places.iter().map(|&i| types.get(i).copied()).collect();
    let types = types?;
    let new = params(scope.scalars, 0, &types);
    let place = |i: u32| places.iter().position(|&p| list.get(i as usize).is_some_and(|item| list[p].id == item.id));
    let result = substituted(scope.scalars, result, &|i| place(i).map(|p| new[p]))?;
    let body = scope.scalars.body(&types, result).ok()?;
    Some(Made { op: Op::Map, attrs: vec![body.0], shape: None })
}
