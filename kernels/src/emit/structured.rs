//! The walk over a kernel for languages with blocks and expressions.

use crate::kernel::{Block, Expr, Extent, ExtentRow, Kernel, Local, Memory, Operator, Part, Stmt, Type};

use super::StepBlock;
use super::names::Names;

/// Longest text of an operand; a longer one gets a name.
const LONGEST: usize = 72;

/// How a language writes things. What `operator` and `negated` give is complete in itself: in parentheses, or a call.
pub trait Dialect {
    /// Words that no local may be called.
    fn reserved(&self) -> &'static [&'static str];
    /// A constant float, by its bits.
    fn float(&self, bits: u32) -> String;
    /// A constant word.
    fn word(&self, word: u32) -> String;
    /// A constant truth value.
    fn truth(&self, holds: bool) -> String;
    /// A word of the step's block.
    fn step(&self, place: usize) -> String;
    /// The lane within the workgroup.
    fn lane(&self) -> &'static str;
    /// An operator on operands.
    fn operator(&self, op: Operator, args: &[String]) -> String;
    /// The opposite of an operator that gives a truth value, if the language has it.
    fn negated(&self, op: Operator, args: &[String]) -> Option<String> {
        match op {
            Operator::Below => Some(format!("({} >= {})", args[0], args[1])),
            Operator::EqualInt => Some(format!("({} != {})", args[0], args[1])),
            _ => None,
        }
    }
    /// The smaller of two words.
    fn least(&self, x: &str, y: &str) -> String;
    /// A named value.
    fn bind(&self, ty: Type, name: &str, value: &str) -> String;
    /// A mutable local.
    fn var(&self, ty: Type, name: &str, value: &str) -> String;
    /// An element of memory.
    fn element(&self, memory: &str, index: &str) -> String;
    /// What a lane offers, exchanged.
    fn shuffle(&self, value: &str, distance: u32, width: u32) -> String;
    /// The head of a loop.
    fn loop_head(&self, index: &str, start: &str, end: &str, step: u32) -> String;
    /// What stands behind `if`; the condition is complete in itself.
    fn condition(&self, text: &str) -> String {
        text.to_string()
    }
    /// All lanes meet.
    fn barrier(&self) -> &'static str;
    /// What orders buffers as well, in front of a barrier.
    fn buffer_fence(&self) -> &'static str;
    /// Leaves the kernel.
    fn leave(&self) -> &'static str;
}

/// The pieces of a kernel's text.
pub struct Pieces {
    /// Name of each memory.
    pub memories: Vec<String>,
    /// The body's lines, indented by one level.
    pub body: String,
}

/// Writes the body of a verified kernel. `number` is the text of the workgroup's number in the folded grid; `None` if the
/// block lacks a dimension.
pub fn write(kernel: &Kernel, dialect: &dyn Dialect, block: &StepBlock, number: &str) -> Option<Pieces> {
    let mut names = Names::new(dialect.reserved());
    let memories: Vec<String> = kernel.memories.iter().map(|row| names.unique(&row.name)).collect();
    let mut writer = Writer {
        kernel,
        dialect,
        block,
        names,
        memories,
        locals: vec![String::new(); kernel.locals.len()],
        extents: vec![String::new(); kernel.extents.len()],
        groups: Vec::new(),
        uses: vec![0; kernel.exprs.len()],
        named: vec![None; kernel.exprs.len()],
        touched: Vec::new(),
        text: String::new(),
        depth: 1,
    };
    writer.extents()?;
    writer.parts(number);
    Some(Pieces { memories: writer.memories, body: writer.text })
}

