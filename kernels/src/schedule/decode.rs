//! Elements of stored tensors, decoded in the kernel from words.

use ds4_ir::Format;
use ds4_ir::graph::Weight;
use ds4_ir::numerics::{Arith, round};
use ds4_ir::plan::Root;

use crate::kernel::{Access, Builder, Memory, Number, Source, Truth, Type, Word};
use crate::weight_layout::WeightLayout;

use super::operand::Operand;
use super::scene::{Refusal, ScaleBlocks, Scene};

/// A tensor of the checkpoint as a kernel's arguments.
pub(crate) struct Tensor {
    pub(crate) format: Format,
    memory: Memory,
    /// Memory and blocks of the E8M0 scales, for formats that keep them apart.
    scales: Option<(Memory, ScaleBlocks)>,
    magnitudes: Option<Memory>,
    layout: WeightLayout,
    /// Elements of a row.
    len: u32,
    /// Rows of the last axis but one: scales begin anew behind them.
    rows: u32,
}

/// The words of one row.
pub(crate) struct Row {
    row: Word,
    /// First word of a row that is stored field by field, first element of another.
    first: Word,
}

impl Tensor {
    /// The arguments for a weight-typed operand.
    pub(crate) fn of(scene: &Scene<'_>, b: &Builder, operand: &Operand) -> Result<Tensor, Refusal> {
        let Root::Weight(weight) = operand.root else {
            return Err(Refusal::Unsupported(format!("{} is no weight", operand.value)));
        };
        let row = scene.graph.weights[weight.0 as usize];
        let mut extents = scene.graph.max_extents(row.shape, scene.bounds);
        let format = row.ty.format().ok_or_else(|| Refusal::Unsupported("a weight without a format".into()))?;
        let len = extents.pop().unwrap_or(1);
        let layout = WeightLayout::of(format, len).ok_or_else(|| {
            Refusal::Unsupported(format!("rows of {len} elements are no blocks of {}", format.name()))
        })?;
        let total: usize = extents.iter().product();
        if u32::try_from(layout.words(total)).is_err() || u32::try_from(total * len).is_err() && !layout.is_split() {
            return Err(Refusal::Unsupported("a tensor has more elements than 32 bits count".into()));
        }
        let element = if format == Format::F32 { Type::F32 } else { Type::Word };
        let memory = b.argument(Source::Weight(weight), element, Access::Read, "w");
        let scales = format.has_scales().then(|| Self::scales(scene, b, weight)).transpose()?;
        let magnitudes =
            (format == Format::IQ2_XXS).then(|| b.argument(Source::Magnitudes, Type::Word, Access::Read, "magnitudes"));
        let rows = extents.last().copied().unwrap_or(1) as u32;
        Ok(Tensor { format, memory, scales, magnitudes, layout, len: len as u32, rows })
    }

    fn scales(scene: &Scene<'_>, b: &Builder, weight: Weight) -> Result<(Memory, ScaleBlocks), Refusal> {
        let blocks = scene.scales.get(weight.0 as usize).copied().unwrap_or_default();
        if blocks.rows == 0 || blocks.cols == 0 {
            return Err(Refusal::Unsupported("a tensor's scales have no block size".into()));
        }
        Ok((b.argument(Source::WeightScales(weight), Type::Word, Access::Read, "w_scales"), blocks))
    }

    /// Where a row begins.
    pub(crate) fn row(&self, b: &Builder, row: Word) -> Row {
        let step = match self.layout.is_split() {
            true => self.layout.row_words() as u32,
            false => self.len,
        };
        Row { row, first: b.name("w_at", b.mul_int(row, b.word(step))) }
    }

    pub(crate) fn load(&self, b: &Builder, at: Word) -> Word {
        b.load("bits", self.memory, at)
    }

    /// The word that is first of block `block`, for formats with whole words a block that are stored as they are.
    pub(crate) fn block(&self, b: &Builder, row: &Row, block: Word) -> Word {
        let (elements, words) = (self.format.block_len() as u32, self.format.block_bytes() as u32 / 4);
        let number = b.add_int(b.div_int(row.first, elements), block);
        b.name("block_at", b.mul_int(number, b.word(words)))
    }

    /// First word of a block's codes in a row that is stored field by field.
    pub(crate) fn codes(&self, b: &Builder, row: &Row, block: Word, words: u32) -> Word {
        b.add_int(row.first, b.mul_int(block, b.word(words)))
    }

