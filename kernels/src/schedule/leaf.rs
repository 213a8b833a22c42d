//! The leaf of a block of 32 elements with q8 activations: integer dot products of packed bytes, then the scales.

use ds4_ir::Format;
use ds4_ir::numerics::{Arith, round};

use crate::kernel::{Builder, Memory, Number, Word};

use super::decode::{Row, Tensor, bits, byte, sign_bits};
use super::scene::Refusal;

/// 32 activations: eight words of codes, and their scale.
pub(crate) struct Activations {
    codes: [Word; 8],
    dx: Number,
}

const ONES: u32 = 0x0101_0101;

impl Activations {
    /// The block whose first code is element `at`, a multiple of 32.
    pub(crate) fn load(b: &Builder, codes: Memory, scales: Memory, at: Word) -> Activations {
        Activations::at(b, (codes, b.name("codes_at", b.shr(at, b.word(2)))), (scales, b.shr(at, b.word(5))))
    }

    /// The block whose codes and scale lie at these words.
    pub(crate) fn at(b: &Builder, codes: (Memory, Word), scale: (Memory, Word)) -> Activations {
        let dx = b.load("dx", scale.0, scale.1);
        let codes = std::array::from_fn(|j| b.load(&format!("x{j}"), codes.0, b.add_int(codes.1, b.word(j as u32))));
        Activations { codes, dx }
    }

    /// The sum of `weight(j)` times word `j`, byte by byte.
    fn dot(&self, b: &Builder, words: std::ops::Range<usize>, weight: impl Fn(usize) -> Word) -> Word {
        let dots = words.map(|j| b.dot_bytes(weight(j), self.codes[j]));
        dots.reduce(|x, y| b.add_int(x, y)).unwrap_or_else(|| b.word(0))
    }
}

/// 32 weights: eight words of signed bytes, and how their dot product is scaled.
pub(crate) struct Weights {
    words: [Word; 8],
    scaling: Scaling,
}

/// What is done with the dot product `i` of 32 weights and activations.
enum Scaling {
    /// `mul(f(i), mul(d, dx))`
    Scaled { d: Number },
    /// `mul(f(i * step), mul(d, dx))`
    Stepped { step: Word, d: Number },
    /// `sub(mul(f(sum S*i), mul(d, dx)), mul(f(sum M*qsum), mul(dmin, dx)))`, the sums over equal parts.
    Affine { parts: Vec<[Word; 2]>, d: Number, dmin: Number },
}

impl Weights {
    /// The same, each word in a local of its own, for several uses.
    pub(crate) fn named(self, b: &Builder) -> Weights {
        let words = self.words.map(|word| b.name("w", word));
        let scaling = match self.scaling {
            Scaling::Scaled { d } => Scaling::Scaled { d: b.name("d", d) },
            Scaling::Stepped { step, d } => Scaling::Stepped { step: b.name("step", step), d: b.name("d", d) },
            affine => affine,
        };
        Weights { words, scaling }
    }

    /// What they contribute with these activations; the formulas are those of [`ds4_ir::formats::leaf::q8_leaf`].
    pub(crate) fn leaf(&self, b: &Builder, x: &Activations) -> Number {
        let dot = |range| x.dot(b, range, |j| self.words[j]);
        match &self.scaling {
            Scaling::Scaled { d } => b.mul(b.float_of(dot(0..8)), b.mul(*d, x.dx)),
            Scaling::Stepped { step, d } => b.mul(b.float_of(b.mul_int(dot(0..8), *step)), b.mul(*d, x.dx)),
            Scaling::Affine { parts, d, dmin } => {
                let (mut sum, mut minima) = (b.word(0), b.word(0));
                let words = 8 / parts.len().max(1);
                for (i, [scale, minimum]) in parts.iter().enumerate() {
                    let range = i * words..(i + 1) * words;
                    sum = b.add_int(sum, b.mul_int(*scale, dot(range.clone())));
                    minima = b.add_int(minima, b.mul_int(*minimum, x.dot(b, range, |_| b.word(ONES))));
                }
                let high = b.mul(b.float_of(sum), b.mul(*d, x.dx));
                b.sub(high, b.mul(b.float_of(minima), b.mul(*dmin, x.dx)))
            }
        }
    }
}

impl Tensor {
    /// What block `index` of a row contributes.
    pub(crate) fn leaf(&self, b: &Builder, row: &Row, index: Word, x: &Activations) -> Result<Number, Refusal> {
        Ok(self.weights(b, row, index)?.leaf(b, x))
    }

