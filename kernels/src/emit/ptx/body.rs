//! The walk over a kernel: statements become instructions and labels.

use std::collections::HashMap;

use crate::emit::StepBlock;
use crate::emit::structured::folded;
use crate::kernel::{Block, Expr, Extent, Kernel, Local, Memory, Operator, Space, Stmt, Type};

use super::instruction::{self, float, values, word};
use super::registers::{Class, Registers};

/// Constant indices below this are offsets of an address, whose bytes must fit 31 bits.
const MOST_OFFSET: u32 = 1 << 29;

/// The pieces of a kernel's text.
pub(super) struct Pieces {
    /// Name of each memory.
    pub(super) memories: Vec<String>,
    /// Registers that are set once.
    pub(super) declarations: String,
    /// The instructions.
    pub(super) body: String,
}

/// Writes the body of a verified kernel; `None` if the block lacks a dimension.
pub(super) fn write(kernel: &Kernel, block: &StepBlock) -> Option<Pieces> {
    let mut registers = Registers::new();
    let memories: Vec<String> = kernel.memories.iter().map(|row| registers.unique(&row.name)).collect();
    let mut writer = Writer {
        kernel,
        block,
        registers,
        memories,
        locals: vec![String::new(); kernel.locals.len()],
        extents: vec![String::new(); kernel.extents.len()],
        groups: Vec::new(),
        known: HashMap::new(),
        labels: 0,
        text: String::new(),
        depth: 1,
    };
    writer.parameters();
    writer.place_in_grid();
    writer.extents()?;
    writer.parts();
    writer.line("ret;");
    let declarations = writer.registers.declarations();
    Some(Pieces { memories: writer.memories, declarations, body: writer.text })
}

/// The text so far, and what names stand for.
pub(super) struct Writer<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) block: &'a StepBlock,
    pub(super) registers: Registers,
    pub(super) memories: Vec<String>,
    locals: Vec<String>,
    pub(super) extents: Vec<String>,
    /// Coordinates in the part that is being written.
    pub(super) groups: Vec<String>,
    /// Registers of expressions within the statement that is being written.
    known: HashMap<Expr, String>,
    /// Statements with labels so far.
    labels: usize,
    text: String,
    pub(super) depth: usize,
}

