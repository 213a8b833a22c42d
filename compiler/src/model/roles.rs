//! The roles that weights play, under both of their names.

use super::architecture::{Architecture, LayerKind};

/// Whether a role belongs to the model or to each layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One weight.
    Top,
    /// One weight for each layer that needs it.
    Layer,
}

/// What formats a role allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Any format of numbers.
    Matrix,
    /// F32, F16 or BF16.
    Vector,
    /// I32 or I64.
    Ids,
}

/// One row of [`ROLES`].
#[derive(Clone, Copy, Debug)]
pub struct RoleRow {
    /// The role.
    pub role: Role,
    /// Scope.
    pub scope: Scope,
    /// Formats.
    pub family: Family,
    /// Name in GGUF files, behind `blk.L.` for layers.
    pub gguf: &'static str,
    /// Name in released directories, behind `layers.L.` for layers. `*` stands for the expert.
    pub released: &'static str,
    /// Layers that have it.
    needed: fn(LayerKind, bool) -> bool,
    /// Row-major shape.
    shape: fn(&Architecture, LayerKind) -> Vec<u64>,
}

macro_rules! roles {
    ($($(#[$meta:meta])* $name:ident, $scope:ident, $family:ident, $gguf:literal, $released:literal,
        $needed:expr, $shape:expr;)*) => {
        /// What a weight is for.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Role { $($(#[$meta])* $name),* }

        /// All roles, in the order of their numbers.
        pub const ROLES: &[RoleRow] = &[$(RoleRow {
            role: Role::$name,
            scope: Scope::$scope,
            family: Family::$family,
            gguf: $gguf,
            released: $released,
            needed: $needed,
            shape: $shape,
        }),*];
    };
}

fn always(_: LayerKind, _: bool) -> bool {
    true
}

fn compressed(kind: LayerKind, _: bool) -> bool {
    kind.is_compressed()
}

fn indexed(kind: LayerKind, _: bool) -> bool {
    kind.indexer
}

fn hashed(_: LayerKind, hash_routed: bool) -> bool {
    hash_routed
}

fn scored(_: LayerKind, hash_routed: bool) -> bool {
    !hash_routed
}

/// A shape from dimensions, without overflow: [`super::checks`] bounds them.
fn shape<const N: usize>(dims: [u32; N]) -> Vec<u64> {
    dims.map(u64::from).to_vec()
}

fn stream_fn(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.stream_coefficients(), a.stream_width()])
}

fn stream_base(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.stream_coefficients()])
}

fn hidden(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.hidden])
}

fn vocabulary(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.vocab_size, a.hidden])
}

fn pool(a: &Architecture, kind: LayerKind) -> Vec<u64> {
    shape([kind.halves() * a.head_dim, a.hidden])
}

fn index_pool(a: &Architecture, kind: LayerKind) -> Vec<u64> {
    shape([kind.halves() * a.indexer.head_dim, a.hidden])
}

fn experts_in(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.experts.count, a.experts.width, a.hidden])
}

fn experts_out(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.experts.count, a.hidden, a.experts.width])
}

fn shared_in(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.experts.shared * a.experts.width, a.hidden])
}

fn shared_out(a: &Architecture, _: LayerKind) -> Vec<u64> {
    shape([a.hidden, a.experts.shared * a.experts.width])
}

