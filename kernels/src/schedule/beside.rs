//! Independent kernels as one: its first workgroups do the first kernel's work, the next ones the second's, and so on.
//!
//! A workgroup does the work of one kernel only, so the kernels share the workgroup's memory: there is one array for the largest
//! of each element type, one for the second largest, and so on.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use ds4_ir::{Run, Value};

use crate::kernel::{
    Access, Block, Expr, ExprRow, Extent, ExtentRow, Kernel, Local, Memory, MemoryRow, Operator, Part, Source, Space,
    Stmt, Type, Wrong, verify,
};

/// Most arguments of a kernel: with the step's block as many buffers as every device binds in a dispatch.
pub const MOST_ARGUMENTS: usize = 31;

/// Why kernels do not go side by side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Apart {
    /// There are none.
    Nothing,
    /// Their workgroups have different numbers of lanes.
    Lanes(u32, u32),
    /// Two of them write there.
    Written(Source),
    /// They see it with different types.
    Element(Source),
    /// Together they have so many arguments.
    Arguments(usize),
    /// The kernel that they make is malformed: too much memory of the workgroup, or one of them is.
    Wrong(Wrong),
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Apart::Nothing => f.write_str("there are no kernels"),
            Apart::Lanes(some, others) => write!(f, "some have {some} lanes, others {others}"),
            Apart::Written(source) => write!(f, "two of them write {source:?}"),
            Apart::Element(source) => write!(f, "they see {source:?} with different types"),
            Apart::Arguments(count) => write!(f, "{count} arguments together; available {MOST_ARGUMENTS}"),
            Apart::Wrong(wrong) => wrong.fmt(f),
        }
    }
}

impl std::error::Error for Apart {}

/// One kernel that does what several do, which may not depend on each other. Arguments with one source are one, with the
/// accesses of all.
pub fn side_by_side(name: &str, kernels: Vec<Kernel>) -> Result<Kernel, Apart> {
    let lanes = kernels.first().ok_or(Apart::Nothing)?.lanes;
    if let Some(other) = kernels.iter().find(|kernel| kernel.lanes != lanes) {
        return Err(Apart::Lanes(lanes, other.lanes));
    }
    let mut values: Vec<Value> = kernels.iter().flat_map(|kernel| kernel.values.iter().copied()).collect();
    values.sort();
    values.dedup();
    let abouts: Vec<&str> = kernels.iter().map(|kernel| kernel.about.as_str()).collect();
    let mut joined = Joined {
        kernel: Kernel { about: abouts.join(" | "), ..Kernel::empty(name, &values, lanes) },
        exprs: HashMap::new(),
        extents: HashMap::new(),
    };
    kernels.iter().try_for_each(|kernel| joined.arguments(kernel))?;
    let count = joined.kernel.arguments().count();
    if count > MOST_ARGUMENTS {
        return Err(Apart::Arguments(count));
    }
    kernels.iter().for_each(|kernel| joined.arrays(kernel));
    for kernel in &kernels {
        // What a malformed kernel refers to need not exist.
        verify(kernel).map_err(Apart::Wrong)?;
        joined.add(kernel);
    }
    verify(&joined.kernel).map_err(Apart::Wrong)?;
    Ok(joined.kernel)
}

struct Joined {
    kernel: Kernel,
    exprs: HashMap<ExprRow, Expr>,
    extents: HashMap<ExtentRow, Extent>,
}

/// For each row of a kernel's tables that of the joined kernel's.
struct Places {
    extents: Vec<Extent>,
    exprs: Vec<Expr>,
    memories: Vec<Memory>,
    /// What is added to the number of a local.
    locals: u32,
    /// The same of a block.
    blocks: u32,
}

impl Joined {
    /// Adds the arguments of a kernel, or joins them with those of the kernels before.
    fn arguments(&mut self, kernel: &Kernel) -> Result<(), Apart> {
        for (_, source, row) in kernel.arguments() {
            match self.kernel.memories.iter().position(|other| other.space == row.space) {
                None => self.memory(row.clone()),
                Some(at) => self.join(at, source, row)?,
            }
        }
        Ok(())
    }

    fn join(&mut self, at: usize, source: Source, row: &MemoryRow) -> Result<(), Apart> {
        let joined = &mut self.kernel.memories[at];
        if joined.element != row.element {
            return Err(Apart::Element(source));
        }
        if joined.access != Access::Read && row.access != Access::Read {
            return Err(Apart::Written(source));
        }
        if joined.access != row.access {
            joined.access = Access::ReadWrite;
        }
        Ok(())
    }

    fn memory(&mut self, mut row: MemoryRow) {
        let taken = |name: &str| self.kernel.memories.iter().any(|other| other.name == name);
        let names = (2..).map(|count| format!("{}{count}", row.name));
        if let Some(free) = [row.name.clone()].into_iter().chain(names).find(|name| !taken(name)) {
            row.name = free;
        }
        self.kernel.memories.push(row);
    }

    /// Makes the arrays large enough for those of a kernel, the largest of each element type first.
    fn arrays(&mut self, kernel: &Kernel) {
        for (element, rank, at) in ranked(kernel) {
            let row = &kernel.memories[at];
            match ranked(&self.kernel).into_iter().find(|other| (other.0, other.1) == (element, rank)) {
                Some((_, _, other)) => {
                    let len = &mut self.kernel.memories[other].len;
                    *len = row.len.max(*len);
                }
                None => self.memory(row.clone()),
            }
        }
    }

