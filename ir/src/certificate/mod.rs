//! The value certificate: why the graph of a plan computes what the graph of the front end says.
//!
//! # Tables
//! One table of *terms*: its first rows are the source graph as the front end made it, the others are values that
//! rewriting went through or chose. Dimensions, shapes, scalars, bodies, weights, constants, states, spans and names are
//! those of the plan's graph; rewriting only adds to them. `chosen` says for each value of the plan's graph which
//! term it is.
//!
//! *Lemmas* say that two terms are equal: by a rule, or since they do the same to operands that are equal by then. A lemma
//! holds in both directions, and equality is transitive, so a list of them in order is a proof. Scalar nodes have
//! lemmas of their own; two maps are equal if their bodies are.
//!
//! [`check`] replays the list. It shares the table of laws ([`crate::rules`]) with the search and nothing else.
//!
//! # What is claimed
//! Outputs, named values and last versions of states of the two graphs have the same bits in every step. An element that
//! a masked id leaves without a value may be thought of as any number: laws hold for it too, and both graphs are
//! verified, so nothing that is claimed depends on it.

mod check;
mod classes;
mod matching;

use crate::dim::Shape;
use crate::entity::Run;
use crate::graph::{NamedRow, Span, Value};
use crate::op::Type;

pub use check::{Refusal, Report, all_terms, check, source};
pub use matching::{instance, proves};

/// Why two terms are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Reason(pub u32);

impl Reason {
    /// The same operation on equal operands.
    pub const CONGRUENCE: Reason = Reason(0);
    /// Maps of the same operands by equal bodies.
    pub const BODY: Reason = Reason(2);

    /// By a rule, `a` on its left side.
    pub fn rule(number: u32) -> Reason {
        Reason(number << 1)
    }

    /// The same with `b` on the left side.
    pub fn reversed(self) -> Reason {
        Reason(self.0 ^ 1)
    }

    /// The number of the rule.
    pub fn number(self) -> u32 {
        self.0 >> 1
    }

    /// Whether `b` is on the left side.
    pub fn is_reversed(self) -> bool {
        self.0 & 1 == 1
    }
}

/// Two equal terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct LemmaRow {
    /// One term.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Why they are equal.
    pub reason: Reason,
}

crate::tables! {
    /// A certificate as the search builds it.
    owned CertificateTables;
    /// A certificate as the checker takes it.
    view Certificate;
    /// One entry: how many terms are the source graph.
    300 source: u32;
    /// Operation of each term.
    301 term_op: u32;
    /// Type of each term.
    302 term_type: Type;
    /// Shape of each term.
    303 term_shape: Shape;
    /// Operands of each term in `args`.
    304 term_args: Run;
    /// Attributes of each term in `attrs`.
    305 term_attrs: Run;
    /// Span of each term.
    306 term_span: Span;
    /// Pool of operands.
    307 args: Value;
    /// Pool of attributes.
    308 attrs: u32;
    /// Named values of the source graph.
    310 source_named: NamedRow;
    /// Outputs of the source graph.
    311 source_outputs: NamedRow;
    /// For each value of the plan's graph its term.
    320 chosen: Value;
    /// Lemmas on scalar nodes, in order.
    330 scalar_lemmas: LemmaRow;
    /// Lemmas on terms, in order.
    331 value_lemmas: LemmaRow;
}

impl Certificate<'_> {
    /// Bytes of all columns.
    pub fn bytes(&self) -> usize {
        self.sections().iter().map(|section| section.bytes.len()).sum()
    }
}
