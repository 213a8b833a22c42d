//! One block of each quantised format, decoded. The formulas are in the table of the parent module.

use super::small::{E2M1_DOUBLED, f16, mxfp4_scale};
use crate::numerics::round::plain::e8m0_half;

/// `q8_0`: binary16 scale, 32 signed bytes.
pub(super) fn q8_0(block: &[u8], out: &mut [f32]) {
    let d = f16(block);
    for (value, &code) in out.iter_mut().zip(&block[2..]) {
        *value = f32::from(code as i8) * d;
    }
}

/// `q2_k`: 16 scale bytes, 64 bytes of codes, `d`, `dmin`.
pub(super) fn q2_k(block: &[u8], out: &mut [f32]) {
    let (d, dmin) = (f16(&block[80..]), f16(&block[82..]));
    for (i, value) in out.iter_mut().enumerate() {
        let (scale, minimum) = q2_k_scales(block, i / 16);
        let high = d * f32::from(scale) * f32::from(q2_k_code(block, i));
        *value = high - dmin * f32::from(minimum);
    }
}

/// The 2-bit code of element `i` of a `q2_k` block.
pub(super) fn q2_k_code(block: &[u8], i: usize) -> u8 {
    let (half, shift, place) = (i / 128, i % 128 / 32, i % 32);
    block[16 + 32 * half + place] >> (2 * shift) & 3
}

/// Scale and minimum of sub-block `index` (16 elements) of a `q2_k` block.
pub(super) fn q2_k_scales(block: &[u8], index: usize) -> (u8, u8) {
    (block[index] & 15, block[index] >> 4)
}

/// `q4_k`: `d`, `dmin`, 12 bytes of 6-bit scales and minima, 128 bytes of codes.
pub(super) fn q4_k(block: &[u8], out: &mut [f32]) {
    let (d, dmin) = (f16(block), f16(&block[2..]));
    for (i, value) in out.iter_mut().enumerate() {
        let (scale, minimum) = q4_k_scales(block, i / 32);
        let high = d * f32::from(scale) * f32::from(q4_k_code(block, i));
        *value = high - dmin * f32::from(minimum);
    }
}

/// The 4-bit code of element `i` of a `q4_k` block.
pub(super) fn q4_k_code(block: &[u8], i: usize) -> u8 {
    let byte = block[16 + 32 * (i / 64) + i % 32];
    if i % 64 < 32 { byte & 15 } else { byte >> 4 }
}

/// Scale and minimum of sub-block `index` (32 elements) of a `q4_k` block.
pub(super) fn q4_k_scales(block: &[u8], index: usize) -> (u8, u8) {
    let packed = &block[4..16];
    match index {
        0..4 => (packed[index] & 63, packed[index + 4] & 63),
        _ => {
            (packed[index + 4] & 15 | (packed[index - 4] >> 6) << 4, packed[index + 4] >> 4 | (packed[index] >> 6) << 4)
        }
    }
}

/// `mxfp4`: E8M0 scale, then 16 bytes with elements `j` (low half) and `j + 16`.
pub(super) fn mxfp4(block: &[u8], out: &mut [f32]) {
    let scale = mxfp4_scale(block[0]);
    for (i, value) in out.iter_mut().enumerate() {
        *value = f32::from(mxfp4_doubled(block, i)) * scale;
    }
}

/// Twice the code of element `i` of an `mxfp4` block.
pub(super) fn mxfp4_doubled(block: &[u8], i: usize) -> i8 {
    let byte = block[1 + i % 16];
    E2M1_DOUBLED[usize::from(if i < 16 { byte & 15 } else { byte >> 4 })]
}

/// `fp4`: a byte with elements `2j` (low half) and `2j + 1`, its scale elsewhere.
pub(super) fn fp4(byte: u8, scale: u8, out: &mut [f32]) {
    for (value, code) in out.iter_mut().zip([byte & 15, byte >> 4]) {
        *value = f32::from(E2M1_DOUBLED[usize::from(code)]) * e8m0_half(scale);
    }
}
