//! The keys of the family under both of their names, and the architecture that they give.

use ds4_ir::diagnostic::{Diagnostic, codes};

use super::architecture::{Architecture, Experts, Indexer, LayerKind, Layers, Rope, Special, YarnScaling};
use super::keys::{Key, Keys, Source};
use crate::read::{Checkpoint, Json, tokenizer};

/// Most layers. Columns of layers are made before any weight is looked for.
const MAX_LAYERS: u32 = 4096;
/// `expert_gating_func` of GGUF that means the square root of softplus.
const SQRT_SOFTPLUS: u32 = 4;

macro_rules! keys {
    ($($name:ident = $gguf:literal, $($config:literal)|*;)*) => {
        $(const $name: Key = Key { gguf: $gguf, config: &[$($config),*] };)*
    };
}

// GGUF has no name for those with an empty one.
keys! {
    VOCAB_SIZE = "vocab_size", "vocab_size";
    CONTEXT = "context_length", "max_position_embeddings";
    HIDDEN = "embedding_length", "hidden_size";
    LAYERS = "block_count", "num_hidden_layers";
    HEADS = "attention.head_count", "num_attention_heads";
    KV_HEADS = "attention.head_count_kv", "num_key_value_heads";
    HEAD_DIM = "attention.key_length", "head_dim";
    VALUE_DIM = "attention.value_length", "v_head_dim";
    ROPE_DIMS = "rope.dimension_count", "qk_rope_head_dim";
    ROPE_PART = "", "partial_rotary_factor" | "rope_parameters.main.partial_rotary_factor";
    QUERY_RANK = "attention.q_lora_rank", "q_lora_rank";
    OUTPUT_RANK = "attention.output_lora_rank", "o_lora_rank";
    OUTPUT_GROUPS = "attention.output_group_count", "o_groups";
    WINDOW = "attention.sliding_window", "sliding_window";
    RATIOS = "attention.compress_ratios", "compress_ratios";
    LAYER_TYPES = "", "layer_types";
    NORM_EPSILON = "attention.layer_norm_rms_epsilon", "rms_norm_eps";
    INDEXER_HEADS = "attention.indexer.head_count", "index_n_heads";
    INDEXER_DIM = "attention.indexer.key_length", "index_head_dim";
    INDEXER_TOP_K = "attention.indexer.top_k", "index_topk";
    EXPERTS = "expert_count", "n_routed_experts";
    EXPERTS_USED = "expert_used_count", "num_experts_per_tok";
    EXPERTS_SHARED = "expert_shared_count", "n_shared_experts";
    EXPERT_WIDTH = "expert_feed_forward_length", "moe_intermediate_size";
    HASH_LAYERS = "hash_layer_count", "num_hash_layers";
    MLP_TYPES = "", "mlp_layer_types";
    SCORING = "expert_gating_func", "scoring_func";
    SELECTION = "", "topk_method";
    NORMALISE = "expert_weights_norm", "norm_topk_prob";
    ROUTE_SCALE = "expert_weights_scale", "routed_scaling_factor";
    CLAMP = "swiglu_clamp_exp", "swiglu_limit";
    SHARED_CLAMP = "swiglu_clamp_shexp", "swiglu_limit";
    STREAMS = "hyper_connection.count", "hc_mult";
    SINKHORN = "hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters";
    STREAM_EPSILON = "hyper_connection.epsilon", "hc_eps";
    ROPE_BASE = "rope.freq_base", "rope_theta" | "rope_parameters.main.rope_theta";
    COMPRESSED_BASE = "attention.compress_rope_freq_base", "compress_rope_theta" | "rope_parameters.compress.rope_theta";
    YARN_TYPE = "rope.scaling.type", "rope_scaling.type" | "rope_scaling.rope_type" | "rope_parameters.compress.rope_type";
    YARN_FACTOR = "rope.scaling.factor", "rope_scaling.factor" | "rope_parameters.compress.factor";
    YARN_CONTEXT = "rope.scaling.original_context_length",
        "rope_scaling.original_max_position_embeddings" | "rope_parameters.compress.original_max_position_embeddings";
    YARN_FAST = "rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast" | "rope_parameters.compress.beta_fast";
    YARN_SLOW = "rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow" | "rope_parameters.compress.beta_slow";
    MODEL_TYPE = "", "model_type";
    TIED = "", "tie_word_embeddings";
    ACTIVATION = "", "hidden_act";
    BOS = "", "bos_token_id";
    EOS = "", "eos_token_id";
    PAD = "", "pad_token_id";
}