    /// Block `index` of a row.
    pub(crate) fn weights(&self, b: &Builder, row: &Row, index: Word) -> Result<Weights, Refusal> {
        match self.format {
            Format::Q8_0 => {
                let at = b.name("w_block", self.codes(b, row, index, 8));
                let words: [Word; 8] = std::array::from_fn(|j| self.load(b, b.add_int(at, b.word(j as u32))));
                Ok(Weights { words, scaling: Scaling::Scaled { d: self.half_scale(b, row, index) } })
            }
            Format::IQ2_XXS => self.iq2_weights(b, row, index),
            Format::Q4_K => Ok(self.q4_weights(b, row, index)),
            Format::Q2_K => Ok(self.q2_weights(b, row, index)),
            Format::MXFP4 => {
                let at = b.name("w_block", self.codes(b, row, index, 4));
                let words: [Word; 4] = std::array::from_fn(|j| self.load(b, b.add_int(at, b.word(j as u32))));
                let nibbles = |j: usize| b.shr(words[j % 4], b.word(4 * (j as u32 / 4)));
                let words = std::array::from_fn(|j| doubled_bytes(b, b.and(nibbles(j), b.word(0x0f * ONES))));
                Ok(Weights { words, scaling: Scaling::Scaled { d: self.mxfp4_scale(b, row, index) } })
            }
            Format::Fp4 => {
                let first = self.fp4_words(b, row, index);
                let words: [Word; 4] = std::array::from_fn(|j| self.load(b, b.add_int(first, b.word(j as u32))));
                let half = |j: usize| b.shr(words[j / 2], b.word(16 * (j as u32 % 2)));
                let words = std::array::from_fn(|j| doubled_bytes(b, spread(b, half(j))));
                let code = self.scale_code(b, row, b.shl(index, b.word(5)))?;
                Ok(Weights { words, scaling: Scaling::Scaled { d: b.name("d", round::e8m0_half(b, code)) } })
            }
            format => Err(Refusal::Unsupported(format!("{} takes no q8 activations", format.name()))),
        }
    }

    fn q4_weights(&self, b: &Builder, row: &Row, index: Word) -> Weights {
        let at = self.block(b, row, b.shr(index, b.word(3)));
        let part = b.and(index, b.word(7));
        let first = b.add_int(at, b.add_int(b.word(4), b.shl(b.shr(part, b.word(1)), b.word(3))));
        let shift = b.name("shift", b.shl(b.and(part, b.word(1)), b.word(2)));
        let words: [Word; 8] = std::array::from_fn(|j| self.load(b, b.add_int(first, b.word(j as u32))));
        let words = words.map(|word| b.and(b.shr(word, shift), b.word(0x0f * ONES)));
        let parts = vec![self.q4_scales(b, at, part)];
        let [d, dmin] = self.q4_d(b, at);
        Weights { words, scaling: Scaling::Affine { parts, d, dmin } }
    }

    fn q2_weights(&self, b: &Builder, row: &Row, index: Word) -> Weights {
        let at = self.block(b, row, b.shr(index, b.word(3)));
        let part = b.and(index, b.word(7));
        let first = b.add_int(at, b.add_int(b.word(4), b.shl(b.shr(part, b.word(2)), b.word(3))));
        let shift = b.name("shift", b.shl(b.and(part, b.word(3)), b.word(1)));
        let words: [Word; 8] = std::array::from_fn(|j| self.load(b, b.add_int(first, b.word(j as u32))));
        let words = words.map(|word| b.and(b.shr(word, shift), b.word(3 * ONES)));
        let scales_at = |half: u32| b.add_int(b.shl(part, b.word(1)), b.word(half));
        let parts = [0, 1].map(|half| self.q2_scales(b, at, scales_at(half))).to_vec();
        let [d, dmin] = self.q2_d(b, at);
        Weights { words, scaling: Scaling::Affine { parts, d, dmin } }
    }

    fn iq2_weights(&self, b: &Builder, row: &Row, index: Word) -> Result<Weights, Refusal> {
        let group = self.group(b, row, index);
        let mut words = [b.word(0); 8];
        for part in 0..4 {
            let magnitudes = self.magnitudes(b, byte(b, group.rows, b.word(part)))?;
            let signs = b.name("signs", sign_bits(b, bits(b, group.selectors, b.word(7 * part), 7)));
            for (i, magnitude) in magnitudes.into_iter().enumerate() {
                let nibble = bits(b, signs, b.word(4 * i as u32), 4);
                // Bit i of the nibble to the lowest bit of byte i.
                let negative = b.and(b.mul_int(nibble, b.word(0x0020_4081)), b.word(ONES));
                words[2 * part as usize + i] = negated(b, magnitude, negative);
            }
        }
        let step = b.add_int(b.shl(group.scale(b), b.word(1)), b.word(1));
        let d = b.mul(self.half_scale(b, row, b.shr(index, b.word(3))), b.number(0.125));
        Ok(Weights { words, scaling: Scaling::Stepped { step, d } })
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
