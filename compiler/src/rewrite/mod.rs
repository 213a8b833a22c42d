//! The value stratum: laws that change terms, from the table of [`ds4_ir::rules`], with a certificate.
//!
//! A graph is cut into blocks where few values cross (`blocks`); names play no part. In each block
//! rules make terms equal until nothing changes or a cap is met (`search`), the cheapest terms are chosen with shared
//! values counted once (`extract`), and egg's explanation of why they are equal becomes lemmas (`explain`).
//! Bodies of maps have a stratum of their own (`bodies`). The chosen terms are a new graph in the order of the source
//! (`rebuild`). What the certificate claims is checked before the graph is given away.
//!
//! Everything goes by ids in ascending order; no clock decides anything.

mod blocks;
mod bodies;
mod cost;
mod explain;
mod extract;
mod language;
mod matching;
mod rebuild;
mod search;
mod terms;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ds4_ir::certificate::{self, CertificateTables};
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, GraphTables};
use ds4_ir::rules::Exact;
use ds4_ir::rules::value::ValueRule;
use ds4_ir::scalar::Body;
use ds4_ir::verify::{self, Facts};
use ds4_ir::{Bounds, Diagnostic, Op, Place, Value};

use cost::Costs;
use explain::Lemmas;
use rebuild::{Choice, rebuild};
use search::Search;
use terms::Terms;

use crate::schedule::needed;

/// Bounds of one search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Most rounds of applying all rules.
    pub iterations: usize,
    /// Most nodes that a search may add.
    pub nodes: usize,
}

/// Bounds of a rewriting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Values of a block, about.
    pub block: usize,
    /// Of the search in a block.
    pub values: Caps,
    /// Of the search in a body.
    pub bodies: Caps,
    /// The step that costs are for.
    pub bounds: Bounds,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            block: 256,
            values: Caps { iterations: 5, nodes: 2000 },
            bodies: Caps { iterations: 6, nodes: 1000 },
            bounds: Bounds { context: 4096, columns: 1, outputs: 1 },
        }
    }
}

/// How often caps stopped a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hit {
    /// For want of rounds.
    pub iterations: usize,
    /// For want of nodes.
    pub nodes: usize,
}

/// What a rewriting did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Blocks, and those that changed.
    pub blocks: [usize; 2],
    /// Bodies, and those that have a cheaper one.
    pub bodies: [usize; 2],
    /// How often each value rule made terms equal, by number, chosen or not.
    pub fired: BTreeMap<u32, usize>,
    /// Caps that were met in blocks and in bodies.
    pub hit: [Hit; 2],
    /// Why the source graph was kept as it is, if it was.
    pub kept: Option<&'static str>,
    /// What the checker found.
    pub checked: certificate::Report,
}

/// A rewritten graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Rewritten {
    /// The graph; it has passed [`verify::verify`].
    pub graph: GraphTables,
    /// Why it computes what the source computes.
    pub certificate: CertificateTables,
    /// What was done.
    pub outcome: Outcome,
}

/// Rewrites a graph by the rules that have proofs. Outputs, named values, states and spans stay.
///
/// # Errors
/// The graph has not passed [`verify::verify`], or its certificate is refused.
pub fn rewrite(graph: &Graph<'_>, limits: &Limits) -> Result<Rewritten, Diagnostic> {
    rewrite_with(graph, limits, Exact::rules())
}

/// The same by some of the rules.
///
/// # Errors
/// As [`rewrite`].
pub fn rewrite_with(graph: &Graph<'_>, limits: &Limits, rules: &Exact) -> Result<Rewritten, Diagnostic> {
    let facts = verify::verify(graph).map_err(|fault| {
        Diagnostic::new(codes::REWRITE_GRAPH, "a graph that is to be rewritten is not well-formed")
            .at(Place::item("the graph", "its tables"))
            .wanted("a verified graph", fault)
    })?;
    let mut rewriting = Rewriting::new(graph, &facts);
    rewriting.simplify_bodies(rules, limits.bodies);
    rewriting.search_blocks(rules, limits);
    let mut rewritten = rewriting.finish();
    let checked = certificate::check(&rewritten.graph.view(), &rewritten.certificate.view(), rules);
    rewritten.outcome.checked = checked.map_err(|refusal| {
        Diagnostic::new(codes::CERTIFICATE_REFUSED, "a certificate does not prove its graph")
            .at(Place::item("the graph", "its value certificate"))
            .wanted("lemmas that the checker accepts", refusal)
            .help("this is a fault of the compiler: please report it")
    })?;
    Ok(rewritten)
}

/// A table of terms and pairs of them, each equal by one rule.
pub struct Instances {
    /// The terms, the graph's values first.
    pub terms: GraphTables,
    /// Left and right sides.
    pub pairs: Vec<(Value, Value)>,
}

