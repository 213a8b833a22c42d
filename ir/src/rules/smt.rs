//! The obligation of a scalar law as SMT-LIB text: no inputs make the two sides differ.
//!
//! Equality is `=` of the floating-point sort: NaN is one value, -0 and +0 are two. That is the contract's relation.
//! Minimum and maximum are defined, since those of the standard leave the order of the zeros open. The functions of
//! the contract stay uninterpreted everywhere.

use std::fmt::Write;

use super::Proof;
use super::scalar::{Fact, ScalarRule, Term};
use crate::scalar::{ScalarOp, ScalarType};

const DEFINITIONS: &str = "\
(define-fun nan () Float32 (_ NaN 8 24))
(define-fun least ((x Float32) (y Float32)) Float32
  (ite (or (fp.isNaN x) (fp.isNaN y)) nan (ite (fp.lt x y) x (ite (fp.lt y x) y (ite (fp.isNegative x) x y)))))
(define-fun most ((x Float32) (y Float32)) Float32
  (ite (or (fp.isNaN x) (fp.isNaN y)) nan (ite (fp.lt x y) y (ite (fp.lt y x) x (ite (fp.isNegative x) y x)))))
(define-fun floor-div ((i (_ BitVec 32)) (n (_ BitVec 32))) (_ BitVec 32)
  (ite (bvslt (bvsrem i n) #x00000000) (bvsub (bvsdiv i n) #x00000001) (bvsdiv i n)))
(define-fun floor-rem ((i (_ BitVec 32)) (n (_ BitVec 32))) (_ BitVec 32)
  (ite (bvslt (bvsrem i n) #x00000000) (bvadd (bvsrem i n) n) (bvsrem i n)))
(declare-fun exp (Float32) Float32)
(declare-fun log (Float32) Float32)
(declare-fun log1p (Float32) Float32)
(declare-fun sin (Float32) Float32)
(declare-fun cos (Float32) Float32)
";

/// The obligation: unsatisfiable if the law holds. Nothing for operations that have no encoding.
pub fn obligation(rule: &ScalarRule) -> Option<String> {
    let mut writer = Writer { uninterpreted: rule.head.proof == Proof::Uninterpreted, ..Writer::default() };
    let (lhs, rhs) = (writer.term(&rule.lhs)?, writer.term(&rule.rhs)?);
    for fact in rule.facts {
        writer.fact(*fact)?;
    }
    let logic = if writer.uninterpreted { "QF_UF" } else { "QF_UFBVFP" };
    let mut text = format!("; {}\n(set-logic {logic})\n", rule.head.law);
    text += if writer.uninterpreted { "(declare-sort F 0)\n(declare-sort I 0)\n" } else { DEFINITIONS };
    writer.declared.iter().for_each(|line| text += line);
    writer.asserted.iter().for_each(|line| text += line);
    let _ = writeln!(text, "(assert (not (= {lhs} {rhs})))\n(check-sat)");
    Some(text)
}

#[derive(Default)]
struct Writer {
    uninterpreted: bool,
    declared: Vec<String>,
    asserted: Vec<String>,
    fresh: usize,
}

impl Writer {
    fn sort(&self, ty: ScalarType) -> &'static str {
        match (ty, self.uninterpreted) {
            (ScalarType::Bool, _) => "Bool",
            (ScalarType::F32, true) => "F",
            (_, true) => "I",
            (ScalarType::F32, false) => "Float32",
            (_, false) => "(_ BitVec 32)",
        }
    }

    fn declare(&mut self, line: String) {
        if !self.declared.contains(&line) {
            self.declared.push(line);
        }
    }

    fn assert(&mut self, condition: String) {
        let line = format!("(assert {condition})\n");
        if !self.asserted.contains(&line) {
            self.asserted.push(line);
        }
    }

    fn variable(&mut self, variable: u8, ty: ScalarType) -> String {
        let name = format!("{}{variable}", ty.name());
        self.declare(format!("(declare-const {name} {})\n", self.sort(ty)));
        name
    }

    fn term(&mut self, term: &Term) -> Option<String> {
        Some(match *term {
            Term::Any(variable, ty) => self.variable(variable, ty),
            Term::Literal(variable, ty) => self.literal(variable, ty),
            Term::F32(bits) if !self.uninterpreted => float(&bits_text(bits)),
            Term::I32(value) if !self.uninterpreted => bits_text(value as u32),
            Term::F32(_) | Term::I32(_) => return None,
            Term::Op(op, terms) => {
                let args: Option<Vec<String>> = terms.iter().map(|term| self.term(term)).collect();
                self.operation(op, &args?)?
            }
        })
    }

    /// A literal is a bit pattern, so that facts can speak of it.
    fn literal(&mut self, variable: u8, ty: ScalarType) -> String {
        let name = format!("literal{variable}");
        self.declare(format!("(declare-const {name} (_ BitVec 32))\n"));
        if ty == ScalarType::F32 { float(&name) } else { name }
    }

    fn operation(&mut self, op: ScalarOp, args: &[String]) -> Option<String> {
        let joined = args.join(" ");
        let logic = match op {
            ScalarOp::SelectF32 | ScalarOp::SelectI => "ite",
            ScalarOp::And => "and",
            ScalarOp::Or => "or",
            ScalarOp::Not => "not",
            _ if self.uninterpreted => return Some(self.uninterpreted(op, &joined)),
            ScalarOp::DivI | ScalarOp::RemI => {
                self.assert(format!("(bvsgt {} #x00000000)", args[1]));
                return interpreted(op, &joined);
            }
            ScalarOp::ToBits => return Some(self.bits_of(&joined)),
            ScalarOp::IdWhere => return Some(self.id_where(args)),
            _ => return interpreted(op, &joined),
        };
        Some(format!("({logic} {joined})"))
    }

    fn uninterpreted(&mut self, op: ScalarOp, joined: &str) -> String {
        let (params, result) = op.signature().unwrap_or((&[], ScalarType::F32));
        let sorts: Vec<&str> = params.iter().map(|&ty| self.sort(ty)).collect();
        self.declare(format!("(declare-fun {} ({}) {})\n", op.name(), sorts.join(" "), self.sort(result)));
        format!("({} {joined})", op.name())
    }

    /// The pattern of a float is the one that gives it back; that of NaN is the canonical one.
    fn bits_of(&mut self, x: &str) -> String {
        self.fresh += 1;
        let name = format!("bits{}", self.fresh);
        self.declare(format!("(declare-const {name} (_ BitVec 32))\n"));
        self.assert(format!("(= {} {x})", float(&name)));
        self.assert(format!("(=> (fp.isNaN {x}) (= {name} #x7fc00000))"));
        name
    }

    /// An index that is taken is not negative, else the step is at fault; the masked id is all ones.
    fn id_where(&mut self, args: &[String]) -> String {
        self.assert(format!("(=> {} (bvsge {} #x00000000))", args[0], args[1]));
        format!("(ite {} {} #xffffffff)", args[0], args[1])
    }

    fn fact(&mut self, fact: Fact) -> Option<()> {
        let name = |variable: u8| format!("literal{variable}");
        let condition = match fact {
            Fact::Reciprocal(l, m) => {
                let (l, m) = (name(l), name(m));
                format!(
                    "(and (= ((_ extract 31 31) {l}) #b0) (= ((_ extract 22 0) {l}) (_ bv0 23)) \
                     (bvuge ((_ extract 30 23) {l}) #x01) (bvule ((_ extract 30 23) {l}) #xfd) \
                     (= {m} (concat #b0 (bvsub #xfe ((_ extract 30 23) {l})) (_ bv0 23))))"
                )
            }
            Fact::Ordered(l, m) => {
                let key = |x: &str| format!("(bvxor {x} (bvand (bvashr {x} #x0000001f) #x7fffffff))");
                let (l, m) = (name(l), name(m));
                let numbers = format!("(not (fp.isNaN {})) (not (fp.isNaN {}))", float(&l), float(&m));
                format!("(and {numbers} (bvsle {} {}))", key(&l), key(&m))
            }
            Fact::Power(n, k) => {
                let (n, k) = (name(n), name(k));
                format!("(and (bvule {k} #x0000001e) (= {n} (bvshl #x00000001 {k})))")
            }
            Fact::LowBits(n, low) => {
                let (n, low) = (name(n), name(low));
                format!(
                    "(and (bvsgt {n} #x00000000) (= (bvand {n} (bvsub {n} #x00000001)) #x00000000) \
                     (= {low} (bvsub {n} #x00000001)))"
                )
            }
            Fact::EvaluatesTo(..) => return None,
        };
        self.assert(condition);
        Some(())
    }
}

fn bits_text(word: u32) -> String {
    format!("#x{word:08x}")
}

fn float(bits: &str) -> String {
    format!("((_ to_fp 8 24) {bits})")
}

/// An operation whose meaning the theories have.
fn interpreted(op: ScalarOp, args: &str) -> Option<String> {
    use ScalarOp::*;
    let through = |sort: &str| format!("((_ to_fp 8 24) RNE ((_ to_fp {sort}) RNE {args}))");
    let name = match op {
        Add => "fp.add RNE",
        Sub => "fp.sub RNE",
        Mul => "fp.mul RNE",
        Div => "fp.div RNE",
        Sqrt => "fp.sqrt RNE",
        Neg => "fp.neg",
        Abs => "fp.abs",
        Min => "least",
        Max => "most",
        Exp | Log | Log1p | Sin | Cos => op.name(),
        Floor => "fp.roundToIntegral RTN",
        Ceil => "fp.roundToIntegral RTP",
        Trunc => "fp.roundToIntegral RTZ",
        RoundEven => "fp.roundToIntegral RNE",
        RoundF16 => return Some(through("5 11")),
        RoundBf16 => return Some(through("8 8")),
        FloatOf => "(_ to_fp 8 24) RNE",
        FromBits => "(_ to_fp 8 24)",
        AddI => "bvadd",
        SubI => "bvsub",
        MulI => "bvmul",
        DivI => "floor-div",
        RemI => "floor-rem",
        AndI => "bvand",
        OrI => "bvor",
        XorI => "bvxor",
        ShlI => "bvshl",
        ShrI => "bvlshr",
        SarI => "bvashr",
        LtF => "fp.lt",
        EqF => "fp.eq",
        LtI => "bvslt",
        EqI => "=",
        MinI => return Some(ordered_pair("bvsle", args)),
        MaxI => return Some(ordered_pair("bvsge", args)),
        Present => return Some(format!("(not (= {args} #xffffffff))")),
        _ => return None,
    };
    Some(format!("({name} {args})"))
}

/// The first operand where the comparison holds, else the second.
fn ordered_pair(comparison: &str, args: &str) -> String {
    format!("(ite ({comparison} {args}) {args})")
}
