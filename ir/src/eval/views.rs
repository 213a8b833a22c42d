//! Rearrangements: views, `concat` and `gather`. All of them copy cells.

use std::sync::Arc;

use super::tensor::{Data, MASKED, Tensor, count};
use crate::op::Type;

/// A tensor in the making: cells are appended in row-major order.
struct Assembly {
    extents: Vec<usize>,
    like: Tensor,
    words: Vec<u32>,
    codes: Vec<i8>,
    scales: Vec<f32>,
    /// Cells so far, and which of them are absent once one is.
    cells: usize,
    absent: Vec<bool>,
}

impl Assembly {
    /// An empty tensor of the type of `like`.
    fn new(like: &Tensor, extents: Vec<usize>) -> Assembly {
        Assembly {
            extents,
            like: like.clone(),
            words: Vec::new(),
            codes: Vec::new(),
            scales: Vec::new(),
            cells: 0,
            absent: Vec::new(),
        }
    }

    /// Appends `cells` cells of `from`, beginning at `start`.
    fn take(&mut self, from: &Tensor, start: usize, cells: usize) {
        let end = start + cells;
        match &from.data {
            Data::Words(words) | Data::Rows { rows: words, .. } => self.words.extend_from_slice(&words[start..end]),
            Data::Q8 { codes, scales } => {
                let (row, blocks) = (from.cell_len(), from.cell_len() / 32);
                self.codes.extend_from_slice(&codes[start * row..end * row]);
                self.scales.extend_from_slice(&scales[start * blocks..end * blocks]);
            }
        }
        if let Some(absent) = &from.absent {
            self.absent.resize(self.cells, false);
            self.absent.extend_from_slice(&absent[start..end]);
        }
        self.cells += cells;
    }

    /// Appends cells without a value.
    fn skip(&mut self, cells: usize) {
        match &self.like.data {
            Data::Words(_) | Data::Rows { .. } => self.words.resize(self.words.len() + cells, 0),
            Data::Q8 { .. } => {
                let row = self.like.cell_len();
                self.codes.resize(self.codes.len() + cells * row, 0);
                self.scales.resize(self.scales.len() + cells * row / 32, 0.0);
            }
        }
        self.absent.resize(self.cells, false);
        self.cells += cells;
        self.absent.resize(self.cells, true);
    }

    fn finish(mut self) -> Tensor {
        let data = match self.like.data {
            Data::Words(_) => Data::Words(Arc::new(self.words)),
            Data::Rows { weight, .. } => Data::Rows { weight, rows: Arc::new(self.words) },
            Data::Q8 { .. } => Data::Q8 { codes: Arc::new(self.codes), scales: Arc::new(self.scales) },
        };
        if !self.absent.is_empty() {
            self.absent.resize(self.cells, false);
        }
        Tensor { ty: self.like.ty, extents: self.extents, data, absent: None }.with_absent(self.absent)
    }
}

/// `reshape`: the same elements under other extents.
pub(super) fn reshape(x: &Tensor, extents: Vec<usize>) -> Result<Tensor, String> {
    if count(&extents) != count(&x.extents) {
        return Err(format!("{:?} does not reshape to {extents:?}", x.extents));
    }
    Ok(Tensor { extents, ..x.clone() })
}

/// `slice` of one axis from `start`.
pub(super) fn slice(x: &Tensor, axis: usize, start: usize, extents: Vec<usize>) -> Result<Tensor, String> {
    if start.saturating_add(extents[axis]) > x.extents[axis] {
        return Err(format!("{start} .. {start} + {} leaves the axis of {}", extents[axis], x.extents[axis]));
    }
    let strides = strides(x.cell_extents());
    let offset = start * strides[axis];
    Ok(strided(x, extents, &strides, offset))
}

/// `permute`: axis i of the result is axis `axes[i]` of x.
pub(super) fn permute(x: &Tensor, axes: &[u32], extents: Vec<usize>) -> Tensor {
    let from = strides(x.cell_extents());
    let strides: Vec<usize> = axes[..from.len()].iter().map(|&axis| from[axis as usize]).collect();
    strided(x, extents, &strides, 0)
}

/// `broadcast`: extents of 1 repeat.
pub(super) fn broadcast(x: &Tensor, extents: Vec<usize>) -> Tensor {
    let mut strides = strides(x.cell_extents());
    for (stride, &extent) in strides.iter_mut().zip(&x.extents) {
        if extent == 1 {
            *stride = 0;
        }
    }
    strided(x, extents, &strides, 0)
}

/// Row-major strides of these extents.
fn strides(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(extents[axis]);
    }
    strides
}

/// The cells of `x` at `offset` plus the strides times each position of the result.
fn strided(x: &Tensor, extents: Vec<usize>, strides: &[usize], offset: usize) -> Tensor {
    let cells = extents[..strides.len()].to_vec();
    let mut result = Assembly::new(x, extents);
    if count(&cells) == 0 {
        return result.finish();
    }
    let Some((&last, outer)) = cells.split_last() else {
        result.take(x, offset, 1);
        return result.finish();
    };
    let (outer_strides, last_stride) = (&strides[..outer.len()], strides[outer.len()]);
    let mut at = vec![0; outer.len()];
    loop {
        let start = offset + at.iter().zip(outer_strides).map(|(i, s)| i * s).sum::<usize>();
        if last_stride == 1 {
            result.take(x, start, last);
        } else {
            (0..last).for_each(|i| result.take(x, start + i * last_stride, 1));
        }
        if !advance(&mut at, outer) {
            return result.finish();
        }
    }
}

/// The next position in row-major order; false behind the last.
fn advance(at: &mut [usize], extents: &[usize]) -> bool {
    for (i, &extent) in at.iter_mut().zip(extents).rev() {
        *i += 1;
        if *i < extent {
            return true;
        }
        *i = 0;
    }
    false
}

/// `concat` along `axis`.
pub(super) fn concat(parts: &[&Tensor], axis: usize, extents: Vec<usize>) -> Tensor {
    let outer = count(&extents[..axis]);
    let empty = count(&extents) == 0;
    let mut result = Assembly::new(parts[0], extents);
    if empty {
        return result.finish();
    }
    for o in 0..outer {
        for part in parts {
            let cells = count(&part.extents[axis..]);
            result.take(part, o * cells, cells);
        }
    }
    result.finish()
}

/// `gather`: rows of `source` along `axis`, the first `batch` axes common with `ids`.
pub(super) fn gather(
    source: &Tensor,
    ids: &Tensor,
    axis: usize,
    batch: usize,
    extents: Vec<usize>,
) -> Result<Tensor, String> {
    ids.expect_present("the ids")?;
    let empty = count(&extents) == 0;
    let mut result = Assembly::new(source, extents);
    if empty {
        return Ok(result.finish());
    }
    let cells = source.cell_extents();
    let (batches, fronts) = (count(&cells[..batch]), count(&cells[batch..axis]));
    let (rows, tail) = (cells[axis], count(&cells[axis + 1..]));
    let per_batch = count(&ids.extents[batch..]);
    for outer in 0..batches * fronts {
        let first = outer / fronts * per_batch;
        for &id in &ids.bits()[first..first + per_batch] {
            match id {
                MASKED if ids.ty == Type::ID => result.skip(tail),
                _ if (id as usize) < rows => result.take(source, (outer * rows + id as usize) * tail, tail),
                _ => {
                    return Err(format!("id {} is outside the axis of {rows} rows", id as i32));
                }
            }
        }
    }
    Ok(result.finish())
}
