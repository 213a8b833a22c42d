//! Order: minimum, maximum, and the ranking of top-k and arg-max.
//!
//! Minimum and maximum compare keys, under which -0 < +0, so their result depends neither on grouping
//! nor on a device's treatment of subnormals; a NaN operand makes the result NaN. Ranking treats -0 and
//! +0 as equal and puts NaN below everything, and the lower index wins ties.

use super::arith::{Arith, Concrete};

/// The one observable bit pattern of NaN.
pub const NAN_BITS: u32 = 0x7fc0_0000;
/// The bit pattern of positive infinity; larger magnitudes are NaN.
pub const INFINITY_BITS: u32 = 0x7f80_0000;
/// All bits but the sign.
pub const MAGNITUDE: u32 = 0x7fff_ffff;

/// Whether `x` is NaN, by its bits.
#[inline(always)]
pub fn is_nan<A: Arith>(a: &A, x: A::F) -> A::B {
    let magnitude = a.and(a.bits(x), a.int(MAGNITUDE));
    a.less_int(a.int(INFINITY_BITS), magnitude)
}

/// `x`, with any NaN replaced by the canonical one.
#[inline(always)]
pub fn canonical<A: Arith>(a: &A, x: A::F) -> A::F {
    a.select(is_nan(a, x), a.float(NAN_BITS), x)
}

/// The key whose signed order is the order of values, with -0 just below +0.
///
/// `u ^ ((u >> 31, arithmetic) & 0x7fffffff)`, its own inverse.
#[inline(always)]
pub fn key<A: Arith>(a: &A, x: A::F) -> A::I {
    let u = a.bits(x);
    a.xor(u, a.and(a.sar(u, a.int(31)), a.int(MAGNITUDE)))
}

/// The smaller by key; NaN if either operand is.
#[inline(always)]
pub fn min<A: Arith>(a: &A, x: A::F, y: A::F) -> A::F {
    let smaller = a.select(a.less_int(key(a, y), key(a, x)), y, x);
    nan_of_either(a, x, y, smaller)
}

/// The larger by key; NaN if either operand is.
#[inline(always)]
pub fn max<A: Arith>(a: &A, x: A::F, y: A::F) -> A::F {
    let larger = a.select(a.less_int(key(a, x), key(a, y)), y, x);
    nan_of_either(a, x, y, larger)
}

/// `max(x, +0)`.
#[inline(always)]
pub fn relu<A: Arith>(a: &A, x: A::F) -> A::F {
    let positive = a.less_int(a.int(0), a.bits(x));
    canonical_or(a, x, a.select(positive, x, a.float(0)))
}

/// One step of a maximum of magnitudes: `max(m, |x|)`. The maximum over nothing is +0.
#[inline(always)]
pub fn amax<A: Arith>(a: &A, m: A::F, x: A::F) -> A::F {
    max(a, m, a.abs(x))
}

/// The ranking key: signed order of values with -0 equal to +0 and NaN, as the least word, below all.
#[inline(always)]
pub fn rank<A: Arith>(a: &A, x: A::F) -> A::I {
    let k = key(a, x);
    // The key of -0 is -1.
    let merged = a.select_int(a.equal_int(k, a.int(u32::MAX)), a.int(0), k);
    a.select_int(is_nan(a, x), a.int(0x8000_0000), merged)
}

/// Whether entry `(x, i)` comes before `(y, j)` in top-k and arg-max: larger value, then lower index.
#[inline(always)]
pub fn outranks<A: Arith>(a: &A, x: A::F, i: A::I, y: A::F, j: A::I) -> A::B {
    let (rx, ry) = (rank(a, x), rank(a, y));
    let tie = a.both(a.equal_int(rx, ry), a.below(i, j));
    a.either(a.less_int(ry, rx), tie)
}

#[inline(always)]
fn nan_of_either<A: Arith>(a: &A, x: A::F, y: A::F, otherwise: A::F) -> A::F {
    let nan = a.either(is_nan(a, x), is_nan(a, y));
    a.select(nan, a.float(NAN_BITS), otherwise)
}

#[inline(always)]
fn canonical_or<A: Arith>(a: &A, x: A::F, otherwise: A::F) -> A::F {
    a.select(is_nan(a, x), a.float(NAN_BITS), otherwise)
}

/// The order and the ranking on plain values.
pub mod plain {
    use super::Concrete;

    /// [`super::canonical`] on a plain value.
    #[inline(always)]
    pub fn canonical(x: f32) -> f32 {
        super::canonical(&Concrete, x)
    }
    /// [`super::key`] of a plain value.
    #[inline(always)]
    pub fn key(x: f32) -> i32 {
        super::key(&Concrete, x)
    }
    /// [`super::min`] of plain values.
    #[inline(always)]
    pub fn min(x: f32, y: f32) -> f32 {
        super::min(&Concrete, x, y)
    }
    /// [`super::max`] of plain values.
    #[inline(always)]
    pub fn max(x: f32, y: f32) -> f32 {
        super::max(&Concrete, x, y)
    }
    /// [`super::relu`] of a plain value.
    #[inline(always)]
    pub fn relu(x: f32) -> f32 {
        super::relu(&Concrete, x)
    }
    /// [`super::amax`] of plain values.
    #[inline(always)]
    pub fn amax(m: f32, x: f32) -> f32 {
        super::amax(&Concrete, m, x)
    }
    /// [`super::rank`] of a plain value.
    #[inline(always)]
    pub fn rank(x: f32) -> i32 {
        super::rank(&Concrete, x)
    }
    /// [`super::outranks`] on plain values.
    #[inline(always)]
    pub fn outranks(x: f32, i: u32, y: f32, j: u32) -> bool {
        super::outranks(&Concrete, x, i as i32, y, j as i32)
    }
}
