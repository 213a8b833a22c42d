//! The scalar stratum: a cheaper body for each body of a graph, with lemmas.

use std::collections::HashMap;

use ds4_ir::rules::Exact;
use ds4_ir::rules::scalar::{Bound, Nodes, ScalarRule, Term, VARIABLES};
use ds4_ir::scalar::{Scalar, ScalarOp, ScalarRow, Scalars, operands, reachable, scalar_type};
use ds4_ir::{Body, ScalarType};
use egg::Id;

use super::explain::{Lemmas, Rows, explain};
use super::extract::{Candidate, Problem, choose, needed};
use super::language::{Built, Equal, Node, classes, empty, given};
use super::{Caps, Hit};

/// What scalar nodes cost: rounded operations one, what devices compute in many steps more.
pub fn cost(op: ScalarOp) -> u64 {
    use ScalarOp::*;
    match op {
        Param | F32 | I32 => 0,
        Div | Sqrt => 10,
        DivI | RemI => 6,
        Exp | RoundF16 | RoundBf16 | RoundE4m3 | RoundE2m1 => 30,
        Log | Log1p => 50,
        Sin | Cos => 200,
        _ => 1,
    }
}

/// The cost of a body: each node once.
pub fn body_cost(scalars: &Scalars, body: Body) -> u64 {
    let rows = scalars.columns().0;
    let op = |x: Scalar| ScalarOp::from_number(rows[x.0 as usize].op);
    reachable(rows, scalars.of(body).1).into_iter().filter_map(op).map(cost).sum()
}

/// The cheapest body that the laws give; the body itself if there is no cheaper one. Lemmas say why.
pub fn simplified(
    scalars: &mut Scalars,
    body: Body,
    rules: &Exact,
    caps: Caps,
    hit: &mut Hit,
    lemmas: &mut Lemmas,
) -> Body {
    let (params, result) = scalars.of(body);
    let mut search =
        Search { equal: empty(), table: Table { scalars, labels: vec![], ids: HashMap::new() }, sources: vec![] };
    let from = search.enter(result);
    search.saturate(rules, caps, hit);
    let Some(to) = search.cheapest(from) else { return body };
    let Some(new) = search.table.of(&search.equal, to, &mut HashMap::new()) else { return body };
    if new == result || explain(&mut search.equal, from, to, &mut search.table, lemmas).is_none() {
        return body;
    }
    scalars.body(&params, new).unwrap_or(body)
}

/// Operation and, for leaves, the word.
type Label = (ScalarOp, u32);

struct Table<'a> {
    scalars: &'a mut Scalars,
    labels: Vec<Label>,
    ids: HashMap<Label, u32>,
}

impl Table<'_> {
    fn label(&mut self, label: Label) -> u32 {
        *self.ids.entry(label).or_insert_with(|| {
            self.labels.push(label);
            self.labels.len() as u32 - 1
        })
    }

    fn scalar(&mut self, label: u32, children: &[Scalar]) -> Option<Scalar> {
        let (op, word) = self.labels[label as usize];
        match op {
            ScalarOp::Param => {
                let (index, ty) = ds4_ir::scalar::param_of(word)?;
                Some(self.scalars.param(index, ty))
            }
            ScalarOp::F32 => Some(self.scalars.f32(f32::from_bits(word))),
            ScalarOp::I32 => Some(self.scalars.i32(word as i32)),
            _ => self.scalars.op(op, children).ok(),
        }
    }

    /// The scalar that an id of the graph stands for.
    fn of(&mut self, equal: &Equal, id: Id, known: &mut HashMap<Id, Scalar>) -> Option<Scalar> {
        if let Some(&x) = known.get(&id) {
            return Some(x);
        }
        let node = equal.id_to_node(id).clone();
        let children: Option<Vec<Scalar>> = node.children.iter().map(|&child| self.of(equal, child, known)).collect();
        let x = self.scalar(node.label, &children?)?;
        known.insert(id, x);
        Some(x)
    }

    fn ty(&self, label: u32) -> ScalarType {
        let (op, word) = self.labels[label as usize];
        let row = ScalarRow { op: op as u32, words: [word, 0, 0] };
        scalar_type(&[row], Scalar(0)).unwrap_or(ScalarType::F32)
    }
}

