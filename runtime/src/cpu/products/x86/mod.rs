//! The operations of the x86-64 levels.

mod avx2;
mod avx512;
mod q8_0;

pub(super) use avx2::Avx2;
pub(super) use avx512::Avx512;
