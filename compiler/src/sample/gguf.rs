//! Writes samples as GGUF.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ds4_ir::Format;

use super::spec::Spec;
use crate::read::{List, Value};

/// Alignment of tensor data.
const ALIGNMENT: u64 = 32;

/// Builds the header of a GGUF file. It checks nothing, so that tests can write faults.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    entries: Vec<u8>,
    entry_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: u64,
}

impl GgufWriter {
    /// Adds a key. Unsigned integers are written as u32, signed ones as i32, where they fit.
    pub fn key(&mut self, key: &str, value: &Value) -> &mut Self {
        write_text(&mut self.entries, key);
        write_value(&mut self.entries, value);
        self.entry_count += 1;
        self
    }

    /// Adds a tensor of a row-major shape behind the data so far.
    pub fn tensor(&mut self, name: &str, format: Format, shape: &[u64]) -> &mut Self {
        let offset = self.data;
        let elements = shape.iter().fold(1u64, |n, dim| n.saturating_mul(*dim));
        let blocks = elements.div_ceil(format.block_len() as u64);
        let bytes = blocks.saturating_mul(format.block_bytes() as u64);
        self.data = self.data.saturating_add(bytes);
        self.data = self.data.checked_next_multiple_of(ALIGNMENT).unwrap_or(self.data);
        self.raw_tensor(name, type_of_format(format), shape, offset)
    }

    /// Adds a tensor of any type number at any offset.
    pub fn raw_tensor(&mut self, name: &str, kind: u32, shape: &[u64], offset: u64) -> &mut Self {
        write_text(&mut self.tensors, name);
        self.tensors.extend((shape.len() as u32).to_le_bytes());
        for dim in shape.iter().rev() {
            self.tensors.extend(dim.to_le_bytes());
        }
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend(offset.to_le_bytes());
        self.tensor_count += 1;
        self
    }

    /// The header, up to the data, and the size of the whole file.
    pub fn finish(&self) -> (Vec<u8>, u64) {
        let mut out = b"GGUF".to_vec();
        out.extend(3u32.to_le_bytes());
        out.extend(self.tensor_count.to_le_bytes());
        out.extend(self.entry_count.to_le_bytes());
        out.extend(&self.entries);
        out.extend(&self.tensors);
        let start = (out.len() as u64).next_multiple_of(ALIGNMENT);
        out.resize(start as usize, 0);
        (out, start.saturating_add(self.data))
    }

    /// Writes the header and leaves the data as a hole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let (header, size) = self.finish();
        let mut file = File::create(path)?;
        file.write_all(&header)?;
        file.set_len(size)
    }
}

/// Writes a sample as a GGUF file whose data is a hole.
pub fn write_gguf(path: &Path, spec: &Spec) -> io::Result<()> {
    writer(spec).write(path)
}

/// The header of a sample, and the size of the whole file.
pub fn gguf_header(spec: &Spec) -> (Vec<u8>, u64) {
    writer(spec).finish()
}

/// Writes a sample as `count` parts in a directory, and gives their paths.
pub fn gguf_parts(directory: &Path, spec: &Spec, count: usize) -> io::Result<Vec<PathBuf>> {
    let weights = spec.weights();
    let mut paths = Vec::new();
    for (number, some) in weights.chunks(weights.len().div_ceil(count).max(1)).enumerate() {
        let mut writer = GgufWriter::default();
        if number == 0 {
            write_keys(&mut writer, spec);
        }
        for (key, value) in [("split.no", number), ("split.count", count)] {
            writer.key(key, &Value::Unsigned(value as u64));
        }
        writer.key("split.tensors.count", &Value::Signed(weights.len() as i64));
        for (role, layer, shape) in some {
            writer.tensor(&role.gguf_name(*layer), spec.formats.of(*role), shape);
        }
        let path = directory.join(format!("sample-{:05}-of-{count:05}.gguf", number + 1));
        writer.write(&path)?;
        paths.push(path);
    }
    Ok(paths)
}

