//! The proofs that stand in this repository: which text was proved, by whom, in which time.
//!
//! A line of `proofs.lock` is: number of the rule, its name, BLAKE3 of the obligation's text, who answered and in which
//! version, the answer, and seconds (or the number of inputs that were tried). A test proves again what is quick, and
//! everything whose text has changed.

use super::scalar::ScalarRule;
use super::value::ValueRule;
use super::{Proof, smt};

/// The proofs as text.
pub const TEXT: &str = include_str!("proofs.lock");

/// One answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Number of the rule.
    pub number: u32,
    /// Name of the rule.
    pub name: String,
    /// BLAKE3 of the text that was proved, in hexadecimal.
    pub hash: String,
    /// Who answered: a solver, or `trials`.
    pub solver: String,
    /// Its version; for trials `1`.
    pub version: String,
    /// `unsat` where the law is proved, `sat` for a counterexample; `equal` for trials without a difference.
    pub answer: String,
    /// Seconds; for trials the number of inputs.
    pub cost: f64,
}

impl Entry {
    /// As a line of the file.
    pub fn line(&self) -> String {
        let Entry { number, name, hash, solver, version, answer, cost } = self;
        format!("{number} {name} {hash} {solver} {version} {answer} {cost}")
    }

    fn parse(line: &str) -> Option<Entry> {
        let [number, name, hash, solver, version, answer, cost] =
            line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        Some(Entry {
            number: number.parse().ok()?,
            name: name.into(),
            hash: hash.into(),
            solver: solver.into(),
            version: version.into(),
            answer: answer.into(),
            cost: cost.parse().ok()?,
        })
    }
}

/// The entries of a file; lines that are none are left out, which takes their proofs away.
pub fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(Entry::parse).collect()
}

/// The text that a scalar rule's proof is about.
pub fn scalar_text(rule: &ScalarRule) -> Option<String> {
    match rule.head.proof {
        Proof::Smt | Proof::Uninterpreted | Proof::Absent => smt::obligation(rule),
        Proof::Exhaustive => Some(format!("{:?} = {:?} if {:?}", rule.lhs, rule.rhs, rule.facts)),
        Proof::Structural | Proof::Evaluation | Proof::Lists => None,
    }
}

/// The text that a value rule's trials are about.
pub fn value_text(rule: &ValueRule) -> String {
    let facts: Vec<&str> = rule.facts.iter().map(|fact| fact.name).collect();
    format!("{:?} = {:?} if {facts:?}", rule.lhs, rule.rhs)
}

/// The hash of a text.
pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
