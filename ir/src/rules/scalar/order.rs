//! Minimum and maximum in the contract's order: -0 below +0, NaN if an operand is.

use super::Fact::Ordered;
use super::Term::Op;
use super::terms::*;
use super::{ScalarRule, laws};
use crate::scalar::ScalarOp::*;

pub(super) const RULES: &[ScalarRule] = laws! { "order";
    141 "min-self" "min(x, x) = x": Op(Min, &[X, X]) => X; Smt
    142 "max-self" "max(x, x) = x": Op(Max, &[X, X]) => X; Smt
    143 "min-associates" "min(min(x, y), z) = min(x, min(y, z))":
        Op(Min, &[Op(Min, &[X, Y]), Z]) => Op(Min, &[X, Op(Min, &[Y, Z])]); Smt
    144 "max-associates" "max(max(x, y), z) = max(x, max(y, z))":
        Op(Max, &[Op(Max, &[X, Y]), Z]) => Op(Max, &[X, Op(Max, &[Y, Z])]); Smt
    145 "clamp-exchanged" "min(max(x, l), m) = max(min(x, m), l) for constants l <= m":
        Op(Min, &[Op(Max, &[X, L]), M]) => Op(Max, &[Op(Min, &[X, M]), L]), if Ordered(4, 5); Smt
    146 "clamp-of-clamp" "min(max(min(max(x, l), m), l), m) = min(max(x, l), m)":
        Op(Min, &[Op(Max, &[Op(Min, &[Op(Max, &[X, L]), M]), L]), M]) => Op(Min, &[Op(Max, &[X, L]), M]); Smt
    147 "neg-of-max" "-max(x, y) = min(-x, -y)":
        Op(Neg, &[Op(Max, &[X, Y])]) => Op(Min, &[Op(Neg, &[X]), Op(Neg, &[Y])]); Smt
    148 "neg-of-min" "-min(x, y) = max(-x, -y)":
        Op(Neg, &[Op(Min, &[X, Y])]) => Op(Max, &[Op(Neg, &[X]), Op(Neg, &[Y])]); Smt
    149 "max-of-f16" "max(f16(x), f16(y)) = f16(max(x, y))":
        Op(Max, &[Op(RoundF16, &[X]), Op(RoundF16, &[Y])]) => Op(RoundF16, &[Op(Max, &[X, Y])]); Smt
};
