//! NumPy's array format, version 1.0.

use std::path::Path;

use ds4_ir::Diagnostic;

use super::Partial;

/// Type of an array's elements, little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// `<f4`.
    F32,
    /// `<i4`.
    I32,
}

impl Element {
    fn description(self) -> &'static str {
        match self {
            Element::F32 => "<f4",
            Element::I32 => "<i4",
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        4
    }
}

/// The header of an array in C order. Its length is a multiple of 64, and the same for all numbers of rows.
pub fn npy_header(element: Element, shape: &[usize]) -> Vec<u8> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let extents = match shape {
        [_] => extents.trim_end(),
        _ => extents.trim_end_matches(", "),
    };
    let description = element.description();
    let text = format!("{{'descr': '{description}', 'fortran_order': False, 'shape': ({extents}), }}");
    // Room for the longest first extent, so that it can be filled in at the end.
    let growth = 20usize.saturating_sub(shape.first().map_or(0, |rows| rows.to_string().len()));
    let prefix = 10;
    let length = (prefix + text.len() + growth + 1).next_multiple_of(64);
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(((length - prefix) as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header.resize(length - 1, b' ');
    header.push(b'\n');
    header
}

/// A float array that grows by rows and is never whole in memory.
#[derive(Debug)]
pub struct NpyRows {
    file: Partial,
    rows: usize,
    row_len: usize,
}

impl NpyRows {
    /// An array `[0, row_len]`.
    pub fn create(path: &Path, row_len: usize) -> Result<Self, Diagnostic> {
        let mut file = Partial::create(path)?;
        file.write(&npy_header(Element::F32, &[0, row_len]))?;
        Ok(NpyRows { file, rows: 0, row_len })
    }

    /// Appends whole rows.
    pub fn push(&mut self, rows: &[f32]) -> Result<(), Diagnostic> {
        assert!(rows.len().is_multiple_of(self.row_len), "rows are whole");
        self.rows += rows.len() / self.row_len;
        let mut bytes = Vec::with_capacity(rows.len() * 4);
        bytes.extend(rows.iter().flat_map(|value| value.to_le_bytes()));
        self.file.write(&bytes)
    }

    /// Number of rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Writes the number of rows into the header and gives the file its name.
    pub fn finish(mut self) -> Result<(), Diagnostic> {
        let header = npy_header(Element::F32, &[self.rows, self.row_len]);
        self.file.rewrite_start(&header)?;
        self.file.finish()
    }
}
