//! What is multiplied and where results go.

use std::marker::PhantomData;
use std::ops::Range;

use ds4_ir::Format;

use super::level::Column;

/// A stored matrix: rows of blocks, each row contracted with a column of activations.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// How a row's bytes are to be read.
    pub format: Format,
    /// Rows, one per output element.
    pub rows: usize,
    /// Elements of a row, a whole number of the format's blocks.
    pub cols: usize,
    /// The rows, `row_stride` bytes apart.
    pub data: &'a [u8],
    /// Bytes from one row to the next.
    pub row_stride: usize,
    /// E8M0 scales of the formats that keep them apart, else empty.
    pub scales: &'a [u8],
    /// Bytes from one row of scales to the next.
    pub scale_stride: usize,
    /// Rows that share a row of scales.
    pub scale_block_rows: usize,
    /// Elements that share a scale.
    pub scale_block_cols: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix of a format that holds its scales itself, its rows following each other.
    pub fn plain(format: Format, rows: usize, cols: usize, data: &'a [u8]) -> Self {
        assert!(cols.is_multiple_of(format.block_len()), "rows are whole blocks");
        Matrix {
            format,
            rows,
            cols,
            data,
            row_stride: cols / format.block_len() * format.block_bytes(),
            scales: &[],
            scale_stride: 0,
            scale_block_rows: 1,
            scale_block_cols: 1,
        }
    }

    /// The row `index`.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> Row<'a> {
        let bytes = self.cols / self.format.block_len() * self.format.block_bytes();
        let scales = match self.format.has_scales() {
            true => {
                let count = self.cols.div_ceil(self.scale_block_cols);
                &self.scales[index / self.scale_block_rows * self.scale_stride..][..count]
            }
            false => &[],
        };
        Row { data: &self.data[index * self.row_stride..][..bytes], scales, scale_cols: self.scale_block_cols }
    }
}

/// One row of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) data: &'a [u8],
    pub(super) scales: &'a [u8],
    pub(super) scale_cols: usize,
}

/// Columns of q8 activations, as `quantise_q8` writes them, each contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Q8Columns<'a> {
    /// Codes, -127 to 127: `len` per column.
    pub codes: &'a [i8],
    /// Scales: `len / 32` per column.
    pub scales: &'a [f32],
    /// Sums of 16 codes each: `len / 16` per column.
    pub sums: &'a [i16],
    /// Elements of a column, a multiple of 32.
    pub len: usize,
    /// Columns.
    pub columns: usize,
}

impl<'a> Q8Columns<'a> {
    /// Leaves `first .. first + count` of all columns, which follow each other.
    #[inline(always)]
    pub(super) fn leaves(&self, first: usize, count: usize) -> Column<'a> {
        Column {
            codes: &self.codes[32 * first..][..32 * count],
            scales: &self.scales[first..][..count],
            sums: &self.sums[2 * first..][..2 * count],
        }
    }
}

/// Columns of f32 activations.
#[derive(Clone, Copy, Debug)]
pub struct F32Columns<'a> {
    /// The values; column `t` starts at `t * stride`.
    pub values: &'a [f32],
    /// Elements from one column to the next.
    pub stride: usize,
    /// Columns.
    pub columns: usize,
}

impl<'a> F32Columns<'a> {
    /// The first `len` elements of column `t`.
    #[inline(always)]
    pub(super) fn column(&self, t: usize, len: usize) -> &'a [f32] {
        &self.values[t * self.stride..][..len]
    }
}

/// The place of a product's results: row `r` of column `t` at `t * stride + r`.
///
/// Threads that compute different rows write through parts of one `Out`.
#[derive(Debug)]
pub struct Out<'a> {
    start: *mut f32,
    len: usize,
    stride: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: an `Out` is an exclusive borrow of `f32`s; it is written only through `OutRows`, and whoever
// makes several of those promises that they are disjoint.
unsafe impl Send for Out<'_> {}
// SAFETY: as above; a shared `Out` gives nothing but `OutRows`.
unsafe impl Sync for Out<'_> {}

impl<'a> Out<'a> {
    /// Results in `values`, columns `stride` apart.
    pub fn new(values: &'a mut [f32], stride: usize) -> Self {
        Out { start: values.as_mut_ptr(), len: values.len(), stride, borrowed: PhantomData }
    }

    /// The place of `rows`, for the only writer.
    pub fn rows(&mut self, rows: Range<usize>) -> OutRows<'_> {
        // SAFETY: the exclusive borrow of `self` lasts as long as the part, so there is no other.
        unsafe { self.shared_rows(rows) }
    }

    /// The place of `rows`, for one of several writers.
    ///
    /// # Safety
    /// No two parts that live at the same time may have a row in common, and rows are below the
    /// stride unless there is a single column.
    pub unsafe fn shared_rows(&self, rows: Range<usize>) -> OutRows<'_> {
        OutRows { out: self, rows }
    }
}

/// The right to write some rows of an [`Out`].
#[derive(Debug)]
pub struct OutRows<'a> {
    out: &'a Out<'a>,
    rows: Range<usize>,
}

impl OutRows<'_> {
    /// The rows.
    pub fn range(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Writes one result.
    #[inline(always)]
    pub(super) fn set(&mut self, row: usize, column: usize, value: f32) {
        debug_assert!(self.rows.contains(&row), "a part writes its own rows");
        let index = column * self.out.stride + row;
        assert!(index < self.out.len, "a result lies in the output");
        // SAFETY: the index is in the borrowed slice, and nobody else writes this row meanwhile, by
        // the promise made to `shared_rows` (or the exclusive borrow of `rows`).
        unsafe { self.out.start.add(index).write(value) };
    }
}
