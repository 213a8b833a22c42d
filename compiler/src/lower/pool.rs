//! Pooled rows: a block of tokens becomes one row by a softmax over its tokens, a softmax for each channel.

use ds4_ir::graph::State;
use ds4_ir::{ReduceKind, Tree, Value};

use super::Lowering;
use crate::model::{LayerKind, Role};

/// The weights of a compressor and the names of its states.
#[derive(Clone, Copy)]
pub struct Compressor {
    value: Role,
    gate: Role,
    bias: Role,
    norm: Role,
    /// Prefix of the states' names.
    name: &'static str,
}

/// Rows for attention.
pub const ROWS: Compressor = Compressor {
    value: Role::PoolValue,
    gate: Role::PoolGate,
    bias: Role::PoolBias,
    norm: Role::PoolNorm,
    name: "pool",
};
/// Keys of the indexer.
pub const KEYS: Compressor = Compressor {
    value: Role::IndexPoolValue,
    gate: Role::IndexPoolGate,
    bias: Role::IndexPoolBias,
    norm: Role::IndexPoolNorm,
    name: "index_pool",
};

impl Lowering<'_> {
    /// The rows of the blocks that the step completes, f32 `[completed, width]`, pooled, before their norm.
    ///
    /// The projections of the last tokens are kept in two rings, so that a block may span steps: values, and scores
    /// with the position bias already added.
    fn pooled(&mut self, layer: u32, kind: LayerKind, x: Value, c: Compressor, width: u32) -> Value {
        let ratio = kind.ratio;
        let u = self.linear(x, c.value, Some(layer));
        let v = self.linear(x, c.gate, Some(layer));
        let bias = self.weight(c.bias, Some(layer));
        let position = self.position;
        let place = self.map("i", [position], |m, [p]| m.remi(p, m.i(ratio as i32)));
        let bias = self.b.gather(0, 0, bias, place);
        let bias = self.b.widen(bias);
        let s = self.map("ff", [v, bias], |m, [v, b]| m.add(v, b));

        let capacity = self.ring_capacity(ratio * kind.halves());
        let u = self.ring_written(layer, &format!("{}.values", c.name), capacity, u);
        let s = self.ring_written(layer, &format!("{}.scores", c.name), capacity, s);
        let ids = self.block_slots(kind, capacity);
        let halves = [capacity * kind.halves(), width].map(|n| self.b.n(n));
        let [u, s] = [u, s].map(|ring| {
            let rows = self.b.reshape(ring, &halves);
            self.b.gather(0, 0, rows, ids)
        });
        self.column_softmax(s, u, ids)
    }

    /// Writes rows into a new ring state and gives its new version.
    pub fn ring_written(&mut self, layer: u32, name: &str, capacity: u32, rows: Value) -> Value {
        let width = self.b.dims_of(rows)[1];
        let width = self.b.dims.constant(width).expect("rows have a constant width");
        let state = self.state(layer, name, [capacity, width]);
        let old = self.b.read(state);
        let places = self.ring_rows(capacity);
        self.b.write(old, places, rows)
    }

    /// Declares a state of a layer.
    pub fn state(&mut self, layer: u32, name: &str, shape: [u32; 2]) -> State {
        self.b.add_state(&format!("layer.{layer}.{name}"), ds4_ir::Type::F32, &shape)
    }

    /// Where a block's tokens lie in the rings, id `[completed, slots]`, counted in halves of a ring row. With overlap the
    /// first slots are the tokens of the block before (their low halves; absent for the first block), the others the
    /// block's own (their high halves).
    fn block_slots(&mut self, kind: LayerKind, capacity: u32) -> Value {
        let (ratio, halves) = (kind.ratio as i32, kind.halves() as i32);
        let blocks = self.completed_blocks(kind.ratio);
        let shape = [self.completed(kind.ratio), self.b.n(kind.ratio * kind.halves())];
        let block = self.along_first(blocks, &shape);
        let slot = self.b.iota(&shape, 1);
        self.map("ii", [block, slot], |m, [block, slot]| {
            let token = m.addi(m.muli(m.subi(block, m.i(halves - 1)), m.i(ratio)), slot);
            let half = m.divi(slot, m.i(ratio));
            let row = m.addi(m.muli(m.remi(token, m.i(capacity as i32)), m.i(halves)), half);
            m.id_where(m.not(m.lti(token, m.i(0))), row)
        })
    }

    /// `sum over slots of softmax(s) * u` for each channel: `[blocks, slots, width]` gives `[blocks, width]`.
    fn column_softmax(&mut self, s: Value, u: Value, ids: Value) -> Value {
        let dims = self.b.dims_of(s);
        let one = self.b.n(1);
        let mask = self.b.reshape(ids, &[dims[0], dims[1], one]);
        let mask = self.b.broadcast(mask, &dims);
        let slots = self.b.dims.constant(dims[1]).expect("a block has a constant number of slots");
        let tree = Tree::for_leaves(slots);
        let max = self.b.reduce(ReduceKind::Max, Tree::Free, 1, s, Some(mask));
        let max = self.b.reshape(max, &[dims[0], one, dims[2]]);
        let e = self.map_like("ff", [s, max], |m, [s, max]| m.exp(m.sub(s, max)));
        let sum = self.b.reduce(ReduceKind::Sum, tree, 1, e, Some(mask));
        let sum = self.b.reshape(sum, &[dims[0], one, dims[2]]);
        let weighted = self.map_like("fff", [e, u, sum], |m, [e, u, s]| m.mul(m.div(e, s), u));
        self.b.reduce(ReduceKind::Sum, tree, 1, weighted, Some(mask))
    }

    /// The rows of the blocks that the step completes, normed and with rope at the first token of their block: the
    /// dimensions without rope, and those with.
    fn completed_rows(&mut self, layer: u32, kind: LayerKind, x: Value, c: Compressor, width: u32) -> (Value, Value) {
        let pooled = self.pooled(layer, kind, x, c, width);
        let factor = self.norm_factor(pooled);
        let weight = self.vector(c.norm, Some(layer));
        let weight = self.leading_ones(weight, pooled);
        let blocks = self.completed_blocks(kind.ratio);
        let first = self.map("i", [blocks], |m, [b]| m.muli(b, m.i(kind.ratio as i32)));
        let angles = self.angles(first, kind);
        self.rotated([pooled, factor, weight], angles, |m, [x, r, w]| m.mul(m.mul(x, r), w))
    }

    /// Appends rows to a state of all pooled rows and gives its new version.
    fn appended(&mut self, layer: u32, kind: LayerKind, name: &str, rows: Value) -> Value {
        let width = self.b.dims_of(rows)[1];
        let width = self.b.dims.constant(width).expect("rows have a constant width");
        let state = self.state(layer, name, [self.pooled_capacity(kind), width]);
        let old = self.b.read(state);
        let places = self.completed_blocks(kind.ratio);
        self.b.write(old, places, rows)
    }

    /// Rows that a sequence of the context's length has.
    pub fn pooled_capacity(&self, kind: LayerKind) -> u32 {
        (self.options.context / kind.ratio).max(1)
    }

    /// The pooled rows for attention, f32 `[capacity, head_dim]`, the step's included.
    pub fn pooled_kv(&mut self, layer: u32, kind: LayerKind, x: Value) -> Value {
        let (plain, rope) = self.completed_rows(layer, kind, x, ROWS, self.a.head_dim);
        let plain = self.simulated_row(plain);
        let row = self.b.concat(1, &[plain, rope]);
        let row = self.kept_row(row);
        self.tap(layer, "pooled", row);
        self.appended(layer, kind, "pooled", row)
    }

    /// The indexer's keys, f32 `[capacity, head_dim]`, the step's included.
    pub fn index_keys(&mut self, layer: u32, kind: LayerKind, x: Value) -> Value {
        let (plain, rope) = self.completed_rows(layer, kind, x, KEYS, self.a.indexer.head_dim);
        let key = self.b.concat(1, &[plain, rope]);
        let key = self.simulated_index(key);
        self.appended(layer, kind, "index_keys", key)
    }
}
