//! The search's matcher: a law's left side on classes of equal terms, and the right side that it makes.

use ds4_ir::rules::value::{Args, Bound, Item, Kind, Made, Pattern, Right, RightArgs, Scope, ValueRule};
use egg::Id;

use super::language::{Built, Equal, Node};
use super::terms::Terms;

/// Most instances of one law at one node of a class.
const MOST_INSTANCES: usize = 16;

/// A left side that matched.
#[derive(Clone, Debug)]
pub struct Match {
    /// The very term that matched.
    pub left: Built,
    /// What it binds.
    pub bound: Bound,
}

/// The instances of a law in a class.
pub fn matches(rule: &ValueRule, equal: &Equal, terms: &Terms, class: Id) -> Vec<Match> {
    let finder = Finder { equal, terms };
    let mut all = vec![];
    for at in 0..places(&rule.lhs, &finder, class) {
        let bound = Bound { at, ..Bound::default() };
        all.extend(finder.walk(&rule.lhs, class, bound, false).into_iter().map(|(left, bound)| Match { left, bound }));
        if all.len() >= MOST_INSTANCES {
            break;
        }
    }
    all.truncate(MOST_INSTANCES);
    all
}

/// The most places that [`Args::One`] of a pattern can look at in a class.
fn places(pattern: &Pattern, finder: &Finder<'_>, class: Id) -> usize {
    let Pattern::Node(_, kind, args) = pattern else { return 1 };
    let nodes = || finder.nodes(class, *kind);
    match args {
        Args::One(..) => nodes().map(|node| node.children.len()).max().unwrap_or(0),
        Args::List([inner]) => nodes().map(|node| places(inner, finder, node.children[0])).max().unwrap_or(0),
        _ => 1,
    }
}

struct Finder<'a> {
    equal: &'a Equal,
    terms: &'a Terms,
}

impl<'a> Finder<'a> {
    fn nodes(&self, class: Id, kind: Kind) -> impl Iterator<Item = &'a Node> + use<'a> {
        let (equal, terms) = (self.equal, self.terms);
        equal[equal.find(class)].nodes.iter().filter(move |node| {
            let label = terms.of(node.label);
            label.outside.is_none() && kind.takes(label.op)
        })
    }

    fn walk(&self, pattern: &Pattern, class: Id, bound: Bound, in_list: bool) -> Vec<(Built, Bound)> {
        let class = self.equal.find(class);
        match *pattern {
            Pattern::Any(variable) => {
                let item = Item { id: usize::from(class) as u32, label: self.equal[class].nodes[0].label };
                bind(bound, variable, item, in_list).map(|bound| (Built::Term(class), bound)).into_iter().collect()
            }
            Pattern::Node(variable, kind, args) => {
                let found = self.nodes(class, kind).flat_map(|node| {
                    let item = Item { id: usize::from(class) as u32, label: node.label };
                    let bound = self.alike(variable, node.label, &bound, kind, in_list).then(|| bound.clone());
                    let bound = bound.and_then(|bound| bind(bound, variable, item, in_list));
                    bound.map(|bound| self.operands(&args, node, bound, in_list)).unwrap_or_default()
                });
                found.take(MOST_INSTANCES).collect()
            }
        }
    }

    /// Where operands of any number are views, only those that view alike are looked at: other laws look for nothing else.
    fn alike(&self, variable: u8, label: u32, bound: &Bound, kind: Kind, in_list: bool) -> bool {
        let Some(first) = bound.items[variable as usize].first() else { return true };
        let (first, label) = (self.terms.of(first.label), self.terms.of(label));
        !in_list || kind != Kind::View || first.op == label.op && first.attrs == label.attrs
    }

