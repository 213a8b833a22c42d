//! From naga's expressions to those of a [`Raw`](crate::read::raw::Raw).

use naga::{
    BinaryOperator, Expression, GlobalVariable, Handle, Literal, LocalVariable, MathFunction, ScalarKind, UnaryOperator,
};

use crate::kernel::{Operator, Type};
use crate::read::Fault;
use crate::read::raw::{RawExpr, RawMemory, RawOp};

use super::{Input, Reader, Role};

/// What an expression of naga's is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// A value of the kernel.
    Plain(RawExpr),
    /// A word that is read as signed.
    Signed(RawExpr),
    /// Word 0 or 1 of the step's block: the bits of a zero.
    Zero(u32),
    /// The workgroup in the dispatch; its components.
    Workgroup,
    WorkgroupX,
    WorkgroupY,
    /// The size of the dispatch; its width.
    Workgroups,
    Width,
    /// `workgroup.y * workgroups.x`
    RowsBefore,
    /// A memory.
    Memory(RawMemory),
    /// The step's block.
    Step,
    /// A word of the step's block.
    StepWord(u32),
    /// An element of memory.
    Element(RawMemory, RawExpr),
    /// A variable of the function.
    Variable(Handle<LocalVariable>),
}

/// The name of naga's thing, for messages.
pub(super) fn kind(thing: &impl std::fmt::Debug) -> String {
    let text = format!("{thing:?}");
    text.chars().take_while(|c| c.is_ascii_alphanumeric()).collect()
}

