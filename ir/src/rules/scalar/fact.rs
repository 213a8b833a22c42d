//! What must hold of a law's literals. The checker decides each fact on the tables; the search asks for the literal
//! that is missing.

use super::{Bound, Nodes, VARIABLES};
use crate::scalar::{ScalarOp, ScalarType, scalar_type};

/// A named side condition on variables of a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// The first float is a power of two from 2^-126 to 2^126, the second its reciprocal.
    Reciprocal(u8, u8),
    /// Neither float is NaN, and the first is not above the second in the contract's order.
    Ordered(u8, u8),
    /// The first integer is 2^k, the second k, from 0 to 30.
    Power(u8, u8),
    /// The first integer is 2^k from 1 to 2^30, the second one less.
    LowBits(u8, u8),
    /// The first scalar is an operation on constants alone and has the value of the second, which is no NaN.
    EvaluatesTo(u8, u8),
}

impl Fact {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Fact::Reciprocal(..) => "reciprocal powers of two",
            Fact::Ordered(..) => "ordered constants",
            Fact::Power(..) => "power of two and its exponent",
            Fact::LowBits(..) => "power of two and the bits below",
            Fact::EvaluatesTo(..) => "value of constants",
        }
    }

    /// Whether it holds; a variable that is not bound makes it false.
    pub fn holds(self, nodes: &Nodes<'_>, bound: &Bound) -> bool {
        let word = |variable: u8| bound[variable as usize].and_then(|x| nodes.literal(x));
        match self {
            Fact::Ordered(low, high) => matches!((word(low), word(high)), (Some(l), Some(h)) if ordered(l, h)),
            _ => self.missing(nodes, bound).is_some_and(|wanted| Some(wanted) == word(self.second())),
        }
    }

    /// The word that the second literal must have, given the first variable; nothing where no literal will do, or where
    /// any may.
    pub fn missing(self, nodes: &Nodes<'_>, bound: &Bound) -> Option<u32> {
        let word = |variable: u8| bound[variable as usize].and_then(|x| nodes.literal(x));
        match self {
            Fact::Ordered(..) => None,
            Fact::Reciprocal(first, _) => reciprocal(word(first)?),
            Fact::Power(first, _) => exponent(word(first)?),
            Fact::LowBits(first, _) => exponent(word(first)?).map(|k| (1 << k) - 1),
            Fact::EvaluatesTo(first, _) => nodes.evaluate(bound[first as usize]?),
        }
    }

    /// Whether that literal is a float.
    pub fn second_is_float(self, nodes: &Nodes<'_>, bound: &Bound) -> bool {
        match self {
            Fact::Reciprocal(..) | Fact::Ordered(..) => true,
            Fact::Power(..) | Fact::LowBits(..) => false,
            Fact::EvaluatesTo(first, _) => {
                bound[first as usize].and_then(|x| scalar_type(nodes.0, x)) == Some(ScalarType::F32)
            }
        }
    }

    /// Changes drawn words so that the fact holds; nothing if it cannot.
    pub(super) fn make_true(self, words: &mut [u32; VARIABLES]) -> Option<()> {
        match self {
            Fact::Reciprocal(first, second) => {
                words[first as usize] = (1 + words[first as usize] % 253) << 23;
                words[second as usize] = reciprocal(words[first as usize])?;
            }
            Fact::Ordered(low, high) => {
                let (l, h) = (words[low as usize], words[high as usize]);
                let is_ordered = ordered(l, h);
                (words[low as usize], words[high as usize]) = if is_ordered { (l, h) } else { (h, l) };
                (is_ordered || ordered(h, l)).then_some(())?;
            }
            Fact::Power(first, second) => {
                words[first as usize] = 1 << (words[first as usize] % 31);
                words[second as usize] = exponent(words[first as usize])?;
            }
            Fact::LowBits(first, second) => {
                words[first as usize] = 1 << (words[first as usize] % 31);
                words[second as usize] = words[first as usize] - 1;
            }
            Fact::EvaluatesTo(first, second) => words[second as usize] = words[first as usize],
        }
        Some(())
    }

    /// The literal that [`Fact::missing`] gives.
    pub fn second(self) -> u8 {
        match self {
            Fact::Reciprocal(_, second)
            | Fact::Ordered(_, second)
            | Fact::Power(_, second)
            | Fact::LowBits(_, second)
            | Fact::EvaluatesTo(_, second) => second,
        }
    }
}

fn ordered(low: u32, high: u32) -> bool {
    let key = |bits: u32| (bits as i32) ^ ((bits as i32 >> 31) & 0x7fff_ffff);
    let is_nan = |bits: u32| f32::from_bits(bits).is_nan();
    !is_nan(low) && !is_nan(high) && key(low) <= key(high)
}

fn reciprocal(bits: u32) -> Option<u32> {
    let exponent = bits >> 23;
    ((1..=253).contains(&exponent) && bits & 0x007f_ffff == 0).then(|| (254 - exponent) << 23)
}

fn exponent(word: u32) -> Option<u32> {
    (word.is_power_of_two() && word < 1 << 31).then(|| word.trailing_zeros())
}

/// Whether a node is an operation: constants have their value already.
pub(super) fn is_operation(op: ScalarOp) -> bool {
    op.signature().is_some()
}

/// Most operations of a constant expression.
pub(super) const MOST_OPERATIONS: usize = 64;
