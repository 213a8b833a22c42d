//! Making bodies of scalar expressions.

use std::collections::HashMap;
use std::ops::Range;

use super::cursor::{Cursor, Read};
use super::scalars::{Definition, Expression, Node};
use crate::diagnostic::codes;
use crate::scalar::{Body, Scalar, ScalarOp, ScalarType, Scalars};

/// Makes the nodes of one body. Nodes are made operands first, from left to right: the printer counts on it.
pub(super) struct Maker<'a, 't> {
    pub cursor: &'a Cursor<'t>,
    pub scalars: &'a mut Scalars,
    /// Types of the body's parameters; `None` outside of bodies.
    pub params: Option<&'a [ScalarType]>,
    named: HashMap<String, Scalar>,
}

impl<'a, 't> Maker<'a, 't> {
    pub fn new(cursor: &'a Cursor<'t>, scalars: &'a mut Scalars, params: Option<&'a [ScalarType]>) -> Self {
        Maker { cursor, scalars, params, named: HashMap::new() }
    }

    /// The body of a definition.
    pub fn body(mut self, definition: &Definition) -> Read<Body> {
        for (name, range, expression) in &definition.named {
            let node = self.scalar(expression)?;
            if self.named.insert(name.clone(), node).is_some() {
                return Err(self.cursor.duplicate("node", name, range.clone()));
            }
        }
        let result = self.scalar(&definition.result)?;
        let body = self.scalars.body(self.params.unwrap_or_default(), result);
        body.map_err(|why| self.fault(&definition.result.range, &why))
    }

    fn fault(&self, range: &Range<usize>, why: &str) -> Box<crate::Diagnostic> {
        self.cursor.fault(codes::TEXT_SCALAR, range.clone(), why)
    }

    /// The node of an expression.
    pub fn scalar(&mut self, expression: &Expression) -> Read<Scalar> {
        let range = &expression.range;
        match &expression.node {
            Node::F32(value) => Ok(self.scalars.f32(*value)),
            Node::I32(value) => Ok(self.scalars.i32(*value)),
            Node::Param(index, ty) => self.param(*index, *ty, range),
            Node::Row(row) if (*row as usize) < self.scalars.columns().0.len() => Ok(Scalar(*row)),
            Node::Row(row) => Err(self.cursor.unknown("scalar node", &format!("%{row}"), range.clone())),
            Node::Named(name) => {
                let node = self.named.get(name).copied();
                node.ok_or_else(|| self.cursor.unknown("scalar node", name, range.clone()))
            }
            Node::Op(op, operands) => {
                let found = operands.iter().map(|x| self.scalar(x)).collect::<Read<Vec<_>>>()?;
                self.check_types(*op, operands, &found, range)?;
                self.scalars.op(*op, &found).map_err(|why| self.fault(range, &why))
            }
        }
    }

    /// Points at the first operand of the wrong type.
    fn check_types(&self, op: ScalarOp, operands: &[Expression], found: &[Scalar], range: &Range<usize>) -> Read<()> {
        let (wanted, _) = op.signature().unwrap_or((&[], ScalarType::F32));
        if found.len() != wanted.len() {
            let fault = self.fault(range, &format!("`{}` has another number of operands", op.name()));
            return Err(Box::new(fault.wanted(wanted.len(), found.len())));
        }
        for ((operand, &x), wanted) in operands.iter().zip(found).zip(wanted) {
            let ty = self.scalars.ty(x);
            if ty != *wanted {
                let fault = self.fault(&operand.range, &format!("`{}` takes another type", op.name()));
                return Err(Box::new(fault.wanted(wanted.name(), ty.name())));
            }
        }
        Ok(())
    }

    fn param(&mut self, index: u32, stated: Option<ScalarType>, range: &Range<usize>) -> Read<Scalar> {
        let declared = self.params.and_then(|params| params.get(index as usize).copied());
        match (declared, stated, self.params) {
            (Some(ty), None, _) | (None, Some(ty), None) => Ok(self.scalars.param(index, ty)),
            (Some(ty), Some(other), _) if ty == other => Ok(self.scalars.param(index, ty)),
            (Some(ty), Some(_), _) => {
                Err(self.fault(range, &format!("parameter {index} is declared as {}", ty.name())))
            }
            (_, _, Some(params)) => {
                let why = format!("parameter {index} of a body of {} parameters", params.len());
                Err(self.fault(range, &why))
            }
            (_, None, None) => Err(self.fault(range, "outside of bodies a parameter has its type: `x0:f32`")),
        }
    }
}