    /// The f16 scale of a block in a row that is stored field by field.
    pub(crate) fn half_scale(&self, b: &Builder, row: &Row, block: Word) -> Number {
        let first = b.add_int(row.first, b.word(self.layout.field_at(1) as u32));
        let word = self.load(b, b.add_int(first, b.shr(block, b.word(1))));
        b.name("d", round::f16_value(b, half(b, word, block)))
    }

    /// The scale of an `mxfp4` block: E8M0 halved, but 255 a scale like the others, as ggml has it.
    pub(crate) fn mxfp4_scale(&self, b: &Builder, row: &Row, block: Word) -> Number {
        let first = b.add_int(row.first, b.word(self.layout.field_at(1) as u32));
        let word = self.load(b, b.add_int(first, b.shr(block, b.word(2))));
        let code = byte(b, word, block);
        let largest = b.equal_int(code, b.word(255));
        b.name("d", b.select(largest, b.float(254 << 23), round::e8m0_half(b, code)))
    }

    /// The E8M0 code of an element's scale.
    pub(crate) fn scale_code(&self, b: &Builder, row: &Row, k: Word) -> Result<Word, Refusal> {
        let (memory, blocks) = self.scales.ok_or_else(|| Refusal::Unsupported("a format without scales".into()))?;
        let (across, down) = (self.len.div_ceil(blocks.cols), self.rows.div_ceil(blocks.rows));
        let outer = b.mul_int(b.div_int(row.row, self.rows), b.word(down));
        let inner = b.div_int(b.rem_int(row.row, self.rows), blocks.rows);
        let at = b.add_int(b.mul_int(b.add_int(outer, inner), b.word(across)), b.div_int(k, blocks.cols));
        let word = b.load("scale_bits", memory, b.shr(at, b.word(2)));
        Ok(byte(b, word, at))
    }

    /// A row of magnitudes of `iq2_xxs`: its two words.
    pub(crate) fn magnitudes(&self, b: &Builder, row: Word) -> Result<[Word; 2], Refusal> {
        let memory = self.magnitudes.ok_or_else(|| Refusal::Unsupported("a format without magnitudes".into()))?;
        let at = b.shl(row, b.word(1));
        Ok([b.load("low", memory, at), b.load("high", memory, b.add_int(at, b.word(1)))])
    }

    /// Element `k` of a row as a float, each operation rounded once, in the order of [`ds4_ir::formats`].
    pub(crate) fn element(&self, b: &Builder, row: &Row, k: Word) -> Result<Number, Refusal> {
        let linear = || b.add_int(row.first, k);
        Ok(match self.format {
            Format::F32 => b.load("w", self.memory, linear()),
            Format::F16 => {
                let at = b.name("w_k", linear());
                round::f16_value(b, half(b, self.load(b, b.shr(at, b.word(1))), at))
            }
            Format::BF16 => {
                let at = b.name("w_k", linear());
                round::bf16_value(b, half(b, self.load(b, b.shr(at, b.word(1))), at))
            }
            Format::Fp8 => {
                let at = b.name("w_k", linear());
                let code = byte(b, self.load(b, b.shr(at, b.word(2))), at);
                let scale = round::e8m0_value(b, self.scale_code(b, row, k)?);
                b.mul(round::e4m3_value(b, code), scale)
            }
            Format::Fp4 => {
                let at = b.name("w_k", linear());
                let word = self.load(b, b.shr(at, b.word(3)));
                let code = bits(b, word, b.shl(b.and(at, b.word(7)), b.word(2)), 4);
                let scale = round::e8m0_half(b, self.scale_code(b, row, k)?);
                b.mul(b.float_of(doubled(b, code)), scale)
            }
            Format::Q8_0 => {
                let word = self.load(b, b.add_int(row.first, b.shr(k, b.word(2))));
                let code = signed_byte(b, word, k);
                b.mul(b.float_of(code), self.half_scale(b, row, b.shr(k, b.word(5))))
            }
            Format::MXFP4 => {
                let block = b.name("block", b.shr(k, b.word(5)));
                let i = b.and(k, b.word(15));
                let at = b.add_int(self.codes(b, row, block, 4), b.shr(i, b.word(2)));
                let byte = byte(b, self.load(b, at), i);
                let nibble = bits(b, byte, b.shl(bits(b, k, b.word(4), 1), b.word(2)), 4);
                b.mul(b.float_of(doubled(b, nibble)), self.mxfp4_scale(b, row, block))
            }
            Format::Q2_K | Format::Q4_K => self.affine(b, row, k),
            Format::IQ2_XXS => self.iq2_xxs(b, row, k)?,
            Format::I32 | Format::I64 => {
                return Err(Refusal::Unsupported("integers are ids, not numbers".into()));
            }
        })
    }

