//! Reading a value: `name: type[shape] = operation attributes operands @ span`.

use std::ops::Range;

use super::bodies::Maker;
use super::cursor::Read;
use super::lexer::Kind;
use super::limits;
use super::parser::Parser;
use super::scalars::{Definition, block};
use crate::diagnostic::codes;
use crate::graph::Span;
use crate::op::{Op, ReduceKind, Type};
use crate::scalar::ScalarType;
use crate::tree::Tree;
use crate::{Diagnostic, Dim, Shape, Value};

/// The type and shape that the text states, and their place.
struct Stated {
    ty: Type,
    shape: Vec<Dim>,
    range: Range<usize>,
}

/// Operation, attributes and operands as the text has them.
struct Call {
    op: Op,
    range: Range<usize>,
    attrs: Vec<u32>,
    /// A body between braces; it gets its types from the operands.
    body: Option<Definition>,
    operands: Vec<(Value, Range<usize>)>,
}

impl<'t> Parser<'t> {
    /// A value statement.
    pub fn value(&mut self) -> Read<()> {
        let token = self.cursor.next();
        let name = self.cursor.text_of(token);
        if self.values.contains_key(name) {
            return Err(self.cursor.duplicate("value", name, token.range()));
        }
        let stated = if self.cursor.take_mark(b':') { Some(self.stated()?) } else { None };
        self.cursor.mark(b'=')?;
        let call = self.call()?;
        let path =
            if !self.cursor.at_line_end() && self.cursor.take_mark(b'@') { self.value_path()? } else { Vec::new() };
        self.enter(&path);
        let value = self.make(call, stated.as_ref())?;
        self.builder.leave(Span(0));
        self.values.insert(name, value);
        Ok(())
    }

    fn stated(&mut self) -> Read<Stated> {
        let (ty, range) = self.ty()?;
        let shape = self.shape()?;
        Ok(Stated { ty, shape, range: range.start..self.cursor.end_of_last() })
    }

    fn call(&mut self) -> Read<Call> {
        let (name, range) = self.cursor.word("an operation")?;
        let Some(op) = Op::from_name(name) else {
            let mut fault = self.cursor.unknown("operation", name, range);
            fault.help = "docs/ir.md lists the operations".into();
            return Err(fault);
        };
        let mut call = Call { op, range, attrs: Vec::new(), body: None, operands: Vec::new() };
        self.attributes(&mut call)?;
        if !op.is_leaf() {
            self.operands(&mut call)?;
        }
        Ok(call)
    }

    fn attributes(&mut self, call: &mut Call) -> Read<()> {
        match call.op {
            Op::Weight | Op::Const | Op::Read => call.attrs.push(self.leaf_id(call.op)?),
            Op::Extent if self.cursor.at_line_end() => {
                return Err(self.cursor.unexpected("a dimension"));
            }
            Op::Extent => call.attrs.push(self.dim()?.0),
            Op::Iota | Op::Concat => call.attrs = self.keyed(["axis"])?.to_vec(),
            Op::Slice => call.attrs = self.keyed(["axis", "start"])?.to_vec(),
            Op::Gather => call.attrs = self.keyed(["axis", "batch"])?.to_vec(),
            Op::Product => call.attrs.push(self.tree()?),
            Op::Permute => call.attrs = self.axes()?,
            Op::Reduce => {
                let kind = self.reduce_kind()? as u32;
                let tree = self.tree()?;
                let [axis] = self.keyed(["axis"])?;
                call.attrs = vec![kind, tree, axis];
            }
            Op::Map if self.cursor.is_mark(b'{') => call.body = Some(block(&mut self.cursor)?),
            Op::Map => call.attrs.push(self.body_id()?),
            _ => {}
        }
        Ok(())
    }

    fn body_id(&mut self) -> Read<u32> {
        let (name, range) = self.cursor.word("a body")?;
        let body = self.bodies.get(name).map(|body| body.0);
        body.ok_or_else(|| self.cursor.unknown("body", name, range))
    }

