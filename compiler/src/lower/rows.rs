//! Positions and row ids: integer maps over the step scalars.

use ds4_ir::build::Builder;
use ds4_ir::{Dim, DimOp, Value};

use super::math::body;
use super::{BLOCK, Lowering};

/// Absolute position of each column, i32 `[columns]`.
pub fn positions(b: &mut Builder, columns: Dim) -> Value {
    let first = b.dims.dim(DimOp::Position);
    offset_iota(b, columns, first)
}

/// `start, start + 1, ...` as i32 `[count]`.
fn offset_iota(b: &mut Builder, count: Dim, start: Dim) -> Value {
    let iota = b.iota(&[count], 0);
    let start = b.extent(start);
    let one = b.n(1);
    let start = b.reshape(start, &[one]);
    let start = b.broadcast(start, &[count]);
    let sum = body(&mut b.scalars, "ii", |m, p| m.addi(p[0], p[1]));
    b.map(sum, &[iota, start])
}

impl Lowering<'_> {
    /// A value `[n]` as `[n, 1, ..]` repeated to `shape`.
    pub fn along_first(&mut self, v: Value, shape: &[Dim]) -> Value {
        let mut dims = self.b.dims_of(v);
        dims.resize(shape.len(), self.b.n(1));
        let v = self.b.reshape(v, &dims);
        self.b.broadcast(v, shape)
    }

    /// `start, start + 1, ...` as i32 `[count]`.
    pub fn counting(&mut self, count: Dim, start: Dim) -> Value {
        offset_iota(&mut self.b, count, start)
    }

    /// Blocks of tokens that the step completes.
    pub fn completed(&mut self, ratio: u32) -> Dim {
        self.b.dims.dim(DimOp::Completed(ratio))
    }

    /// Pooled rows that exist at the end of the step: `(position + columns) / ratio`.
    pub fn pooled_rows(&mut self, ratio: u32) -> Dim {
        let first = self.b.dims.dim(DimOp::Position);
        let end = self.b.dims.dim(DimOp::Add(first, self.columns));
        self.b.dims.dim(DimOp::Div(end, ratio))
    }

    /// Index of each block that the step completes, i32 `[completed(ratio)]`.
    pub fn completed_blocks(&mut self, ratio: u32) -> Value {
        let count = self.completed(ratio);
        let first = self.b.dims.dim(DimOp::Position);
        let before = self.b.dims.dim(DimOp::Div(first, ratio));
        self.counting(count, before)
    }

    /// Rows of a ring that holds the last positions: capacity for `span` old rows and a step's new ones.
    pub fn ring_capacity(&self, span: u32) -> u32 {
        let step = self.options.prefill.max(self.options.columns);
        span.saturating_add(step).min(self.options.context)
    }

    /// Row of each column in a ring: `position mod capacity`.
    pub fn ring_rows(&mut self, capacity: u32) -> Value {
        let position = self.position;
        self.map("i", [position], |m, [p]| m.remi(p, m.i(capacity as i32)))
    }

    /// Window rows of each column as ring ids `[columns, blocks, 64]`, and the ids of the blocks that have a row,
    /// `[columns, blocks]`. Blocks are anchored at absolute positions.
    pub fn window_ids(&mut self, capacity: u32) -> (Value, Value) {
        let window = self.a.window;
        let count = self.b.n((window - 1).div_ceil(BLOCK) + 1);
        let shape = [self.columns, count, self.b.n(BLOCK)];
        let position = self.position;
        let p = self.along_first(position, &shape);
        let (block, row) = (self.b.iota(&shape, 1), self.b.iota(&shape, 2));
        let ids = self.map("iii", [p, block, row], |m, [p, block, row]| {
            let first = m.maxi(m.subi(p, m.i(window as i32 - 1)), m.i(0));
            let anchor = m.addi(m.divi(first, m.i(BLOCK as i32)), block);
            let x = m.addi(m.muli(anchor, m.i(BLOCK as i32)), row);
            let visible = m.and(m.not(m.lti(x, first)), m.not(m.lti(p, x)));
            m.id_where(visible, m.remi(x, m.i(capacity as i32)))
        });
        let shape = [self.columns, count];
        let p = self.along_first(position, &shape);
        let block = self.b.iota(&shape, 1);
        let blocks = self.map("ii", [p, block], |m, [p, block]| {
            let first = m.maxi(m.subi(p, m.i(window as i32 - 1)), m.i(0));
            let anchor = m.addi(m.divi(first, m.i(BLOCK as i32)), block);
            let last = m.divi(p, m.i(BLOCK as i32));
            m.id_where(m.not(m.lti(last, anchor)), block)
        });
        (ids, blocks)
    }

    /// Pooled rows of each column as ids `[columns, blocks, 64]`: all that are visible, `row < (position + 1) / ratio`;
    /// and the ids of the blocks that have a row, `[columns, blocks]`.
    pub fn visible_ids(&mut self, ratio: u32) -> (Value, Value) {
        let rows = self.pooled_rows(ratio);
        let blocks = self.ceil_blocks(rows);
        let shape = [self.columns, blocks, self.b.n(BLOCK)];
        let position = self.position;
        let p = self.along_first(position, &shape);
        let (block, row) = (self.b.iota(&shape, 1), self.b.iota(&shape, 2));
        let ids = self.map("iii", [p, block, row], |m, [p, block, row]| {
            let x = m.addi(m.muli(block, m.i(BLOCK as i32)), row);
            let visible = m.divi(m.addi(p, m.i(1)), m.i(ratio as i32));
            m.id_where(m.lti(x, visible), x)
        });
        let shape = [self.columns, blocks];
        let p = self.along_first(position, &shape);
        let block = self.b.iota(&shape, 1);
        let present = self.map("ii", [p, block], |m, [p, block]| {
            let visible = m.divi(m.addi(p, m.i(1)), m.i(ratio as i32));
            m.id_where(m.lti(m.muli(block, m.i(BLOCK as i32)), visible), block)
        });
        (ids, present)
    }

    /// `ceil(rows / 64)`
    fn ceil_blocks(&mut self, rows: Dim) -> Dim {
        let rest = self.b.n(BLOCK - 1);
        let padded = self.b.dims.dim(DimOp::Add(rows, rest));
        self.b.dims.dim(DimOp::Div(padded, BLOCK))
    }

    /// Candidates of the indexer: ids `[columns, rows]` of the pooled rows that each column sees.
    pub fn candidate_ids(&mut self, ratio: u32) -> Value {
        let rows = self.pooled_rows(ratio);
        let shape = [self.columns, rows];
        let position = self.position;
        let p = self.along_first(position, &shape);
        let row = self.b.iota(&shape, 1);
        self.map("ii", [p, row], |m, [p, row]| {
            let visible = m.divi(m.addi(p, m.i(1)), m.i(ratio as i32));
            m.id_where(m.lti(row, visible), row)
        })
    }
}
