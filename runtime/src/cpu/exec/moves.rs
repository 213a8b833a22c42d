//! Moving words: copies of views, operands of a `concat`, `write`, and values that are made from nothing.

use std::ops::Range;

use super::access::{Place, Selection};
use super::extents::Ext;
use super::kernel::{Kernel, Scratch, Size, StepView};
use super::map::{collect, scatter};
use super::matrix_product::select;
use super::nest::Nest;

/// Copies elements to the same positions of another place. Operands of the nest: source, output.
pub(crate) struct Copy {
    pub(crate) outer: Nest,
    pub(crate) inner: Ext,
    pub(crate) source_inner: usize,
    pub(crate) out_inner: usize,
    pub(crate) source: Place,
    pub(crate) out: Place,
}

impl Kernel for Copy {
    fn size(&self, step: &StepView<'_>) -> Size {
        let (rows, n) = (self.outer.count(step.values), step.get(self.inner));
        Size { tasks: if n == 0 { 0 } else { rows }, nanoseconds: rows * (5 + n / 8) }
    }

    fn run(&self, step: &StepView<'_>, _scratch: &mut Scratch, tasks: Range<usize>) {
        let n = step.get(self.inner);
        let mut walk = self.outer.walk(step.values, tasks.start);
        let mut at = [0; 2];
        walk.offsets(&mut at);
        let (from, to) = (self.source.at(step.values), self.out.at(step.values));
        for _ in tasks {
            // SAFETY: both rows lie inside their memory (checked at load), which is not the same; this task alone
            // writes the row.
            unsafe {
                let (from, to) = (from.add(at[0]), to.add(at[1]));
                move_words(from, self.source_inner, to, self.out_inner, n);
            }
            walk.advance(&mut at);
        }
    }
}

/// A `reshape` that strides cannot express: the elements in row-major order on both sides.
pub(crate) struct Reshape {
    pub(crate) from: Side,
    pub(crate) to: Side,
}

/// One side of a reshape.
pub(crate) struct Side {
    pub(crate) outer: Nest,
    /// The innermost axis and its stride.
    pub(crate) inner: Ext,
    pub(crate) stride: usize,
    pub(crate) place: Place,
}

/// Elements of a reshape's task.
const PIECE: usize = 4096;

impl Kernel for Reshape {
    fn size(&self, step: &StepView<'_>) -> Size {
        let count = self.to.outer.count(step.values) * step.get(self.to.inner);
        Size { tasks: count.div_ceil(PIECE), nanoseconds: count }
    }

    fn run(&self, step: &StepView<'_>, _scratch: &mut Scratch, tasks: Range<usize>) {
        let count = self.to.outer.count(step.values) * step.get(self.to.inner);
        let range = tasks.start * PIECE..count.min(tasks.end * PIECE);
        let (n, m) = (step.get(self.from.inner), step.get(self.to.inner));
        let mut from = self.from.outer.walk(step.values, range.start / n);
        let mut to = self.to.outer.walk(step.values, range.start / m);
        let (mut a, mut b) = ([0], [0]);
        from.offsets(&mut a);
        to.offsets(&mut b);
        let source = self.from.place.at(step.values);
        let out = self.to.place.at(step.values);
        let (mut i, mut j) = (range.start % n, range.start % m);
        let mut left = range.len();
        while left > 0 {
            let run = (n - i).min(m - j).min(left);
            // SAFETY: the run lies inside both operands' memory (checked at load); this task alone writes it.
            unsafe {
                let from = source.add(a[0] + i * self.from.stride);
                let to = out.add(b[0] + j * self.to.stride);
                move_words(from, self.from.stride, to, self.to.stride, run);
            }
            (i, j, left) = (i + run, j + run, left - run);
            if i == n {
                i = 0;
                from.advance(&mut a);
            }
            if j == m {
                j = 0;
                to.advance(&mut b);
            }
        }
    }
}

