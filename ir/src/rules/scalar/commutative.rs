//! Operations whose operands may be exchanged. Sums of floats are not regrouped: that is another sum.

use super::Term::Op;
use super::terms::*;
use super::{ScalarRule, laws};
use crate::scalar::ScalarOp::*;

pub(super) const RULES: &[ScalarRule] = laws! { "exchanged operands";
    121 "add-commutes" "x + y = y + x": Op(Add, &[X, Y]) => Op(Add, &[Y, X]); Smt
    122 "mul-commutes" "x * y = y * x": Op(Mul, &[X, Y]) => Op(Mul, &[Y, X]); Smt
    123 "min-commutes" "min(x, y) = min(y, x)": Op(Min, &[X, Y]) => Op(Min, &[Y, X]); Smt
    124 "max-commutes" "max(x, y) = max(y, x)": Op(Max, &[X, Y]) => Op(Max, &[Y, X]); Smt
    125 "add-int-commutes" "i + j = j + i": Op(AddI, &[I, J]) => Op(AddI, &[J, I]); Smt
    126 "mul-int-commutes" "i * j = j * i": Op(MulI, &[I, J]) => Op(MulI, &[J, I]); Smt
    127 "min-int-commutes" "min(i, j) = min(j, i)": Op(MinI, &[I, J]) => Op(MinI, &[J, I]); Smt
    128 "max-int-commutes" "max(i, j) = max(j, i)": Op(MaxI, &[I, J]) => Op(MaxI, &[J, I]); Smt
    129 "equal-commutes" "(x == y) = (y == x)": Op(EqF, &[X, Y]) => Op(EqF, &[Y, X]); Smt
    130 "both-commutes" "p and q = q and p": Op(And, &[P, Q]) => Op(And, &[Q, P]); Smt
    131 "either-commutes" "p or q = q or p": Op(Or, &[P, Q]) => Op(Or, &[Q, P]); Smt
};
