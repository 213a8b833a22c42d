//! `product` with weights of the checkpoint: whole matrices, or matrices that expert ids select.

use std::ops::Range;

use ds4_ir::{Format, Tree};

use super::access::{Place, Ptr, Selection};
use super::extents::Ext;
use super::kernel::{FaultKind, Kernel, MASKED, Scratch, Size, StepView, grown};
use super::map::scatter;
use super::nest::Nest;
use super::weights::Tensor;
use crate::cpu::products::{F32Columns, Matrix, Out, Q8Columns, product_f32, product_q8, sum_codes};

/// Rows of a task.
const BLOCK: usize = 32;
/// Most rows whose results for several columns are put aside before they are placed.
const ASIDE: usize = 64;

/// Operands of the nest of items.
const X: usize = 0;
const OUT: usize = 1;
const W: usize = 2;
const IDS: usize = 3;

/// A prepared product `[items, columns, K] x [items, N, K]`.
pub(crate) struct MatrixProduct {
    pub(crate) tensor: usize,
    pub(crate) tree: Tree,
    /// Batch axes; operands x, output, weight rows, ids.
    pub(crate) items: Nest,
    /// Columns that share a matrix, and their strides in x and output.
    pub(crate) columns: Ext,
    pub(crate) x_column: usize,
    pub(crate) out_column: usize,
    /// Rows of a matrix, and their strides in the weight and the output.
    pub(crate) rows: Ext,
    pub(crate) w_row: usize,
    pub(crate) out_row: usize,
    /// Elements of a row and their stride in x.
    pub(crate) k: usize,
    pub(crate) x_k: usize,
    /// Activations: f32, or codes with scales.
    pub(crate) x: Place,
    pub(crate) scales: Option<Ptr>,
    /// First weight row.
    pub(crate) w: Place,
    pub(crate) ids: Option<Selection>,
    pub(crate) out: Place,
}

impl MatrixProduct {
    /// Whether items are sorted by the matrix they use.
    fn grouped(&self, items: usize, columns: usize) -> bool {
        self.ids.is_some() && items > 1 && columns == 1
    }
}

impl Kernel for MatrixProduct {
    fn size(&self, step: &StepView<'_>) -> Size {
        let items = self.items.count(step.values);
        let (columns, rows) = (step.get(self.columns), step.get(self.rows));
        let blocks = rows.div_ceil(BLOCK);
        if columns == 0 || items == 0 {
            return Size::NOTHING;
        }
        let tasks = match self.grouped(items, columns) {
            true => blocks,
            false => items * blocks,
        };
        let speed = match (self.scales, step.tensors[self.tensor].format) {
            (Some(_), Format::Q8_0) => 40,
            _ => 12,
        };
        Size { tasks, nanoseconds: items * columns * rows * self.k / speed }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let items = self.items.count(step.values);
        let (columns, rows) = (step.get(self.columns), step.get(self.rows));
        let mut run = Run {
            p: self,
            step,
            tensor: &step.tensors[self.tensor],
            x_first: self.x.first(step.values),
            w_first: self.w.first(step.values),
            out: self.out.at(step.values),
            buffers: scratch,
        };
        let blocks = rows.div_ceil(BLOCK);
        if self.grouped(items, columns) {
            let range = tasks.start * BLOCK..rows.min(tasks.end * BLOCK);
            return run.groups(items, range);
        }
        let mut task = tasks.start;
        while task < tasks.end {
            let (item, block) = (task / blocks, task % blocks);
            let count = (blocks - block).min(tasks.end - task);
            let range = block * BLOCK..rows.min((block + count) * BLOCK);
            run.item(item, columns, range);
            task += count;
        }
    }
}

struct Run<'a> {
    p: &'a MatrixProduct,
    step: &'a StepView<'a>,
    tensor: &'a Tensor,
    x_first: usize,
    w_first: usize,
    out: *mut u32,
    buffers: &'a mut Scratch,
}

