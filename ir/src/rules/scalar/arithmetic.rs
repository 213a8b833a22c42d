//! Signs, differences, doubles, quotients by powers of two, and constants that are computed when a model is compiled.

use super::Fact::{EvaluatesTo, Reciprocal};
use super::Term::{Any, Literal, Op};
use super::terms::*;
use super::{ScalarRule, laws};
use crate::scalar::ScalarOp::*;
use crate::scalar::ScalarType;

pub(super) const RULES: &[ScalarRule] = laws! { "arithmetic";
    201 "neg-neg" "-(-x) = x": Op(Neg, &[Op(Neg, &[X])]) => X; Smt
    202 "abs-abs" "||x|| = |x|": Op(Abs, &[Op(Abs, &[X])]) => Op(Abs, &[X]); Smt
    203 "abs-neg" "|-x| = |x|": Op(Abs, &[Op(Neg, &[X])]) => Op(Abs, &[X]); Smt
    204 "sub-as-add" "x - y = x + (-y)": Op(Sub, &[X, Y]) => Op(Add, &[X, Op(Neg, &[Y])]); Smt
    205 "add-as-sub" "x + (-y) = x - y": Op(Add, &[X, Op(Neg, &[Y])]) => Op(Sub, &[X, Y]); Smt
    206 "neg-of-mul" "-(x * y) = (-x) * y": Op(Neg, &[Op(Mul, &[X, Y])]) => Op(Mul, &[Op(Neg, &[X]), Y]); Smt
    207 "mul-of-neg" "(-x) * y = -(x * y)": Op(Mul, &[Op(Neg, &[X]), Y]) => Op(Neg, &[Op(Mul, &[X, Y])]); Smt
    208 "neg-of-div" "-(x / y) = (-x) / y": Op(Neg, &[Op(Div, &[X, Y])]) => Op(Div, &[Op(Neg, &[X]), Y]); Smt
    209 "neg-from-negative-zero" "(-0) - x = -x": Op(Sub, &[f(-0.0), X]) => Op(Neg, &[X]); Smt
    210 "mul-minus-one" "x * (-1) = -x": Op(Mul, &[X, f(-1.0)]) => Op(Neg, &[X]); Smt
    211 "double" "2 * x = x + x": Op(Mul, &[f(2.0), X]) => Op(Add, &[X, X]); Smt
    212 "double-back" "x + x = 2 * x": Op(Add, &[X, X]) => Op(Mul, &[f(2.0), X]); Smt
    213 "div-by-power" "x / l = x * m for l = 2^k, m = 2^-k":
        Op(Div, &[X, L]) => Op(Mul, &[X, M]), if Reciprocal(4, 5); Smt
    214 "abs-of-mul" "|x * y| = |x| * |y|": Op(Abs, &[Op(Mul, &[X, Y])]) => Op(Mul, &[Op(Abs, &[X]), Op(Abs, &[Y])]); Smt
    215 "constant" "a float expression of constants is its value":
        Any(0, ScalarType::F32) => Literal(4, ScalarType::F32), if EvaluatesTo(0, 4); Evaluation
    216 "constant-int" "an integer expression of constants is its value":
        Any(0, ScalarType::I32) => Literal(4, ScalarType::I32), if EvaluatesTo(0, 4); Evaluation
};
