//! Storage formats: the code of a value, the value of a code, and the rounding node that is both.
//!
//! Rounding is to nearest even and keeps subnormals and the sign of zero. Narrowing makes NaN canonical and
//! drops its sign. `f8e4m3` (no infinity, largest 448) turns what rounds beyond 448 into NaN; a caller who wants
//! saturation clamps first. `e2m1` has neither infinity nor NaN and saturates at 6.

use super::arith::{Arith, Concrete};
use super::order::{INFINITY_BITS, MAGNITUDE, NAN_BITS, is_nan};

/// A small float format with sign, exponent and significand fields.
struct Layout {
    /// Bits of the code without its sign.
    width: u32,
    /// Bits that the significand loses against binary32.
    shift: u32,
    /// Difference of the exponent biases, in place in a binary32.
    rebias: u32,
    /// Binary32 bits of the least normal.
    least_normal: u32,
    /// Binary32 bits of 2^23 subnormal steps: adding it rounds to a multiple of the step.
    magic: u32,
    /// Binary32 bits of the subnormal step.
    step: u32,
}

const F16: Layout = Layout {
    width: 15,
    shift: 13,
    rebias: 112 << 23,
    least_normal: 0x3880_0000,
    magic: 0x3f00_0000,
    step: 0x3380_0000,
};
const E4M3: Layout =
    Layout { width: 7, shift: 20, rebias: 120 << 23, least_normal: 0x3c80_0000, magic: 0x4680_0000, step: 0x3b00_0000 };
const E2M1: Layout =
    Layout { width: 3, shift: 22, rebias: 126 << 23, least_normal: 0x3f80_0000, magic: 0x4a80_0000, step: 0x3f00_0000 };

impl Layout {
    /// The rounded magnitude as a code without bound: past the largest code for large or non-finite input.
    #[inline(always)]
    fn magnitude<A: Arith>(&self, a: &A, x: A::F) -> A::I {
        let m = a.and(a.bits(x), a.int(MAGNITUDE));
        let odd = a.and(a.shr(m, a.int(self.shift)), a.int(1));
        let half = a.int((1 << (self.shift - 1)) - 1);
        let rounded = a.add_int(a.sub_int(m, a.int(self.rebias)), a.add_int(half, odd));
        let normal = a.shr(rounded, a.int(self.shift));
        let sum = a.add(a.from_bits(m), a.float(self.magic));
        let subnormal = a.sub_int(a.bits(sum), a.int(self.magic));
        a.select_int(a.less_int(m, a.int(self.least_normal)), subnormal, normal)
    }

    /// `code` with the sign of `x`.
    #[inline(always)]
    fn signed<A: Arith>(&self, a: &A, code: A::I, x: A::F) -> A::I {
        let sign = a.shr(a.bits(x), a.int(31));
        a.or(code, a.shl(sign, a.int(self.width)))
    }

    /// The value of a finite code.
    #[inline(always)]
    fn value<A: Arith>(&self, a: &A, code: A::I) -> A::F {
        let m = a.and(code, a.int((1 << self.width) - 1));
        let normal = a.add_int(a.shl(m, a.int(self.shift)), a.int(self.rebias));
        let subnormal = a.bits(a.mul(a.float_of(m), a.float(self.step)));
        let least = a.int(1 << (23 - self.shift));
        let magnitude = a.select_int(a.less_int(m, least), subnormal, normal);
        let sign = a.and(a.shr(code, a.int(self.width)), a.int(1));
        a.from_bits(a.or(magnitude, a.shl(sign, a.int(31))))
    }
}

/// The f16 code (16 bits) of `x`; overflow gives infinity, NaN 0x7e00.
#[inline(always)]
pub fn f16_code<A: Arith>(a: &A, x: A::F) -> A::I {
    let m = F16.magnitude(a, x);
    let infinity = a.int(0x7c00);
    let code = F16.signed(a, a.select_int(a.less_int(infinity, m), infinity, m), x);
    a.select_int(is_nan(a, x), a.int(0x7e00), code)
}

