//! Bytes of weights: rows of several kinds in every storage format.

use ds4_ir::Format;
use ds4_ir::numerics::f16_code;

use super::inputs::{Random, times_power};
use super::stored::Contents;

/// What a row of a weight is like. The last kind has infinities and NaN, which would hide the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Codes and scales of ordinary size.
    Plain,
    /// The largest codes, and scales that are large.
    Largest,
    /// The least codes: -128 where there are signed bytes.
    Least,
    /// Scales or elements that are zeros of both signs.
    Zeros,
    /// Scales or elements that are subnormal, or make subnormal products.
    Tiny,
    /// One infinity, or what comes nearest, and one NaN.
    Strange,
}

/// The kinds of rows, in order.
pub const ROWS: [Kind; 7] = {
    use Kind::*;
    [Plain, Largest, Least, Zeros, Tiny, Plain, Strange]
};

/// Rows that share a scale in formats whose scales are a tensor of their own, and columns that do.
const SCALE_BLOCK: [u32; 2] = [2, 32];

/// A tensor of `parts` parts of `rows` rows, whose kinds follow [`ROWS`].
pub fn contents(format: Format, shape: [usize; 3], random: &mut Random) -> Contents {
    of_kinds(format, shape, |row| ROWS[row % ROWS.len()], random)
}

/// A tensor of plain rows.
pub fn plain(format: Format, shape: [usize; 3], random: &mut Random) -> Contents {
    of_kinds(format, shape, |_| Kind::Plain, random)
}

/// A tensor whose integers are ids of so many rows.
pub fn ids([parts, rows, cols]: [usize; 3], below: u32, random: &mut Random) -> Contents {
    let data = (0..parts * rows * cols).flat_map(|_| random.below(below).to_le_bytes()).collect();
    Contents { data, scales: Vec::new(), scale_block: [0, 0] }
}

fn of_kinds(
    format: Format,
    [parts, rows, cols]: [usize; 3],
    kind: impl Fn(usize) -> Kind,
    random: &mut Random,
) -> Contents {
    let mut data = Vec::new();
    for row in (0..parts).flat_map(|_| 0..rows) {
        for block in 0..cols / format.block_len() {
            data.extend(self::block(format, kind(row), block, random));
        }
    }
    if !format.has_scales() {
        return Contents { data, scales: Vec::new(), scale_block: [0, 0] };
    }
    let [down, across] = SCALE_BLOCK.map(|n| n as usize);
    let mut scales = Vec::new();
    for row in (0..parts).flat_map(|_| (0..rows).step_by(down)) {
        for block in 0..cols.div_ceil(across) {
            scales.push(exponent(kind(row), block, random));
        }
    }
    Contents { data, scales, scale_block: SCALE_BLOCK }
}

/// One block of a row. A strange row is plain but for its first blocks.
fn block(format: Format, kind: Kind, index: usize, random: &mut Random) -> Vec<u8> {
    match format {
        Format::F32 => float(kind, index, random).to_le_bytes().to_vec(),
        Format::F16 => f16_code(half(kind, index, random)).to_le_bytes().to_vec(),
        Format::BF16 => ((float(kind, index, random) >> 16) as u16).to_le_bytes().to_vec(),
        Format::I32 => (random.word() as i32).to_le_bytes().to_vec(),
        // Kernels read the low words, which is checked when a weight is loaded.
        Format::I64 => u64::from(random.word() >> 1).to_le_bytes().to_vec(),
        Format::Q8_0 => scaled(kind, index, random, 34, &[0], 0x7f, 0x80),
        Format::IQ2_XXS => scaled(kind, index, random, 66, &[0], 0xff, 0x00),
        Format::Q4_K => scaled(kind, index, random, 144, &[0, 2], 0xff, 0x00),
        Format::Q2_K => scaled(kind, index, random, 84, &[80, 82], 0xff, 0x00),
        Format::MXFP4 => {
            let mut block = codes(kind, random, 17, 0x77, 0xff);
            block[0] = exponent(kind, index, random);
            block
        }
        Format::Fp4 => codes(kind, random, 1, 0x77, 0xff),
        Format::Fp8 => vec![e4m3(kind, index, random)],
    }
}

/// The bits of a binary32 element.
fn float(kind: Kind, index: usize, random: &mut Random) -> u32 {
    let x = match (kind, index) {
        (Kind::Strange, 0) => f32::INFINITY,
        (Kind::Strange, 1) => f32::from_bits(0x7f81_2345),
        (Kind::Largest, _) => times_power(1.0 + random.unit().abs(), 126),
        (Kind::Least, _) => -1.0,
        (Kind::Zeros, _) => [0.0, -0.0][index % 2],
        (Kind::Tiny, _) => times_power(random.unit(), -125 - random.below(20) as i32),
        _ => random.unit(),
    };
    x.to_bits()
}

/// An element within reach of binary16.
fn half(kind: Kind, index: usize, random: &mut Random) -> f32 {
    match kind {
        Kind::Largest => 65504.0 * (1.0 - random.below(3) as f32 / 64.0),
        Kind::Tiny => times_power(random.unit(), -13),
        _ => f32::from_bits(float(kind, index, random)),
    }
}

/// A block with binary16 scales at some bytes and codes in the others.
fn scaled(
    kind: Kind,
    index: usize,
    random: &mut Random,
    bytes: usize,
    at: &[usize],
    largest: u8,
    least: u8,
) -> Vec<u8> {
    let mut block = codes(kind, random, bytes, largest, least);
    for (i, &at) in at.iter().enumerate() {
        let d = match (kind, index + i) {
            (Kind::Strange, 0) => 0x7c00,
            (Kind::Strange, 2) => 0x7e01,
            (Kind::Largest, _) => 0x7bff | random.below(2) << 15,
            (Kind::Least, _) => 0xbc00,
            (Kind::Zeros, n) => [0x0000, 0x8000][n % 2],
            (Kind::Tiny, _) => random.word() & 0x83ff | 1,
            _ => random.word() & 0x83ff | 0x2c00,
        };
        block[at..at + 2].copy_from_slice(&(d as u16).to_le_bytes());
    }
    block
}

/// Bytes of codes.
fn codes(kind: Kind, random: &mut Random, bytes: usize, largest: u8, least: u8) -> Vec<u8> {
    let mut code = || match kind {
        Kind::Largest => largest,
        Kind::Least => least,
        _ => random.word() as u8,
    };
    (0..bytes).map(|_| code()).collect()
}

/// An E8M0 scale.
fn exponent(kind: Kind, index: usize, random: &mut Random) -> u8 {
    match (kind, index) {
        (Kind::Strange, 0) => 255,
        (Kind::Strange, 1) => 254,
        (Kind::Largest, _) => 240,
        (Kind::Tiny, _) => random.below(4) as u8,
        _ => 120 + random.below(16) as u8,
    }
}

/// An E4M3 element. 0x7f and 0xff are NaN.
fn e4m3(kind: Kind, index: usize, random: &mut Random) -> u8 {
    match (kind, index) {
        (Kind::Strange, 3) => 0xff,
        (Kind::Largest, _) => 0x7e,
        (Kind::Least, _) => 0xfe,
        (Kind::Zeros, _) => [0x00, 0x80][index % 2],
        (Kind::Tiny, _) => random.word() as u8 & 0x87,
        _ => {
            let code = random.word() as u8;
            if code & 0x7f == 0x7f { code & 0xfe } else { code }
        }
    }
}
