//! How a tensor's bytes lie in a device's memory: as words, each block's fields aligned.
//!
//! Blocks of 34, 66 or 17 bytes begin at any byte, and a device reads words. Their rows are stored field by field: first the
//! codes of all blocks of the row, then their scales, each field padded to a whole word. Every other format is stored as it
//! is, padded at the end of the tensor. Both ways are inverted by [`WeightLayout::inverse`].
//!
//! | format | words of a row of `n` blocks |
//! |---|---|
//! | `q8_0` | 8 for each block: its bytes; then the f16 scales, two to a word |
//! | `iq2_xxs` | 16 for each block: its groups; then the f16 scales, two to a word |
//! | `mxfp4` | 4 for each block: its codes; then the scale bytes, four to a word |
//! | others | the bytes of the tensor, four to a word |

use std::ops::Range;

use ds4_ir::Format;

/// The layout of one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightLayout {
    format: Format,
    /// Blocks of a row.
    blocks: usize,
}

impl WeightLayout {
    /// The layout of a tensor with rows of `len` elements; `None` if these are no whole number of blocks.
    pub fn of(format: Format, len: usize) -> Option<WeightLayout> {
        format.row_bytes(len)?;
        Some(WeightLayout { format, blocks: len / format.block_len() })
    }

    /// The bytes of a block that each field takes, in the order of the fields; none where bytes stay as they are.
    pub fn fields(&self) -> &'static [Range<usize>] {
        match self.format {
            Format::Q8_0 => &[2..34, 0..2],
            Format::IQ2_XXS => &[2..66, 0..2],
            Format::MXFP4 => &[1..17, 0..1],
            _ => &[],
        }
    }

    /// Whether rows are stored field by field.
    pub fn is_split(&self) -> bool {
        !self.fields().is_empty()
    }

    /// First word of a field within a row that is stored field by field.
    pub fn field_at(&self, field: usize) -> usize {
        self.fields()[..field].iter().map(|f| self.field_words(f)).sum()
    }

    fn field_words(&self, field: &Range<usize>) -> usize {
        (self.blocks * field.len()).div_ceil(4)
    }

    /// Words between two rows that are stored field by field.
    pub fn row_words(&self) -> usize {
        self.fields().iter().map(|f| self.field_words(f)).sum()
    }

    fn row_bytes(&self) -> usize {
        self.blocks * self.format.block_bytes()
    }

    /// Words of a tensor of `rows` rows.
    pub fn words(&self, rows: usize) -> usize {
        match self.is_split() {
            true => rows * self.row_words(),
            false => (rows * self.row_bytes()).div_ceil(4),
        }
    }

    /// The words of whole rows.
    pub fn forward(&self, bytes: &[u8]) -> Vec<u32> {
        if !self.is_split() {
            return packed(bytes);
        }
        let mut words = Vec::with_capacity(bytes.len().div_ceil(4));
        for row in bytes.chunks_exact(self.row_bytes().max(1)) {
            for field in self.fields() {
                let blocks = row.chunks_exact(self.format.block_bytes());
                let bytes: Vec<u8> = blocks.flat_map(|block| block[field.clone()].iter().copied()).collect();
                words.extend(packed(&bytes));
            }
        }
        words
    }

    /// The bytes of `rows` rows: `inverse(forward(bytes), rows) == bytes`.
    pub fn inverse(&self, words: &[u32], rows: usize) -> Vec<u8> {
        let stored: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        if !self.is_split() {
            return stored[..rows * self.row_bytes()].to_vec();
        }
        let mut bytes = vec![0; rows * self.row_bytes()];
        let size = self.format.block_bytes();
        for (block, out) in bytes.chunks_exact_mut(size).enumerate() {
            let (row, index) = (block / self.blocks, block % self.blocks);
            for (number, field) in self.fields().iter().enumerate() {
                let first = 4 * (row * self.row_words() + self.field_at(number)) + index * field.len();
                out[field.clone()].copy_from_slice(&stored[first..first + field.len()]);
            }
        }
        bytes
    }
}

/// Bytes as little-endian words, zeros behind the last.
pub fn packed(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| {
        let mut four = [0; 4];
        four[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(four)
    };
    bytes.chunks(4).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_gives_the_bytes_back() {
        for format in Format::ALL {
            for blocks in [1, 2, 3, 5] {
                for rows in [1, 2, 7] {
                    let layout = WeightLayout::of(format, blocks * format.block_len()).unwrap();
                    let bytes: Vec<u8> =
                        (0..rows * blocks * format.block_bytes()).map(|i| (i * 31 + i / 251) as u8).collect();
                    let words = layout.forward(&bytes);
                    assert_eq!(words.len(), layout.words(rows), "{}", format.name());
                    assert_eq!(layout.inverse(&words, rows), bytes, "{} {blocks} {rows}", format.name());
                }
            }
        }
    }

    #[test]
    fn fields_begin_at_words() {
        let layout = WeightLayout::of(Format::Q8_0, 96).unwrap();
        assert_eq!((layout.field_at(1), layout.row_words()), (24, 26));
        let layout = WeightLayout::of(Format::MXFP4, 160).unwrap();
        assert_eq!((layout.field_at(1), layout.row_words()), (20, 22));
    }
}
