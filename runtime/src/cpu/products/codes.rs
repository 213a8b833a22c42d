//! A row's blocks as signed bytes, factors and scales: one form for every format that takes q8
//! activations, so that one product serves them all.
//!
//! With `dot` the exact sum of `codes * activations` over 32 elements, a leaf is
//! `mul(f(dot * factor), mul(scale, dx))`, less `mul(f(sum minimum * qsum), mul(minimum_scale, dx))`
//! for the formats with minima.

use ds4_ir::Format;
use ds4_ir::formats::iq2_xxs::{GRID, sign_bits};

use super::level::{LEAVES, Level};
use super::matrix::Row;

/// Up to [`LEAVES`] leaves of a row. Only the fields that a format uses are filled.
#[repr(align(64))]
pub(super) struct Chunk {
    /// Codes of 32 elements a leaf.
    pub(super) codes: [i8; 32 * LEAVES],
    /// What multiplies the integer sum.
    pub(super) factors: [i32; LEAVES],
    /// The leaf's scale, to be multiplied by the activations'.
    pub(super) scales: [f32; LEAVES],
    /// What multiplies the sum of each 16 activations.
    pub(super) minima: [i16; 2 * LEAVES],
    /// The scale of the minima.
    pub(super) minimum_scales: [f32; LEAVES],
}

impl Chunk {
    #[inline(always)]
    pub(super) fn new() -> Chunk {
        Chunk {
            codes: [0; 32 * LEAVES],
            factors: [1; LEAVES],
            scales: [0.0; LEAVES],
            minima: [0; 2 * LEAVES],
            minimum_scales: [0.0; LEAVES],
        }
    }

    /// Reads leaves `first .. first + count` of `row`. `first` begins a block.
    #[inline(always)]
    pub(super) fn fill<L: Level>(&mut self, level: L, format: Format, row: &Row, first: usize, count: usize) {
        match format {
            Format::Q2_K => self.q2_k(level, blocks::<84>(row, first / 8, count / 8)),
            Format::Q4_K => self.q4_k(level, blocks::<144>(row, first / 8, count / 8)),
            Format::IQ2_XXS => self.iq2_xxs(level, blocks::<66>(row, first / 8, count / 8)),
            Format::MXFP4 => self.mxfp4(level, blocks::<17>(row, first, count)),
            Format::Fp4 => self.fp4(level, row, first, count),
            _ => panic!("{} takes no q8 activations", format.name()),
        }
    }

    /// Codes times the sub-block's scale: at most 45.
    #[inline(always)]
    fn q2_k<L: Level>(&mut self, level: L, blocks: &[[u8; 84]]) {
        for (b, block) in blocks.iter().enumerate() {
            let codes = &mut self.codes.as_chunks_mut::<256>().0[b];
            q2_k_codes(block, codes);
            for (minimum, scale) in self.minima[16 * b..][..16].iter_mut().zip(block) {
                *minimum = i16::from(scale >> 4);
            }
            let [d, dmin] = pair(level, &block[80..]);
            self.scales[8 * b..][..8].fill(d);
            self.minimum_scales[8 * b..][..8].fill(dmin);
        }
    }

    #[inline(always)]
    fn q4_k<L: Level>(&mut self, level: L, blocks: &[[u8; 144]]) {
        for (b, block) in blocks.iter().enumerate() {
            let codes = &mut self.codes.as_chunks_mut::<256>().0[b];
            q4_k_codes(block, codes);
            let (scales, minima) = q4_k_scales(block);
            for k in 0..8 {
                self.factors[8 * b + k] = i32::from(scales[k]);
                self.minima[16 * b + 2 * k] = i16::from(minima[k]);
                self.minima[16 * b + 2 * k + 1] = i16::from(minima[k]);
            }
            let [d, dmin] = pair(level, block);
            self.scales[8 * b..][..8].fill(d);
            self.minimum_scales[8 * b..][..8].fill(dmin);
        }
    }

    #[inline(always)]
    fn iq2_xxs<L: Level>(&mut self, level: L, blocks: &[[u8; 66]]) {
        for (b, block) in blocks.iter().enumerate() {
            for group in 0..8 {
                let leaf = 8 * b + group;
                let codes = &mut self.codes.as_chunks_mut::<32>().0[leaf];
                self.factors[leaf] = 2 * iq2_xxs_group(block, group, codes) as i32 + 1;
            }
            let [d, _] = pair(level, block);
            self.scales[8 * b..][..8].fill(d * 0.125);
        }
    }

    #[inline(always)]
    fn mxfp4<L: Level>(&mut self, level: L, blocks: &[[u8; 17]]) {
        for (k, block) in blocks.iter().enumerate() {
            let (bytes, _) = block[1..].as_chunks::<16>();
            level.split_e2m1(&bytes[0], &mut self.codes.as_chunks_mut::<32>().0[k]);
            self.scales[k] = half_scale(block[0]);
        }
    }

