//! Chains of small values: maps and reductions that follow each other and of which a column has few elements, as one
//! program.
//!
//! Columns are the positions of the leading axis, if steps choose its extent. The elements of a column are words in
//! vectors of 16, in row-major order; the vectors are registers of a file in the worker's scratch. Views between values of
//! a chain are shuffles of vectors. A value that only the chain reads is never stored.

use std::ops::Range;

use ds4_ir::{ScalarOp, numerics};

use super::access::Place;
use super::extents::Ext;
use super::kernel::{Kernel, Scratch, Size, StepView, grown};
use super::reduce::Rule;
use super::scalar_program::execute;
use super::width::{Permute, Task};

/// Words of a vector.
pub(crate) const LANES: usize = 16;

/// The number of a vector.
type Vector = u16;

/// Places of the elements of a vector: in another vector, or in memory.
pub(crate) type Table = [u32; LANES];

/// An instruction. `V` numbers vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Code<V> {
    /// An operation on elements.
    Scalar { op: ScalarOp, to: V, args: [V; 3] },
    /// Elements of the `count` vectors at `from`, by a table.
    Shuffle { to: V, from: V, count: u16, table: u32 },
    /// Joins `leaves` shuffles of the `count` vectors at `from`, in the order of their tables.
    Fold { rule: Fold, to: V, from: V, count: u16, tables: u32, leaves: u16 },
    /// Reads elements of an operand in memory.
    Load { to: V, place: u16, run: MemoryRun },
    /// Writes elements of a value to memory.
    Store { from: V, place: u16, run: MemoryRun },
}

/// How a [`Code::Fold`] joins leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    Sum,
    Max,
    SumInt,
    MaxInt,
}

impl Fold {
    /// The fold of a rule that takes leaves in ascending order; `None` for sums in lanes.
    pub(crate) fn of(rule: Rule) -> Option<Fold> {
        match rule {
            Rule::Sum(ds4_ir::Tree::Lanes(_)) => None,
            Rule::Sum(_) => Some(Fold::Sum),
            Rule::Max => Some(Fold::Max),
            Rule::SumInt => Some(Fold::SumInt),
            Rule::MaxInt => Some(Fold::MaxInt),
        }
    }
}

/// Where the elements of a vector lie in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemoryRun {
    /// Together, from an offset.
    Together { first: u32, len: u8 },
    /// At the offsets of a table.
    Apart { table: u32, len: u8 },
}

/// A prepared chain.
pub(crate) struct Chain {
    /// Number of columns.
    pub(crate) columns: Ext,
    pub(crate) code: Vec<Code<Vector>>,
    pub(crate) tables: Vec<Table>,
    /// Operands and stored values: where column 0 begins, and words to the next column.
    pub(crate) places: Vec<(Place, usize)>,
    /// Vectors that hold one word in all elements.
    pub(crate) constants: Vec<(Vector, u32)>,
    /// Vectors of the file.
    pub(crate) vectors: usize,
}

impl Kernel for Chain {
    fn size(&self, step: &StepView<'_>) -> Size {
        let columns = step.get(self.columns);
        Size { tasks: columns, nanoseconds: columns * self.code.len() * 5 }
    }

    fn run(&self, step: &StepView<'_>, scratch: &mut Scratch, tasks: Range<usize>) {
        let Scratch { registers, pointers, .. } = scratch;
        let words = grown(registers, (self.vectors + 1) * LANES);
        let aligned = words.as_ptr().align_offset(size_of::<Table>()).min(LANES);
        let file = &mut words[aligned..].as_chunks_mut::<LANES>().0[..self.vectors];
        for &(vector, word) in &self.constants {
            file[usize::from(vector)] = [word; LANES];
        }
        pointers.clear();
        pointers.extend(self.places.iter().map(|(place, _)| place.at(step.values)));
        step.width.run(Run { chain: self, file, starts: pointers, columns: tasks });
    }
}

struct Run<'a> {
    chain: &'a Chain,
    file: &'a mut [Table],
    /// Where each place begins in this step.
    starts: &'a [*mut u32],
    columns: Range<usize>,
}

