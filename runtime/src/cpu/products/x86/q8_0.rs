//! Rows of `q8_0` blocks with one column: eight leaves in a vector, from the integers to the lanes.

use std::arch::x86_64::*;

use super::super::level::Column;
use super::super::tree::ABSENT;
use super::avx2::{add_across, halve_8};

/// For a last vector with `n` leaves, ones in the first `n` elements: eight from `8 - n`.
static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A level's way to multiply.
pub(super) trait Multiply: Copy {
    /// Eight partial sums of a block's weights with its codes.
    ///
    /// # Safety
    /// The processor has what the implementation needs.
    unsafe fn multiply(weights: __m256i, codes: __m256i) -> __m256i;

    /// The true sums of eight blocks, from the sums of what [`Multiply::multiply`] gave and those of the codes, in halves.
    ///
    /// # Safety
    /// The processor has what the implementation needs.
    unsafe fn correct(sums: __m256i, halves: __m256i) -> __m256i;
}

/// The product of a row with a column: `lanes(32)` over its leaves, in four vectors.
///
/// # Safety
/// The processor has AVX2, F16C and what `M` needs.
#[inline(always)]
pub(super) unsafe fn row<M: Multiply>(blocks: &[[u8; 34]], x: Column) -> f32 {
    let count = blocks.len();
    assert!(count > 0 && x.codes.len() == 32 * count && x.scales.len() == count && x.sums.len() == 2 * count);
    // SAFETY: `eight` and `fewer` are called for leaves below `count` only; the features are the caller's promise.
    unsafe {
        let row = Row { blocks: blocks.as_ptr(), x };
        // What is added to absent lanes is the sum.
        match count {
            4 => return halve_8(row.last_four::<M>(0)),
            8 => return halve_8(row.eight::<M>(0)),
            _ => {}
        }
        let absent = _mm256_set1_ps(ABSENT);
        let mut lanes = [absent; 4];
        let mut u = 0;
        while u + 32 <= count {
            lanes[0] = _mm256_add_ps(lanes[0], row.eight::<M>(u));
            lanes[1] = _mm256_add_ps(lanes[1], row.eight::<M>(u + 8));
            lanes[2] = _mm256_add_ps(lanes[2], row.eight::<M>(u + 16));
            lanes[3] = _mm256_add_ps(lanes[3], row.eight::<M>(u + 24));
            u += 32;
        }
        for lane in &mut lanes {
            if u + 8 <= count {
                *lane = _mm256_add_ps(*lane, row.eight::<M>(u));
                u += 8;
            } else if u + 4 == count {
                *lane = _mm256_add_ps(*lane, row.last_four::<M>(u));
                u = count;
            } else if u < count {
                *lane = _mm256_add_ps(*lane, row.fewer::<M>(u, count));
                u = count;
            }
        }
        let sum = match count {
            0..=8 => lanes[0],
            9..=16 => _mm256_add_ps(lanes[0], lanes[1]),
            _ => _mm256_add_ps(_mm256_add_ps(lanes[0], lanes[2]), _mm256_add_ps(lanes[1], lanes[3])),
        };
        halve_8(sum)
    }
}

#[derive(Clone, Copy)]
struct Row<'a> {
    blocks: *const [u8; 34],
    x: Column<'a>,
}