/// The architecture that the keys of a checkpoint give. Ranges and relations are checked later.
pub(super) fn read(checkpoint: &Checkpoint) -> Result<Architecture, Diagnostic> {
    let keys = Keys::new(checkpoint);
    refuse_variants(&keys)?;
    let head_dim = keys.count(HEAD_DIM)?;
    let layer_count = layer_count(&keys)?;
    Ok(Architecture {
        vocab_size: vocab_size(&keys)?,
        hidden: keys.count(HIDDEN)?,
        heads: keys.count(HEADS)?,
        head_dim,
        rope_dims: rope_dims(&keys, head_dim)?,
        query_rank: keys.count(QUERY_RANK)?,
        output_rank: keys.count(OUTPUT_RANK)?,
        output_groups: keys.count(OUTPUT_GROUPS)?,
        window: keys.count(WINDOW)?,
        norm_epsilon: keys.number(NORM_EPSILON)?,
        streams: keys.count(STREAMS)?,
        sinkhorn_iterations: keys.count(SINKHORN)?,
        stream_epsilon: keys.number(STREAM_EPSILON)?,
        context_length: keys.count(CONTEXT)?,
        rope: rope(&keys)?,
        indexer: Indexer {
            heads: keys.count(INDEXER_HEADS)?,
            head_dim: keys.count(INDEXER_DIM)?,
            top_k: keys.count(INDEXER_TOP_K)?,
        },
        experts: experts(&keys, layer_count)?,
        special: special(&keys)?,
        layers: layers(&keys, layer_count)?,
    })
}

/// Refuses what the family has in no release and lowering knows nothing of.
fn refuse_variants(keys: &Keys) -> Result<(), Diagnostic> {
    let refuse = |key, wanted: &str, found: String| {
        let message = "this variant of the model family is not supported";
        Err(keys.error(codes::VARIANT, key, message).wanted(wanted, found))
    };
    if let Source::Config(_) = keys.source() {
        match keys.text_if(MODEL_TYPE)? {
            Some("deepseek_v4") => {}
            found => {
                let message = "the checkpoint is of another architecture";
                let found = found.map_or("no such key".into(), |name| format!("{name:?}"));
                let error = keys.error(codes::ARCHITECTURE, MODEL_TYPE, message);
                return Err(error.wanted("\"deepseek_v4\"", found));
            }
        }
    }
    for (key, wanted) in [(SELECTION, "noaux_tc"), (ACTIVATION, "silu")] {
        if let Some(found) = keys.text_if(key)?.filter(|found| *found != wanted) {
            return refuse(key, &format!("{wanted:?}"), format!("{found:?}"));
        }
    }
    for key in [KV_HEADS, EXPERTS_SHARED] {
        if let Some(found) = keys.count_if(key)?.filter(|found| *found != 1) {
            return refuse(key, "1", found.to_string());
        }
    }
    if keys.flag_if(TIED)? == Some(true) {
        return refuse(TIED, "false", "true".into());
    }
    let (width, value) = (keys.count(HEAD_DIM)?, keys.count_if(VALUE_DIM)?);
    if let Some(value) = value.filter(|value| *value != width) {
        return refuse(VALUE_DIM, &format!("{width}, the length of a key"), value.to_string());
    }
    check_scoring(keys)
}