impl Task for Run<'_> {
    #[inline(always)]
    fn run<P: Permute>(self, permute: P) {
        let chain = self.chain;
        let file = self.file.as_mut_ptr();
        for column in self.columns {
            let start = |place: u16| {
                let place = usize::from(place);
                self.starts[place].wrapping_add(column * chain.places[place].1)
            };
            for code in &chain.code {
                // SAFETY: the vectors of every instruction are below the file's number, and a result is none of its
                // operands (the builder's allocation); elements of operands and results lie inside their memory (checked
                // at load), and only this column's task writes the latter.
                unsafe {
                    match *code {
                        Code::Scalar { op, to, args } => {
                            let args = args.map(|a| file.add(usize::from(a)).cast::<u32>().cast_const());
                            execute::<LANES>(op, file.add(usize::from(to)).cast(), args);
                        }
                        Code::Shuffle { to, from, count, table } => {
                            let table = &chain.tables[table as usize];
                            *file.add(usize::from(to)) = shuffle(permute, file, from, count, table);
                        }
                        Code::Fold { rule, to, from, count, tables, leaves } => {
                            let tables = &chain.tables[tables as usize..][..usize::from(leaves)];
                            *file.add(usize::from(to)) = fold(permute, rule, file, from, count, tables);
                        }
                        Code::Load { to, place, run } => {
                            load(start(place), run, &chain.tables, &mut *file.add(usize::from(to)));
                        }
                        Code::Store { from, place, run } => {
                            store(&*file.add(usize::from(from)), start(place), run, &chain.tables);
                        }
                    }
                }
            }
        }
    }
}

/// # Safety
/// The `count` vectors at `from` are in the file; the table's indices are below their words.
#[inline(always)]
unsafe fn shuffle<P: Permute>(permute: P, file: *const Table, from: Vector, count: u16, table: &Table) -> Table {
    // SAFETY: this function's contract.
    unsafe {
        let first = file.add(usize::from(from));
        match count {
            1 => permute.permute(&*first, table),
            _ => table.map(|i| *first.cast::<u32>().add(i as usize)),
        }
    }
}

/// # Safety
/// As of [`shuffle`], for every table; there is one.
#[inline(always)]
unsafe fn fold<P: Permute>(
    permute: P,
    rule: Fold,
    file: *const Table,
    from: Vector,
    count: u16,
    tables: &[Table],
) -> Table {
    // SAFETY: this function's contract.
    let leaf = |table: &Table| unsafe { shuffle(permute, file, from, count, table) };
    let mut all = leaf(&tables[0]);
    for table in &tables[1..] {
        let leaf = leaf(table);
        let float = f32::from_bits;
        let each = all.iter_mut().zip(&leaf);
        match rule {
            Fold::Sum => each.for_each(|(a, &x)| *a = (float(*a) + float(x)).to_bits()),
            Fold::Max => each.for_each(|(a, &x)| *a = numerics::max(float(*a), float(x)).to_bits()),
            Fold::SumInt => each.for_each(|(a, &x)| *a = a.wrapping_add(x)),
            Fold::MaxInt => each.for_each(|(a, &x)| *a = (*a as i32).max(x as i32) as u32),
        }
    }
    all
}

/// Elements behind the last are as the first: whatever is computed from them is as cheap.
///
/// # Safety
/// The elements can be read.
#[inline(always)]
unsafe fn load(from: *const u32, run: MemoryRun, tables: &[Table], to: &mut Table) {
    // SAFETY: this function's contract.
    unsafe {
        match run {
            MemoryRun::Together { first, len } => {
                let from = from.add(first as usize);
                match len {
                    16 => *to = *from.cast::<Table>(),
                    _ => {
                        let mut words = [*from; LANES];
                        (1..usize::from(len)).for_each(|i| words[i] = *from.add(i));
                        *to = words;
                    }
                }
            }
            MemoryRun::Apart { table, .. } => *to = tables[table as usize].map(|offset| *from.add(offset as usize)),
        }
    }
}

/// # Safety
/// The elements can be written.
#[inline(always)]
unsafe fn store(from: &Table, to: *mut u32, run: MemoryRun, tables: &[Table]) {
    // SAFETY: this function's contract.
    unsafe {
        match run {
            MemoryRun::Together { first, len } => {
                std::ptr::copy_nonoverlapping(from.as_ptr(), to.add(first as usize), usize::from(len));
            }
            MemoryRun::Apart { table, len } => {
                let offsets = &tables[table as usize];
                (0..usize::from(len)).for_each(|i| *to.add(offsets[i] as usize) = from[i]);
            }
        }
    }
}
