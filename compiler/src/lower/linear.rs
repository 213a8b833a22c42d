//! Products with weights, and norms.

use ds4_ir::{Tree, Type, Value};

use super::{Activations, Lowering};
use crate::model::Role;

impl Lowering<'_> {
    /// `W x` for a weight `[N, K]` and `x` `[.., K]`, with q8 activations where weight and options ask for them.
    pub fn linear(&mut self, x: Value, role: Role, layer: Option<u32>) -> Value {
        let weight = self.weight(role, layer);
        self.product(x, weight)
    }

    /// `w x` for a weight-typed `w` `[B.., N, K]` and f32 `x` `[B.., M.., K]`.
    pub fn product(&mut self, x: Value, w: Value) -> Value {
        let x = self.activation(x, w);
        self.product_of(x, w)
    }

    /// The form in which products with `w` take the activation `x`: q8 codes or `x` itself.
    pub fn activation(&mut self, x: Value, w: Value) -> Value {
        let format = self.b.ty(w).format().expect("products take weights here");
        if format.takes_q8() && self.options.activations_of(self.model) == Activations::Q8 {
            return self.b.quantise(x);
        }
        x
    }

    /// `w x` for an activation in the form that `w` takes.
    pub fn product_of(&mut self, x: Value, w: Value) -> Value {
        let tree = match self.b.ty(x) {
            Type::Q8 => Tree::BLOCKS,
            _ => self.tree_of_last(x),
        };
        self.b.product(tree, x, w, None)
    }

    /// The contract's tree for a sum over the last axis of `x`.
    pub fn tree_of_last(&self, x: Value) -> Tree {
        let dims = self.b.dims_of(x);
        let last = dims.last().and_then(|&d| self.b.dims.constant(d));
        Tree::for_leaves(last.expect("the last axis of an activation is constant"))
    }

    /// Sum of squares over the last axis, as a product of `x` with itself: `[.., K]` gives `[.., 1]`.
    fn square_sum(&mut self, x: Value) -> Value {
        let dims = self.b.dims_of(x);
        let (&k, front) = dims.split_last().expect("a norm has an axis");
        let one = self.b.n(1);
        let row = [front, &[one, k]].concat();
        let w = self.b.reshape(x, &row);
        let tree = self.tree_of_last(x);
        self.b.product(tree, x, w, None)
    }

    /// The factor of an RMS norm over the last axis: `div(1, sqrt(add(div(sum, n), eps)))`, `[.., 1]`.
    pub fn norm_factor(&mut self, x: Value) -> Value {
        let dims = self.b.dims_of(x);
        let n = dims.last().and_then(|&d| self.b.dims.constant(d)).expect("the last axis is constant");
        let epsilon = self.a.norm_epsilon;
        let sum = self.square_sum(x);
        self.map("f", [sum], |m, [sum]| {
            let mean = m.div(sum, m.f(n as f32));
            m.div(m.f(1.0), m.sqrt(m.add(mean, m.f(epsilon))))
        })
    }

    /// RMS norm with weight over the last axis: `mul(mul(x, r), w)`.
    pub fn norm(&mut self, x: Value, role: Role, layer: Option<u32>) -> Value {
        let factor = self.norm_factor(x);
        let weight = self.vector(role, layer);
        let weight = self.leading_ones(weight, x);
        self.map_like("fff", [x, factor, weight], |m, [x, r, w]| m.mul(m.mul(x, r), w))
    }

    /// A vector `[K]` as `[1, .., K]` with the rank of `like`.
    pub fn leading_ones(&mut self, vector: Value, like: Value) -> Value {
        let rank = self.b.dims_of(like).len();
        let dims = self.b.dims_of(vector);
        let mut shape = vec![self.b.n(1); rank - dims.len()];
        shape.extend(dims);
        self.b.reshape(vector, &shape)
    }
}
