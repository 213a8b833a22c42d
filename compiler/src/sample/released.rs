//! Writes samples as released directories: FP8 matrices, FP4 experts, one file of weights.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::spec::Spec;
use crate::model::{Family, Role};

/// Side of an FP8 scale block.
const BLOCK: u64 = 128;

/// Writes a sample into `directory`, which is made if needed. The weights are a hole.
pub fn write_released(directory: &Path, spec: &Spec) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join("config.json"), config_json(spec).to_string())?;
    let (header, size) = safetensors_header(spec);
    let mut file = File::create(directory.join("model.safetensors"))?;
    file.write_all(&header)?;
    file.set_len(size)
}

/// The `config.json` of a sample.
pub fn config_json(spec: &Spec) -> Value {
    let mut config = dimensions(spec);
    if let (Value::Object(all), Value::Object(more)) = (&mut config, constants(spec)) {
        all.extend(more);
    }
    config
}

fn dimensions(spec: &Spec) -> Value {
    let a = &spec.architecture;
    let ratios: Vec<u32> = a.layers.kind.iter().map(|kind| kind.ratio).collect();
    json!({
        "architectures": ["DeepseekV4ForCausalLM"],
        "model_type": "deepseek_v4",
        "vocab_size": a.vocab_size,
        "hidden_size": a.hidden,
        "moe_intermediate_size": a.experts.width,
        "num_hidden_layers": a.layers.len(),
        "num_attention_heads": a.heads,
        "num_key_value_heads": 1,
        "head_dim": a.head_dim,
        "qk_rope_head_dim": a.rope_dims,
        "q_lora_rank": a.query_rank,
        "o_lora_rank": a.output_rank,
        "o_groups": a.output_groups,
        "n_routed_experts": a.experts.count,
        "n_shared_experts": a.experts.shared,
        "num_experts_per_tok": a.experts.used,
        "num_hash_layers": a.experts.hash_layers,
        "compress_ratios": ratios,
        "sliding_window": a.window,
        "index_n_heads": a.indexer.heads,
        "index_head_dim": a.indexer.head_dim,
        "index_topk": a.indexer.top_k,
        "hc_mult": a.streams,
        "hc_sinkhorn_iters": a.sinkhorn_iterations,
        "max_position_embeddings": a.context_length,
    })
}

fn constants(spec: &Spec) -> Value {
    let a = &spec.architecture;
    // f32 as its shortest decimal, which rounds back to the same f32.
    let number = |n: f32| -> Value { serde_json::from_str(&format!("{n:?}")).unwrap_or_default() };
    let yarn = a.rope.yarn.map(|yarn| {
        json!({
            "type": "yarn",
            "factor": number(yarn.factor),
            "original_max_position_embeddings": yarn.original_context,
            "beta_fast": number(yarn.beta_fast),
            "beta_slow": number(yarn.beta_slow),
        })
    });
    json!({
        "scoring_func": "sqrtsoftplus",
        "topk_method": "noaux_tc",
        "norm_topk_prob": a.experts.normalise,
        "routed_scaling_factor": number(a.experts.route_scale),
        "swiglu_limit": a.layers.clamp.first().copied().map(number),
        "hidden_act": "silu",
        "rms_norm_eps": number(a.norm_epsilon),
        "rope_theta": number(a.rope.base),
        "compress_rope_theta": number(a.rope.compressed_base),
        "rope_scaling": yarn,
        "hc_eps": number(a.stream_epsilon),
        "tie_word_embeddings": false,
        "bos_token_id": a.special.bos,
        "eos_token_id": a.special.eos,
        "pad_token_id": a.special.pad,
        "expert_dtype": "fp4",
        "quantization_config": {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "scale_fmt": "ue8m0",
            "weight_block_size": [BLOCK, BLOCK],
        },
    })
}

/// Header of the weight file of a sample, and the size of the whole file.
pub fn safetensors_header(spec: &Spec) -> (Vec<u8>, u64) {
    let mut tensors: Vec<(String, &str, Vec<u64>)> = Vec::new();
    for (role, layer, shape) in spec.weights() {
        let (count, shape) = match role.is_stacked() {
            true => (shape[0] as u32, &shape[1..]),
            false => (1, &shape[..]),
        };
        for expert in 0..count {
            push_tensor(&mut tensors, role, role.released_name(layer, expert), shape);
        }
    }
    // Wide types first, so that all stay aligned.
    tensors.sort_by_key(|(_, dtype, _)| std::cmp::Reverse(width(dtype)));
    let mut header = Map::new();
    header.insert("__metadata__".into(), json!({ "format": "pt" }));
    let mut end = 0;
    for (name, dtype, shape) in tensors {
        let start = end;
        end += shape.iter().product::<u64>() * width(dtype);
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
        header.insert(name, entry);
    }
    let mut text = Value::Object(header).to_string();
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    let size = out.len() as u64 + end;
    (out, size)
}

fn push_tensor(tensors: &mut Vec<(String, &str, Vec<u64>)>, role: Role, name: String, shape: &[u64]) {
    let scale = format!("{}.scale", name.strip_suffix(".weight").unwrap_or(&name));
    match (dtype(role), shape) {
        ("I8", [rows, cols]) => {
            tensors.push((name, "I8", vec![*rows, cols / 2]));
            tensors.push((scale, "F8_E8M0", vec![*rows, cols / 32]));
        }
        ("F8_E4M3", [rows, cols]) => {
            tensors.push((name, "F8_E4M3", vec![*rows, *cols]));
            let grid = vec![rows.div_ceil(BLOCK), cols.div_ceil(BLOCK)];
            tensors.push((scale, "F8_E8M0", grid));
        }
        (dtype, _) => tensors.push((name, dtype, shape.to_vec())),
    }
}

/// The released type of a role.
fn dtype(role: Role) -> &'static str {
    use Role::*;
    match role {
        ExpertTable => "I64",
        ExpertGate | ExpertUp | ExpertDown => "I8",
        QueryDown | QueryUp | KeyValue | OutputDown | OutputUp | IndexQuery => "F8_E4M3",
        SharedGate | SharedUp | SharedDown => "F8_E4M3",
        HeadStreamFn | AttentionStreamFn | ExpertStreamFn | PoolBias | IndexPoolBias => "F32",
        _ if role.row().family == Family::Matrix || role.is_norm() => "BF16",
        _ => "F32",
    }
}

fn width(dtype: &str) -> u64 {
    match dtype {
        "I64" => 8,
        "F32" => 4,
        "BF16" => 2,
        _ => 1,
    }
}

impl Role {
    fn is_norm(self) -> bool {
        self.row().released.ends_with("norm.weight")
    }
}
