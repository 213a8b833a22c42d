//! The statements.

use crate::kernel::{Operator, Type};
use crate::read::Fault;
use crate::read::raw::{Raw, RawExpr, RawLocal, RawOp, RawStmt, What};

use super::frame::Frame;
use super::instruction::{operator, refusal};
use super::line::{Instruction, Line, Lines, float, word};
use super::registers::{Class, Held, Kind};

/// Deepest nesting of blocks.
const MOST_DEPTH: usize = 200;
/// Most lanes of a shuffle.
const WIDTHS: [u32; 4] = [1, 2, 4, 8];

/// Reads the statements up to the end of the text.
pub(super) fn read<'t>(lines: &mut Lines<'t>, frame: Frame<'t>) -> Result<Raw, Fault> {
    let mut body = Body { lines, frame, labels: 0, loops: Vec::new(), depth: 0 };
    let statements = body.block()?;
    body.lines.expect("ret;")?;
    body.lines.expect("}")?;
    body.lines.end()?;
    let mut raw = body.frame.raw;
    raw.body = statements;
    Ok(raw)
}

/// The statements being read.
pub(super) struct Body<'l, 't> {
    lines: &'l mut Lines<'t>,
    pub(super) frame: Frame<'t>,
    /// Statements with labels so far.
    labels: u32,
    /// Registers that count the loops around, the innermost last.
    loops: Vec<&'t str>,
    depth: usize,
}

