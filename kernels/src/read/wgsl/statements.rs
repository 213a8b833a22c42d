//! From naga's statements to those of a [`Raw`](crate::read::raw::Raw).
//!
//! A value without a name is one of the statement that follows: behind the next statement that the kernel keeps, it is
//! forgotten, so that no value of a variable outlives a change of it.

use naga::{
    Barrier, BinaryOperator, Block, Expression, Function, GatherMode, Handle, Literal, LocalVariable, Span, Statement,
    UnaryOperator,
};

use crate::kernel::{Operator, Type};
use crate::read::Fault;
use crate::read::raw::{RawExpr, RawStmt, What};

use super::Reader;
use super::expressions::Value;
use super::functions::Meaning;

/// Lanes that exchange: those of the smallest subgroup that runs the text.
const WIDTH: u32 = 8;

/// A loop as naga spells `for` out.
struct For<'m> {
    index: Handle<LocalVariable>,
    /// What is emitted for the condition.
    emitted: &'m [Statement],
    end: Handle<Expression>,
    step: u32,
    body: &'m Block,
}

impl<'m> Reader<'m> {
    /// The statements of a block.
    pub(super) fn block(&mut self, block: &'m Block) -> Result<Vec<RawStmt>, Fault> {
        self.open.push(Vec::new());
        self.passing.clear();
        let statements: Vec<(&Statement, &Span)> = block.span_iter().collect();
        let mut at = 0;
        while let Some(&(statement, &span)) = statements.get(at) {
            self.come_to(span)?;
            let next = statements.get(at + 1).map(|(statement, _)| *statement);
            at += if self.joined(statement, span, next)? { 2 } else { 1 };
        }
        self.passing.clear();
        Ok(self.open.pop().unwrap_or_default())
    }

    /// Moves to a place of the text; variables before it that begin with a constant begin there.
    fn come_to(&mut self, span: Span) -> Result<(), Fault> {
        let Some(here) = span.to_range() else { return Ok(()) };
        let variables = &self.function.local_variables;
        while let Some(&variable) = self.constant.last() {
            let declared = variables.get_span(variable);
            if declared.to_range().is_none_or(|range| range.start >= here.start) {
                break;
            }
            self.constant.pop();
            self.line = self.lines.of_span(declared);
            if let Some(first) = variables[variable].init {
                let value = self.plain(first)?;
                self.declare(variable, value)?;
            }
        }
        self.line = self.lines.of_span(span);
        Ok(())
    }

    fn push(&mut self, what: What) {
        self.passing.clear();
        let stmt = RawStmt { line: self.line, what };
        self.open.last_mut().expect("invariant: a block is open while statements are read").push(stmt);
    }

    /// Reads a statement, together with the one behind it if the two are one: the first value of a loop's index and the loop,
    /// the two halves of a barrier that orders buffers. Then it is true.
    fn joined(&mut self, statement: &'m Statement, span: Span, next: Option<&'m Statement>) -> Result<bool, Fault> {
        if let (Statement::ControlBarrier(Barrier::STORAGE), Some(Statement::ControlBarrier(Barrier::WORK_GROUP))) =
            (statement, next)
        {
            self.push(What::Barrier { buffers: true });
            return Ok(true);
        }
        if let (Statement::Store { pointer, value }, Some(repeated @ Statement::Loop { .. })) = (statement, next) {
            let repeated = self.for_loop(repeated)?;
            if self.variable(*pointer) == Some(repeated.index) && self.declares(repeated.index, span) {
                let start = self.plain(*value)?;
                self.repeat(repeated, start)?;
                return Ok(true);
            }
        }
        self.statement(statement, span)?;
        Ok(false)
    }

