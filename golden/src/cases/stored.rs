//! Weights of a case: a checkpoint of one file, in memory.

use ds4_compiler::frame::{SourceFile, SourceWeight};
use ds4_ir::Format;
use ds4_ir::eval::WeightSource;
use ds4_ir::formats::WeightRow;
use ds4_ir::graph::Weight;
use ds4_ir::plan::tables::{File, PartRow};
use ds4_kernels::schedule::ScaleBlocks;

/// The bytes of all weights and where each lies.
#[derive(Clone, Default, Debug)]
pub struct Stored {
    bytes: Vec<u8>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Copy, Debug)]
struct Tensor {
    format: Format,
    /// Parts, rows of a part, elements of a row.
    parts: usize,
    rows: usize,
    cols: usize,
    /// First bytes of data and scales.
    data: usize,
    scales: usize,
    scale_block: [u32; 2],
}

/// The bytes of a weight.
pub struct Contents {
    /// Its rows.
    pub data: Vec<u8>,
    /// Its E8M0 scales, part after part; empty where the format has none.
    pub scales: Vec<u8>,
    /// Rows and columns that share a scale.
    pub scale_block: [u32; 2],
}

impl Stored {
    /// Adds a tensor of `parts` parts of `rows` rows.
    pub fn add(&mut self, format: Format, [parts, rows, cols]: [usize; 3], contents: &Contents) {
        assert_eq!(Some(contents.data.len()), format.row_bytes(cols).map(|bytes| bytes * parts * rows), "whole rows");
        let (data, scales) = (self.bytes.len(), self.bytes.len() + contents.data.len());
        self.bytes.extend_from_slice(&contents.data);
        self.bytes.extend_from_slice(&contents.scales);
        // The next tensor begins at an odd byte: nothing may rely on an alignment.
        self.bytes.push(0);
        self.tensors.push(Tensor { format, parts, rows, cols, data, scales, scale_block: contents.scale_block });
    }

    /// The file, as a plan's frame has it.
    pub fn files(&self) -> Vec<SourceFile> {
        let size = self.bytes.len() as u64;
        vec![SourceFile { name: "memory".into(), size, header_len: 0, header_hash: *blake3::hash(&[]).as_bytes() }]
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each weight lies.
    pub fn weights(&self) -> Vec<SourceWeight> {
        let part = |t: &Tensor, i: usize| PartRow {
            file: File(0),
            scale_file: File(0),
            offset: (t.data + i * t.part_bytes()) as u64,
            scale_offset: (t.scales + i * t.part_scales()) as u64,
        };
        let weight =
            |t: &Tensor| SourceWeight { parts: (0..t.parts).map(|i| part(t, i)).collect(), scale_block: t.scale_block };
        self.tensors.iter().map(weight).collect()
    }

    /// What shares a scale, for each weight.
    pub fn scale_blocks(&self) -> Vec<ScaleBlocks> {
        self.tensors.iter().map(|t| ScaleBlocks { rows: t.scale_block[0], cols: t.scale_block[1] }).collect()
    }
}

impl Tensor {
    fn row_bytes(&self) -> usize {
        self.format.row_bytes(self.cols).unwrap_or(0)
    }

    fn part_bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    fn row_scales(&self) -> usize {
        self.cols.div_ceil(self.scale_block[1].max(1) as usize)
    }

    fn part_scales(&self) -> usize {
        match self.format.has_scales() {
            true => self.rows.div_ceil(self.scale_block[0] as usize) * self.row_scales(),
            false => 0,
        }
    }
}

impl WeightSource for Stored {
    fn row(&self, weight: Weight, row: usize) -> Option<WeightRow<'_>> {
        let t = self.tensors.get(weight.0 as usize)?;
        let data = self.bytes.get(t.data + row * t.row_bytes()..)?.get(..t.row_bytes())?;
        let scales = match t.format.has_scales() {
            true => {
                let within = row % t.rows / t.scale_block[0] as usize * t.row_scales();
                let first = t.scales + row / t.rows * t.part_scales() + within;
                self.bytes.get(first..first + t.row_scales())?
            }
            false => &[],
        };
        Some(WeightRow { format: t.format, data, scales, scale_cols: t.scale_block[1] as usize })
    }
}
