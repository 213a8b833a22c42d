//! What a reader makes of a text before the header is understood: expressions, and statements as a tree.
//!
//! Extents, the folded grid and its coordinates are spelled out in a text as arithmetic on the step's block and on the number
//! of the workgroup. [`RawOp`] has leaves for these two; `recover` finds the extents and axes again, and refuses a text whose
//! header does anything else.

use std::collections::HashMap;

use crate::kernel::{Access, Operator, Type};

ds4_ir::entities! {
    /// An expression of a text.
    RawExpr = "x";
    /// A local of a text.
    RawLocal = "l";
    /// A memory of a text.
    RawMemory = "m";
}

/// An operator of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RawOp {
    /// An operator of the kernel IR, of those with operands, or `Float`, `Int`, `Truth`, `Local`, `Lane`.
    Op(Operator),
    /// A word of the step's block; the word is its place. Places 0 and 1, the zeros, are read as `Float` constants instead.
    Step,
    /// The number of the workgroup in the folded grid, `x + y * width`.
    Number,
    /// The smaller of two unsigned words.
    Least,
}

/// An expression: its operator; operands, or the word of a leaf. Unused words are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RawRow {
    /// The operator.
    pub op: RawOp,
    /// Operands as numbers of expressions, or the word.
    pub words: [u32; 3],
}

impl RawRow {
    /// The operands (none for leaves).
    pub fn operands(&self) -> impl DoubleEndedIterator<Item = RawExpr> + use<'_> {
        let arity = match self.op {
            RawOp::Op(op) => op.arity(),
            RawOp::Least => 2,
            RawOp::Step | RawOp::Number => 0,
        };
        self.words[..arity].iter().map(|&x| RawExpr(x))
    }
}

/// A local.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawLocalRow {
    /// `F32`, `Word` or `Bool`.
    pub ty: Type,
    /// Its name in the text.
    pub name: String,
    /// Whether `Set` may change it.
    pub mutable: bool,
}

/// A memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawMemoryRow {
    /// Its name in the text.
    pub name: String,
    /// `F32` or `Word`.
    pub element: Type,
    /// What the text may do with it, or [`Access::ReadWrite`] where the language does not say.
    pub access: Access,
    /// Elements of an array of the workgroup; `None` for arguments, which are in the order of their rows.
    pub len: Option<u32>,
}

/// A statement with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawStmt {
    /// The line, from 1.
    pub line: u32,
    /// What it does.
    pub what: What,
}

/// What a statement does; as [`crate::kernel::Stmt`], but for `Leave` and the end of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum What {
    Let {
        local: RawLocal,
        value: RawExpr,
    },
    Var {
        local: RawLocal,
        value: RawExpr,
    },
    Set {
        local: RawLocal,
        value: RawExpr,
    },
    Load {
        local: RawLocal,
        memory: RawMemory,
        index: RawExpr,
    },
    Store {
        memory: RawMemory,
        index: RawExpr,
        value: RawExpr,
    },
    Shuffle {
        local: RawLocal,
        value: RawExpr,
        distance: u32,
        width: u32,
    },
    Barrier {
        buffers: bool,
    },
    If {
        condition: RawExpr,
        then: Vec<RawStmt>,
        otherwise: Vec<RawStmt>,
    },
    For {
        index: RawLocal,
        start: RawExpr,
        end: RawExpr,
        step: u32,
        body: Vec<RawStmt>,
    },
    /// Leaves the kernel; once, in the header.
    Leave,
}

impl What {
    /// The expressions of the statement itself, without those of its blocks.
    pub fn exprs(&self) -> impl Iterator<Item = RawExpr> + use<> {
        let pair = match *self {
            What::Let { value, .. } | What::Var { value, .. } | What::Set { value, .. } => [Some(value), None],
            What::Shuffle { value, .. } => [Some(value), None],
            What::Load { index, .. } => [Some(index), None],
            What::Store { index, value, .. } => [Some(index), Some(value)],
            What::If { condition, .. } => [Some(condition), None],
            What::For { start, end, .. } => [Some(start), Some(end)],
            What::Barrier { .. } | What::Leave => [None, None],
        };
        pair.into_iter().flatten()
    }

    /// The blocks of the statement.
    pub fn blocks(&self) -> impl Iterator<Item = &[RawStmt]> {
        let pair = match self {
            What::If { then, otherwise, .. } => [Some(&then[..]), Some(&otherwise[..])],
            What::For { body, .. } => [Some(&body[..]), None],
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }
}

/// A text that was read.
#[derive(Clone, Default, Debug)]
pub struct Raw {
    /// Name of the entry point.
    pub name: String,
    /// The line that says what is computed.
    pub about: String,
    /// Lanes of a workgroup.
    pub lanes: u32,
    /// Expressions, operands before users.
    pub exprs: Vec<RawRow>,
    /// Locals.
    pub locals: Vec<RawLocalRow>,
    /// Arguments behind the step's block, then arrays of the workgroup.
    pub memories: Vec<RawMemoryRow>,
    /// The statements of the body.
    pub body: Vec<RawStmt>,
    ids: HashMap<RawRow, RawExpr>,
}

impl Raw {
    /// An expression, shared with an equal one.
    pub fn node(&mut self, op: RawOp, words: [u32; 3]) -> RawExpr {
        let row = RawRow { op, words };
        *self.ids.entry(row).or_insert_with(|| {
            self.exprs.push(row);
            RawExpr(self.exprs.len() as u32 - 1)
        })
    }

    /// An operator of the kernel IR on operands.
    pub fn operation(&mut self, op: Operator, args: &[RawExpr]) -> RawExpr {
        let mut words = [0; 3];
        for (word, x) in words.iter_mut().zip(args) {
            *word = x.0;
        }
        self.node(RawOp::Op(op), words)
    }

    /// A leaf of the kernel IR.
    pub fn leaf(&mut self, op: Operator, word: u32) -> RawExpr {
        self.node(RawOp::Op(op), [word, 0, 0])
    }

    /// A new local.
    pub fn local(&mut self, ty: Type, name: &str, mutable: bool) -> RawLocal {
        self.locals.push(RawLocalRow { ty, name: name.into(), mutable });
        RawLocal(self.locals.len() as u32 - 1)
    }

    /// What a local holds.
    pub fn local_value(&mut self, local: RawLocal) -> RawExpr {
        self.leaf(Operator::Local, local.0)
    }

    /// The type of an expression.
    pub fn ty(&self, x: RawExpr) -> Type {
        let row = &self.exprs[x.0 as usize];
        match row.op {
            RawOp::Step | RawOp::Number | RawOp::Least => Type::Word,
            RawOp::Op(Operator::Float) => Type::F32,
            RawOp::Op(Operator::Truth) => Type::Bool,
            RawOp::Op(Operator::Local) => self.locals[row.words[0] as usize].ty,
            RawOp::Op(op) => op.signature().map_or(Type::Word, |(_, result)| result),
        }
    }
}
