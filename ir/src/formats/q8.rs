//! The one definition of q8 activations: blocks of 32 elements, signed bytes and an f32 scale.

use crate::numerics::quantise::{q8_code, q8_scales};
use crate::numerics::{self, Concrete};

/// Elements of a block of activations.
pub const BLOCK: usize = 32;

/// Quantises `x`, a whole number of blocks, to one code per element and one scale per block.
///
/// `amax` is the largest magnitude; `d = div(amax, 127)`, `id = div(127, amax)`, a code is
/// `round_to_even(mul(x, id))` clamped to -127 and 127. A block with `amax < 2^-121` has `d = +0`
/// and codes 0; one with an infinity or a NaN has `d = NaN` and codes 0.
pub fn quantise_q8(x: &[f32], codes: &mut [i8], scales: &mut [f32]) {
    assert_eq!(x.len(), codes.len(), "one code per element");
    assert_eq!(x.len(), scales.len() * BLOCK, "one scale per block of 32");
    let blocks = x.chunks_exact(BLOCK).zip(codes.chunks_exact_mut(BLOCK));
    for ((x, codes), scale) in blocks.zip(scales) {
        *scale = quantise_block(x, codes);
    }
}

/// Quantises one block and gives its scale.
fn quantise_block(x: &[f32], codes: &mut [i8]) -> f32 {
    let amax = x.iter().fold(0.0, |m, &x| numerics::amax(m, x));
    let (d, id) = q8_scales(&Concrete, amax);
    for (code, &x) in codes.iter_mut().zip(x) {
        *code = q8_code(&Concrete, x, id) as i8;
    }
    d
}
