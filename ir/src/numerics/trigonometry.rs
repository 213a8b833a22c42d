//! `sin` and `cos`, with exact range reduction for every finite argument.
//!
//! The argument's 24-bit significand is multiplied, in integers, by the 96 bits of 2/pi that matter for its
//! exponent (Payne and Hanek). That gives the quadrant and 64 bits of fraction; the fraction is turned
//! into radians in integers too, and leaves as a sum of two floats. No f32 argument comes closer to a multiple of
//! pi/2 than 2^-30, so at least 33 bits of the reduced argument are right.

use super::arith::{Arith, Concrete, mul_high};
use super::functions::horner;
use super::order::{INFINITY_BITS, MAGNITUDE, NAN_BITS};

/// 2/pi: 32 zero bits, which serve arguments near one, then its first 224 bits.
pub const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
/// pi/2 in units of 2^-63: upper and lower word.
pub const HALF_PI: [u32; 2] = [0xc90f_daa2, 0x2168_c234];
/// Arguments of smaller magnitude (pi/4) are their own reduced argument.
const DIRECT: u32 = 0x3f49_0fdb;

/// `(sin r - r) / r^3` in r^2 for |r| <= pi/4, from the constant term up.
pub const SIN_POLYNOMIAL: [u32; 4] = [0xbe2a_aaab, 0x3c08_88ba, 0xb950_2cb0, 0x363e_19d8];
/// `(cos r - 1 + r^2 / 2) / r^4` in r^2 for |r| <= pi/4, from the constant term up.
pub const COS_POLYNOMIAL: [u32; 3] = [0x3d2a_aaa5, 0xbab6_0615, 0x37cc_f482];

/// `|x| = quadrant * pi/2 + high + low`, quadrant modulo 4.
struct Reduced<A: Arith> {
    quadrant: A::I,
    high: A::F,
    low: A::F,
}

/// The word of 2/pi at `index` (0 to 4) and the three after it.
#[inline(always)]
fn window<A: Arith>(a: &A, index: A::I) -> [A::I; 4] {
    let bit = |n: u32| a.equal_int(a.and(index, a.int(1 << n)), a.int(1 << n));
    let (one, two, four) = (bit(0), bit(1), bit(2));
    let word = |j: usize| a.int(TWO_OVER_PI[j.min(7)]);
    // By index 0, 2 or 4 first, then by the odd step; word 8 stands only where index 4 has no odd step.
    let even = |j: usize| a.select_int(four, word(j + 4), a.select_int(two, word(j + 2), word(j)));
    let e = [even(0), even(1), even(2), even(3), even(4)];
    [0, 1, 2, 3].map(|j| a.select_int(one, e[j + 1], e[j]))
}

/// Three words of a bit string that starts `count` (0 to 31) bits into `words`.
#[inline(always)]
fn funnel<A: Arith>(a: &A, words: [A::I; 4], count: A::I) -> [A::I; 3] {
    let rest = a.sub_int(a.int(31), count);
    [0, 1, 2].map(|j| {
        let next = a.shr(a.shr(words[j + 1], a.int(1)), rest);
        a.or(a.shl(words[j], count), next)
    })
}

/// The carry of `sum = x + y`, given `sum` and `y`.
#[inline(always)]
fn carry<A: Arith>(a: &A, sum: A::I, y: A::I) -> A::I {
    a.select_int(a.below(sum, y), a.int(1), a.int(0))
}

/// `m` times a 96-bit number, modulo 2^96.
#[inline(always)]
fn product<A: Arith>(a: &A, m: A::I, w: [A::I; 3]) -> [A::I; 3] {
    let from_low = mul_high(a, m, w[2]);
    let middle = a.add_int(a.mul_int(m, w[1]), from_low);
    let upper = a.add_int(a.mul_int(m, w[0]), mul_high(a, m, w[1]));
    [a.add_int(upper, carry(a, middle, from_low)), middle, a.mul_int(m, w[2])]
}

/// Upper 64 bits of a 64-bit fraction of a quadrant times pi/2, at most three units too small.
#[inline(always)]
fn radians<A: Arith>(a: &A, [high, low]: [A::I; 2]) -> [A::I; 2] {
    let [p, q] = HALF_PI.map(|w| a.int(w));
    let (first, second) = (mul_high(a, high, q), mul_high(a, low, p));
    let sum = a.add_int(a.mul_int(high, p), first);
    let total = a.add_int(sum, second);
    let carries = a.add_int(carry(a, sum, first), carry(a, total, second));
    [a.add_int(mul_high(a, high, p), carries), total]
}

/// A 64-bit magnitude below 2^63 in units of 2^-63, as a float and the rest.
#[inline(always)]
fn two_floats<A: Arith>(a: &A, [high, low]: [A::I; 2]) -> (A::F, A::F) {
    let first = a.shr(high, a.int(8));
    let second = a.or(a.shl(a.and(high, a.int(0xff)), a.int(16)), a.shr(low, a.int(16)));
    let third = a.and(low, a.int(0xffff));
    // Units 2^-23, 2^-47 and 2^-63; the pieces have at most 24 bits, so all is exact up to the sum.
    let first = a.mul(a.float_of(first), a.float(0x3400_0000));
    let second = a.mul(a.float_of(second), a.float(0x2800_0000));
    let third = a.mul(a.float_of(third), a.float(0x2000_0000));
    let sum = a.add(first, second);
    (sum, a.add(a.sub(second, a.sub(sum, first)), third))
}