struct Writer<'a> {
    kernel: &'a Kernel,
    dialect: &'a dyn Dialect,
    block: &'a StepBlock,
    names: Names,
    memories: Vec<String>,
    locals: Vec<String>,
    extents: Vec<String>,
    /// Coordinates in the part that is being written.
    groups: Vec<String>,
    /// Uses of each expression within the statement that is being written.
    uses: Vec<u32>,
    /// Names of expressions within that statement.
    named: Vec<Option<String>>,
    /// The expressions of the statement, whose uses and names are forgotten behind it.
    touched: Vec<Expr>,
    text: String,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Names the extents that the step chooses.
    fn extents(&mut self) -> Option<()> {
        for (i, row) in self.kernel.extents.iter().enumerate() {
            self.extents[i] = match row.is_constant() {
                Some(n) => self.dialect.word(n),
                None => {
                    let value = self.extent(row)?;
                    let name = self.names.unique(&format!("extent{i}"));
                    self.line(&self.dialect.bind(Type::Word, &name, bare(&value)));
                    name
                }
            };
        }
        Some(())
    }

    fn extent(&self, row: &ExtentRow) -> Option<String> {
        let d = self.dialect;
        let scalar = d.step(self.block.place(row.scalar?)?);
        let mut value = d.least(&scalar, &d.word(row.most));
        if row.times != 1 {
            value = d.operator(Operator::MulInt, &[value, d.word(row.times)]);
        }
        if row.per != 1 {
            let up = d.operator(Operator::AddInt, &[value, d.word(row.per - 1)]);
            value = d.operator(Operator::DivInt, &[up, d.word(row.per)]);
        }
        Some(value)
    }

    fn parts(&mut self, number: &str) {
        let kernel = self.kernel;
        match &kernel.parts[..] {
            [part] => {
                let total = self.product(&part.grid);
                let beyond = negation(self.dialect, Operator::Below, &[number.to_string(), total]);
                self.line(&format!("if {} {{ {} }}", self.dialect.condition(&beyond), self.dialect.leave()));
                self.part(part, number);
            }
            parts => self.side_by_side(parts, number),
        }
    }

    /// Parts beside each other: the workgroups that come before are taken off the number one part after the other; those
    /// behind the last have nothing to do.
    fn side_by_side(&mut self, parts: &[Part], number: &str) {
        let d = self.dialect;
        let counts: Vec<String> = parts.iter().enumerate().map(|(i, part)| self.part_count(part, i)).collect();
        let mut number = number.to_string();
        for (i, (part, count)) in parts.iter().zip(counts).enumerate() {
            let here = d.operator(Operator::Below, &[number.clone(), count.clone()]);
            self.line(&format!("if {} {{", d.condition(&here)));
            self.depth += 1;
            self.part(part, &number);
            self.depth -= 1;
            if i + 1 < parts.len() {
                self.line("} else {");
                self.depth += 1;
                let next = self.names.unique(&format!("number{}", i + 1));
                let rest = d.operator(Operator::SubInt, &[number, count]);
                self.line(&d.bind(Type::Word, &next, bare(&rest)));
                number = next;
            }
        }
        for _ in 1..parts.len() {
            self.line("}");
            self.depth -= 1;
        }
        self.line("}");
    }

    /// The number of a part's workgroups, named if it takes a product.
    fn part_count(&mut self, part: &Part, number: usize) -> String {
        if let Some(count) = constant_count(self.kernel, part) {
            return self.dialect.word(count);
        }
        let count = self.product(&part.grid);
        if part.grid.len() == 1 {
            return count;
        }
        let name = self.names.unique(&format!("count{number}"));
        self.line(&self.dialect.bind(Type::Word, &name, bare(&count)));
        name
    }

    fn product(&self, grid: &[Extent]) -> String {
        let axes = grid.iter().map(|e| self.extents[e.0 as usize].clone());
        let product = axes.reduce(|x, y| self.dialect.operator(Operator::MulInt, &[x, y]));
        product.unwrap_or_else(|| self.dialect.word(1))
    }

    /// The coordinates of a workgroup, its number in the part split by the part's axes, and what it does.
    fn part(&mut self, part: &Part, number: &str) {
        let d = self.dialect;
        self.groups = vec![String::new(); part.grid.len()];
        let mut rest = number.to_string();
        for axis in (0..part.grid.len()).rev() {
            if axis == 0 {
                self.groups[0] = rest;
                break;
            }
            let by = self.extents[part.grid[axis].0 as usize].clone();
            let name = self.names.unique(&format!("group{axis}"));
            let at = d.operator(Operator::RemInt, &[rest.clone(), by.clone()]);
            self.line(&d.bind(Type::Word, &name, bare(&at)));
            self.groups[axis] = name;
            let outer = self.names.unique(&format!("group{}", axis - 1));
            let outside = d.operator(Operator::DivInt, &[rest, by]);
            self.line(&d.bind(Type::Word, &outer, bare(&outside)));
            rest = outer;
        }
        self.block_lines(part.body);
    }

    fn block_lines(&mut self, block: Block) {
        for at in self.kernel.statements(block) {
            self.statement(self.kernel.stmts[at]);
        }
    }

    fn nested(&mut self, block: Block) {
        self.depth += 1;
        self.block_lines(block);
        self.depth -= 1;
    }

    /// Whether a block has no statements.
    fn is_empty(&self, block: Block) -> bool {
        self.kernel.statements(block).is_empty()
    }

    fn local(&mut self, local: Local) -> String {
        let name = self.names.unique(&self.kernel.locals[local.0 as usize].name);
        self.locals[local.0 as usize] = name.clone();
        name
    }

    fn ty(&self, local: Local) -> Type {
        self.kernel.locals[local.0 as usize].ty
    }

    fn place(&mut self, memory: Memory, index: Expr) -> String {
        let index = self.expression(index);
        self.dialect.element(&self.memories[memory.0 as usize], bare(&index))
    }

    fn statement(&mut self, stmt: Stmt) {
        self.count(&stmt);
        match stmt {
            Stmt::Let { local, value } => {
                let (ty, value) = (self.ty(local), self.expression(value));
                let name = self.local(local);
                self.line(&self.dialect.bind(ty, &name, bare(&value)));
            }
            Stmt::Var { local, value } => {
                let (ty, value) = (self.ty(local), self.expression(value));
                let name = self.local(local);
                self.line(&self.dialect.var(ty, &name, bare(&value)));
            }
            Stmt::Set { local, value } => {
                let value = self.expression(value);
                self.line(&format!("{} = {};", self.locals[local.0 as usize], bare(&value)));
            }
            Stmt::Load { local, memory, index } => {
                let place = self.place(memory, index);
                let (ty, name) = (self.ty(local), self.local(local));
                self.line(&self.dialect.bind(ty, &name, &place));
            }
            Stmt::Store { memory, index, value } => {
                let place = self.place(memory, index);
                let value = self.expression(value);
                self.line(&format!("{place} = {};", bare(&value)));
            }
            Stmt::Shuffle { local, value, distance, width } => {
                let value = self.expression(value);
                let (ty, name) = (self.ty(local), self.local(local));
                let exchanged = self.dialect.shuffle(&value, distance, width);
                self.line(&self.dialect.bind(ty, &name, &exchanged));
            }
            Stmt::Barrier { buffers } => {
                if buffers {
                    self.line(self.dialect.buffer_fence());
                }
                self.line(self.dialect.barrier());
            }
            Stmt::If { condition, then, otherwise } => {
                let condition = self.expression(condition);
                self.branch(&condition, None, then, otherwise);
            }
            Stmt::Present { id, index, then, otherwise } => {
                let id = self.expression(id);
                let masked = [id.clone(), self.dialect.word(u32::MAX)];
                let present = negation(self.dialect, Operator::EqualInt, &masked);
                self.branch(&present, Some((index, id)), then, otherwise);
            }
            Stmt::For { index, start, end, step, body } => {
                let start = self.expression(start);
                let name = self.local(index);
                let end = self.extents[end.0 as usize].clone();
                let head = self.dialect.loop_head(&name, &start, &end, step);
                self.line(&format!("{head} {{"));
                self.nested(body);
                self.line("}");
            }
        }
    }

    /// A branch; inside it the index of a present id is the id.
    fn branch(&mut self, condition: &str, index: Option<(Local, String)>, then: Block, otherwise: Block) {
        self.line(&format!("if {} {{", self.dialect.condition(condition)));
        if let Some((local, id)) = index {
            self.locals[local.0 as usize] = id;
        }
        self.nested(then);
        if !self.is_empty(otherwise) {
            self.line("} else {");
            self.nested(otherwise);
        }
        self.line("}");
    }

    /// Counts the uses of expressions within a statement, and forgets the names of the one before.
    fn count(&mut self, stmt: &Stmt) {
        for x in self.touched.drain(..) {
            self.uses[x.0 as usize] = 0;
            self.named[x.0 as usize] = None;
        }
        let mut stack: Vec<Expr> = stmt.exprs().collect();
        while let Some(x) = stack.pop() {
            self.uses[x.0 as usize] += 1;
            if self.uses[x.0 as usize] == 1 {
                self.touched.push(x);
                stack.extend(self.kernel.expr(x).operands());
            }
        }
    }

    /// The text of an expression; what is used twice or too long is named in a line before.
    fn expression(&mut self, x: Expr) -> String {
        if let Some(name) = &self.named[x.0 as usize] {
            return name.clone();
        }
        let kernel = self.kernel;
        let row = kernel.expr(x);
        let d = self.dialect;
        match row.op {
            Operator::Float => return d.float(row.words[0]),
            Operator::Int => return d.word(row.words[0]),
            Operator::Truth => return d.truth(row.words[0] != 0),
            Operator::Masked => return d.word(u32::MAX),
            Operator::Local => return self.locals[row.words[0] as usize].clone(),
            Operator::Extent => return self.extents[row.words[0] as usize].clone(),
            Operator::Group => return self.groups[row.words[0] as usize].clone(),
            Operator::Lane => return d.lane().to_string(),
            _ => {}
        }
        let text = match folded(kernel, x) {
            Some(bits) => d.float(bits),
            None => self.operation(x),
        };
        if self.uses[x.0 as usize] > 1 {
            return self.temporary(x, &text);
        }
        text
    }

    fn operation(&mut self, x: Expr) -> String {
        let kernel = self.kernel;
        let row = kernel.expr(x);
        let inner = row.operands().next().filter(|y| row.op == Operator::Not && self.uses[y.0 as usize] == 1);
        if let Some(y) = inner.filter(|&y| self.dialect.negated(kernel.expr(y).op, &EMPTY).is_some()) {
            let args: Vec<String> = kernel.expr(y).operands().map(|z| self.operand(z)).collect();
            return negation(self.dialect, kernel.expr(y).op, &args);
        }
        let args: Vec<String> = row.operands().map(|y| self.operand(y)).collect();
        self.dialect.operator(row.op, &args)
    }

    fn operand(&mut self, x: Expr) -> String {
        let text = self.expression(x);
        if text.len() > LONGEST { self.temporary(x, &text) } else { text }
    }

    fn temporary(&mut self, x: Expr, text: &str) -> String {
        let name = self.names.temporary();
        let ty = self.kernel.expr(x).op.signature().map_or(Type::Word, |(_, result)| result);
        self.line(&self.dialect.bind(ty, &name, bare(text)));
        self.named[x.0 as usize] = Some(name.clone());
        name
    }
}