/// A missing key is no doubt: the family has one scoring function.
fn check_scoring(keys: &Keys) -> Result<(), Diagnostic> {
    let (wanted, found) = match keys.source() {
        Source::Gguf(_) => match keys.count_if(SCORING)? {
            None | Some(SQRT_SOFTPLUS) => return Ok(()),
            Some(other) => ("4 (sqrtsoftplus)", other.to_string()),
        },
        Source::Config(_) => match keys.text_if(SCORING)? {
            None | Some("sqrtsoftplus") => return Ok(()),
            Some(other) => ("\"sqrtsoftplus\"", format!("{other:?}")),
        },
    };
    let message = "the scoring function of the experts is not supported";
    Err(keys.error(codes::SCORING, SCORING, message).wanted(wanted, found))
}

fn layer_count(keys: &Keys) -> Result<usize, Diagnostic> {
    let count = keys.count(LAYERS)?;
    if (1..=MAX_LAYERS).contains(&count) {
        return Ok(count as usize);
    }
    let message = "the number of layers is out of range";
    let error = keys.error(codes::KEY_VALUE, LAYERS, message);
    Err(error.wanted(format!("1 to {MAX_LAYERS}"), count))
}

/// Some GGUF files leave the key out; then the vocabulary has as many tokens.
fn vocab_size(keys: &Keys) -> Result<u32, Diagnostic> {
    if let (Source::Gguf(table), false) = (keys.source(), keys.has(VOCAB_SIZE)) {
        let tokens = table.get("tokenizer.ggml.tokens");
        if let Some(crate::read::Value::List(list)) = tokens
            && let Ok(count) = u32::try_from(list.len())
        {
            return Ok(count);
        }
    }
    keys.count(VOCAB_SIZE)
}

fn rope_dims(keys: &Keys, head_dim: u32) -> Result<u32, Diagnostic> {
    if !keys.has(ROPE_DIMS) && keys.has(ROPE_PART) {
        let dims = head_dim as f32 * keys.number(ROPE_PART)?;
        return Ok(dims.round() as u32);
    }
    keys.count(ROPE_DIMS)
}

fn rope(keys: &Keys) -> Result<Rope, Diagnostic> {
    Ok(Rope { base: keys.number(ROPE_BASE)?, compressed_base: keys.number(COMPRESSED_BASE)?, yarn: yarn(keys)? })
}

fn yarn(keys: &Keys) -> Result<Option<YarnScaling>, Diagnostic> {
    match keys.text_if(YARN_TYPE)? {
        Some("yarn") => {}
        None if keys.has(YARN_FACTOR) => {}
        None | Some("none" | "default") => return Ok(None),
        Some(other) => {
            let message = "this kind of rope scaling is not supported";
            let error = keys.error(codes::VARIANT, YARN_TYPE, message);
            return Err(error.wanted("\"yarn\"", format!("{other:?}")));
        }
    }
    Ok(Some(YarnScaling {
        factor: keys.number(YARN_FACTOR)?,
        original_context: keys.count(YARN_CONTEXT)?,
        beta_fast: keys.number(YARN_FAST)?,
        beta_slow: keys.number(YARN_SLOW)?,
    }))
}

fn experts(keys: &Keys, layer_count: usize) -> Result<Experts, Diagnostic> {
    Ok(Experts {
        count: keys.count(EXPERTS)?,
        used: keys.count(EXPERTS_USED)?,
        shared: keys.count(EXPERTS_SHARED)?,
        width: keys.count(EXPERT_WIDTH)?,
        normalise: keys.flag_if(NORMALISE)?.unwrap_or(true),
        route_scale: keys.number(ROUTE_SCALE)?,
        hash_layers: hash_layers(keys, layer_count)?,
    })
}

