//! Wrapping integers; quotients round down and remainders are never negative.

use super::Fact::{LowBits, Power};
use super::Term::{I32, Op};
use super::terms::*;
use super::{ScalarRule, laws};
use crate::scalar::ScalarOp::*;

pub(super) const RULES: &[ScalarRule] = laws! { "integers";
    261 "add-int-associates" "(i + j) + k = i + (j + k)":
        Op(AddI, &[Op(AddI, &[I, J]), K]) => Op(AddI, &[I, Op(AddI, &[J, K])]); Smt
    262 "sub-int-self" "i - i = 0": Op(SubI, &[I, I]) => I32(0); Smt
    263 "mul-int-zero" "i * 0 = 0": Op(MulI, &[I, I32(0)]) => I32(0); Smt
    264 "min-int-self" "min(i, i) = i": Op(MinI, &[I, I]) => I; Smt
    265 "max-int-self" "max(i, i) = i": Op(MaxI, &[I, I]) => I; Smt
    266 "div-int-power" "i div n = i >> o for n = 2^o": Op(DivI, &[I, N]) => Op(SarI, &[I, O]), if Power(4, 5); Smt
    267 "rem-int-power" "i mod n = i & o for n = 2^k, o = n - 1":
        Op(RemI, &[I, N]) => Op(AndI, &[I, O]), if LowBits(4, 5); Smt
    268 "mul-int-power" "i * n = i << o for n = 2^o": Op(MulI, &[I, N]) => Op(ShlI, &[I, O]), if Power(4, 5); Smt
};
