//! `exp`, `log`, `log1p`, and what is composed of them: each a fixed sequence of operations.
//!
//! Written once over [`Arith`]; the plain versions are in [`plain`]. `docs/numerics.md` lists the
//! coefficients, the largest error over all inputs and the hash of all outputs of each.

use super::arith::{Arith, Concrete};
use super::order::{INFINITY_BITS, MAGNITUDE, NAN_BITS};

const ONE: u32 = 0x3f80_0000;
/// 2^127, the largest power of two.
const HUGE: u32 = 0x7f00_0000;
/// 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits of the sum.
const MAGIC: u32 = 0x4b40_0000;
/// 1 / ln 2.
const LOG2_E: u32 = 0x3fb8_aa3b;
/// ln 2 in two parts; the high part has 15 significant bits, so its product with an exponent is exact.
const LN2_HIGH: u32 = 0x3f31_7200;
/// ln 2 less [`LN2_HIGH`].
const LN2_LOW: u32 = 0x35bf_be8e;

/// The least argument whose exponential is at least 2^-126: -87.33654.
pub const EXP_LEAST: u32 = 0xc2ae_ac4f;
/// The least argument whose exponential overflows: 88.72284.
pub const EXP_OVERFLOW: u32 = 0x42b1_7218;
/// `(e^r - 1 - r) / r^2` for |r| <= ln 2 / 2, from the constant term up.
pub const EXP_POLYNOMIAL: [u32; 5] = [0x3eff_fffe, 0x3e2a_aa49, 0x3d2a_ac58, 0x3c09_1cc7, 0x3ab5_26b0];

/// The square root of 1/2: significands are taken in `[sqrt(1/2), sqrt(2))`.
const SQRT_HALF: u32 = 0x3f35_04f3;
/// `(ln(1 + f) - f + f^2 / 2) / f^3` for 1 + f in `[sqrt(1/2), sqrt(2))`, from the constant term up.
pub const LOG_POLYNOMIAL: [u32; 9] = [
    0x3eaa_aaa4,
    0xbe80_0003,
    0x3e4c_d23b,
    0xbe2a_ae22,
    0x3e11_9dd1,
    0xbdfe_1465,
    0x3df3_6005,
    0xbdef_00ec,
    0x3d8a_399a,
];
/// Below this magnitude (2^-25) `log1p(x)` is `x`.
const LOG1P_IDENTITY: u32 = 0x3300_0000;
/// Above this (20) `softplus(z)` is `z`.
const SOFTPLUS_IDENTITY: u32 = 0x41a0_0000;

/// A polynomial by Horner's rule, product and sum rounded separately.
#[inline(always)]
pub(super) fn horner<A: Arith, const N: usize>(a: &A, x: A::F, coefficients: &[u32; N]) -> A::F {
    let mut sum = a.float(coefficients[N - 1]);
    for &c in coefficients[..N - 1].iter().rev() {
        sum = a.add(a.mul(sum, x), a.float(c));
    }
    sum
}

/// `e^x`; results below 2^-126 are +0.
///
/// `x = k ln 2 + r`, `e^r` by a polynomial, and `k` added to the exponent: the bits of multiplying by
/// 2^k in two factors, since no result is subnormal and overflow is decided by the argument.
#[inline(always)]
pub fn exp<A: Arith>(a: &A, x: A::F) -> A::F {
    let magic = a.float(MAGIC);
    let shifted = a.add(a.mul(x, a.float(LOG2_E)), magic);
    let k = a.sub(shifted, magic);
    let high = a.sub(x, a.mul(k, a.float(LN2_HIGH)));
    let low = a.mul(k, a.float(LN2_LOW));
    let r = a.sub(high, low);
    let square = a.mul(r, r);
    let tail = a.sub(a.mul(square, horner(a, r, &EXP_POLYNOMIAL)), low);
    let y = a.add(a.add(high, tail), a.float(ONE));
    // The integer k is the low part of the bits of `shifted`; what lies above bit 8 is shifted out.
    let exponent = a.shl(a.bits(shifted), a.int(23));
    let scaled = a.from_bits(a.add_int(a.bits(y), exponent));
    // Overflow for large arguments, NaN for NaN.
    let beyond = a.mul(x, a.float(HUGE));
    let upper = a.select(a.less(x, a.float(EXP_OVERFLOW)), scaled, beyond);
    a.select(a.less(x, a.float(EXP_LEAST)), a.float(0), upper)
}

/// `k ln 2 + ln(1 + f) + c` for 1 + f in `[sqrt(1/2), sqrt(2))` and a small correction `c`.
#[inline(always)]
fn log_sum<A: Arith>(a: &A, k: A::F, f: A::F, c: A::F) -> A::F {
    let square = a.mul(f, f);
    let cube = a.mul(square, f);
    let half = a.float(0x3f00_0000);
    let curve = a.sub(a.mul(cube, horner(a, f, &LOG_POLYNOMIAL)), a.mul(half, square));
    let small = a.add(a.add(curve, a.mul(k, a.float(LN2_LOW))), c);
    // |k ln 2| exceeds |f| unless k is zero: the error of the leading sum is exact.
    let high = a.mul(k, a.float(LN2_HIGH));
    let sum = a.add(high, f);
    let error = a.sub(f, a.sub(sum, high));
    a.add(sum, a.add(error, small))
}

