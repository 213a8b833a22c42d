//! AVX2 with F16C.

use std::arch::x86_64::*;

use super::super::level::{Column, LEAVES, Level};
use super::q8_0::{self, Multiply};

/// The level; a value promises that AVX2 and F16C are there.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx2(());

impl Avx2 {
    /// # Safety
    /// The processor has AVX2 and F16C.
    #[inline(always)]
    pub(in super::super) unsafe fn new() -> Avx2 {
        Avx2(())
    }
}

/// A `Level` method by an intrinsic that only computes.
macro_rules! pairwise {
    ($name:ident, $intrinsic:ident) => {
        #[inline(always)]
        fn $name(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
            // SAFETY: `self` promises AVX.
            unsafe { [$intrinsic(a[0], b[0]), $intrinsic(a[1], b[1])] }
        }
    };
}

impl Level for Avx2 {
    type Vector = [__m256; 2];

    #[inline(always)]
    fn splat(self, value: f32) -> [__m256; 2] {
        // SAFETY: `self` promises AVX.
        unsafe { [_mm256_set1_ps(value); 2] }
    }

    #[inline(always)]
    fn load(self, values: &[f32; 16]) -> [__m256; 2] {
        let start = values.as_ptr();
        // SAFETY: the loads read the 16 values; `self` promises AVX.
        unsafe { [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))] }
    }

    #[inline(always)]
    fn load_f32(self, bytes: &[u8; 64]) -> [__m256; 2] {
        let start = bytes.as_ptr().cast::<f32>();
        // SAFETY: the loads read the 64 bytes; `self` promises AVX.
        unsafe { [_mm256_loadu_ps(start), _mm256_loadu_ps(start.add(8))] }
    }

    #[inline(always)]
    fn load_f16(self, bytes: &[u8; 32]) -> [__m256; 2] {
        let start = bytes.as_ptr().cast::<__m128i>();
        // SAFETY: the loads read the 32 bytes; `self` promises F16C and AVX.
        unsafe { [_mm256_cvtph_ps(_mm_loadu_si128(start)), _mm256_cvtph_ps(_mm_loadu_si128(start.add(1)))] }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[u8; 32]) -> [__m256; 2] {
        let start = bytes.as_ptr().cast::<__m128i>();
        // SAFETY: the loads read the 32 bytes; `self` promises AVX2.
        unsafe {
            let halves = [_mm_loadu_si128(start), _mm_loadu_si128(start.add(1))];
            halves.map(|eight| _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(eight))))
        }
    }

    #[inline(always)]
    fn store(self, vector: [__m256; 2], values: &mut [f32; 16]) {
        let start = values.as_mut_ptr();
        // SAFETY: the stores fill the 16 values; `self` promises AVX.
        unsafe {
            _mm256_storeu_ps(start, vector[0]);
            _mm256_storeu_ps(start.add(8), vector[1]);
        }
    }

    pairwise!(add, _mm256_add_ps);
    pairwise!(sub, _mm256_sub_ps);
    pairwise!(mul, _mm256_mul_ps);

    #[inline(always)]
    fn widen_codes(self, codes: &[i8; 16]) -> [__m256; 2] {
        // SAFETY: the load reads the 16 codes; `self` promises AVX2.
        unsafe {
            let bytes = _mm_loadu_si128(codes.as_ptr().cast());
            let high = _mm_unpackhi_epi64(bytes, bytes);
            [bytes, high].map(|eight| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)))
        }
    }

    #[inline(always)]
    fn halve(self, vector: [__m256; 2]) -> f32 {
        // SAFETY: `self` promises AVX.
        unsafe { halve_8(_mm256_add_ps(vector[0], vector[1])) }
    }

    #[inline(always)]
    fn widen_half(self, half: u16) -> f32 {
        // SAFETY: `self` promises F16C.
        unsafe { widen_half(half) }
    }

    #[inline(always)]
    fn dots(self, weights: &[i8], codes: &[i8], sums: &mut [i32; LEAVES]) {
        // SAFETY: `self` promises AVX2.
        unsafe { dots(weights, codes, sums, multiply_add) }
    }

    #[inline(always)]
    fn q8_0_row(self, blocks: &[[u8; 34]], x: Column) -> f32 {
        // SAFETY: `self` promises AVX2 and F16C.
        unsafe { q8_0::row::<Avx2>(blocks, x) }
    }

    #[inline(always)]
    fn split_e2m1(self, bytes: &[u8; 16], out: &mut [i8; 32]) {
        // SAFETY: `self` promises AVX2.
        unsafe { split_e2m1(bytes, out) }
    }

    #[inline(always)]
    fn paired_e2m1(self, bytes: &[u8; 16], out: &mut [i8; 32]) {
        // SAFETY: `self` promises AVX2.
        unsafe { paired_e2m1(bytes, out) }
    }

    #[inline(always)]
    fn widen_f16(self, halves: &[u16; 8]) -> [f32; 8] {
        // SAFETY: `self` promises F16C and AVX.
        unsafe { widen_f16(halves) }
    }
}