/// Reduces `|x|`, given its bits, for a finite `x`.
#[inline(always)]
fn reduce<A: Arith>(a: &A, magnitude: A::I) -> Reduced<A> {
    // |x| = m * 2^(exponent - 150). Bit 30 + (exponent - 150) of the table has the weight 2 quadrants.
    let start = a.sub_int(a.shr(magnitude, a.int(23)), a.int(120));
    let m = a.or(a.and(magnitude, a.int(0x7f_ffff)), a.int(0x80_0000));
    let words = window(a, a.and(a.shr(start, a.int(5)), a.int(7)));
    let [p, q, r] = product(a, m, funnel(a, words, a.and(start, a.int(31))));
    let quadrant = a.shr(a.add_int(p, a.int(0x2000_0000)), a.int(30));
    // Two bits of quadrant leave at the top; what remains is read as a signed fraction.
    let (two, thirty) = (a.int(2), a.int(30));
    let high = a.or(a.shl(p, two), a.shr(q, thirty));
    let low = a.or(a.shl(q, two), a.shr(r, thirty));
    let sign = a.sar(high, a.int(31));
    let fraction = [a.xor(high, sign), a.xor(low, sign)];
    let (high, low) = two_floats(a, radians(a, fraction));
    let flip = |v: A::F| a.from_bits(a.xor(a.bits(v), a.shl(sign, a.int(31))));
    let direct = a.less_int(magnitude, a.int(DIRECT));
    Reduced {
        quadrant: a.select_int(direct, a.int(0), quadrant),
        high: a.select(direct, a.from_bits(magnitude), flip(high)),
        low: a.select(direct, a.float(0), flip(low)),
    }
}

/// Sine and cosine of a reduced argument.
#[inline(always)]
fn kernels<A: Arith>(a: &A, reduced: &Reduced<A>) -> (A::F, A::F) {
    let (r, low) = (reduced.high, reduced.low);
    let one = a.float(0x3f80_0000);
    let z = a.mul(r, r);
    let half = a.mul(z, a.float(0x3f00_0000));
    let cube = a.mul(a.mul(z, r), horner(a, z, &SIN_POLYNOMIAL));
    let sin = a.add(r, a.add(cube, a.sub(low, a.mul(low, half))));
    let w = a.sub(one, half);
    let error = a.sub(a.sub(one, w), half);
    let fourth = a.mul(z, a.mul(z, horner(a, z, &COS_POLYNOMIAL)));
    let cos = a.add(w, a.add(error, a.sub(fourth, a.mul(r, low))));
    (sin, cos)
}

/// Sine and cosine of `x`, sharing the reduction: the bits of [`sin`] and [`cos`].
#[inline(always)]
pub fn sin_cos<A: Arith>(a: &A, x: A::F) -> (A::F, A::F) {
    let bits = a.bits(x);
    let magnitude = a.and(bits, a.int(MAGNITUDE));
    let reduced = reduce(a, magnitude);
    let (sin, cos) = kernels(a, &reduced);
    let odd = a.equal_int(a.and(reduced.quadrant, a.int(1)), a.int(1));
    let finite = a.less_int(magnitude, a.int(INFINITY_BITS));
    // The second bit of `turns` is the sign of the result.
    let place = |turns: A::I, value: A::F, sign: A::I| {
        let turned = a.shl(a.and(turns, a.int(2)), a.int(30));
        let signed = a.xor(a.xor(a.bits(value), turned), sign);
        a.select(finite, a.from_bits(signed), a.float(NAN_BITS))
    };
    let sign = a.and(bits, a.int(0x8000_0000));
    let next = a.add_int(reduced.quadrant, a.int(1));
    (place(reduced.quadrant, a.select(odd, cos, sin), sign), place(next, a.select(odd, sin, cos), a.int(0)))
}

/// Sine of `x` radians; NaN of infinities.
#[inline(always)]
pub fn sin<A: Arith>(a: &A, x: A::F) -> A::F {
    sin_cos(a, x).0
}

/// Cosine of `x` radians; NaN of infinities.
#[inline(always)]
pub fn cos<A: Arith>(a: &A, x: A::F) -> A::F {
    sin_cos(a, x).1
}

/// The functions on plain values.
pub mod plain {
    use super::Concrete;

    /// [`super::sin_cos`] of a plain value.
    #[inline(always)]
    pub fn sin_cos(x: f32) -> (f32, f32) {
        super::sin_cos(&Concrete, x)
    }
    /// [`super::sin`] of a plain value.
    #[inline(always)]
    pub fn sin(x: f32) -> f32 {
        super::sin(&Concrete, x)
    }
    /// [`super::cos`] of a plain value.
    #[inline(always)]
    pub fn cos(x: f32) -> f32 {
        super::cos(&Concrete, x)
    }
}