/// The number of a part's workgroups, if no step changes it.
pub(super) fn constant_count(kernel: &Kernel, part: &Part) -> Option<u32> {
    let mut axes = part.grid.iter().map(|e| kernel.extents[e.0 as usize].is_constant());
    axes.try_fold(1u32, |count, axis| Some(count.wrapping_mul(axis?)))
}

/// Operands of no text, for asking whether a language has an operator.
const EMPTY: [String; 2] = [String::new(), String::new()];

/// The negation of an operation that gives a truth value.
fn negation(dialect: &dyn Dialect, op: Operator, args: &[String]) -> String {
    match dialect.negated(op, args) {
        Some(text) => text,
        None => dialect.operator(Operator::Not, &[dialect.operator(op, args)]),
    }
}

/// The bits of a rounded operation on constants, folded here by the CPU's exact rules: a target's compiler may fold by others.
pub(super) fn folded(kernel: &Kernel, x: Expr) -> Option<u32> {
    let row = kernel.expr(x);
    let constant = |y: Expr| match kernel.expr(y).op {
        Operator::Float => Some(f32::from_bits(kernel.expr(y).words[0])),
        _ => folded(kernel, y).map(f32::from_bits),
    };
    let value = match row.op {
        Operator::Add | Operator::Sub | Operator::Mul | Operator::Div => {
            let (x, y) = (constant(Expr(row.words[0]))?, constant(Expr(row.words[1]))?);
            match row.op {
                Operator::Add => x + y,
                Operator::Sub => x - y,
                Operator::Mul => x * y,
                _ => x / y,
            }
        }
        Operator::Sqrt => constant(Expr(row.words[0]))?.sqrt(),
        Operator::Neg => return Some(constant(Expr(row.words[0]))?.to_bits() ^ 0x8000_0000),
        _ => return None,
    };
    Some(ds4_ir::numerics::canonical(value).to_bits())
}

/// An expression without the parentheses around all of it.
pub(super) fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else {
        return text;
    };
    let mut depth = 0i32;
    let closes_early = inner.chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    if closes_early { text } else { inner }
}