/// All that one rule says of the values of a graph, for tests and for people who want to see it. The graph is verified;
/// whether the rule is proved does not matter here.
pub fn instances(graph: &Graph<'_>, rule: &'static ValueRule) -> Instances {
    let mut lemmas = Lemmas::default();
    let mut terms = Terms::new(graph, &mut lemmas);
    let values: Vec<Value> = graph.values().collect();
    let mut search = Search::new(graph, &mut terms, &values);
    let found = search.find(&terms, &[rule]);
    let ids: Vec<_> = found.iter().filter_map(|(rule, found)| search.apply(&mut terms, rule, found)).collect();
    let mut known = HashMap::new();
    let mut term = |id| search.term(&mut terms, id, &mut known);
    let pairs = ids.into_iter().map(|(left, right)| (term(left), term(right))).collect();
    Instances { terms: rebuild::all(graph, &terms), pairs }
}

struct Rewriting<'a> {
    graph: &'a Graph<'a>,
    facts: &'a Facts,
    terms: Terms,
    values: Lemmas,
    scalars: Lemmas,
    cheaper: HashMap<u32, u32>,
    choice: Choice,
    outcome: Outcome,
}

impl<'a> Rewriting<'a> {
    fn new(graph: &'a Graph<'a>, facts: &'a Facts) -> Rewriting<'a> {
        let mut values = Lemmas::default();
        let terms = Terms::new(graph, &mut values);
        let (scalars, cheaper, choice, outcome) = Default::default();
        Rewriting { graph, facts, terms, values, scalars, cheaper, choice, outcome }
    }

    fn simplify_bodies(&mut self, rules: &Exact, caps: Caps) {
        let maps = self.graph.values().filter(|&v| self.graph.op(v) == Op::Map);
        let used: BTreeSet<u32> = maps.map(|v| self.graph.attrs(v)[0]).collect();
        for &body in &used {
            let hit = &mut self.outcome.hit[1];
            let scalars = &mut self.terms.scalars;
            let new = bodies::simplified(scalars, Body(body), rules, caps, hit, &mut self.scalars);
            if new != Body(body) {
                self.cheaper.insert(body, new.0);
            }
        }
        self.outcome.bodies = [used.len(), self.cheaper.len()];
    }

    fn search_blocks(&mut self, rules: &Exact, limits: &Limits) {
        let needed = needed(self.graph);
        let mut costs = Costs::new(limits.bounds);
        for block in blocks::blocks(self.graph, &needed, limits.block) {
            self.outcome.blocks[0] += 1;
            let roots = self.roots(&block, &needed);
            let mut search = Search::new(self.graph, &mut self.terms, &block);
            search.use_bodies(&mut self.terms, &self.cheaper);
            search.saturate(&mut self.terms, rules.values(), limits.values, &mut self.outcome.hit[0]);
            for (rule, count) in std::mem::take(&mut search.fired) {
                *self.outcome.fired.entry(rule).or_default() += count;
            }
            let Some(chosen) = search.chosen(&mut self.terms, &roots, &mut costs, &mut self.values) else { continue };
            self.outcome.blocks[1] += usize::from(chosen.terms.iter().any(|(v, term)| v != term));
            self.choice.terms.extend(chosen.terms.into_iter().filter(|(v, term)| v != term));
            for (term, v) in chosen.places {
                let first = self.choice.places.entry(term).or_insert(v);
                *first = v.min(*first);
            }
        }
    }

    /// The values of a block that exist for others: read outside of it, named, outputs, last versions of states.
    fn roots(&self, block: &[Value], needed: &[bool]) -> Vec<Value> {
        let (Some(first), Some(last)) = (block.first(), block.last()) else { return vec![] };
        let inside = |v: &Value| (*first..=*last).contains(v);
        let kept: BTreeSet<Value> = self.kept().into_iter().filter(inside).collect();
        let read_outside = |v: &Value| {
            let readers = self.facts.readers_of(*v).iter();
            readers.filter(|reader| needed[reader.0 as usize]).any(|reader| !inside(reader))
        };
        block.iter().copied().filter(|v| kept.contains(v) || read_outside(v)).collect()
    }

    /// What must have an equal in the new graph.
    fn kept(&self) -> Vec<Value> {
        let rows = self.graph.outputs.iter().chain(self.graph.named).map(|row| row.value);
        rows.chain(self.facts.final_versions.iter().flatten().copied()).collect()
    }

    /// The new graph, or the source as it is if the new one would not be well-formed.
    fn finish(mut self) -> Rewritten {
        let rebuilt = rebuild(self.graph, &self.terms, &self.choice, &self.kept());
        let rebuilt = match rebuilt {
            Some(rebuilt) if verify::verify(&rebuilt.graph.view()).is_ok() => rebuilt,
            Some(_) => self.keep("the rewritten graph is not well-formed"),
            None => self.keep("states could not be updated in place"),
        };
        let mut certificate = self.terms.certificate;
        certificate.scalar_lemmas = self.scalars.rows;
        certificate.value_lemmas = self.values.rows;
        certificate.chosen = rebuilt.chosen;
        Rewritten { graph: rebuilt.graph, certificate, outcome: self.outcome }
    }

    fn keep(&mut self, why: &'static str) -> rebuild::Rebuilt {
        self.outcome.kept = Some(why);
        rebuild::unchanged(self.graph, &self.terms)
    }
}
