//! The small floats, widened exactly: binary16, bfloat16, E4M3, E8M0 and the doubled E2M1 codes.

/// Twice the value of each E2M1 code: sign in bit 3; the code "minus zero" is 0.
pub const E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// A binary16 at the start of `bytes`, little-endian.
pub fn f16(bytes: &[u8]) -> f32 {
    half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

/// A bfloat16 at the start of `bytes`, little-endian: the upper half of a binary32.
pub fn bf16(bytes: &[u8]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16)
}

/// E4M3 (the `fn` kind): bias 7, no infinities, 0x7f and 0xff NaN, largest 448.
pub fn e4m3(byte: u8) -> f32 {
    let exponent = u32::from(byte >> 3) & 15;
    let mantissa = u32::from(byte) & 7;
    let magnitude = match (exponent, mantissa) {
        (15, 7) => f32::NAN,
        // Subnormals: steps of 2^-9, an exact product.
        (0, _) => mantissa as f32 * power_of_two(-9),
        _ => (8 + mantissa) as f32 * power_of_two(exponent as i32 - 10),
    };
    if byte & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// E8M0: `2^(e-127)`, 255 is NaN.
pub fn e8m0(byte: u8) -> f32 {
    match byte {
        255 => f32::NAN,
        _ => power_of_two(i32::from(byte) - 127),
    }
}

/// Half of an E8M0 scale, `2^(e-128)`: the scale of doubled E2M1 codes. 255 is NaN.
pub fn e8m0_half(byte: u8) -> f32 {
    match byte {
        255 => f32::NAN,
        _ => e8m0_half_ggml(byte),
    }
}

/// `2^(e-128)` as ggml has it, where 255 is a scale like the others.
pub fn e8m0_half_ggml(byte: u8) -> f32 {
    power_of_two(i32::from(byte) - 128)
}

/// `2^exponent` for -149 to 127: below -126 the result is subnormal.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(match exponent {
        -126.. => ((exponent + 127) as u32) << 23,
        _ => 1 << (exponent + 149),
    })
}
