//! The tables of a kernel.

use ds4_ir::graph::{Constant, State, Weight};
use ds4_ir::{Dim, Run, Value};

use super::extent::{ExtentRow, Grid, axes};
use super::operator::{Operator, Type};

ds4_ir::entities! {
    /// An expression.
    Expr = "x";
    /// A local of a lane.
    Local = "l";
    /// An argument, or an array of the workgroup.
    Memory = "m";
    /// A number that follows from the step.
    Extent = "e";
    /// A list of statements.
    Block = "k";
}

/// An expression: operator and operands, or the word of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExprRow {
    /// The operator.
    pub op: Operator,
    /// Operands, unused ones 0; for leaves the word is the first.
    pub words: [u32; 3],
}

impl ExprRow {
    /// The operands (none for leaves).
    pub fn operands(&self) -> impl DoubleEndedIterator<Item = Expr> + use<'_> {
        self.words[..self.op.arity()].iter().map(|&x| Expr(x))
    }
}

/// A local.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LocalRow {
    /// Its type.
    pub ty: Type,
    /// What a reader calls it; not unique.
    pub name: String,
    /// Whether [`Stmt::Set`] may change it.
    pub mutable: bool,
}

/// What an argument is bound to: memory that the plan knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// The elements of a stored value.
    Slot(Value),
    /// The codes of a stored q8 value, four to a word.
    Codes(Value),
    /// The scales of a stored q8 value.
    Scales(Value),
    /// A state.
    State(State),
    /// A tensor of the checkpoint, in its [weight layout](crate::weight_layout).
    Weight(Weight),
    /// The E8M0 scales of a tensor, four to a word.
    WeightScales(Weight),
    /// A table of the compiler.
    Constant(Constant),
    /// The magnitudes of `iq2_xxs`: 256 rows of 8 bytes.
    Magnitudes,
    /// The token ids of the step.
    Tokens,
    /// The argument with this number; of kernels that were read from a text.
    Argument(u32),
}

impl Source {
    /// Whether some kernel of a step may write there; the others a step only reads.
    pub fn is_written(self) -> bool {
        matches!(self, Source::Slot(_) | Source::Codes(_) | Source::Scales(_) | Source::State(_) | Source::Argument(_))
    }
}

/// Where memory lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// An argument whose words are part of the plan; read only.
    Constant(Source),
    /// An argument in the device's memory.
    Buffer(Source),
    /// An array of the workgroup; unwritten when the workgroup begins.
    Workgroup,
}

/// What a kernel does with memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Loads only.
    Read,
    /// Stores only.
    Write,
    /// Both.
    ReadWrite,
}

/// An argument, or an array of the workgroup.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemoryRow {
    /// Where it lives.
    pub space: Space,
    /// Type of an element; each takes a word.
    pub element: Type,
    /// What the kernel does with it.
    pub access: Access,
    /// Elements of a workgroup array; 0 for arguments, whose length is that of the binding.
    pub len: u32,
    /// What a reader calls it; unique in the kernel.
    pub name: String,
}

/// A statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stmt {
    /// Names a value.
    Let {
        /// The local, not mutable.
        local: Local,
        /// Its value.
        value: Expr,
    },
    /// Begins a mutable local.
    Var {
        /// The local, mutable.
        local: Local,
        /// Its first value.
        value: Expr,
    },
    /// Changes a mutable local.
    Set {
        /// The local.
        local: Local,
        /// Its new value.
        value: Expr,
    },
    /// Names an element of memory.
    Load {
        /// The local.
        local: Local,
        /// The memory.
        memory: Memory,
        /// Which element, a word.
        index: Expr,
    },
    /// Writes an element of memory.
    Store {
        /// The memory.
        memory: Memory,
        /// Which element, a word.
        index: Expr,
        /// What to write.
        value: Expr,
    },
    /// Names the value of the lane whose number differs in the bits of `distance`.
    Shuffle {
        /// The local.
        local: Local,
        /// What each lane offers, f32 or word.
        value: Expr,
        /// Below the width.
        distance: u32,
        /// Lanes that exchange: a power of two of at most 8.
        width: u32,
    },
    /// All lanes of the workgroup meet; what they wrote to the workgroup's arrays is seen behind it.
    Barrier {
        /// Whether what they wrote to buffers is seen behind it, too: by this workgroup, never by another one.
        buffers: bool,
    },
    /// A branch.
    If {
        /// The condition.
        condition: Expr,
        /// Where it holds.
        then: Block,
        /// Where it does not.
        otherwise: Block,
    },
    /// The only use of a masked id besides storing it.
    Present {
        /// The id.
        id: Expr,
        /// Its index, known in `then` only.
        index: Local,
        /// Where the id is not masked.
        then: Block,
        /// Where it is masked.
        otherwise: Block,
    },
    /// `index` from `start` below `end` by `step`.
    For {
        /// The index, a word.
        index: Local,
        /// First index, a word.
        start: Expr,
        /// Exclusive end.
        end: Extent,
        /// Positive step.
        step: u32,
        /// What is repeated.
        body: Block,
    },
}

