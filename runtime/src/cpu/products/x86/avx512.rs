//! AVX-512 with VNNI, in vectors of 256 bits for the integers.

use std::arch::x86_64::*;

use super::super::level::{LEAVES, Level};
use super::avx2;

/// The level; a value promises AVX-512 F, BW, DQ, VL and VNNI on top of AVX2 and F16C.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx512(());

impl Avx512 {
    /// # Safety
    /// The processor has the features of the level.
    #[inline(always)]
    pub(in super::super) unsafe fn new() -> Avx512 {
        Avx512(())
    }
}

impl Level for Avx512 {
    #[inline(always)]
    fn dots(self, weights: &[i8], stride: usize, codes: &[i8], sums: &mut [i32; LEAVES]) {
        // SAFETY: `self` promises AVX2, AVX-512 VL and VNNI.
        unsafe { avx2::dots(weights, stride, codes, sums, multiply_add) }
    }

    #[inline(always)]
    fn split_e2m1(self, bytes: &[u8; 16], out: &mut [i8; 32]) {
        // SAFETY: `self` promises AVX2.
        unsafe { avx2::split_e2m1(bytes, out) }
    }

    #[inline(always)]
    fn paired_e2m1(self, bytes: &[u8; 16], out: &mut [i8; 32]) {
        // SAFETY: `self` promises AVX2.
        unsafe { avx2::paired_e2m1(bytes, out) }
    }

    #[inline(always)]
    fn widen_f16(self, halves: &[u16; 8]) -> [f32; 8] {
        // SAFETY: `self` promises F16C and AVX.
        unsafe { avx2::widen_f16(halves) }
    }
}

/// Eight partial sums of `weights * codes` over 32 bytes; `vpdpbusd` adds four products exactly.
#[inline(always)]
unsafe fn multiply_add(weights: __m256i, codes: __m256i) -> __m256i {
    // SAFETY: the caller has AVX-512 VL and VNNI.
    unsafe {
        let signed = _mm256_sign_epi8(codes, weights);
        _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_abs_epi8(weights), signed)
    }
}