fn writer(spec: &Spec) -> GgufWriter {
    let mut writer = GgufWriter::default();
    write_keys(&mut writer, spec);
    for (role, layer, shape) in spec.weights() {
        writer.tensor(&role.gguf_name(layer), spec.formats.of(role), &shape);
    }
    writer
}

fn write_keys(writer: &mut GgufWriter, spec: &Spec) {
    let text = |text: &str| Value::Text(text.into());
    writer.key("general.architecture", &text("deepseek4"));
    writer.key("general.name", &text(&spec.name));
    for (key, value) in model_keys(spec) {
        writer.key(&format!("deepseek4.{key}"), &value);
    }
    writer.key("tokenizer.ggml.model", &text("gpt2"));
    writer.key("tokenizer.ggml.pre", &text("joyai-llm"));
    let (tokens, kinds) = vocabulary(spec.architecture.vocab_size);
    writer.key("tokenizer.ggml.tokens", &Value::List(List::Text(tokens)));
    writer.key("tokenizer.ggml.token_type", &Value::List(List::Signed(kinds)));
    writer.key("tokenizer.ggml.merges", &Value::List(List::Text(Vec::new())));
    let special = &spec.architecture.special;
    let ids = [("bos", special.bos), ("eos", special.eos.first().copied()), ("padding", special.pad)];
    for (name, id) in ids {
        if let Some(id) = id {
            let key = format!("tokenizer.ggml.{name}_token_id");
            writer.key(&key, &Value::Unsigned(id.into()));
        }
    }
}

fn model_keys(spec: &Spec) -> Vec<(&'static str, Value)> {
    let a = &spec.architecture;
    let count = |n: u32| Value::Unsigned(n.into());
    let clamps = |list: &[f32]| Value::List(List::F32(list.to_vec()));
    let ratios = a.layers.kind.iter().map(|kind| i64::from(kind.ratio));
    let mut keys = vec![
        ("vocab_size", count(a.vocab_size)),
        ("context_length", count(a.context_length)),
        ("embedding_length", count(a.hidden)),
        ("block_count", count(a.layers.len() as u32)),
        ("attention.head_count", count(a.heads)),
        ("attention.head_count_kv", count(1)),
        ("attention.key_length", count(a.head_dim)),
        ("attention.value_length", count(a.head_dim)),
        ("attention.layer_norm_rms_epsilon", Value::F32(a.norm_epsilon)),
        ("attention.q_lora_rank", count(a.query_rank)),
        ("attention.output_lora_rank", count(a.output_rank)),
        ("attention.output_group_count", count(a.output_groups)),
        ("attention.sliding_window", count(a.window)),
        ("attention.compress_ratios", Value::List(List::Signed(ratios.collect()))),
        ("attention.compress_rope_freq_base", Value::F32(a.rope.compressed_base)),
        ("attention.indexer.head_count", count(a.indexer.heads)),
        ("attention.indexer.key_length", count(a.indexer.head_dim)),
        ("attention.indexer.top_k", count(a.indexer.top_k)),
        ("rope.dimension_count", count(a.rope_dims)),
        ("rope.freq_base", Value::F32(a.rope.base)),
        ("expert_count", count(a.experts.count)),
        ("expert_used_count", count(a.experts.used)),
        ("expert_shared_count", count(a.experts.shared)),
        ("expert_feed_forward_length", count(a.experts.width)),
        ("expert_gating_func", count(4)),
        ("expert_weights_scale", Value::F32(a.experts.route_scale)),
        ("expert_weights_norm", Value::Bool(a.experts.normalise)),
        ("swiglu_clamp_exp", clamps(&a.layers.clamp)),
        ("swiglu_clamp_shexp", clamps(&a.layers.shared_clamp)),
        ("hash_layer_count", count(a.experts.hash_layers)),
        ("hyper_connection.count", count(a.streams)),
        ("hyper_connection.sinkhorn_iterations", count(a.sinkhorn_iterations)),
        ("hyper_connection.epsilon", Value::F32(a.stream_epsilon)),
    ];
    if let Some(yarn) = a.rope.yarn {
        keys.extend([
            ("rope.scaling.type", Value::Text("yarn".into())),
            ("rope.scaling.factor", Value::F32(yarn.factor)),
            ("rope.scaling.original_context_length", count(yarn.original_context)),
            ("rope.scaling.yarn_beta_fast", Value::F32(yarn.beta_fast)),
            ("rope.scaling.yarn_beta_slow", Value::F32(yarn.beta_slow)),
        ]);
    }
    keys
}

