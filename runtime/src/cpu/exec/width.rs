//! Running generic code with the instructions of a level.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::cpu::products::Isa;

/// Code to run at a level. `run` must be `#[inline(always)]`, so that it is compiled with the level's instructions.
pub(crate) trait Task {
    /// Runs it.
    fn run<P: Permute>(self, permute: P);
}

/// What the compiler does not find by itself: the words of a vector in another order.
pub(crate) trait Permute: Copy {
    /// Word `i` of the result is word `table[i]`, which is below 16.
    fn permute(self, words: &[u32; 16], table: &[u32; 16]) -> [u32; 16];
}

#[derive(Clone, Copy)]
struct Plain;

impl Permute for Plain {
    #[inline(always)]
    fn permute(self, words: &[u32; 16], table: &[u32; 16]) -> [u32; 16] {
        table.map(|i| words[i as usize & 15])
    }
}

/// A value promises AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Permute for Avx2 {
    #[inline(always)]
    fn permute(self, words: &[u32; 16], table: &[u32; 16]) -> [u32; 16] {
        let mut out = [0; 16];
        // SAFETY: loads and stores are of halves of the arrays; `self` promises AVX2.
        unsafe {
            let half = |words: &[u32; 16], i: usize| _mm256_loadu_si256(words.as_ptr().add(8 * i).cast());
            let (low, high) = (half(words, 0), half(words, 1));
            for i in 0..2 {
                let index = half(table, i);
                let from_low = _mm256_permutevar8x32_epi32(low, index);
                let from_high = _mm256_permutevar8x32_epi32(high, index);
                let is_high = _mm256_slli_epi32::<28>(index);
                let [a, b, c] = [from_low, from_high, is_high].map(|v| _mm256_castsi256_ps(v));
                _mm256_storeu_ps(out.as_mut_ptr().add(8 * i).cast(), _mm256_blendv_ps(a, b, c));
            }
        }
        out
    }
}

/// A value promises AVX-512 F.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Permute for Avx512 {
    #[inline(always)]
    fn permute(self, words: &[u32; 16], table: &[u32; 16]) -> [u32; 16] {
        let mut out = [0; 16];
        // SAFETY: loads and store are of the arrays; `self` promises AVX-512 F.
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            let table = _mm512_loadu_si512(table.as_ptr().cast());
            _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_permutexvar_epi32(table, words));
        }
        out
    }
}

/// Which instructions loops are compiled for. Made from an [`Isa`] only, which exists only where it was detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Width(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Width {
    /// The width of a level.
    pub(crate) fn of(isa: Isa) -> Width {
        Width(match isa.name() {
            #[cfg(target_arch = "x86_64")]
            "avx2" => Kind::Avx2,
            #[cfg(target_arch = "x86_64")]
            "avx512" => Kind::Avx512,
            _ => Kind::Baseline,
        })
    }

    /// Runs a task at this width. All widths give the same bits: float operations are never contracted or reordered.
    #[inline]
    pub(crate) fn run(self, task: impl Task) {
        match self.0 {
            Kind::Baseline => task.run(Plain),
            // SAFETY: made from an `Isa` of this name, which exists only where its features were detected.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { run_avx2(task) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { run_avx512(task) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn run_avx2(task: impl Task) {
    task.run(Avx2(()));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_avx512(task: impl Task) {
    task.run(Avx512(()));
}
