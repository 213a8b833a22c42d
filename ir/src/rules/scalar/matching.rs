//! Matching a law's sides on scalar nodes of verified tables.

use super::fact::{MOST_OPERATIONS, is_operation};
use super::{ScalarRule, Term, VARIABLES};
use crate::eval::apply;
use crate::scalar::{Scalar, ScalarOp, ScalarRow, operands, scalar_type};

/// What each variable stands for.
pub type Bound = [Option<Scalar>; VARIABLES];

/// Scalar nodes: operands before users, of the right types.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a>(pub &'a [ScalarRow]);

impl Nodes<'_> {
    fn row(&self, x: Scalar) -> Option<&ScalarRow> {
        self.0.get(x.0 as usize)
    }

    /// The word of a constant.
    pub fn literal(&self, x: Scalar) -> Option<u32> {
        let row = self.row(x)?;
        matches!(ScalarOp::from_number(row.op)?, ScalarOp::F32 | ScalarOp::I32).then_some(row.words[0])
    }

    /// The value of an operation on constants alone; nothing if it is none, is too large or gives NaN.
    pub fn evaluate(&self, x: Scalar) -> Option<u32> {
        let row = self.row(x)?;
        let op = ScalarOp::from_number(row.op)?;
        let word = is_operation(op).then(|| self.value(x, &mut 0)).flatten()?;
        let float = op.signature()?.1 == crate::ScalarType::F32;
        (!float || !f32::from_bits(word).is_nan()).then_some(word)
    }

    fn value(&self, x: Scalar, count: &mut usize) -> Option<u32> {
        if let Some(word) = self.literal(x) {
            return Some(word);
        }
        *count += 1;
        let row = self.row(x)?;
        let op = ScalarOp::from_number(row.op)?;
        if *count > MOST_OPERATIONS || !is_operation(op) {
            return None;
        }
        let mut words = [0; 3];
        for (word, &operand) in words.iter_mut().zip(operands(row)) {
            *word = self.value(Scalar(operand), count)?;
        }
        apply(op, words[0], words[1], words[2]).ok()
    }
}

/// Matches a side on a node and binds its variables; those that are bound already must agree.
pub fn bind(nodes: &Nodes<'_>, term: &Term, x: Scalar, bound: &mut Bound) -> bool {
    let Some(row) = nodes.row(x) else { return false };
    match *term {
        Term::Any(variable, ty) => scalar_type(nodes.0, x) == Some(ty) && unify(bound, variable, x),
        Term::Literal(variable, ty) => {
            nodes.literal(x).is_some() && scalar_type(nodes.0, x) == Some(ty) && unify(bound, variable, x)
        }
        Term::F32(bits) => row.op == ScalarOp::F32 as u32 && row.words[0] == bits,
        Term::I32(value) => row.op == ScalarOp::I32 as u32 && row.words[0] == value as u32,
        Term::Op(op, terms) => {
            row.op == op as u32
                && operands(row).len() == terms.len()
                && terms.iter().zip(operands(row)).all(|(term, &x)| bind(nodes, term, Scalar(x), bound))
        }
    }
}

fn unify(bound: &mut Bound, variable: u8, x: Scalar) -> bool {
    *bound[variable as usize].get_or_insert(x) == x
}

/// Whether `a` = `b` is an instance of the law, read from left to right.
pub fn proves(rule: &ScalarRule, nodes: &Nodes<'_>, a: Scalar, b: Scalar) -> bool {
    let mut bound = Bound::default();
    bind(nodes, &rule.lhs, a, &mut bound)
        && bind(nodes, &rule.rhs, b, &mut bound)
        && rule.facts.iter().all(|fact| fact.holds(nodes, &bound))
}