/// The number of hash-routed layers, or of leading `hash_moe` entries where only those are given.
fn hash_layers(keys: &Keys, layer_count: usize) -> Result<u32, Diagnostic> {
    if let (false, Some(types)) = (keys.has(HASH_LAYERS), keys.texts_if(MLP_TYPES)?) {
        let types = &types[..types.len().min(layer_count)];
        let hashed = types.iter().take_while(|kind| **kind == "hash_moe").count();
        if types[hashed..].iter().all(|kind| *kind == "moe") {
            return Ok(hashed as u32);
        }
        let message = "the hash-routed layers are not the first ones";
        let error = keys.error(codes::VARIANT, MLP_TYPES, message);
        return Err(error.wanted("hash_moe entries, then moe entries", "another order"));
    }
    keys.count(HASH_LAYERS)
}

fn layers(keys: &Keys, count: usize) -> Result<Layers, Diagnostic> {
    let hash_layers = hash_layers(keys, count)? as usize;
    let clamp = keys.numbers(CLAMP, count)?;
    // Files without a bound of their own for shared experts mean the same bound.
    let shared_clamp = keys.numbers_if(SHARED_CLAMP, count)?;
    Ok(Layers {
        kind: schedule(keys, count)?,
        hash_routed: (0..count).map(|layer| layer < hash_layers).collect(),
        shared_clamp: shared_clamp.unwrap_or_else(|| clamp.clone()),
        clamp,
    })
}

/// The kind of each layer. Entries behind the last layer belong to drafting blocks.
fn schedule(keys: &Keys, count: usize) -> Result<Vec<LayerKind>, Diagnostic> {
    let (key, ratios) = match keys.counts_if(RATIOS)? {
        Some(ratios) => (RATIOS, ratios),
        None => (LAYER_TYPES, ratios_of_types(keys)?),
    };
    let Some(ratios) = ratios.get(..count) else {
        let message = "the schedule of ratios has fewer entries than there are layers";
        let error = keys.error(codes::RATIO_SCHEDULE, key, message);
        return Err(error.wanted(format!("at least {count}"), ratios.len()));
    };
    let kind = |(layer, ratio): (usize, &u32)| {
        LayerKind::of_ratio(*ratio).ok_or_else(|| {
            let message = format!("unsupported ratio in layer {layer}");
            let error = keys.error(codes::RATIO_UNSUPPORTED, key, &message);
            error.wanted("0, 4 or 128", ratio)
        })
    };
    ratios.iter().enumerate().map(kind).collect()
}

/// Ratios from `layer_types`, with `compress_rates` if it is there.
fn ratios_of_types(keys: &Keys) -> Result<Vec<u32>, Diagnostic> {
    let Some(types) = keys.texts_if(LAYER_TYPES)? else {
        let message = "no schedule of compression ratios is given";
        let error = keys.error(codes::RATIO_SCHEDULE, RATIOS, message);
        return Err(error.wanted("a ratio for each layer", "no such key"));
    };
    types.into_iter().map(|name| ratio_of_type(keys, name)).collect()
}

fn ratio_of_type(keys: &Keys, name: &str) -> Result<u32, Diagnostic> {
    let usual = match name {
        "sliding_attention" => return Ok(0),
        "compressed_sparse_attention" => 4,
        "heavily_compressed_attention" => 128,
        _ => {
            let message = "a layer is of an unknown type";
            let error = keys.error(codes::RATIO_SCHEDULE, LAYER_TYPES, message);
            return Err(error.wanted(
                "sliding_attention, compressed_sparse_attention or heavily_compressed_attention",
                format!("{name:?}"),
            ));
        }
    };
    let given = match keys.source() {
        Source::Config(json) => json.member("compress_rates").and_then(|r| r.member(name)),
        Source::Gguf(_) => None,
    };
    let given = given.and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok());
    Ok(given.unwrap_or(usual))
}

fn special(keys: &Keys) -> Result<Special, Diagnostic> {
    Ok(match keys.source() {
        Source::Gguf(table) => Special {
            bos: tokenizer::id(table, "bos"),
            eos: tokenizer::id(table, "eos").into_iter().collect(),
            pad: tokenizer::id(table, "padding"),
        },
        Source::Config(_) => {
            Special { bos: keys.count_if(BOS)?, eos: keys.one_or_many(EOS)?, pad: keys.count_if(PAD)? }
        }
    })
}