/// Splits the bits of a positive normal into exponent `k`, as a float, and `f` with
/// `1 + f` in `[sqrt(1/2), sqrt(2))`.
#[inline(always)]
fn split<A: Arith>(a: &A, bits: A::I) -> (A::I, A::F) {
    let k = a.sar(a.sub_int(bits, a.int(SQRT_HALF)), a.int(23));
    let significand = a.from_bits(a.sub_int(bits, a.shl(k, a.int(23))));
    (k, a.sub(significand, a.float(ONE)))
}

/// The result of a logarithm whose argument is `u`: -inf at zero, NaN below, `u` itself at +inf and NaN.
#[inline(always)]
fn log_special<A: Arith>(a: &A, u: A::F, regular: A::F) -> A::F {
    let bits = a.bits(u);
    let magnitude = a.and(bits, a.int(MAGNITUDE));
    let zero = a.equal_int(magnitude, a.int(0));
    let negative = a.less_int(bits, a.int(0));
    let large = a.less_int(a.int(INFINITY_BITS - 1), magnitude);
    let y = a.select(large, u, regular);
    let y = a.select(negative, a.float(NAN_BITS), y);
    a.select(zero, a.float(0xff80_0000), y)
}

/// Natural logarithm; of ±0 -inf, of negative numbers NaN, of subnormals exact as of others.
#[inline(always)]
pub fn log<A: Arith>(a: &A, x: A::F) -> A::F {
    let bits = a.bits(x);
    let subnormal = a.less_int(bits, a.int(0x0080_0000));
    // 2^23 makes a subnormal normal without rounding.
    let grown = a.bits(a.mul(x, a.float(0x4b00_0000)));
    let (k, f) = split(a, a.select_int(subnormal, grown, bits));
    let k = a.sub_int(k, a.select_int(subnormal, a.int(23), a.int(0)));
    let y = log_sum(a, a.float_of(k), f, a.float(0));
    log_special(a, x, y)
}

/// `ln(1 + x)`, accurate near zero; of -1 -inf, below -1 NaN.
///
/// `u = 1 + x` is rounded, its exact error `c` enters as `c / u`.
#[inline(always)]
pub fn log1p<A: Arith>(a: &A, x: A::F) -> A::F {
    let one = a.float(ONE);
    let u = a.add(one, x);
    let back = a.sub(u, one);
    let c = a.add(a.sub(one, a.sub(u, back)), a.sub(x, back));
    let (k, f) = split(a, a.bits(u));
    let y = log_special(a, u, log_sum(a, a.float_of(k), f, a.div(c, u)));
    let magnitude = a.and(a.bits(x), a.int(MAGNITUDE));
    a.select(a.less_int(magnitude, a.int(LOG1P_IDENTITY)), x, y)
}

/// `div(1, add(1, exp(neg x)))`.
#[inline(always)]
pub fn sigmoid<A: Arith>(a: &A, x: A::F) -> A::F {
    let one = a.float(ONE);
    a.div(one, a.add(one, exp(a, a.neg(x))))
}

/// `mul(x, sigmoid(x))`. Of -inf it is NaN, as the product says.
#[inline(always)]
pub fn silu<A: Arith>(a: &A, x: A::F) -> A::F {
    a.mul(x, sigmoid(a, x))
}

/// `log1p(exp(z))`, and `z` itself for `z > 20`.
#[inline(always)]
pub fn softplus<A: Arith>(a: &A, z: A::F) -> A::F {
    let linear = a.less(a.float(SOFTPLUS_IDENTITY), z);
    a.select(linear, z, log1p(a, exp(a, z)))
}

/// The functions on plain values.
pub mod plain {
    use super::Concrete;

    /// [`super::exp`] of a plain value.
    #[inline(always)]
    pub fn exp(x: f32) -> f32 {
        super::exp(&Concrete, x)
    }
    /// [`super::log`] of a plain value.
    #[inline(always)]
    pub fn log(x: f32) -> f32 {
        super::log(&Concrete, x)
    }
    /// [`super::log1p`] of a plain value.
    #[inline(always)]
    pub fn log1p(x: f32) -> f32 {
        super::log1p(&Concrete, x)
    }
    /// [`super::sigmoid`] of a plain value.
    #[inline(always)]
    pub fn sigmoid(x: f32) -> f32 {
        super::sigmoid(&Concrete, x)
    }
    /// [`super::silu`] of a plain value.
    #[inline(always)]
    pub fn silu(x: f32) -> f32 {
        super::silu(&Concrete, x)
    }
    /// [`super::softplus`] of a plain value.
    #[inline(always)]
    pub fn softplus(z: f32) -> f32 {
        super::softplus(&Concrete, z)
    }
}
