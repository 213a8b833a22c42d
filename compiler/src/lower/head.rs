//! The output head: logits, or the most probable token.

use ds4_ir::{DimOp, ReduceKind, Tree, Value};

use super::{Head, Lowering};
use crate::model::Role;

/// Most neighbouring tokens whose largest logit is found together.
const GROUP: u32 = 16;

impl Lowering<'_> {
    /// Logits and greedy tokens of the last `outputs` columns.
    pub fn head(&mut self, streams: Value) {
        let outputs = self.b.dims.dim(DimOp::Outputs);
        let first = self.b.dims.dim(DimOp::Sub(self.columns, outputs));
        let last = self.b.slice(streams, 0, first, outputs);
        let collapsed = self.b_within("hc", |l| l.collapsed(last));
        let normed = self.b_within("norm", |l| l.norm(collapsed, Role::FinalNorm, None));
        self.b.tap("final_norm", normed);
        let logits = self.linear(normed, Role::Head, None);
        match self.options.head {
            Head::Logits => {
                let greedy = self.b.arg_max(logits);
                self.b.tap("logits", logits);
                self.b.output("logits", logits);
                self.b.output("greedy", greedy);
            }
            Head::Greedy => self.greedy(logits),
        }
    }

    /// The most probable token without the logits: the largest of each group of neighbours, which may be found where the group's
    /// logits are computed, then the largest of these. The first of equal ones, as `arg_max` of the whole row.
    fn greedy(&mut self, logits: Value) {
        let shape = self.b.dims_of(logits);
        let vocabulary = self.b.dims.constant(shape[1]).expect("the vocabulary is constant");
        let size = (1..=GROUP).rev().find(|&size| vocabulary.is_multiple_of(size)).unwrap_or(1);
        let grouped = [shape[0], self.b.n(vocabulary / size), self.b.n(size)];
        let groups = self.b.reshape(logits, &grouped);
        let places = self.b.arg_max(groups);
        let peaks = self.b.reduce(ReduceKind::Max, Tree::Free, 2, groups, None);
        let group = self.b.arg_max(peaks);
        let place = self.b.gather(1, 1, places, group);
        let greedy = self.map("ii", [group, place], |m, [group, place]| m.addi(m.muli(group, m.i(size as i32)), place));
        let peak = self.b.reduce(ReduceKind::Max, Tree::Free, 1, peaks, None);
        self.b.output("greedy", greedy);
        self.b.output("peak", peak);
    }
}
