//! Reading the statements of a text into a builder.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::bodies::Maker;
use super::cursor::{Cursor, Read};
use super::dims::{Reader, extend_node_counts};
use super::lexer::Kind;
use super::limits;
use super::literal::Literal;
use super::names::path;
use super::scalars::{Definition, block, expression, integer, scalar_type};
use crate::diagnostic::codes;
use crate::graph::{GraphTables, Span};
use crate::op::Op;
use crate::scalar::Body;
use crate::{Builder, Diagnostic, Dim, Type, Value};

/// Reads a text; `file` is its name in diagnostics, which point at the first thing that is wrong.
///
/// Every value is made by [`Builder::value`]: a text that parses is well-typed. A value that repeats an earlier one is
/// that value, so that two names of a text may mean one row.
pub fn parse(text: &str, file: &str) -> Result<GraphTables, Diagnostic> {
    read(text, file).map_err(|fault| *fault)
}

fn read(text: &str, file: &str) -> Read<GraphTables> {
    let mut parser = Parser {
        cursor: Cursor::new(text, file)?,
        builder: Builder::new(),
        dims: HashMap::new(),
        dim_nodes: Vec::new(),
        leaves: HashMap::new(),
        leaf_counts: HashMap::new(),
        listed_paths: HashMap::new(),
        bodies: HashMap::new(),
        values: HashMap::new(),
        named: HashSet::new(),
    };
    while parser.cursor.peek().kind != Kind::End {
        parser.statement()?;
        parser.cursor.line_end()?;
    }
    Ok(parser.builder.finish())
}

/// What the statements so far have made.
pub(super) struct Parser<'t> {
    pub cursor: Cursor<'t>,
    pub builder: Builder,
    dims: HashMap<String, Dim>,
    /// Sizes of the dimensions when written out, to bound them.
    dim_nodes: Vec<u32>,
    /// Weights, constants and states by their operation and name.
    leaves: HashMap<(Op, String), u32>,
    leaf_counts: HashMap<Op, u32>,
    /// Segments of the listed spans by their dotted text; the first of a text counts.
    listed_paths: HashMap<String, Vec<String>>,
    pub bodies: HashMap<String, Body>,
    pub values: HashMap<&'t str, Value>,
    /// Taps and outputs by keyword and name.
    named: HashSet<(&'static str, String)>,
}

impl<'t> Parser<'t> {
    fn statement(&mut self) -> Read<()> {
        let second = self.cursor.peek_second();
        let is_value = !second.first && matches!(second.kind, Kind::Mark(b':' | b'='));
        if self.cursor.peek().kind != Kind::Word {
            return Err(self.cursor.unexpected("a statement"));
        }
        if is_value {
            return self.value();
        }
        let token = self.cursor.next();
        match self.cursor.text_of(token) {
            "dims" => self.list(|parser| parser.dim().map(drop)),
            "dim" => self.named_dim(),
            "shapes" => self.list(|parser| parser.listed_shape()),
            "names" => self.list(|parser| parser.listed_name()),
            "spans" => self.list(|parser| parser.listed_span()),
            "weight" => self.weight(),
            "constant" => self.constant(),
            "state" => self.state(),
            "order" => self.list(|parser| parser.listed_scalar()),
            "body" => self.body(),
            "tap" => self.name_value("tap"),
            "output" => self.name_value("output"),
            word => {
                let mut fault = self.cursor.unknown("statement", word, token.range());
                fault.help = "a value is written `name: type[shape] = operation operands`".into();
                Err(fault)
            }
        }
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        item(self)?;
        while !self.cursor.at_line_end() && self.cursor.take_mark(b',') {
            item(self)?;
        }
        Ok(())
    }

    /// A dimension, of bounded size.
    pub fn dim(&mut self) -> Read<Dim> {
        let start = self.cursor.peek().start;
        let dim = Reader { cursor: &mut self.cursor, dims: &mut self.builder.dims, named: &self.dims }.dim(0)?;
        self.check_dims(start..self.cursor.end_of_last())?;
        Ok(dim)
    }

    /// A shape, of bounded rank and dimensions.
    pub fn shape(&mut self) -> Read<Vec<Dim>> {
        let start = self.cursor.peek().start;
        let shape = Reader { cursor: &mut self.cursor, dims: &mut self.builder.dims, named: &self.dims }.shape()?;
        self.check_dims(start..self.cursor.end_of_last())?;
        Ok(shape)
    }

