//! The walk over a kernel: statements become instructions and labels.

use std::collections::HashMap;

use crate::emit::StepBlock;
use crate::emit::structured::folded;
use crate::kernel::{Block, Expr, Extent, ExtentRow, Kernel, Local, Memory, Operator, Space, Stmt, Type};

use super::instruction::{self, float, remark, word};
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
        groups: vec![String::new(); kernel.grid.len()],
        known: HashMap::new(),
        labels: 0,
        text: String::new(),
        depth: 1,
    };
    writer.parameters();
    writer.place_in_grid();
    writer.extents()?;
    writer.groups();
    writer.block(kernel.body);
    writer.line("ret;");
    let declarations = writer.registers.declarations();
    Some(Pieces { memories: writer.memories, declarations, body: writer.text })
}

struct Writer<'a> {
    kernel: &'a Kernel,
    block: &'a StepBlock,
    registers: Registers,
    memories: Vec<String>,
    locals: Vec<String>,
    extents: Vec<String>,
    groups: Vec<String>,
    /// Registers of expressions within the statement that is being written.
    known: HashMap<Expr, String>,
    /// Statements with labels so far.
    labels: usize,
    text: String,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        if let Some(remark) = remark(line) {
            self.text.push_str(" // ");
            self.text.push_str(&remark);
        }
        self.text.push('\n');
    }

    /// Lines of the text inside a branch or loop.
    fn inside(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    fn operator(&mut self, op: Operator, to: &str, args: &[String]) {
        self.line(&instruction::operator(op, to, args));
    }

    /// An operator on words, in a numbered register.
    fn words(&mut self, op: Operator, x: String, y: String) -> String {
        let to = self.registers.numbered(Class::Word);
        self.operator(op, &to, &[x, y]);
        to
    }

    /// Addresses of the step's block, the arguments and the workgroup's arrays, each in the register of its name.
    fn parameters(&mut self) {
        let kernel = self.kernel;
        self.registers.declare(Class::Address, "%step");
        self.line("ld.param.u64 %step, [step];");
        for (i, row) in kernel.memories.iter().enumerate() {
            let name = self.memories[i].clone();
            self.registers.declare(Class::Address, &format!("%{name}"));
            match row.space {
                Space::Workgroup => self.line(&format!("mov.u64 %{name}, {name};")),
                _ => self.line(&format!("ld.param.u64 %{name}, [{name}];")),
            }
        }
    }

    /// The lane, and the number of the workgroup in the folded grid.
    fn place_in_grid(&mut self) {
        self.registers.declare(Class::Word, "%lane");
        self.registers.declare(Class::Word, "%number");
        self.line("mov.u32 %lane, %tid.x;");
        let [x, y, width] = ["%ctaid.x", "%ctaid.y", "%nctaid.x"].map(|special| {
            let to = self.registers.numbered(Class::Word);
            self.line(&format!("mov.u32 {to}, {special};"));
            to
        });
        let rows = self.words(Operator::MulInt, y, width);
        self.operator(Operator::AddInt, "%number", &[x, rows]);
    }

    /// Names the extents that the step chooses.
    fn extents(&mut self) -> Option<()> {
        for (i, row) in self.kernel.extents.iter().enumerate() {
            self.extents[i] = match row.is_constant() {
                Some(n) => word(n),
                None => self.extent(row, &format!("extent{i}"))?,
            };
        }
        Some(())
    }

    fn extent(&mut self, row: &ExtentRow, name: &str) -> Option<String> {
        let offset = 4 * self.block.place(row.scalar?)?;
        let scalar = self.registers.numbered(Class::Word);
        self.line(&format!("ld.global.b32 {scalar}, [%step+{offset}];"));
        let mut steps = vec![("min.u32", row.most)];
        if row.times != 1 {
            steps.push(("mul.lo.u32", row.times));
        }
        if row.per != 1 {
            steps.push(("add.u32", row.per - 1));
            steps.push(("div.u32", row.per));
        }
        let mut value = scalar;
        for (i, (name_of_step, by)) in steps.iter().enumerate() {
            let to = match i + 1 == steps.len() {
                true => self.registers.named(Class::Word, name),
                false => self.registers.numbered(Class::Word),
            };
            self.line(&format!("{name_of_step} {to}, {value}, {};", word(*by)));
            value = to;
        }
        Some(value)
    }

    /// The coordinates of the workgroup: its number split by the grid's axes; workgroups behind the last leave.
    fn groups(&mut self) {
        let axes: Vec<String> = self.kernel.grid.iter().map(|e| self.extents[e.0 as usize].clone()).collect();
        let product = |total: Option<String>, axis: &String| match total {
            None => Some(axis.clone()),
            Some(total) => Some(self.words(Operator::MulInt, total, axis.clone())),
        };
        let total = axes.iter().fold(None, product).unwrap_or_else(|| word(1));
        let inside = self.registers.numbered(Class::Truth);
        self.operator(Operator::Below, &inside, &["%number".into(), total]);
        self.line(&format!("@!{inside} ret;"));
        let mut rest = "%number".to_string();
        for axis in (1..axes.len()).rev() {
            let args = [rest, axes[axis].clone()];
            self.groups[axis] = self.registers.named(Class::Word, &format!("group{axis}"));
            self.line(&instruction::operator(Operator::RemInt, &self.groups[axis], &args));
            rest = self.registers.named(Class::Word, &format!("group{}", axis - 1));
            self.operator(Operator::DivInt, &rest, &args);
        }
        if let Some(first) = self.groups.first_mut() {
            *first = rest;
        }
    }

    fn block(&mut self, block: Block) {
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
                let place = self.place(memory, index);
                let to = self.local(local);
                let name = self.memory_instruction("ld", memory);
                self.line(&format!("{name} {to}, {place};"));
            }
            Stmt::Store { memory, index, value } => {
                let place = self.place(memory, index);
                let value = self.operand(value);
                let name = self.memory_instruction("st", memory);
                self.line(&format!("{name} {place}, {value};"));
            }
            Stmt::Shuffle { local, value, distance, width } => self.shuffle(local, value, distance, width),
            Stmt::Barrier => self.line("bar.sync 0;"),
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

    fn labels(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    /// A branch: `skip` is the guard of the jump over `then`.
    fn branch(&mut self, skip: &str, then: Block, otherwise: Block) {
        let number = self.labels();
        let without = self.is_empty(otherwise);
        let target = if without { "end" } else { "else" };
        self.line(&format!("{skip} bra $if{number}_{target};"));
        self.inside(|w| w.block(then));
        if !without {
            self.inside(|w| w.line(&format!("bra $if{number}_end;")));
            self.line(&format!("$if{number}_else:"));
            self.inside(|w| w.block(otherwise));
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
            w.block(body);
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

    /// The address of an element.
    fn place(&mut self, memory: Memory, index: Expr) -> String {
        let base = format!("%{}", self.memories[memory.0 as usize]);
        match *self.kernel.expr(index) {
            row if row.op == Operator::Int && row.words[0] == 0 => return format!("[{base}]"),
            row if row.op == Operator::Int && row.words[0] < MOST_OFFSET => {
                return format!("[{base}+{}]", 4 * row.words[0]);
            }
            _ => {}
        }
        let index = self.operand(index);
        let [offset, address] = [(); 2].map(|()| self.registers.numbered(Class::Address));
        self.line(&format!("mul.wide.u32 {offset}, {index}, 4;"));
        self.line(&format!("add.u64 {address}, {base}, {offset};"));
        format!("[{address}]")
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
