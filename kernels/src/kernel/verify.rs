//! What every kernel must be: types, scopes, bounds of loops, barriers where all lanes come by, masked ids guarded.

use std::fmt;

use super::operator::{Operator, Type};
use super::tables::{Access, Block, Expr, Extent, Kernel, Local, Memory, Space, Stmt};
use super::uniform::Dependence;

/// Most bytes of workgroup arrays: what a kernel may name statically on any device. A device may have less; its limits say so.
pub const MOST_SHARED: u64 = 48 << 10;
/// Most lanes of a workgroup.
const MOST_LANES: u32 = 256;
/// Deepest nesting of expressions and blocks, so that walks need no stack of their own.
const MOST_DEPTH: usize = 2_000;

/// What is wrong with a kernel, and at which statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Number of the statement, if it is one's fault.
    pub statement: Option<usize>,
    /// What is wrong, one line without a full stop.
    pub message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.statement {
            Some(statement) => write!(f, "statement {statement}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Wrong {}

/// Checks a kernel whose content may be anything.
pub fn verify(kernel: &Kernel) -> Result<(), Wrong> {
    let types = tables(kernel).map_err(|message| Wrong { statement: None, message })?;
    let mut check = Check {
        kernel,
        types,
        axes: axes(kernel),
        part_axes: 0,
        known: vec![false; kernel.locals.len()],
        bound: vec![false; kernel.locals.len()],
        visited: vec![false; kernel.blocks.len()],
        dependence: Dependence::of(kernel),
        converged: true,
        statement: None,
    };
    for part in &kernel.parts {
        check.part_axes = part.grid.len();
        check.block(part.body, 0).map_err(|message| Wrong { statement: check.statement, message })?;
    }
    Ok(())
}

/// Checks the tables row by row and gives the type of every expression.
fn tables(kernel: &Kernel) -> Result<Vec<Type>, String> {
    if kernel.lanes == 0 || kernel.lanes > MOST_LANES || !kernel.lanes.is_multiple_of(8) {
        return Err(format!("{} lanes; wanted a multiple of 8 up to {MOST_LANES}", kernel.lanes));
    }
    for (i, row) in kernel.extents.iter().enumerate() {
        if row.per == 0 || row.largest().is_none() {
            return Err(format!("{} has no bound of 32 bits", Extent(i as u32)));
        }
    }
    if let Some(e) = kernel.parts.iter().flat_map(|part| &part.grid).find(|e| e.0 as usize >= kernel.extents.len()) {
        return Err(format!("{e} of the grid does not exist"));
    }
    if kernel.parts.is_empty() {
        return Err("the kernel has no parts".into());
    }
    memories(kernel)?;
    for run in &kernel.blocks {
        if run.start as usize + run.len as usize > kernel.stmts.len() {
            return Err("a block leaves the table of statements".into());
        }
    }
    expressions(kernel)
}

fn memories(kernel: &Kernel) -> Result<(), String> {
    let mut shared = 0;
    for row in &kernel.memories {
        let workgroup = row.space == Space::Workgroup;
        if row.element == Type::Bool {
            return Err(format!("`{}` holds truth values", row.name));
        }
        if workgroup != (row.len > 0) {
            return Err(format!("`{}` has {} elements", row.name, row.len));
        }
        if matches!(row.space, Space::Constant(_)) && row.access != Access::Read {
            return Err(format!("`{}` is a constant and is written", row.name));
        }
        shared += 4 * u64::from(row.len);
    }
    if shared > MOST_SHARED {
        return Err(format!("{shared} bytes of workgroup memory; available {MOST_SHARED}"));
    }
    Ok(())
}

fn expressions(kernel: &Kernel) -> Result<Vec<Type>, String> {
    let mut types: Vec<Type> = Vec::with_capacity(kernel.exprs.len());
    let mut depths: Vec<usize> = Vec::with_capacity(kernel.exprs.len());
    for (i, row) in kernel.exprs.iter().enumerate() {
        let x = Expr(i as u32);
        if row.operands().any(|y| y >= x) {
            return Err(format!("{x} comes before its operands"));
        }
        types.push(type_of(kernel, &types, x)?);
        let depth = row.operands().map(|y| depths[y.0 as usize]).max().unwrap_or(0) + 1;
        if depth > MOST_DEPTH {
            return Err(format!("{x} is nested too deep"));
        }
        depths.push(depth);
    }
    Ok(types)
}

/// For each expression, how many axes its part must have.
fn axes(kernel: &Kernel) -> Vec<usize> {
    let mut axes: Vec<usize> = Vec::with_capacity(kernel.exprs.len());
    for row in &kernel.exprs {
        axes.push(match row.op {
            Operator::Group => row.words[0] as usize + 1,
            _ => row.operands().map(|y| axes[y.0 as usize]).max().unwrap_or(0),
        });
    }
    axes
}

fn type_of(kernel: &Kernel, types: &[Type], x: Expr) -> Result<Type, String> {
    let row = kernel.expr(x);
    let word = row.words[0] as usize;
    let leaf = |exists: bool, ty: Type| {
        if exists { Ok(ty) } else { Err(format!("{} {word} does not exist", row.op.name())) }
    };
    let Some((wanted, result)) = row.op.signature() else {
        return match row.op {
            Operator::Float => Ok(Type::F32),
            Operator::Local => leaf(word < kernel.locals.len(), kernel.locals.get(word).map_or(Type::Word, |l| l.ty)),
            Operator::Extent => leaf(word < kernel.extents.len(), Type::Word),
            Operator::Truth => leaf(word < 2, Type::Bool),
            Operator::Masked => Ok(Type::Id),
            _ => Ok(Type::Word),
        };
    };
    let found: Vec<Type> = row.operands().map(|y| types[y.0 as usize]).collect();
    if found != wanted {
        return Err(format!("`{}` takes {wanted:?}, found {found:?}", row.op.name()));
    }
    if matches!(row.op, Operator::DivInt | Operator::RemInt) {
        let divisor = kernel.expr(Expr(row.words[1]));
        if divisor.op != Operator::Int || divisor.words[0] == 0 {
            return Err(format!("the divisor of `{}` is a positive constant", row.op.name()));
        }
    }
    Ok(result)
}

struct Check<'a> {
    kernel: &'a Kernel,
    types: Vec<Type>,
    /// For each expression, how many axes its part must have.
    axes: Vec<usize>,
    /// Axes of the part.
    part_axes: usize,
    /// Locals in scope.
    known: Vec<bool>,
    /// Locals that a statement has bound, in scope or not.
    bound: Vec<bool>,
    visited: Vec<bool>,
    dependence: Dependence,
    /// Whether all lanes of the workgroup come by here.
    converged: bool,
    statement: Option<usize>,
}

impl Check<'_> {
    fn block(&mut self, block: Block, depth: usize) -> Result<(), String> {
        match self.visited.get_mut(block.0 as usize) {
            None => return Err(format!("{block} does not exist")),
            Some(true) => return Err(format!("{block} stands in two places")),
            Some(visited) => *visited = true,
        }
        if depth > MOST_DEPTH {
            return Err("blocks are nested too deep".into());
        }
        let mut scope = Vec::new();
        for at in self.kernel.statements(block) {
            self.statement = Some(at);
            self.statement(self.kernel.stmts[at], depth, &mut scope)?;
        }
        scope.iter().for_each(|l: &Local| self.known[l.0 as usize] = false);
        Ok(())
    }

    fn statement(&mut self, stmt: Stmt, depth: usize, scope: &mut Vec<Local>) -> Result<(), String> {
        stmt.exprs().try_for_each(|x| self.in_scope(x))?;
        match stmt {
            Stmt::Let { local, value } => {
                self.bind(local, self.ty(value), false, scope)?;
                self.dependence.bind(local, value);
            }
            Stmt::Var { local, value } => self.bind(local, self.ty(value), true, scope)?,
            Stmt::Set { local, value } => self.set(local, value)?,
            Stmt::Load { local, memory, index } => {
                let element = self.element(memory, Access::Write)?;
                self.expect(index, Type::Word)?;
                self.bind(local, element, false, scope)?;
            }
            Stmt::Store { memory, index, value } => {
                let element = self.element(memory, Access::Read)?;
                self.expect(index, Type::Word)?;
                self.expect(value, element)?;
            }
            Stmt::Shuffle { local, value, distance, width } => {
                self.shuffle(value, distance, width)?;
                self.bind(local, self.ty(value), false, scope)?;
            }
            Stmt::Barrier { .. } if !self.converged => return Err("not every lane comes by this barrier".into()),
            Stmt::Barrier { .. } => {}
            Stmt::If { condition, then, otherwise } => {
                self.expect(condition, Type::Bool)?;
                let uniform = self.dependence.is_uniform(condition);
                self.inside(uniform, &[then, otherwise], depth)?;
            }
            Stmt::Present { id, index, then, otherwise } => {
                self.expect(id, Type::Id)?;
                let mut inner = Vec::new();
                self.bind(index, Type::Word, false, &mut inner)?;
                self.inside(false, &[then], depth)?;
                self.known[index.0 as usize] = false;
                self.inside(false, &[otherwise], depth)?;
            }
            Stmt::For { index, start, end, step, body } => {
                self.for_loop(start, end, step)?;
                let mut inner = Vec::new();
                self.bind(index, Type::Word, false, &mut inner)?;
                self.dependence.bind(index, start);
                self.inside(self.dependence.is_uniform(start), &[body], depth)?;
                self.known[index.0 as usize] = false;
            }
        }
        Ok(())
    }

    fn inside(&mut self, uniform: bool, blocks: &[Block], depth: usize) -> Result<(), String> {
        let converged = self.converged;
        self.converged &= uniform;
        blocks.iter().try_for_each(|&block| self.block(block, depth + 1))?;
        self.converged = converged;
        Ok(())
    }

    fn ty(&self, x: Expr) -> Type {
        self.types[x.0 as usize]
    }

    fn expect(&self, x: Expr, ty: Type) -> Result<(), String> {
        let found = self.ty(x);
        if found == ty { Ok(()) } else { Err(format!("{x} is {}, wanted {}", found.name(), ty.name())) }
    }

    fn in_scope(&self, x: Expr) -> Result<(), String> {
        if x.0 as usize >= self.types.len() {
            return Err(format!("{x} does not exist"));
        }
        if self.axes[x.0 as usize] > self.part_axes {
            return Err(format!("{x} asks for a coordinate along an axis that its part does not have"));
        }
        match self.dependence.locals(x).iter().find(|l| !self.known[l.0 as usize]) {
            Some(l) => Err(format!("`{}` is not known here", self.kernel.locals[l.0 as usize].name)),
            None => Ok(()),
        }
    }

    fn bind(&mut self, local: Local, ty: Type, mutable: bool, scope: &mut Vec<Local>) -> Result<(), String> {
        let row = self.kernel.locals.get(local.0 as usize).ok_or_else(|| format!("{local} does not exist"))?;
        if row.ty != ty || row.mutable != mutable {
            return Err(format!("`{}` is {}, bound as {}", row.name, row.ty.name(), ty.name()));
        }
        if std::mem::replace(&mut self.bound[local.0 as usize], true) {
            return Err(format!("`{}` is bound twice", row.name));
        }
        self.known[local.0 as usize] = true;
        scope.push(local);
        Ok(())
    }

    fn set(&self, local: Local, value: Expr) -> Result<(), String> {
        let row = self.kernel.locals.get(local.0 as usize).ok_or_else(|| format!("{local} does not exist"))?;
        if !row.mutable || !self.known[local.0 as usize] {
            return Err(format!("`{}` cannot be set here", row.name));
        }
        self.expect(value, row.ty)
    }

    /// The element type of a memory whose access is not `forbidden`.
    fn element(&self, memory: Memory, forbidden: Access) -> Result<Type, String> {
        let row = self.kernel.memories.get(memory.0 as usize).ok_or_else(|| format!("{memory} does not exist"))?;
        if row.access == forbidden {
            return Err(format!("`{}` is used against its access", row.name));
        }
        Ok(row.element)
    }

    fn shuffle(&self, value: Expr, distance: u32, width: u32) -> Result<(), String> {
        if !matches!(self.ty(value), Type::F32 | Type::Word) {
            return Err(format!("{} is not exchanged between lanes", self.ty(value).name()));
        }
        if !width.is_power_of_two() || width > 8 || distance >= width {
            return Err(format!("a shuffle of distance {distance} in width {width}"));
        }
        if !self.converged {
            return Err("not every lane comes by this shuffle".into());
        }
        Ok(())
    }

    fn for_loop(&self, start: Expr, end: Extent, step: u32) -> Result<(), String> {
        self.expect(start, Type::Word)?;
        let row = self.kernel.extents.get(end.0 as usize).ok_or_else(|| format!("{end} does not exist"))?;
        // The index passes the end by less than a step; it must not wrap.
        let fits = row.largest().and_then(|most| most.checked_add(step));
        if step == 0 || fits.is_none() {
            return Err(format!("a loop to {:?} by {step}", row.largest()));
        }
        Ok(())
    }
}