    /// Fails if a dimension made since the last call is too large; everything that evaluates one walks all of it.
    pub fn check_dims(&mut self, range: Range<usize>) -> Read<()> {
        let before = self.dim_nodes.len();
        extend_node_counts(self.builder.dims.columns().0, &mut self.dim_nodes);
        if self.dim_nodes[before..].iter().any(|&n| n > limits::DIM_NODES) {
            return Err(self.cursor.too_large("the size of a dimension", limits::DIM_NODES as usize, range));
        }
        Ok(())
    }

    fn named_dim(&mut self) -> Read<()> {
        let (name, range) = self.cursor.word("the name of a dimension")?;
        self.cursor.mark(b'=')?;
        let dim = self.dim()?;
        let is_builtin = matches!(name, "position" | "columns" | "outputs" | "completed");
        if is_builtin || self.dims.insert(name.into(), dim).is_some() {
            return Err(self.cursor.duplicate("dimension", name, range));
        }
        Ok(())
    }

    fn listed_shape(&mut self) -> Read<()> {
        let shape = self.shape()?;
        self.builder.dims.shape(&shape);
        Ok(())
    }

    fn listed_name(&mut self) -> Read<()> {
        let (name, _) = self.cursor.name("a name")?;
        self.builder.name(&name);
        Ok(())
    }

    fn listed_span(&mut self) -> Read<()> {
        let path = path(&mut self.cursor)?;
        self.enter(&path);
        self.builder.leave(Span(0));
        self.listed_paths.entry(path.join(".")).or_insert(path);
        Ok(())
    }

    /// The path of a value: a listed one by its dotted text, or segments.
    pub fn value_path(&mut self) -> Read<Vec<String>> {
        let token = self.cursor.peek();
        let second = self.cursor.peek_second();
        let is_single = token.kind == Kind::Word && (second.first || second.kind != Kind::Mark(b'/'));
        match self.listed_paths.get(self.cursor.text_of(token)).filter(|_| is_single) {
            Some(path) => {
                let path = path.clone();
                self.cursor.next();
                Ok(path)
            }
            None => path(&mut self.cursor),
        }
    }

    /// Enters the span of a path below the root.
    pub fn enter(&mut self, path: &[String]) {
        for segment in path {
            self.builder.enter(segment);
        }
    }

    fn listed_scalar(&mut self) -> Read<()> {
        let expression = expression(&mut self.cursor, 0)?;
        Maker::new(&self.cursor, &mut self.builder.scalars, None).scalar(&expression)?;
        Ok(())
    }

    fn weight(&mut self) -> Read<()> {
        let (name, ty, extents) = self.leaf(Op::Weight, |ty| ty.format().is_some(), "a weight type such as w.q4_k")?;
        self.builder.add_weight(&name, ty, &extents);
        Ok(())
    }

    fn state(&mut self) -> Read<()> {
        let (name, ty, extents) = self.leaf(Op::Read, |ty| ty == Type::F32, "f32")?;
        self.builder.add_state(&name, ty, &extents);
        Ok(())
    }

    fn constant(&mut self) -> Read<()> {
        let (name, ty, extents) = self.leaf(Op::Const, |ty| ty == Type::F32 || ty == Type::I32, "f32 or i32")?;
        self.cursor.mark(b'=')?;
        let words = self.words(ty, &extents)?;
        self.builder.add_constant(&name, ty, &extents, &words);
        Ok(())
    }

    /// `name: type[extents]` of a table of leaves, whose rows are in the order of their statements.
    fn leaf(&mut self, op: Op, fits: impl Fn(Type) -> bool, wanted: &str) -> Read<(String, Type, Vec<u32>)> {
        let (name, range) = self.cursor.name("a name")?;
        let id = self.leaf_counts.entry(op).or_default();
        if self.leaves.insert((op, name.clone()), *id).is_some() {
            return Err(self.cursor.duplicate(leaf_noun(op), &name, range));
        }
        *id += 1;
        self.cursor.mark(b':')?;
        let (ty, range) = self.ty()?;
        if !fits(ty) {
            let fault = self.cursor.fault(codes::TEXT_TYPE, range, format!("a {} has another type", leaf_noun(op)));
            return Err(Box::new(fault.wanted(wanted, ty.name())));
        }
        let start = self.cursor.peek().start;
        let shape = self.shape()?;
        let extents: Option<Vec<u32>> = shape.iter().map(|&d| self.builder.dims.constant(d)).collect();
        let Some(extents) = extents else {
            let range = start..self.cursor.end_of_last();
            let message = format!("the extents of a {} are constants", leaf_noun(op));
            return Err(self.cursor.fault(codes::TEXT_TYPE, range, message));
        };
        Ok((name, ty, extents))
    }