impl Writer<'_> {
    pub(super) fn line(&mut self, line: &str) {
        self.remarked(line, None);
    }

    /// A line with a remark, beside that on its constants.
    fn remarked(&mut self, line: &str, remark: Option<&str>) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        let values = values(line);
        let remarks: Vec<&str> = remark.into_iter().chain(values.as_deref()).collect();
        if !remarks.is_empty() {
            self.text.push_str(" // ");
            self.text.push_str(&remarks.join(", "));
        }
        self.text.push('\n');
    }

    /// Lines of the text inside a branch or loop.
    pub(super) fn inside(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    pub(super) fn operator(&mut self, op: Operator, to: &str, args: &[String]) {
        self.line(&instruction::operator(op, to, args));
    }

    pub(super) fn statements(&mut self, block: Block) {
        for at in self.kernel.statements(block) {
            self.known.clear();
            self.statement(self.kernel.stmts[at]);
        }
    }

    fn is_empty(&self, block: Block) -> bool {
        self.kernel.statements(block).is_empty()
    }

    fn ty(&self, local: Local) -> Type {
        self.kernel.locals[local.0 as usize].ty
    }

    /// A register for a local that keeps its value.
    fn local(&mut self, local: Local) -> String {
        let row = &self.kernel.locals[local.0 as usize];
        let register = self.registers.named(Class::of(row.ty), &row.name);
        self.locals[local.0 as usize] = register.clone();
        register
    }

    /// A register for a local that changes, declared here, with its first value.
    fn begin(&mut self, local: Local, value: Expr) -> String {
        // What the value needs stands before the declaration.
        self.operands(value);
        let row = &self.kernel.locals[local.0 as usize];
        let register = format!("%{}", self.registers.unique(&row.name));
        self.line(&format!(".reg .{} {register};", Class::of(row.ty).keyword()));
        self.locals[local.0 as usize] = register.clone();
        self.set(&register, value);
        register
    }

    fn statement(&mut self, stmt: Stmt) {
        match stmt {
            Stmt::Let { local, value } => {
                let to = self.local(local);
                self.set(&to, value);
            }
            Stmt::Var { local, value } => {
                self.begin(local, value);
            }
            Stmt::Set { local, value } => {
                let to = self.locals[local.0 as usize].clone();
                self.set(&to, value);
            }
            Stmt::Load { local, memory, index } => {
                let (place, element) = self.place(memory, index);
                let to = self.local(local);
                let name = self.memory_instruction("ld", memory);
                self.remarked(&format!("{name} {to}, {place};"), Some(&element));
            }
            Stmt::Store { memory, index, value } => {
                let (place, element) = self.place(memory, index);
                let value = self.operand(value);
                let name = self.memory_instruction("st", memory);
                self.remarked(&format!("{name} {place}, {value};"), Some(&element));
            }
            Stmt::Shuffle { local, value, distance, width } => self.shuffle(local, value, distance, width),
            Stmt::Barrier { buffers } => {
                if buffers {
                    self.line("fence.acq_rel.cta;");
                }
                self.line("bar.sync 0;");
            }
            Stmt::If { condition, then, otherwise } => {
                let row = *self.kernel.expr(condition);
                let skip = match row.op {
                    Operator::Not => format!("@{}", self.operand(Expr(row.words[0]))),
                    _ => format!("@!{}", self.operand(condition)),
                };
                self.branch(&skip, then, otherwise);
            }
            Stmt::Present { id, index, then, otherwise } => {
                let id = self.operand(id);
                let masked = self.registers.numbered(Class::Truth);
                self.operator(Operator::EqualInt, &masked, &[id.clone(), word(u32::MAX)]);
                self.locals[index.0 as usize] = id;
                self.branch(&format!("@{masked}"), then, otherwise);
            }
            Stmt::For { index, start, end, step, body } => self.repeat(index, start, end, step, body),
        }
    }

    pub(super) fn labels(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    /// A branch: `skip` is the guard of the jump over `then`.
    fn branch(&mut self, skip: &str, then: Block, otherwise: Block) {
        let number = self.labels();
        let without = self.is_empty(otherwise);
        let target = if without { "end" } else { "else" };
        self.line(&format!("{skip} bra $if{number}_{target};"));
        self.inside(|w| w.statements(then));
        if !without {
            self.inside(|w| w.line(&format!("bra $if{number}_end;")));
            self.line(&format!("$if{number}_else:"));
            self.inside(|w| w.statements(otherwise));
        }
        self.line(&format!("$if{number}_end:"));
    }

    fn repeat(&mut self, index: Local, start: Expr, end: Extent, step: u32, body: Block) {
        let end = self.extents[end.0 as usize].clone();
        let at = self.begin(index, start);
        let number = self.labels();
        self.line(&format!("$for{number}_head: // while {at} is below {end}, by {step}"));
        self.inside(|w| {
            let again = w.registers.numbered(Class::Truth);
            w.operator(Operator::Below, &again, &[at.clone(), end]);
            w.line(&format!("@!{again} bra $for{number}_end;"));
            w.statements(body);
            w.operator(Operator::AddInt, &at, &[at.clone(), word(step)]);
            w.line(&format!("bra $for{number}_head;"));
        });
        self.line(&format!("$for{number}_end:"));
    }

    /// The butterfly stays within segments of `width` lanes.
    fn shuffle(&mut self, local: Local, value: Expr, distance: u32, width: u32) {
        let value = self.register(value);
        let to = self.local(local);
        let segments = word((32 - width) << 8 | 31);
        // Where the last warp of several is not full, the lanes that it lacks count as gone.
        let members = if self.kernel.lanes < 32 { (1 << self.kernel.lanes) - 1 } else { u32::MAX };
        self.line(&format!("shfl.sync.bfly.b32 {to}, {value}, {distance}, {segments}, {};", word(members)));
    }

    fn memory_instruction(&self, name: &str, memory: Memory) -> String {
        let row = &self.kernel.memories[memory.0 as usize];
        let space = if row.space == Space::Workgroup { "shared" } else { "global" };
        format!("{name}.{space}.{}", Class::of(row.element).keyword())
    }

    /// The address of an element, and the element for a reader.
    fn place(&mut self, memory: Memory, index: Expr) -> (String, String) {
        let name = self.memories[memory.0 as usize].clone();
        let row = self.kernel.expr(index);
        let known = (row.op == Operator::Int && row.words[0] < MOST_OFFSET).then_some(row.words[0]);
        let index = self.operand(index);
        let element = format!("{name}[{index}]");
        let place = match known {
            Some(0) => format!("[%{name}]"),
            Some(index) => format!("[%{name}+{}]", 4 * index),
            None => {
                let [offset, address] = [(); 2].map(|()| self.registers.numbered(Class::Address));
                self.line(&format!("mul.wide.u32 {offset}, {index}, 4;"));
                self.line(&format!("add.u64 {address}, %{name}, {offset};"));
                format!("[{address}]")
            }
        };
        (place, element)
    }

    /// A leaf or folded constant, or where the expression was computed in this statement.
    fn at_hand(&self, x: Expr) -> Option<String> {
        let row = self.kernel.expr(x);
        let at = row.words[0] as usize;
        Some(match row.op {
            Operator::Float => float(row.words[0]),
            Operator::Int => word(row.words[0]),
            Operator::Masked => word(u32::MAX),
            Operator::Local => self.locals[at].clone(),
            Operator::Extent => self.extents[at].clone(),
            Operator::Group => self.groups[at].clone(),
            Operator::Lane => "%lane".into(),
            _ => return self.constant(x).or_else(|| self.known.get(&x).cloned()),
        })
    }

    /// A rounded operation on constants, or a constant seen as the other type.
    fn constant(&self, x: Expr) -> Option<String> {
        let row = self.kernel.expr(x);
        let operand = self.kernel.exprs.get(row.words[0] as usize)?;
        match (row.op, operand.op) {
            (Operator::Bits, Operator::Float) => Some(word(operand.words[0])),
            (Operator::FromBits, Operator::Int) => Some(float(operand.words[0])),
            _ => folded(self.kernel, x).map(float),
        }
    }

    /// Computes the operands of an expression.
    fn operands(&mut self, x: Expr) -> Vec<String> {
        let kernel = self.kernel;
        kernel.expr(x).operands().map(|y| self.operand(y)).collect()
    }

    /// An expression as a register or constant.
    fn operand(&mut self, x: Expr) -> String {
        if let Some(at_hand) = self.at_hand(x) {
            return at_hand;
        }
        let args = self.operands(x);
        let to = self.registers.numbered(Class::of(self.result(x)));
        self.compute(x, &to, &args);
        self.known.insert(x, to.clone());
        to
    }

    fn compute(&mut self, x: Expr, to: &str, args: &[String]) {
        let row = self.kernel.expr(x);
        match row.op {
            Operator::Truth => self.line(&format!("mov.pred {to}, {};", row.words[0])),
            op => self.operator(op, to, args),
        }
    }

    /// An expression as a register.
    fn register(&mut self, x: Expr) -> String {
        let operand = self.operand(x);
        if operand.starts_with('%') {
            return operand;
        }
        let to = self.registers.numbered(Class::of(self.result(x)));
        self.copy(&to, &operand, self.result(x));
        to
    }

    /// Sets a register to the value of an expression.
    fn set(&mut self, to: &str, x: Expr) {
        match self.at_hand(x) {
            Some(value) => self.copy(to, &value, self.result(x)),
            None => {
                let args = self.operands(x);
                self.compute(x, to, &args);
            }
        }
    }

    fn copy(&mut self, to: &str, value: &str, ty: Type) {
        self.line(&format!("mov.{} {to}, {value};", Class::of(ty).keyword()));
    }

    /// The type of an expression.
    fn result(&self, x: Expr) -> Type {
        let row = self.kernel.expr(x);
        match row.op {
            Operator::Float => Type::F32,
            Operator::Truth => Type::Bool,
            Operator::Local => self.ty(Local(row.words[0])),
            op => op.signature().map_or(Type::Word, |(_, result)| result),
        }
    }
}