impl Row<'_> {
    /// Leaves `u .. u + 8`.
    ///
    /// # Safety
    /// There are so many; the features are there.
    #[inline(always)]
    unsafe fn eight<M: Multiply>(self, u: usize) -> __m256 {
        // SAFETY: this function's contract.
        unsafe {
            let low = self.four::<M>([u, u + 1, u + 2, u + 3]);
            let high = self.four::<M>([u + 4, u + 5, u + 6, u + 7]);
            let halves = _mm256_loadu_si256(self.x.sums.as_ptr().add(2 * u).cast());
            let dx = _mm256_loadu_ps(self.x.scales.as_ptr().add(u));
            let mut d = _mm_cvtsi32_si128(self.scale(u));
            d = _mm_insert_epi16::<1>(d, self.scale(u + 1));
            d = _mm_insert_epi16::<2>(d, self.scale(u + 2));
            d = _mm_insert_epi16::<3>(d, self.scale(u + 3));
            d = _mm_insert_epi16::<4>(d, self.scale(u + 4));
            d = _mm_insert_epi16::<5>(d, self.scale(u + 5));
            d = _mm_insert_epi16::<6>(d, self.scale(u + 6));
            d = _mm_insert_epi16::<7>(d, self.scale(u + 7));
            leaves::<M>(_mm256_set_m128i(high, low), halves, d, dx)
        }
    }

    /// Leaves `u .. u + 4`; the others are absent.
    ///
    /// # Safety
    /// There are so many; the features are there.
    #[inline(always)]
    unsafe fn last_four<M: Multiply>(self, u: usize) -> __m256 {
        // SAFETY: this function's contract.
        unsafe {
            let sums = self.four::<M>([u, u + 1, u + 2, u + 3]);
            let halves = _mm_loadu_si128(self.x.sums.as_ptr().add(2 * u).cast());
            let mut d = _mm_cvtsi32_si128(self.scale(u));
            d = _mm_insert_epi16::<1>(d, self.scale(u + 1));
            d = _mm_insert_epi16::<2>(d, self.scale(u + 2));
            d = _mm_insert_epi16::<3>(d, self.scale(u + 3));
            let dx = _mm256_zextps128_ps256(_mm_loadu_ps(self.x.scales.as_ptr().add(u)));
            let leaves = leaves::<M>(_mm256_zextsi128_si256(sums), _mm256_zextsi128_si256(halves), d, dx);
            _mm256_blend_ps::<0b1111_0000>(leaves, _mm256_set1_ps(ABSENT))
        }
    }

    /// Leaves `u .. count`, fewer than eight; the others are absent.
    ///
    /// # Safety
    /// There is one at least; the features are there.
    #[inline(always)]
    unsafe fn fewer<M: Multiply>(self, u: usize, count: usize) -> __m256 {
        let here = count - u;
        // Blocks behind the last repeat it.
        let at = |k: usize| u + k.min(here - 1);
        let mut d = [0; 8];
        // SAFETY: this function's contract; what lies behind the last leaf is masked.
        unsafe {
            for (k, d) in d.iter_mut().enumerate().take(here) {
                *d = self.scale(u + k) as u16;
            }
            let mask = _mm256_loadu_si256(FIRST.as_ptr().add(8 - here).cast());
            let low = self.four::<M>([at(0), at(1), at(2), at(3)]);
            let high = match here {
                ..=4 => _mm_setzero_si128(),
                _ => self.four::<M>([at(4), at(5), at(6), at(7)]),
            };
            let halves = _mm256_maskload_epi32(self.x.sums.as_ptr().add(2 * u).cast(), mask);
            let dx = _mm256_maskload_ps(self.x.scales.as_ptr().add(u), mask);
            let leaves = leaves::<M>(_mm256_set_m128i(high, low), halves, _mm_loadu_si128(d.as_ptr().cast()), dx);
            _mm256_blendv_ps(_mm256_set1_ps(ABSENT), leaves, _mm256_castsi256_ps(mask))
        }
    }

    /// The sums of four blocks, before they are corrected.
    #[inline(always)]
    unsafe fn four<M: Multiply>(self, [a, b, c, d]: [usize; 4]) -> __m128i {
        // SAFETY: the caller's promise for these leaves.
        unsafe { add_across(self.dots::<M>(a), self.dots::<M>(b), self.dots::<M>(c), self.dots::<M>(d)) }
    }

    #[inline(always)]
    unsafe fn dots<M: Multiply>(self, u: usize) -> __m256i {
        // SAFETY: the caller's promise for this leaf: a block has 32 weights behind its scale.
        unsafe {
            let weights = _mm256_loadu_si256(self.blocks.add(u).cast::<u8>().add(2).cast());
            M::multiply(weights, _mm256_loadu_si256(self.x.codes.as_ptr().add(32 * u).cast()))
        }
    }

    #[inline(always)]
    unsafe fn scale(self, u: usize) -> i32 {
        // SAFETY: the caller's promise for this leaf.
        unsafe { self.blocks.add(u).cast::<u16>().read_unaligned().into() }
    }
}

#[inline(always)]
unsafe fn leaves<M: Multiply>(sums: __m256i, halves: __m256i, d: __m128i, dx: __m256) -> __m256 {
    // SAFETY: the caller has the features.
    unsafe {
        let sums = _mm256_cvtepi32_ps(M::correct(sums, halves));
        _mm256_mul_ps(sums, _mm256_mul_ps(_mm256_cvtph_ps(d), dx))
    }
}
