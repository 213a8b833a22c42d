//! `product` of f32 with f32: dots with rows, weighted sums of rows, and any other strides.

use std::ops::Range;

use ds4_ir::Tree;

use super::access::{Place, Selection};
use super::extents::Ext;
use super::kernel::{Kernel, MASKED, Scratch, Size, StepView, grown};
use super::map::{collect, scatter};
use super::matrix_product::select;
use super::nest::Nest;
use super::sums::{self, ABSENT};
use super::weights::Tensor;
use crate::cpu::products::{dot_rows, weighted_rows};

/// Operands of the nest of items.
const X: usize = 0;
const OUT: usize = 1;
const W: usize = 2;
const IDS: usize = 3;
const MASK: usize = 4;

/// How the product is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Elements of a row of w lie together: a dot for each row.
    Dots,
    /// Rows along K lie together along N and are summed one by one.
    Weighted,
    /// Element by element.
    Any,
}

/// Strides of one axis in every operand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strides {
    pub(crate) x: usize,
    pub(crate) out: usize,
    pub(crate) w: usize,
    pub(crate) ids: usize,
    pub(crate) mask: usize,
}

/// A prepared product `[items, columns, K] x [items, N, K]`.
pub(crate) struct RowProduct {
    pub(crate) form: Form,
    pub(crate) tree: Tree,
    /// Batch axes; operands x, output, w, ids, mask.
    pub(crate) items: Nest,
    /// Columns that share a `[N, K]`.
    pub(crate) columns: Ext,
    pub(crate) column: Strides,
    pub(crate) rows: Ext,
    pub(crate) row: Strides,
    pub(crate) k: Ext,
    pub(crate) along: Strides,
    pub(crate) x: Place,
    pub(crate) w: Place,
    /// The tensor that w is a part of, if it is one of the checkpoint; offsets count rows then.
    pub(crate) tensor: Option<usize>,
    pub(crate) ids: Option<Selection>,
    pub(crate) mask: Option<Place>,
    pub(crate) out: Place,
}

impl Kernel for RowProduct {
    fn size(&self, step: &StepView<'_>) -> Size {
        let items = self.items.count(step.values);
        let (columns, rows) = (step.get(self.columns), step.get(self.rows));
        if rows == 0 {
            return Size::NOTHING;
        }
        let speed = if self.form == Form::Any { 1 } else { 8 };
        Size { tasks: items * columns, nanoseconds: items * columns * (10 + rows * (5 + step.get(self.k) / speed)) }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let columns = step.get(self.columns);
        let run = Run {
            p: self,
            step,
            x: self.x.at(step.values),
            out: self.out.at(step.values),
            w_first: self.w.first(step.values),
            n: step.get(self.rows),
            k: step.get(self.k),
        };
        let mut task = tasks.start;
        while task < tasks.end {
            let (item, column) = (task / columns, task % columns);
            let count = (columns - column).min(tasks.end - task);
            let mut at = [0; 5];
            self.items.walk(step.values, item).offsets(&mut at);
            let range = column..column + count;
            match self.form {
                Form::Dots => run.dots(scratch, &at, range),
                Form::Weighted => run.weighted(scratch, &at, range),
                Form::Any => run.any(scratch, &at, range),
            }
            task += count;
        }
    }
}

struct Run<'a> {
    p: &'a RowProduct,
    step: &'a StepView<'a>,
    x: *mut u32,
    out: *mut u32,
    w_first: usize,
    n: usize,
    k: usize,
}

