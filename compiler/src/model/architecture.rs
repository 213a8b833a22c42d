//! Dimensions and constants of a model.

/// Everything about a model but its weights. Constants are f32, rounded once from what is written.
#[derive(Clone, PartialEq, Debug)]
pub struct Architecture {
    /// Tokens in the vocabulary: rows of embedding and head.
    pub vocab_size: u32,
    /// Width of a residual stream.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Width of a head, of the one key-value row and of a pooled row.
    pub head_dim: u32,
    /// Last dimensions of a head that carry rope.
    pub rope_dims: u32,
    /// Rank of the query projection.
    pub query_rank: u32,
    /// Rank of the output projection, for each group.
    pub output_rank: u32,
    /// Groups of heads of the output projection.
    pub output_groups: u32,
    /// Tokens in the sliding window, the current one among them.
    pub window: u32,
    /// Epsilon of RMS norms.
    pub norm_epsilon: f32,
    /// Residual streams.
    pub streams: u32,
    /// Sinkhorn iterations that balance the stream mixing.
    pub sinkhorn_iterations: u32,
    /// Epsilon of the stream mixing.
    pub stream_epsilon: f32,
    /// Most positions of a sequence.
    pub context_length: u32,
    /// Rotary positions.
    pub rope: Rope,
    /// The indexer of layers with [`LayerKind::indexer`].
    pub indexer: Indexer,
    /// Routed and shared experts.
    pub experts: Experts,
    /// Special tokens.
    pub special: Special,
    /// Layers.
    pub layers: Layers,
}

/// Rotary positions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rope {
    /// Base in layers of ratio 0.
    pub base: f32,
    /// Base in the other layers.
    pub compressed_base: f32,
    /// Scaling in the layers with a ratio above 0, if any.
    pub yarn: Option<YarnScaling>,
}

/// YaRN scaling.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct YarnScaling {
    /// Factor.
    pub factor: f32,
    /// Context length before scaling.
    pub original_context: u32,
    /// Rotations at which dimensions stop being interpolated.
    pub beta_fast: f32,
    /// Rotations at which dimensions start being interpolated in full.
    pub beta_slow: f32,
}

/// The indexer's dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Indexer {
    /// Heads.
    pub heads: u32,
    /// Width of a head and of an index row.
    pub head_dim: u32,
    /// Pooled rows that it keeps.
    pub top_k: u32,
}

/// Routed and shared experts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experts {
    /// Routed experts of a layer.
    pub count: u32,
    /// Routed experts that a token takes.
    pub used: u32,
    /// Shared experts. One, in all models that are read.
    pub shared: u32,
    /// Width of an expert.
    pub width: u32,
    /// Whether the weights of a token's experts are made to sum to one, before the scale.
    pub normalise: bool,
    /// Factor on the weights.
    pub route_scale: f32,
    /// First layers, whose experts come from a table by token id.
    pub hash_layers: u32,
}

/// Ids of special tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Special {
    /// Begins a text.
    pub bos: Option<u32>,
    /// Each of them ends a text.
    pub eos: Vec<u32>,
    /// Fills up batches.
    pub pad: Option<u32>,
}

/// Layers, a column for each fact.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layers {
    /// How the layer attends.
    pub kind: Vec<LayerKind>,
    /// Whether its experts come from a table by token id.
    pub hash_routed: Vec<bool>,
    /// Bound on gate and up of routed experts.
    pub clamp: Vec<f32>,
    /// Bound on gate and up of shared experts.
    pub shared_clamp: Vec<f32>,
}

impl Layers {
    /// Number of layers.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }
}

/// How a layer attends beyond its window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LayerKind {
    /// Tokens of a pooled row; 0: no pooled rows.
    pub ratio: u32,
    /// Whether pooling also sees the previous block, through a second half of the projections.
    pub overlap: bool,
    /// Whether an indexer picks the pooled rows.
    pub indexer: bool,
}

impl LayerKind {
    /// The ratios of the family.
    pub const RATIOS: [u32; 3] = [0, 4, 128];

    /// The kind of a ratio: the one place that says which ratio overlaps and has an indexer.
    pub fn of_ratio(ratio: u32) -> Option<LayerKind> {
        Self::RATIOS.contains(&ratio).then_some(LayerKind { ratio, overlap: ratio == 4, indexer: ratio == 4 })
    }

    /// Whether there are pooled rows.
    pub fn is_compressed(self) -> bool {
        self.ratio > 0
    }

    /// Halves of the pooling projections: two where blocks overlap.
    pub fn halves(self) -> u32 {
        if self.overlap { 2 } else { 1 }
    }
}

impl Architecture {
    /// Coefficients of one stream mixing: pre, post and the matrix between streams.
    pub fn stream_coefficients(&self) -> u32 {
        self.streams * (2 + self.streams)
    }

    /// Width of all streams together.
    pub fn stream_width(&self) -> u32 {
        self.streams * self.hidden
    }

    /// Heads of one group of the output projection.
    pub fn heads_per_group(&self) -> u32 {
        self.heads / self.output_groups
    }
}
