//! The operations that are written once per instruction set; the plain form serves the baseline.
//!
//! All are exact (integers, widenings), so an implementation cannot change bits by its order.

use ds4_ir::formats::small::E2M1_DOUBLED;

use super::tree::{ABSENT, halve_first};

/// Leaves of a chunk: one row's blocks are handled this many at a time, one leaf per lane.
pub(super) const LEAVES: usize = 32;

/// A column of q8 activations.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    /// 32 codes a leaf.
    pub(super) codes: &'a [i8],
    /// A scale a leaf.
    pub(super) scales: &'a [f32],
    /// Sums of 16 codes each: two a leaf.
    pub(super) sums: &'a [i16],
}

/// The operations of an instruction-set level.
///
/// Implementations are `#[inline(always)]`: they run inside a function compiled for the level.
pub(super) trait Level: Copy {
    /// Sixteen f32.
    type Vector: Copy;

    /// Sixteen times `value`.
    fn splat(self, value: f32) -> Self::Vector;

    /// Reads a vector.
    fn load(self, values: &[f32; 16]) -> Self::Vector;

    /// Sixteen little-endian f32.
    #[inline(always)]
    fn load_f32(self, bytes: &[u8; 64]) -> Self::Vector {
        self.load(&std::array::from_fn(|i| f32::from_le_bytes(std::array::from_fn(|j| bytes[4 * i + j]))))
    }

    /// Sixteen little-endian binary16, widened.
    #[inline(always)]
    fn load_f16(self, bytes: &[u8; 32]) -> Self::Vector {
        let halves: [u16; 16] = std::array::from_fn(|i| u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]));
        self.load(&halves.map(widen_f16))
    }

    /// Sixteen little-endian bfloat16, widened.
    #[inline(always)]
    fn load_bf16(self, bytes: &[u8; 32]) -> Self::Vector {
        self.load(&std::array::from_fn(|i| f32::from_le_bytes([0, 0, bytes[2 * i], bytes[2 * i + 1]])))
    }

    /// Writes a vector.
    fn store(self, vector: Self::Vector, values: &mut [f32; 16]);

    /// `add` of each pair of elements.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `sub` of each pair of elements.
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `mul` of each pair of elements.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Sixteen integers as floats.
    fn widen_codes(self, codes: &[i8; 16]) -> Self::Vector;

    /// The sum of the elements by halving: `l += l + 8`, then 4, 2, 1.
    fn halve(self, vector: Self::Vector) -> f32;

    /// `sums[k]` = sum over `i` of `weights[32 * k + i] * codes[32 * k + i]`, for each whole block `k` of `codes` (at
    /// most [`LEAVES`]); weights may be -128, codes are -127 to 127.
    #[inline(always)]
    fn dots(self, weights: &[i8], codes: &[i8], sums: &mut [i32; LEAVES]) {
        for (k, codes) in codes.chunks_exact(32).enumerate() {
            sums[k] = dot_32(&weights[32 * k..][..32], codes);
        }
    }

    /// The product of a `q8_0` row with a column: `lanes(32)` over the leaves, one a block. There is at least one.
    #[inline(always)]
    fn q8_0_row(self, blocks: &[[u8; 34]], x: Column) -> f32 {
        let mut lanes = [ABSENT; LEAVES];
        for (u, block) in blocks.iter().enumerate() {
            let d = self.widen_half(u16::from_le_bytes([block[0], block[1]]));
            let sum = dot_32(bytemuck::cast_slice(&block[2..]), &x.codes[32 * u..][..32]);
            lanes[u % LEAVES] += sum as f32 * (d * x.scales[u]);
        }
        halve_first(self, &lanes, blocks.len())
    }

    /// Sums of 16 codes each.
    #[inline(always)]
    fn sum_codes(self, codes: &[[i8; 16]], sums: &mut [i16]) {
        for (sum, codes) in sums.iter_mut().zip(codes) {
            *sum = codes.iter().map(|&code| i16::from(code)).sum();
        }
    }

    /// The doubled values of 32 E2M1 codes: low halves of the 16 bytes, then high halves.
    #[inline(always)]
    fn split_e2m1(self, bytes: &[u8; 16], out: &mut [i8; 32]) {
        for (i, &byte) in bytes.iter().enumerate() {
            out[i] = E2M1_DOUBLED[usize::from(byte & 15)];
            out[i + 16] = E2M1_DOUBLED[usize::from(byte >> 4)];
        }
    }

    /// The doubled values of 32 E2M1 codes: low and high half of each byte in turn.
    #[inline(always)]
    fn paired_e2m1(self, bytes: &[u8; 16], out: &mut [i8; 32]) {
        for (i, &byte) in bytes.iter().enumerate() {
            out[2 * i] = E2M1_DOUBLED[usize::from(byte & 15)];
            out[2 * i + 1] = E2M1_DOUBLED[usize::from(byte >> 4)];
        }
    }

    /// Widens 8 binary16 values.
    #[inline(always)]
    fn widen_f16(self, halves: &[u16; 8]) -> [f32; 8] {
        halves.map(widen_f16)
    }

    /// Widens one binary16.
    #[inline(always)]
    fn widen_half(self, half: u16) -> f32 {
        widen_f16(half)
    }
}

/// The level that every machine has.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Level for Baseline {
    type Vector = [f32; 16];

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; 16] {
        [value; 16]
    }

    #[inline(always)]
    fn load(self, values: &[f32; 16]) -> [f32; 16] {
        *values
    }

    #[inline(always)]
    fn store(self, vector: [f32; 16], values: &mut [f32; 16]) {
        *values = vector;
    }

    #[inline(always)]
    fn add(self, a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn widen_codes(self, codes: &[i8; 16]) -> [f32; 16] {
        codes.map(f32::from)
    }

    #[inline(always)]
    fn halve(self, v: [f32; 16]) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|i| v[i] + v[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

#[inline(always)]
pub(super) fn dot_32(weights: &[i8], codes: &[i8]) -> i32 {
    let mut sum = 0;
    for i in 0..32 {
        sum += i32::from(weights[i]) * i32::from(codes[i]);
    }
    sum
}

/// Widens one binary16 without branches.
#[inline(always)]
pub(super) fn widen_f16(half: u16) -> f32 {
    let (sign, magnitude) = (u32::from(half & 0x8000) << 16, u32::from(half & 0x7fff));
    // Normal numbers move the exponent's bias by 112; infinities and NaN by as much again.
    let bias = if magnitude >= 0x7c00 { 224 } else { 112 };
    let normal = (magnitude << 13) + (bias << 23);
    let subnormal = (magnitude as i32 as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    f32::from_bits(sign | if magnitude < 0x400 { subnormal } else { normal })
}
