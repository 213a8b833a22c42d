//! From a text's expressions and statements to a kernel that the machine runs.

use std::collections::HashMap;

use ds4_ir::Run;

use crate::kernel::{
    Block, Expr, ExprRow, Extent, ExtentRow, Kernel, Local, LocalRow, Memory, MemoryRow, Operator, Part, Source, Space,
    Stmt, Type, verify,
};

use super::header::{Header, Meaning};
use super::raw::{Raw, RawExpr, RawLocal, RawMemory, RawMemoryRow, RawOp, RawRow, RawStmt, What};
use super::{Fault, Reading};

/// Deepest nesting of expressions and of blocks, so that walks need no stack of their own.
const MOST_DEPTH: usize = 500;

/// The kernel of a text: its header understood, its statements one for one, [verified](verify).
pub fn recover(raw: Raw) -> Result<Reading, Fault> {
    let types = types(&raw)?;
    sound(&raw, &raw.body, 0)?;
    let header = Header::of(&raw)?;
    let mut body = Body::new(&raw, header, types)?;
    (0..body.header.parts()).try_for_each(|part| body.part(part))?;
    let Body { kernel, lines, .. } = body;
    match verify(&kernel) {
        Ok(()) => Ok(Reading { kernel, lines }),
        Err(wrong) => {
            let line = wrong.statement.and_then(|at| lines.get(at));
            Err(Fault::new(line.copied().unwrap_or(0), wrong.message))
        }
    }
}

/// The type of each expression, or what is wrong with it.
type Types = Vec<Result<Type, String>>;

/// Types all expressions; the order and the depth that it checks are what walks rely on.
fn types(raw: &Raw) -> Result<Types, Fault> {
    let mut types: Types = Vec::with_capacity(raw.exprs.len());
    let mut depths: Vec<usize> = Vec::with_capacity(raw.exprs.len());
    for (i, row) in raw.exprs.iter().enumerate() {
        if row.operands().any(|y| y.0 as usize >= i) {
            return Err(Fault::new(0, "an expression comes before its operands"));
        }
        let depth = row.operands().map(|y| depths[y.0 as usize]).max().unwrap_or(0) + 1;
        if depth > MOST_DEPTH {
            return Err(Fault::new(0, "an expression is nested too deep"));
        }
        depths.push(depth);
        types.push(type_of(raw, &types, row));
    }
    Ok(types)
}

fn type_of(raw: &Raw, types: &[Result<Type, String>], row: &RawRow) -> Result<Type, String> {
    let found: Vec<Type> = row.operands().map(|y| types[y.0 as usize].clone()).collect::<Result<_, _>>()?;
    let (name, wanted, result): (_, &[Type], _) = match row.op {
        RawOp::Step | RawOp::Number => return Ok(Type::Word),
        RawOp::Least => ("least", &[Type::Word; 2], Type::Word),
        RawOp::Op(Operator::IdWhere) => return Err("an id in a text is a word".into()),
        RawOp::Op(op) => match op.signature() {
            Some((wanted, result)) => (op.name(), wanted, result),
            None => return leaf_type(raw, op, row.words[0]),
        },
    };
    if found == wanted { Ok(result) } else { Err(format!("`{name}` takes {wanted:?}, found {found:?}")) }
}

fn leaf_type(raw: &Raw, op: Operator, word: u32) -> Result<Type, String> {
    match op {
        Operator::Float => Ok(Type::F32),
        Operator::Int | Operator::Lane => Ok(Type::Word),
        Operator::Truth if word < 2 => Ok(Type::Bool),
        Operator::Local => match raw.locals.get(word as usize) {
            Some(row) if row.ty != Type::Id => Ok(row.ty),
            Some(_) => Err("an id in a text is a word".into()),
            None => Err(format!("local {word} does not exist")),
        },
        _ => Err(format!("`{}` {word} does not occur in a text", op.name())),
    }
}

/// Refuses blocks that are nested too deep, and statements with expressions that do not exist.
fn sound(raw: &Raw, block: &[RawStmt], depth: usize) -> Result<(), Fault> {
    for stmt in block {
        if depth > MOST_DEPTH {
            return Err(Fault::new(stmt.line, "blocks are nested too deep"));
        }
        if let Some(x) = stmt.what.exprs().find(|x| x.0 as usize >= raw.exprs.len()) {
            return Err(Fault::new(stmt.line, format!("{x} does not exist")));
        }
        stmt.what.blocks().try_for_each(|inner| sound(raw, inner, depth + 1))?;
    }
    Ok(())
}