    /// First word of block `index` of 32 elements of an `fp4` row.
    pub(crate) fn fp4_words(&self, b: &Builder, row: &Row, index: Word) -> Word {
        b.name("w_block", b.add_int(b.shr(row.first, b.word(3)), b.shl(index, b.word(2))))
    }

    /// The integer at element `k`; of 64-bit ones the low word.
    pub(crate) fn integer(&self, b: &Builder, row: &Row, k: Word) -> Word {
        let at = b.add_int(row.first, k);
        self.load(b, if self.format == Format::I64 { b.shl(at, b.word(1)) } else { at })
    }

    /// `sub(mul(mul(d, f(S)), f(c)), mul(dmin, f(M)))`
    fn affine(&self, b: &Builder, row: &Row, k: Word) -> Number {
        let at = self.block(b, row, b.shr(k, b.word(8)));
        let i = b.and(k, b.word(255));
        let ([d, dmin], [scale, minimum], code) = match self.format {
            Format::Q2_K => {
                let word = self.load(b, b.add_int(at, b.add_int(b.word(4), q2_word(b, i))));
                let code = bits(b, byte(b, word, i), b.shl(bits(b, i, b.word(5), 2), b.word(1)), 2);
                (self.q2_d(b, at), self.q2_scales(b, at, b.shr(i, b.word(4))), code)
            }
            _ => {
                let place = b.add_int(b.shl(b.shr(i, b.word(6)), b.word(3)), bits(b, i, b.word(2), 3));
                let word = self.load(b, b.add_int(at, b.add_int(b.word(4), place)));
                let code = bits(b, byte(b, word, i), b.shl(bits(b, i, b.word(5), 1), b.word(2)), 4);
                (self.q4_d(b, at), self.q4_scales(b, at, b.shr(i, b.word(5))), code)
            }
        };
        let high = b.mul(b.mul(d, b.float_of(scale)), b.float_of(code));
        b.sub(high, b.mul(dmin, b.float_of(minimum)))
    }

    /// `d` and `dmin` of a `q2_k` block at `at`.
    pub(crate) fn q2_d(&self, b: &Builder, at: Word) -> [Number; 2] {
        self.two_halves(b, b.add_int(at, b.word(20)))
    }

    /// `d` and `dmin` of a `q4_k` block at `at`.
    pub(crate) fn q4_d(&self, b: &Builder, at: Word) -> [Number; 2] {
        self.two_halves(b, at)
    }

    fn two_halves(&self, b: &Builder, at: Word) -> [Number; 2] {
        let word = self.load(b, at);
        [("d", 0), ("dmin", 1)].map(|(name, i)| b.name(name, round::f16_value(b, half(b, word, b.word(i)))))
    }

    /// Scale and minimum of sub-block `index` (16 elements) of a `q2_k` block at `at`.
    pub(crate) fn q2_scales(&self, b: &Builder, at: Word, index: Word) -> [Word; 2] {
        let word = self.load(b, b.add_int(at, b.shr(index, b.word(2))));
        let both = b.name("scales", byte(b, word, index));
        [b.and(both, b.word(15)), b.shr(both, b.word(4))]
    }

    /// Scale and minimum of sub-block `index` (32 elements) of a `q4_k` block at `at`.
    pub(crate) fn q4_scales(&self, b: &Builder, at: Word, index: Word) -> [Word; 2] {
        let [p, q, r] = [1, 2, 3].map(|i| {
            let word = self.load(b, b.add_int(at, b.word(i)));
            byte(b, word, index)
        });
        let lower = b.below(index, b.word(4));
        let field = |low: Word, nibble: Word| {
            let upper = b.or(nibble, b.shl(b.shr(low, b.word(6)), b.word(4)));
            b.select_int(lower, b.and(low, b.word(63)), upper)
        };
        [b.name("scale", field(p, b.and(r, b.word(15)))), b.name("minimum", field(q, b.shr(r, b.word(4))))]
    }

