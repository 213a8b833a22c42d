//! The leaves of products: what one element, or one block of 32 elements, of a row contributes.

use super::WeightRow;
use super::blocks::{mxfp4_doubled, q2_k_code, q2_k_scales, q4_k_code, q4_k_scales};
use super::iq2_xxs::Group;
use super::small::{E2M1_DOUBLED, f16, mxfp4_scale};
use crate::format::Format;
use crate::numerics::round::plain::e8m0_half;

/// The leaf of one element with f32 activations: `mul(w, x)`.
pub fn f32_leaf(w: f32, x: f32) -> f32 {
    w * x
}

/// The leaf of elements `32 * index ..` of a row with q8 activations: 32 codes and their scale `dx`.
///
/// `f` is the exact integer-to-float conversion; every integer sum stays below 2^24.
///
/// | format | leaf |
/// |---|---|
/// | `q8_0` | `mul(f(i), mul(d, dx))` |
/// | `iq2_xxs` | `mul(f(i * (2s + 1)), mul(mul(d, 0.125), dx))` |
/// | `q4_k`, `q2_k` | `sub(mul(f(sum S*i), mul(d, dx)), mul(f(sum M*qsum), mul(dmin, dx)))` |
/// | `mxfp4`, `fp4` | `mul(f(i), mul(2^(e-128), dx))` |
pub fn q8_leaf(row: &WeightRow, index: usize, codes: &[i8], dx: f32) -> f32 {
    assert_eq!(codes.len(), 32, "a leaf takes 32 activations");
    let per_block = row.format.block_len().max(32) / 32;
    let part = index % per_block;
    match row.format {
        Format::Q8_0 => {
            let block = row.block(index);
            let sum = dot(codes, |i| (block[2 + i] as i8).into());
            sum as f32 * (f16(block) * dx)
        }
        Format::IQ2_XXS => {
            let block = row.block(index / per_block);
            let group = Group::of(block, part);
            let sum = dot(codes, |i| match group.element(i) {
                (magnitude, false) => magnitude.into(),
                (magnitude, true) => -i32::from(magnitude),
            });
            let scaled = sum * (2 * group.scale() as i32 + 1);
            scaled as f32 * (f16(block) * 0.125 * dx)
        }
        Format::Q4_K => {
            let block = row.block(index / per_block);
            let (scale, minimum) = q4_k_scales(block, part);
            let sum = dot(codes, |i| q4_k_code(block, 32 * part + i).into());
            let total = dot(codes, |_| 1);
            let high = (i32::from(scale) * sum) as f32 * (f16(block) * dx);
            high - (i32::from(minimum) * total) as f32 * (f16(&block[2..]) * dx)
        }
        Format::Q2_K => {
            let block = row.block(index / per_block);
            let scales = |i: usize| q2_k_scales(block, 2 * part + i / 16);
            let sum = dot(codes, |i| i32::from(scales(i).0) * i32::from(q2_k_code(block, 32 * part + i)));
            let minima = dot(codes, |i| scales(i).1.into());
            let high = sum as f32 * (f16(&block[80..]) * dx);
            high - minima as f32 * (f16(&block[82..]) * dx)
        }
        Format::MXFP4 => {
            let block = row.block(index);
            let sum = dot(codes, |i| mxfp4_doubled(block, i).into());
            sum as f32 * (mxfp4_scale(block[0]) * dx)
        }
        Format::Fp4 => {
            let sum = dot(codes, |i| fp4_doubled(row, 32 * index + i).into());
            sum as f32 * (e8m0_half(row.scale(32 * index)) * dx)
        }
        Format::F32 | Format::F16 | Format::BF16 | Format::Fp8 | Format::I32 | Format::I64 => {
            panic!("{} takes no q8 activations", row.format.name())
        }
    }
}

/// Twice the code of element `column` of an `fp4` row.
fn fp4_doubled(row: &WeightRow, column: usize) -> i8 {
    let code = row.data[column / 2] >> (4 * (column % 2)) & 15;
    E2M1_DOUBLED[usize::from(code)]
}

/// The exact sum of `weight(i) * codes[i]`.
fn dot(codes: &[i8], weight: impl Fn(usize) -> i32) -> i32 {
    let terms = codes.iter().enumerate();
    terms.map(|(i, &code)| weight(i) * i32::from(code)).sum()
}
