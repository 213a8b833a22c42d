//! The domain of the contract's scalar arithmetic: every primitive that a function may use.
//!
//! The functions of this module tree are written once, generic over [`Arith`]. [`Concrete`] runs them on
//! plain values; other instances build scalar nodes or print source. A body written against the trait
//! cannot look at a value, so it is straight-line by construction: no branch and no trip count depends on
//! data, and every instance performs the same operations in the same order.

/// Scalars of contract `rn32-v1`: binary32, 32-bit words, and truth values.
///
/// Rounded operations are IEEE binary32, to nearest even, subnormals kept. Everything else is exact.
/// There is no fused multiply-add and no other primitive; a body must not fold or reorder them.
/// Methods take `&self`, so that calls nest; an instance that records keeps its tables in a cell.
pub trait Arith {
    /// A binary32 value. Bits of a NaN are not observable except through [`Arith::bits`].
    type F: Copy;
    /// A 32-bit word; arithmetic wraps, and each operation says how it reads the sign.
    type I: Copy;
    /// A truth value.
    type B: Copy;

    /// The constant with this bit pattern.
    fn float(&self, bits: u32) -> Self::F;
    /// The constant word.
    fn int(&self, word: u32) -> Self::I;

    /// Rounded sum.
    fn add(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Rounded difference.
    fn sub(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Rounded product.
    fn mul(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Rounded quotient.
    fn div(&self, x: Self::F, y: Self::F) -> Self::F;
    /// Rounded square root.
    fn sqrt(&self, x: Self::F) -> Self::F;

    /// Flips the sign bit.
    fn neg(&self, x: Self::F) -> Self::F;
    /// Clears the sign bit.
    fn abs(&self, x: Self::F) -> Self::F;
    /// Largest integer not above `x`; keeps -0, infinities and NaN.
    fn floor(&self, x: Self::F) -> Self::F;
    /// Smallest integer not below `x`; keeps -0, infinities and NaN.
    fn ceil(&self, x: Self::F) -> Self::F;
    /// `x` without its fraction; keeps the sign of zero.
    fn trunc(&self, x: Self::F) -> Self::F;
    /// Nearest integer, ties to even; keeps the sign of zero.
    fn round_even(&self, x: Self::F) -> Self::F;

    /// The bit pattern of `x`; of NaN, any pattern that is NaN, so bodies must not depend on which.
    fn bits(&self, x: Self::F) -> Self::I;
    /// The value with this bit pattern.
    #[allow(clippy::wrong_self_convention)] // `self` is the domain, not the value
    fn from_bits(&self, word: Self::I) -> Self::F;
    /// The value of a signed word of magnitude at most 2^24 (exact).
    fn float_of(&self, word: Self::I) -> Self::F;
    /// The signed word of an integral `x` in `[-2^31, 2^31)`. Other inputs are outside the domain.
    fn int_of(&self, x: Self::F) -> Self::I;

    /// Sum modulo 2^32.
    fn add_int(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Difference modulo 2^32.
    fn sub_int(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Product modulo 2^32.
    fn mul_int(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Bitwise and.
    fn and(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Bitwise or.
    fn or(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn xor(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Left shift by `count` in 0..=31.
    fn shl(&self, x: Self::I, count: Self::I) -> Self::I;
    /// Logical right shift by `count` in 0..=31.
    fn shr(&self, x: Self::I, count: Self::I) -> Self::I;
    /// Arithmetic right shift by `count` in 0..=31.
    fn sar(&self, x: Self::I, count: Self::I) -> Self::I;

    /// `x < y` of values: -0 equals +0, false if either is NaN.
    fn less(&self, x: Self::F, y: Self::F) -> Self::B;
    /// `x == y` of values: -0 equals +0, false if either is NaN.
    fn equal(&self, x: Self::F, y: Self::F) -> Self::B;
    /// Signed `x < y`.
    fn less_int(&self, x: Self::I, y: Self::I) -> Self::B;
    /// Unsigned `x < y`.
    fn below(&self, x: Self::I, y: Self::I) -> Self::B;
    /// `x == y` of words.
    fn equal_int(&self, x: Self::I, y: Self::I) -> Self::B;

    /// Both.
    fn both(&self, x: Self::B, y: Self::B) -> Self::B;
    /// At least one.
    fn either(&self, x: Self::B, y: Self::B) -> Self::B;
    /// Negation.
    fn not(&self, x: Self::B) -> Self::B;

    /// `yes` if `c`, else `no`. Both are computed; the one not taken has no effect.
    fn select(&self, c: Self::B, yes: Self::F, no: Self::F) -> Self::F;
    /// `yes` if `c`, else `no`.
    fn select_int(&self, c: Self::B, yes: Self::I, no: Self::I) -> Self::I;
}

/// Upper 32 bits of the unsigned 64-bit product, by four products of 16-bit limbs.
///
/// No partial sum exceeds 32 bits: `(2^16-1)^2 + (2^16-1) < 2^32`.
#[inline(always)]
pub fn mul_high<A: Arith>(a: &A, x: A::I, y: A::I) -> A::I {
    let (mask, sixteen) = (a.int(0xffff), a.int(16));
    let (xl, xh) = (a.and(x, mask), a.shr(x, sixteen));
    let (yl, yh) = (a.and(y, mask), a.shr(y, sixteen));
    let low = a.shr(a.mul_int(xl, yl), sixteen);
    let cross = a.add_int(a.mul_int(xl, yh), low);
    let middle = a.add_int(a.mul_int(xh, yl), a.and(cross, mask));
    let high = a.add_int(a.mul_int(xh, yh), a.shr(cross, sixteen));
    a.add_int(high, a.shr(middle, sixteen))
}

/// The arithmetic on plain Rust values: the reference instance, and the one that the CPU runs.
///
/// Rust's `f32` operators are IEEE and never contracted. Everything is inlined, so a loop of a function
/// over an array is vectorised by the compiler, with the same bits at any vector width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concrete;

impl Arith for Concrete {
    type F = f32;
    type I = i32;
    type B = bool;

    #[inline(always)]
    fn float(&self, bits: u32) -> f32 {
        f32::from_bits(bits)
    }
    #[inline(always)]
    fn int(&self, word: u32) -> i32 {
        word as i32
    }

    #[inline(always)]
    fn add(&self, x: f32, y: f32) -> f32 {
        x + y
    }
    #[inline(always)]
    fn sub(&self, x: f32, y: f32) -> f32 {
        x - y
    }
    #[inline(always)]
    fn mul(&self, x: f32, y: f32) -> f32 {
        x * y
    }
    #[inline(always)]
    fn div(&self, x: f32, y: f32) -> f32 {
        x / y
    }
    #[inline(always)]
    fn sqrt(&self, x: f32) -> f32 {
        x.sqrt()
    }

    #[inline(always)]
    fn neg(&self, x: f32) -> f32 {
        -x
    }
    #[inline(always)]
    fn abs(&self, x: f32) -> f32 {
        x.abs()
    }
    #[inline(always)]
    fn floor(&self, x: f32) -> f32 {
        x.floor()
    }
    #[inline(always)]
    fn ceil(&self, x: f32) -> f32 {
        x.ceil()
    }
    #[inline(always)]
    fn trunc(&self, x: f32) -> f32 {
        x.trunc()
    }
    #[inline(always)]
    fn round_even(&self, x: f32) -> f32 {
        x.round_ties_even()
    }

    #[inline(always)]
    fn bits(&self, x: f32) -> i32 {
        x.to_bits() as i32
    }
    #[inline(always)]
    fn from_bits(&self, word: i32) -> f32 {
        f32::from_bits(word as u32)
    }
    #[inline(always)]
    fn float_of(&self, word: i32) -> f32 {
        debug_assert!(word.unsigned_abs() <= 1 << 24, "{word} may not be exact");
        word as f32
    }
    #[inline(always)]
    fn int_of(&self, x: f32) -> i32 {
        x as i32
    }

    #[inline(always)]
    fn add_int(&self, x: i32, y: i32) -> i32 {
        x.wrapping_add(y)
    }
    #[inline(always)]
    fn sub_int(&self, x: i32, y: i32) -> i32 {
        x.wrapping_sub(y)
    }
    #[inline(always)]
    fn mul_int(&self, x: i32, y: i32) -> i32 {
        x.wrapping_mul(y)
    }
    #[inline(always)]
    fn and(&self, x: i32, y: i32) -> i32 {
        x & y
    }
    #[inline(always)]
    fn or(&self, x: i32, y: i32) -> i32 {
        x | y
    }
    #[inline(always)]
    fn xor(&self, x: i32, y: i32) -> i32 {
        x ^ y
    }
    #[inline(always)]
    fn shl(&self, x: i32, count: i32) -> i32 {
        x.wrapping_shl(count as u32)
    }
    #[inline(always)]
    fn shr(&self, x: i32, count: i32) -> i32 {
        (x as u32).wrapping_shr(count as u32) as i32
    }
    #[inline(always)]
    fn sar(&self, x: i32, count: i32) -> i32 {
        x.wrapping_shr(count as u32)
    }

    #[inline(always)]
    fn less(&self, x: f32, y: f32) -> bool {
        x < y
    }
    #[inline(always)]
    fn equal(&self, x: f32, y: f32) -> bool {
        x == y
    }
    #[inline(always)]
    fn less_int(&self, x: i32, y: i32) -> bool {
        x < y
    }
    #[inline(always)]
    fn below(&self, x: i32, y: i32) -> bool {
        (x as u32) < y as u32
    }
    #[inline(always)]
    fn equal_int(&self, x: i32, y: i32) -> bool {
        x == y
    }

    #[inline(always)]
    fn both(&self, x: bool, y: bool) -> bool {
        x & y
    }
    #[inline(always)]
    fn either(&self, x: bool, y: bool) -> bool {
        x | y
    }
    #[inline(always)]
    fn not(&self, x: bool) -> bool {
        !x
    }

    #[inline(always)]
    fn select(&self, c: bool, yes: f32, no: f32) -> f32 {
        if c { yes } else { no }
    }
    #[inline(always)]
    fn select_int(&self, c: bool, yes: i32, no: i32) -> i32 {
        if c { yes } else { no }
    }
}