impl Rows for Table<'_> {
    fn row(&mut self, label: u32, children: &[u32]) -> Option<u32> {
        let children: Vec<Scalar> = children.iter().map(|&x| Scalar(x)).collect();
        self.scalar(label, &children).map(|x| x.0)
    }
}

/// What a variable of a law is bound to in the graph.
type Classes = [Option<Id>; VARIABLES];

struct Search<'a> {
    equal: Equal,
    table: Table<'a>,
    /// The nodes of the body as it is, operands first.
    sources: Vec<Id>,
}

impl Search<'_> {
    /// Adds an expression and gives its id.
    fn enter(&mut self, result: Scalar) -> Id {
        let mut ids: HashMap<u32, Id> = HashMap::new();
        for x in reachable(self.table.scalars.columns().0, result) {
            let row = self.table.scalars.columns().0[x.0 as usize];
            let op = ScalarOp::from_number(row.op).expect("a verified node has a known operation");
            let word = if op.signature().is_none() { row.words[0] } else { 0 };
            let label = self.table.label((op, word));
            let children = operands(&row).iter().map(|child| ids[child]).collect();
            let id = self.equal.add_uncanonical(Node::new(label, children));
            ids.insert(x.0, id);
            self.sources.push(id);
        }
        ids[&result.0]
    }

    fn saturate(&mut self, rules: &Exact, caps: Caps, hit: &mut Hit) {
        for _ in 0..caps.iterations {
            let mut found = vec![];
            for class in classes(&self.equal) {
                for rule in rules.scalars() {
                    found.extend(self.matches(&rule.lhs, class).into_iter().map(|m| (*rule, m)));
                }
            }
            let mut changed = false;
            for (rule, (built, bound)) in found {
                if self.equal.total_size() > caps.nodes {
                    hit.nodes += 1;
                    self.equal.rebuild();
                    return;
                }
                changed |= self.apply(rule, &built, &bound).unwrap_or(false);
            }
            self.equal.rebuild();
            if !changed {
                return;
            }
        }
        hit.iterations += 1;
    }

    /// All ways in which a side matches a class.
    fn matches(&self, term: &Term, class: Id) -> Vec<(Built, Classes)> {
        self.walk(term, class, Classes::default())
    }

    fn walk(&self, term: &Term, class: Id, bound: Classes) -> Vec<(Built, Classes)> {
        let class = self.equal.find(class);
        let nodes = &self.equal[class].nodes;
        let leaf = |wanted: Label| {
            let is = |node: &&Node| self.table.labels[node.label as usize] == wanted;
            nodes.iter().find(is).map(|node| (Built::Node(node.label, vec![]), bound)).into_iter().collect()
        };
        match *term {
            Term::Any(variable, ty) if self.table.ty(nodes[0].label) == ty => {
                unified(bound, variable, class).map(|bound| (Built::Term(class), bound)).into_iter().collect()
            }
            Term::Literal(variable, ty) => {
                let wanted = if ty == ScalarType::F32 { ScalarOp::F32 } else { ScalarOp::I32 };
                let is = |node: &&Node| self.table.labels[node.label as usize].0 == wanted;
                let Some(node) = nodes.iter().find(is) else { return vec![] };
                let built = Built::Node(node.label, vec![]);
                unified(bound, variable, class).map(|bound| (built, bound)).into_iter().collect()
            }
            Term::F32(bits) => leaf((ScalarOp::F32, bits)),
            Term::I32(value) => leaf((ScalarOp::I32, value as u32)),
            Term::Op(op, terms) => {
                let is = |node: &&Node| self.table.labels[node.label as usize].0 == op;
                nodes.iter().filter(is).flat_map(|node| self.operands(node, terms, bound)).collect()
            }
            Term::Any(..) => vec![],
        }
    }

    fn operands(&self, node: &Node, terms: &[Term], bound: Classes) -> Vec<(Built, Classes)> {
        let mut partial = vec![(vec![], bound)];
        for (term, &child) in terms.iter().zip(&node.children) {
            let grown = partial.into_iter().flat_map(|(built, bound)| {
                let more = |(child, bound)| ([&built[..], &[child]].concat(), bound);
                self.walk(term, child, bound).into_iter().map(more).collect::<Vec<_>>()
            });
            partial = grown.collect();
        }
        partial.into_iter().map(|(children, bound)| (Built::Node(node.label, children), bound)).collect()
    }

    /// Adds the right side of a match; whether anything is equal that was not.
    fn apply(&mut self, rule: &ScalarRule, left: &Built, classes: &Classes) -> Option<bool> {
        let mut known = HashMap::new();
        let mut bound = Bound::default();
        for (variable, class) in classes.iter().enumerate() {
            bound[variable] = match class {
                Some(class) => {
                    Some(self.literal_of(*class).or_else(|| self.table.of(&self.equal, *class, &mut known))?)
                }
                None => None,
            };
        }
        for fact in rule.facts {
            self.find_missing(*fact, &mut bound);
            if !fact.holds(&Nodes(self.table.scalars.columns().0), &bound) {
                return Some(false);
            }
        }
        let right = self.right(&rule.rhs, classes, &bound)?;
        let (left, right) = (left.add(&mut self.equal), right.add(&mut self.equal));
        if self.equal.find(left) == self.equal.find(right) {
            return Some(false);
        }
        Some(self.equal.union_trusted(left, right, rule.head.number.to_string()))
    }

    /// The constant of a class that has one.
    fn literal_of(&mut self, class: Id) -> Option<Scalar> {
        let nodes = &self.equal[self.equal.find(class)].nodes;
        let label = nodes
            .iter()
            .map(|node| self.table.labels[node.label as usize])
            .find(|label| matches!(label.0, ScalarOp::F32 | ScalarOp::I32))?;
        Some(match label.0 {
            ScalarOp::F32 => self.table.scalars.f32(f32::from_bits(label.1)),
            _ => self.table.scalars.i32(label.1 as i32),
        })
    }

    fn find_missing(&mut self, fact: ds4_ir::rules::scalar::Fact, bound: &mut Bound) {
        let second = fact.second() as usize;
        if bound[second].is_some() {
            return;
        }
        let Some(word) = fact.missing(&Nodes(self.table.scalars.columns().0), bound) else { return };
        let float = fact.second_is_float(&Nodes(self.table.scalars.columns().0), bound);
        bound[second] = Some(match float {
            true => self.table.scalars.f32(f32::from_bits(word)),
            false => self.table.scalars.i32(word as i32),
        });
    }

    fn right(&mut self, term: &Term, classes: &Classes, bound: &Bound) -> Option<Built> {
        Some(match *term {
            Term::Any(variable, _) => Built::Term(classes[variable as usize]?),
            Term::Literal(variable, _) => {
                let row = self.table.scalars.columns().0[bound[variable as usize]?.0 as usize];
                let label = (ScalarOp::from_number(row.op)?, row.words[0]);
                Built::Node(self.table.label(label), vec![])
            }
            Term::F32(bits) => Built::Node(self.table.label((ScalarOp::F32, bits)), vec![]),
            Term::I32(value) => Built::Node(self.table.label((ScalarOp::I32, value as u32)), vec![]),
            Term::Op(op, terms) => {
                let children: Option<Vec<Built>> = terms.iter().map(|term| self.right(term, classes, bound)).collect();
                Built::Node(self.table.label((op, 0)), children?)
            }
        })
    }

    /// The cheapest term equal to `from`, if it is another one.
    fn cheapest(&mut self, from: Id) -> Option<Id> {
        let ids = classes(&self.equal);
        let place: HashMap<Id, usize> = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let roots = vec![place[&self.equal.find(from)]];
        let mut problem = Problem { roots, given: given(&self.equal, &self.sources, &ids), ..Problem::default() };
        for &id in &ids {
            let nodes = &self.equal[id].nodes;
            let candidate = |node: &Node| Candidate {
                cost: 1 + cost(self.table.labels[node.label as usize].0) * 16,
                children: node.children.iter().map(|&child| place[&self.equal.find(child)]).collect(),
            };
            problem.classes.push(nodes.iter().map(candidate).collect());
        }
        let choice = choose(&problem);
        let mut made: HashMap<usize, Id> = HashMap::new();
        for class in needed(&problem, &choice)? {
            let node = self.equal[ids[class]].nodes[choice[class]].clone();
            let children = problem.classes[class][choice[class]].children.iter().map(|child| made[child]).collect();
            made.insert(class, self.equal.add_uncanonical(Node::new(node.label, children)));
        }
        made.get(&problem.roots[0]).copied().filter(|&to| to != from)
    }
}

fn unified(mut bound: Classes, variable: u8, class: Id) -> Option<Classes> {
    (*bound[variable as usize].get_or_insert(class) == class).then_some(bound)
}
