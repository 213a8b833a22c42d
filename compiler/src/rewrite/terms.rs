//! The table of terms that a certificate holds, while it grows.

use std::collections::HashMap;

use ds4_ir::certificate::{CertificateTables, Reason};
use ds4_ir::dim::Dims;
use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, Span};
use ds4_ir::infer::{Leaves, Operand, infer};
use ds4_ir::rules::value::{Bodies, Labels};
use ds4_ir::scalar::{Body, ScalarType, Scalars};
use ds4_ir::{Op, Shape, Type, Value};

use super::explain::{Lemmas, Rows};

/// A value before its operands: label of the search's nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    /// Operation.
    pub op: Op,
    /// Type.
    pub ty: Type,
    /// Shape.
    pub shape: Shape,
    /// Attributes.
    pub attrs: Vec<u32>,
    /// The value of another block that stands here as it is.
    pub outside: Option<Value>,
}

type Key = (Op, Shape, Vec<Value>, Vec<u32>);

/// Terms, hash-consed, with labels, dimensions and bodies.
pub struct Terms {
    /// The certificate so far.
    pub certificate: CertificateTables,
    /// Dimensions.
    pub dims: Dims,
    /// Scalars and bodies.
    pub scalars: Scalars,
    labels: Vec<Label>,
    label_ids: HashMap<Label, u32>,
    values: HashMap<Key, Value>,
    /// The attributes of leaves that are in the source graph already.
    leaves: HashMap<(Op, u32), Operand>,
}

impl Terms {
    /// The terms of a verified graph; lemmas say where two of its values are the same.
    pub fn new(graph: &Graph<'_>, lemmas: &mut Lemmas) -> Terms {
        let mut terms = Terms {
            certificate: CertificateTables { source: vec![graph.len() as u32], ..CertificateTables::default() },
            dims: Dims::from_columns(graph.dims, graph.shape_dims, graph.shapes),
            scalars: Scalars::from_columns(graph.scalars, graph.bodies, graph.body_params),
            labels: vec![],
            label_ids: HashMap::new(),
            values: HashMap::new(),
            leaves: HashMap::new(),
        };
        terms.certificate.source_named = graph.named.to_vec();
        terms.certificate.source_outputs = graph.outputs.to_vec();
        for v in graph.values() {
            let label = terms.label(label_of(graph, v));
            let span = graph.value_span[v.0 as usize];
            let new = terms.push(label, graph.args(v), span);
            let first = *terms.values.entry(terms.key(label, graph.args(v))).or_insert(new);
            lemmas.add(new.0, first.0, Reason::CONGRUENCE);
            if let (true, Some(&id)) = (graph.op(v).is_leaf(), graph.attrs(v).first()) {
                terms.leaves.insert((graph.op(v), id), (graph.ty(v), graph.value_shape[v.0 as usize]));
            }
        }
        terms
    }

    /// The id of a label.
    pub fn label(&mut self, label: Label) -> u32 {
        if let Some(&id) = self.label_ids.get(&label) {
            return id;
        }
        let id = self.labels.len() as u32;
        self.labels.push(label.clone());
        self.label_ids.insert(label, id);
        id
    }

    /// A label.
    pub fn of(&self, label: u32) -> &Label {
        &self.labels[label as usize]
    }

    /// The label of an operation on operands of these labels; nothing if it has no type.
    pub fn inferred(&mut self, op: Op, args: &[u32], attrs: Vec<u32>, shape: Option<Shape>) -> Option<u32> {
        let operands: Vec<Operand> = args.iter().map(|&arg| (self.of(arg).ty, self.of(arg).shape)).collect();
        let known = Known { leaves: &self.leaves, bodies: Bodies(&self.scalars) };
        let (ty, shape) = infer(&mut self.dims, &known, op, &operands, &attrs, shape).ok()?;
        Some(self.label(Label { op, ty, shape, attrs, outside: None }))
    }

    fn key(&self, label: u32, args: &[Value]) -> Key {
        let label = self.of(label);
        (label.op, label.shape, args.to_vec(), label.attrs.clone())
    }

    fn push(&mut self, label: u32, args: &[Value], span: Span) -> Value {
        let Label { op, ty, shape, ref attrs, .. } = self.labels[label as usize];
        let c = &mut self.certificate;
        c.term_op.push(op as u32);
        c.term_type.push(ty);
        c.term_shape.push(shape);
        c.term_args.push(Run::push(&mut c.args, args));
        c.term_attrs.push(Run::push(&mut c.attrs, attrs));
        c.term_span.push(span);
        Value(c.term_op.len() as u32 - 1)
    }

    /// The term of a label on terms.
    pub fn value(&mut self, label: u32, args: &[Value]) -> Value {
        if let Some(outside) = self.of(label).outside {
            return outside;
        }
        let key = self.key(label, args);
        if let Some(&value) = self.values.get(&key) {
            return value;
        }
        let value = self.push(label, args, Span(0));
        self.values.insert(key, value);
        value
    }

    /// Operands of a term.
    pub fn args(&self, term: Value) -> &[Value] {
        self.certificate.term_args[term.0 as usize].of(&self.certificate.args)
    }
}

impl Rows for Terms {
    fn row(&mut self, label: u32, children: &[u32]) -> Option<u32> {
        let children: Vec<Value> = children.iter().map(|&child| Value(child)).collect();
        Some(self.value(label, &children).0)
    }
}

/// The label of a value of a graph.
pub fn label_of(graph: &Graph<'_>, v: Value) -> Label {
    Label {
        op: graph.op(v),
        ty: graph.ty(v),
        shape: graph.value_shape[v.0 as usize],
        attrs: graph.attrs(v).to_vec(),
        outside: None,
    }
}

struct Known<'a> {
    leaves: &'a HashMap<(Op, u32), Operand>,
    bodies: Bodies<'a>,
}

impl Leaves for Known<'_> {
    fn leaf(&self, op: Op, id: u32) -> Option<Operand> {
        self.leaves.get(&(op, id)).copied()
    }

    fn body(&self, body: Body) -> Option<(Vec<ScalarType>, ScalarType)> {
        self.bodies.body(body)
    }
}

/// Labels as functions of laws see them.
pub struct Seen<'a>(pub &'a [Label]);

impl Labels for Seen<'_> {
    fn op(&self, label: u32) -> Op {
        self.0[label as usize].op
    }
    fn ty(&self, label: u32) -> Type {
        self.0[label as usize].ty
    }
    fn shape(&self, label: u32) -> Shape {
        self.0[label as usize].shape
    }
    fn attrs(&self, label: u32) -> &[u32] {
        &self.0[label as usize].attrs
    }
}

impl Terms {
    /// Labels, dimensions and bodies at once, for a [`ds4_ir::rules::value::Scope`].
    pub fn parts(&mut self) -> (Seen<'_>, &mut Dims, &mut Scalars) {
        (Seen(&self.labels), &mut self.dims, &mut self.scalars)
    }
}
