//! What functions of laws see: what is bound, and the tables of dimensions and bodies.

use super::{Made, VARIABLES};
use crate::dim::{Dim, Dims, Shape};
use crate::infer::{Leaves, Operand};
use crate::op::{Op, Type};
use crate::scalar::{Body, ScalarType, Scalars};

/// Operation, type, shape and attributes of something that can be bound.
pub trait Labels {
    /// Operation.
    fn op(&self, label: u32) -> Op;
    /// Type.
    fn ty(&self, label: u32) -> Type;
    /// Shape.
    fn shape(&self, label: u32) -> Shape;
    /// Attributes.
    fn attrs(&self, label: u32) -> &[u32];
}

/// Something bound. Equal values have equal ids; of values that a pattern does not look into, only type and shape of the
/// label count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Which value.
    pub id: u32,
    /// Its label.
    pub label: u32,
}

/// What a pattern has bound.
#[derive(Clone, Default, Debug)]
pub struct Bound {
    /// Of each variable: nothing, one item, or a list.
    pub items: [Vec<Item>; VARIABLES],
    /// The place that [`super::Args::One`] found.
    pub at: usize,
}

/// What functions of laws see.
pub struct Scope<'a> {
    /// Labels of what is bound.
    pub labels: &'a dyn Labels,
    /// Dimensions; functions may add some.
    pub dims: &'a mut Dims,
    /// Bodies; functions may add some.
    pub scalars: &'a mut Scalars,
    /// What is bound.
    pub bound: &'a Bound,
    /// Within [`super::RightArgs::Each`], the place in the list.
    pub each: usize,
}

impl Scope<'_> {
    /// What a variable is bound to; within a list, the entry whose turn it is.
    pub fn item(&self, variable: u8) -> Option<Item> {
        let items = &self.bound.items[variable as usize];
        items.get(if items.len() == 1 { 0 } else { self.each }).copied()
    }

    pub(super) fn list(&self, variable: u8) -> &[Item] {
        &self.bound.items[variable as usize]
    }

    pub(super) fn ty(&self, variable: u8) -> Option<Type> {
        Some(self.labels.ty(self.item(variable)?.label))
    }

    pub(super) fn shape(&self, variable: u8) -> Option<Shape> {
        Some(self.labels.shape(self.item(variable)?.label))
    }

    pub(super) fn attrs(&self, variable: u8) -> Option<&[u32]> {
        Some(self.labels.attrs(self.item(variable)?.label))
    }

    /// The attribute at a place.
    pub(super) fn attr(&self, variable: u8, place: usize) -> Option<u32> {
        self.attrs(variable)?.get(place).copied()
    }

    /// The dimensions.
    pub(super) fn extents(&self, variable: u8) -> Option<Vec<Dim>> {
        Some(self.dims.of(self.shape(variable)?).to_vec())
    }

    /// The dimension of an axis.
    pub(super) fn extent(&self, variable: u8, axis: u32) -> Option<Dim> {
        self.dims.of(self.shape(variable)?).get(axis as usize).copied()
    }

    /// The constant dimension of an axis.
    pub(super) fn number(&self, variable: u8, axis: u32) -> Option<u32> {
        self.dims.constant(self.extent(variable, axis)?)
    }

    /// A value with operation, attributes and shape of a bound one.
    pub(super) fn like(&self, variable: u8) -> Option<Made> {
        let label = self.item(variable)?.label;
        let (op, attrs, shape) = (self.labels.op(label), self.labels.attrs(label), self.labels.shape(label));
        Some(Made { op, attrs: attrs.to_vec(), shape: Some(shape) })
    }

    /// The same with the shape that inference gives.
    pub(super) fn like_inferred(&self, variable: u8) -> Option<Made> {
        Some(Made { shape: None, ..self.like(variable)? })
    }

    /// A slice of a bound value along `axis` that has the extent `extent`.
    pub(super) fn slice_of(&mut self, variable: u8, axis: u32, start: u32, extent: Dim) -> Option<Made> {
        let mut extents = self.extents(variable)?;
        *extents.get_mut(axis as usize)? = extent;
        Some(Made { op: Op::Slice, attrs: vec![axis, start], shape: Some(self.dims.shape(&extents)) })
    }
}

/// The bodies of a table for inference.
pub struct Bodies<'a>(pub &'a Scalars);

impl Leaves for Bodies<'_> {
    fn leaf(&self, _: Op, _: u32) -> Option<Operand> {
        None
    }

    fn body(&self, body: Body) -> Option<(Vec<ScalarType>, ScalarType)> {
        if body.0 as usize >= self.0.columns().1.len() {
            return None;
        }
        let (params, result) = self.0.of(body);
        Some((params, self.0.ty(result)))
    }
}
