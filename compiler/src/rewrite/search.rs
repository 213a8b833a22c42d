//! One block: saturation, and the choice of the cheapest terms.

use std::collections::{BTreeMap, HashMap};

use ds4_ir::certificate::Reason;
use ds4_ir::graph::Graph;
use ds4_ir::rules::value::{Pattern, Right, RightArgs, ValueRule};
use ds4_ir::{Op, Value};
use egg::Id;

use super::cost::Costs;
use super::explain::{Lemmas, explain};
use super::extract::{Candidate, Problem, choose, needed};
use super::language::{Equal, Node, classes, empty, given};
use super::matching::{Match, matches, right};
use super::terms::{Label, Terms, label_of};
use super::{Caps, Hit};

/// A block in the graph of equal terms.
pub struct Search<'a> {
    /// Equal terms.
    pub equal: Equal,
    graph: &'a Graph<'a>,
    /// Source values in the block, and those outside that they use, by their ids in the graph.
    ids: BTreeMap<Value, Id>,
    /// Values of the block, operands first.
    sources: Vec<Id>,
    /// How often each rule made something equal that was not.
    pub fired: BTreeMap<u32, usize>,
}

impl<'a> Search<'a> {
    /// The values of a block; what is outside stands for itself, leaves are taken in.
    pub fn new(graph: &'a Graph<'a>, terms: &mut Terms, block: &[Value]) -> Search<'a> {
        let mut search =
            Search { equal: empty(), graph, ids: BTreeMap::new(), sources: vec![], fired: BTreeMap::new() };
        for &v in block {
            for &arg in graph.args(v) {
                search.enter_operand(terms, arg);
            }
            search.enter(terms, v);
        }
        search
    }

    fn enter_operand(&mut self, terms: &mut Terms, arg: Value) {
        if self.ids.contains_key(&arg) {
            return;
        }
        if self.graph.op(arg).is_leaf() {
            return self.enter(terms, arg);
        }
        let label = terms.label(Label { outside: Some(arg), ..label_of(self.graph, arg) });
        let id = self.equal.add_uncanonical(Node::new(label, vec![]));
        self.ids.insert(arg, id);
        self.sources.push(id);
    }

    fn enter(&mut self, terms: &mut Terms, v: Value) {
        if self.ids.contains_key(&v) {
            return;
        }
        let label = terms.label(label_of(self.graph, v));
        let children = self.graph.args(v).iter().map(|arg| self.ids[arg]).collect();
        let id = self.equal.add_uncanonical(Node::new(label, children));
        self.ids.insert(v, id);
        self.sources.push(id);
    }

    /// Makes maps equal to those of the cheaper bodies.
    pub fn use_bodies(&mut self, terms: &mut Terms, cheaper: &HashMap<u32, u32>) {
        let maps: Vec<Id> = self.ids.iter().filter(|(v, _)| self.graph.op(**v) == Op::Map).map(|(_, &id)| id).collect();
        for id in maps {
            let node = self.equal.id_to_node(id).clone();
            let label = terms.of(node.label).clone();
            let Some(&body) = cheaper.get(&label.attrs.first().copied().unwrap_or(u32::MAX)) else { continue };
            if label.outside.is_some() {
                continue;
            }
            let label = terms.label(Label { attrs: vec![body], ..label });
            let other = self.equal.add_uncanonical(Node::new(label, node.children));
            self.equal.union_trusted(id, other, Reason::BODY.number().to_string());
        }
        self.equal.rebuild();
    }

    /// Applies rules until nothing changes or a cap is met.
    pub fn saturate(&mut self, terms: &mut Terms, rules: &[&'static ValueRule], caps: Caps, hit: &mut Hit) {
        let most = self.equal.total_size() + caps.nodes;
        for _ in 0..caps.iterations {
            let found = self.find(terms, rules);
            let mut changed = false;
            for (rule, found) in found {
                if self.equal.total_size() > most {
                    hit.nodes += 1;
                    self.equal.rebuild();
                    return;
                }
                changed |= self.apply(terms, rule, &found).is_some();
            }
            self.equal.rebuild();
            if !changed {
                return;
            }
        }
        hit.iterations += 1;
    }

    /// The instances of rules, classes and rules ascending.
    pub fn find(&self, terms: &Terms, rules: &[&'static ValueRule]) -> Vec<(&'static ValueRule, Match)> {
        let mut found = vec![];
        for class in classes(&self.equal) {
            for rule in rules.iter().filter(|rule| self.may_match(rule, terms, class)) {
                let all = matches(rule, &self.equal, terms, class).into_iter();
                found.extend(all.filter(|found| !repeats(rule) || self.is_sole(found)).map(|found| (*rule, found)));
            }
        }
        found
    }

    /// Whether a class has the operation that a law looks for.
    fn may_match(&self, rule: &ValueRule, terms: &Terms, class: Id) -> bool {
        let Pattern::Node(_, kind, _) = rule.lhs else { return true };
        self.equal[class].nodes.iter().any(|node| kind.takes(terms.of(node.label).op))
    }

    /// Whether the inner operation of a match has no other reader in the block, and none outside.
    fn is_sole(&self, found: &Match) -> bool {
        let Some(inner) = found.bound.items[1].first() else { return true };
        let class = self.equal.find(Id::from(inner.id as usize));
        self.equal[class].parents().count() == 1
    }

    /// Adds the right side of a match: both terms, if they were not equal before.
    pub fn apply(&mut self, terms: &mut Terms, rule: &ValueRule, found: &Match) -> Option<(Id, Id)> {
        let right = right(rule, terms, &found.bound)?;
        let (left, right) = (found.left.add(&mut self.equal), right.add(&mut self.equal));
        let label = |id: Id| terms.of(self.equal.id_to_node(id).label);
        let same = label(left).ty == label(right).ty && label(left).shape == label(right).shape;
        if !same || self.equal.find(left) == self.equal.find(right) {
            return None;
        }
        self.equal.union_trusted(left, right, rule.head.number.to_string());
        *self.fired.entry(rule.head.number).or_default() += 1;
        Some((left, right))
    }

    /// The term that the certificate has for an id of the graph.
    pub fn term(&self, terms: &mut Terms, id: Id, known: &mut HashMap<Id, Value>) -> Value {
        if let Some(&value) = known.get(&id) {
            return value;
        }
        let node = self.equal.id_to_node(id).clone();
        let children: Vec<Value> = node.children.iter().map(|&child| self.term(terms, child, known)).collect();
        let value = terms.value(node.label, &children);
        known.insert(id, value);
        value
    }

    /// The cheapest terms of the roots, with lemmas; and the source values that chosen terms are equal to.
    pub fn chosen(
        &mut self,
        terms: &mut Terms,
        roots: &[Value],
        costs: &mut Costs,
        lemmas: &mut Lemmas,
    ) -> Option<Chosen> {
        let ids = classes(&self.equal);
        let place: HashMap<Id, usize> = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let problem = self.problem(terms, roots, &ids, &place, costs);
        let choice = choose(&problem);
        // A term takes source values where its operands have some: what is equal below needs no lemma above.
        let mut stands: HashMap<usize, Id> = HashMap::new();
        for &source in &self.sources {
            stands.entry(place[&self.equal.find(source)]).or_insert(source);
        }
        let mut made: HashMap<usize, Id> = HashMap::new();
        for class in needed(&problem, &choice)? {
            let label = self.equal[ids[class]].nodes[choice[class]].label;
            let children = problem.classes[class][choice[class]].children.iter().map(|child| stands[child]).collect();
            let id = self.equal.add_uncanonical(Node::new(label, children));
            stands.entry(class).or_insert(id);
            made.insert(class, id);
        }
        self.explained(terms, roots, &place, &stands, &made, lemmas)
    }

    /// Lemmas for roots and for source values that operands of chosen terms are.
    fn explained(
        &mut self,
        terms: &mut Terms,
        roots: &[Value],
        place: &HashMap<Id, usize>,
        stands: &HashMap<usize, Id>,
        made: &HashMap<usize, Id>,
        lemmas: &mut Lemmas,
    ) -> Option<Chosen> {
        let mut known = HashMap::new();
        let mut chosen = Chosen::default();
        for (v, id) in self.ids.clone() {
            let class = place[&self.equal.find(id)];
            let Some(&to) = made.get(&class) else { continue };
            let term = self.term(terms, to, &mut known);
            chosen.places.push((term, v));
            if stands[&class] == id || roots.contains(&v) {
                explain(&mut self.equal, id, to, terms, lemmas)?;
                chosen.terms.push((v, term));
            }
        }
        Some(chosen)
    }

    fn problem(
        &self,
        terms: &Terms,
        roots: &[Value],
        ids: &[Id],
        place: &HashMap<Id, usize>,
        costs: &mut Costs,
    ) -> Problem {
        let class_of = |id: Id| place[&self.equal.find(id)];
        let mut problem = Problem {
            roots: roots.iter().map(|root| class_of(self.ids[root])).collect(),
            given: given(&self.equal, &self.sources, ids),
            classes: vec![],
        };
        for &id in ids {
            let candidate = |node: &Node| {
                let labels: Vec<u32> =
                    node.children.iter().map(|&child| self.equal[self.equal.find(child)].nodes[0].label).collect();
                Candidate {
                    cost: costs.of(terms, node.label, &labels),
                    children: node.children.iter().map(|&child| class_of(child)).collect(),
                }
            };
            problem.classes.push(self.equal[id].nodes.iter().map(candidate).collect());
        }
        problem
    }
}

/// What was chosen in a block that changed.
#[derive(Default)]
pub struct Chosen {
    /// Source values with the terms that stand for them.
    pub terms: Vec<(Value, Value)>,
    /// Chosen terms with source values that they are equal to.
    pub places: Vec<(Value, Value)>,
}

/// Whether a right side does the inner operation's work again for each of its readers.
fn repeats(rule: &ValueRule) -> bool {
    matches!(rule.rhs, Right::Node(_, RightArgs::Splice(..)))
}
