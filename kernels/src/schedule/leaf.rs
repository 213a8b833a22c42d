//! The leaf of a block of 32 elements with q8 activations: integer dot products of packed bytes, then the scales.

use ds4_ir::Format;
use ds4_ir::numerics::{Arith, round};

use crate::kernel::{Builder, Memory, Number, Word};

use super::decode::{Row, Tensor, bits, byte, sign_bits};
use super::scene::Refusal;

/// 32 activations: eight words of codes, and their scale.
pub(super) struct Activations {
    codes: [Word; 8],
    dx: Number,
}

const ONES: u32 = 0x0101_0101;

impl Activations {
    /// The block whose first code is element `at`, a multiple of 32.
    pub(super) fn load(b: &Builder, codes: Memory, scales: Memory, at: Word) -> Activations {
        let first = b.name("codes_at", b.shr(at, b.word(2)));
        let dx = b.load("dx", scales, b.shr(at, b.word(5)));
        let codes = std::array::from_fn(|j| b.load(&format!("x{j}"), codes, b.add_int(first, b.word(j as u32))));
        Activations { codes, dx }
    }

    /// The sum of `weight(j)` times word `j`, byte by byte.
    fn dot(&self, b: &Builder, words: std::ops::Range<usize>, weight: impl Fn(usize) -> Word) -> Word {
        let dots = words.map(|j| b.dot_bytes(weight(j), self.codes[j]));
        dots.reduce(|x, y| b.add_int(x, y)).unwrap_or_else(|| b.word(0))
    }
}

impl Tensor {
    /// What block `index` of a row contributes; the formulas are those of [`ds4_ir::formats::leaf::q8_leaf`].
    pub(super) fn leaf(&self, b: &Builder, row: &Row, index: Word, x: &Activations) -> Result<Number, Refusal> {
        match self.format {
            Format::Q8_0 => {
                let at = b.name("w_block", self.codes(b, row, index, 8));
                let words: [Word; 8] = std::array::from_fn(|j| self.load(b, b.add_int(at, b.word(j as u32))));
                let sum = x.dot(b, 0..8, |j| words[j]);
                let d = self.half_scale(b, row, index);
                Ok(b.mul(b.float_of(sum), b.mul(d, x.dx)))
            }
            Format::IQ2_XXS => self.iq2_leaf(b, row, index, x),
            Format::Q4_K => Ok(self.q4_leaf(b, row, index, x)),
            Format::Q2_K => Ok(self.q2_leaf(b, row, index, x)),
            Format::MXFP4 => {
                let at = b.name("w_block", self.codes(b, row, index, 4));
                let words: [Word; 4] = std::array::from_fn(|j| self.load(b, b.add_int(at, b.word(j as u32))));
                let nibbles = |j: usize| b.shr(words[j % 4], b.word(4 * (j as u32 / 4)));
                let sum = x.dot(b, 0..8, |j| doubled_bytes(b, b.and(nibbles(j), b.word(0x0f * ONES))));
                let d = self.mxfp4_scale(b, row, index);
                Ok(b.mul(b.float_of(sum), b.mul(d, x.dx)))
            }
            Format::Fp4 => {
                let first = self.fp4_words(b, row, index);
                let words: [Word; 4] = std::array::from_fn(|j| self.load(b, b.add_int(first, b.word(j as u32))));
                let sum =
                    x.dot(b, 0..8, |j| doubled_bytes(b, spread(b, b.shr(words[j / 2], b.word(16 * (j as u32 % 2))))));
                let code = self.scale_code(b, row, b.shl(index, b.word(5)))?;
                let d = b.name("d", round::e8m0_half(b, code));
                Ok(b.mul(b.float_of(sum), b.mul(d, x.dx)))
            }
            format => Err(Refusal::Unsupported(format!("{} takes no q8 activations", format.name()))),
        }
    }

    fn q4_leaf(&self, b: &Builder, row: &Row, index: Word, x: &Activations) -> Number {
        let at = self.block(b, row, b.shr(index, b.word(3)));
        let part = b.and(index, b.word(7));
        let first = b.add_int(at, b.add_int(b.word(4), b.shl(b.shr(part, b.word(1)), b.word(3))));
        let shift = b.name("shift", b.shl(b.and(part, b.word(1)), b.word(2)));
        let words: [Word; 8] = std::array::from_fn(|j| self.load(b, b.add_int(first, b.word(j as u32))));
        let sum = x.dot(b, 0..8, |j| b.and(b.shr(words[j], shift), b.word(0x0f * ONES)));
        let total = x.dot(b, 0..8, |_| b.word(ONES));
        let [scale, minimum] = self.q4_scales(b, at, part);
        let [d, dmin] = self.q4_d(b, at);
        let high = b.mul(b.float_of(b.mul_int(scale, sum)), b.mul(d, x.dx));
        b.sub(high, b.mul(b.float_of(b.mul_int(minimum, total)), b.mul(dmin, x.dx)))
    }

