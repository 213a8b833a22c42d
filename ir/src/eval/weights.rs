//! Reading rows of weights.

use crate::format::Format;
use crate::formats::{WeightRow, decode_ids, decode_row};
use crate::graph::{Graph, Weight};

/// The bytes of a checkpoint's tensors.
pub trait WeightSource {
    /// Row `row` of `weight`, all axes but the last flattened; `None` if the checkpoint has no such row.
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>>;
}

/// The rows of one weight, checked as they are read.
pub(super) struct Rows<'a> {
    pub graph: Graph<'a>,
    pub source: &'a dyn WeightSource,
    pub weight: Weight,
    /// Elements of a row.
    pub len: usize,
}

impl<'a> Rows<'a> {
    /// A row whose bytes are as many as its format asks for.
    pub fn row(&self, index: u32) -> Result<WeightRow<'a>, String> {
        let row = self.source.row(self.weight, index as usize).ok_or_else(|| self.wrong(index, "is missing"))?;
        let format = self.graph.weights[self.weight.0 as usize].ty.format();
        if format != Some(row.format) {
            return Err(self.wrong(index, "has another format than the graph says"));
        }
        if row.format.row_bytes(self.len) != Some(row.data.len()) {
            return Err(self.wrong(index, "has the wrong number of bytes"));
        }
        if row.format.has_scales() && !self.has_scales(&row) {
            return Err(self.wrong(index, "has too few scales"));
        }
        Ok(row)
    }

    fn has_scales(&self, row: &WeightRow) -> bool {
        row.scale_cols > 0 && self.len.div_ceil(row.scale_cols) <= row.scales.len()
    }

    fn wrong(&self, index: u32, what: &str) -> String {
        let name = self.graph.name(self.graph.weights[self.weight.0 as usize].name);
        format!("row {index} of `{name}` {what}")
    }

    /// The elements of a row widened to f32.
    pub fn floats(&self, index: u32, out: &mut [f32]) -> Result<(), String> {
        decode_row(&self.row(index)?, out);
        Ok(())
    }

    /// The elements of a row as words: f32 bits, or i32 for integer formats.
    pub fn words(&self, index: u32, out: &mut Vec<u32>) -> Result<(), String> {
        let row = self.row(index)?;
        if matches!(row.format, Format::I32 | Format::I64) {
            let mut ids = vec![0; self.len];
            decode_ids(&row, &mut ids);
            for id in ids {
                let id = i32::try_from(id).map_err(|_| self.wrong(index, "has an integer beyond 32 bits"))?;
                out.push(id as u32);
            }
        } else {
            let start = out.len();
            out.resize(start + self.len, 0);
            decode_row(&row, bytemuck::cast_slice_mut(&mut out[start..]));
        }
        Ok(())
    }
}