/// The value of an f16 code.
#[inline(always)]
pub fn f16_value<A: Arith>(a: &A, code: A::I) -> A::F {
    let m = a.and(code, a.int(0x7fff));
    let finite = F16.value(a, code);
    let sign = a.shl(a.and(code, a.int(0x8000)), a.int(16));
    let infinity = a.from_bits(a.or(sign, a.int(INFINITY_BITS)));
    let special = a.select(a.equal_int(m, a.int(0x7c00)), infinity, a.float(NAN_BITS));
    a.select(a.less_int(m, a.int(0x7c00)), finite, special)
}

/// The bf16 code (16 bits) of `x`; overflow gives infinity, NaN 0x7fc0.
#[inline(always)]
pub fn bf16_code<A: Arith>(a: &A, x: A::F) -> A::I {
    let u = a.bits(x);
    let odd = a.and(a.shr(u, a.int(16)), a.int(1));
    let code = a.shr(a.add_int(u, a.add_int(a.int(0x7fff), odd)), a.int(16));
    a.select_int(is_nan(a, x), a.int(0x7fc0), code)
}

/// The value of a bf16 code.
#[inline(always)]
pub fn bf16_value<A: Arith>(a: &A, code: A::I) -> A::F {
    super::order::canonical(a, a.from_bits(a.shl(code, a.int(16))))
}

/// The e4m3fn code (8 bits) of `x`; NaN and whatever rounds beyond 448 give 0x7f.
#[inline(always)]
pub fn e4m3_code<A: Arith>(a: &A, x: A::F) -> A::I {
    let m = E4M3.magnitude(a, x);
    let beyond = a.less_int(a.int(0x7e), m);
    a.select_int(beyond, a.int(0x7f), E4M3.signed(a, m, x))
}

/// The value of an e4m3fn code.
#[inline(always)]
pub fn e4m3_value<A: Arith>(a: &A, code: A::I) -> A::F {
    let nan = a.equal_int(a.and(code, a.int(0x7f)), a.int(0x7f));
    a.select(nan, a.float(NAN_BITS), E4M3.value(a, code))
}

/// The e2m1 code (4 bits) of `x`, saturating at 6; NaN, which has no code, gives 7.
#[inline(always)]
pub fn e2m1_code<A: Arith>(a: &A, x: A::F) -> A::I {
    let m = E2M1.magnitude(a, x);
    let largest = a.int(7);
    let code = E2M1.signed(a, a.select_int(a.less_int(largest, m), largest, m), x);
    a.select_int(is_nan(a, x), largest, code)
}

/// The value of an e2m1 code.
#[inline(always)]
pub fn e2m1_value<A: Arith>(a: &A, code: A::I) -> A::F {
    E2M1.value(a, code)
}

/// The e8m0 code (8 bits) of a power of two from 2^-127 to 2^127; NaN gives 255.
#[inline(always)]
pub fn e8m0_code<A: Arith>(a: &A, x: A::F) -> A::I {
    let exponent = a.and(a.shr(a.bits(x), a.int(23)), a.int(0xff));
    a.select_int(is_nan(a, x), a.int(0xff), exponent)
}

/// The value of an e8m0 code: `2^(code - 127)`, NaN for 255.
#[inline(always)]
pub fn e8m0_value<A: Arith>(a: &A, code: A::I) -> A::F {
    let normal = a.from_bits(a.shl(code, a.int(23)));
    let least = a.float(0x0040_0000);
    let value = a.select(a.equal_int(code, a.int(0)), least, normal);
    a.select(a.equal_int(code, a.int(0xff)), a.float(NAN_BITS), value)
}

/// Half of [`e8m0_value`], the scale of doubled e2m1 codes: `2^(code - 128)`, NaN for 255.
#[inline(always)]
pub fn e8m0_half<A: Arith>(a: &A, code: A::I) -> A::F {
    // Subnormal for codes 0 and 1, so formed from bits.
    let normal = a.shl(a.sub_int(code, a.int(1)), a.int(23));
    let small = a.shl(a.int(0x0020_0000), a.and(code, a.int(1)));
    let bits = a.select_int(a.less_int(code, a.int(2)), small, normal);
    let nan = a.equal_int(code, a.int(0xff));
    a.select(nan, a.float(NAN_BITS), a.from_bits(bits))
}