    fn reduce_kind(&mut self) -> Read<ReduceKind> {
        let (name, range) = self.cursor.word("sum or max")?;
        let kind = [ReduceKind::Sum, ReduceKind::Max].into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| {
            let fault = self.cursor.unknown("reduction", name, range);
            Box::new(fault.wanted("sum or max", name))
        })
    }

    /// `free`, `seq` or `lanes(n)`, as a number.
    fn tree(&mut self) -> Read<u32> {
        let (name, range) = self.cursor.word("a tree: free, seq or lanes(n)")?;
        match name {
            "free" => Ok(Tree::Free.number()),
            "seq" => Ok(Tree::Seq.number()),
            "lanes" => self.lanes(),
            _ => {
                let fault = self.cursor.unknown("tree", name, range);
                Err(Box::new(fault.wanted("free, seq or lanes(n)", name)))
            }
        }
    }

    fn lanes(&mut self) -> Read<u32> {
        self.cursor.mark(b'(')?;
        let (lanes, range) = self.cursor.unsigned("a number of lanes")?;
        self.cursor.mark(b')')?;
        match Tree::from_number(lanes) {
            Some(Tree::Lanes(_)) => Ok(lanes),
            _ => {
                let fault = self.cursor.fault(codes::TEXT_NUMBER, range, "no tree has this number of lanes");
                Err(Box::new(fault.wanted("a power of two in 2 ..= 1024", lanes)))
            }
        }
    }

    /// `axes=[1, 0]`
    fn axes(&mut self) -> Read<Vec<u32>> {
        if !self.cursor.is_word("axes") || self.cursor.at_line_end() {
            return Err(self.cursor.unexpected("`axes=[...]`"));
        }
        self.cursor.next();
        self.cursor.mark(b'=')?;
        self.cursor.mark(b'[')?;
        let mut axes = Vec::new();
        while !self.cursor.is_mark(b']') {
            axes.push(self.cursor.unsigned("an axis")?.0);
            if axes.len() > limits::RANK || !self.cursor.take_mark(b',') {
                break;
            }
        }
        self.cursor.mark(b']')?;
        Ok(axes)
    }

    /// `key=value` for each key, in any order; a missing `batch` is 0.
    fn keyed<const N: usize>(&mut self, keys: [&str; N]) -> Read<[u32; N]> {
        let mut values = [None; N];
        while !self.cursor.at_line_end() && self.cursor.peek_second().kind == Kind::Mark(b'=') {
            let (key, range) = self.cursor.word("an attribute")?;
            let Some(index) = keys.iter().position(|&k| k == key) else {
                return Err(self.cursor.unknown("attribute", key, range));
            };
            self.cursor.next();
            let value = if key == "start" { self.dim()?.0 } else { self.cursor.unsigned("an axis")?.0 };
            if values[index].replace(value).is_some() {
                return Err(self.cursor.duplicate("attribute", key, range));
            }
        }
        let mut found = [0; N];
        for ((found, value), key) in found.iter_mut().zip(values).zip(keys) {
            *found = match value {
                Some(value) => value,
                None if key == "batch" => 0,
                None => return Err(self.cursor.unexpected(&format!("`{key}=...`"))),
            };
        }
        Ok(found)
    }

    /// One or more values behind an operation, on its line or behind a comma.
    fn operands(&mut self, call: &mut Call) -> Read<()> {
        if self.cursor.at_line_end() {
            return Err(self.cursor.unexpected("an operand"));
        }
        call.operands.push(self.operand()?);
        while !self.cursor.at_line_end() && self.cursor.take_mark(b',') {
            call.operands.push(self.operand()?);
        }
        Ok(())
    }

    /// The value of a name.
    pub fn operand(&mut self) -> Read<(Value, Range<usize>)> {
        let token = self.cursor.peek();
        if token.kind != Kind::Word {
            return Err(self.cursor.unexpected("a value"));
        }
        self.cursor.next();
        let name = self.cursor.text_of(token);
        match self.values.get(name) {
            Some(&value) => Ok((value, token.range())),
            None => {
                let mut fault = self.cursor.unknown("value", name, token.range());
                fault.help = "a value is defined above its uses".into();
                Err(fault)
            }
        }
    }

    /// Makes the value and compares it with what the text states.
    fn make(&mut self, mut call: Call, stated: Option<&Stated>) -> Read<Value> {
        if let Some(body) = &call.body {
            let body = self.inline_body(&call, body)?;
            call.attrs.push(body);
        }
        let shape = stated.map(|s| self.builder.dims.shape(&s.shape));
        // Elsewhere the shape follows from the operands, and a wrong one gets its own diagnostic below.
        let needed = shape.filter(|_| takes_shape(call.op));
        let args: Vec<Value> = call.operands.iter().map(|&(value, _)| value).collect();
        let made = self.builder.value(call.op, &args, &call.attrs, needed);
        let value = made.map_err(|why| self.misfit(&call, stated, &why))?;
        self.check_size(&call, value)?;
        if let Some(stated) = stated {
            self.check_stated(value, stated, shape)?;
        }
        Ok(value)
    }

    fn inline_body(&mut self, call: &Call, body: &Definition) -> Read<u32> {
        let mut params: Vec<ScalarType> = Vec::new();
        for (value, range) in &call.operands {
            let ty = self.builder.ty(*value);
            let Some(scalar) = ty.scalar() else {
                let fault = self.cursor.fault(codes::TEXT_OPERATION, range.clone(), "`map` does not take this type");
                return Err(Box::new(fault.wanted("f32, i32 or id", ty.name())));
            };
            params.push(scalar);
        }
        if params.len() > limits::PARAMETERS {
            return Err(self.cursor.too_large("the operands of `map`", limits::PARAMETERS, call.range.clone()));
        }
        let body = Maker::new(&self.cursor, &mut self.builder.scalars, Some(&params)).body(body)?;
        Ok(body.0)
    }

    /// The diagnostic of an operation that does not fit, at the operand that inference names, if it names one.
    fn misfit(&self, call: &Call, stated: Option<&Stated>, why: &str) -> Box<Diagnostic> {
        let number = why.strip_prefix("operand ").and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
        let operand = number.and_then(|n| call.operands.get(n)).map(|(_, range)| range.clone());
        let of_shape = stated.filter(|_| takes_shape(call.op) && operand.is_none()).map(|s| s.range.clone());
        let range = operand.or(of_shape).unwrap_or(call.range.clone());
        let mut fault = self.cursor.fault(codes::TEXT_OPERATION, range, format!("`{}`: {why}", call.op.name()));
        if takes_shape(call.op) && stated.is_none() {
            fault.help = "write the type and shape of the value: `name: type[shape] = ...`".into();
        }
        fault
    }

    /// Ranks and dimensions that inference makes are bounded too.
    fn check_size(&mut self, call: &Call, value: Value) -> Read<()> {
        self.check_dims(call.range.clone())?;
        if self.builder.dims_of(value).len() > limits::RANK {
            return Err(self.cursor.too_large("the rank of a value", limits::RANK, call.range.clone()));
        }
        Ok(())
    }

    fn check_stated(&self, value: Value, stated: &Stated, shape: Option<Shape>) -> Read<()> {
        let found = (self.builder.ty(value), self.builder.shape(value));
        if (stated.ty, shape) == (found.0, Some(found.1)) {
            return Ok(());
        }
        let message = "a value has another type or shape than the text states";
        let text = |ty: Type, dims: &[Dim]| {
            format!("{}{}", ty.name(), super::dims::shape_text(self.builder.dims.columns().0, dims))
        };
        let fault = self.cursor.fault(codes::TEXT_TYPE, stated.range.clone(), message);
        let wanted = text(found.0, self.builder.dims.of(found.1));
        Err(Box::new(fault.wanted(wanted, text(stated.ty, &stated.shape))))
    }
}

/// Whether the operation's shape is the one that is stated.
fn takes_shape(op: Op) -> bool {
    matches!(op, Op::Iota | Op::Reshape | Op::Slice | Op::Broadcast | Op::TopK)
}
