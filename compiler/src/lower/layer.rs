//! A layer: attention and experts, each between reading and spreading the streams.

use ds4_ir::Value;

use super::{Lowering, streams};
use crate::model::Role;

impl Lowering<'_> {
    /// The streams `[columns, N, D]` behind layer `index`.
    pub fn layer(&mut self, index: u32, x: Value) -> Value {
        let (c, spread) = self.b_within("attn.hc_pre", |l| l.read_streams(x, streams::ATTENTION, index));
        let input = self.b_within("attn.norm", |l| l.norm(c, Role::AttentionNorm, Some(index)));
        self.tap(index, "attn_in", input);
        let y = self.b_within("attn", |l| l.attention(index, input));
        self.tap(index, "attn_out", y);
        let x = self.b_within("attn.hc_post", |l| l.spread(x, y, spread));

        let (c, spread) = self.b_within("ffn.hc_pre", |l| l.read_streams(x, streams::EXPERTS, index));
        let input = self.b_within("ffn.norm", |l| l.norm(c, Role::ExpertNorm, Some(index)));
        self.tap(index, "ffn_in", input);
        let y = self.b_within("ffn", |l| l.experts(index, input));
        self.tap(index, "ffn_out", y);
        let x = self.b_within("ffn.hc_post", |l| l.spread(x, y, spread));
        self.tap(index, "hidden", x);
        x
    }
}