impl Multiply for Avx2 {
    #[inline(always)]
    unsafe fn multiply(weights: __m256i, codes: __m256i) -> __m256i {
        // SAFETY: the caller has AVX2.
        unsafe { multiply_add(weights, codes) }
    }

    #[inline(always)]
    unsafe fn correct(sums: __m256i, _halves: __m256i) -> __m256i {
        sums
    }
}

/// The sum of eight elements by halving.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(super) unsafe fn halve_8(vector: __m256) -> f32 {
    // SAFETY: the caller has AVX.
    unsafe {
        let high = _mm256_extractf128_ps::<1>(vector);
        let four = _mm_add_ps(_mm256_castps256_ps128(vector), high);
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
}

/// [`Level::widen_half`].
///
/// # Safety
/// The processor has F16C.
#[inline(always)]
pub(super) unsafe fn widen_half(half: u16) -> f32 {
    // SAFETY: the caller has F16C.
    unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half.into()))) }
}

/// Eight partial sums of `weights * codes` over 32 bytes.
///
/// The unsigned operand is the magnitude of the weight (128 at most), the signed one the code with
/// the weight's sign: pairs stay below 2 * 128 * 127 and never saturate.
#[inline(always)]
unsafe fn multiply_add(weights: __m256i, codes: __m256i) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(codes, weights));
        _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
    }
}

/// [`Level::dots`], four blocks at a time, with the level's way to multiply.
///
/// # Safety
/// The processor has AVX2 and what `multiply` needs.
#[inline(always)]
pub(super) unsafe fn dots(
    weights: &[i8],
    codes: &[i8],
    sums: &mut [i32; LEAVES],
    multiply: unsafe fn(__m256i, __m256i) -> __m256i,
) {
    let count = codes.len() / 32;
    assert!(count <= LEAVES, "a chunk has 32 leaves");
    assert!(weights.len() >= 32 * count, "a weight per code");
    // SAFETY: block `k < count` reads 32 bytes at `32 * k`, inside the slices by the
    // assertions; sums `k .. k + 4` are written for `k + 4 <= count <= 32`. AVX2 is the caller's promise.
    unsafe {
        let block = |k: usize| {
            let w = _mm256_loadu_si256(weights.as_ptr().add(32 * k).cast());
            let x = _mm256_loadu_si256(codes.as_ptr().add(32 * k).cast());
            multiply(w, x)
        };
        let mut k = 0;
        while k + 4 <= count {
            let four = add_across(block(k), block(k + 1), block(k + 2), block(k + 3));
            _mm_storeu_si128(sums.as_mut_ptr().add(k).cast(), four);
            k += 4;
        }
        while k < count {
            let one = block(k);
            sums[k] = _mm_cvtsi128_si32(add_across(one, one, one, one));
            k += 1;
        }
    }
}

/// The sums of the eight elements of each of four vectors.
#[inline(always)]
pub(super) unsafe fn add_across(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> __m128i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        let all = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
        _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all))
    }
}

/// The doubled values of the codes in the low halves and in the high halves of 16 bytes.
#[inline(always)]
unsafe fn doubled_e2m1(bytes: &[u8; 16]) -> (__m128i, __m128i) {
    // SAFETY: the load reads the 16 bytes; the caller has AVX2.
    unsafe {
        let table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
        let low = _mm_and_si128(bytes, _mm_set1_epi8(15));
        let high = _mm_and_si128(_mm_srli_epi16::<4>(bytes), _mm_set1_epi8(15));
        (_mm_shuffle_epi8(table, low), _mm_shuffle_epi8(table, high))
    }
}

/// [`Level::split_e2m1`].
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn split_e2m1(bytes: &[u8; 16], out: &mut [i8; 32]) {
    // SAFETY: the stores fill the 32 bytes of `out`; the caller has AVX2.
    unsafe {
        let (low, high) = doubled_e2m1(bytes);
        _mm_storeu_si128(out.as_mut_ptr().cast(), low);
        _mm_storeu_si128(out.as_mut_ptr().add(16).cast(), high);
    }
}

/// [`Level::paired_e2m1`].
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn paired_e2m1(bytes: &[u8; 16], out: &mut [i8; 32]) {
    // SAFETY: the stores fill the 32 bytes of `out`; the caller has AVX2.
    unsafe {
        let (low, high) = doubled_e2m1(bytes);
        _mm_storeu_si128(out.as_mut_ptr().cast(), _mm_unpacklo_epi8(low, high));
        _mm_storeu_si128(out.as_mut_ptr().add(16).cast(), _mm_unpackhi_epi8(low, high));
    }
}

/// [`Level::widen_f16`].
///
/// # Safety
/// The processor has F16C and AVX.
#[inline(always)]
pub(super) unsafe fn widen_f16(halves: &[u16; 8]) -> [f32; 8] {
    let mut out = [0.0; 8];
    // SAFETY: load and store move the 16 and 32 bytes of the arrays; the caller has F16C and AVX.
    unsafe {
        let wide = _mm256_cvtph_ps(_mm_loadu_si128(halves.as_ptr().cast()));
        _mm256_storeu_ps(out.as_mut_ptr(), wide);
    }
    out
}
