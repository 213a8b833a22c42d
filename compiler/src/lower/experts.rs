//! Experts: route, the chosen experts' gated products, the shared expert.

use ds4_ir::{ReduceKind, Scalar, Tree, Value};

use super::Lowering;
use super::math::Math;
use crate::model::Role;

/// `mul(silu(min(gate, c)), clamp(up, -c, c))`
fn gated(m: &Math<'_>, gate: Scalar, up: Scalar, clamp: f32) -> Scalar {
    let up = m.min(m.max(up, m.f(-clamp)), m.f(clamp));
    m.mul(m.silu(m.min(gate, m.f(clamp))), up)
}

impl Lowering<'_> {
    /// The sublayer's output `[columns, D]` for its normed input.
    pub fn experts(&mut self, layer: u32, x: Value) -> Value {
        let (ids, weights) = self.b_within("route", |l| l.route(layer, x));
        self.tap(layer, "route.ids", ids);
        self.tap(layer, "route.weights", weights);
        let routed = self.b_within("routed", |l| l.routed(layer, x, ids, weights));
        if self.a.experts.shared == 0 {
            return routed;
        }
        let shared = self.b_within("shared", |l| l.shared(layer, x));
        self.map("ff", [routed, shared], |m, [routed, shared]| m.add(routed, shared))
    }

    /// Chosen experts, ascending, and their weights: id and f32 `[columns, used]`.
    fn route(&mut self, layer: u32, x: Value) -> (Value, Value) {
        let logits = self.linear(x, Role::Router, Some(layer));
        let scores = self.map("f", [logits], |m, [z]| m.sqrt(m.softplus(z)));
        let ids = if self.a.layers.hash_routed[layer as usize] {
            let table = self.weight(Role::ExpertTable, Some(layer));
            let tokens = self.b.tokens();
            let row = self.b.gather(0, 0, table, tokens);
            let row = self.b.widen(row);
            self.b.sort_ids(row)
        } else {
            let bias = self.vector(Role::RouterBias, Some(layer));
            let bias = self.leading_ones(bias, scores);
            let keys = self.map_like("ff", [scores, bias], |m, [g, b]| m.add(g, b));
            self.b.top_k(self.a.experts.used, keys, None)
        };
        let chosen = self.b.gather(1, 1, scores, ids);
        let scale = self.a.experts.route_scale;
        if !self.a.experts.normalise {
            return (ids, self.map("f", [chosen], |m, [g]| m.mul(g, m.f(scale))));
        }
        let sum = self.b.reduce(ReduceKind::Sum, Tree::Seq, 1, chosen, Some(ids));
        let one = self.b.n(1);
        let sum = self.b.reshape(sum, &[self.columns, one]);
        let weights = self.map_like("ff", [chosen, sum], |m, [g, s]| m.mul(m.div(g, s), m.f(scale)));
        (ids, weights)
    }

    /// The sum over the chosen experts, ascending by expert id; the route's weight multiplies the hidden values.
    fn routed(&mut self, layer: u32, x: Value, ids: Value, weights: Value) -> Value {
        let used = self.b.n(self.a.experts.used);
        let product = |l: &mut Self, x: Value, role: Role| {
            let all = l.weight(role, Some(layer));
            let chosen = l.b.gather(0, 0, all, ids);
            l.product_of(x, chosen)
        };
        let first = self.weight(Role::ExpertGate, Some(layer));
        let second = self.weight(Role::ExpertUp, Some(layer));
        let gate_input = self.activation(x, first);
        let up_input = self.activation(x, second);
        let [gate_input, up_input] = [gate_input, up_input].map(|x| self.per_expert(x));
        let gate = product(self, gate_input, Role::ExpertGate);
        let up = product(self, up_input, Role::ExpertUp);
        let one = self.b.n(1);
        let weights = self.b.reshape(weights, &[self.columns, used, one]);
        let clamp = self.a.layers.clamp[layer as usize];
        let hidden = self.map_like("fff", [gate, up, weights], |m, [g, u, w]| m.mul(gated(m, g, u, clamp), w));
        let down = self.weight(Role::ExpertDown, Some(layer));
        let hidden = self.activation(hidden, down);
        let y = product(self, hidden, Role::ExpertDown);
        let shape = self.b.dims_of(y);
        let mask = self.b.reshape(ids, &[self.columns, used, one]);
        let mask = self.b.broadcast(mask, &shape);
        self.b.reduce(ReduceKind::Sum, Tree::Seq, 1, y, Some(mask))
    }

    /// `[columns, K]` repeated for each chosen expert: `[columns, used, K]`.
    fn per_expert(&mut self, x: Value) -> Value {
        let dims = self.b.dims_of(x);
        let (one, used) = (self.b.n(1), self.b.n(self.a.experts.used));
        let x = self.b.reshape(x, &[dims[0], one, dims[1]]);
        self.b.broadcast(x, &[dims[0], used, dims[1]])
    }

    /// The shared expert's output.
    fn shared(&mut self, layer: u32, x: Value) -> Value {
        let gate = self.linear(x, Role::SharedGate, Some(layer));
        let up = self.linear(x, Role::SharedUp, Some(layer));
        let clamp = self.a.layers.shared_clamp[layer as usize];
        let hidden = self.map("ff", [gate, up], |m, [g, u]| gated(m, g, u, clamp));
        self.linear(hidden, Role::SharedDown, Some(layer))
    }
}