    /// `mul(mul(mul(d, add(0.5, f(s))), 0.25), f(g))`, negated where the sign bit is set.
    fn iq2_xxs(&self, b: &Builder, row: &Row, k: Word) -> Result<Number, Refusal> {
        let group = self.group(b, row, b.shr(k, b.word(5)));
        let i = b.and(k, b.word(31));
        let part = b.shr(i, b.word(3));
        let [low, high] = self.magnitudes(b, byte(b, group.rows, part))?;
        let upper = b.equal_int(bits(b, i, b.word(2), 1), b.word(1));
        let magnitude = byte(b, b.select_int(upper, high, low), i);
        let signs = sign_bits(b, bits(b, group.selectors, b.mul_int(part, b.word(7)), 7));
        let negative = b.equal_int(bits(b, signs, b.and(i, b.word(7)), 1), b.word(1));
        let d = self.half_scale(b, row, b.shr(k, b.word(8)));
        let step = b.add(b.number(0.5), b.float_of(group.scale(b)));
        let scale = b.mul(b.mul(d, step), b.number(0.25));
        let product = b.name("product", b.mul(scale, b.float_of(magnitude)));
        Ok(b.select(negative, b.neg(product), product))
    }

    /// Group `index` of 32 elements of an `iq2_xxs` row.
    pub(crate) fn group(&self, b: &Builder, row: &Row, index: Word) -> Group {
        let at = b.name("group_at", b.add_int(row.first, b.shl(index, b.word(1))));
        Group { rows: self.load(b, at), selectors: self.load(b, b.add_int(at, b.word(1))) }
    }
}

/// The fields of 32 elements of `iq2_xxs`.
pub(crate) struct Group {
    /// Four row numbers.
    pub(crate) rows: Word,
    /// Four 7-bit selectors and the scale.
    pub(crate) selectors: Word,
}

impl Group {
    pub(crate) fn scale(&self, b: &Builder) -> Word {
        b.shr(self.selectors, b.word(28))
    }
}

/// The word of element `i` among the code words of a `q2_k` block.
fn q2_word(b: &Builder, i: Word) -> Word {
    b.add_int(b.shl(b.shr(i, b.word(7)), b.word(3)), bits(b, i, b.word(2), 3))
}

/// `count` bits of `word` from bit `from`.
pub(crate) fn bits(b: &Builder, word: Word, from: Word, count: u32) -> Word {
    b.and(b.shr(word, from), b.word((1 << count) - 1))
}

/// Byte `i mod 4` of a word.
pub(crate) fn byte(b: &Builder, word: Word, i: Word) -> Word {
    bits(b, word, b.shl(b.and(i, b.word(3)), b.word(3)), 8)
}

/// The same as a signed number.
fn signed_byte(b: &Builder, word: Word, i: Word) -> Word {
    let up = b.sub_int(b.word(24), b.shl(b.and(i, b.word(3)), b.word(3)));
    b.sar(b.shl(word, up), b.word(24))
}

/// Half `i mod 2` of a word.
fn half(b: &Builder, word: Word, i: Word) -> Word {
    bits(b, word, b.shl(b.and(i, b.word(1)), b.word(4)), 16)
}

/// A 7-bit selector with the bit that makes the number of ones even.
pub(crate) fn sign_bits(b: &Builder, selector: Word) -> Word {
    let p = b.xor(selector, b.shr(selector, b.word(4)));
    let p = b.xor(p, b.shr(p, b.word(2)));
    let p = b.and(b.xor(p, b.shr(p, b.word(1))), b.word(1));
    b.or(selector, b.shl(p, b.word(7)))
}

/// Twice the value of an E2M1 code, as a signed word.
fn doubled(b: &Builder, code: Word) -> Word {
    let m = b.and(code, b.word(7));
    // The doubled magnitudes, four to a word.
    let table = b.select_int(b.below(m, b.word(4)), b.word(0x0302_0100), b.word(0x0c08_0604));
    let t = b.name("doubled", byte(b, table, m));
    let negative: Truth = b.not(b.below(code, b.word(8)));
    b.select_int(negative, b.sub_int(b.word(0), t), t)
}
