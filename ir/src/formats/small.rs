//! Fields of blocks: small floats at the start of some bytes, and the doubled E2M1 codes. Their
//! values are those of `numerics::round`.

use crate::numerics::round::plain::{bf16_value, e8m0_half, f16_value};

/// Twice the value of each E2M1 code: sign in bit 3; the code "minus zero" is 0.
pub const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// A binary16 at the start of `bytes`, little-endian.
pub fn f16(bytes: &[u8]) -> f32 {
    f16_value(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// A bfloat16 at the start of `bytes`, little-endian: the upper half of a binary32.
pub fn bf16(bytes: &[u8]) -> f32 {
    bf16_value(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// The scale of an `mxfp4` block, `2^(e-128)`. As ggml has it: 255 is a scale like the others, where
/// E8M0 has NaN.
pub fn mxfp4_scale(byte: u8) -> f32 {
    match byte {
        255 => f32::from_bits(254 << 23),
        _ => e8m0_half(byte),
    }
}