impl Stmt {
    /// The expressions of the statement itself, without those of its blocks.
    pub fn exprs(&self) -> impl Iterator<Item = Expr> + use<> {
        let pair = match *self {
            Stmt::Let { value, .. } | Stmt::Var { value, .. } | Stmt::Set { value, .. } => [Some(value), None],
            Stmt::Shuffle { value, .. } => [Some(value), None],
            Stmt::Load { index, .. } => [Some(index), None],
            Stmt::Store { index, value, .. } => [Some(index), Some(value)],
            Stmt::If { condition, .. } => [Some(condition), None],
            Stmt::Present { id, .. } => [Some(id), None],
            Stmt::For { start, .. } => [Some(start), None],
            Stmt::Barrier { .. } => [None, None],
        };
        pair.into_iter().flatten()
    }

    /// The blocks of the statement.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + use<> {
        let pair = match *self {
            Stmt::If { then, otherwise, .. } | Stmt::Present { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Stmt::For { body, .. } => [Some(body), None],
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }
}

/// What some of a kernel's workgroups do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Axes of its grid, slowest first.
    pub grid: Vec<Extent>,
    /// What a workgroup does.
    pub body: Block,
}

/// One kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// Name for a reader, from the span of its last value and what the schedule does.
    pub name: String,
    /// One line for a reader: the value that it computes, with shape, operation and operands.
    pub about: String,
    /// The values that it computes, ascending.
    pub values: Vec<Value>,
    /// Lanes of a workgroup.
    pub lanes: u32,
    /// Its parts, at least one: the first workgroups do the first part's work, then come those of the second, and so on.
    pub parts: Vec<Part>,
    /// Expressions, operands before users.
    pub exprs: Vec<ExprRow>,
    /// Locals.
    pub locals: Vec<LocalRow>,
    /// Arguments and workgroup arrays.
    pub memories: Vec<MemoryRow>,
    /// Extents.
    pub extents: Vec<ExtentRow>,
    /// Statements of all blocks.
    pub stmts: Vec<Stmt>,
    /// Blocks; a block's statements stand behind those of its inner blocks.
    pub blocks: Vec<Run>,
}

impl Kernel {
    /// A kernel without a body.
    pub(crate) fn empty(name: &str, values: &[Value], lanes: u32) -> Kernel {
        Kernel {
            name: name.into(),
            about: String::new(),
            values: values.to_vec(),
            lanes,
            parts: Vec::new(),
            exprs: Vec::new(),
            locals: Vec::new(),
            memories: Vec::new(),
            extents: Vec::new(),
            stmts: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The row of an expression.
    pub fn expr(&self, x: Expr) -> &ExprRow {
        &self.exprs[x.0 as usize]
    }

    /// The statements of a block.
    pub fn block(&self, block: Block) -> &[Stmt] {
        self.blocks[block.0 as usize].of(&self.stmts)
    }

    /// The numbers of a block's statements.
    pub fn statements(&self, block: Block) -> std::ops::Range<usize> {
        let run = self.blocks[block.0 as usize];
        run.start as usize..(run.start + run.len) as usize
    }

    /// The arguments, in the order of their bindings.
    pub fn arguments(&self) -> impl Iterator<Item = (Memory, Source, &MemoryRow)> {
        let rows = (0..).map(Memory).zip(&self.memories);
        rows.filter_map(|(m, row)| match row.space {
            Space::Constant(source) | Space::Buffer(source) => Some((m, source, row)),
            Space::Workgroup => None,
        })
    }

    /// The step scalars that it reads, ascending.
    pub fn scalars(&self) -> Vec<Dim> {
        let mut dims: Vec<Dim> = self.extents.iter().filter_map(|row| row.scalar).collect();
        dims.sort();
        dims.dedup();
        dims
    }

    /// The grid in a step; `None` if it does not fit 32 bits.
    pub fn grid_in(&self, scalar: &dyn Fn(Dim) -> u32) -> Option<Grid> {
        let parts = self.parts.iter().map(|part| axes(&self.extents, &part.grid, scalar));
        Some(Grid { parts: parts.collect::<Option<_>>()? })
    }
}
