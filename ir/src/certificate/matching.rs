//! The checker's matcher: whether two terms of a table are an instance of a law.

use crate::dim::{Dims, Shape};
use crate::graph::{Graph, Value};
use crate::op::{Op, Type};
use crate::rules::value::{Args, Bound, Item, Labels, Pattern, Right, RightArgs, Scope, ValueRule};
use crate::scalar::Scalars;

/// Most operands that an operation takes.
const MOST_OPERANDS: usize = 64;

struct Terms<'a>(&'a Graph<'a>);

impl Labels for Terms<'_> {
    fn op(&self, label: u32) -> Op {
        self.0.op(Value(label))
    }
    fn ty(&self, label: u32) -> Type {
        self.0.ty(Value(label))
    }
    fn shape(&self, label: u32) -> Shape {
        self.0.value_shape[label as usize]
    }
    fn attrs(&self, label: u32) -> &[u32] {
        self.0.attrs(Value(label))
    }
}

/// Whether `a` = `b` is an instance of the law, read from left to right. The terms are of verified types; `dims` and
/// `scalars` hold the table's and grow by what functions of the law ask for.
pub fn proves(rule: &ValueRule, terms: &Graph<'_>, dims: &mut Dims, scalars: &mut Scalars, a: Value, b: Value) -> bool {
    instance(rule, terms, dims, scalars, a, b).is_some()
}

/// The same, with what the law's variables stand for.
pub fn instance(
    rule: &ValueRule,
    terms: &Graph<'_>,
    dims: &mut Dims,
    scalars: &mut Scalars,
    a: Value,
    b: Value,
) -> Option<Bound> {
    if terms.ty(a) != terms.ty(b) || terms.value_shape[a.0 as usize] != terms.value_shape[b.0 as usize] {
        return None;
    }
    // A law looks for one operand among several at one place at the most.
    (0..MOST_OPERANDS).map_while(|at| bound(rule, terms, a, at)).flatten().find(|bound| {
        let scope = Scope { labels: &Terms(terms), dims, scalars, bound, each: 0 };
        Instance { terms, scope }.holds(rule, b)
    })
}

/// What the left side binds, with the operand at this place; nothing if there is no such place to try.
fn bound(rule: &ValueRule, terms: &Graph<'_>, a: Value, at: usize) -> Option<Option<Bound>> {
    let mut walk = Walk { terms, bound: Bound { at, ..Bound::default() }, places: 1 };
    let found = walk.matches(&rule.lhs, a, false);
    (at < walk.places).then_some(found.then_some(walk.bound))
}

/// Binding a left side.
struct Walk<'a> {
    terms: &'a Graph<'a>,
    bound: Bound,
    /// Places that may be tried.
    places: usize,
}

impl Walk<'_> {
    fn matches(&mut self, pattern: &Pattern, v: Value, in_list: bool) -> bool {
        match *pattern {
            Pattern::Any(variable) => self.bind(variable, v, in_list),
            Pattern::Node(variable, kind, args) => {
                kind.takes(self.terms.op(v)) && self.bind(variable, v, in_list) && self.operands(&args, v, in_list)
            }
        }
    }

    fn bind(&mut self, variable: u8, v: Value, in_list: bool) -> bool {
        let item = Item { id: v.0, label: v.0 };
        let items = &mut self.bound.items[variable as usize];
        if in_list || items.is_empty() {
            items.push(item);
        }
        in_list || items[0] == item
    }

    fn operands(&mut self, args: &Args, v: Value, in_list: bool) -> bool {
        let operands = self.terms.args(v);
        match *args {
            Args::List(patterns) => {
                patterns.len() == operands.len()
                    && patterns.iter().zip(operands).all(|(pattern, &v)| self.matches(pattern, v, in_list))
            }
            Args::Each(pattern) => operands.iter().all(|&v| self.matches(pattern, v, true)),
            Args::One(pattern, rest) => {
                self.places = operands.len();
                let at = self.bound.at;
                operands.iter().enumerate().all(|(i, &v)| match i == at {
                    true => self.matches(pattern, v, in_list),
                    false => self.bind(rest, v, true),
                })
            }
        }
    }
}

/// A left side that matched.
struct Instance<'a> {
    terms: &'a Graph<'a>,
    scope: Scope<'a>,
}

impl Instance<'_> {
    fn holds(&mut self, rule: &ValueRule, b: Value) -> bool {
        rule.facts.iter().all(|fact| (fact.of)(&mut self.scope)) && self.is(&rule.rhs, b)
    }

    /// Whether a right side is this term.
    fn is(&mut self, right: &Right, v: Value) -> bool {
        match right {
            Right::Bound(variable) => self.scope.item(*variable).is_some_and(|item| item.id == v.0),
            Right::Node(make, args) => {
                let Some(made) = (make.of)(&mut self.scope) else { return false };
                let shape = self.terms.value_shape[v.0 as usize];
                self.terms.op(v) == made.op
                    && self.terms.attrs(v) == made.attrs
                    && made.shape.is_none_or(|wanted| wanted == shape)
                    && self.operands(args, self.terms.args(v))
            }
        }
    }

    fn operands(&mut self, args: &RightArgs, operands: &[Value]) -> bool {
        match *args {
            RightArgs::List(rights) => {
                rights.len() == operands.len() && rights.iter().zip(operands).all(|(right, &v)| self.is(right, v))
            }
            RightArgs::Each(variable, right) => {
                let len = self.scope.bound.items[variable as usize].len();
                let outer = self.scope.each;
                let same = len == operands.len()
                    && operands.iter().enumerate().all(|(i, &v)| {
                        self.scope.each = i;
                        self.is(right, v)
                    });
                self.scope.each = outer;
                same
            }
            RightArgs::Splice(list, rest) => {
                let (list, rest) = (&self.scope.bound.items[list as usize], &self.scope.bound.items[rest as usize]);
                let (front, back) = rest.split_at(self.scope.bound.at.min(rest.len()));
                front.iter().chain(list).chain(back).map(|item| item.id).eq(operands.iter().map(|v| v.0))
            }
            RightArgs::Some(list, choose) => {
                let Some(places) = (choose.of)(&mut self.scope) else { return false };
                let list = &self.scope.bound.items[list as usize];
                places.len() == operands.len()
                    && places.iter().zip(operands).all(|(&i, v)| list.get(i).is_some_and(|item| item.id == v.0))
            }
        }
    }
}