    /// The id of a weight, constant or state that is named here.
    pub fn leaf_id(&mut self, op: Op) -> Read<u32> {
        let wanted = format!("the name of a {}", leaf_noun(op));
        if self.cursor.at_line_end() {
            return Err(self.cursor.unexpected(&wanted));
        }
        let (name, range) = self.cursor.name(&wanted)?;
        let key = (op, name);
        let id = self.leaves.get(&key).copied();
        id.ok_or_else(|| self.cursor.unknown(leaf_noun(op), &key.1, range))
    }

    /// The name of a type.
    pub fn ty(&mut self) -> Read<(Type, Range<usize>)> {
        let (name, range) = self.cursor.word("a type")?;
        match Type::from_name(name) {
            Some(ty) => Ok((ty, range)),
            None => {
                let mut fault = self.cursor.unknown("type", name, range);
                fault.help = "types are f32, i32, id, q8 and the weight types such as w.q4_k".into();
                Err(fault)
            }
        }
    }

    /// `[element ...]`, as many as the shape has.
    fn words(&mut self, ty: Type, extents: &[u32]) -> Read<Vec<u32>> {
        let start = self.cursor.peek().start;
        self.cursor.mark(b'[')?;
        let mut words = Vec::new();
        while !self.cursor.is_mark(b']') {
            words.push(self.element(ty)?);
            self.cursor.take_mark(b',');
        }
        self.cursor.mark(b']')?;
        let wanted = extents.iter().try_fold(1u64, |n, &extent| n.checked_mul(extent.into()));
        if wanted != Some(words.len() as u64) {
            let range = start..self.cursor.end_of_last();
            let fault = self.cursor.fault(codes::TEXT_TYPE, range, "a constant has another number of elements");
            let wanted = wanted.map_or("more than 2^64".into(), |n| n.to_string());
            return Err(Box::new(fault.wanted(wanted, words.len())));
        }
        Ok(words)
    }

    /// The bits of an element: `0x3f800000`, for floats also `1.0`, for integers also `-1`.
    fn element(&mut self, ty: Type) -> Read<u32> {
        let start = self.cursor.peek().start;
        let is_negative = self.cursor.take_mark(b'-');
        let (literal, range) = self.cursor.literal("an element")?;
        let word = match literal {
            Literal::Float(value) if ty == Type::F32 => Some(if is_negative { -value } else { value }.to_bits()),
            Literal::Bits(_) | Literal::Decimal(_) if ty == Type::I32 => {
                integer(literal, is_negative).map(|n| n as u32)
            }
            Literal::Bits(bits) if !is_negative => u32::try_from(bits).ok(),
            _ => None,
        };
        word.ok_or_else(|| {
            let message =
                format!("an element is not {}", if ty == Type::F32 { "a float or its bits" } else { "an i32" });
            self.cursor.fault(codes::TEXT_NUMBER, start..range.end, message)
        })
    }

    fn body(&mut self) -> Read<()> {
        let (name, range) = self.cursor.word("the name of a body")?;
        let params = self.params()?;
        let definition = if self.cursor.take_mark(b'=') {
            Definition { named: Vec::new(), result: expression(&mut self.cursor, 0)? }
        } else {
            block(&mut self.cursor)?
        };
        let body = Maker::new(&self.cursor, &mut self.builder.scalars, Some(&params)).body(&definition)?;
        if self.bodies.insert(name.into(), body).is_some() {
            return Err(self.cursor.duplicate("body", name, range));
        }
        Ok(())
    }

    /// `(type, ...)`
    fn params(&mut self) -> Read<Vec<crate::ScalarType>> {
        let start = self.cursor.peek().start;
        self.cursor.mark(b'(')?;
        let mut params = Vec::new();
        while !self.cursor.is_mark(b')') {
            params.push(scalar_type(&mut self.cursor)?);
            if params.len() > limits::PARAMETERS {
                let range = start..self.cursor.end_of_last();
                return Err(self.cursor.too_large("the parameters of a body", limits::PARAMETERS, range));
            }
            if !self.cursor.take_mark(b',') {
                break;
            }
        }
        self.cursor.mark(b')')?;
        Ok(params)
    }

    /// `tap name = value`, `output name = value`
    fn name_value(&mut self, keyword: &'static str) -> Read<()> {
        let (name, range) = self.cursor.name("a name")?;
        self.cursor.mark(b'=')?;
        let (value, _) = self.operand()?;
        if !self.named.insert((keyword, name.clone())) {
            return Err(self.cursor.duplicate(keyword, &name, range));
        }
        match keyword {
            "tap" => self.builder.tap(&name, value),
            _ => self.builder.output(&name, value),
        }
        Ok(())
    }
}

fn leaf_noun(op: Op) -> &'static str {
    match op {
        Op::Weight => "weight",
        Op::Const => "constant",
        _ => "state",
    }
}
