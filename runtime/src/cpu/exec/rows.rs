//! `widen` and `gather`: rows by number or by id.

use std::ops::Range;

use ds4_ir::Format;
use ds4_ir::formats::{decode_ids, decode_row};

use super::access::{Place, Selection};
use super::extents::Ext;
use super::kernel::{FaultKind, Kernel, Scratch, Size, StepView, grown};
use super::map::{collect, scatter};
use super::matrix_product::select;
use super::nest::Nest;
use super::weights::Tensor;

/// A prepared `widen`. Operands of the nest: output, weight rows, ids.
pub(crate) struct Widen {
    pub(crate) tensor: usize,
    pub(crate) rows: Nest,
    pub(crate) k: usize,
    pub(crate) out_k: usize,
    pub(crate) w: Place,
    pub(crate) ids: Option<Selection>,
    pub(crate) out: Place,
    /// For reports.
    pub(crate) value: ds4_ir::Value,
}

impl Kernel for Widen {
    fn size(&self, step: &StepView<'_>) -> Size {
        let rows = self.rows.count(step.values);
        Size { tasks: rows, nanoseconds: rows * (20 + self.k / 2) }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let tensor = &step.tensors[self.tensor];
        let mut walk = self.rows.walk(step.values, tasks.start);
        let mut at = [0; 3];
        walk.offsets(&mut at);
        let (first, out) = (self.w.first(step.values), self.out.at(step.values));
        for _ in tasks {
            let selected = match &self.ids {
                None => Some(0),
                Some(selection) => {
                    // SAFETY: the ids lie inside their memory (checked at load).
                    let id = unsafe { *selection.place.at(step.values).add(at[2]) };
                    select(step, selection, id)
                }
            };
            let row = selected.map(|row| first + at[1] + row);
            let words = grown(&mut scratch.floats, self.k);
            let fits = decode(tensor, row, words, &mut scratch.integers);
            if !fits {
                step.faults.note(FaultKind::Integer, self.value);
            }
            // SAFETY: the row lies inside the output (checked at load); this task alone writes it.
            unsafe {
                let to = out.add(at[0]);
                scatter(words.as_ptr().cast(), to, self.out_k, self.k);
            }
            walk.advance(&mut at);
        }
    }
}

/// The words of a row: f32, or i32 for integers; zeros for a masked one. False if an integer needs more bits.
fn decode(tensor: &Tensor, row: Option<usize>, out: &mut [f32], integers: &mut Vec<i64>) -> bool {
    let Some(row) = row else {
        out.fill(0.0);
        return true;
    };
    let row = tensor.row(row);
    match tensor.format {
        Format::F32 => bytemuck::cast_slice_mut(out).copy_from_slice(row.data),
        Format::BF16 => {
            for (value, bytes) in out.iter_mut().zip(row.data.as_chunks::<2>().0) {
                *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            }
        }
        Format::I32 | Format::I64 => {
            let integers = grown(integers, out.len());
            decode_ids(&row, integers);
            for (word, &id) in out.iter_mut().zip(integers.iter()) {
                let Ok(id) = i32::try_from(id) else {
                    return false;
                };
                *word = f32::from_bits(id as u32);
            }
        }
        _ => decode_row(&row, out),
    }
    true
}

/// A prepared `gather`. Operands of the nest: output, source, ids.
pub(crate) struct Gather {
    pub(crate) outer: Nest,
    /// The innermost axis, which does not belong to the ids, and its strides in output and source.
    pub(crate) inner: Ext,
    pub(crate) out_inner: usize,
    pub(crate) source_inner: usize,
    pub(crate) source: Place,
    pub(crate) ids: Selection,
    pub(crate) out: Place,
}

impl Kernel for Gather {
    fn size(&self, step: &StepView<'_>) -> Size {
        let rows = self.outer.count(step.values);
        let n = step.get(self.inner);
        Size { tasks: if n == 0 { 0 } else { rows }, nanoseconds: rows * (5 + n / 8) }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let n = step.get(self.inner);
        let mut walk = self.outer.walk(step.values, tasks.start);
        let mut at = [0; 3];
        walk.offsets(&mut at);
        let (out, source) = (self.out.at(step.values), self.source.at(step.values));
        let ids = self.ids.place.at(step.values);
        for _ in tasks {
            // SAFETY: ids, the selected row (its id is below the bound) and the place of the result lie inside their
            // memory (checked at load); this task alone writes the row.
            unsafe {
                let to = out.add(at[0]);
                let from = select(step, &self.ids, *ids.add(at[2]));
                match from.map(|row| source.add(at[1] + row)) {
                    Some(from) if self.out_inner == 1 => collect(from, self.source_inner, to, n),
                    Some(from) => {
                        let words = grown(&mut scratch.floats, n).as_mut_ptr().cast();
                        collect(from, self.source_inner, words, n);
                        scatter(words, to, self.out_inner, n);
                    }
                    None => (0..n).for_each(|i| *to.add(i * self.out_inner) = 0),
                }
            }
            walk.advance(&mut at);
        }
    }
}