impl Run<'_> {
    /// Where a row of w starts, `None` if its id is masked.
    #[inline]
    fn start(&self, at: &[usize; 5], w: usize, ids: usize) -> Option<usize> {
        let start = self.w_first + at[W] + w;
        match &self.p.ids {
            None => Some(start),
            Some(selection) => {
                // SAFETY: the ids lie inside their memory (checked at load).
                let id = unsafe { *selection.place.at(self.step.values).add(at[IDS] + ids) };
                Some(start + select(self.step, selection, id)?)
            }
        }
    }

    fn column(&self, at: &[usize; 5], column: usize) -> (*const u32, *mut u32) {
        let p = self.p;
        (
            self.x.wrapping_add(at[X] + column * p.column.x).cast_const(),
            self.out.wrapping_add(at[OUT] + column * p.column.out),
        )
    }

    /// The memory of w.
    fn memory(&self) -> &[f32] {
        // SAFETY: w's memory has `len` words and no kernel writes it now.
        unsafe { std::slice::from_raw_parts(self.p.w.base.0.cast::<f32>(), self.p.w.len) }
    }

    /// `len` words, `stride` apart, as a slice: in place or copied to `buffer`.
    fn slice<'b>(&self, from: *const u32, stride: usize, len: usize, buffer: &'b mut Vec<f32>) -> &'b [f32] {
        // SAFETY: the words lie inside x (checked at load), which no kernel writes now; the buffer has room.
        unsafe {
            if stride == 1 {
                return std::slice::from_raw_parts(from.cast(), len);
            }
            let buffer = grown(buffer, len);
            collect(from, stride, buffer.as_mut_ptr().cast(), len);
            buffer
        }
    }

    /// For each column, its dot with every row that exists.
    fn dots(&self, scratch: &mut Scratch, at: &[usize; 5], columns: Range<usize>) {
        let p = self.p;
        scratch.starts.clear();
        scratch.indices.clear();
        for n in 0..self.n {
            if let Some(start) = self.start(at, n * p.row.w, n * p.row.ids) {
                scratch.starts.push(start);
                scratch.indices.push(n as u32);
            }
        }
        let all = scratch.starts.len() == self.n;
        for column in columns {
            let (x, out) = self.column(at, column);
            let q = self.slice(x, p.along.x, self.k, &mut scratch.floats);
            let (isa, tree) = (self.step.isa, p.tree);
            if all && p.row.out == 1 {
                // SAFETY: the column's results lie inside the output (checked at load); this task alone writes them.
                let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<f32>(), self.n) };
                dot_rows(isa, q, self.memory(), &scratch.starts, tree, out);
                continue;
            }
            let results = grown(&mut scratch.results, scratch.starts.len());
            dot_rows(isa, q, self.memory(), &scratch.starts, tree, results);
            // SAFETY: as above, `row.out` apart.
            unsafe {
                if !all {
                    (0..self.n).for_each(|n| *out.add(n * p.row.out) = 0);
                }
                for (&n, value) in scratch.indices.iter().zip(results) {
                    *out.add(n as usize * p.row.out) = value.to_bits();
                }
            }
        }
    }

    /// For each column, the sum of the rows along K that exist, each times its element of x.
    fn weighted(&self, scratch: &mut Scratch, at: &[usize; 5], columns: Range<usize>) {
        let p = self.p;
        scratch.starts.clear();
        scratch.indices.clear();
        let mask = p.mask.as_ref().map(|m| m.at(self.step.values).wrapping_add(at[MASK]));
        for k in 0..self.k {
            // SAFETY: the mask lies inside its memory (checked at load).
            if mask.is_some_and(|m| unsafe { *m.add(k * p.along.mask) } == MASKED) {
                continue;
            }
            if let Some(start) = self.start(at, k * p.along.w, k * p.along.ids) {
                scratch.starts.push(start);
                scratch.indices.push(k as u32);
            }
        }
        for column in columns {
            let (x, out) = self.column(at, column);
            scratch.weights.clear();
            let indices = scratch.indices.iter();
            // SAFETY: the elements lie inside x (checked at load).
            let weights = indices.map(|&k| unsafe { f32::from_bits(*x.add(k as usize * p.along.x)) });
            scratch.weights.extend(weights);
            let direct = p.row.out == 1;
            let acc = match direct {
                // SAFETY: the column's results lie inside the output (checked at load); this task alone writes them.
                true => unsafe { std::slice::from_raw_parts_mut(out.cast::<f32>(), self.n) },
                false => grown(&mut scratch.results, self.n),
            };
            acc.fill(ABSENT);
            weighted_rows(self.step.isa, self.memory(), &scratch.starts, &scratch.weights, acc);
            if !direct {
                // SAFETY: as above, `row.out` apart.
                unsafe { scatter(acc.as_ptr().cast(), out, p.row.out, self.n) };
            }
        }
    }

    /// Element by element, whatever the strides.
    fn any(&self, scratch: &mut Scratch, at: &[usize; 5], columns: Range<usize>) {
        let p = self.p;
        let mask = p.mask.as_ref().map(|m| m.at(self.step.values).wrapping_add(at[MASK]));
        let tensor = p.tensor.map(|t| &self.step.tensors[t]);
        for column in columns {
            let (x, out) = self.column(at, column);
            for n in 0..self.n {
                let mut leaves = std::mem::take(&mut scratch.floats);
                let list = grown(&mut leaves, self.k);
                let row = tensor.map(|t| self.decoded(t, at, n, &mut scratch.weights));
                for (k, leaf) in list.iter_mut().enumerate() {
                    // SAFETY: mask and x lie inside their memory (checked at load).
                    let (x, there) = unsafe {
                        let there = mask.is_none_or(|m| *m.add(k * p.along.mask) != MASKED);
                        (f32::from_bits(*x.add(k * p.along.x)), there)
                    };
                    let w = match row {
                        Some(true) => Some(scratch.weights[k]),
                        Some(false) => None,
                        None => self.element(at, n, k),
                    };
                    *leaf = match w {
                        Some(w) if there => w * x,
                        _ => ABSENT,
                    };
                }
                let value = sums::sum(p.tree, list, &mut scratch.results);
                scratch.floats = leaves;
                // SAFETY: the result lies inside the output (checked at load); this task alone writes it.
                unsafe { *out.add(n * p.row.out) = value.to_bits() };
            }
        }
    }

    fn element(&self, at: &[usize; 5], n: usize, k: usize) -> Option<f32> {
        let (row, along) = (&self.p.row, &self.p.along);
        let w = n * row.w + k * along.w;
        let start = self.start(at, w, n * row.ids + k * along.ids)?;
        self.memory().get(start).copied()
    }

    /// Decodes row `n` of a weight; false if its id is masked.
    fn decoded(&self, tensor: &Tensor, at: &[usize; 5], n: usize, out: &mut Vec<f32>) -> bool {
        let (w, ids) = (n * self.p.row.w, n * self.p.row.ids);
        match self.start(at, w, ids) {
            Some(row) => {
                ds4_ir::formats::decode_row(&tensor.row(row), grown(out, self.k));
                true
            }
            None => false,
        }
    }
}