/// Columns as the primitives take them.
#[derive(Clone, Copy)]
enum Columns<'a> {
    F32(F32Columns<'a>),
    Q8(Q8Columns<'a>),
}

impl Columns<'_> {
    fn count(&self) -> usize {
        match self {
            Columns::F32(x) => x.columns,
            Columns::Q8(x) => x.columns,
        }
    }
}

impl Run<'_> {
    /// First weight row that an item's id selects: `None` if the id is masked or selects none.
    fn selected(&self, selection: &Selection, offset: usize) -> Option<usize> {
        // SAFETY: the ids of every item lie inside their memory (checked at load).
        let id = unsafe { *selection.place.at(self.step.values).add(offset) };
        select(self.step, selection, id)
    }

    /// Rows `rows` of one item's results.
    fn item(&mut self, item: usize, columns: usize, rows: Range<usize>) {
        let mut at = [0; 4];
        self.p.items.walk(self.step.values, item).offsets(&mut at);
        let targets = (0..columns).map(|t| at[OUT] + t * self.p.out_column);
        self.buffers.targets.clear();
        self.buffers.targets.extend(targets);
        let mut first = self.w_first + at[W];
        if let Some(selection) = &self.p.ids {
            match self.selected(selection, at[IDS]) {
                Some(row) => first += row,
                None => return self.no_value(rows),
            }
        }
        let starts = (0..columns).map(|t| self.x_first + at[X] + t * self.p.x_column);
        self.buffers.starts.clear();
        self.buffers.starts.extend(starts);
        let stride = (columns > 1).then_some(self.p.x_column);
        self.multiply(first, rows, stride);
    }

    /// Rows `rows` of every item's results, the items of one matrix together.
    fn groups(&mut self, items: usize, rows: Range<usize>) {
        let Some(selection) = &self.p.ids else { return };
        let bound = self.step.get(selection.bound);
        // How many items come before those of each id; the last count is for items without a matrix.
        let ids = self.ids_of_items(selection, items, bound);
        let order = self.sorted(&ids, bound);
        self.buffers.indices = ids;
        let mut start = 0;
        while start < items {
            let id = self.buffers.indices[order[start] as usize];
            let same = order[start..].iter();
            let count = same.take_while(|&&i| self.buffers.indices[i as usize] == id).count();
            self.group(selection, id as usize, bound, &order[start..start + count], &rows);
            start += count;
        }
        self.buffers.counters = order;
    }

    /// The id of each item; `bound` where there is none.
    fn ids_of_items(&mut self, selection: &Selection, items: usize, bound: usize) -> Vec<u32> {
        let mut ids = std::mem::take(&mut self.buffers.indices);
        ids.clear();
        let place = selection.place.at(self.step.values);
        let mut walk = self.p.items.walk(self.step.values, 0);
        let mut at = [0; 4];
        walk.offsets(&mut at);
        for _ in 0..items {
            // SAFETY: as in `selected`.
            let id = unsafe { *place.add(at[IDS]) };
            let valid = select(self.step, selection, id).is_some();
            ids.push(if valid { id } else { bound as u32 });
            walk.advance(&mut at);
        }
        ids
    }

    /// The items, ascending by id, then by number.
    fn sorted(&mut self, ids: &[u32], bound: usize) -> Vec<u32> {
        let mut order = std::mem::take(&mut self.buffers.counters);
        order.clear();
        order.resize(ids.len() + bound + 2, 0);
        let (order_part, counts) = order.split_at_mut(ids.len());
        for &id in ids {
            counts[id as usize + 1] += 1;
        }
        for i in 1..counts.len() {
            counts[i] += counts[i - 1];
        }
        for (item, &id) in ids.iter().enumerate() {
            let place = &mut counts[id as usize];
            order_part[*place as usize] = item as u32;
            *place += 1;
        }
        order.truncate(ids.len());
        order
    }

    fn group(&mut self, selection: &Selection, id: usize, bound: usize, items: &[u32], rows: &Range<usize>) {
        self.buffers.starts.clear();
        self.buffers.targets.clear();
        let mut w = 0;
        for &item in items {
            let mut at = [0; 4];
            let walk = self.p.items.walk(self.step.values, item as usize);
            walk.offsets(&mut at);
            self.buffers.starts.push(self.x_first + at[X]);
            self.buffers.targets.push(at[OUT]);
            w = at[W];
        }
        match id == bound {
            true => self.no_value(rows.clone()),
            false => self.multiply(self.w_first + w + id * selection.step, rows.clone(), None),
        }
    }

    /// Results of items whose id is masked: nobody may take them; zeros make that repeatable.
    fn no_value(&mut self, rows: Range<usize>) {
        for &target in &self.buffers.targets {
            for row in rows.clone() {
                // SAFETY: the element lies inside the output (checked at load), and this task alone writes it.
                unsafe { *self.out.add(target + row * self.p.out_row) = 0 };
            }
        }
    }

    /// Multiplies weight rows `first + row * w_row`, for each row of `rows`, with the columns at `starts`, which are
    /// `stride` apart if that is known, and places the results at `targets`.
    fn multiply(&mut self, first: usize, rows: Range<usize>, stride: Option<usize>) {
        let mut buffers = std::mem::take(self.buffers);
        let mut results = std::mem::take(&mut buffers.results);
        let targets = std::mem::take(&mut buffers.targets);
        let columns = self.columns(&mut buffers, stride);
        if self.p.w_row == 1 {
            let size = match columns.count() == 1 {
                true => rows.len().max(1),
                false => ASIDE,
            };
            for start in rows.clone().step_by(size) {
                let piece = start..rows.end.min(start + size);
                self.tensor.matrices(first + piece.start..first + piece.end, |matrix, at| {
                    self.place(matrix, &columns, start + at, &targets, &mut results);
                });
            }
        } else {
            for row in rows {
                let matrix = self.tensor.matrix(first + row * self.p.w_row, 1);
                self.place(&matrix, &columns, row, &targets, &mut results);
            }
        }
        buffers.results = results;
        buffers.targets = targets;
        *self.buffers = buffers;
    }

    /// All rows of `matrix` with all columns; the results begin at row `row`.
    fn place(&self, matrix: &Matrix<'_>, columns: &Columns<'_>, row: usize, targets: &[usize], results: &mut Vec<f32>) {
        let (count, rows) = (columns.count(), matrix.rows);
        let target = |t: usize| {
            let place = targets[t] + row * self.p.out_row;
            self.out.wrapping_add(place)
        };
        if count == 1 && self.p.out_row == 1 {
            // SAFETY: these rows of the one column lie together inside the output (checked at load), and this task
            // alone writes them.
            let out = unsafe { std::slice::from_raw_parts_mut(target(0).cast::<f32>(), rows) };
            return self.product(matrix, columns, out);
        }
        let out = grown(results, rows * count);
        self.product(matrix, columns, out);
        for t in 0..count {
            let from = out[t * rows..].as_ptr().cast();
            // SAFETY: as above, `out_row` apart.
            unsafe { scatter(from, target(t), self.p.out_row, rows) };
        }
    }

    fn product(&self, matrix: &Matrix<'_>, columns: &Columns<'_>, out: &mut [f32]) {
        let rows = matrix.rows;
        let mut out = Out::new(out, rows);
        let isa = self.step.isa;
        match *columns {
            Columns::F32(x) => product_f32(isa, matrix, x, self.p.tree, &mut out.rows(0..rows)),
            Columns::Q8(x) => product_q8(isa, matrix, x, &mut out.rows(0..rows)),
        }
    }

    fn columns<'b>(&self, buffers: &'b mut Scratch, stride: Option<usize>) -> Columns<'b> {
        match self.p.scales {
            Some(scales) => Columns::Q8(self.q8_columns(buffers, scales, stride)),
            None => Columns::F32(self.f32_columns(buffers, stride)),
        }
    }

    fn f32_columns<'b>(&self, buffers: &'b mut Scratch, stride: Option<usize>) -> F32Columns<'b> {
        let (k, columns) = (self.p.k, buffers.starts.len());
        let base = self.p.x.base.0.cast::<u32>();
        let direct = self.p.x_k == 1 && (columns == 1 || stride.is_some_and(|s| s >= k));
        let stride = if direct { stride.unwrap_or(k) } else { k };
        let values = match direct {
            // SAFETY: all columns lie inside the operand's memory (checked at load), which no kernel writes now.
            true => unsafe {
                let first = base.add(buffers.starts[0]).cast::<f32>();
                std::slice::from_raw_parts(first.cast_const(), (columns - 1) * stride + k)
            },
            false => {
                let packed = grown(&mut buffers.floats, columns * k);
                for (column, &start) in packed.chunks_exact_mut(k.max(1)).zip(&buffers.starts) {
                    // SAFETY: as above.
                    unsafe {
                        super::map::collect(base.add(start), self.p.x_k, column.as_mut_ptr().cast(), k);
                    }
                }
                packed
            }
        };
        F32Columns { values, stride, columns }
    }

    fn q8_columns<'b>(&self, buffers: &'b mut Scratch, scales: Ptr, stride: Option<usize>) -> Q8Columns<'b> {
        let (len, columns) = (self.p.k, buffers.starts.len());
        let (codes, scales) = (self.p.x.base.0.cast::<i8>().cast_const(), scales.0.cast::<f32>().cast_const());
        let direct = columns == 1 || stride == Some(len);
        // SAFETY: codes and scales of all columns lie inside the operand's slot (checked at load), which no kernel
        // writes now.
        let (codes, scales) = unsafe {
            let start = buffers.starts[0];
            match direct {
                true => (
                    std::slice::from_raw_parts(codes.add(start), columns * len),
                    std::slice::from_raw_parts(scales.add(start / 32), columns * len / 32),
                ),
                false => pack_q8(codes, scales, len, &buffers.starts, &mut buffers.codes, &mut buffers.scales),
            }
        };
        let sums = grown(&mut buffers.sums, columns * len / 16);
        if matches!(self.tensor.format, Format::Q8_0 | Format::Q2_K | Format::Q4_K) {
            sum_codes(self.step.isa, codes, sums);
        }
        Q8Columns { codes, scales, sums, len, columns }
    }
}

