//! The value graph: the whole step as a pure function of tokens, step scalars, weights and state.
//!
//! Values are rows of struct-of-arrays tables; the id order is the schedule order, operands come first. A state is
//! read as it is when the step begins; each write gives a new version, each version is written once at the most, and no
//! value behind a write uses the version that it replaced, so that states are updated in place.

use crate::dim::{Bounds, Dim, DimRow, Shape, Step, dim_max, dim_value};
use crate::entity::Run;
use crate::op::{Op, Type};
use crate::scalar::{BodyRow, ScalarRow};

crate::entities! {
    /// A value.
    Value = "v";
    /// A tensor of the checkpoint.
    Weight = "w";
    /// A table computed by the compiler (rope frequencies).
    Constant = "c";
    /// A state that outlives the step.
    State = "st";
    /// A string.
    Name = "n";
    /// A function of the front end, such as `layer.17.ffn.hc_pre`: a path of names.
    Span = "sp";
}

/// A tensor of the checkpoint as the graph sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct WeightRow {
    /// Name, unique among weights.
    pub name: Name,
    /// A weight type.
    pub ty: Type,
    /// Constant dimensions, slowest first.
    pub shape: Shape,
}

/// A table computed by the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct ConstantRow {
    /// Name, unique among constants.
    pub name: Name,
    /// f32 or i32.
    pub ty: Type,
    /// Constant dimensions.
    pub shape: Shape,
    /// The elements' bits in `constant_words`.
    pub words: Run,
}

/// A state that outlives the step. All elements are +0.0 at the beginning of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct StateRow {
    /// Name, unique among states.
    pub name: Name,
    /// f32.
    pub ty: Type,
    /// Constant dimensions; rows are along the first.
    pub shape: Shape,
}

/// A function of the front end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct SpanRow {
    /// The span that this one is part of; the root is its own parent and has an empty name.
    pub parent: Span,
    /// Last segment of the path.
    pub name: Name,
}

/// A value under a name: taps and outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct NamedRow {
    /// Full name, such as `layer.3.route.ids`.
    pub name: Name,
    /// The value.
    pub value: Value,
}

crate::tables! {
    /// A graph as a pass builds it. [`crate::build::Builder`] keeps the tables consistent.
    owned GraphTables;
    /// A graph as every reader takes it.
    view Graph;
    /// Dimensions.
    100 dims: DimRow;
    /// Pool of the shapes.
    101 shape_dims: Dim;
    /// Shapes.
    102 shapes: Run;
    /// Scalar nodes.
    103 scalars: ScalarRow;
    /// Scalar bodies.
    104 bodies: BodyRow;
    /// Pool of the bodies' parameter types.
    105 body_params: u32;
    /// Operation of each value, an [`Op`] number.
    110 value_op: u32;
    /// Type of each value.
    111 value_type: Type;
    /// Shape of each value.
    112 value_shape: Shape;
    /// Operands of each value in `args`.
    113 value_args: Run;
    /// Attributes of each value in `attrs`.
    114 value_attrs: Run;
    /// Span of each value.
    115 value_span: Span;
    /// Pool of operands.
    116 args: Value;
    /// Pool of attributes.
    117 attrs: u32;
    /// Tensors of the checkpoint.
    120 weights: WeightRow;
    /// Tables of the compiler.
    121 constants: ConstantRow;
    /// Bits of the constants.
    122 constant_words: u32;
    /// States.
    123 states: StateRow;
    /// Spans; the first is the root.
    124 spans: SpanRow;
    /// Named values, in the order of their naming.
    125 named: NamedRow;
    /// Outputs of the step besides the states' last versions.
    126 outputs: NamedRow;
    /// Strings in `text`.
    127 names: Run;
    /// UTF-8 text of all strings.
    128 text: u8;
}

impl<'a> Graph<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.value_op.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.value_op.is_empty()
    }

    /// All values in schedule order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = Value> + use<> {
        (0..self.len() as u32).map(Value)
    }

    /// The operation of a value.
    pub fn op(&self, v: Value) -> Op {
        Op::from_number(self.value_op[v.0 as usize]).expect("a verified value has a known operation")
    }

    /// The type of a value.
    pub fn ty(&self, v: Value) -> Type {
        self.value_type[v.0 as usize]
    }

    /// The operands of a value.
    pub fn args(&self, v: Value) -> &'a [Value] {
        self.value_args[v.0 as usize].of(self.args)
    }

    /// The attributes of a value.
    pub fn attrs(&self, v: Value) -> &'a [u32] {
        self.value_attrs[v.0 as usize].of(self.attrs)
    }

    /// The dimensions of a value.
    pub fn dims_of(&self, v: Value) -> &'a [Dim] {
        self.shape(self.value_shape[v.0 as usize])
    }

    /// The dimensions of a shape.
    pub fn shape(&self, shape: Shape) -> &'a [Dim] {
        self.shapes[shape.0 as usize].of(self.shape_dims)
    }

    /// The extents of a shape in one step.
    pub fn extents(&self, shape: Shape, step: Step) -> Vec<usize> {
        self.shape(shape).iter().map(|&d| dim_value(self.dims, d, step) as usize).collect()
    }

    /// The largest extents of a shape at an entry point.
    pub fn max_extents(&self, shape: Shape, bounds: Bounds) -> Vec<usize> {
        self.shape(shape).iter().map(|&d| dim_max(self.dims, d, bounds) as usize).collect()
    }

    /// A string.
    pub fn name(&self, name: Name) -> &'a str {
        std::str::from_utf8(self.names[name.0 as usize].of(self.text)).unwrap_or("\u{fffd}")
    }

    /// The path of a span, `layer.17.ffn.hc_pre`; empty for the root.
    pub fn span_path(&self, span: Span) -> String {
        let mut segments = Vec::new();
        let mut at = span;
        while self.spans[at.0 as usize].parent != at {
            segments.push(self.name(self.spans[at.0 as usize].name));
            at = self.spans[at.0 as usize].parent;
        }
        segments.reverse();
        segments.join(".")
    }

    /// The value of an output by name.
    pub fn output(&self, name: &str) -> Option<Value> {
        self.outputs.iter().find(|row| self.name(row.name) == name).map(|row| row.value)
    }

    /// The state that a state-typed value is a version of: follows writes to the read.
    pub fn state_of(&self, v: Value) -> Option<State> {
        let mut at = v;
        loop {
            match self.op(at) {
                Op::Read => return Some(State(self.attrs(at)[0])),
                Op::Write => at = self.args(at)[0],
                _ => return None,
            }
        }
    }
}