    fn statement(&mut self, statement: &'m Statement, span: Span) -> Result<(), Fault> {
        match statement {
            Statement::Emit(range) => range.clone().try_for_each(|handle| self.emit(handle)),
            Statement::If { condition, accept, reject } => {
                if self.logical(*condition, accept, reject)? {
                    return Ok(());
                }
                let (condition, line) = (self.plain(*condition)?, self.line);
                let (then, otherwise) = (self.block(accept)?, self.block(reject)?);
                self.line = line;
                self.push(What::If { condition, then, otherwise });
                Ok(())
            }
            Statement::Loop { .. } => {
                let repeated = self.for_loop(statement)?;
                let Some(first) = self.function.local_variables[repeated.index].init else {
                    return self.fault("a loop whose index is not set before it");
                };
                self.constant.retain(|&variable| variable != repeated.index);
                let start = self.plain(first)?;
                self.repeat(repeated, start)
            }
            Statement::Store { pointer, value } => {
                let value = self.plain(*value)?;
                match self.value(*pointer)? {
                    Value::Element(memory, index) => self.push(What::Store { memory, index, value }),
                    Value::Variable(variable) if self.declares(variable, span) => self.declare(variable, value)?,
                    Value::Variable(variable) => match self.variables.get(&variable) {
                        Some(&local) => self.push(What::Set { local, value }),
                        None => return self.fault("a variable is set that has no first value"),
                    },
                    _ => return self.fault("a store to what is no element and no variable"),
                }
                Ok(())
            }
            Statement::Call { function, arguments, result: Some(result) } => self.call(*function, arguments, *result),
            Statement::SubgroupGather { mode, argument, result } => self.shuffle(*mode, *argument, *result),
            Statement::ControlBarrier(barrier) if *barrier == Barrier::WORK_GROUP => {
                self.push(What::Barrier { buffers: false });
                Ok(())
            }
            // At the ends of the function naga returns, which no place in the text says.
            Statement::Return { value: None } if !span.is_defined() => Ok(()),
            Statement::Return { value: None } => {
                self.push(What::Leave);
                Ok(())
            }
            other => self.fault(format!("`{}` is a statement that no kernel has", super::expressions::kind(other))),
        }
    }

    /// Whether a store at this place is the declaration of a variable.
    fn declares(&self, variable: Handle<LocalVariable>, span: Span) -> bool {
        span.is_defined() && self.function.local_variables.get_span(variable) == span
    }

    fn declare(&mut self, variable: Handle<LocalVariable>, value: RawExpr) -> Result<(), Fault> {
        let row = &self.function.local_variables[variable];
        let ty = self.type_of(row.ty)?;
        let local = self.raw.local(ty, row.name.as_deref().unwrap_or_default(), true);
        if self.variables.insert(variable, local).is_some() {
            return self.fault("a variable is declared twice");
        }
        self.push(What::Var { local, value });
        Ok(())
    }

    /// Reads an expression; it is a statement if it has a name.
    fn emit(&mut self, handle: Handle<Expression>) -> Result<(), Fault> {
        let Expression::Load { pointer } = self.function.expressions[handle] else {
            let value = self.expression(handle)?;
            return self.keep(handle, value);
        };
        let Value::Element(memory, index) = self.value(pointer)? else {
            let value = self.expression(handle)?;
            return self.keep(handle, value);
        };
        let Some(name) = self.named_at(handle) else { return self.fault("a load without a name") };
        let element = self.raw.memories[memory.0 as usize].element;
        let local = self.raw.local(element, name, false);
        self.push(What::Load { local, memory, index });
        let value = Value::Plain(self.raw.local_value(local));
        self.named.insert(handle, value);
        Ok(())
    }

