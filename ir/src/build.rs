//! Building graphs: hash-consed values, checked as they are made.

use std::collections::HashMap;

use crate::dim::{Dim, DimOp, Dims, Shape};
use crate::entity::Run;
use crate::graph::{
    Constant, ConstantRow, GraphTables, Name, NamedRow, Span, SpanRow, State, StateRow, Value, Weight, WeightRow,
};
use crate::infer::{Leaves, Operand, infer};
use crate::op::{Op, ReduceKind, Type};
use crate::scalar::{Body, ScalarType, Scalars};
use crate::tree::Tree;

type Key = (Op, Shape, Vec<Value>, Vec<u32>);

/// Builds a [`GraphTables`]. Values are checked by [`infer`] when they are made and hash-consed: the same operation on
/// the same operands is the same value, whose span is that of its first making.
pub struct Builder {
    tables: GraphTables,
    /// Dimensions and shapes.
    pub dims: Dims,
    /// Scalar nodes and bodies.
    pub scalars: Scalars,
    values: HashMap<Key, Value>,
    names: HashMap<String, Name>,
    spans: HashMap<SpanRow, Span>,
    span: Span,
}

/// What inference sees of a builder's tables.
struct Known<'a> {
    tables: &'a GraphTables,
    scalars: &'a Scalars,
}

