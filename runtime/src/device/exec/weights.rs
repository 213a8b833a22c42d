//! The bytes of a tensor as a device stores them, piece by piece.

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, Weight};
use ds4_ir::plan::{FieldRow, Plan};
use ds4_ir::{Diagnostic, Format, Place};
use ds4_kernels::weight_layout::WeightLayout;

/// A tensor of the checkpoint.
pub(super) struct Tensor<'a> {
    /// The rows of each part.
    parts: Vec<&'a [u8]>,
    /// The scales of each part; empty where the format has none.
    scales: Vec<&'a [u8]>,
    layout: WeightLayout,
    rows: usize,
    row_bytes: usize,
}

impl<'a> Tensor<'a> {
    /// The tensor of a weight; `files` are the plan's files, whose places in the plan have been checked.
    ///
    /// # Errors
    /// The plan stores its rows in another way than the kernels of this version, or its integers do not fit.
    pub(super) fn of(
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        files: &[&'a [u8]],
        weight: Weight,
    ) -> Result<Tensor<'a>, Diagnostic> {
        let (row, place) = (&graph.weights[weight.0 as usize], &plan.weight_places[weight.0 as usize]);
        let name = graph.name(row.name);
        let extents = graph.extents(row.shape, ds4_ir::Step { position: 0, columns: 1, outputs: 0 });
        let cols = extents.last().copied().unwrap_or(0);
        let rows: usize = extents[..extents.len().saturating_sub(1)].iter().product();
        let format = row.ty.format().filter(|_| rows > 0);
        let layout = format.and_then(|format| WeightLayout::of(format, cols));
        let (Some(format), Some(layout)) = (format, layout) else { return Err(other_layout(name)) };
        let declared = place.fields.of(plan.weight_fields);
        if !declared.iter().copied().eq(layout.fields().iter().map(field)) {
            return Err(other_layout(name));
        }
        let row_bytes = format.row_bytes(cols).unwrap_or(0);
        let parts = place.parts.of(plan.parts);
        let part_rows = rows / parts.len().max(1);
        let scale_bytes = match format.has_scales() {
            true => part_rows.div_ceil(place.scale_rows as usize) * cols.div_ceil(place.scale_cols as usize),
            false => 0,
        };
        let bytes = |file: usize, offset: u64, len: usize| &files[file][offset as usize..offset as usize + len];
        let tensor = Tensor {
            parts: parts.iter().map(|p| bytes(p.file.0 as usize, p.offset, part_rows * row_bytes)).collect(),
            scales: parts.iter().map(|p| bytes(p.scale_file.0 as usize, p.scale_offset, scale_bytes)).collect(),
            layout,
            rows,
            row_bytes,
        };
        tensor.check_integers(format, name)?;
        Ok(tensor)
    }

    /// Kernels read the low words of 64-bit integers.
    fn check_integers(&self, format: Format, name: &str) -> Result<(), Diagnostic> {
        let mut words = self.parts.iter().flat_map(|part| part.chunks_exact(8));
        if format != Format::I64 || words.all(|word| word[4..] == [0; 4]) {
            return Ok(());
        }
        Err(Diagnostic::new(codes::ID_OUTSIDE, "a stored integer does not fit 32 bits")
            .at(Place::item("the model", name))
            .help("the model's integer tables are damaged, or the compiler is at fault"))
    }

    /// Bytes on a device.
    pub(super) fn bytes(&self) -> u64 {
        4 * self.layout.words(self.rows) as u64
    }

    /// Bytes of the scales on a device, 0 if there are none.
    pub(super) fn scale_bytes(&self) -> u64 {
        self.scales.iter().map(|part| part.len() as u64).sum::<u64>().next_multiple_of(4)
    }

    /// Writes the device's bytes from `at`.
    pub(super) fn write(&self, at: u64, out: &mut [u8]) {
        let at = at as usize;
        if !self.layout.is_split() {
            return copy(&self.parts, at, out);
        }
        let size = 4 * self.layout.row_words();
        let part_rows = self.rows / self.parts.len();
        let end = at + out.len();
        for row in at / size..end.div_ceil(size) {
            let first = row % part_rows * self.row_bytes;
            let words = self.layout.forward(&self.parts[row / part_rows][first..first + self.row_bytes]);
            let bytes: &[u8] = bytemuck::cast_slice(&words);
            let (begin, stop) = ((row * size).max(at), ((row + 1) * size).min(end));
            out[begin - at..stop - at].copy_from_slice(&bytes[begin - row * size..stop - row * size]);
        }
    }

    /// Writes the device's bytes of the scales from `at`.
    pub(super) fn write_scales(&self, at: u64, out: &mut [u8]) {
        copy(&self.scales, at as usize, out);
    }
}

/// Copies what lies from `at` in the parts one after the other; zeros behind the last.
fn copy(parts: &[&[u8]], mut at: usize, mut out: &mut [u8]) {
    for part in parts {
        if at >= part.len() {
            at -= part.len();
            continue;
        }
        let len = out.len().min(part.len() - at);
        out[..len].copy_from_slice(&part[at..at + len]);
        out = &mut out[len..];
        at = 0;
    }
    out.fill(0);
}

fn field(range: &std::ops::Range<usize>) -> FieldRow {
    FieldRow { begin: range.start as u32, end: range.end as u32 }
}

fn other_layout(name: &str) -> Diagnostic {
    Diagnostic::new(codes::PLAN_FACT, "the plan stores a tensor in a way that its kernels do not read")
        .at(Place::item("the plan", name))
        .help("compile the model again with `ds4c compile`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_give_the_whole() {
        let cols = 64;
        let layout = WeightLayout::of(Format::Q8_0, cols).unwrap();
        let row_bytes = Format::Q8_0.row_bytes(cols).unwrap();
        let bytes: Vec<u8> = (0..6 * row_bytes).map(|i| (i * 7) as u8).collect();
        let (a, b) = bytes.split_at(3 * row_bytes);
        let scales: [&[u8]; 2] = [&[1, 2, 3], &[4, 5]];
        let tensor = Tensor { parts: vec![a, b], scales: scales.to_vec(), layout, rows: 6, row_bytes };
        let whole: Vec<u8> = layout.forward(&bytes).iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(tensor.bytes(), whole.len() as u64);
        for piece in [4, 12, 68, 72, 1 << 20] {
            let mut out = vec![0xaa; whole.len()];
            for (i, part) in out.chunks_mut(piece).enumerate() {
                tensor.write((i * piece) as u64, part);
            }
            assert_eq!(out, whole, "{piece}");
        }
        let mut out = [9; 8];
        tensor.write_scales(0, &mut out);
        assert_eq!(out, [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(tensor.scale_bytes(), 8);
    }
}
