//! Materialised values.

use std::sync::Arc;

use crate::graph::Weight;
use crate::numerics::canonical;
use crate::op::Type;

/// The word of a masked id.
pub const MASKED: u32 = u32::MAX;

/// The elements of a tensor, row-major. Shared, since most views and all reads only look.
#[derive(Clone, Debug)]
pub enum Data {
    /// f32 bits, i32, or ids with [`MASKED`] for the masked.
    Words(Arc<Vec<u32>>),
    /// One code per element, one scale per 32 elements of the last axis.
    Q8 {
        /// The codes.
        codes: Arc<Vec<i8>>,
        /// The scales.
        scales: Arc<Vec<f32>>,
    },
    /// Rows of a weight by their linear index: all axes but the last flattened.
    Rows {
        /// The weight.
        weight: Weight,
        /// Which rows.
        rows: Arc<Vec<u32>>,
    },
}

/// A materialised value.
///
/// A cell is what views move as one: an element of plain types, a row of the last axis of q8 and weight types.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Type of the elements.
    pub ty: Type,
    /// Extents, slowest first.
    pub extents: Vec<usize>,
    /// The elements.
    pub data: Data,
    /// For each cell whether it has no value; `None` if all have one.
    pub absent: Option<Arc<Vec<bool>>>,
}

impl Tensor {
    /// A tensor of words in which every element has a value.
    pub fn words(ty: Type, extents: Vec<usize>, words: Vec<u32>) -> Tensor {
        Tensor { ty, extents, data: Data::Words(Arc::new(words)), absent: None }
    }

    /// The words of an f32, i32 or id tensor; empty for other types.
    pub fn bits(&self) -> &[u32] {
        match &self.data {
            Data::Words(words) => words,
            _ => &[],
        }
    }

    /// The elements of an f32 tensor; empty for q8 and weight types.
    pub fn floats(&self) -> &[f32] {
        bytemuck::cast_slice(self.bits())
    }

    /// Extents of the cells.
    pub(super) fn cell_extents(&self) -> &[usize] {
        match self.data {
            Data::Words(_) => &self.extents,
            _ => &self.extents[..self.extents.len() - 1],
        }
    }

    /// Elements of a cell.
    pub(super) fn cell_len(&self) -> usize {
        match self.data {
            Data::Words(_) => 1,
            _ => self.extents[self.extents.len() - 1],
        }
    }

    /// Whether a cell has no value.
    pub fn is_absent(&self, cell: usize) -> bool {
        self.absent.as_ref().is_some_and(|absent| absent[cell])
    }

    /// Whether any cell has no value.
    pub fn any_absent(&self) -> bool {
        self.absent.as_ref().is_some_and(|absent| absent.contains(&true))
    }

    /// The same tensor with these cells absent.
    pub(super) fn with_absent(mut self, absent: Vec<bool>) -> Tensor {
        self.absent = absent.contains(&true).then(|| Arc::new(absent));
        self
    }

    /// An error that names `what` if any cell has no value.
    pub(super) fn expect_present(&self, what: &str) -> Result<(), String> {
        match self.absent.as_ref().and_then(|absent| absent.iter().position(|&a| a)) {
            Some(cell) => Err(format!("{what} has no value at {:?}", position(self.cell_extents(), cell))),
            None => Ok(()),
        }
    }

    /// The same tensor as it may be seen: NaN canonical, elements without a value zero.
    pub(super) fn observed(mut self) -> Tensor {
        let absent = self.absent.clone();
        let is_absent = |i: usize| absent.as_ref().is_some_and(|a| a[i]);
        if let Data::Words(words) = &mut self.data {
            let seen = |w: u32| {
                if self.ty == Type::F32 { canonical_bits(w) } else { w }
            };
            if words.iter().enumerate().any(|(i, &w)| is_absent(i) || seen(w) != w) {
                for (i, w) in Arc::make_mut(words).iter_mut().enumerate() {
                    *w = if is_absent(i) { 0 } else { seen(*w) };
                }
            }
        }
        self
    }
}

/// The bits of a float with NaN made canonical.
pub(super) fn canonical_bits(word: u32) -> u32 {
    canonical(f32::from_bits(word)).to_bits()
}

/// Number of elements of these extents; saturates.
pub(super) fn count(extents: &[usize]) -> usize {
    if extents.contains(&0) {
        return 0;
    }
    extents.iter().fold(1usize, |n, &e| n.saturating_mul(e))
}

/// The index along each axis of a linear index.
pub(super) fn position(extents: &[usize], mut linear: usize) -> Vec<usize> {
    let mut at = vec![0; extents.len()];
    for (i, &extent) in at.iter_mut().zip(extents).rev() {
        *i = linear % extent;
        linear /= extent;
    }
    at
}
