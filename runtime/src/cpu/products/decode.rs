//! A row's elements as f32, each operation of the format's decode rounded once, a piece at a time.

use std::ops::Range;

use ds4_ir::Format;

use super::codes::{blocks, half_scale, iq2_xxs_group, pair, q4_k_codes, q4_k_scales};
use super::level::Level;
use super::matrix::Row;

/// Elements of a piece: whole blocks of every format, and whole rounds of 128 lanes.
pub(super) const PIECE: usize = 512;

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
        let d = level.widen_half(u16::from_le_bytes([block[0], block[1]]));
        let codes: &[i8] = bytemuck::cast_slice(&block[2..]);
        scale_codes(level, codes, d, values);
    }
}

#[inline(always)]
fn q2_k<L: Level>(level: L, blocks: &[[u8; 84]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, dmin] = pair(level, &block[80..]);
        let codes = q2_k_codes(block);
        for (sub, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let high = level.splat(d * f32::from(block[sub] & 15));
            let low = level.splat(dmin * f32::from(block[sub] >> 4));
            let codes = level.widen_codes(&codes.as_chunks::<16>().0[sub]);
            level.store(level.sub(level.mul(high, codes), low), values);
        }
    }
}

#[inline(always)]
fn q2_k_codes(block: &[u8; 84]) -> [i8; 256] {
    let mut codes = [0; 256];
    let (bytes, _) = block[16..80].as_chunks::<32>();
    for (leaf, codes) in codes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for i in 0..32 {
            codes[i] = (bytes[leaf / 4][i] >> (leaf % 4 * 2) & 3) as i8;
        }
    }
    codes
}

#[inline(always)]
fn q4_k<L: Level>(level: L, blocks: &[[u8; 144]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, dmin] = pair(level, block);
        let (scales, minima) = q4_k_scales(block);
        let mut codes = [0; 256];
        q4_k_codes(block, &mut codes);
        for (half, values) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let high = level.splat(d * f32::from(scales[half / 2]));
            let low = level.splat(dmin * f32::from(minima[half / 2]));
            let codes = level.widen_codes(&codes.as_chunks::<16>().0[half]);
            level.store(level.sub(level.mul(high, codes), low), values);
        }
    }
}

#[inline(always)]
fn iq2_xxs<L: Level>(level: L, blocks: &[[u8; 66]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<256>().0) {
        let [d, _] = pair(level, block);
        // All codes first: reading wide what was just written narrow would wait.
        let (mut codes, mut scales) = ([0; 256], [0; 8]);
        for (group, codes) in codes.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            scales[group] = iq2_xxs_group(block, group, codes);
        }
        for (group, values) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            // The sign in the code: negation is exact, before the product as after it.
            let scale = d * (0.5 + scales[group] as f32) * 0.25;
            scale_codes(level, &codes[32 * group..][..32], scale, values);
        }
    }
}

#[inline(always)]
fn mxfp4<L: Level>(level: L, blocks: &[[u8; 17]], out: &mut [f32]) {
    for (block, values) in blocks.iter().zip(out.as_chunks_mut::<32>().0) {
        let mut codes = [0; 32];
        level.split_e2m1(&block[1..].as_chunks::<16>().0[0], &mut codes);
        scale_codes(level, &codes, half_scale(block[0]), values);
    }
}

#[inline(always)]
fn fp4<L: Level>(level: L, row: &Row, first: usize, out: &mut [f32]) {
    let (groups, rest) = out.as_chunks_mut::<32>();
    let (bytes, last) = row.data[first / 2..].as_chunks::<16>();
    let mut codes = [0; 32];
    let scales = |group: usize| first + 32 * group..first + 32 * (group + 1);
    for (group, values) in groups.iter_mut().enumerate() {
        level.paired_e2m1(&bytes[group], &mut codes);
        scale_fp4(level, &codes, row, scales(group), values);
    }
    if !rest.is_empty() {
        let mut padded = [0; 16];
        padded[..last.len()].copy_from_slice(last);
        level.paired_e2m1(&padded, &mut codes);
        let mut values = [0.0; 32];
        let columns = scales(groups.len()).start..first + 32 * groups.len() + rest.len();
        scale_fp4(level, &codes, row, columns, &mut values);
        rest.copy_from_slice(&values[..rest.len()]);
    }
}

/// The codes of `columns` (32 at most) times their scales; one scale serves them all as a rule.
#[inline(always)]
fn scale_fp4<L: Level>(level: L, codes: &[i8; 32], row: &Row, columns: Range<usize>, out: &mut [f32; 32]) {
    let scale = |column: usize| match row.scales[column / row.scale_cols] {
        255 => f32::NAN,
        e => half_scale(e),
    };
    if row.scale_cols.is_multiple_of(32) {
        return scale_codes(level, codes, scale(columns.start), out);
    }
    for (i, column) in columns.enumerate() {
        out[i] = f32::from(codes[i]) * scale(column);
    }
}

/// 32 codes widened to f32, each times `scale`.
#[inline(always)]
fn scale_codes<L: Level>(level: L, codes: &[i8], scale: f32, out: &mut [f32; 32]) {
    let scale = level.splat(scale);
    let (codes, _) = codes.as_chunks::<16>();
    for (values, codes) in out.as_chunks_mut::<16>().0.iter_mut().zip(codes) {
        level.store(level.mul(level.widen_codes(codes), scale), values);
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
    f32::from_bits(sign | if magnitude == 0x7f { 0x7fc0_0000 } else { finite })
}
