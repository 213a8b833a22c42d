//! The rows of a checkpoint for the evaluator.

use ds4_compiler::model::Model;
use ds4_compiler::read::{Checkpoint, FileId};
use ds4_ir::eval::WeightSource;
use ds4_ir::formats::WeightRow;
use ds4_ir::graph::Weight;

/// A checkpoint with its model: weight `i` of the lowered graph is row `i` of the model's weights.
pub struct Rows<'a> {
    /// The mapped files.
    pub checkpoint: &'a Checkpoint,
    /// Where the weights lie.
    pub model: &'a Model,
}

impl Rows<'_> {
    fn bytes(&self, file: FileId, start: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(start).ok()?;
        self.checkpoint.files.bytes(file).get(start..start.checked_add(len)?)
    }
}

impl WeightSource for Rows<'_> {
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>> {
        let reference = self.model.weights.reference.get(weight.0 as usize)?;
        let (&cols, outer) = reference.shape.split_last()?;
        let rows = outer.iter().product::<u64>() as usize / reference.parts.len();
        let part = reference.parts.get(row / rows)?;
        let row = row % rows;
        let len = reference.format.row_bytes(cols as usize)?;
        let data = self.bytes(part.file, part.offset + (row * len) as u64, len)?;
        let [scale_rows, scale_cols] = reference.scale_block.map(|n| n as usize);
        let scales = match part.scale {
            Some((file, offset)) => {
                let count = (cols as usize).div_ceil(scale_cols);
                self.bytes(file, offset + (row / scale_rows * count) as u64, count)?
            }
            None => &[],
        };
        Some(WeightRow { format: reference.format, data, scales, scale_cols })
    }
}