/// Rounds to f16.
#[inline(always)]
pub fn round_to_f16<A: Arith>(a: &A, x: A::F) -> A::F {
    f16_value(a, f16_code(a, x))
}

/// Rounds to bf16.
#[inline(always)]
pub fn round_to_bf16<A: Arith>(a: &A, x: A::F) -> A::F {
    bf16_value(a, bf16_code(a, x))
}

/// Rounds to e4m3fn; NaN beyond 448.
#[inline(always)]
pub fn round_to_e4m3<A: Arith>(a: &A, x: A::F) -> A::F {
    e4m3_value(a, e4m3_code(a, x))
}

/// Rounds to e2m1, saturating at 6; NaN stays NaN.
#[inline(always)]
pub fn round_to_e2m1<A: Arith>(a: &A, x: A::F) -> A::F {
    let rounded = e2m1_value(a, e2m1_code(a, x));
    a.select(is_nan(a, x), a.float(NAN_BITS), rounded)
}

/// The conversions on plain values.
pub mod plain {
    use super::Concrete;

    /// [`super::f16_code`] of a plain value.
    #[inline(always)]
    pub fn f16_code(x: f32) -> u16 {
        super::f16_code(&Concrete, x) as u16
    }
    /// [`super::f16_value`] of a plain code.
    #[inline(always)]
    pub fn f16_value(code: u16) -> f32 {
        super::f16_value(&Concrete, i32::from(code))
    }
    /// [`super::bf16_code`] of a plain value.
    #[inline(always)]
    pub fn bf16_code(x: f32) -> u16 {
        super::bf16_code(&Concrete, x) as u16
    }
    /// [`super::bf16_value`] of a plain code.
    #[inline(always)]
    pub fn bf16_value(code: u16) -> f32 {
        super::bf16_value(&Concrete, i32::from(code))
    }
    /// [`super::e4m3_code`] of a plain value.
    #[inline(always)]
    pub fn e4m3_code(x: f32) -> u8 {
        super::e4m3_code(&Concrete, x) as u8
    }
    /// [`super::e4m3_value`] of a plain code.
    #[inline(always)]
    pub fn e4m3_value(code: u8) -> f32 {
        super::e4m3_value(&Concrete, i32::from(code))
    }
    /// [`super::e2m1_code`] of a plain value.
    #[inline(always)]
    pub fn e2m1_code(x: f32) -> u8 {
        super::e2m1_code(&Concrete, x) as u8
    }
    /// [`super::e2m1_value`] of a plain code; only the lower four bits count.
    #[inline(always)]
    pub fn e2m1_value(code: u8) -> f32 {
        super::e2m1_value(&Concrete, i32::from(code))
    }
    /// [`super::e8m0_code`] of a plain power of two.
    #[inline(always)]
    pub fn e8m0_code(x: f32) -> u8 {
        super::e8m0_code(&Concrete, x) as u8
    }
    /// [`super::e8m0_value`] of a plain code.
    #[inline(always)]
    pub fn e8m0_value(code: u8) -> f32 {
        super::e8m0_value(&Concrete, i32::from(code))
    }
    /// [`super::e8m0_half`] of a plain code.
    #[inline(always)]
    pub fn e8m0_half(code: u8) -> f32 {
        super::e8m0_half(&Concrete, i32::from(code))
    }
    /// [`super::round_to_f16`] of a plain value.
    #[inline(always)]
    pub fn round_to_f16(x: f32) -> f32 {
        super::round_to_f16(&Concrete, x)
    }
    /// [`super::round_to_bf16`] of a plain value.
    #[inline(always)]
    pub fn round_to_bf16(x: f32) -> f32 {
        super::round_to_bf16(&Concrete, x)
    }
    /// [`super::round_to_e4m3`] of a plain value.
    #[inline(always)]
    pub fn round_to_e4m3(x: f32) -> f32 {
        super::round_to_e4m3(&Concrete, x)
    }
    /// [`super::round_to_e2m1`] of a plain value.
    #[inline(always)]
    pub fn round_to_e2m1(x: f32) -> f32 {
        super::round_to_e2m1(&Concrete, x)
    }
}
