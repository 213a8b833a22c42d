//! The indexer: which pooled rows a column attends to.

use ds4_ir::{ReduceKind, Tree, Value};

use super::Lowering;
use super::rope::Angles;
use crate::model::{LayerKind, Role};

impl Lowering<'_> {
    /// Ids `[columns, k]` of the pooled rows with the best scores, ascending, masked where fewer are visible.
    ///
    /// `x` is the attention's input, `latent` the normed query latent. The score of a row is the sum over heads,
    /// ascending, of `mul(weight, relu(dot(query, key)))`.
    pub fn indexed_rows(&mut self, layer: u32, kind: LayerKind, x: Value, latent: Value, angles: Angles) -> Value {
        let keys = self.b_within("keys", |l| l.index_keys(layer, kind, x));
        let rows = self.pooled_rows(kind.ratio);
        let zero = self.b.n(0);
        let keys = self.b.slice(keys, 0, zero, rows);
        let (heads, width) = (self.a.indexer.heads, self.a.indexer.head_dim);

        let query = self.linear(latent, Role::IndexQuery, Some(layer));
        let shape = [self.columns, self.b.n(heads), self.b.n(width)];
        let query = self.b.reshape(query, &shape);
        let (plain, rope) = self.rotated([query], angles, |_, [x]| x);
        let query = self.b.concat(2, &[plain, rope]);
        let query = self.simulated_index(query);

        let weights = self.linear(x, Role::IndexWeights, Some(layer));
        let weights = self.map("f", [weights], |m, [w]| {
            let inverse_root = |n: u32| m.div(m.f(1.0), m.sqrt(m.f(n as f32)));
            m.mul(w, m.mul(inverse_root(width), inverse_root(heads)))
        });
        let tree = self.tree_of_last(query);
        let dots = self.b.product(tree, query, keys, None);
        let one = self.b.n(1);
        let weights = self.b.reshape(weights, &[self.columns, shape[1], one]);
        let terms = self.map_like("ff", [dots, weights], |m, [dot, w]| m.mul(w, m.max(dot, m.f(0.0))));
        let scores = self.b.reduce(ReduceKind::Sum, Tree::Seq, 1, terms, None);
        let candidates = self.candidate_ids(kind.ratio);
        let k = self.a.indexer.top_k.min(self.pooled_capacity(kind));
        self.b.top_k(k, scores, Some(candidates))
    }
}