roles! {
    /// Token embedding.
    Embedding, Top, Matrix, "token_embd.weight", "embed.weight", always, vocabulary;
    /// Output projection to logits.
    Head, Top, Matrix, "output.weight", "head.weight", always, vocabulary;
    /// Norm in front of the head.
    FinalNorm, Top, Vector, "output_norm.weight", "norm.weight", always, hidden;
    /// Projection that gives the weights of the final collapse of streams.
    HeadStreamFn, Top, Matrix, "output_hc_fn.weight", "hc_head_fn", always,
        |a, _| shape([a.streams, a.stream_width()]);
    /// Bias of the final collapse.
    HeadStreamBase, Top, Vector, "output_hc_base.weight", "hc_head_base", always, |a, _| shape([a.streams]);
    /// Scale of the final collapse.
    HeadStreamScale, Top, Vector, "output_hc_scale.weight", "hc_head_scale", always, |_, _| shape([1]);

    /// Projection that gives the stream coefficients of attention.
    AttentionStreamFn, Layer, Matrix, "hc_attn_fn.weight", "hc_attn_fn", always, stream_fn;
    /// Bias of these coefficients: pre, post, then the matrix.
    AttentionStreamBase, Layer, Vector, "hc_attn_base.weight", "hc_attn_base", always, stream_base;
    /// Scales of pre, post and matrix.
    AttentionStreamScale, Layer, Vector, "hc_attn_scale.weight", "hc_attn_scale", always, |_, _| shape([3]);
    /// Projection that gives the stream coefficients of the experts.
    ExpertStreamFn, Layer, Matrix, "hc_ffn_fn.weight", "hc_ffn_fn", always, stream_fn;
    /// Bias of these coefficients.
    ExpertStreamBase, Layer, Vector, "hc_ffn_base.weight", "hc_ffn_base", always, stream_base;
    /// Scales of pre, post and matrix.
    ExpertStreamScale, Layer, Vector, "hc_ffn_scale.weight", "hc_ffn_scale", always, |_, _| shape([3]);
    /// Norm in front of attention.
    AttentionNorm, Layer, Vector, "attn_norm.weight", "attn_norm.weight", always, hidden;
    /// Norm in front of the experts.
    ExpertNorm, Layer, Vector, "ffn_norm.weight", "ffn_norm.weight", always, hidden;

    /// Query projection, down to its rank.
    QueryDown, Layer, Matrix, "attn_q_a.weight", "attn.wq_a.weight", always, |a, _| shape([a.query_rank, a.hidden]);
    /// Norm behind it.
    QueryNorm, Layer, Vector, "attn_q_a_norm.weight", "attn.q_norm.weight", always, |a, _| shape([a.query_rank]);
    /// Query projection, up to the heads.
    QueryUp, Layer, Matrix, "attn_q_b.weight", "attn.wq_b.weight", always,
        |a, _| shape([a.heads * a.head_dim, a.query_rank]);
    /// Projection to the key-value row.
    KeyValue, Layer, Matrix, "attn_kv.weight", "attn.wkv.weight", always, |a, _| shape([a.head_dim, a.hidden]);
    /// Norm of that row.
    KeyValueNorm, Layer, Vector, "attn_kv_a_norm.weight", "attn.kv_norm.weight", always, |a, _| shape([a.head_dim]);
    /// Sink logit of each head.
    Sinks, Layer, Vector, "attn_sinks.weight", "attn.attn_sink", always, |a, _| shape([a.heads]);
    /// Output projection, down: the groups' matrices below each other.
    OutputDown, Layer, Matrix, "attn_output_a.weight", "attn.wo_a.weight", always,
        |a, _| shape([a.output_groups * a.output_rank, a.heads_per_group() * a.head_dim]);
    /// Output projection, up.
    OutputUp, Layer, Matrix, "attn_output_b.weight", "attn.wo_b.weight", always,
        |a, _| shape([a.hidden, a.output_groups * a.output_rank]);

    /// Values of pooled rows; twice as many rows where blocks overlap.
    PoolValue, Layer, Matrix, "attn_compressor_kv.weight", "attn.compressor.wkv.weight", compressed, pool;
    /// Gates of pooled rows.
    PoolGate, Layer, Matrix, "attn_compressor_gate.weight", "attn.compressor.wgate.weight", compressed, pool;
    /// Position bias of the gates.
    PoolBias, Layer, Matrix, "attn_compressor_ape.weight", "attn.compressor.ape", compressed,
        |a, kind| shape([kind.ratio, kind.halves() * a.head_dim]);
    /// Norm of pooled rows.
    PoolNorm, Layer, Vector, "attn_compressor_norm.weight", "attn.compressor.norm.weight", compressed,
        |a, _| shape([a.head_dim]);

    /// Queries of the indexer, from the query's rank.
    IndexQuery, Layer, Matrix, "indexer.attn_q_b.weight", "attn.indexer.wq_b.weight", indexed,
        |a, _| shape([a.indexer.heads * a.indexer.head_dim, a.query_rank]);
    /// Weights of the indexer's heads.
    IndexWeights, Layer, Matrix, "indexer.proj.weight", "attn.indexer.weights_proj.weight", indexed,
        |a, _| shape([a.indexer.heads, a.hidden]);
    /// Values of index rows.
    IndexPoolValue, Layer, Matrix, "indexer_compressor_kv.weight", "attn.indexer.compressor.wkv.weight", indexed,
        index_pool;
    /// Gates of index rows.
    IndexPoolGate, Layer, Matrix, "indexer_compressor_gate.weight", "attn.indexer.compressor.wgate.weight", indexed,
        index_pool;
    /// Position bias of these gates.
    IndexPoolBias, Layer, Matrix, "indexer_compressor_ape.weight", "attn.indexer.compressor.ape", indexed,
        |a, kind| shape([kind.ratio, kind.halves() * a.indexer.head_dim]);
    /// Norm of index rows.
    IndexPoolNorm, Layer, Vector, "indexer_compressor_norm.weight", "attn.indexer.compressor.norm.weight", indexed,
        |a, _| shape([a.indexer.head_dim]);

    /// Router.
    Router, Layer, Matrix, "ffn_gate_inp.weight", "ffn.gate.weight", always, |a, _| shape([a.experts.count, a.hidden]);
    /// Bias that only selects.
    RouterBias, Layer, Vector, "exp_probs_b.bias", "ffn.gate.bias", scored, |a, _| shape([a.experts.count]);
    /// Experts of each token id.
    ExpertTable, Layer, Ids, "ffn_gate_tid2eid.weight", "ffn.gate.tid2eid", hashed,
        |a, _| shape([a.vocab_size, a.experts.used]);
    /// Gates of the routed experts.
    ExpertGate, Layer, Matrix, "ffn_gate_exps.weight", "ffn.experts.*.w1.weight", always, experts_in;
    /// Up projections of the routed experts.
    ExpertUp, Layer, Matrix, "ffn_up_exps.weight", "ffn.experts.*.w3.weight", always, experts_in;
    /// Down projections of the routed experts.
    ExpertDown, Layer, Matrix, "ffn_down_exps.weight", "ffn.experts.*.w2.weight", always, experts_out;
    /// Gate of the shared expert.
    SharedGate, Layer, Matrix, "ffn_gate_shexp.weight", "ffn.shared_experts.w1.weight", always, shared_in;
    /// Up projection of the shared expert.
    SharedUp, Layer, Matrix, "ffn_up_shexp.weight", "ffn.shared_experts.w3.weight", always, shared_in;
    /// Down projection of the shared expert.
    SharedDown, Layer, Matrix, "ffn_down_shexp.weight", "ffn.shared_experts.w2.weight", always, shared_out;
}

