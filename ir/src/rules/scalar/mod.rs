//! Laws of scalar bodies.
//!
//! A law is a pair of terms over variables; a variable stands for any scalar of its type, a literal for any constant.
//! Facts restrict literals. One matcher serves the checker; it compares nodes by id, since they are hash-consed.

mod arithmetic;
mod commutative;
mod fact;
mod false_laws;
mod integer;
mod matching;
mod neutral;
mod order;
mod round;
mod select;

use super::Head;
use crate::scalar::{ScalarOp, ScalarType};

pub use fact::Fact;
pub use false_laws::FALSE_LAWS;
pub use matching::{Bound, Instance, Nodes, Unary, instance, proves};

/// Most variables of a law.
pub const VARIABLES: usize = 6;

/// A side of a scalar law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Term {
    /// Any scalar of this type; the same variable is the same scalar.
    Any(u8, ScalarType),
    /// Any constant of this type.
    Literal(u8, ScalarType),
    /// The constant with these bits.
    F32(u32),
    /// The constant.
    I32(i32),
    /// An operation on terms.
    Op(ScalarOp, &'static [Term]),
}

/// A law of scalars.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScalarRule {
    /// Number, name and proof.
    pub head: Head,
    /// What is looked for.
    pub lhs: Term,
    /// What it equals.
    pub rhs: Term,
    /// What must hold of the literals.
    pub facts: &'static [Fact],
}

/// All scalar rules, by family; numbers ascend.
pub fn all() -> impl Iterator<Item = &'static ScalarRule> {
    let families = [
        neutral::RULES,
        commutative::RULES,
        order::RULES,
        select::RULES,
        arithmetic::RULES,
        round::RULES,
        integer::RULES,
    ];
    families.into_iter().flatten()
}

/// The rule of a number.
pub fn by_number(number: u32) -> Option<&'static ScalarRule> {
    all().find(|rule| rule.head.number == number)
}

/// Declares a family's rows: number, name, law, sides, facts where there are any, proof.
macro_rules! laws {
    ($family:literal; $($number:literal $name:literal $law:literal: $lhs:expr => $rhs:expr
        $(, if $($fact:expr),+)? ; $proof:ident)*) => {
        &[$($crate::rules::scalar::ScalarRule {
            head: $crate::rules::Head {
                number: $number,
                name: $name,
                law: $law,
                family: $family,
                proof: $crate::rules::Proof::$proof,
            },
            lhs: $lhs,
            rhs: $rhs,
            facts: &[$($($fact),+)?],
        }),*]
    };
}
use laws;

/// Short names for the tables of the families.
mod terms {
    use super::Term;
    use crate::scalar::ScalarType::{Bool, F32, I32};

    pub const X: Term = Term::Any(0, F32);
    pub const Y: Term = Term::Any(1, F32);
    pub const Z: Term = Term::Any(2, F32);
    pub const I: Term = Term::Any(0, I32);
    pub const J: Term = Term::Any(1, I32);
    pub const K: Term = Term::Any(2, I32);
    pub const P: Term = Term::Any(0, Bool);
    pub const Q: Term = Term::Any(1, Bool);
    /// A condition beside the floats `X`, `Y`, `Z`.
    pub const C: Term = Term::Any(3, Bool);
    pub const L: Term = Term::Literal(4, F32);
    pub const M: Term = Term::Literal(5, F32);
    pub const N: Term = Term::Literal(4, I32);
    pub const O: Term = Term::Literal(5, I32);

    /// The float constant `x`.
    pub const fn f(x: f32) -> Term {
        Term::F32(x.to_bits())
    }
}