impl<'t> Body<'_, 't> {
    /// The statements up to a line that ends their block.
    fn block(&mut self) -> Result<Vec<RawStmt>, Fault> {
        let line = self.lines.peek()?;
        if self.depth > MOST_DEPTH {
            return Err(line.fault("blocks are nested too deep"));
        }
        self.depth += 1;
        let mut statements = Vec::new();
        while !self.ends_block(self.lines.peek()?) {
            let line = self.lines.next()?;
            if let Some(what) = self.line(line, &mut statements)? {
                self.frame.registers.statement();
                statements.push(RawStmt { line: line.number, what });
            }
        }
        self.depth -= 1;
        self.frame.registers.statement();
        Ok(statements)
    }

    /// A label, a jump without a guard, the end, or the last step of the innermost loop.
    fn ends_block(&self, line: Line<'t>) -> bool {
        let steps = || {
            let rest = line.text.strip_prefix("add.u32 ")?.strip_prefix(*self.loops.last()?)?;
            Some(rest.starts_with(", "))
        };
        let head = line.text.starts_with("$for") && line.text.ends_with("_head:");
        (line.text.starts_with('$') && !head)
            || line.text.starts_with("bra ")
            || line.text == "ret;"
            || steps() == Some(true)
    }

    /// Reads a line; gives the statement that ends with it, if one does.
    fn line(&mut self, line: Line<'t>, before: &mut Vec<RawStmt>) -> Result<Option<What>, Fault> {
        if line.text.starts_with(".reg ") {
            return self.variable(line).map(Some);
        }
        if line.text.starts_with('$') {
            return self.repeat(line, before).map(Some);
        }
        let instruction = line.instruction()?;
        if let Some(guard) = instruction.guard {
            return self.guarded(&instruction, guard).map(Some);
        }
        match instruction.name {
            "bar.sync" => match instruction.operands()? {
                ["0"] => Ok(Some(What::Barrier { buffers: false })),
                _ => Err(line.fault("there is one barrier, 0")),
            },
            "fence.acq_rel.cta" => {
                instruction.operands::<0>()?;
                self.lines.expect("bar.sync 0;")?;
                Ok(Some(What::Barrier { buffers: true }))
            }
            "shfl.sync.bfly.b32" => self.shuffle(&instruction).map(Some),
            "mul.wide.u32" | "add.u64" => self.address(&instruction).map(|()| None),
            name if name.starts_with("ld.") => self.load(&instruction),
            name if name.starts_with("st.") => self.store(&instruction).map(Some),
            _ => {
                let (to, value) = self.computed(&instruction)?;
                self.assign(line, to, value)
            }
        }
    }

    /// A register declared by itself: the next line sets it.
    fn variable(&mut self, declaration: Line<'t>) -> Result<What, Fault> {
        let name = self.frame.registers.variable(declaration)?;
        let line = self.lines.next()?;
        let (to, value) = self.computed(&line.instruction()?)?;
        if to != name {
            return Err(line.fault(format!("`{name}` is declared and not set")));
        }
        let local = self.frame.raw.local(self.frame.raw.ty(value), &name[1..], true);
        let held = Held::Value(self.frame.raw.local_value(local));
        self.frame.registers.begin(name, local, held);
        Ok(What::Var { local, value })
    }

    /// Sets a register to a value of its type.
    pub(super) fn assign(&mut self, line: Line<'t>, to: &'t str, value: RawExpr) -> Result<Option<What>, Fault> {
        let register = self.frame.registers.get(line, to)?;
        let class = Class::Value(self.frame.raw.ty(value));
        match register.kind {
            Kind::Numbered => {
                self.frame.registers.set(line, to, class, Held::Value(value))?;
                Ok(None)
            }
            Kind::Named => {
                let local = self.named(line, to, class)?;
                Ok(Some(What::Let { local, value }))
            }
            Kind::Variable(Some(local)) if !self.loops.contains(&to) => Ok(Some(What::Set { local, value })),
            Kind::Variable(_) => Err(line.fault(format!("`{to}` is not set here"))),
        }
    }

    /// A local for a named register, which is set now.
    pub(super) fn named(&mut self, line: Line<'t>, to: &'t str, class: Class) -> Result<RawLocal, Fault> {
        let register = self.frame.registers.get(line, to)?;
        let (Kind::Named, Class::Value(ty)) = (register.kind, class) else {
            return Err(line.fault(format!("`{to}` is not declared in the list of registers that are set once")));
        };
        let local = self.frame.raw.local(ty, to.trim_start_matches('%'), false);
        let value = self.frame.raw.local_value(local);
        self.frame.registers.set(line, to, class, Held::Value(value))?;
        Ok(local)
    }

    /// What an instruction computes, and for which register; its type is the register's.
    fn computed(&mut self, instruction: &Instruction<'t>) -> Result<(&'t str, RawExpr), Fault> {
        let line = instruction.line;
        let Some((&to, args)) = instruction.operands.split_first() else {
            return Err(line.fault(refusal(instruction.name)));
        };
        if instruction.guard.is_some() {
            return Err(line.fault("only jumps are guarded"));
        }
        let class = self.frame.registers.get(line, to)?.class;
        let value = self.value(instruction, class, args)?;
        match class == Class::Value(self.frame.raw.ty(value)) {
            true => Ok((to, value)),
            false => Err(line.fault(format!("`{to}` has another type than `{}` gives", instruction.name))),
        }
    }

    fn value(&mut self, instruction: &Instruction<'t>, to: Class, args: &[&'t str]) -> Result<RawExpr, Fault> {
        let line = instruction.line;
        let float = to == Class::Value(Type::F32);
        match (instruction.name, args) {
            ("mov.f32", [x]) => self.operand(line, Type::F32, x),
            ("mov.pred", ["0"]) => Ok(self.frame.raw.leaf(Operator::Truth, 0)),
            ("mov.pred", ["1"]) => Ok(self.frame.raw.leaf(Operator::Truth, 1)),
            ("mov.pred", [x]) => self.operand(line, Type::Bool, x),
            ("mov.b32", [x]) if float => self.operation(line, Operator::FromBits, &[x]),
            ("mov.b32", [x]) if self.is_float(x) => self.operation(line, Operator::Bits, &[x]),
            ("mov.b32", [x]) => self.operand(line, Type::Word, x),
            ("xor.b32", [x, "0x80000000"]) if float => self.operation(line, Operator::Neg, &[x]),
            ("and.b32", [x, "0x7fffffff"]) if float => self.operation(line, Operator::Abs, &[x]),
            ("selp.f32", [yes, no, c]) => self.operation(line, Operator::Select, &[c, yes, no]),
            ("selp.b32", [yes, no, c]) => self.operation(line, Operator::SelectInt, &[c, yes, no]),
            ("dp4a.s32.s32", [x, y, "0"]) => self.operation(line, Operator::DotBytes, &[x, y]),
            ("min.u32", [x, y]) => {
                let [x, y] = [self.operand(line, Type::Word, x)?, self.operand(line, Type::Word, y)?];
                Ok(self.frame.raw.node(RawOp::Least, [x.0, y.0, 0]))
            }
            (name, args) => match operator(name) {
                Some(op) => self.operation(line, op, args),
                None => Err(line.fault(refusal(name))),
            },
        }
    }

    fn is_float(&self, name: &str) -> bool {
        let register = self.frame.registers.find(name);
        register.is_some_and(|register| register.class == Class::Value(Type::F32))
    }

    fn operation(&mut self, line: Line<'t>, op: Operator, args: &[&'t str]) -> Result<RawExpr, Fault> {
        let types = op.signature().map_or(&[][..], |(types, _)| types);
        if types.len() != args.len() {
            return Err(line.fault(format!("`{}` takes {} operands", op.name(), types.len())));
        }
        let args = args.iter().zip(types).map(|(x, &ty)| self.operand(line, ty, x));
        let args: Vec<RawExpr> = args.collect::<Result<_, _>>()?;
        Ok(self.frame.raw.operation(op, &args))
    }

    /// A register of this type, or a constant.
    pub(super) fn operand(&mut self, line: Line<'t>, ty: Type, text: &str) -> Result<RawExpr, Fault> {
        if text.starts_with('%') {
            let register = self.frame.registers.get(line, text)?;
            return match register.held {
                Held::Value(value) if register.class == Class::Value(ty) => Ok(value),
                Held::Nothing => Err(line.fault(format!("`{text}` is not set"))),
                Held::Old => Err(line.fault(format!("`{text}` belongs to an earlier statement"))),
                _ => Err(line.fault(format!("`{text}` has another type, wanted {}", ty.name()))),
            };
        }
        let constant = match ty {
            Type::F32 => float(text).map(|bits| (Operator::Float, bits)),
            Type::Word => word(text).map(|word| (Operator::Int, word)),
            _ => None,
        };
        let (op, bits) = constant.ok_or_else(|| line.fault(format!("`{text}` is no operand of type {}", ty.name())))?;
        Ok(self.frame.raw.leaf(op, bits))
    }

    /// Lanes exchange within segments; all that the workgroup has of a warp take part.
    fn shuffle(&mut self, instruction: &Instruction<'t>) -> Result<What, Fault> {
        let line = instruction.line;
        let [to, value, distance, segments, members] = instruction.operands()?;
        let Class::Value(ty @ (Type::F32 | Type::Word)) = self.frame.registers.get(line, to)?.class else {
            return Err(line.fault("only floats and words are exchanged"));
        };
        let all = if self.frame.raw.lanes < 32 { (1 << self.frame.raw.lanes) - 1 } else { u32::MAX };
        if word(members) != Some(all) {
            return Err(line.fault(format!("wanted all lanes, {all:#x}, found {members}")));
        }
        let width = WIDTHS.into_iter().find(|width| word(segments) == Some((32 - width) << 8 | 31));
        let width = width.ok_or_else(|| line.fault(format!("`{segments}` does not keep segments of up to 8 lanes")))?;
        let distance = word(distance).ok_or_else(|| line.fault("the distance is no number"))?;
        let value = self.operand(line, ty, value)?;
        let local = self.named(line, to, Class::Value(ty))?;
        Ok(What::Shuffle { local, value, distance, width })
    }

    /// A jump over a block, or the way out.
    fn guarded(&mut self, instruction: &Instruction<'t>, guard: &'t str) -> Result<What, Fault> {
        let line = instruction.line;
        // The block is jumped over where the guard holds.
        let condition = match guard.strip_prefix('!') {
            Some(name) => self.operand(line, Type::Bool, name)?,
            None => self.operation(line, Operator::Not, &[guard])?,
        };
        match (instruction.name, instruction.operands.as_slice()) {
            ("ret", []) => {
                let leaves = self.frame.raw.operation(Operator::Not, &[condition]);
                let leave = RawStmt { line: line.number, what: What::Leave };
                Ok(What::If { condition: leaves, then: vec![leave], otherwise: Vec::new() })
            }
            ("bra", &[target]) => self.branch(line, condition, target),
            _ => Err(line.fault("only jumps and the way out are guarded")),
        }
    }

    fn labels(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn branch(&mut self, line: Line<'t>, condition: RawExpr, target: &str) -> Result<What, Fault> {
        let number = self.labels();
        let [end, other] = ["end", "else"].map(|name| format!("$if{number}_{name}"));
        if target != end && target != other {
            return Err(line.fault(format!("wanted a jump to `{end}` or `{other}`, found `{target}`")));
        }
        self.frame.registers.statement();
        let then = self.block()?;
        let mut otherwise = Vec::new();
        if target == other {
            self.lines.expect(&format!("bra {end};"))?;
            self.lines.expect(&format!("{other}:"))?;
            otherwise = self.block()?;
        }
        self.lines.expect(&format!("{end}:"))?;
        Ok(What::If { condition, then, otherwise })
    }

    /// A loop, from its head; the statement before begins its index.
    fn repeat(&mut self, line: Line<'t>, before: &mut Vec<RawStmt>) -> Result<What, Fault> {
        let number = self.labels();
        let [head, finish] = ["head", "end"].map(|name| format!("$for{number}_{name}"));
        if line.text != format!("{head}:") {
            return Err(line.fault(format!("wanted `{head}:`, found `{}`", line.text)));
        }
        let Some(RawStmt { what: What::Var { local, value: start }, .. }) = before.pop() else {
            return Err(line.fault("nothing begins the index of this loop"));
        };
        let row = &mut self.frame.raw.locals[local.0 as usize];
        row.mutable = false;
        let name = row.name.clone();
        let (register, end) = self.head(&name, &finish)?;
        self.loops.push(register);
        let body = self.block()?;
        self.loops.pop();
        let last = self.lines.next()?;
        let step = word(last.between(&format!("add.u32 {register}, {register}, "), ";")?);
        let step = step.ok_or_else(|| last.fault("the step of a loop is a constant"))?;
        self.lines.expect(&format!("bra {head};"))?;
        self.lines.expect(&format!("{finish}:"))?;
        Ok(What::For { index: local, start, end, step, body })
    }

    /// The comparison at the head of a loop: gives the index's register and the end.
    fn head(&mut self, index: &str, finish: &str) -> Result<(&'t str, RawExpr), Fault> {
        let line = self.lines.next()?;
        let instruction = line.instruction()?;
        let (again, value) = self.computed(&instruction)?;
        let [_, register, end] = instruction.operands()?;
        let below = instruction.name == "setp.lt.u32" && register.strip_prefix('%') == Some(index);
        let end = self.operand(line, Type::Word, end)?;
        self.assign(line, again, value)?;
        if !below {
            return Err(line.fault(format!("the loop goes on while `%{index}` is below its end")));
        }
        self.lines.expect(&format!("@!{again} bra {finish};"))?;
        self.frame.registers.statement();
        Ok((register, end))
    }
}
