//! The scalar arithmetic of the numeric contract `rn32-v1`; `docs/numerics.md` is the contract's page.
//!
//! | file | what |
//! |---|---|
//! | [`arith`] | the primitives, as a trait, and their instance on plain values |
//! | [`order`] | canonical NaN, minimum, maximum, ranking |
//! | [`functions`] | `exp`, `log`, `log1p`, `sigmoid`, `silu`, `softplus` |
//! | [`trigonometry`] | `sin`, `cos` |
//! | [`round`] | storage formats: codes, values, rounding |
//! | [`quantise`] | q8 activations, the FP8 and FP4 round trips |
//! | [`double_double`] | twice the precision of `f64`, for constants of a plan |
//! | [`rope`] | frequencies, angles and the rotation |
//! | [`hashes`] | the recorded hash and error of every function |
//!
//! A body written over [`Arith`] is run on plain values by [`Concrete`]; other instances turn the same body
//! into scalar nodes or source text, so all of them have the same bits.

pub mod arith;
pub mod double_double;
pub mod functions;
pub mod hashes;
pub mod order;
pub mod quantise;
pub mod rope;
pub mod round;
pub mod trigonometry;

pub use arith::{Arith, Concrete};
pub use functions::plain::{exp, log, log1p, sigmoid, silu, softplus};
pub use order::plain::{amax, canonical, max, min, outranks, rank, relu};
pub use round::plain::{
    bf16_code, bf16_value, e2m1_code, e2m1_value, e4m3_code, e4m3_value, e8m0_code, e8m0_value, f16_code, f16_value,
    round_to_bf16, round_to_e2m1, round_to_e4m3, round_to_f16,
};
pub use trigonometry::plain::{cos, sin, sin_cos};

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
