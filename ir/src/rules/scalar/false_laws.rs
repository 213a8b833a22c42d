//! Laws of the real numbers that floats do not keep. Each has a counterexample that the solvers must find: an encoding
//! that proves everything is noticed here.

use super::Fact::Reciprocal;
use super::Term::Op;
use super::terms::*;
use super::{ScalarRule, Term, laws};
use crate::scalar::ScalarOp::*;

/// Not rules: they can never be admitted.
pub const FALSE_LAWS: &[ScalarRule] = laws! { "false";
    901 "add-zero" "x + (+0) = x": Op(Add, &[X, f(0.0)]) => X; Absent
    902 "add-associates" "(x + y) + z = x + (y + z)":
        Op(Add, &[Op(Add, &[X, Y]), Z]) => Op(Add, &[X, Op(Add, &[Y, Z])]); Absent
    903 "mul-associates" "(x * y) * z = x * (y * z)":
        Op(Mul, &[Op(Mul, &[X, Y]), Z]) => Op(Mul, &[X, Op(Mul, &[Y, Z])]); Absent
    904 "mul-distributes" "(x + y) * z = x * z + y * z":
        Op(Mul, &[Op(Add, &[X, Y]), Z]) => Op(Add, &[Op(Mul, &[X, Z]), Op(Mul, &[Y, Z])]); Absent
    905 "sub-self" "x - x = +0": Op(Sub, &[X, X]) => f(0.0); Absent
    906 "mul-zero" "x * 0 = 0": Op(Mul, &[X, f(0.0)]) => f(0.0); Absent
    907 "div-by-reciprocal" "x * (1 / y) = x / y":
        Op(Mul, &[X, Op(Div, &[f(1.0), Y])]) => Op(Div, &[X, Y]); Absent
    908 "div-self" "x / x = 1": Op(Div, &[X, X]) => f(1.0); Absent
    909 "double-rounding" "f16(bf16(x)) = f16(x)": Op(RoundF16, &[Op(RoundBf16, &[X])]) => Op(RoundF16, &[X]); Absent
    910 "f16-of-add" "f16(x + y) = f16(x) + f16(y)":
        Op(RoundF16, &[Op(Add, &[X, Y])]) => Op(Add, &[Op(RoundF16, &[X]), Op(RoundF16, &[Y])]); Absent
    911 "neg-of-sub" "-(x - y) = y - x": Op(Neg, &[Op(Sub, &[X, Y])]) => Op(Sub, &[Y, X]); Absent
    912 "absorption" "max(min(x, y), x) = x": Op(Max, &[Op(Min, &[X, Y]), X]) => X; Absent
    913 "min-by-comparison" "min(x, y) = select(x < y, x, y)":
        Op(Min, &[X, Y]) => Op(SelectF32, &[Op(LtF, &[X, Y]), X, Y]); Absent
    914 "max-of-mul" "max(x, y) * z = max(x * z, y * z)":
        Op(Mul, &[Op(Max, &[X, Y]), Z]) => Op(Max, &[Op(Mul, &[X, Z]), Op(Mul, &[Y, Z])]); Absent
    915 "halves" "x / 2 + x / 2 = x":
        Op(Add, &[Op(Div, &[X, f(2.0)]), Op(Div, &[X, f(2.0)])]) => X; Absent
    916 "bits-back-and-there" "to_bits(from_bits(i)) = i": Op(ToBits, &[Op(FromBits, &[I])]) => I; Absent
    917 "div-int-towards-zero" "i div 2 = -((-i) div 2)":
        Op(DivI, &[I, Term::I32(2)]) =>
        Op(SubI, &[Term::I32(0), Op(DivI, &[Op(SubI, &[Term::I32(0), I]), Term::I32(2)])]); Absent
    918 "clamp-unordered" "min(max(x, l), m) = max(min(x, m), l) for any constants":
        Op(Min, &[Op(Max, &[X, L]), M]) => Op(Max, &[Op(Min, &[X, M]), L]); Absent
    919 "div-of-reciprocal-power" "x * l = x * m for l = 2^k, m = 2^-k":
        Op(Mul, &[X, L]) => Op(Mul, &[X, M]), if Reciprocal(4, 5); Absent
    920 "less-or-not" "not (x < y) = (y < x) or (x == y)":
        Op(Not, &[Op(LtF, &[X, Y])]) => Op(Or, &[Op(LtF, &[Y, X]), Op(EqF, &[X, Y])]); Absent
    921 "greater-is-less" "(x < y) = (y < x)": Op(LtF, &[X, Y]) => Op(LtF, &[Y, X]); Absent
};
