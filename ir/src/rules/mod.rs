//! The laws that rewriting may use: one table of rules, their proofs, and what may enter an exact plan.
//!
//! - [`scalar`]: laws of scalar bodies, patterns over [`crate::ScalarOp`]; one family a file.
//! - [`value`]: laws of the value graph, patterns over [`crate::Op`] with attributes and shapes; one family a file.
//! - [`launch`]: laws of launches, whose side conditions the check of a plan evaluates on its lists;
//! - [`smt`]: the obligation of a scalar law as SMT-LIB text, made from the same table.
//! - [`lock`]: which obligation was proved by which solver; [`Exact`] admits a rule only if its proof is there.
//!
//! A law holds for all inputs, bit by bit, with NaN as one value and -0 apart from +0. An element that a masked id leaves
//! without a value may be thought of as any number: laws hold for it too. A law is used from left to right by the search
//! and in both directions by a certificate. No law names a construct of a model or a dimension of one.

mod exact;
pub mod launch;
pub mod lock;
mod reasons;
pub mod scalar;
pub mod smt;
pub mod value;

#[cfg(test)]
mod tests;

pub use exact::{Exact, Unproved};
pub use reasons::{Reasons, Use, rule};

/// How a law is known to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// Solvers refute the negation of its SMT-LIB obligation.
    Smt,
    /// The same with the float operations uninterpreted: it holds whatever they compute.
    Uninterpreted,
    /// All 2^32 inputs of a unary law are tried.
    Exhaustive,
    /// Both sides move or select the same elements by the definitions of the operations, whose arithmetic stays as
    /// it is; random graphs through the evaluator agree.
    Structural,
    /// The checker computes the one instance that is used.
    Evaluation,
    /// It says who computes a value, when, and where it lies, never what it is; the check of a plan evaluates its side
    /// conditions on the lists.
    Lists,
    /// Nobody has proved it.
    Absent,
}

impl Proof {
    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Proof::Smt => "smt",
            Proof::Uninterpreted => "smt, uninterpreted",
            Proof::Exhaustive => "exhaustive",
            Proof::Structural => "structural",
            Proof::Evaluation => "evaluation",
            Proof::Lists => "structural (lists checked)",
            Proof::Absent => "absent",
        }
    }
}

/// What every rule has beside its law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Stable number, part of certificates.
    pub number: u32,
    /// Name.
    pub name: &'static str,
    /// The law in one line.
    pub law: &'static str,
    /// The family that it belongs to.
    pub family: &'static str,
    /// How it is proved.
    pub proof: Proof,
}