impl Reader<'_> {
    /// The value of an expression: one that was emitted, or one that needs no emitting.
    pub(super) fn value(&mut self, handle: Handle<Expression>) -> Result<Value, Fault> {
        if let Some(value) = self.named.get(&handle).or_else(|| self.passing.get(&handle)) {
            return Ok(*value);
        }
        match self.function.expressions[handle] {
            Expression::Literal(literal) => self.literal(literal).map(Value::Plain),
            Expression::FunctionArgument(i) => Ok(match self.inputs[i as usize] {
                Input::Workgroup => Value::Workgroup,
                Input::Workgroups => Value::Workgroups,
                Input::Lane => Value::Plain(self.raw.leaf(Operator::Lane, 0)),
            }),
            Expression::GlobalVariable(variable) => Ok(self.role(variable)),
            Expression::LocalVariable(variable) => Ok(Value::Variable(variable)),
            ref other => self.fault(format!("`{}` where a value of this statement is wanted", kind(other))),
        }
    }

    fn role(&self, variable: Handle<GlobalVariable>) -> Value {
        match self.roles[&variable] {
            Role::Step => Value::Step,
            Role::Memory(memory) => Value::Memory(memory),
        }
    }

    /// A value of the kernel.
    pub(super) fn plain(&mut self, handle: Handle<Expression>) -> Result<RawExpr, Fault> {
        match self.value(handle)? {
            Value::Plain(x) => Ok(x),
            Value::Signed(_) => self.fault("a signed value where a float, a word or a truth value is wanted"),
            Value::Zero(_) => self.fault("the bits of a zero are used as a word"),
            _ => self.fault("an input or a variable where a value is wanted"),
        }
    }

    fn word(&mut self, handle: Handle<Expression>) -> Result<RawExpr, Fault> {
        let x = self.plain(handle)?;
        if self.raw.ty(x) == Type::Word { Ok(x) } else { self.fault("wanted an unsigned word") }
    }

    /// The word of a literal.
    pub(super) fn number(&self, handle: Handle<Expression>) -> Result<u32, Fault> {
        match self.function.expressions[handle] {
            Expression::Literal(Literal::U32(word)) => Ok(word),
            _ => self.fault("wanted a literal word"),
        }
    }

    fn literal(&mut self, literal: Literal) -> Result<RawExpr, Fault> {
        match literal {
            Literal::U32(word) => Ok(self.raw.leaf(Operator::Int, word)),
            Literal::Bool(holds) => Ok(self.raw.leaf(Operator::Truth, holds.into())),
            Literal::F32(0.0) => {
                self.fault("a literal float zero: compilers fold it, so zeros come from the step's block")
            }
            Literal::F32(x) if !x.is_normal() => self.fault("a literal float that is not normal"),
            Literal::F32(x) => Ok(self.raw.leaf(Operator::Float, x.to_bits())),
            other => self.fault(format!("a literal of type {}", kind(&other))),
        }
    }

    /// The value of an expression that is emitted now.
    pub(super) fn expression(&mut self, handle: Handle<Expression>) -> Result<Value, Fault> {
        match self.function.expressions[handle] {
            Expression::Access { base, index } => {
                let index = self.word(index)?;
                match self.value(base)? {
                    Value::Memory(memory) => Ok(Value::Element(memory, index)),
                    _ => self.fault("an index that is not constant, of no memory of the kernel"),
                }
            }
            Expression::AccessIndex { base, index } => self.component(base, index),
            Expression::Load { pointer } => self.load(pointer),
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => self.operation(Operator::Not, &[expr]),
            Expression::Unary { op, .. } => self.fault(format!("`{op:?}` of a value")),
            Expression::Binary { op, left, right } => self.binary(op, left, right),
            Expression::Select { condition, accept, reject } => {
                let yes = self.plain(accept)?;
                let float = self.raw.ty(yes) == Type::F32;
                self.operation(if float { Operator::Select } else { Operator::SelectInt }, &[condition, accept, reject])
            }
            Expression::Math { fun, arg, arg1, arg2: None, arg3: None } => self.function_of(fun, arg, arg1),
            Expression::As { expr, kind, convert } => self.converted(expr, kind, convert),
            ref other => self.fault(format!("`{}` is an expression that no kernel has", kind(other))),
        }
    }

    /// An operator on values of its types.
    pub(super) fn operation(&mut self, op: Operator, operands: &[Handle<Expression>]) -> Result<Value, Fault> {
        let args = operands.iter().map(|&x| self.plain(x)).collect::<Result<Vec<_>, _>>()?;
        self.checked(op, &args).map(Value::Plain)
    }

    pub(super) fn checked(&mut self, op: Operator, args: &[RawExpr]) -> Result<RawExpr, Fault> {
        let found: Vec<Type> = args.iter().map(|&x| self.raw.ty(x)).collect();
        match op.signature() {
            Some((wanted, _)) if found == wanted => Ok(self.raw.operation(op, args)),
            _ => self.fault(format!("`{}` of {found:?}", op.name())),
        }
    }

    /// A component of an input, a word of the step's block, or an element with a constant index.
    fn component(&mut self, base: Handle<Expression>, index: u32) -> Result<Value, Fault> {
        Ok(match (self.value(base)?, index) {
            (Value::Workgroup, 0) => Value::WorkgroupX,
            (Value::Workgroup, 1) => Value::WorkgroupY,
            (Value::Workgroups, 0) => Value::Width,
            (Value::Step, place) => Value::StepWord(place),
            (Value::Memory(memory), index) => Value::Element(memory, self.raw.leaf(Operator::Int, index)),
            _ => return self.fault("a component that no kernel reads"),
        })
    }

    /// What a pointer points to, but for elements of memory, whose loads are statements.
    fn load(&mut self, pointer: Handle<Expression>) -> Result<Value, Fault> {
        match self.value(pointer)? {
            Value::StepWord(place @ 0..2) => Ok(Value::Zero(place)),
            Value::StepWord(place) => Ok(Value::Plain(self.raw.node(RawOp::Step, [place, 0, 0]))),
            Value::Variable(variable) => match (self.logical.get(&variable), self.variables.get(&variable)) {
                (Some(&x), _) => Ok(Value::Plain(x)),
                (None, Some(&local)) => Ok(Value::Plain(self.raw.local_value(local))),
                (None, None) => self.fault("a variable is read that nothing has set"),
            },
            Value::Element(..) => self.fault("a load without a name"),
            _ => self.fault("a load of what is no element"),
        }
    }

    fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Value, Fault> {
        use BinaryOperator as B;
        let (x, y) = match (op, self.value(left)?, self.value(right)?) {
            (B::Multiply, Value::WorkgroupY, Value::Width) => return Ok(Value::RowsBefore),
            (B::Add, Value::WorkgroupX, Value::RowsBefore) => {
                return Ok(Value::Plain(self.raw.node(RawOp::Number, [0; 3])));
            }
            (B::Less, Value::Signed(x), Value::Signed(y)) => {
                return self.checked(Operator::LessInt, &[x, y]).map(Value::Plain);
            }
            (B::ShiftRight, Value::Signed(x), Value::Plain(y)) => {
                return self.checked(Operator::Sar, &[x, y]).map(Value::Signed);
            }
            _ => (self.plain(left)?, self.plain(right)?),
        };
        let (op, opposite) = match (op, self.raw.ty(x)) {
            (B::Add, Type::F32) => (Operator::Add, false),
            (B::Subtract, Type::F32) => (Operator::Sub, false),
            (B::Multiply, Type::F32) => (Operator::Mul, false),
            (B::Divide, Type::F32) => (Operator::Div, false),
            (B::Add, Type::Word) => (Operator::AddInt, false),
            (B::Subtract, Type::Word) => (Operator::SubInt, false),
            (B::Multiply, Type::Word) => (Operator::MulInt, false),
            (B::Divide, Type::Word) => (Operator::DivInt, false),
            (B::Modulo, Type::Word) => (Operator::RemInt, false),
            (B::And, Type::Word) => (Operator::And, false),
            (B::InclusiveOr, Type::Word) => (Operator::Or, false),
            (B::ExclusiveOr, Type::Word) => (Operator::Xor, false),
            (B::ShiftLeft, Type::Word) => (Operator::Shl, false),
            (B::ShiftRight, Type::Word) => (Operator::Shr, false),
            (B::Less, Type::Word) => (Operator::Below, false),
            (B::GreaterEqual, Type::Word) => (Operator::Below, true),
            (B::Equal, Type::Word) => (Operator::EqualInt, false),
            (B::NotEqual, Type::Word) => (Operator::EqualInt, true),
            (op, ty) => return self.fault(format!("`{op:?}` of {}", ty.name())),
        };
        let value = self.checked(op, &[x, y])?;
        Ok(Value::Plain(if opposite { self.checked(Operator::Not, &[value])? } else { value }))
    }

    fn function_of(
        &mut self,
        function: MathFunction,
        x: Handle<Expression>,
        y: Option<Handle<Expression>>,
    ) -> Result<Value, Fault> {
        use MathFunction as M;
        match (function, y) {
            (M::Min, Some(y)) => {
                let (x, y) = (self.word(x)?, self.word(y)?);
                Ok(Value::Plain(self.raw.node(RawOp::Least, [x.0, y.0, 0])))
            }
            (M::Dot4I8Packed, Some(y)) => {
                let (x, y) = (self.word(x)?, self.word(y)?);
                self.checked(Operator::DotBytes, &[x, y]).map(Value::Signed)
            }
            (M::Floor, None) => self.operation(Operator::Floor, &[x]),
            (M::Ceil, None) => self.operation(Operator::Ceil, &[x]),
            (M::Trunc, None) => self.operation(Operator::Trunc, &[x]),
            (M::Round, None) => self.operation(Operator::RoundEven, &[x]),
            _ => self.fault(format!("the builtin function `{function:?}`")),
        }
    }

    /// A bitcast, or a conversion between floats and signed words.
    fn converted(&mut self, x: Handle<Expression>, to: ScalarKind, convert: Option<u8>) -> Result<Value, Fault> {
        use ScalarKind as K;
        let value = self.value(x)?;
        let ty = if let Value::Plain(x) = value { Some(self.raw.ty(x)) } else { None };
        Ok(match (value, ty, to, convert) {
            (Value::Zero(place), _, K::Float, None) => Value::Plain(self.raw.leaf(Operator::Float, place << 31)),
            (Value::Plain(x), Some(Type::Word), K::Float, None) => {
                Value::Plain(self.checked(Operator::FromBits, &[x])?)
            }
            (Value::Plain(x), Some(Type::F32), K::Uint, None) => Value::Plain(self.checked(Operator::Bits, &[x])?),
            (Value::Plain(x), Some(Type::Word), K::Sint, None) => Value::Signed(x),
            (Value::Signed(x), _, K::Uint, None) => Value::Plain(x),
            (Value::Signed(x), _, K::Float, Some(4)) => Value::Plain(self.checked(Operator::FloatOf, &[x])?),
            (Value::Plain(x), Some(Type::F32), K::Sint, Some(4)) => Value::Signed(self.checked(Operator::IntOf, &[x])?),
            _ => return self.fault(format!("a conversion to {to:?} that no kernel has")),
        })
    }
}
