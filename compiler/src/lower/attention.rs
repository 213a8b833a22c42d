//! Attention: one KV head, a window of recent rows and pooled rows behind one softmax with a sink, in blocks.

use ds4_ir::{ReduceKind, Scalar, Tree, Value};

use super::math::Math;
use super::rope::Angles;
use super::{BLOCK, Lowering};
use crate::model::Role;

/// Rows that a column attends to, in blocks.
struct Rows {
    /// All rows, f32 `[rows, head_dim]`.
    source: Value,
    /// Id `[columns, blocks, rows of a block]`.
    ids: Value,
    /// Which blocks have a row: id `[columns, blocks]`.
    blocks: Value,
}

/// A softmax over blocks of rows, not yet merged.
struct Partial {
    /// Largest score of each block, f32 `[columns, heads, blocks]`; -inf where a block has no row.
    max: Value,
    /// Sum of `exp(z - max)`, f32 `[columns, heads, blocks]`.
    sum: Value,
    /// Sum of `exp(z - max) * row`, f32 `[columns, blocks, heads, head_dim]`.
    rows: Value,
    /// Which blocks have a row: id `[columns, blocks]`.
    blocks: Value,
}

impl Lowering<'_> {
    /// The sublayer's output `[columns, D]` for its normed input.
    pub fn attention(&mut self, layer: u32, x: Value) -> Value {
        let kind = self.a.layers.kind[layer as usize];
        let position = self.position;
        let angles = self.angles(position, kind);
        let latent = self.b_within("latent", |l| {
            let latent = l.linear(x, Role::QueryDown, Some(layer));
            l.norm(latent, Role::QueryNorm, Some(layer))
        });
        let query = self.b_within("query", |l| l.query(layer, latent, angles));
        let mut parts = Vec::new();
        let window = self.b_within("window", |l| l.window_rows(layer, x, angles));
        parts.push(self.b_within("window", |l| l.partial(query, &window)));
        if kind.is_compressed() {
            let rows = self.b_within("pool", |l| {
                let source = l.pooled_kv(layer, kind, x);
                if kind.indexer {
                    let ids = l.b_within("index", |l| l.indexed_rows(layer, kind, x, latent, angles));
                    l.tap(layer, "index.ids", ids);
                    l.selected(source, ids)
                } else {
                    let (ids, blocks) = l.visible_ids(kind.ratio);
                    Rows { source, ids, blocks }
                }
            });
            parts.push(self.b_within("pool", |l| l.partial(query, &rows)));
        }
        let context = self.b_within("merge", |l| l.merged(layer, &parts));
        self.b_within("output", |l| l.output(layer, context, angles))
    }

    /// Queries f32 `[columns, heads, head_dim]`: normed without weight for each head, with rope.
    fn query(&mut self, layer: u32, latent: Value, angles: Angles) -> Value {
        let query = self.linear(latent, Role::QueryUp, Some(layer));
        let shape = [self.columns, self.b.n(self.a.heads), self.b.n(self.a.head_dim)];
        let query = self.b.reshape(query, &shape);
        let factor = self.norm_factor(query);
        let (plain, rope) = self.rotated([query, factor], angles, |m, [x, r]| m.mul(x, r));
        self.b.concat(2, &[plain, rope])
    }

    /// Writes the columns' rows into the window's ring and gives the rows that each column sees.
    fn window_rows(&mut self, layer: u32, x: Value, angles: Angles) -> Rows {
        let row = self.linear(x, Role::KeyValue, Some(layer));
        let factor = self.norm_factor(row);
        let weight = self.vector(Role::KeyValueNorm, Some(layer));
        let weight = self.leading_ones(weight, row);
        let (plain, rope) = self.rotated([row, factor, weight], angles, |m, [x, r, w]| m.mul(m.mul(x, r), w));
        let plain = self.simulated_row(plain);
        let row = self.b.concat(1, &[plain, rope]);
        let row = self.kept_row(row);
        let capacity = self.ring_capacity(self.a.window);
        let source = self.ring_written(layer, "window", capacity, row);
        let (ids, blocks) = self.window_ids(capacity);
        Rows { source, ids, blocks }
    }

    /// Selected pooled rows `[columns, k]`, in blocks by their ordinal.
    fn selected(&mut self, source: Value, ids: Value) -> Rows {
        let k = self.b.dims_of(ids)[1];
        let k = self.b.dims.constant(k).expect("the indexer selects a constant number of rows");
        let rows = k.min(BLOCK);
        let padded = k.next_multiple_of(rows);
        let ids = if padded == k {
            ids
        } else {
            let shape = [self.columns, self.b.n(padded - k)];
            let zero = self.b.iota(&shape, 1);
            let absent = self.map("i", [zero], |m, [i]| m.id_where(m.lti(i, i), i));
            self.b.concat(1, &[ids, absent])
        };
        let shape = [self.columns, self.b.n(padded / rows), self.b.n(rows)];
        let ids = self.b.reshape(ids, &shape);
        let first = self.b.cut(ids, 2, 0, 1);
        let first = self.b.reshape(first, &shape[..2]);
        let block = self.b.iota(&shape[..2], 1);
        let blocks = self.map("di", [first, block], |m, [id, block]| m.id_where(m.present(id), block));
        Rows { source, ids, blocks }
    }

    /// Scores and sums of each block of rows.
    fn partial(&mut self, query: Value, rows: &Rows) -> Partial {
        let heads = self.b.n(self.a.heads);
        let width = self.b.n(self.a.head_dim);
        let ids = self.b.dims_of(rows.ids);
        let (blocks, len) = (ids[1], self.b.dims.constant(ids[2]).expect("blocks have a constant length"));
        let gathered = self.b.gather(0, 0, rows.source, rows.ids);
        let all = self.b.dims.dim(ds4_ir::DimOp::Scale(blocks, len));
        let flat = self.b.reshape(gathered, &[self.columns, all, width]);
        let tree = self.tree_of_last(query);
        let dots = self.b.product(tree, query, flat, None);
        let root = self.a.head_dim as f32;
        let scores = self.map("f", [dots], |m, [z]| m.mul(z, m.div(m.f(1.0), m.sqrt(m.f(root)))));
        let shape = [self.columns, heads, blocks, ids[2]];
        let scores = self.b.reshape(scores, &shape);

        let one = self.b.n(1);
        let mask = self.b.reshape(rows.ids, &[self.columns, one, blocks, ids[2]]);
        let mask = self.b.broadcast(mask, &shape);
        let max = self.b.reduce(ReduceKind::Max, Tree::Free, 3, scores, Some(mask));
        let kept = self.b.reshape(max, &[self.columns, heads, blocks, one]);
        let e = self.map_like("ff", [scores, kept], |m, [z, max]| m.exp(m.sub(z, max)));
        let sum = self.b.reduce(ReduceKind::Sum, Tree::Seq, 3, e, Some(mask));
        let by_block = self.b.permute(e, &[0, 2, 1, 3]);
        let columns = self.b.permute(gathered, &[0, 1, 3, 2]);
        let sums = self.b.product(Tree::Seq, by_block, columns, Some(rows.ids));
        Partial { max, sum, rows: sums, blocks: rows.blocks }
    }

    /// Merges the blocks ascending, the sink last: f32 `[columns, heads, head_dim]`.
    fn merged(&mut self, layer: u32, parts: &[Partial]) -> Value {
        let column = |f: fn(&Partial) -> Value| parts.iter().map(f).collect::<Vec<_>>();
        let max = self.b.concat(2, &column(|p| p.max));
        let sum = self.b.concat(2, &column(|p| p.sum));
        let rows = self.b.concat(1, &column(|p| p.rows));
        let blocks = self.b.concat(1, &column(|p| p.blocks));
        let shape = self.b.dims_of(max);
        let (heads, count) = (shape[1], shape[2]);
        let one = self.b.n(1);
        let mask = self.b.reshape(blocks, &[self.columns, one, count]);
        let mask = self.b.broadcast(mask, &shape);

        let sink = self.vector(Role::Sinks, Some(layer));
        let sink = self.b.reshape(sink, &[one, heads]);
        let largest = self.b.reduce(ReduceKind::Max, Tree::Free, 2, max, Some(mask));
        let largest = self.map_like("ff", [largest, sink], |m, [a, sink]| m.max(a, sink));
        let kept = self.b.reshape(largest, &[self.columns, heads, one]);
        let scale = self.map_like("ff", [max, kept], |m, [block, all]| m.exp(m.sub(block, all)));

        let sums = self.b.reshape(sum, &[self.columns, heads, one, count]);
        let total = self.b.product(Tree::Seq, scale, sums, Some(mask));
        let width = self.b.dims_of(rows)[3];
        let by_head = self.b.permute(rows, &[0, 2, 3, 1]);
        let context = self.b.product(Tree::Seq, scale, by_head, Some(mask));
        let shape = [self.columns, heads, width];
        let sink = self.b.reshape(sink, &[one, heads, one]);
        let divided =
            |m: &Math<'_>, [acc, total, all, sink]: [Scalar; 4]| m.div(acc, m.add(total, m.exp(m.sub(sink, all))));
        let args = [context, total, kept, sink].map(|v| self.b.broadcast(v, &shape));
        self.map("ffff", args, divided)
    }

    /// Rotates back at the column's position, then the two grouped products.
    fn output(&mut self, layer: u32, context: Value, angles: Angles) -> Value {
        let back = self.reversed(angles);
        let (plain, rope) = self.rotated([context], back, |_, [x]| x);
        let context = self.b.concat(2, &[plain, rope]);
        let groups = self.b.n(self.a.output_groups);
        let input = self.b.n(self.a.heads_per_group() * self.a.head_dim);
        let rank = self.b.n(self.a.output_rank);
        let weight = self.weight(Role::OutputDown, Some(layer));
        let weight = self.b.reshape(weight, &[groups, rank, input]);
        let grouped = self.b.reshape(context, &[self.columns, groups, input]);
        let grouped = self.activation(grouped, weight);
        let grouped = self.b.permute(grouped, &[1, 0, 2]);
        let low = self.product_of(grouped, weight);
        let low = self.b.permute(low, &[1, 0, 2]);
        let width = self.b.n(self.a.output_groups * self.a.output_rank);
        let low = self.b.reshape(low, &[self.columns, width]);
        self.linear(low, Role::OutputUp, Some(layer))
    }
}
