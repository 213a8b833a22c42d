//! Laws of the value graph.
//!
//! The left side of a law is a pattern over operations that binds what it meets; the right side says how its values are
//! made from that. Attributes and shapes of the right side are computed by named functions, side conditions are named
//! facts: both look at types, shapes, attributes and bodies of what is bound, and at nothing else. The search and the
//! checker share the table and match with code of their own.
//!
//! Whatever a right side is made of must have a type ([`crate::infer`]) and have that of the left side; a law whose right
//! side has none does not apply.

mod choose;
mod concats;
mod groups;
mod maps;
mod products;
mod quantised;
mod reductions;
mod repeated;
mod scope;
mod views;

use std::fmt;

use super::Head;
use crate::dim::Shape;
use crate::op::Op;

pub use scope::{Bodies, Bound, Item, Labels, Scope};

/// Most variables of a law.
pub const VARIABLES: usize = 8;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// Any value; the same variable is the same value.
    Any(u8),
    /// An operation, bound to a variable of its own.
    Node(u8, Kind, Args),
}

/// Which operations a pattern takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// This one.
    Is(Op),
    /// Any rearrangement of one operand's elements.
    View,
}

impl Kind {
    /// Whether it takes an operation.
    pub fn takes(self, op: Op) -> bool {
        match self {
            Kind::Is(wanted) => op == wanted,
            Kind::View => op.is_view(),
        }
    }
}

/// Operands of a pattern.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// These.
    List(&'static [Pattern]),
    /// Any number, each matching the pattern; its variables are bound to lists.
    Each(&'static Pattern),
    /// One of them matches the pattern, at the place [`Bound::at`]; the others are bound to a list.
    One(&'static Pattern, u8),
}

/// What a law's right side is made of.
#[derive(Clone, Copy, Debug)]
pub enum Right {
    /// What is bound: a value, or within [`RightArgs::Each`] one of a list.
    Bound(u8),
    /// A new value.
    Node(Make, RightArgs),
}

/// Operands of a new value.
#[derive(Clone, Copy, Debug)]
pub enum RightArgs {
    /// These.
    List(&'static [Right]),
    /// One for each entry of the list that is bound to the variable.
    Each(u8, &'static Right),
    /// The list of the first variable in place of the one that [`Args::One`] found among those of the second.
    Splice(u8, u8),
    /// Some of a list.
    Some(u8, Choose),
}

/// A new value before its operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// Operation.
    pub op: Op,
    /// Attributes.
    pub attrs: Vec<u32>,
    /// Shape, where attributes do not determine it.
    pub shape: Option<Shape>,
}

/// Declares a named function of a [`Scope`].
macro_rules! named {
    ($(#[$meta:meta])* $name:ident -> $result:ty) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub struct $name {
            /// Name, for reports and hashes.
            pub name: &'static str,
            /// The function.
            pub of: fn(&mut Scope<'_>) -> $result,
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name)
            }
        }
    };
}

named! {
    /// Operation, attributes and shape of a new value; nothing where the law does not apply.
    Make -> Option<Made>
}
named! {
    /// Places in a list, in the order in which they are used.
    Choose -> Option<Vec<usize>>
}
named! {
    /// A side condition.
    Fact -> bool
}

/// A law of the value graph.
#[derive(Clone, Copy, Debug)]
pub struct ValueRule {
    /// Number, name and proof.
    pub head: Head,
    /// What is looked for.
    pub lhs: Pattern,
    /// What it equals.
    pub rhs: Right,
    /// What must hold of what is bound.
    pub facts: &'static [Fact],
}

/// All value rules, by family; numbers ascend.
pub fn all() -> impl Iterator<Item = &'static ValueRule> {
    let families = [
        views::RULES,
        repeated::RULES,
        concats::RULES,
        maps::RULES,
        quantised::RULES,
        products::RULES,
        reductions::RULES,
        choose::RULES,
    ];
    families.into_iter().flatten()
}

/// The rule of a number.
pub fn by_number(number: u32) -> Option<&'static ValueRule> {
    all().find(|rule| rule.head.number == number)
}

/// Declares a family's rows: number, name, law, sides, facts where there are any.
macro_rules! value_laws {
    ($family:literal; $($number:literal $name:literal $law:literal: $lhs:expr => $rhs:expr
        $(, if $($fact:ident),+)?;)*) => {
        &[$($crate::rules::value::ValueRule {
            head: $crate::rules::Head {
                number: $number,
                name: $name,
                law: $law,
                family: $family,
                proof: $crate::rules::Proof::Structural,
            },
            lhs: $lhs,
            rhs: $rhs,
            facts: &[$($($crate::rules::value::Fact { name: stringify!($fact), of: $fact }),+)?],
        }),*]
    };
}
use value_laws;

/// A new value by the function of this name.
macro_rules! make {
    ($name:ident) => {
        $crate::rules::value::Make { name: stringify!($name), of: $name }
    };
}
use make;

/// Variables of the tables: the value that is rewritten, an operation below it, and what these take.
mod names {
    pub const ROOT: u8 = 0;
    pub const INNER: u8 = 1;
    pub const X: u8 = 2;
    pub const Y: u8 = 3;
    pub const REST: u8 = 4;
}
