//! A row's elements as f32, each operation of the format's decode rounded once, a piece at a time.

use ds4_ir::Format;

use super::codes::{blocks, half_scale, iq2_xxs_group, pair, q4_k_scales};
use super::level::Level;
use super::matrix::Row;

/// Elements of a piece: whole blocks of every format, and whole rounds of 128 lanes.
pub(super) const PIECE: usize = 256;

/// Decodes elements `first .. first + out.len()` of `row`; `first` is a multiple of [`PIECE`] and `out`
/// at most that long.
#[inline(always)]
pub(super) fn decode<L: Level>(level: L, format: Format, row: &Row, first: usize, out: &mut [f32]) {
    let count = out.len();
    match format {
        Format::F32 => f32s(&row.data[4 * first..][..4 * count], out),
        Format::F16 => f16s(level, &row.data[2 * first..][..2 * count], out),
        Format::BF16 => bf16s(&row.data[2 * first..][..2 * count], out),
        Format::Q8_0 => q8_0(level, blocks(row, first / 32, count / 32), out),
        Format::Q2_K => q2_k(level, blocks(row, first / 256, count / 256), out),
        Format::Q4_K => q4_k(level, blocks(row, first / 256, count / 256), out),
        Format::IQ2_XXS => iq2_xxs(level, blocks(row, first / 256, count / 256), out),
        Format::MXFP4 => mxfp4(level, blocks(row, first / 32, count / 32), out),
        Format::Fp8 => fp8(row, first, out),
        Format::Fp4 => fp4(level, row, first, out),
        Format::I32 | Format::I64 => panic!("ids are not multiplied"),
    }
}

#[inline(always)]
fn f32s(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *value = f32::from_le_bytes(*bytes);
    }
}

#[inline(always)]
fn bf16s(bytes: &[u8], out: &mut [f32]) {
    for (value, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
    }
}

#[inline(always)]
fn f16s<L: Level>(level: L, bytes: &[u8], out: &mut [f32]) {
    let (groups, rest) = out.as_chunks_mut::<8>();
    let (bytes, last) = bytes.as_chunks::<16>();
    for (values, bytes) in groups.iter_mut().zip(bytes) {
        *values = level.widen_f16(&halves(bytes));
    }
    if !rest.is_empty() {
        let mut padded = [0; 16];
        padded[..last.len()].copy_from_slice(last);
        rest.copy_from_slice(&level.widen_f16(&halves(&padded))[..rest.len()]);
    }
}

#[inline(always)]
fn halves(bytes: &[u8; 16]) -> [u16; 8] {
    let mut out = [0; 8];
    for (half, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *half = u16::from_le_bytes(*bytes);
    }
    out
}

#[inline(always)]
fn q8_0<L: Level>(level: L, blocks: &[[u8; 34]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let [d, _] = pair(level, block);
        for i in 0..32 {
            values[i] = f32::from(block[2 + i] as i8) * d;
        }
    }
}

#[inline(always)]
fn q2_k<L: Level>(level: L, blocks: &[[u8; 84]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, dmin] = pair(level, &block[80..]);
        for sub in 0..16 {
            let scale = d * f32::from(block[sub] & 15);
            let minimum = dmin * f32::from(block[sub] >> 4);
            let bytes = &block[16 + 32 * (sub / 8) + 16 * (sub % 2)..][..16];
            let values = &mut values[16 * sub..][..16];
            for i in 0..16 {
                let code = bytes[i] >> (sub / 2 % 4 * 2) & 3;
                values[i] = scale * f32::from(code) - minimum;
            }
        }
    }
}

#[inline(always)]
fn q4_k<L: Level>(level: L, blocks: &[[u8; 144]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, dmin] = pair(level, block);
        let (scales, minima) = q4_k_scales(block);
        for sub in 0..8 {
            let scale = d * f32::from(scales[sub]);
            let minimum = dmin * f32::from(minima[sub]);
            let bytes = &block[16 + 32 * (sub / 2)..][..32];
            let values = &mut values[32 * sub..][..32];
            for i in 0..32 {
                let code = bytes[i] >> (sub % 2 * 4) & 15;
                values[i] = scale * f32::from(code) - minimum;
            }
        }
    }
}

#[inline(always)]
fn iq2_xxs<L: Level>(level: L, blocks: &[[u8; 66]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, _] = pair(level, block);
        for (group, values) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let mut codes = [0; 32];
            let scale = iq2_xxs_group(block, group, &mut codes);
            // The sign in the code: negation is exact, before the product as after it.
            scale_codes(&codes, d * (0.5 + scale as f32) * 0.25, values);
        }
    }
}

#[inline(always)]
fn mxfp4<L: Level>(level: L, blocks: &[[u8; 17]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let mut codes = [0; 32];
        level.split_e2m1(&block[1..].as_chunks::<16>().0[0], &mut codes);
        scale_codes(&codes, half_scale(block[0]), values);
    }
}

#[inline(always)]
fn fp4<L: Level>(level: L, row: &Row, first: usize, out: &mut [f32]) {
    let mut done = 0;
    while done < out.len() {
        let column = first + done;
        // Up to the end of the 32 codes or of the scale, whichever comes first.
        let count = (32 - column % 32)
            .min(row.scale_cols - column % row.scale_cols)
            .min(out.len() - done);
        let mut padded = [0; 16];
        let bytes = &row.data[column / 2..][..count.div_ceil(2)];
        padded[..bytes.len()].copy_from_slice(bytes);
        let mut codes = [0; 32];
        level.paired_e2m1(&padded, &mut codes);
        let scale = match row.scales[column / row.scale_cols] {
            255 => f32::NAN,
            e => half_scale(e),
        };
        for (value, code) in out[done..][..count].iter_mut().zip(codes) {
            *value = f32::from(code) * scale;
        }
        done += count;
    }
}

#[inline(always)]
fn scale_codes(codes: &[i8; 32], scale: f32, out: &mut [f32; 32]) {
    for i in 0..32 {
        out[i] = f32::from(codes[i]) * scale;
    }
}

#[inline(always)]
fn fp8(row: &Row, first: usize, out: &mut [f32]) {
    let mut done = 0;
    while done < out.len() {
        let column = first + done;
        let count = (row.scale_cols - column % row.scale_cols).min(out.len() - done);
        let scale = match row.scales[column / row.scale_cols] {
            255 => f32::NAN,
            0 => f32::from_bits(0x0040_0000),
            e => f32::from_bits(u32::from(e) << 23),
        };
        let bytes = &row.data[column..][..count];
        for (value, &byte) in out[done..][..count].iter_mut().zip(bytes) {
            *value = e4m3(byte) * scale;
        }
        done += count;
    }
}

/// An E4M3 byte, without branches: the exponent's bias moves by 120; subnormals count steps of 2^-9.
#[inline(always)]
fn e4m3(byte: u8) -> f32 {
    let (sign, magnitude) = (u32::from(byte & 0x80) << 24, u32::from(byte & 0x7f));
    let normal = (magnitude << 20) + (120 << 23);
    let subnormal = (magnitude as i32 as f32 * f32::from_bits((127 - 9) << 23)).to_bits();
    let finite = if magnitude < 8 { subnormal } else { normal };
    f32::from_bits(
        sign | if magnitude == 0x7f {
            0x7fc0_0000
        } else {
            finite
        },
    )
}
