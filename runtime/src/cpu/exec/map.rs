//! `map`: a scalar program over all elements.

use std::ops::Range;

use super::access::Place;
use super::extents::Ext;
use super::kernel::{Kernel, Scratch, Size, StepView, grown};
use super::nest::Nest;
use super::scalar_program::{CHUNK, Program, RunProgram, piece};

/// Rows shorter than this are packed, several to a chunk.
const SHORT: usize = 64;

/// A prepared `map`.
pub(crate) struct Map {
    /// The body.
    pub(crate) program: Program,
    /// Outer axes; operands are the inputs, then the output.
    pub(crate) outer: Nest,
    /// The innermost axis.
    pub(crate) inner: Ext,
    /// Strides of the innermost axis.
    pub(crate) inner_strides: Vec<usize>,
    /// Places of the operands.
    pub(crate) places: Vec<Place>,
    /// Whether several rows share a chunk.
    pub(crate) packed: bool,
}

impl Map {
    /// Whether rows of at most `inner` elements are better packed.
    pub(crate) fn packs(outer: &Nest, inner: usize) -> bool {
        inner < SHORT && !outer.extents.is_empty()
    }
}

impl Kernel for Map {
    fn size(&self, step: &StepView<'_>) -> Size {
        let (rows, n) = (self.outer.count(step.values), step.get(self.inner));
        let tasks = match self.packed {
            true => (rows * n).div_ceil(CHUNK),
            false => rows * n.div_ceil(CHUNK),
        };
        Size { tasks, nanoseconds: rows * n * self.program.cost / 64 }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let Scratch { registers, pointers, offsets, .. } = scratch;
        let operands = self.places.len();
        let buffers = operands + self.program.temporaries;
        let registers = grown(registers, buffers * CHUNK).as_mut_ptr();
        if pointers.len() < self.program.registers() {
            pointers.resize(self.program.registers(), std::ptr::null_mut());
        }
        if offsets.len() < operands {
            offsets.resize(operands, 0);
        }
        let mut run = Run {
            map: self,
            step,
            registers,
            pointers: &mut pointers[..self.program.registers()],
            offsets: &mut offsets[..operands],
        };
        run.set_constants();
        match self.packed {
            true => run.packed(tasks),
            false => run.rows(tasks),
        }
    }
}

struct Run<'a> {
    map: &'a Map,
    step: &'a StepView<'a>,
    /// A chunk for each operand, then the temporaries.
    registers: *mut u32,
    pointers: &'a mut [*mut u32],
    offsets: &'a mut [usize],
}