    #[inline(always)]
    fn fp4<L: Level>(&mut self, level: L, row: &Row, first: usize, count: usize) {
        let (bytes, _) = row.data[16 * first..][..16 * count].as_chunks::<16>();
        for (k, bytes) in bytes.iter().enumerate() {
            level.paired_e2m1(bytes, &mut self.codes.as_chunks_mut::<32>().0[k]);
            let scale = row.scales[32 * (first + k) / row.scale_cols];
            self.scales[k] = if scale == 255 { f32::NAN } else { half_scale(scale) };
        }
    }
}

/// Blocks of `N` bytes of a row.
#[inline(always)]
pub(super) fn blocks<'a, const N: usize>(row: &Row<'a>, first: usize, count: usize) -> &'a [[u8; N]] {
    row.data[N * first..][..N * count].as_chunks::<N>().0
}

/// Two binary16 at the start of `bytes`.
#[inline(always)]
pub(super) fn pair<L: Level>(level: L, bytes: &[u8]) -> [f32; 2] {
    let first = u16::from_le_bytes([bytes[0], bytes[1]]);
    let second = u16::from_le_bytes([bytes[2], bytes[3]]);
    [level.widen_half(first), level.widen_half(second)]
}

/// `2^(e-128)`.
#[inline(always)]
pub(super) fn half_scale(e: u8) -> f32 {
    let e = u32::from(e);
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 })
}

/// Codes of a `q2_k` block times their sub-block's scale.
#[inline(always)]
fn q2_k_codes(block: &[u8; 84], out: &mut [i8; 256]) {
    for half in 0..2 {
        let bytes = &block[16 + 32 * half..][..32];
        for shift in 0..4 {
            let leaf = 4 * half + shift;
            for i in 0..32 {
                let scale = block[2 * leaf + i / 16] & 15;
                out[32 * leaf + i] = ((bytes[i] >> (2 * shift) & 3) * scale) as i8;
            }
        }
    }
}

#[inline(always)]
pub(super) fn q4_k_codes(block: &[u8; 144], out: &mut [i8; 256]) {
    for pair in 0..4 {
        let bytes = &block[16 + 32 * pair..][..32];
        for i in 0..32 {
            out[64 * pair + i] = (bytes[i] & 15) as i8;
            out[64 * pair + 32 + i] = (bytes[i] >> 4) as i8;
        }
    }
}

/// The eight 6-bit scales and minima of a `q4_k` block, by words of four.
#[inline(always)]
pub(super) fn q4_k_scales(block: &[u8; 144]) -> ([u8; 8], [u8; 8]) {
    let word = |i: usize| u32::from_le_bytes([block[i], block[i + 1], block[i + 2], block[i + 3]]);
    let (a, b, c) = (word(4), word(8), word(12));
    let join = |low: u32, high: u32| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&low.to_le_bytes());
        bytes[4..].copy_from_slice(&high.to_le_bytes());
        bytes
    };
    let scales = join(a & 0x3f3f_3f3f, c & 0x0f0f_0f0f | a >> 2 & 0x3030_3030);
    let minima = join(b & 0x3f3f_3f3f, c >> 4 & 0x0f0f_0f0f | b >> 2 & 0x3030_3030);
    (scales, minima)
}

/// The signed codes of a group of an `iq2_xxs` block; gives its scale.
#[inline(always)]
pub(super) fn iq2_xxs_group(block: &[u8; 66], group: usize, out: &mut [i8; 32]) -> u32 {
    let (bytes, _) = block[2 + 8 * group..][..8].as_chunks::<8>();
    let bits = u64::from_le_bytes(bytes[0]);
    let selectors = (bits >> 32) as u32;
    for part in 0..4 {
        let grid = GRID[(bits >> (8 * part)) as usize & 255];
        let signs = SIGNS[(selectors >> (7 * part)) as usize & 127];
        // Bytewise negation: a magnitude is never 0, so adding 1 to its complement carries nowhere.
        let signed = (grid ^ signs) + (signs & 0x0101_0101_0101_0101);
        out.as_chunks_mut::<8>().0[part] = signed.to_le_bytes().map(|byte| byte as i8);
    }
    selectors >> 28
}

/// For each sign selector, a byte of ones for each negative element.
static SIGNS: [u64; 128] = {
    let mut table = [0; 128];
    let mut selector = 0;
    while selector < 128 {
        let bits = sign_bits(selector as u8);
        let mut i = 0;
        while i < 8 {
            if bits >> i & 1 == 1 {
                table[selector] |= 0xff << (8 * i);
            }
            i += 1;
        }
        selector += 1;
    }
    table
};
