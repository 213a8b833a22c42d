//! Quantised activations and the simulated round trips, scalar parts only: scales from the largest
//! magnitude of a group, and codes or values from a scale. Groups are the caller's.

use super::arith::Arith;
use super::order::{INFINITY_BITS, NAN_BITS, max};
use super::round::{round_to_e2m1, round_to_e4m3};

const F127: u32 = 0x42fe_0000;
/// 2^-121: blocks whose largest magnitude is below it are zero.
const Q8_LEAST: u32 = 0x0300_0000;

/// `(d, id)` of a q8 block of 32 with largest magnitude `amax`: step `amax / 127` and its inverse.
///
/// `(+0, 0)` if `amax < 2^-121`, `(NaN, 0)` if `amax` is infinite or NaN; `id = 0` makes all codes zero.
#[inline(always)]
pub fn q8_scales<A: Arith>(a: &A, amax: A::F) -> (A::F, A::F) {
    let (zero, f127) = (a.float(0), a.float(F127));
    let bits = a.bits(amax);
    let tiny = a.less_int(bits, a.int(Q8_LEAST));
    let finite = a.less_int(bits, a.int(INFINITY_BITS));
    let d = a.select(tiny, zero, a.div(amax, f127));
    let id = a.select(tiny, zero, a.div(f127, amax));
    (a.select(finite, d, a.float(NAN_BITS)), a.select(finite, id, zero))
}

/// The q8 code of `x`: `round_to_even(x * id)` clamped to [-127, 127], and 0 if `id` is 0.
#[inline(always)]
pub fn q8_code<A: Arith>(a: &A, x: A::F, id: A::F) -> A::I {
    let q = a.round_even(a.mul(x, id));
    let none = a.equal_int(a.bits(id), a.int(0));
    let q = clamp(a, a.select(none, a.float(0), q), F127);
    a.int_of(q)
}

/// Bounds `x` by `±bound`; NaN stays.
#[inline(always)]
fn clamp<A: Arith>(a: &A, x: A::F, bound: u32) -> A::F {
    let (upper, lower) = (a.float(bound), a.float(bound | 0x8000_0000));
    let x = a.select(a.less(upper, x), upper, x);
    a.select(a.less(x, lower), lower, x)
}

/// The power of two at or above `max(amax, least) * inverse`; NaN if `amax` is infinite or NaN.
#[inline(always)]
fn power_of_two<A: Arith>(a: &A, amax: A::F, least: u32, inverse: u32) -> A::F {
    let m = max(a, amax, a.float(least));
    // A normal: adding all significand bits carries into the exponent unless the significand is zero.
    let p = a.bits(a.mul(m, a.float(inverse)));
    let s = a.and(a.add_int(p, a.int(0x007f_ffff)), a.int(INFINITY_BITS));
    let finite = a.less_int(a.bits(m), a.int(INFINITY_BITS));
    a.select(finite, a.from_bits(s), a.float(NAN_BITS))
}

/// Scale of an FP8 group: `2^ceil(log2(max(amax, 1e-4) / 448))`, on the bits of the product with f32(1/448).
#[inline(always)]
pub fn fp8_scale<A: Arith>(a: &A, amax: A::F) -> A::F {
    power_of_two(a, amax, 0x38d1_b717, 0x3b12_4925)
}

/// Scale of an FP4 group: `2^ceil(log2(max(amax, 6 * 2^-126) / 6))`, on the bits of the product with f32(1/6).
#[inline(always)]
pub fn fp4_scale<A: Arith>(a: &A, amax: A::F) -> A::F {
    power_of_two(a, amax, 0x01c0_0000, 0x3e2a_aaab)
}

/// The FP8 round trip of `x` in a group of this scale: `round_to_e4m3(clamp(x / s, ±448)) * s`.
#[inline(always)]
pub fn fp8_sim<A: Arith>(a: &A, x: A::F, scale: A::F) -> A::F {
    let q = clamp(a, a.div(x, scale), 0x43e0_0000);
    a.mul(round_to_e4m3(a, q), scale)
}

/// The FP4 round trip of `x` in a group of this scale: `round_to_e2m1(clamp(x / s, ±6)) * s`.
#[inline(always)]
pub fn fp4_sim<A: Arith>(a: &A, x: A::F, scale: A::F) -> A::F {
    let q = clamp(a, a.div(x, scale), 0x40c0_0000);
    a.mul(round_to_e2m1(a, q), scale)
}
