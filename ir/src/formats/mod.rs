//! What the bytes of each storage format mean, written plainly: the definition that the evaluator
//! runs and that every fast decoder is tested against.
//!
//! Storage widens exactly; a format that multiplies rounds once per operation below, in this order.
//! `f` is the exact integer-to-float conversion, `d`, `dmin` are binary16 fields widened.
//!
//! | format | value of an element |
//! |---|---|
//! | `f32`, `f16`, `bf16` | widened |
//! | `q8_0` | `mul(f(q), d)` |
//! | `q2_k` | `sub(mul(mul(d, f(S)), f(c)), mul(dmin, f(M)))`, `S`, `M` the halves of the sub-block's byte |
//! | `q4_k` | `sub(mul(mul(d, f(S)), f(c)), mul(dmin, f(M)))`, `S`, `M` the sub-block's 6-bit fields |
//! | `iq2_xxs` | `mul(mul(mul(d, add(0.5, f(s))), 0.25), f(g))`, negated where the sign bit is set |
//! | `mxfp4` | `mul(f(t), 2^(e-128))`, `t` the doubled code; `e = 255` scales by `2^127`, as ggml does |
//! | `fp4` | `mul(f(t), 2^(e-128))`; `e = 255` is NaN, as E8M0 says |
//! | `fp8` | `mul(e4m3, 2^(e-127))`; `e = 255` is NaN |
//!
//! The doubled code of both E2M1 forms is an integer, so the code "minus zero" is +0 in both, and
//! repacking one into the other keeps the bits.

mod blocks;
pub mod iq2_xxs;
pub mod leaf;
pub mod q8;
pub mod small;

use crate::format::Format;
use crate::numerics::{e4m3_value, e8m0_value};

/// One row of a stored matrix.
#[derive(Clone, Copy, Debug)]
pub struct WeightRow<'a> {
    /// How `data` is to be read.
    pub format: Format,
    /// The row: a whole number of the format's blocks.
    pub data: &'a [u8],
    /// E8M0 scales of this row, one per `scale_cols` elements, the last perhaps for fewer.
    /// Empty for the formats that hold their scales themselves.
    pub scales: &'a [u8],
    /// Elements of one entry of `scales`; not read if there are none.
    pub scale_cols: usize,
}

impl<'a> WeightRow<'a> {
    /// A row of a format that needs no scales beside it.
    pub fn plain(format: Format, data: &'a [u8]) -> Self {
        WeightRow { format, data, scales: &[], scale_cols: 0 }
    }

    /// Elements of the row.
    pub fn len(&self) -> usize {
        self.data.len() / self.format.block_bytes() * self.format.block_len()
    }

    /// Whether the row has no element.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The bytes of block `index`.
    fn block(&self, index: usize) -> &'a [u8] {
        let size = self.format.block_bytes();
        &self.data[index * size..][..size]
    }

    /// The scale byte of element `column`.
    fn scale(&self, column: usize) -> u8 {
        self.scales[column / self.scale_cols]
    }
}

/// Decodes a row to f32, each operation rounded once, in the order of the table of this module.
///
/// `out` has one place per element. Rows of integers are read by [`decode_ids`].
pub fn decode_row(row: &WeightRow, out: &mut [f32]) {
    assert_eq!(out.len(), row.len(), "one value per element of the row");
    let length = row.format.block_len();
    for (index, values) in out.chunks_exact_mut(length).enumerate() {
        let block = row.block(index);
        match row.format {
            Format::F32 => values[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
            Format::F16 => values[0] = small::f16(block),
            Format::BF16 => values[0] = small::bf16(block),
            Format::Q8_0 => blocks::q8_0(block, values),
            Format::Q2_K => blocks::q2_k(block, values),
            Format::Q4_K => blocks::q4_k(block, values),
            Format::IQ2_XXS => iq2_xxs::decode(block, values),
            Format::MXFP4 => blocks::mxfp4(block, values),
            Format::Fp8 => values[0] = e4m3_value(block[0]) * e8m0_value(row.scale(index)),
            Format::Fp4 => blocks::fp4(block[0], row.scale(2 * index), values),
            Format::I32 | Format::I64 => {
                panic!("integers are ids, not numbers: decode_ids reads them")
            }
        }
    }
}

/// Reads a row of `i32` or `i64` ids. `out` has one place per element.
pub fn decode_ids(row: &WeightRow, out: &mut [i64]) {
    assert!(row.format.is_integer(), "ids are stored as integers");
    assert_eq!(out.len(), row.len(), "one id per element of the row");
    for (index, id) in out.iter_mut().enumerate() {
        let block = row.block(index);
        let mut bytes = [0; 8];
        bytes[..block.len()].copy_from_slice(block);
        *id = match row.format {
            Format::I32 => i32::from_le_bytes([block[0], block[1], block[2], block[3]]).into(),
            _ => i64::from_le_bytes(bytes),
        };
    }
}

#[cfg(test)]
mod tests;