/// Special tokens, the alphabet of bytes, and made-up tokens up to `count`; with their GGUF types.
fn vocabulary(count: u32) -> (Vec<String>, Vec<i64>) {
    let special = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"];
    let mut tokens: Vec<String> = special.map(String::from).to_vec();
    let mut kinds = vec![3; tokens.len()];
    // GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 and on.
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let others = 256 - (0..256).filter(printable).count() as u32;
    let alphabet = (0..256).filter(printable).chain(256..256 + others);
    tokens.extend(alphabet.filter_map(char::from_u32).map(String::from));
    kinds.resize(tokens.len(), 1);
    tokens.truncate(count as usize);
    kinds.truncate(count as usize);
    for id in tokens.len()..count as usize {
        tokens.push(format!("<unused{id}>"));
        kinds.push(5);
    }
    (tokens, kinds)
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Type number and bytes of a value.
fn write_value(out: &mut Vec<u8>, value: &Value) {
    let mut put = |kind: u32, bytes: &[u8]| {
        out.extend(kind.to_le_bytes());
        out.extend(bytes);
    };
    match value {
        Value::Unsigned(n) => match u32::try_from(*n) {
            Ok(n) => put(4, &n.to_le_bytes()),
            Err(_) => put(10, &n.to_le_bytes()),
        },
        Value::Signed(n) => match i32::try_from(*n) {
            Ok(n) => put(5, &n.to_le_bytes()),
            Err(_) => put(11, &n.to_le_bytes()),
        },
        Value::F32(n) => put(6, &n.to_le_bytes()),
        Value::F64(n) => put(12, &n.to_le_bytes()),
        Value::Bool(flag) => put(7, &[u8::from(*flag)]),
        Value::Text(text) => {
            put(8, &[]);
            write_text(out, text);
        }
        Value::List(list) => {
            put(9, &[]);
            write_list(out, list);
        }
    }
}

/// Element type, length and elements of a list. Integers are written with 64 bits but for those that fit
/// i32, as the ratios and token types of real files.
fn write_list(out: &mut Vec<u8>, list: &List) {
    let mut head = |kind: u32| {
        out.extend(kind.to_le_bytes());
        out.extend((list.len() as u64).to_le_bytes());
    };
    match list {
        List::Unsigned(items) => {
            head(10);
            items.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
        List::Signed(items) if items.iter().all(|n| i32::try_from(*n).is_ok()) => {
            head(5);
            items.iter().for_each(|n| out.extend((*n as i32).to_le_bytes()));
        }
        List::Signed(items) => {
            head(11);
            items.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
        List::F32(items) => {
            head(6);
            items.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
        List::F64(items) => {
            head(12);
            items.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
        List::Bool(items) => {
            head(7);
            out.extend(items.iter().map(|flag| u8::from(*flag)));
        }
        List::Text(items) => {
            head(8);
            items.iter().for_each(|text| write_text(out, text));
        }
        List::List(items) => {
            head(9);
            items.iter().for_each(|list| write_list(out, list));
        }
    }
}

/// ggml's number of a format. The formats of released directories have none; theirs is not read back.
fn type_of_format(format: Format) -> u32 {
    match format {
        Format::F32 => 0,
        Format::F16 => 1,
        Format::Q8_0 => 8,
        Format::Q2_K => 10,
        Format::Q4_K => 12,
        Format::IQ2_XXS => 16,
        Format::I32 => 26,
        Format::I64 => 27,
        Format::BF16 => 30,
        Format::MXFP4 => 39,
        Format::Fp8 | Format::Fp4 => u32::MAX,
    }
}
