//! Instruction-set levels: found at run time, forced by name, equal in bits.

use super::level::{Baseline, Level};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};

/// An instruction-set level that this machine has. All levels give the same bits.
///
/// A value exists only for a level that was detected, which is what makes dispatch on it sound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Isa(Kind);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Code to run at a level. `run` must be `#[inline(always)]`, so that it is compiled with the level's
/// instructions.
pub(super) trait Kernel {
    /// What it gives.
    type Output;
    /// Runs it with the operations of `level`.
    fn run<L: Level>(self, level: L) -> Self::Output;
}

impl Isa {
    /// The widest level of this machine.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::baseline())
    }

    /// The level that needs nothing beyond the target's baseline.
    pub fn baseline() -> Isa {
        Isa(Kind::Baseline)
    }

    /// The levels that this machine has, narrowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Isa> {
        let levels = [
            Some(Kind::Baseline),
            #[cfg(target_arch = "x86_64")]
            has_avx2().then_some(Kind::Avx2),
            #[cfg(target_arch = "x86_64")]
            has_avx512().then_some(Kind::Avx512),
        ];
        levels.into_iter().flatten().map(Isa)
    }

    /// The level of a name (`baseline`, `avx2`, `avx512`), if there is one and this machine has it.
    pub fn from_name(name: &str) -> Option<Isa> {
        Isa::available().find(|isa| isa.name() == name)
    }

    /// The name of this level.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Runs `kernel` at this level.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Kind::Baseline => kernel.run(Baseline),
            // SAFETY: a value of this level exists only where `available` detected its features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled with, and only called with, the features of the level.
    kernel.run(unsafe { Avx2::new() })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: this function is compiled with, and only called with, the features of the level.
    kernel.run(unsafe { Avx512::new() })
}
