//! Matching a law's sides on scalar nodes of verified tables.

use super::fact::{MOST_OPERATIONS, is_operation};
use super::{ScalarRule, Term, VARIABLES};
use crate::eval::apply;
use crate::scalar::{Scalar, ScalarOp, ScalarRow, ScalarType, operands, scalar_type};

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
        let float = op.signature()?.1 == ScalarType::F32;
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
    instance(rule, nodes, a, b).is_some()
}

/// The same, with what the law's variables stand for.
pub fn instance(rule: &ScalarRule, nodes: &Nodes<'_>, a: Scalar, b: Scalar) -> Option<Bound> {
    let mut bound = Bound::default();
    let holds = bind(nodes, &rule.lhs, a, &mut bound)
        && bind(nodes, &rule.rhs, b, &mut bound)
        && rule.facts.iter().all(|fact| fact.holds(nodes, &bound));
    holds.then_some(bound)
}

/// A law with its variables as words.
pub struct Instance<'a> {
    rule: &'a ScalarRule,
    words: [u32; VARIABLES],
}

impl<'a> Instance<'a> {
    /// The law at these inputs, a float and an integer for each variable; literals that facts determine have the word that
    /// they must have. Nothing if a fact cannot hold.
    pub fn new(rule: &'a ScalarRule, drawn: &[(u32, u32)]) -> Option<Instance<'a>> {
        let mut words = [0; VARIABLES];
        fill(&rule.lhs, drawn, &mut words);
        fill(&rule.rhs, drawn, &mut words);
        rule.facts.iter().try_for_each(|fact| fact.make_true(&mut words))?;
        Some(Instance { rule, words })
    }

    /// What the two sides give, if it is not the same; nothing where one of them is not defined.
    pub fn difference(&self) -> Option<String> {
        let (a, b) = (value_of(&self.rule.lhs, &self.words)?, value_of(&self.rule.rhs, &self.words)?);
        let float = result_type(&self.rule.lhs) == ScalarType::F32;
        let nan = |word: u32| float && f32::from_bits(word).is_nan();
        let same = a == b || nan(a) && nan(b);
        (!same).then(|| format!("{:x?} gives {a:#010x} and {b:#010x}", self.words))
    }
}

fn fill(term: &Term, drawn: &[(u32, u32)], words: &mut [u32; VARIABLES]) {
    match *term {
        Term::Any(variable, ty) | Term::Literal(variable, ty) => {
            let (float, integer) = drawn.get(variable as usize).copied().unwrap_or_default();
            words[variable as usize] = match ty {
                ScalarType::F32 => float,
                ScalarType::Bool => integer & 1,
                _ => integer,
            };
        }
        Term::F32(_) | Term::I32(_) => {}
        Term::Op(_, terms) => terms.iter().for_each(|term| fill(term, drawn, words)),
    }
}

fn result_type(term: &Term) -> ScalarType {
    match *term {
        Term::Any(_, ty) | Term::Literal(_, ty) => ty,
        Term::F32(_) => ScalarType::F32,
        Term::I32(_) => ScalarType::I32,
        Term::Op(op, _) => op.signature().map_or(ScalarType::F32, |(_, result)| result),
    }
}

/// The value of a side; nothing where an operation is not defined.
fn value_of(term: &Term, words: &[u32; VARIABLES]) -> Option<u32> {
    Some(match *term {
        Term::Any(variable, _) | Term::Literal(variable, _) => words[variable as usize],
        Term::F32(bits) => bits,
        Term::I32(value) => value as u32,
        Term::Op(op, terms) => {
            let mut args = [0; 3];
            for (arg, term) in args.iter_mut().zip(terms) {
                *arg = value_of(term, words)?;
            }
            let positive_divisor = !matches!(op, ScalarOp::DivI | ScalarOp::RemI) || args[1] as i32 > 0;
            let small_shift = !matches!(op, ScalarOp::ShlI | ScalarOp::ShrI | ScalarOp::SarI) || args[1] < 32;
            (positive_divisor && small_shift).then(|| apply(op, args[0], args[1], args[2]).ok()).flatten()?
        }
    })
}

/// A law of one float variable, each side a chain of unary operations on it: quick to try on all inputs.
pub struct Unary {
    left: Vec<ScalarOp>,
    right: Vec<ScalarOp>,
}

impl Unary {
    /// The chains of a law that is of this form.
    pub fn new(rule: &ScalarRule) -> Option<Unary> {
        Some(Unary { left: chain(&rule.lhs)?, right: chain(&rule.rhs)? })
    }

    /// Whether both sides give the same for a float of these bits.
    pub fn holds(&self, bits: u32) -> bool {
        let (a, b) = (run(&self.left, bits), run(&self.right, bits));
        a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()
    }
}

fn chain(term: &Term) -> Option<Vec<ScalarOp>> {
    match *term {
        Term::Any(_, ScalarType::F32) => Some(vec![]),
        Term::Op(op, [inner]) if op.signature() == Some((&[ScalarType::F32], ScalarType::F32)) => {
            let mut ops = chain(inner)?;
            ops.push(op);
            Some(ops)
        }
        _ => None,
    }
}

/// Operations on floats are defined for all inputs.
fn run(ops: &[ScalarOp], bits: u32) -> u32 {
    ops.iter().fold(bits, |bits, &op| apply(op, bits, 0, 0).unwrap_or(0))
}
