//! AVX-512 with VNNI; integers in vectors of 256 bits, which is a block of 32.

use std::arch::x86_64::*;

use super::super::level::{Column, LEAVES, Level};
use super::avx2;
use super::q8_0::{self, Multiply};

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

/// A `Level` method by an intrinsic that only computes.
macro_rules! pairwise {
    ($name:ident, $intrinsic:ident) => {
        #[inline(always)]
        fn $name(self, a: __m512, b: __m512) -> __m512 {
            // SAFETY: `self` promises AVX-512 F.
            unsafe { $intrinsic(a, b) }
        }
    };
}

impl Level for Avx512 {
    type Vector = __m512;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: `self` promises AVX-512 F.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    fn load(self, values: &[f32; 16]) -> __m512 {
        // SAFETY: the load reads the 16 values; `self` promises AVX-512 F.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }

    #[inline(always)]
    fn load_f32(self, bytes: &[u8; 64]) -> __m512 {
        // SAFETY: the load reads the 64 bytes; `self` promises AVX-512 F.
        unsafe { _mm512_loadu_ps(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn load_f16(self, bytes: &[u8; 32]) -> __m512 {
        // SAFETY: the load reads the 32 bytes; `self` promises AVX-512 F.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[u8; 32]) -> __m512 {
        // SAFETY: the load reads the 32 bytes; `self` promises AVX-512 F.
        unsafe {
            let halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(bytes.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves))
        }
    }

    #[inline(always)]
    fn store(self, vector: __m512, values: &mut [f32; 16]) {
        // SAFETY: the store fills the 16 values; `self` promises AVX-512 F.
        unsafe { _mm512_storeu_ps(values.as_mut_ptr(), vector) }
    }

    pairwise!(add, _mm512_add_ps);
    pairwise!(sub, _mm512_sub_ps);
    pairwise!(mul, _mm512_mul_ps);

    #[inline(always)]
    fn widen_codes(self, codes: &[i8; 16]) -> __m512 {
        // SAFETY: the load reads the 16 codes; `self` promises AVX-512 F.
        unsafe {
            let bytes = _mm_loadu_si128(codes.as_ptr().cast());
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
        }
    }

    #[inline(always)]
    fn halve(self, vector: __m512) -> f32 {
        // SAFETY: `self` promises AVX-512 DQ and AVX.
        unsafe {
            let high = _mm512_extractf32x8_ps::<1>(vector);
            avx2::halve_8(_mm256_add_ps(_mm512_castps512_ps256(vector), high))
        }
    }

    #[inline(always)]
    fn widen_half(self, half: u16) -> f32 {
        // SAFETY: `self` promises F16C.
        unsafe { avx2::widen_half(half) }
    }

    #[inline(always)]
    fn dots(self, weights: &[i8], codes: &[i8], sums: &mut [i32; LEAVES]) {
        // SAFETY: `self` promises AVX2, AVX-512 VL and VNNI.
        unsafe { avx2::dots(weights, codes, sums, multiply_add) }
    }

    #[inline(always)]
    fn q8_0_row(self, blocks: &[[u8; 34]], x: Column) -> f32 {
        // SAFETY: `self` promises AVX2, F16C, AVX-512 VL and VNNI.
        unsafe { q8_0::row::<Avx512>(blocks, x) }
    }

    #[inline(always)]
    fn sum_codes(self, codes: &[[i8; 16]], sums: &mut [i16]) {
        // SAFETY: `self` promises AVX-512 VL and VNNI.
        unsafe { sum_codes(codes, sums) }
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

impl Multiply for Avx512 {
    /// Of weights that are 128 larger: as unsigned bytes they need no magnitude and no sign.
    #[inline(always)]
    unsafe fn multiply(weights: __m256i, codes: __m256i) -> __m256i {
        // SAFETY: the caller has AVX-512 VL and VNNI.
        unsafe {
            let raised = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
            _mm256_dpbusd_epi32(_mm256_setzero_si256(), raised, codes)
        }
    }

    #[inline(always)]
    unsafe fn correct(sums: __m256i, halves: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_sub_epi32(sums, _mm256_madd_epi16(halves, _mm256_set1_epi16(128))) }
    }
}

/// [`Level::sum_codes`], four sums at a time.
#[inline(always)]
unsafe fn sum_codes(codes: &[[i8; 16]], sums: &mut [i16]) {
    let (four, rest) = codes.as_chunks::<4>();
    let (four_sums, rest_sums) = sums.as_chunks_mut::<4>();
    for (codes, sums) in four.iter().zip(four_sums) {
        // SAFETY: the load reads the 64 codes; the caller has AVX-512 VL and VNNI.
        unsafe {
            let codes = _mm512_loadu_si512(codes.as_ptr().cast());
            let fours = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), codes);
            let pairs = _mm512_add_epi32(fours, _mm512_shuffle_epi32::<0b10_11_00_01>(fours));
            let all = _mm512_add_epi32(pairs, _mm512_shuffle_epi32::<0b01_00_11_10>(pairs));
            let each = _mm512_maskz_compress_epi32(0x1111, all);
            let narrow = _mm_cvtepi32_epi16(_mm512_castsi512_si128(each));
            _mm_storel_epi64(sums.as_mut_ptr().cast(), narrow);
        }
    }
    for (sum, codes) in rest_sums.iter_mut().zip(rest) {
        *sum = codes.iter().map(|&code| i16::from(code)).sum();
    }
}
