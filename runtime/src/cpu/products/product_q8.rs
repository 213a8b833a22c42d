//! Products of quantised rows with q8 activations: `lanes(32)` over leaves of 32 elements.

use ds4_ir::Format;

use super::codes::Chunk;
use super::isa::{Isa, Kernel};
use super::level::{Column, LEAVES, Level};
use super::matrix::{Matrix, OutRows, Q8Columns, Row};
use super::tree::{ABSENT, halve_first};

/// Columns that share one reading of a row.
const TILE: usize = 8;
/// Rows that are read for one column after the other.
const ROWS: usize = 16;

/// Writes, for every row of `out` and every column of `x`, the product of the matrix row with the
/// column: leaves by the contract's q8 formulas, the tree always `lanes(32)`.
///
/// The format is one that [`Format::takes_q8`]; `x.len` equals the matrix's columns and is a multiple
/// of 32; scales apart are for a multiple of 32 elements each.
pub fn product_q8(isa: Isa, matrix: &Matrix, x: Q8Columns, out: &mut OutRows) {
    assert!(matrix.format.takes_q8(), "the format takes q8 activations");
    assert_eq!(matrix.cols, x.len, "row and column have one length");
    assert!(x.len.is_multiple_of(32), "q8 activations are blocks of 32");
    assert!(out.range().end <= matrix.rows, "rows of the matrix");
    if matrix.format.has_scales() {
        assert!(matrix.scale_block_cols.is_multiple_of(32) && matrix.scale_block_cols > 0);
    }
    isa.run(ProductQ8 { matrix, x, out });
}

/// Writes the sums of 16 codes each, which the columns of a product have beside their codes.
pub fn sum_codes(isa: Isa, codes: &[i8], sums: &mut [i16]) {
    assert_eq!(codes.len(), 16 * sums.len(), "one sum per 16 codes");
    isa.run(SumCodes { codes, sums });
}

struct SumCodes<'a> {
    codes: &'a [i8],
    sums: &'a mut [i16],
}

impl Kernel for SumCodes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self, level: L) {
        level.sum_codes(self.codes.as_chunks::<16>().0, self.sums);
    }
}

struct ProductQ8<'a, 'b, 'c> {
    matrix: &'a Matrix<'a>,
    x: Q8Columns<'a>,
    out: &'b mut OutRows<'c>,
}

impl Kernel for ProductQ8<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self, level: L) {
        if self.matrix.format == Format::Q8_0 {
            return self.q8_0(level);
        }
        let mut chunk = Chunk::new();
        let mut first = 0;
        while first < self.x.columns {
            let columns = TILE.min(self.x.columns - first);
            for r in self.out.range() {
                let row = self.matrix.row(r);
                let format = self.matrix.format;
                match columns {
                    1 => {
                        let values = row_by_columns::<L, 1>(level, format, &row, &self.x, first, 1, &mut chunk);
                        self.out.set(r, first, values[0]);
                    }
                    _ => {
                        let values =
                            row_by_columns::<L, TILE>(level, format, &row, &self.x, first, columns, &mut chunk);
                        for (t, &value) in values[..columns].iter().enumerate() {
                            self.out.set(r, first + t, value);
                        }
                    }
                }
            }
            first += columns;
        }
    }
}

impl ProductQ8<'_, '_, '_> {
    /// Blocks that hold one leaf and its scale need no chunk.
    #[inline(always)]
    fn q8_0<L: Level>(self, level: L) {
        let (leaves, stride) = (self.x.len / 32, self.matrix.row_stride);
        let rows = self.out.range();
        for start in rows.clone().step_by(ROWS) {
            for t in 0..self.x.columns {
                let column = self.x.leaves(t * leaves, leaves);
                for r in start..rows.end.min(start + ROWS) {
                    let (blocks, _) = self.matrix.data[r * stride..][..34 * leaves].as_chunks::<34>();
                    let value = if leaves == 0 { ABSENT } else { level.q8_0_row(blocks, column) };
                    self.out.set(r, t, value);
                }
            }
        }
    }
}

/// The products of one row with columns `first .. first + columns`, at most `T`.
#[inline(always)]
fn row_by_columns<L: Level, const T: usize>(
    level: L,
    format: Format,
    row: &Row,
    x: &Q8Columns,
    first: usize,
    columns: usize,
    chunk: &mut Chunk,
) -> [f32; T] {
    let leaves = x.len / 32;
    let mut lanes = [[ABSENT; LEAVES]; T];
    let mut start = 0;
    while start < leaves {
        let count = LEAVES.min(leaves - start);
        chunk.fill(level, format, row, start, count);
        for (t, lanes) in lanes[..columns].iter_mut().enumerate() {
            let x = x.leaves((first + t) * leaves + start, count);
            match format {
                Format::Q2_K | Format::Q4_K => add_leaves::<L, true>(level, chunk, x, lanes),
                _ => add_leaves::<L, false>(level, chunk, x, lanes),
            }
        }
        start += count;
    }
    let mut values = [0.0; T];
    for (value, lanes) in values.iter_mut().zip(&lanes[..columns]) {
        *value = halve_first(level, lanes, leaves);
    }
    values
}

/// Adds one leaf to each lane that has one.
#[inline(always)]
fn add_leaves<L: Level, const MINIMA: bool>(level: L, chunk: &Chunk, x: Column, lanes: &mut [f32; LEAVES]) {
    let mut sums = [0; LEAVES];
    level.dots(&chunk.codes, x.codes, &mut sums);
    let count = x.scales.len();
    let mut group = 0;
    while group + 4 <= count {
        for k in group..group + 4 {
            lanes[k] += leaf::<MINIMA>(chunk, k, sums[k], x);
        }
        group += 4;
    }
    for k in group..count {
        lanes[k] += leaf::<MINIMA>(chunk, k, sums[k], x);
    }
}

#[inline(always)]
fn leaf<const MINIMA: bool>(chunk: &Chunk, k: usize, sum: i32, x: Column) -> f32 {
    let high = (sum * chunk.factors[k]) as f32 * (chunk.scales[k] * x.scales[k]);
    if !MINIMA {
        return high;
    }
    let low = i32::from(chunk.minima[2 * k]) * i32::from(x.sums[2 * k])
        + i32::from(chunk.minima[2 * k + 1]) * i32::from(x.sums[2 * k + 1]);
    high - low as f32 * (chunk.minimum_scales[k] * x.scales[k])
}
