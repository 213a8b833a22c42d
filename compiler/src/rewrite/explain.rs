//! egg's explanations as lemmas, never flattened: a node of the proof that is shared is walked once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ds4_ir::certificate::{LemmaRow, Reason};
use egg::{Id, TreeTerm};

use super::language::{Equal, Node};

/// Terms as rows of a table.
pub trait Rows {
    /// The row of a label on rows; nothing where there is no such term.
    fn row(&mut self, label: u32, children: &[u32]) -> Option<u32>;
}

/// Lemmas in order, each once.
#[derive(Default)]
pub struct Lemmas {
    /// The lemmas.
    pub rows: Vec<LemmaRow>,
    seen: HashSet<(u32, u32)>,
}

impl Lemmas {
    /// Adds a lemma unless it says nothing new.
    pub fn add(&mut self, a: u32, b: u32, reason: Reason) {
        if a != b && self.seen.insert((a, b)) && !self.seen.contains(&(b, a)) {
            self.rows.push(LemmaRow { a, b, reason });
        }
    }
}

/// The lemmas that lead from one term to another of its class. Both ids stand for the very terms.
pub fn explain(equal: &mut Equal, from: Id, to: Id, rows: &mut dyn Rows, lemmas: &mut Lemmas) -> Option<()> {
    if from == to {
        return Some(());
    }
    let explanation = equal.explain_id_equivalence(from, to);
    let mut walk = Walk { rows, lemmas, ends: HashMap::new() };
    walk.proof(&explanation.explanation_trees).map(|_| ())
}

/// First and last term of a proof.
type Ends = (u32, u32);

struct Walk<'a> {
    rows: &'a mut dyn Rows,
    lemmas: &'a mut Lemmas,
    /// By address: egg shares equal parts of a proof.
    ends: HashMap<*const TreeTerm<Node>, Ends>,
}

impl Walk<'_> {
    /// A chain of terms, neighbours equal by one rule.
    fn proof(&mut self, chain: &[Rc<TreeTerm<Node>>]) -> Option<Ends> {
        let mut ends: Option<Ends> = None;
        for term in chain {
            let (first, last) = self.term(term)?;
            let Some((begin, before)) = ends else {
                ends = Some((first, last));
                continue;
            };
            let reason = |rule: egg::Symbol| rule.as_str().parse().ok().map(Reason::rule);
            match (term.forward_rule, term.backward_rule) {
                (Some(rule), _) => self.lemmas.add(before, first, reason(rule)?),
                (None, Some(rule)) => self.lemmas.add(before, first, reason(rule)?.reversed()),
                (None, None) if before == first => {}
                (None, None) => return None,
            }
            ends = Some((begin, last));
        }
        ends
    }

    /// A term whose operands change by proofs of their own.
    fn term(&mut self, term: &Rc<TreeTerm<Node>>) -> Option<Ends> {
        if let Some(&ends) = self.ends.get(&Rc::as_ptr(term)) {
            return Some(ends);
        }
        let children: Option<Vec<Ends>> = term.child_proofs.iter().map(|proof| self.proof(proof)).collect();
        let children = children?;
        let side = |of: fn(&Ends) -> u32| children.iter().map(of).collect::<Vec<u32>>();
        let first = self.rows.row(term.node.label, &side(|ends| ends.0))?;
        let last = self.rows.row(term.node.label, &side(|ends| ends.1))?;
        self.lemmas.add(first, last, Reason::CONGRUENCE);
        self.ends.insert(Rc::as_ptr(term), (first, last));
        Some((first, last))
    }
}