impl Leaves for Known<'_> {
    fn leaf(&self, op: Op, id: u32) -> Option<Operand> {
        let id = id as usize;
        match op {
            Op::Weight => self.tables.weights.get(id).map(|w| (w.ty, w.shape)),
            Op::Const => self.tables.constants.get(id).map(|c| (c.ty, c.shape)),
            Op::Read => self.tables.states.get(id).map(|s| (s.ty, s.shape)),
            _ => None,
        }
    }

    fn body(&self, body: Body) -> Option<(Vec<ScalarType>, ScalarType)> {
        if body.0 as usize >= self.scalars.columns().1.len() {
            return None;
        }
        let (params, result) = self.scalars.of(body);
        Some((params, self.scalars.ty(result)))
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty graph with a root span.
    pub fn new() -> Builder {
        let mut builder = Builder {
            tables: GraphTables::default(),
            dims: Dims::default(),
            scalars: Scalars::default(),
            values: HashMap::new(),
            names: HashMap::new(),
            spans: HashMap::new(),
            span: Span(0),
        };
        let name = builder.name("");
        builder.tables.spans.push(SpanRow { parent: Span(0), name });
        builder
    }

    /// The finished tables.
    pub fn finish(mut self) -> GraphTables {
        let (dims, pool, shapes) = self.dims.columns();
        self.tables.dims = dims.to_vec();
        self.tables.shape_dims = pool.to_vec();
        self.tables.shapes = shapes.to_vec();
        let (scalars, bodies, params) = self.scalars.columns();
        self.tables.scalars = scalars.to_vec();
        self.tables.bodies = bodies.to_vec();
        self.tables.body_params = params.to_vec();
        self.tables
    }

    /// The id of a string.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.names.get(text) {
            return name;
        }
        let name = Name(self.tables.names.len() as u32);
        self.tables.names.push(Run::push(&mut self.tables.text, text.as_bytes()));
        self.names.insert(text.to_string(), name);
        name
    }

    /// Enters a span below the current one and gives the one to return to.
    pub fn enter(&mut self, name: &str) -> Span {
        let row = SpanRow { parent: self.span, name: self.name(name) };
        let outer = self.span;
        self.span = match self.spans.get(&row) {
            Some(&span) => span,
            None => {
                let span = Span(self.tables.spans.len() as u32);
                self.tables.spans.push(row);
                self.spans.insert(row, span);
                span
            }
        };
        outer
    }

    /// Returns to a span that [`Builder::enter`] gave.
    pub fn leave(&mut self, span: Span) {
        self.span = span;
    }

    /// Runs `body` inside a span.
    pub fn within<R>(&mut self, name: &str, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.enter(name);
        let result = body(self);
        self.leave(outer);
        result
    }

    /// Makes a value, or says what does not fit. `shape` is needed where attributes do not determine it.
    pub fn value(&mut self, op: Op, args: &[Value], attrs: &[u32], shape: Option<Shape>) -> Result<Value, String> {
        if let Some(missing) = args.iter().find(|v| v.0 as usize >= self.tables.value_op.len()) {
            return Err(format!("{missing} does not exist"));
        }
        let operands: Vec<Operand> = args.iter().map(|&v| (self.ty(v), self.shape(v))).collect();
        let known = Known { tables: &self.tables, scalars: &self.scalars };
        let (ty, shape) = infer(&mut self.dims, &known, op, &operands, attrs, shape)?;
        let key = (op, shape, args.to_vec(), attrs.to_vec());
        if let Some(&value) = self.values.get(&key) {
            return Ok(value);
        }
        let t = &mut self.tables;
        let value = Value(t.value_op.len() as u32);
        t.value_op.push(op as u32);
        t.value_type.push(ty);
        t.value_shape.push(shape);
        t.value_args.push(Run::push(&mut t.args, args));
        t.value_attrs.push(Run::push(&mut t.attrs, attrs));
        t.value_span.push(self.span);
        self.values.insert(key, value);
        Ok(value)
    }

    /// [`Builder::value`] for front ends, whose graphs are well-typed by construction.
    fn made(&mut self, op: Op, args: &[Value], attrs: &[u32], shape: Option<Shape>) -> Value {
        match self.value(op, args, attrs, shape) {
            Ok(value) => value,
            Err(fault) => {
                let path = self.tables.view().span_path(self.span);
                panic!("invariant: a front end makes well-typed values; in `{path}`: {fault}")
            }
        }
    }

    /// The type of a value.
    pub fn ty(&self, v: Value) -> Type {
        self.tables.value_type[v.0 as usize]
    }

    /// The shape of a value.
    pub fn shape(&self, v: Value) -> Shape {
        self.tables.value_shape[v.0 as usize]
    }

    /// The dimensions of a value.
    pub fn dims_of(&self, v: Value) -> Vec<Dim> {
        self.dims.of(self.shape(v)).to_vec()
    }

    /// Adds a tensor of the checkpoint; `name` is unique.
    pub fn add_weight(&mut self, name: &str, ty: Type, shape: &[u32]) -> Weight {
        let shape = self.constant_shape(shape);
        let name = self.name(name);
        self.tables.weights.push(WeightRow { name, ty, shape });
        Weight(self.tables.weights.len() as u32 - 1)
    }

    /// Adds a table of the compiler; `words` are the elements' bits.
    pub fn add_constant(&mut self, name: &str, ty: Type, shape: &[u32], words: &[u32]) -> Constant {
        let shape = self.constant_shape(shape);
        let name = self.name(name);
        let words = Run::push(&mut self.tables.constant_words, words);
        self.tables.constants.push(ConstantRow { name, ty, shape, words });
        Constant(self.tables.constants.len() as u32 - 1)
    }

    /// Adds a state.
    pub fn add_state(&mut self, name: &str, ty: Type, shape: &[u32]) -> State {
        let shape = self.constant_shape(shape);
        let name = self.name(name);
        self.tables.states.push(StateRow { name, ty, shape });
        State(self.tables.states.len() as u32 - 1)
    }

    /// Names a value for taps; the first name of a name wins nothing: names are unique by construction.
    pub fn tap(&mut self, name: &str, value: Value) {
        let name = self.name(name);
        self.tables.named.push(NamedRow { name, value });
    }

    /// Declares an output of the step.
    pub fn output(&mut self, name: &str, value: Value) {
        let name = self.name(name);
        self.tables.outputs.push(NamedRow { name, value });
    }

    fn constant_shape(&mut self, extents: &[u32]) -> Shape {
        let dims: Vec<Dim> = extents.iter().map(|&n| self.dims.number(n)).collect();
        self.dims.shape(&dims)
    }

    /// A constant dimension.
    pub fn n(&mut self, n: u32) -> Dim {
        self.dims.number(n)
    }

    /// The number of columns.
    pub fn columns(&mut self) -> Dim {
        self.dims.dim(DimOp::Columns)
    }

    /// `weight`
    pub fn weight(&mut self, weight: Weight) -> Value {
        self.made(Op::Weight, &[], &[weight.0], None)
    }

    /// `const`
    pub fn constant(&mut self, constant: Constant) -> Value {
        self.made(Op::Const, &[], &[constant.0], None)
    }

    /// `tokens`
    pub fn tokens(&mut self) -> Value {
        self.made(Op::Tokens, &[], &[], None)
    }

    /// `extent`
    pub fn extent(&mut self, dim: Dim) -> Value {
        self.made(Op::Extent, &[], &[dim.0], None)
    }

    /// `iota` of a shape along an axis.
    pub fn iota(&mut self, shape: &[Dim], axis: u32) -> Value {
        let shape = self.dims.shape(shape);
        self.made(Op::Iota, &[], &[axis], Some(shape))
    }

    /// `map`
    pub fn map(&mut self, body: Body, args: &[Value]) -> Value {
        self.made(Op::Map, args, &[body.0], None)
    }

    /// `reduce`, with the leaves masked where `mask` is given.
    pub fn reduce(&mut self, kind: ReduceKind, tree: Tree, axis: u32, x: Value, mask: Option<Value>) -> Value {
        let args: Vec<Value> = [Some(x), mask].into_iter().flatten().collect();
        self.made(Op::Reduce, &args, &[kind as u32, tree.number(), axis], None)
    }

    /// `product`
    pub fn product(&mut self, tree: Tree, x: Value, w: Value, mask: Option<Value>) -> Value {
        let args: Vec<Value> = [Some(x), Some(w), mask].into_iter().flatten().collect();
        self.made(Op::Product, &args, &[tree.number()], None)
    }

    /// `quantise`
    pub fn quantise(&mut self, x: Value) -> Value {
        self.made(Op::Quantise, &[x], &[], None)
    }

    /// `widen`
    pub fn widen(&mut self, x: Value) -> Value {
        self.made(Op::Widen, &[x], &[], None)
    }

    /// `reshape`; the value itself where the shape is the same.
    pub fn reshape(&mut self, x: Value, shape: &[Dim]) -> Value {
        let shape = self.dims.shape(shape);
        if shape == self.shape(x) {
            return x;
        }
        self.made(Op::Reshape, &[x], &[], Some(shape))
    }

    /// `slice` of `extent` elements from `start` along `axis`.
    pub fn slice(&mut self, x: Value, axis: u32, start: Dim, extent: Dim) -> Value {
        let mut dims = self.dims_of(x);
        if dims[axis as usize] == extent && self.dims.constant(start) == Some(0) {
            return x;
        }
        dims[axis as usize] = extent;
        let shape = self.dims.shape(&dims);
        self.made(Op::Slice, &[x], &[axis, start.0], Some(shape))
    }

    /// `slice` with constant bounds.
    pub fn cut(&mut self, x: Value, axis: u32, start: u32, extent: u32) -> Value {
        let (start, extent) = (self.n(start), self.n(extent));
        self.slice(x, axis, start, extent)
    }

    /// `permute`
    pub fn permute(&mut self, x: Value, axes: &[u32]) -> Value {
        self.made(Op::Permute, &[x], axes, None)
    }

    /// `broadcast`; the value itself where the shape is the same.
    pub fn broadcast(&mut self, x: Value, shape: &[Dim]) -> Value {
        let shape = self.dims.shape(shape);
        if shape == self.shape(x) {
            return x;
        }
        self.made(Op::Broadcast, &[x], &[], Some(shape))
    }

    /// `concat`
    pub fn concat(&mut self, axis: u32, parts: &[Value]) -> Value {
        if let [only] = parts {
            return *only;
        }
        self.made(Op::Concat, parts, &[axis], None)
    }

    /// `gather`
    pub fn gather(&mut self, axis: u32, batch: u32, source: Value, ids: Value) -> Value {
        self.made(Op::Gather, &[source, ids], &[axis, batch], None)
    }

    /// `top_k` of the last axis.
    pub fn top_k(&mut self, k: u32, keys: Value, candidates: Option<Value>) -> Value {
        let mut dims = self.dims_of(keys);
        let last = dims.len() - 1;
        dims[last] = self.n(k);
        let shape = self.dims.shape(&dims);
        let args: Vec<Value> = [Some(keys), candidates].into_iter().flatten().collect();
        self.made(Op::TopK, &args, &[], Some(shape))
    }

    /// `arg_max`
    pub fn arg_max(&mut self, x: Value) -> Value {
        self.made(Op::ArgMax, &[x], &[], None)
    }

    /// `sort_ids`
    pub fn sort_ids(&mut self, ids: Value) -> Value {
        self.made(Op::SortIds, &[ids], &[], None)
    }

    /// `read`
    pub fn read(&mut self, state: State) -> Value {
        self.made(Op::Read, &[], &[state.0], None)
    }

    /// `write`
    pub fn write(&mut self, state: Value, ids: Value, rows: Value) -> Value {
        self.made(Op::Write, &[state, ids, rows], &[], None)
    }
}
