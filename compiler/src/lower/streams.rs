//! Hyper connections: the residual state is several streams; a sublayer reads a mix of them and is spread over them.

use ds4_ir::{Dim, ReduceKind, Tree, Value};

use super::Lowering;
use crate::model::Role;

/// The weights of one hyper connection.
#[derive(Clone, Copy)]
pub struct Site {
    function: Role,
    base: Role,
    scale: Role,
}

/// In front of attention.
pub const ATTENTION: Site =
    Site { function: Role::AttentionStreamFn, base: Role::AttentionStreamBase, scale: Role::AttentionStreamScale };
/// In front of the experts.
pub const EXPERTS: Site =
    Site { function: Role::ExpertStreamFn, base: Role::ExpertStreamBase, scale: Role::ExpertStreamScale };

/// What spreads a sublayer's output over the streams.
#[derive(Clone, Copy)]
pub struct Spread {
    /// f32 `[columns, N]`
    post: Value,
    /// f32 `[columns, N, N]`: from stream (first index) to stream (second).
    comb: Value,
}

impl Lowering<'_> {
    fn stream_dims(&mut self) -> [Dim; 3] {
        [self.columns, self.b.n(self.a.streams), self.b.n(self.a.hidden)]
    }

    /// The embedding, the same in every stream: f32 `[columns, N, D]`.
    pub fn embed(&mut self) -> Value {
        let table = self.weight(Role::Embedding, None);
        let tokens = self.b.tokens();
        let rows = self.b.gather(0, 0, table, tokens);
        let rows = self.b.widen(rows);
        let shape = self.stream_dims();
        let one = self.b.n(1);
        let rows = self.b.reshape(rows, &[shape[0], one, shape[2]]);
        self.b.broadcast(rows, &shape)
    }

    /// The mixing coefficients before scale and base: `mul(dot(fn, x), r)`, `[columns, coefficients]`.
    fn coefficients(&mut self, x: Value, function: Role, layer: Option<u32>) -> Value {
        let dims = self.b.dims_of(x);
        let width = self.b.n(self.a.stream_width());
        let flat = self.b.reshape(x, &[dims[0], width]);
        let factor = self.norm_factor(flat);
        let dots = self.linear(flat, function, layer);
        self.map_like("ff", [dots, factor], |m, [dot, r]| m.mul(dot, r))
    }

    /// A part `start .. start + extent` of a vector of weights as `[1, extent]`, repeated like `like` `[n, extent]`.
    fn vector_part(&mut self, vector: Value, start: u32, like: Value) -> Value {
        let dims = self.b.dims_of(like);
        let extent = self.b.dims.constant(dims[1]).expect("coefficients are constant in number");
        let part = self.b.cut(vector, 0, start, extent);
        let part = self.leading_ones(part, like);
        self.b.broadcast(part, &dims)
    }

    /// One number of a vector of weights, repeated like `like` `[n, m]`.
    fn scalar_part(&mut self, vector: Value, index: u32, like: Value) -> Value {
        let dims = self.b.dims_of(like);
        let part = self.b.cut(vector, 0, index, 1);
        let part = self.leading_ones(part, like);
        self.b.broadcast(part, &dims)
    }

    /// `sum_k pre[k] * x[k]`, ascending: f32 `[columns, D]`.
    fn collapse(&mut self, x: Value, pre: Value) -> Value {
        let dims = self.b.dims_of(x);
        let shape = [dims[0], dims[2]];
        let mut args = Vec::new();
        for k in 0..self.a.streams {
            let weight = self.b.cut(pre, 1, k, 1);
            args.push(self.b.broadcast(weight, &shape));
            let stream = self.b.cut(x, 1, k, 1);
            args.push(self.b.reshape(stream, &shape));
        }
        let signature = "f".repeat(args.len());
        let body = self.body(&signature, |m, p| {
            let mut terms = p.chunks(2).map(|pair| m.mul(pair[0], pair[1]));
            let first = terms.next().expect("there is a stream");
            terms.fold(first, |sum, term| m.add(sum, term))
        });
        self.b.map(body, &args)
    }

    /// Reads the streams `x` `[columns, N, D]` for a sublayer: the collapsed input `[columns, D]`, and how the
    /// sublayer's output is spread.
    pub fn read_streams(&mut self, x: Value, site: Site, layer: u32) -> (Value, Spread) {
        let n = self.a.streams;
        let epsilon = self.a.stream_epsilon;
        let mix = self.coefficients(x, site.function, Some(layer));
        let scale = self.vector(site.scale, Some(layer));
        let base = self.vector(site.base, Some(layer));
        let part = |l: &mut Self, index: u32, start: u32, extent: u32| {
            let m = l.b.cut(mix, 1, start, extent);
            [m, l.scalar_part(scale, index, m), l.vector_part(base, start, m)]
        };
        let args = part(self, 0, 0, n);
        let pre = self.map("fff", args, |m, [x, s, b]| m.add(m.sigmoid(m.add(m.mul(x, s), b)), m.f(epsilon)));
        let args = part(self, 1, n, n);
        let post = self.map("fff", args, |m, [x, s, b]| m.mul(m.f(2.0), m.sigmoid(m.add(m.mul(x, s), b))));
        let args = part(self, 2, 2 * n, n * n);
        let comb = self.map("fff", args, |m, [x, s, b]| m.add(m.mul(x, s), b));
        let comb = self.b_within("sinkhorn", |l| l.sinkhorn(comb));
        let collapsed = self.b_within("collapse", |l| l.collapse(x, pre));
        (collapsed, Spread { post, comb })
    }

    /// Sinkhorn's iterations on `[columns, N * N]` logits, row-major: `[columns, N, N]`, ending on a column step.
    fn sinkhorn(&mut self, logits: Value) -> Value {
        let n = self.b.n(self.a.streams);
        let epsilon = self.a.stream_epsilon;
        let logits = self.b.reshape(logits, &[self.columns, n, n]);
        let max = self.kept(ReduceKind::Max, Tree::Free, 2, logits);
        let e = self.map_like("ff", [logits, max], |m, [a, max]| m.exp(m.sub(a, max)));
        let sum = self.kept(ReduceKind::Sum, self.stream_tree(), 2, e);
        let mut a = self.map_like("ff", [e, sum], |m, [e, s]| m.add(m.div(e, s), m.f(epsilon)));
        a = self.normalised(a, 1);
        for _ in 1..self.a.sinkhorn_iterations {
            a = self.normalised(a, 2);
            a = self.normalised(a, 1);
        }
        a
    }

    /// Sums over streams ascend, however many there are.
    fn stream_tree(&self) -> Tree {
        Tree::Seq
    }

    /// A reduction that keeps the axis with extent 1.
    pub fn kept(&mut self, kind: ReduceKind, tree: Tree, axis: u32, x: Value) -> Value {
        let mut dims = self.b.dims_of(x);
        dims[axis as usize] = self.b.n(1);
        let reduced = self.b.reduce(kind, tree, axis, x, None);
        self.b.reshape(reduced, &dims)
    }

    /// `a / (sum of a over axis + eps)`
    fn normalised(&mut self, a: Value, axis: u32) -> Value {
        let epsilon = self.a.stream_epsilon;
        let sum = self.kept(ReduceKind::Sum, self.stream_tree(), axis, a);
        self.map_like("ff", [a, sum], |m, [a, s]| m.div(a, m.add(s, m.f(epsilon))))
    }

    /// Spreads a sublayer's output `y` `[columns, D]`: `x'[k] = post[k] y + sum_j comb[j][k] x[j]`, the terms added in
    /// this order.
    pub fn spread(&mut self, x: Value, y: Value, spread: Spread) -> Value {
        let shape = self.stream_dims();
        let one = self.b.n(1);
        let column = |l: &mut Self, v: Value| {
            let v = l.b.reshape(v, &[shape[0], shape[1], one]);
            l.b.broadcast(v, &shape)
        };
        let row = |l: &mut Self, v: Value| {
            let v = l.b.reshape(v, &[shape[0], one, shape[2]]);
            l.b.broadcast(v, &shape)
        };
        let mut args = vec![column(self, spread.post), row(self, y)];
        for j in 0..self.a.streams {
            let from = self.b.cut(spread.comb, 1, j, 1);
            args.push(column(self, from));
            let stream = self.b.cut(x, 1, j, 1);
            args.push(row(self, stream));
        }
        let signature = "f".repeat(args.len());
        let body = self.body(&signature, |m, p| {
            let mut terms = p.chunks(2).map(|pair| m.mul(pair[0], pair[1]));
            let first = terms.next().expect("the output is a term");
            terms.fold(first, |sum, term| m.add(sum, term))
        });
        self.b.map(body, &args)
    }

    /// What the output head reads: the streams mixed into one row, f32 `[.., hidden]`.
    pub fn collapsed(&mut self, streams: Value) -> Value {
        let mix = self.coefficients(streams, Role::HeadStreamFn, None);
        let scale = self.vector(Role::HeadStreamScale, None);
        let base = self.vector(Role::HeadStreamBase, None);
        let epsilon = self.a.stream_epsilon;
        let args = [mix, self.scalar_part(scale, 0, mix), self.vector_part(base, 0, mix)];
        let pre = self.map("fff", args, |m, [x, s, b]| m.add(m.sigmoid(m.add(m.mul(x, s), b)), m.f(epsilon)));
        self.collapse(streams, pre)
    }
}