    fn q2_leaf(&self, b: &Builder, row: &Row, index: Word, x: &Activations) -> Number {
        let at = self.block(b, row, b.shr(index, b.word(3)));
        let part = b.and(index, b.word(7));
        let first = b.add_int(at, b.add_int(b.word(4), b.shl(b.shr(part, b.word(2)), b.word(3))));
        let shift = b.name("shift", b.shl(b.and(part, b.word(3)), b.word(1)));
        let words: [Word; 8] = std::array::from_fn(|j| self.load(b, b.add_int(first, b.word(j as u32))));
        let (mut sum, mut minima) = (b.word(0), b.word(0));
        for half in 0..2 {
            let scale_at = b.add_int(b.shl(part, b.word(1)), b.word(half));
            let [scale, minimum] = self.q2_scales(b, at, scale_at);
            let range = 4 * half as usize..4 * half as usize + 4;
            let dot = x.dot(b, range.clone(), |j| b.and(b.shr(words[j], shift), b.word(3 * ONES)));
            let total = x.dot(b, range, |_| b.word(ONES));
            sum = b.add_int(sum, b.mul_int(scale, dot));
            minima = b.add_int(minima, b.mul_int(minimum, total));
        }
        let [d, dmin] = self.q2_d(b, at);
        let high = b.mul(b.float_of(sum), b.mul(d, x.dx));
        b.sub(high, b.mul(b.float_of(minima), b.mul(dmin, x.dx)))
    }

    fn iq2_leaf(&self, b: &Builder, row: &Row, index: Word, x: &Activations) -> Result<Number, Refusal> {
        let group = self.group(b, row, index);
        let mut words = Vec::with_capacity(8);
        for part in 0..4 {
            let magnitudes = self.magnitudes(b, byte(b, group.rows, b.word(part)))?;
            let signs = b.name("signs", sign_bits(b, bits(b, group.selectors, b.word(7 * part), 7)));
            for (i, magnitude) in magnitudes.into_iter().enumerate() {
                let nibble = bits(b, signs, b.word(4 * i as u32), 4);
                // Bit i of the nibble to the lowest bit of byte i.
                let negative = b.and(b.mul_int(nibble, b.word(0x0020_4081)), b.word(ONES));
                words.push(negated(b, magnitude, negative));
            }
        }
        let sum = x.dot(b, 0..8, |j| words[j]);
        let scale = b.add_int(b.shl(group.scale(b), b.word(1)), b.word(1));
        let d = b.mul(self.half_scale(b, row, b.shr(index, b.word(3))), b.number(0.125));
        Ok(b.mul(b.float_of(b.mul_int(sum, scale)), b.mul(d, x.dx)))
    }
}

/// The bytes of `word` negated where the lowest bit of the same byte of `negative` is set; those bytes are not zero.
fn negated(b: &Builder, word: Word, negative: Word) -> Word {
    b.add_int(b.xor(word, b.mul_int(negative, b.word(0xff))), negative)
}

/// Four nibbles of the lower half as bytes.
fn spread(b: &Builder, word: Word) -> Word {
    let nibble = |j: u32| b.shl(b.and(word, b.word(0xf << (4 * j))), b.word(4 * j));
    b.or(b.or(nibble(0), nibble(1)), b.or(nibble(2), nibble(3)))
}

/// Twice the values of four E2M1 codes, one a byte, as signed bytes.
///
/// With the magnitude's bits `h c a` it is `4 + 2a + 4c + 2ac` if `h`, else `2c + a`.
fn doubled_bytes(b: &Builder, codes: Word) -> Word {
    let bit = |n: u32| b.and(b.shr(codes, b.word(n)), b.word(ONES));
    let (a, c, h, sign) = (bit(0), bit(1), bit(2), bit(3));
    let twice = b.shl(b.add_int(a, b.and(a, c)), b.word(1));
    let large = b.add_int(b.word(4 * ONES), b.add_int(twice, b.shl(c, b.word(2))));
    let mask = b.mul_int(h, b.word(0xff));
    let small = b.and(codes, b.word(3 * ONES));
    let magnitude = b.xor(small, b.and(b.xor(small, large), mask));
    let nonzero = b.or(a, b.or(c, h));
    negated(b, magnitude, b.and(sign, nonzero))
}
