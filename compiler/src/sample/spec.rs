//! What a sample is like.

use ds4_ir::Format;

use crate::model::{Architecture, Experts, Indexer, LayerKind, Layers, ROLES, Role, Rope, Scope, Special, YarnScaling};

/// A model to write: its architecture and the storage formats of its weights.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    /// Name, for `general.name`.
    pub name: String,
    /// Dimensions, constants and layers.
    pub architecture: Architecture,
    /// Formats of a GGUF file. Released directories have formats of their own.
    pub formats: Formats,
}

/// Storage formats of a GGUF file by group of roles. Vectors are F32 and id tables I32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formats {
    /// Embedding, router, pooling, indexer and stream projections.
    pub plain: Format,
    /// Head, attention and shared experts.
    pub dense: Format,
    /// Gate and up of routed experts.
    pub experts_in: Format,
    /// Down projection of routed experts.
    pub experts_out: Format,
}

impl Formats {
    /// Experts of about two bits, as the usual GGUF files of V4-Flash have them.
    pub const Q2: Formats =
        Formats { plain: Format::F16, dense: Format::Q8_0, experts_in: Format::IQ2_XXS, experts_out: Format::Q2_K };

    /// The format of a role.
    pub fn of(&self, role: Role) -> Format {
        use crate::model::Family;
        match (role.row().family, role) {
            (Family::Ids, _) => Format::I32,
            (Family::Vector, _) => Format::F32,
            (_, Role::ExpertGate | Role::ExpertUp) => self.experts_in,
            (_, Role::ExpertDown) => self.experts_out,
            (_, Role::Head | Role::SharedGate | Role::SharedUp | Role::SharedDown) => self.dense,
            (_, Role::QueryDown | Role::QueryUp | Role::KeyValue) => self.dense,
            (_, Role::OutputDown | Role::OutputUp) => self.dense,
            _ => self.plain,
        }
    }
}

/// Dimensions that differ between the samples.
struct Sizes {
    vocab: u32,
    hidden: u32,
    heads: u32,
    head_dim: u32,
    rope_dims: u32,
    query_rank: u32,
    output_rank: u32,
    groups: u32,
    window: u32,
    indexer: Indexer,
    experts: (u32, u32, u32),
    route_scale: f32,
    hash_layers: u32,
}

impl Spec {
    /// The shape of V4-Flash with its first `layers` layers (the release has 43).
    pub fn flash(layers: u32) -> Spec {
        let sizes = Sizes {
            vocab: 129_280,
            hidden: 4096,
            heads: 64,
            head_dim: 512,
            rope_dims: 64,
            query_rank: 1024,
            output_rank: 1024,
            groups: 8,
            window: 128,
            indexer: Indexer { heads: 64, head_dim: 128, top_k: 512 },
            experts: (256, 6, 2048),
            route_scale: 1.5,
            hash_layers: 3,
        };
        let ratio = |layer| match layer {
            0 | 1 => 0,
            _ if layer % 2 == 0 => 4,
            _ => 128,
        };
        Spec::new("sample V4 Flash", sizes, (0..layers).map(ratio).collect())
    }

    /// The shape of V4-Pro with its first `layers` layers (the release has 61).
    pub fn pro(layers: u32) -> Spec {
        let sizes = Sizes {
            vocab: 129_280,
            hidden: 7168,
            heads: 128,
            head_dim: 512,
            rope_dims: 64,
            query_rank: 1536,
            output_rank: 1024,
            groups: 16,
            window: 128,
            indexer: Indexer { heads: 64, head_dim: 128, top_k: 1024 },
            experts: (384, 6, 3072),
            route_scale: 2.5,
            hash_layers: 3,
        };
        let ratio = |layer| if layer < 2 || layer % 2 == 1 { 128 } else { 4 };
        Spec::new("sample V4 Pro", sizes, (0..layers).map(ratio).collect())
    }

    /// A model of a few hundred kilobytes that has layers of every kind.
    pub fn tiny() -> Spec {
        let sizes = Sizes {
            vocab: 288,
            hidden: 256,
            heads: 4,
            head_dim: 64,
            rope_dims: 16,
            query_rank: 64,
            output_rank: 32,
            groups: 2,
            window: 32,
            indexer: Indexer { heads: 2, head_dim: 32, top_k: 8 },
            experts: (4, 2, 256),
            route_scale: 1.5,
            hash_layers: 1,
        };
        Spec::new("sample tiny", sizes, vec![0, 4, 128])
    }

    fn new(name: &str, sizes: Sizes, ratios: Vec<u32>) -> Spec {
        let kind = ratios.iter().filter_map(|ratio| LayerKind::of_ratio(*ratio));
        let kind: Vec<_> = kind.collect();
        let count = kind.len();
        let hash_layers = sizes.hash_layers.min(count as u32);
        let layers = Layers {
            kind,
            hash_routed: (0..count as u32).map(|layer| layer < hash_layers).collect(),
            clamp: vec![10.0; count],
            shared_clamp: vec![10.0; count],
        };
        Spec { name: name.into(), architecture: architecture(&sizes, hash_layers, layers), formats: Formats::Q2 }
    }

    /// Role, layer and shape of every weight, in the order of the tables.
    pub fn weights(&self) -> Vec<(Role, Option<u32>, Vec<u64>)> {
        let a = &self.architecture;
        let layers = (0..a.layers.len() as u32).map(Some);
        let mut weights = Vec::new();
        for layer in std::iter::once(None).chain(layers) {
            let index = layer.unwrap_or(0) as usize;
            let Some(kind) = a.layers.kind.get(index).copied() else {
                continue;
            };
            for row in ROLES {
                let here = (row.scope == Scope::Top) == layer.is_none();
                if here && row.role.is_needed(a, layer) {
                    weights.push((row.role, layer, row.role.shape(a, kind)));
                }
            }
        }
        weights
    }
}

fn architecture(sizes: &Sizes, hash_layers: u32, layers: Layers) -> Architecture {
    let (count, used, width) = sizes.experts;
    Architecture {
        vocab_size: sizes.vocab,
        hidden: sizes.hidden,
        heads: sizes.heads,
        head_dim: sizes.head_dim,
        rope_dims: sizes.rope_dims,
        query_rank: sizes.query_rank,
        output_rank: sizes.output_rank,
        output_groups: sizes.groups,
        window: sizes.window,
        norm_epsilon: 1e-6,
        streams: 4,
        sinkhorn_iterations: 20,
        stream_epsilon: 1e-6,
        context_length: 1 << 20,
        rope: Rope {
            base: 10_000.0,
            compressed_base: 160_000.0,
            yarn: Some(YarnScaling { factor: 16.0, original_context: 65_536, beta_fast: 32.0, beta_slow: 1.0 }),
        },
        indexer: sizes.indexer,
        experts: Experts {
            count,
            used,
            shared: 1,
            width,
            normalise: true,
            route_scale: sizes.route_scale,
            hash_layers,
        },
        special: Special { bos: Some(0), eos: vec![1], pad: Some(2) },
        layers,
    }
}