    fn operands(&self, args: &Args, node: &Node, bound: Bound, in_list: bool) -> Vec<(Built, Bound)> {
        let at = bound.at;
        let mut partial = vec![(vec![], bound)];
        let count = node.children.len();
        if matches!(args, Args::List(patterns) if patterns.len() != count)
            || matches!(args, Args::One(..) if at >= count)
        {
            return vec![];
        }
        for (i, &child) in node.children.iter().enumerate() {
            let rest;
            let (pattern, in_list) = match args {
                Args::List(patterns) => (&patterns[i], in_list),
                Args::Each(pattern) => (*pattern, true),
                Args::One(pattern, _) if i == at => (*pattern, in_list),
                Args::One(_, variable) => {
                    rest = Pattern::Any(*variable);
                    (&rest, true)
                }
            };
            let grown = partial.into_iter().flat_map(|(built, bound): (Vec<Built>, Bound)| {
                let found = self.walk(pattern, child, bound, in_list).into_iter();
                found.map(move |(child, bound)| ([&built[..], &[child]].concat(), bound))
            });
            partial = grown.take(MOST_INSTANCES).collect();
        }
        partial.into_iter().map(|(children, bound)| (Built::Node(node.label, children), bound)).collect()
    }
}

fn bind(mut bound: Bound, variable: u8, item: Item, in_list: bool) -> Option<Bound> {
    let items = &mut bound.items[variable as usize];
    if in_list || items.is_empty() {
        items.push(item);
    }
    (in_list || items[0].id == item.id).then_some(bound)
}

/// The right side of a match; nothing where a fact does not hold or a value has no type.
pub fn right(rule: &ValueRule, terms: &mut Terms, bound: &Bound) -> Option<Built> {
    let mut maker = Maker { terms, bound, each: 0 };
    for fact in rule.facts {
        if !maker.scoped(|scope| (fact.of)(scope)) {
            return None;
        }
    }
    maker.make(&rule.rhs).map(|(built, _)| built)
}

struct Maker<'a> {
    terms: &'a mut Terms,
    bound: &'a Bound,
    each: usize,
}

impl Maker<'_> {
    fn scoped<R>(&mut self, run: impl FnOnce(&mut Scope<'_>) -> R) -> R {
        let (labels, dims, scalars) = self.terms.parts();
        run(&mut Scope { labels: &labels, dims, scalars, bound: self.bound, each: self.each })
    }

    /// A term with its label.
    fn make(&mut self, right: &Right) -> Option<(Built, u32)> {
        match right {
            Right::Bound(variable) => self.scoped(|scope| scope.item(*variable)).map(term),
            Right::Node(make, args) => {
                let Made { op, attrs, shape } = self.scoped(|scope| (make.of)(scope))?;
                let (children, labels): (Vec<Built>, Vec<u32>) = self.operands(args)?.into_iter().unzip();
                let label = self.terms.inferred(op, &labels, attrs, shape)?;
                Some((Built::Node(label, children), label))
            }
        }
    }

    fn operands(&mut self, args: &RightArgs) -> Option<Vec<(Built, u32)>> {
        match *args {
            RightArgs::List(rights) => rights.iter().map(|right| self.make(right)).collect(),
            RightArgs::Each(variable, right) => {
                let outer = self.each;
                let made = (0..self.bound.items[variable as usize].len()).map(|i| {
                    self.each = i;
                    self.make(right)
                });
                let made = made.collect();
                self.each = outer;
                made
            }
            RightArgs::Splice(list, rest) => {
                let (list, rest) = (&self.bound.items[list as usize], &self.bound.items[rest as usize]);
                let (front, back) = rest.split_at_checked(self.bound.at)?;
                Some(front.iter().chain(list).chain(back).map(|item| term(*item)).collect())
            }
            RightArgs::Some(list, choose) => {
                let places = self.scoped(|scope| (choose.of)(scope))?;
                let list = &self.bound.items[list as usize];
                places.into_iter().map(|i| list.get(i).map(|item| term(*item))).collect()
            }
        }
    }
}

fn term(item: Item) -> (Built, u32) {
    (Built::Term(Id::from(item.id as usize)), item.label)
}
