//! The operations that are written once per instruction set; the plain form serves the baseline.
//!
//! All are exact (integers, widenings), so an implementation cannot change bits by its order.

use ds4_ir::formats::small::E2M1_DOUBLED;

/// Leaves of a chunk: one row's blocks are handled this many at a time, one leaf per lane.
pub(super) const LEAVES: usize = 32;

/// The operations of an instruction-set level.
///
/// Implementations are `#[inline(always)]`: they run inside a function compiled for the level.
pub(super) trait Level: Copy {
    /// `sums[k]` = sum over `i` of `weights[stride * k + i] * codes[32 * k + i]`, for each whole block
    /// `k` of `codes` (at most [`LEAVES`]); weights may be -128, codes are -127 to 127.
    #[inline(always)]
    fn dots(self, weights: &[i8], stride: usize, codes: &[i8], sums: &mut [i32; LEAVES]) {
        for (k, codes) in codes.chunks_exact(32).enumerate() {
            sums[k] = dot_32(&weights[stride * k..][..32], codes);
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
}

/// The level that every machine has.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Level for Baseline {}

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
