//! From tokens to expressions and statements.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::emit::hip::{CONTRACTION_OFF, RESERVED, float, prelude, word};
use crate::kernel::{Access, Operator, Type};
use crate::read::Fault;
use crate::read::raw::{Raw, RawExpr, RawLocal, RawMemory, RawMemoryRow, RawOp, RawStmt, What};

use super::lexer::{Kind, Token, tokens};
use super::number::{float_of, plain_of, word_of};

/// Deepest nesting of expressions and of blocks, so that a text cannot exhaust the stack.
const MOST_DEPTH: usize = 200;

/// Lanes that exchange in a shuffle.
const WIDTH: u32 = 8;

/// What a text says, before its header is understood.
pub(super) fn raw(text: &str) -> Result<Raw, Fault> {
    let tokens = tokens(text)?;
    let start = tokens.iter().position(|token| token.text == "extern").unwrap_or(tokens.len());
    let mut parser = Parser::new(&tokens[start..]);
    parser.kernel()?;
    let called = std::mem::take(&mut parser.called);
    parser.raw.about = about(text)?;
    let raw = parser.raw;
    compare(&tokens[..start], &prelude(&|name| called.contains(name)))?;
    Ok(raw)
}

fn about(text: &str) -> Result<String, Fault> {
    let line = text.split('\n').next().unwrap_or_default();
    line.strip_prefix("// ").map(str::to_string).ok_or_else(|| Fault::new(1, "the line that says what is computed"))
}