impl Run<'_> {
    fn inputs(&self) -> usize {
        self.map.program.inputs
    }

    /// The chunk of scratch that belongs to an operand.
    fn buffer(&self, operand: usize) -> *mut u32 {
        self.registers.wrapping_add(operand * CHUNK)
    }

    fn set_constants(&mut self) {
        let inputs = self.inputs();
        let constants = &self.map.program.constants;
        for (i, constant) in constants.iter().enumerate() {
            self.pointers[inputs + i] = constant.0.cast::<u32>();
        }
        let first = inputs + constants.len();
        for i in 0..self.map.program.temporaries {
            self.pointers[first + i] = self.buffer(self.map.places.len() + i);
        }
    }

    /// Runs the program on `elements`, a size that [`piece`] gives.
    fn execute(&mut self, elements: usize) {
        self.step.width.run(RunProgram { program: &self.map.program, pointers: self.pointers, elements });
    }

    /// Tasks are chunks of rows: row by row, each cut into chunks.
    fn rows(&mut self, tasks: Range<usize>) {
        let map = self.map;
        let values = self.step.values;
        let n = self.step.get(map.inner);
        let per_row = n.div_ceil(CHUNK);
        let mut walk = map.outer.walk(values, tasks.start / per_row);
        walk.offsets(self.offsets);
        let mut chunk = tasks.start % per_row;
        for _ in tasks {
            let mut start = chunk * CHUNK;
            let end = n.min(start + CHUNK);
            while start < end {
                let size = piece(end - start);
                let len = size.min(end - start);
                self.piece(start, len, size);
                start += len;
            }
            chunk += 1;
            if chunk == per_row {
                chunk = 0;
                walk.advance(self.offsets);
            }
        }
    }

    /// Elements `start .. start + len` of the current row, as a piece of `size`.
    fn piece(&mut self, start: usize, len: usize, size: usize) {
        let inputs = self.inputs();
        for operand in 0..inputs {
            self.pointers[operand] = self.input(operand, start, len, size);
        }
        let stride = self.map.inner_strides[inputs];
        let target = self.element(inputs, start * stride);
        let direct = stride == 1 && len == size;
        let result = match direct {
            true => target,
            false => self.buffer(inputs),
        };
        if let Some(last) = self.pointers.last_mut() {
            *last = result;
        }
        self.execute(size);
        if !direct {
            // SAFETY: `len` elements `stride` apart lie inside the output's slot (checked at load), and no other task
            // writes them; the buffer has a whole chunk.
            unsafe { scatter(result, target, stride, len) };
        }
    }

    /// The element `at` behind the current row's start.
    fn element(&self, operand: usize, at: usize) -> *mut u32 {
        let start = self.map.places[operand].at(self.step.values);
        start.wrapping_add(self.offsets[operand] + at)
    }

    /// Elements of an input, in place if they are a whole piece and lie together.
    fn input(&self, operand: usize, start: usize, len: usize, size: usize) -> *mut u32 {
        let stride = self.map.inner_strides[operand];
        let source = self.element(operand, start * stride);
        if stride == 1 && len == size {
            return source;
        }
        let buffer = self.buffer(operand);
        // SAFETY: the elements lie inside the operand's memory (checked at load); the buffer has a whole chunk.
        unsafe { collect(source, stride, buffer, len) };
        buffer
    }

    /// Tasks are chunks of all elements; every operand is packed.
    fn packed(&mut self, tasks: Range<usize>) {
        let map = self.map;
        let n = self.step.get(map.inner);
        let total = map.outer.count(self.step.values) * n;
        for task in tasks {
            let start = task * CHUNK;
            let len = CHUNK.min(total - start);
            self.each_run(start, len, |run, at, done, count| {
                for operand in 0..map.program.inputs {
                    let stride = map.inner_strides[operand];
                    let source = run.element(operand, at * stride);
                    let buffer = run.buffer(operand).wrapping_add(done);
                    // SAFETY: as in `input`; `done + count` is at most a chunk.
                    unsafe { collect(source, stride, buffer, count) };
                }
            });
            let inputs = self.inputs();
            self.pieces(len);
            self.each_run(start, len, |run, at, done, count| {
                let stride = map.inner_strides[inputs];
                let target = run.element(inputs, at * stride);
                let buffer = run.buffer(inputs).wrapping_add(done);
                // SAFETY: as in `chunk`.
                unsafe { scatter(buffer, target, stride, count) };
            });
        }
    }

    /// Runs the program on `len` elements of the packed operands.
    fn pieces(&mut self, len: usize) {
        let inputs = self.inputs();
        let mut start = 0;
        while start < len {
            let size = piece(len - start);
            for operand in 0..inputs {
                self.pointers[operand] = self.buffer(operand).wrapping_add(start);
            }
            if let Some(last) = self.pointers.last_mut() {
                *last = self.registers.wrapping_add(inputs * CHUNK + start);
            }
            self.execute(size);
            start += size;
        }
    }

    /// Calls `body(self, place in the row, elements done, elements)` for each piece of a row among elements
    /// `start .. start + len`.
    fn each_run(&mut self, start: usize, len: usize, mut body: impl FnMut(&Self, usize, usize, usize)) {
        let map = self.map;
        let n = self.step.get(map.inner);
        let mut walk = map.outer.walk(self.step.values, start / n);
        walk.offsets(self.offsets);
        let (mut at, mut done) = (start % n, 0);
        while done < len {
            let count = (n - at).min(len - done);
            body(self, at, done, count);
            done += count;
            at = 0;
            walk.advance(self.offsets);
        }
    }
}

/// Copies `len` words, `stride` apart, together.
///
/// # Safety
/// All of them can be read, and `to` has room.
#[inline]
pub(crate) unsafe fn collect(from: *const u32, stride: usize, to: *mut u32, len: usize) {
    // SAFETY: this function's contract.
    unsafe {
        match stride {
            1 => std::ptr::copy_nonoverlapping(from, to, len),
            0 => std::slice::from_raw_parts_mut(to, len).fill(*from),
            _ => (0..len).for_each(|i| *to.add(i) = *from.add(i * stride)),
        }
    }
}

/// Copies `len` words that lie together to places `stride` apart.
///
/// # Safety
/// All of them can be written.
#[inline]
pub(crate) unsafe fn scatter(from: *const u32, to: *mut u32, stride: usize, len: usize) {
    // SAFETY: this function's contract.
    unsafe {
        match stride {
            1 => std::ptr::copy_nonoverlapping(from, to, len),
            _ => (0..len).for_each(|i| *to.add(i * stride) = *from.add(i)),
        }
    }
}