    /// The name of an expression, whose line is then the current one.
    fn named_at(&mut self, handle: Handle<Expression>) -> Option<&'m str> {
        let name: &str = self.function.named_expressions.get(&handle)?;
        self.line = match self.lines.of_span(self.function.expressions.get_span(handle)) {
            0 => self.lines.names.get(name).copied().unwrap_or(self.line),
            line => line,
        };
        Some(name)
    }

    fn keep(&mut self, handle: Handle<Expression>, value: Value) -> Result<(), Fault> {
        let Some(name) = self.named_at(handle) else {
            self.passing.insert(handle, value);
            return Ok(());
        };
        let Value::Plain(value) = value else {
            return self.fault(format!("`{name}` is neither a float nor an unsigned word nor a truth value"));
        };
        let local = self.raw.local(self.raw.ty(value), name, false);
        self.push(What::Let { local, value });
        let value = Value::Plain(self.raw.local_value(local));
        self.named.insert(handle, value);
        Ok(())
    }

    fn call(
        &mut self,
        function: Handle<Function>,
        arguments: &[Handle<Expression>],
        result: Handle<Expression>,
    ) -> Result<(), Fault> {
        let value = match (self.functions[&function], arguments) {
            (Meaning::Loaded, &[bits]) => {
                let bits = self.number(bits)?;
                Value::Plain(self.raw.leaf(Operator::Float, bits))
            }
            (Meaning::Operator(op), arguments) => self.operation(op, arguments)?,
            _ => return self.fault("a call of a function that serves others"),
        };
        self.keep(result, value)
    }

    fn shuffle(
        &mut self,
        mode: GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<(), Fault> {
        let GatherMode::ShuffleXor(distance) = mode else {
            return self.fault("an exchange between lanes that is no `subgroupShuffleXor`");
        };
        let (value, distance) = (self.plain(argument)?, self.number(distance)?);
        let Some(name) = self.named_at(result) else { return self.fault("an exchange without a name") };
        let local = self.raw.local(self.raw.ty(value), name, false);
        self.push(What::Shuffle { local, value, distance, width: WIDTH });
        let value = Value::Plain(self.raw.local_value(local));
        self.named.insert(result, value);
        Ok(())
    }

    /// `&&` and `||`: a branch that sets a variable without a name, to the right operand or, where the left one decides, to
    /// what it decides. False if it is another branch.
    fn logical(&mut self, condition: Handle<Expression>, accept: &'m Block, reject: &'m Block) -> Result<bool, Fault> {
        let function = self.function;
        let [Statement::Store { pointer, value }] = &reject[..] else { return Ok(false) };
        let (Some(variable), &Expression::Literal(Literal::Bool(decided))) =
            (self.variable(*pointer), &function.expressions[*value])
        else {
            return Ok(false);
        };
        let [computed @ .., Statement::Store { pointer, value: right }] = &accept[..] else { return Ok(false) };
        if function.local_variables[variable].name.is_some() || self.variable(*pointer) != Some(variable) {
            return Ok(false);
        }
        let left = match function.expressions[condition] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } if decided => expr,
            _ if decided => return Ok(false),
            _ => condition,
        };
        let left = self.plain(left)?;
        let before = self.open.last().map(Vec::len);
        computed.iter().try_for_each(|statement| self.statement(statement, Span::UNDEFINED))?;
        if self.open.last().map(Vec::len) != before {
            return self.fault("an operand of a truth value does more than compute");
        }
        let right = self.plain(*right)?;
        let op = if decided { Operator::Either } else { Operator::Both };
        let value = self.checked(op, &[left, right])?;
        self.logical.insert(variable, value);
        Ok(true)
    }

    /// The variable that a pointer is.
    fn variable(&self, pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        match self.function.expressions[pointer] {
            Expression::LocalVariable(variable) => Some(variable),
            _ => None,
        }
    }

    /// The variable whose value an expression is.
    fn variable_read(&self, handle: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        match self.function.expressions[handle] {
            Expression::Load { pointer } => self.variable(pointer),
            _ => None,
        }
    }

    /// `for (var index = ..; index < end; index += step)`
    fn for_loop(&self, statement: &'m Statement) -> Result<For<'m>, Fault> {
        self.as_for(statement).map_or_else(|| self.fault("a loop that is no `for` below an end by a step"), Ok)
    }

    fn as_for(&self, statement: &'m Statement) -> Option<For<'m>> {
        let Statement::Loop { body, continuing, break_if: None } = statement else { return None };
        let [emitted @ .., Statement::If { condition, accept, reject }, Statement::Block(body)] = &body[..] else {
            return None;
        };
        let [advanced @ .., Statement::Store { pointer, value }] = &continuing[..] else { return None };
        let expressions = &self.function.expressions;
        let Expression::Binary { op: BinaryOperator::Less, left, right: end } = expressions[*condition] else {
            return None;
        };
        let Expression::Binary { op: BinaryOperator::Add, left: now, right: step } = expressions[*value] else {
            return None;
        };
        let index = self.variable_read(left)?;
        let emits = |statements: &[Statement]| statements.iter().all(|s| matches!(s, Statement::Emit(_)));
        let same = self.variable(*pointer) == Some(index) && self.variable_read(now) == Some(index);
        let breaks = accept.is_empty() && matches!(reject[..], [Statement::Break]);
        if !same || !breaks || !emits(emitted) || !emits(advanced) {
            return None;
        }
        Some(For { index, emitted, end, step: self.number(step).ok()?, body })
    }

    fn repeat(&mut self, repeated: For<'m>, start: RawExpr) -> Result<(), Fault> {
        let For { index, emitted, end, step, body } = repeated;
        let row = &self.function.local_variables[index];
        if self.type_of(row.ty)? != Type::Word {
            return self.fault("the index of a loop is no unsigned word");
        }
        let local = self.raw.local(Type::Word, row.name.as_deref().unwrap_or_default(), false);
        if self.variables.insert(index, local).is_some() {
            return self.fault("the index of a loop is declared twice");
        }
        let line = self.line;
        emitted.iter().try_for_each(|statement| self.statement(statement, Span::UNDEFINED))?;
        let end = self.plain(end)?;
        let body = self.block(body)?;
        self.line = line;
        self.push(What::For { index: local, start, end, step, body });
        Ok(())
    }
}