    fn memories(&self, kernel: &Kernel) -> Vec<Memory> {
        let arrays = ranked(&self.kernel);
        let own = ranked(kernel);
        let place = |(at, row): (usize, &MemoryRow)| {
            let same = |other: &MemoryRow| other.space == row.space;
            let array = own.iter().find(|own| own.2 == at);
            let found = match array {
                Some(own) => arrays.iter().find(|other| (other.0, other.1) == (own.0, own.1)).map(|other| other.2),
                None => self.kernel.memories.iter().position(same),
            };
            Memory(found.expect("invariant: all memories have been joined") as u32)
        };
        kernel.memories.iter().enumerate().map(place).collect()
    }

    /// Adds a verified kernel as a part.
    fn add(&mut self, kernel: &Kernel) {
        let mut places = Places {
            extents: kernel.extents.iter().map(|&row| self.extent(row)).collect(),
            exprs: Vec::with_capacity(kernel.exprs.len()),
            memories: self.memories(kernel),
            locals: self.kernel.locals.len() as u32,
            blocks: self.kernel.blocks.len() as u32,
        };
        for row in &kernel.exprs {
            let moved = places.expr_row(row);
            places.exprs.push(self.expr(moved));
        }
        self.kernel.locals.extend(kernel.locals.iter().cloned());
        let start = self.kernel.stmts.len() as u32;
        self.kernel.stmts.extend(kernel.stmts.iter().map(|&stmt| places.stmt(stmt)));
        self.kernel.blocks.extend(kernel.blocks.iter().map(|run| Run { start: start + run.start, ..*run }));
        let part = |part: &Part| Part {
            grid: part.grid.iter().map(|e| places.extents[e.0 as usize]).collect(),
            body: places.block(part.body),
        };
        self.kernel.parts.extend(kernel.parts.iter().map(part));
    }

    fn extent(&mut self, row: ExtentRow) -> Extent {
        let rows = &mut self.kernel.extents;
        *self.extents.entry(row).or_insert_with(|| {
            rows.push(row);
            Extent(rows.len() as u32 - 1)
        })
    }

    fn expr(&mut self, row: ExprRow) -> Expr {
        let rows = &mut self.kernel.exprs;
        *self.exprs.entry(row).or_insert_with(|| {
            rows.push(row);
            Expr(rows.len() as u32 - 1)
        })
    }
}

/// The arrays of a kernel: element type, rank by length within the type, number.
fn ranked(kernel: &Kernel) -> Vec<(Type, usize, usize)> {
    let rows = kernel.memories.iter().enumerate();
    let mut arrays: Vec<_> = rows.filter(|(_, row)| row.space == Space::Workgroup).collect();
    arrays.sort_by_key(|(at, row)| (row.element, Reverse(row.len), *at));
    let rank = |i: usize| arrays[..i].iter().filter(|(_, row)| row.element == arrays[i].1.element).count();
    (0..arrays.len()).map(|i| (arrays[i].1.element, rank(i), arrays[i].0)).collect()
}

impl Places {
    fn expr_row(&self, row: &ExprRow) -> ExprRow {
        let mut moved = *row;
        match row.op {
            Operator::Local => moved.words[0] += self.locals,
            Operator::Extent => moved.words[0] = self.extents[row.words[0] as usize].0,
            _ => {
                for (word, x) in moved.words.iter_mut().zip(row.operands()) {
                    *word = self.expr(x).0;
                }
            }
        }
        moved
    }

    fn expr(&self, x: Expr) -> Expr {
        self.exprs[x.0 as usize]
    }

    fn local(&self, local: Local) -> Local {
        Local(local.0 + self.locals)
    }

    fn block(&self, block: Block) -> Block {
        Block(block.0 + self.blocks)
    }

    fn memory(&self, memory: Memory) -> Memory {
        self.memories[memory.0 as usize]
    }

    fn stmt(&self, stmt: Stmt) -> Stmt {
        match stmt {
            Stmt::Let { local, value } => Stmt::Let { local: self.local(local), value: self.expr(value) },
            Stmt::Var { local, value } => Stmt::Var { local: self.local(local), value: self.expr(value) },
            Stmt::Set { local, value } => Stmt::Set { local: self.local(local), value: self.expr(value) },
            Stmt::Load { local, memory, index } => {
                Stmt::Load { local: self.local(local), memory: self.memory(memory), index: self.expr(index) }
            }
            Stmt::Store { memory, index, value } => {
                Stmt::Store { memory: self.memory(memory), index: self.expr(index), value: self.expr(value) }
            }
            Stmt::Shuffle { local, value, distance, width } => {
                Stmt::Shuffle { local: self.local(local), value: self.expr(value), distance, width }
            }
            Stmt::Barrier { buffers } => Stmt::Barrier { buffers },
            Stmt::If { condition, then, otherwise } => {
                Stmt::If { condition: self.expr(condition), then: self.block(then), otherwise: self.block(otherwise) }
            }
            Stmt::Present { id, index, then, otherwise } => Stmt::Present {
                id: self.expr(id),
                index: self.local(index),
                then: self.block(then),
                otherwise: self.block(otherwise),
            },
            Stmt::For { index, start, end, step, body } => Stmt::For {
                index: self.local(index),
                start: self.expr(start),
                end: self.extents[end.0 as usize],
                step,
                body: self.block(body),
            },
        }
    }
}
