//! Proofs of the laws of rewriting: solvers for obligations, all inputs of unary laws, random graphs for laws of values.
//!
//! `DS4_PROOFS=bless cargo test --release -p ds4-golden --test rules_proofs` proves everything and writes
//! `ir/src/rules/proofs.lock` anew.

pub mod examples;
pub mod solvers;
pub mod trials;

use std::path::PathBuf;

use ds4_ir::rules::lock::{Entry, hash, scalar_text, value_text};
use ds4_ir::rules::scalar::{FALSE_LAWS, ScalarRule};
use ds4_ir::rules::{Head, Proof, scalar, value};

/// A text and the answer that it must have.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The rule.
    pub head: Head,
    /// The text.
    pub text: String,
    /// The answer.
    pub wanted: &'static str,
}

impl Claim {
    /// Whether an entry is about this text.
    pub fn is_of(&self, entry: &Entry) -> bool {
        entry.number == self.head.number && entry.hash == hash(&self.text)
    }

    /// The entry of an answer.
    pub fn entry(&self, solver: &str, version: &str, answer: &str, cost: f64) -> Entry {
        Entry {
            number: self.head.number,
            name: self.head.name.into(),
            hash: hash(&self.text),
            solver: solver.into(),
            version: version.into(),
            answer: answer.into(),
            cost,
        }
    }
}

/// The claims for solvers: laws, and false laws, which have counterexamples.
pub fn obligations() -> Vec<Claim> {
    let by_solver = |rule: &&ScalarRule| matches!(rule.head.proof, Proof::Smt | Proof::Uninterpreted);
    let laws = scalar::all().filter(by_solver).map(|rule| (rule, "unsat"));
    let false_laws = FALSE_LAWS.iter().map(|rule| (rule, "sat"));
    let claim = |(rule, wanted): (&ScalarRule, _)| {
        let text = scalar_text(rule)?;
        Some(Claim { head: rule.head, text, wanted })
    };
    laws.chain(false_laws).filter_map(claim).collect()
}

/// The claims for all inputs.
pub fn exhaustive() -> Vec<(&'static ScalarRule, Claim)> {
    let rules = scalar::all().filter(|rule| rule.head.proof == Proof::Exhaustive);
    let claim =
        |rule: &'static ScalarRule| Some((rule, Claim { head: rule.head, text: scalar_text(rule)?, wanted: "equal" }));
    rules.filter_map(claim).collect()
}

/// The claims for random graphs.
pub fn structural() -> Vec<(&'static value::ValueRule, Claim)> {
    value::all().map(|rule| (rule, Claim { head: rule.head, text: value_text(rule), wanted: "equal" })).collect()
}

/// The file of the proofs.
pub fn lock_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ir/src/rules/proofs.lock")
}

/// Whether proofs are to be made and written anew.
pub fn blessing() -> bool {
    std::env::var_os("DS4_PROOFS").is_some_and(|value| value == "bless")
}