impl Role {
    /// The row of this role.
    pub fn row(self) -> &'static RoleRow {
        &ROLES[self as usize]
    }

    /// Whether layer `layer` of `architecture` needs this role, or the model itself with `None`.
    pub fn is_needed(self, architecture: &Architecture, layer: Option<u32>) -> bool {
        let row = self.row();
        match (row.scope, layer) {
            (Scope::Top, None) => true,
            (Scope::Layer, Some(layer)) => {
                let layers = &architecture.layers;
                let layer = layer as usize;
                layer < layers.len() && (row.needed)(layers.kind[layer], layers.hash_routed[layer])
            }
            _ => false,
        }
    }

    /// Row-major shape in a layer of `kind`. Routed experts have the expert first.
    pub fn shape(self, architecture: &Architecture, kind: LayerKind) -> Vec<u64> {
        (self.row().shape)(architecture, kind)
    }

    /// Whether the weight has one matrix for each routed expert.
    pub fn is_stacked(self) -> bool {
        matches!(self, Role::ExpertGate | Role::ExpertUp | Role::ExpertDown)
    }

    /// Whether the role belongs to pooling or to the indexer, so that it tells the kind of a layer.
    pub fn tells_kind(self) -> bool {
        (Role::PoolValue..=Role::IndexPoolNorm).contains(&self)
    }

    /// The tensor's name in a GGUF file.
    pub fn gguf_name(self, layer: Option<u32>) -> String {
        match layer {
            None => self.row().gguf.into(),
            Some(layer) => format!("blk.{layer}.{}", self.row().gguf),
        }
    }

    /// The tensor's name in a released directory; `expert` fills the place of the expert.
    pub fn released_name(self, layer: Option<u32>, expert: u32) -> String {
        let name = self.row().released;
        let name = match name.split_once('*') {
            None => name.to_owned(),
            Some((before, after)) => format!("{before}{expert}{after}"),
        };
        match layer {
            None => name,
            Some(layer) => format!("layers.{layer}.{name}"),
        }
    }
}

impl Family {
    /// Whether the family has `format`.
    pub fn allows(self, format: ds4_ir::Format) -> bool {
        use ds4_ir::Format;
        match self {
            Family::Ids => format.is_integer(),
            Family::Matrix => !format.is_integer(),
            Family::Vector => matches!(format, Format::F32 | Format::F16 | Format::BF16),
        }
    }

    /// The formats, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Family::Ids => "i32 or i64",
            Family::Matrix => "a format of numbers",
            Family::Vector => "f32, f16 or bf16",
        }
    }
}
