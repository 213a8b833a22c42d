//! Running generic code with the instructions of a level.

use crate::cpu::products::Isa;

/// Code to run at a level. `run` must be `#[inline(always)]`, so that it is compiled with the level's instructions.
pub(crate) trait Task {
    /// Runs it.
    fn run(self);
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
            Kind::Baseline => task.run(),
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
    task.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_avx512(task: impl Task) {
    task.run();
}
