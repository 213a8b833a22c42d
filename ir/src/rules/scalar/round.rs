//! Roundings to storage formats and to integers.

use super::Term::Op;
use super::terms::*;
use super::{ScalarRule, laws};
use crate::scalar::ScalarOp::*;

pub(super) const RULES: &[ScalarRule] = laws! { "rounding";
    231 "f16-twice" "f16(f16(x)) = f16(x)": Op(RoundF16, &[Op(RoundF16, &[X])]) => Op(RoundF16, &[X]); Smt
    232 "bf16-twice" "bf16(bf16(x)) = bf16(x)": Op(RoundBf16, &[Op(RoundBf16, &[X])]) => Op(RoundBf16, &[X]); Smt
    233 "e4m3-twice" "e4m3(e4m3(x)) = e4m3(x)": Op(RoundE4m3, &[Op(RoundE4m3, &[X])]) => Op(RoundE4m3, &[X]); Exhaustive
    234 "e2m1-twice" "e2m1(e2m1(x)) = e2m1(x)": Op(RoundE2m1, &[Op(RoundE2m1, &[X])]) => Op(RoundE2m1, &[X]); Exhaustive
    235 "f16-of-neg" "f16(-x) = -f16(x)":
        Op(RoundF16, &[Op(Neg, &[X])]) => Op(Neg, &[Op(RoundF16, &[X])]); Smt
    236 "f16-of-e4m3" "f16(e4m3(x)) = e4m3(x)": Op(RoundF16, &[Op(RoundE4m3, &[X])]) => Op(RoundE4m3, &[X]); Exhaustive
    237 "bf16-of-e2m1" "bf16(e2m1(x)) = e2m1(x)": Op(RoundBf16, &[Op(RoundE2m1, &[X])]) => Op(RoundE2m1, &[X]); Exhaustive
    238 "round-twice" "even(even(x)) = even(x)": Op(RoundEven, &[Op(RoundEven, &[X])]) => Op(RoundEven, &[X]); Smt
    239 "floor-twice" "floor(floor(x)) = floor(x)": Op(Floor, &[Op(Floor, &[X])]) => Op(Floor, &[X]); Smt
    240 "floor-of-ceil" "floor(ceil(x)) = ceil(x)": Op(Floor, &[Op(Ceil, &[X])]) => Op(Ceil, &[X]); Smt
    241 "trunc-of-floor" "trunc(floor(x)) = floor(x)": Op(Trunc, &[Op(Floor, &[X])]) => Op(Floor, &[X]); Smt
    242 "floor-of-int" "floor(float(i)) = float(i)": Op(Floor, &[Op(FloatOf, &[I])]) => Op(FloatOf, &[I]); Smt
    243 "bits-there-and-back" "from_bits(to_bits(x)) = x": Op(FromBits, &[Op(ToBits, &[X])]) => X; Smt
};
