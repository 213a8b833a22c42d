//! Operands that change nothing.

use super::Term::{I32, Op};
use super::terms::*;
use super::{ScalarRule, laws};
use crate::scalar::ScalarOp::*;

pub(super) const RULES: &[ScalarRule] = laws! { "neutral operands";
    101 "mul-one" "x * 1 = x": Op(Mul, &[X, f(1.0)]) => X; Smt
    102 "add-negative-zero" "x + (-0) = x": Op(Add, &[X, f(-0.0)]) => X; Smt
    103 "sub-zero" "x - (+0) = x": Op(Sub, &[X, f(0.0)]) => X; Smt
    104 "div-one" "x / 1 = x": Op(Div, &[X, f(1.0)]) => X; Smt
    105 "add-int-zero" "i + 0 = i": Op(AddI, &[I, I32(0)]) => I; Smt
    106 "sub-int-zero" "i - 0 = i": Op(SubI, &[I, I32(0)]) => I; Smt
    107 "mul-int-one" "i * 1 = i": Op(MulI, &[I, I32(1)]) => I; Smt
    108 "div-int-one" "i div 1 = i": Op(DivI, &[I, I32(1)]) => I; Smt
    109 "or-zero" "i | 0 = i": Op(OrI, &[I, I32(0)]) => I; Smt
    110 "and-ones" "i & -1 = i": Op(AndI, &[I, I32(-1)]) => I; Smt
    111 "shift-none" "i << 0 = i": Op(ShlI, &[I, I32(0)]) => I; Smt
};
