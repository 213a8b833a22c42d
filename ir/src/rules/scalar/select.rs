//! Selections. What is computed in both arms may be computed behind them; that holds whatever the operation computes.

use super::Term::{Any, Op};
use super::terms::*;
use super::{ScalarRule, Term, laws};
use crate::scalar::ScalarOp::*;
use crate::scalar::ScalarType;

/// A condition beside integers.
const D: Term = Any(3, ScalarType::Bool);

pub(super) const RULES: &[ScalarRule] = laws! { "selection";
    161 "equal-arms" "select(c, x, x) = x": Op(SelectF32, &[C, X, X]) => X; Uninterpreted
    162 "equal-arms-int" "select(c, i, i) = i": Op(SelectI, &[D, I, I]) => I; Uninterpreted
    163 "select-not" "select(not c, x, y) = select(c, y, x)":
        Op(SelectF32, &[Op(Not, &[C]), X, Y]) => Op(SelectF32, &[C, Y, X]); Uninterpreted
    164 "select-not-int" "select(not c, i, j) = select(c, j, i)":
        Op(SelectI, &[Op(Not, &[D]), I, J]) => Op(SelectI, &[D, J, I]); Uninterpreted
    165 "not-not" "not not p = p": Op(Not, &[Op(Not, &[P])]) => P; Uninterpreted
    166 "select-select" "select(c, select(c, x, y), z) = select(c, x, z)":
        Op(SelectF32, &[C, Op(SelectF32, &[C, X, Y]), Z]) => Op(SelectF32, &[C, X, Z]); Uninterpreted
    167 "neg-behind-select" "select(c, -x, -y) = -select(c, x, y)":
        Op(SelectF32, &[C, Op(Neg, &[X]), Op(Neg, &[Y])]) => Op(Neg, &[Op(SelectF32, &[C, X, Y])]); Uninterpreted
    168 "exp-behind-select" "select(c, exp(x), exp(y)) = exp(select(c, x, y))":
        Op(SelectF32, &[C, Op(Exp, &[X]), Op(Exp, &[Y])]) => Op(Exp, &[Op(SelectF32, &[C, X, Y])]); Uninterpreted
    169 "sqrt-behind-select" "select(c, sqrt(x), sqrt(y)) = sqrt(select(c, x, y))":
        Op(SelectF32, &[C, Op(Sqrt, &[X]), Op(Sqrt, &[Y])]) => Op(Sqrt, &[Op(SelectF32, &[C, X, Y])]); Uninterpreted
    170 "f16-behind-select" "select(c, f16(x), f16(y)) = f16(select(c, x, y))":
        Op(SelectF32, &[C, Op(RoundF16, &[X]), Op(RoundF16, &[Y])]) => Op(RoundF16, &[Op(SelectF32, &[C, X, Y])]);
        Uninterpreted
    171 "add-behind-select" "select(c, x + z, y + z) = select(c, x, y) + z":
        Op(SelectF32, &[C, Op(Add, &[X, Z]), Op(Add, &[Y, Z])]) => Op(Add, &[Op(SelectF32, &[C, X, Y]), Z]); Uninterpreted
    172 "sub-behind-select" "select(c, x - z, y - z) = select(c, x, y) - z":
        Op(SelectF32, &[C, Op(Sub, &[X, Z]), Op(Sub, &[Y, Z])]) => Op(Sub, &[Op(SelectF32, &[C, X, Y]), Z]); Uninterpreted
    173 "mul-behind-select" "select(c, x * z, y * z) = select(c, x, y) * z":
        Op(SelectF32, &[C, Op(Mul, &[X, Z]), Op(Mul, &[Y, Z])]) => Op(Mul, &[Op(SelectF32, &[C, X, Y]), Z]); Uninterpreted
    174 "div-behind-select" "select(c, x / z, y / z) = select(c, x, y) / z":
        Op(SelectF32, &[C, Op(Div, &[X, Z]), Op(Div, &[Y, Z])]) => Op(Div, &[Op(SelectF32, &[C, X, Y]), Z]); Uninterpreted
    175 "max-behind-select" "select(c, max(x, z), max(y, z)) = max(select(c, x, y), z)":
        Op(SelectF32, &[C, Op(Max, &[X, Z]), Op(Max, &[Y, Z])]) => Op(Max, &[Op(SelectF32, &[C, X, Y]), Z]); Uninterpreted
    176 "min-behind-select" "select(c, min(x, z), min(y, z)) = min(select(c, x, y), z)":
        Op(SelectF32, &[C, Op(Min, &[X, Z]), Op(Min, &[Y, Z])]) => Op(Min, &[Op(SelectF32, &[C, X, Y]), Z]); Uninterpreted
    177 "present-id" "present(id_where(p, j)) = p": Op(Present, &[Op(IdWhere, &[P, J])]) => P; Smt
};