/// Whether a prelude is the one that the kernel needs, token by token.
fn compare(found: &[Token<'_>], wanted: &str) -> Result<(), Fault> {
    let wanted = tokens(wanted)?;
    let differs = found.iter().zip(&wanted).find(|(f, w)| (f.kind, f.text) != (w.kind, w.text));
    let last = found.last().map_or(1, |token| token.line);
    match differs {
        Some((token, wanted)) => {
            Err(Fault::new(token.line, format!("`{}` in front of the kernel, wanted `{}`", token.text, wanted.text)))
        }
        None if found.len() != wanted.len() => {
            Err(Fault::new(last, "not the functions that the kernel calls stand in front of it"))
        }
        None => Ok(()),
    }
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Named {
    Local(RawLocal),
    Memory(RawMemory),
    Lane,
    Number,
}

/// A type in the text; `Signed` is a word whose sign the next operator reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Float,
    Word,
    Bool,
    Signed,
}

impl Ty {
    fn of(ty: Type) -> Ty {
        match ty {
            Type::F32 => Ty::Float,
            Type::Word | Type::Id => Ty::Word,
            Type::Bool => Ty::Bool,
        }
    }
}

/// An expression with its type in the text.
#[derive(Clone, Copy)]
struct Value {
    x: RawExpr,
    ty: Ty,
}

/// Functions of one or two arguments of a type: name, argument type, number of arguments, operator.
const CALLS: [(&str, Ty, usize, RawOp); 11] = [
    ("as_uint", Ty::Float, 1, RawOp::Op(Operator::Bits)),
    ("as_float", Ty::Word, 1, RawOp::Op(Operator::FromBits)),
    ("flipped", Ty::Float, 1, RawOp::Op(Operator::Neg)),
    ("magnitude", Ty::Float, 1, RawOp::Op(Operator::Abs)),
    ("least", Ty::Word, 2, RawOp::Least),
    ("floored", Ty::Float, 1, RawOp::Op(Operator::Floor)),
    ("ceiled", Ty::Float, 1, RawOp::Op(Operator::Ceil)),
    ("truncated", Ty::Float, 1, RawOp::Op(Operator::Trunc)),
    ("rounded_even", Ty::Float, 1, RawOp::Op(Operator::RoundEven)),
    ("root", Ty::Float, 1, RawOp::Op(Operator::Sqrt)),
    ("dot_bytes", Ty::Word, 2, RawOp::Op(Operator::DotBytes)),
];

/// Operators between two operands: sign, type of both, operator, whether its result is negated.
const INFIX: [(&str, Ty, Operator, bool); 24] = [
    ("+", Ty::Float, Operator::Add, false),
    ("-", Ty::Float, Operator::Sub, false),
    ("*", Ty::Float, Operator::Mul, false),
    ("/", Ty::Float, Operator::Div, false),
    ("<", Ty::Float, Operator::Less, false),
    ("==", Ty::Float, Operator::Equal, false),
    ("+", Ty::Word, Operator::AddInt, false),
    ("-", Ty::Word, Operator::SubInt, false),
    ("*", Ty::Word, Operator::MulInt, false),
    ("/", Ty::Word, Operator::DivInt, false),
    ("%", Ty::Word, Operator::RemInt, false),
    ("&", Ty::Word, Operator::And, false),
    ("|", Ty::Word, Operator::Or, false),
    ("^", Ty::Word, Operator::Xor, false),
    ("<<", Ty::Word, Operator::Shl, false),
    (">>", Ty::Word, Operator::Shr, false),
    ("<", Ty::Word, Operator::Below, false),
    (">=", Ty::Word, Operator::Below, true),
    ("==", Ty::Word, Operator::EqualInt, false),
    ("!=", Ty::Word, Operator::EqualInt, true),
    ("<", Ty::Signed, Operator::LessInt, false),
    ("&&", Ty::Bool, Operator::Both, false),
    ("||", Ty::Bool, Operator::Either, false),
    // Listed for its sign; the right operand is a word.
    (">>", Ty::Signed, Operator::Sar, false),
];

struct Parser<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    raw: Raw,
    /// What is in scope.
    names: HashMap<&'t str, Named>,
    /// All names so far: none comes twice.
    declared: HashSet<&'t str>,
    /// Functions that are called.
    called: BTreeSet<&'t str>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(tokens: &'t [Token<'t>]) -> Parser<'t> {
        Parser {
            tokens,
            at: 0,
            raw: Raw::default(),
            names: HashMap::new(),
            declared: HashSet::new(),
            called: BTreeSet::new(),
            depth: 0,
        }
    }

    /// The line of the next token.
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    fn fault<T>(&self, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::new(self.line(), what))
    }

    fn peek(&self, ahead: usize) -> &'t str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    /// Takes the next token if it is this one.
    fn takes(&mut self, text: &str) -> bool {
        let takes = self.peek(0) == text;
        self.at += usize::from(takes);
        takes
    }

    fn expect(&mut self, text: &str) -> Result<(), Fault> {
        if self.takes(text) { Ok(()) } else { self.fault(format!("`{}`, wanted `{text}`", self.peek(0))) }
    }

    fn expect_all(&mut self, tokens: &[&str]) -> Result<(), Fault> {
        tokens.iter().try_for_each(|text| self.expect(text))
    }

    fn next(&mut self, kind: Kind, what: &str) -> Result<&'t str, Fault> {
        match self.tokens.get(self.at) {
            Some(token) if token.kind == kind => {
                self.at += 1;
                Ok(token.text)
            }
            _ => self.fault(format!("`{}`, wanted {what}", self.peek(0))),
        }
    }

    fn plain(&mut self) -> Result<u32, Fault> {
        let text = self.next(Kind::Number, "a number")?;
        plain_of(text).map_or_else(|| self.fault(format!("`{text}` is not how a number is written")), Ok)
    }

    /// Goes one level down in `make`.
    fn deeper<T>(&mut self, make: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= MOST_DEPTH {
            return self.fault("nested too deep");
        }
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        made
    }

    /// A new name, not in scope yet.
    fn name(&mut self) -> Result<&'t str, Fault> {
        let name = self.next(Kind::Word, "a name")?;
        if RESERVED.contains(&name) || name.starts_with('_') {
            return self.fault(format!("`{name}` is no name of a text"));
        }
        if !self.declared.insert(name) {
            return self.fault(format!("`{name}` is declared twice"));
        }
        Ok(name)
    }

    fn type_name(&mut self) -> Result<Type, Fault> {
        match self.next(Kind::Word, "a type")? {
            "float" => Ok(Type::F32),
            "unsigned" => Ok(Type::Word),
            "bool" => Ok(Type::Bool),
            other => self.fault(format!("`{other}` is no type of a text")),
        }
    }

    fn kernel(&mut self) -> Result<(), Fault> {
        self.expect_all(&["extern", "\"C\"", "__global__", "void", "__launch_bounds__", "("])?;
        self.raw.lanes = self.plain()?;
        self.expect(")")?;
        self.raw.name = self.next(Kind::Word, "a name")?.to_string();
        self.expect_all(&["(", "const", "unsigned", "*", "__restrict__", "step"])?;
        while self.takes(",") {
            self.argument()?;
        }
        self.expect_all(&[")", "{"])?;
        for directive in CONTRACTION_OFF.lines() {
            self.expect(directive)?;
        }
        while self.takes("__shared__") {
            self.shared()?;
        }
        self.expect_all(&["const", "unsigned", "lane", "=", "threadIdx", ".", "x", ";"])?;
        self.expect_all(&["const", "unsigned", "number", "=", "blockIdx", ".", "x", "+"])?;
        self.expect_all(&["blockIdx", ".", "y", "*", "gridDim", ".", "x", ";"])?;
        self.names.extend([("lane", Named::Lane), ("number", Named::Number)]);
        self.raw.body = self.block()?;
        if self.at < self.tokens.len() { self.fault("the text goes on behind the kernel") } else { Ok(()) }
    }

    fn argument(&mut self) -> Result<(), Fault> {
        let constant = self.takes("const");
        let element = self.type_name()?;
        self.expect("*")?;
        if constant {
            self.takes("__restrict__");
        }
        let access = if constant { Access::Read } else { Access::ReadWrite };
        self.memory(element, access, false)
    }

    fn shared(&mut self) -> Result<(), Fault> {
        let element = self.type_name()?;
        self.memory(element, Access::ReadWrite, true)?;
        self.expect(";")
    }

    fn memory(&mut self, element: Type, access: Access, array: bool) -> Result<(), Fault> {
        if element == Type::Bool {
            return self.fault("memory of truth values");
        }
        let name = self.name()?;
        let len = match array {
            true => {
                self.expect("[")?;
                let len = self.plain()?;
                self.expect("]")?;
                Some(len)
            }
            false => None,
        };
        self.names.insert(name, Named::Memory(RawMemory(self.raw.memories.len() as u32)));
        self.raw.memories.push(RawMemoryRow { name: name.into(), element, access, len });
        Ok(())
    }

    /// Statements up to the brace that closes them; names end with it.
    fn block(&mut self) -> Result<Vec<RawStmt>, Fault> {
        self.deeper(|parser| {
            let mut scope = Vec::new();
            let mut stmts = Vec::new();
            while !parser.takes("}") {
                let line = parser.line();
                let what = parser.statement(&mut scope)?;
                stmts.push(RawStmt { line, what });
            }
            parser.names.retain(|name, _| !scope.contains(name));
            Ok(stmts)
        })
    }

    fn statement(&mut self, scope: &mut Vec<&'t str>) -> Result<What, Fault> {
        match self.peek(0) {
            "const" => {
                self.at += 1;
                self.constant(scope)
            }
            "float" | "unsigned" | "bool" => self.variable(scope),
            "if" => self.branch(),
            "for" => self.repeat(),
            "return" => {
                self.expect_all(&["return", ";"])?;
                Ok(What::Leave)
            }
            "__syncthreads" | "__threadfence_block" => {
                let buffers = self.peek(0) == "__threadfence_block";
                if buffers {
                    self.expect_all(&["__threadfence_block", "(", ")", ";"])?;
                }
                self.expect_all(&["__syncthreads", "(", ")", ";"])?;
                Ok(What::Barrier { buffers })
            }
            name => match self.names.get(name) {
                Some(&Named::Local(local)) => self.set(local),
                Some(&Named::Memory(memory)) => self.store(memory),
                _ => self.fault(format!("`{name}` begins no statement")),
            },
        }
    }

    /// A named value: of an expression, an element of memory, or another lane.
    fn constant(&mut self, scope: &mut Vec<&'t str>) -> Result<What, Fault> {
        let ty = self.type_name()?;
        let name = self.name()?;
        self.expect("=")?;
        let memory = match self.names.get(self.peek(0)) {
            Some(&Named::Memory(memory)) => Some(memory),
            _ => None,
        };
        if let Some(memory) = memory {
            let index = self.index()?;
            let element = self.raw.memories[memory.0 as usize].element;
            self.same(Ty::of(ty), Ty::of(element))?;
            let local = self.declare(name, ty, false, scope)?;
            return Ok(What::Load { local, memory, index });
        }
        if self.peek(0) == "exchanged" {
            let (value, distance) = self.exchanged()?;
            self.same(Ty::of(ty), value.ty)?;
            let local = self.declare(name, ty, false, scope)?;
            return Ok(What::Shuffle { local, value: value.x, distance, width: WIDTH });
        }
        let value = self.value_of(Ty::of(ty))?;
        let local = self.declare(name, ty, false, scope)?;
        Ok(What::Let { local, value })
    }

    fn variable(&mut self, scope: &mut Vec<&'t str>) -> Result<What, Fault> {
        let ty = self.type_name()?;
        let name = self.name()?;
        self.expect("=")?;
        let value = self.value_of(Ty::of(ty))?;
        let local = self.declare(name, ty, true, scope)?;
        Ok(What::Var { local, value })
    }

    /// Ends a declaration and brings its name into scope.
    fn declare(&mut self, name: &'t str, ty: Type, mutable: bool, scope: &mut Vec<&'t str>) -> Result<RawLocal, Fault> {
        self.expect(";")?;
        let local = self.raw.local(ty, name, mutable);
        self.names.insert(name, Named::Local(local));
        scope.push(name);
        Ok(local)
    }

    /// A memory's name and the index behind it.
    fn index(&mut self) -> Result<RawExpr, Fault> {
        self.at += 1;
        self.expect("[")?;
        let index = self.value_of(Ty::Word)?;
        self.expect("]")?;
        Ok(index)
    }

    fn exchanged(&mut self) -> Result<(Value, u32), Fault> {
        self.call("exchanged");
        self.expect("<")?;
        let distance = self.plain()?;
        self.expect_all(&[">", "("])?;
        let value = self.expression()?;
        self.expect(")")?;
        if distance >= WIDTH || !matches!(value.ty, Ty::Float | Ty::Word) {
            return self.fault("an exchange that no kernel has");
        }
        Ok((value, distance))
    }

    fn set(&mut self, local: RawLocal) -> Result<What, Fault> {
        let row = &self.raw.locals[local.0 as usize];
        if !row.mutable {
            return self.fault(format!("`{}` is constant", row.name));
        }
        let ty = Ty::of(row.ty);
        self.at += 1;
        self.expect("=")?;
        let value = self.value_of(ty)?;
        self.expect(";")?;
        Ok(What::Set { local, value })
    }

    fn store(&mut self, memory: RawMemory) -> Result<What, Fault> {
        let row = &self.raw.memories[memory.0 as usize];
        if row.access == Access::Read {
            return self.fault(format!("`{}` is constant", row.name));
        }
        let element = Ty::of(row.element);
        let index = self.index()?;
        self.expect("=")?;
        let value = self.value_of(element)?;
        self.expect(";")?;
        Ok(What::Store { memory, index, value })
    }

    fn branch(&mut self) -> Result<What, Fault> {
        self.expect_all(&["if", "("])?;
        let condition = self.value_of(Ty::Bool)?;
        self.expect_all(&[")", "{"])?;
        let then = self.block()?;
        let otherwise = match self.takes("else") {
            true => {
                self.expect("{")?;
                self.block()?
            }
            false => Vec::new(),
        };
        Ok(What::If { condition, then, otherwise })
    }

    fn repeat(&mut self) -> Result<What, Fault> {
        self.expect_all(&["for", "(", "unsigned"])?;
        let name = self.name()?;
        self.expect("=")?;
        let start = self.value_of(Ty::Word)?;
        self.expect_all(&[";", name, "<"])?;
        let end = self.operand()?;
        self.same(Ty::Word, end.ty)?;
        self.expect_all(&[";", name, "+="])?;
        let text = self.next(Kind::Number, "a number")?;
        let step = word_of(text).map_or_else(|| self.fault(format!("`{text}` is no step")), Ok)?;
        self.expect_all(&[")", "{"])?;
        let index = self.raw.local(Type::Word, name, false);
        self.names.insert(name, Named::Local(index));
        let body = self.block()?;
        self.names.remove(name);
        Ok(What::For { index, start, end: end.x, step, body })
    }

    fn same(&self, wanted: Ty, found: Ty) -> Result<(), Fault> {
        if wanted == found { Ok(()) } else { self.fault(format!("{found:?}, wanted {wanted:?}")) }
    }

    fn value_of(&mut self, ty: Ty) -> Result<RawExpr, Fault> {
        let value = self.expression()?;
        self.same(ty, value.ty)?;
        Ok(value.x)
    }

    /// At most one operator; more stand in parentheses.
    fn expression(&mut self) -> Result<Value, Fault> {
        let left = self.operand()?;
        if self.takes("?") {
            return self.choice(left);
        }
        let sign = self.peek(0);
        let Some(&(_, _, op, negated)) = INFIX.iter().find(|row| row.0 == sign && row.1 == left.ty) else {
            return Ok(left);
        };
        self.at += 1;
        let right = self.operand()?;
        self.same(if op == Operator::Sar { Ty::Word } else { left.ty }, right.ty)?;
        let x = self.raw.operation(op, &[left.x, right.x]);
        let x = if negated { self.raw.operation(Operator::Not, &[x]) } else { x };
        let ty = if op == Operator::Sar { Ty::Signed } else { Ty::of(self.raw.ty(x)) };
        Ok(Value { x, ty })
    }

    fn choice(&mut self, condition: Value) -> Result<Value, Fault> {
        self.same(Ty::Bool, condition.ty)?;
        let yes = self.operand()?;
        self.expect(":")?;
        let no = self.operand()?;
        self.same(yes.ty, no.ty)?;
        let op = match yes.ty {
            Ty::Float => Operator::Select,
            Ty::Word => Operator::SelectInt,
            Ty::Bool | Ty::Signed => return self.fault("a choice of what no text chooses"),
        };
        Ok(Value { x: self.raw.operation(op, &[condition.x, yes.x, no.x]), ty: yes.ty })
    }

    fn operand(&mut self) -> Result<Value, Fault> {
        self.deeper(|parser| match parser.peek(0) {
            "(" => parser.parenthesised(),
            "!" => {
                parser.at += 1;
                let x = parser.operand()?;
                parser.same(Ty::Bool, x.ty)?;
                Ok(Value { x: parser.raw.operation(Operator::Not, &[x.x]), ty: Ty::Bool })
            }
            "-" => {
                parser.at += 1;
                let text = parser.next(Kind::Number, "a number")?;
                parser.float(&format!("-{text}"))
            }
            _ if parser.tokens.get(parser.at).is_some_and(|token| token.kind == Kind::Number) => {
                let text = parser.next(Kind::Number, "a number")?;
                match word_of(text) {
                    Some(word) => Ok(Value { x: parser.raw.leaf(Operator::Int, word), ty: Ty::Word }),
                    None => parser.float(text),
                }
            }
            _ => parser.named(),
        })
    }

    fn parenthesised(&mut self) -> Result<Value, Fault> {
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        Ok(value)
    }

    fn float(&mut self, text: &str) -> Result<Value, Fault> {
        match float_of(text) {
            Some(bits) => Ok(Value { x: self.raw.leaf(Operator::Float, bits), ty: Ty::Float }),
            None => self.fault(format!("`{text}` is not how a number is written")),
        }
    }

    /// What begins with a word.
    fn named(&mut self) -> Result<Value, Fault> {
        let word = self.next(Kind::Word, "an operand")?;
        if let Some(&(name, ty, arity, op)) = CALLS.iter().find(|row| row.0 == word) {
            return self.function(name, ty, arity, op);
        }
        match word {
            "true" | "false" => {
                Ok(Value { x: self.raw.leaf(Operator::Truth, u32::from(word == "true")), ty: Ty::Bool })
            }
            "step" => self.step(),
            "int" | "unsigned" | "float" => {
                let value = self.parenthesised()?;
                self.converted(word, value)
            }
            _ => {
                let x = match self.names.get(word) {
                    Some(&Named::Local(local)) => self.raw.local_value(local),
                    Some(Named::Lane) => self.raw.leaf(Operator::Lane, 0),
                    Some(Named::Number) => self.raw.node(RawOp::Number, [0; 3]),
                    Some(Named::Memory(_)) => return self.fault(format!("`{word}` is read in a line of its own only")),
                    None => return self.fault(format!("`{word}` is not known here")),
                };
                Ok(Value { x, ty: Ty::of(self.raw.ty(x)) })
            }
        }
    }

    /// The zeros in front of the block are not printed in this language.
    fn step(&mut self) -> Result<Value, Fault> {
        self.expect("[")?;
        let place = self.plain()?;
        self.expect("]")?;
        if place < 2 {
            return self.fault("a zero of the step's block");
        }
        Ok(Value { x: self.raw.node(RawOp::Step, [place, 0, 0]), ty: Ty::Word })
    }

    /// A conversion: to `int`, it reads the sign of a word, or makes a word of a float; from `int`, it undoes that.
    fn converted(&mut self, to: &str, value: Value) -> Result<Value, Fault> {
        match (to, value.ty) {
            ("int", Ty::Word) => Ok(Value { ty: Ty::Signed, ..value }),
            ("int", Ty::Float) => Ok(Value { x: self.raw.operation(Operator::IntOf, &[value.x]), ty: Ty::Signed }),
            ("unsigned", Ty::Signed) => Ok(Value { ty: Ty::Word, ..value }),
            ("float", Ty::Signed) => Ok(Value { x: self.raw.operation(Operator::FloatOf, &[value.x]), ty: Ty::Float }),
            (_, ty) => self.fault(format!("{ty:?} converted to `{to}`")),
        }
    }

    /// Notes that a function is called.
    fn call(&mut self, name: &'t str) {
        self.at += usize::from(self.peek(0) == name);
        self.called.insert(name);
    }

    fn function(&mut self, name: &'static str, ty: Ty, arity: usize, op: RawOp) -> Result<Value, Fault> {
        self.called.insert(name);
        self.expect("(")?;
        let mut args = vec![self.value_of(ty)?];
        while args.len() < arity {
            self.expect(",")?;
            args.push(self.value_of(ty)?);
        }
        self.expect(")")?;
        let x = self.applied(op, &args)?;
        Ok(Value { x, ty: Ty::of(self.raw.ty(x)) })
    }

    /// The float with constant bits is a constant float, of those that have no literal; of NaN there is one.
    fn applied(&mut self, op: RawOp, args: &[RawExpr]) -> Result<RawExpr, Fault> {
        let row = self.raw.exprs[args[0].0 as usize];
        if op == RawOp::Op(Operator::FromBits) && row.op == RawOp::Op(Operator::Int) {
            let bits = row.words[0];
            return match float(bits) == format!("as_float({})", word(bits)) {
                true => Ok(self.raw.leaf(Operator::Float, bits)),
                false => self.fault("a constant that is not written so"),
            };
        }
        let operand = |i: usize| args.get(i).map_or(0, |x: &RawExpr| x.0);
        Ok(self.raw.node(op, [operand(0), operand(1), 0]))
    }
}