/// Copies `len` words between places with strides.
///
/// # Safety
/// All of them can be read and written, and the places do not overlap.
unsafe fn move_words(from: *const u32, from_stride: usize, to: *mut u32, to_stride: usize, len: usize) {
    // SAFETY: this function's contract.
    unsafe {
        match (from_stride, to_stride) {
            (_, 1) => collect(from, from_stride, to, len),
            (1, _) => scatter(from, to, to_stride, len),
            _ => (0..len).for_each(|i| *to.add(i * to_stride) = *from.add(i * from_stride)),
        }
    }
}

/// A prepared `write`: rows into a state. Operands of the nest over one row: rows, state.
pub(crate) struct Write {
    pub(crate) count: Ext,
    pub(crate) ids: Selection,
    pub(crate) id_stride: usize,
    pub(crate) row: Nest,
    pub(crate) row_stride: usize,
    pub(crate) rows: Place,
    pub(crate) state: Place,
}

impl Kernel for Write {
    fn size(&self, step: &StepView<'_>) -> Size {
        let rows = step.get(self.count);
        // One task: two rows for one place would be a race (and are a fault of the graph).
        Size { tasks: usize::from(rows > 0), nanoseconds: 0 }
    }

    fn run(&self, step: &StepView<'_>, _scratch: &mut Scratch, _tasks: Range<usize>) {
        let elements = self.row.count(step.values);
        let ids = self.ids.place.at(step.values);
        let (rows, state) = (self.rows.at(step.values), self.state.at(step.values));
        for i in 0..step.get(self.count) {
            // SAFETY: the ids lie inside their memory (checked at load).
            let id = unsafe { *ids.add(i * self.id_stride) };
            let Some(place) = select(step, &self.ids, id) else {
                continue;
            };
            let mut walk = self.row.walk(step.values, 0);
            let mut at = [0; 2];
            walk.offsets(&mut at);
            let contiguous =
                self.row.extents.len() <= 1 && self.row.strides.iter().all(|s| s.first().is_none_or(|&s| s == 1));
            // SAFETY: the row and its place lie inside their memory: the id is below the state's rows, the rest was
            // checked at load.
            unsafe {
                let (from, to) = (rows.add(i * self.row_stride), state.add(place));
                if contiguous {
                    for e in 0..elements {
                        *to.add(e) = canonical(*from.add(e));
                    }
                    continue;
                }
                for _ in 0..elements {
                    *to.add(at[1]) = canonical(*from.add(at[0]));
                    walk.advance(&mut at);
                }
            }
        }
    }
}

#[inline(always)]
fn canonical(word: u32) -> u32 {
    ds4_ir::numerics::canonical(f32::from_bits(word)).to_bits()
}

/// What a value that has no operands holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    /// The step's token ids.
    Tokens,
    /// An extent.
    Extent(Ext),
    /// The index along an axis: an axis of the nest.
    Iota(usize),
}

/// A value without operands. The operand of the nest is the output; axes are not merged.
pub(crate) struct Make {
    pub(crate) fill: Fill,
    pub(crate) axes: Nest,
    pub(crate) out: Place,
}

impl Kernel for Make {
    fn size(&self, step: &StepView<'_>) -> Size {
        let count = self.axes.count(step.values);
        Size { tasks: usize::from(count > 0), nanoseconds: 0 }
    }

    fn run(&self, step: &StepView<'_>, _scratch: &mut Scratch, _tasks: Range<usize>) {
        let count = self.axes.count(step.values);
        let mut walk = self.axes.walk(step.values, 0);
        let mut at = [0];
        walk.offsets(&mut at);
        let out = self.out.at(step.values);
        for i in 0..count {
            let word = match self.fill {
                Fill::Tokens => step.tokens.get(i).copied().unwrap_or(0),
                Fill::Extent(ext) => step.get(ext) as u32,
                Fill::Iota(axis) => walk.index(axis) as u32,
            };
            // SAFETY: the element lies inside the output (checked at load).
            unsafe { *out.add(at[0]) = word };
            walk.advance(&mut at);
        }
    }
}