/// Copies columns together.
///
/// # Safety
/// `len` codes and `len / 32` scales can be read at each start.
unsafe fn pack_q8<'b>(
    codes: *const i8,
    scales: *const f32,
    len: usize,
    starts: &[usize],
    packed_codes: &'b mut Vec<i8>,
    packed_scales: &'b mut Vec<f32>,
) -> (&'b [i8], &'b [f32]) {
    let blocks = len / 32;
    let to_codes = grown(packed_codes, starts.len() * len);
    let to_scales = grown(packed_scales, starts.len() * blocks);
    for (t, &start) in starts.iter().enumerate() {
        // SAFETY: this function's contract.
        let (codes, scales) = unsafe {
            (
                std::slice::from_raw_parts(codes.add(start), len),
                std::slice::from_raw_parts(scales.add(start / 32), blocks),
            )
        };
        to_codes[t * len..][..len].copy_from_slice(codes);
        to_scales[t * blocks..][..blocks].copy_from_slice(scales);
    }
    (to_codes, to_scales)
}

/// What an id adds to the offset: `None` if it is masked, or selects no row, which is a fault.
#[inline]
pub(crate) fn select(step: &StepView<'_>, selection: &Selection, id: u32) -> Option<usize> {
    if (id as usize) < step.get(selection.bound) {
        return Some(id as usize * selection.step);
    }
    if id != MASKED || !selection.maskable {
        step.faults.note(FaultKind::Id, selection.value);
    }
    None
}