struct Body<'r> {
    raw: &'r Raw,
    header: Header<'r>,
    types: Types,
    kernel: Kernel,
    /// For each statement of the kernel its line.
    lines: Vec<u32>,
    ids: HashMap<ExprRow, Expr>,
    extents: HashMap<ExtentRow, Extent>,
    /// For each expression of the text that of the kernel, once it is made.
    exprs: Vec<Option<Expr>>,
    /// The same of locals.
    locals: Vec<Option<Local>>,
}

impl<'r> Body<'r> {
    fn new(raw: &'r Raw, header: Header<'r>, types: Types) -> Result<Body<'r>, Fault> {
        let kernel = Kernel {
            name: raw.name.clone(),
            about: raw.about.clone(),
            values: Vec::new(),
            lanes: raw.lanes,
            parts: Vec::new(),
            exprs: Vec::new(),
            locals: Vec::new(),
            memories: memories(raw)?,
            extents: Vec::new(),
            stmts: Vec::new(),
            blocks: Vec::new(),
        };
        Ok(Body {
            raw,
            header,
            types,
            kernel,
            lines: Vec::new(),
            ids: HashMap::new(),
            extents: HashMap::new(),
            exprs: vec![None; raw.exprs.len()],
            locals: vec![None; raw.locals.len()],
        })
    }

    /// A part. What a local of the header means differs between parts, and so does what is made of it.
    fn part(&mut self, part: usize) -> Result<(), Fault> {
        let (axes, statements) = self.header.begin(part)?;
        self.exprs.fill(None);
        let grid = axes.into_iter().map(|row| self.extent(row)).collect();
        let body = self.block(statements)?;
        self.kernel.parts.push(Part { grid, body });
        Ok(())
    }

    /// A block; its statements stand behind those of its inner blocks.
    fn block(&mut self, block: &[RawStmt]) -> Result<Block, Fault> {
        let stmts: Vec<Stmt> = block.iter().map(|stmt| self.statement(stmt)).collect::<Result<_, _>>()?;
        self.lines.extend(block.iter().map(|stmt| stmt.line));
        let run = Run::push(&mut self.kernel.stmts, &stmts);
        self.kernel.blocks.push(run);
        Ok(Block(self.kernel.blocks.len() as u32 - 1))
    }

    fn statement(&mut self, stmt: &RawStmt) -> Result<Stmt, Fault> {
        let line = stmt.line;
        Ok(match &stmt.what {
            What::Let { local, value } => {
                let value = self.expr(*value, line)?;
                Stmt::Let { local: self.bind(*local, line)?, value }
            }
            What::Var { local, value } => {
                let value = self.expr(*value, line)?;
                Stmt::Var { local: self.bind(*local, line)?, value }
            }
            What::Set { local, value } => {
                let value = self.expr(*value, line)?;
                Stmt::Set { local: self.local(*local, line)?, value }
            }
            What::Load { local, memory, index } => {
                let index = self.expr(*index, line)?;
                Stmt::Load { local: self.bind(*local, line)?, memory: memory_of(*memory), index }
            }
            What::Store { memory, index, value } => {
                let (index, value) = (self.expr(*index, line)?, self.expr(*value, line)?);
                Stmt::Store { memory: memory_of(*memory), index, value }
            }
            What::Shuffle { local, value, distance, width } => {
                let value = self.expr(*value, line)?;
                Stmt::Shuffle { local: self.bind(*local, line)?, value, distance: *distance, width: *width }
            }
            What::Barrier { buffers } => Stmt::Barrier { buffers: *buffers },
            What::If { condition, then, otherwise } => {
                let condition = self.expr(*condition, line)?;
                Stmt::If { condition, then: self.block(then)?, otherwise: self.block(otherwise)? }
            }
            What::For { index, start, end, step, body } => {
                let (start, end) = (self.expr(*start, line)?, self.end(*end, line)?);
                let index = self.bind(*index, line)?;
                Stmt::For { index, start, end, step: *step, body: self.block(body)? }
            }
            What::Leave => return Err(Fault::new(line, "the kernel leaves behind its header")),
        })
    }

    /// The local that a statement binds.
    fn bind(&mut self, local: RawLocal, line: u32) -> Result<Local, Fault> {
        let Some(row) = self.raw.locals.get(local.0 as usize) else {
            return Err(Fault::new(line, format!("{local} does not exist")));
        };
        let place = &mut self.locals[local.0 as usize];
        if place.is_some() || self.header.binds(local) {
            return Err(Fault::new(line, format!("`{}` is bound twice", row.name)));
        }
        self.kernel.locals.push(LocalRow { ty: row.ty, name: row.name.clone(), mutable: row.mutable });
        Ok(*place.insert(Local(self.kernel.locals.len() as u32 - 1)))
    }

    /// A local that was bound before.
    fn local(&self, local: RawLocal, line: u32) -> Result<Local, Fault> {
        self.locals.get(local.0 as usize).copied().flatten().ok_or_else(|| {
            let name = self.raw.locals.get(local.0 as usize).map_or("", |row| &row.name);
            Fault::new(line, format!("`{name}` is not known here"))
        })
    }

    /// The end of a loop.
    fn end(&mut self, end: RawExpr, line: u32) -> Result<Extent, Fault> {
        match self.header.extent(end) {
            Some(row) => Ok(self.extent(row)),
            None => Err(Fault::new(line, "the end of a loop is neither an extent nor a constant")),
        }
    }

    fn extent(&mut self, row: ExtentRow) -> Extent {
        let rows = &mut self.kernel.extents;
        *self.extents.entry(row).or_insert_with(|| {
            rows.push(row);
            Extent(rows.len() as u32 - 1)
        })
    }

    fn node(&mut self, op: Operator, words: [u32; 3]) -> Expr {
        let (row, rows) = (ExprRow { op, words }, &mut self.kernel.exprs);
        *self.ids.entry(row).or_insert_with(|| {
            rows.push(row);
            Expr(rows.len() as u32 - 1)
        })
    }

    /// An expression of the text, in a statement at this line.
    fn expr(&mut self, x: RawExpr, line: u32) -> Result<Expr, Fault> {
        let at = x.0 as usize;
        let Some(row) = self.raw.exprs.get(at) else { return Err(Fault::new(line, format!("{x} does not exist"))) };
        if let Some(made) = self.exprs[at] {
            return Ok(made);
        }
        if let Err(what) = &self.types[at] {
            return Err(Fault::new(line, what));
        }
        let made = match row.op {
            RawOp::Number | RawOp::Op(Operator::Local) => self.named(row, line)?,
            RawOp::Step | RawOp::Least => return Err(Fault::new(line, "the step's block is read outside of extents")),
            RawOp::Op(op) => self.operation(op, row, line)?,
        };
        self.exprs[at] = Some(made);
        Ok(made)
    }

    fn operation(&mut self, op: Operator, row: &RawRow, line: u32) -> Result<Expr, Fault> {
        let mut words = row.words;
        for (word, y) in words.iter_mut().zip(row.operands()) {
            *word = self.expr(y, line)?.0;
        }
        let constant = |x: u32| self.kernel.exprs.get(x as usize).filter(|row| row.op == Operator::Int);
        let second = constant(words[1]).map(|row| row.words[0]);
        match op {
            Operator::DivInt | Operator::RemInt if second.is_none_or(|by| by == 0) => {
                Err(Fault::new(line, "a divisor is not a positive constant"))
            }
            // Languages disagree about the result.
            Operator::Shl | Operator::Shr | Operator::Sar if second.is_some_and(|count| count >= 32) => {
                Err(Fault::new(line, "a shift by 32 or more"))
            }
            _ => Ok(self.node(op, words)),
        }
    }

    /// A local, or the number of the workgroup.
    fn named(&mut self, row: &RawRow, line: u32) -> Result<Expr, Fault> {
        match self.header.meaning(row) {
            Some(Meaning::Group(axis)) => Ok(self.node(Operator::Group, [axis, 0, 0])),
            Some(Meaning::Extent(extent)) => Ok(match extent.is_constant() {
                Some(n) => self.node(Operator::Int, [n, 0, 0]),
                None => {
                    let extent = self.extent(extent);
                    self.node(Operator::Extent, [extent.0, 0, 0])
                }
            }),
            None if row.op == RawOp::Number || self.header.binds(RawLocal(row.words[0])) => {
                Err(Fault::new(line, "a part of the header that is neither an extent nor a coordinate is used here"))
            }
            None => {
                let local = self.local(RawLocal(row.words[0]), line)?;
                Ok(self.node(Operator::Local, [local.0, 0, 0]))
            }
        }
    }
}

fn memory_of(memory: RawMemory) -> Memory {
    Memory(memory.0)
}

/// The memories; arguments are numbered in their order.
fn memories(raw: &Raw) -> Result<Vec<MemoryRow>, Fault> {
    let mut arguments = 0..;
    let row = |row: &RawMemoryRow| {
        let space = match row.len {
            Some(_) => Space::Workgroup,
            None => Space::Buffer(Source::Argument(arguments.next().unwrap_or_default())),
        };
        if !matches!(row.element, Type::F32 | Type::Word) {
            return Err(Fault::new(0, format!("`{}` holds {}", row.name, row.element.name())));
        }
        let (element, access, name) = (row.element, row.access, row.name.clone());
        Ok(MemoryRow { space, element, access, len: row.len.unwrap_or(0), name })
    };
    raw.memories.iter().map(row).collect()
}

#[cfg(test)]
mod tests;
