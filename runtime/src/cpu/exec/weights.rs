//! The tensors of the checkpoint in mapped memory.

use std::ops::Range;

use ds4_ir::Format;
use ds4_ir::graph::Graph;
use ds4_ir::plan::Plan;

use super::access::Ptr;
use crate::cpu::products::Matrix;

/// A tensor: rows of blocks, in one part or in one part per index of its first axis.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) format: Format,
    /// Elements of a row.
    pub(crate) cols: usize,
    /// Rows of all parts.
    pub(crate) rows: usize,
    /// Bytes of a row.
    row_bytes: usize,
    /// Rows of a part.
    part_rows: usize,
    /// Data and scales of each part.
    parts: Vec<(Ptr, Ptr)>,
    scale_rows: usize,
    scale_cols: usize,
}

/// The tensors of a plan in these files; the plan has been checked, so each part lies inside its file.
pub(crate) fn tensors(graph: &Graph<'_>, plan: &Plan<'_>, files: &[&[u8]]) -> Vec<Tensor> {
    let places = plan.weight_places.iter();
    let rows = graph.weights.iter().zip(places).map(|(weight, place)| {
        let none = ds4_ir::Bounds { context: 0, columns: 0, outputs: 0 };
        let extents = graph.max_extents(weight.shape, none);
        let (cols, outer) = extents.split_last().map_or((0, &[][..]), |(&c, o)| (c, o));
        let rows: usize = outer.iter().product();
        let format = weight.ty.format().unwrap_or(Format::F32);
        let at = |file: u32, offset: u64| {
            let file = files[file as usize];
            Ptr(file.as_ptr().wrapping_add(offset as usize).cast_mut())
        };
        let parts = place.parts.of(plan.parts).iter();
        let parts: Vec<(Ptr, Ptr)> =
            parts.map(|p| (at(p.file.0, p.offset), at(p.scale_file.0, p.scale_offset))).collect();
        Tensor {
            format,
            cols,
            rows,
            row_bytes: format.row_bytes(cols).unwrap_or(0),
            part_rows: rows / parts.len().max(1),
            parts,
            scale_rows: (place.scale_rows as usize).max(1),
            scale_cols: (place.scale_cols as usize).max(1),
        }
    });
    rows.collect()
}

impl Tensor {
    /// The elements, if they lie together as words: f32 in one part.
    pub(crate) fn words(&self) -> Option<Ptr> {
        let &[(data, _)] = &self.parts[..] else { return None };
        let is_aligned = data.0.cast::<u32>().is_aligned();
        (self.format == Format::F32 && is_aligned).then_some(data)
    }

    /// Rows from `first` that are one matrix: at most `count`, within a part and with whole rows of scales.
    ///
    /// Gives the matrix and how many rows it has.
    pub(crate) fn matrix(&self, first: usize, count: usize) -> Matrix<'_> {
        let (part, local) = (first / self.part_rows, first % self.part_rows);
        let mut rows = count.min(self.part_rows - local);
        let mut block_rows = self.scale_rows;
        let off = local % self.scale_rows;
        if self.format.has_scales() && off > 0 {
            rows = rows.min(self.scale_rows - off);
            block_rows = rows;
        }
        let (data, scales) = self.parts[part];
        let scale_stride = self.cols.div_ceil(self.scale_cols);
        let scale_bytes = match self.format.has_scales() {
            true => rows.div_ceil(block_rows) * scale_stride,
            false => 0,
        };
        // SAFETY: the plan's check has shown that the part, rows and scales, lies inside its file, which is mapped
        // for as long as the executor lives and is never written.
        let (data, scales) = unsafe {
            let data = data.0.add(local * self.row_bytes);
            let scales = scales.0.add(match self.format.has_scales() {
                true => local / self.scale_rows * scale_stride,
                false => 0,
            });
            (
                std::slice::from_raw_parts(data.cast_const(), rows * self.row_bytes),
                std::slice::from_raw_parts(scales.cast_const(), scale_bytes),
            )
        };
        Matrix {
            format: self.format,
            rows,
            cols: self.cols,
            data,
            row_stride: self.row_bytes,
            scales,
            scale_stride,
            scale_block_rows: block_rows,
            scale_block_cols: self.scale_cols,
        }
    }

    /// One row, as the formats' definition reads it.
    pub(crate) fn row(&self, index: usize) -> ds4_ir::formats::WeightRow<'_> {
        let matrix = self.matrix(index, 1);
        ds4_ir::formats::WeightRow {
            format: self.format,
            data: matrix.data,
            scales: matrix.scales,
            scale_cols: self.scale_cols,
        }
    }

    /// Splits `rows` into matrices and calls `body(matrix, first row within rows)` for each.
    #[inline]
    pub(crate) fn matrices(&self, rows: Range<usize>, mut body: impl FnMut(&Matrix<'_>, usize)) {
        let mut at = rows.start;
        while at < rows.end {
            let matrix = self.matrix(at, rows.end - at);
            let count = matrix.rows;
            body(&matrix, at - rows.start);
            at += count;
        }
    }
}
