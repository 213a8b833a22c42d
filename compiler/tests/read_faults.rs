//! What the readers say about faulty checkpoints, as golden text.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use ds4_compiler::model::Model;
use ds4_compiler::read::{self, List, Value, tokenizer};
use ds4_compiler::sample::{GgufWriter, Spec, config_json, gguf_header, gguf_parts, write_gguf, write_released};
use ds4_ir::Format;
use ds4_ir::diagnostic::codes;
use tempfile::TempDir;

/// A directory whose path does not show in messages.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Scratch(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The message that reading `path` as far as a model ends with.
    fn message(&self, path: &Path) -> String {
        let result = read::open(path).and_then(|checkpoint| Model::read(&checkpoint).map(drop));
        let text = result.map_or_else(|error| error.to_string(), |()| "no error".into());
        text.replace(self.0.path().to_str().unwrap(), "DIR")
    }

    /// The message about a file of these bytes, `size` bytes long.
    fn of_bytes(&self, bytes: &[u8], size: u64) -> String {
        let path = self.path("m.gguf");
        fs::write(&path, bytes).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
        self.message(&path)
    }

    fn of_writer(&self, build: impl FnOnce(&mut GgufWriter) -> &mut GgufWriter) -> String {
        let mut writer = GgufWriter::default();
        writer.key("general.architecture", &text("deepseek4"));
        build(&mut writer);
        let (bytes, size) = writer.finish();
        self.of_bytes(&bytes, size)
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// Joins messages under their names.
fn report(cases: Vec<(&str, String)>) -> String {
    cases.into_iter().map(|(name, message)| format!("## {name}\n{message}\n\n")).collect()
}

/// Sections: magic, version, counts, metadata, tensor descriptions, padding, data.
#[test]
fn gguf_cut_at_every_section() {
    let scratch = Scratch::new();
    let (bytes, size) = gguf_header(&Spec::tiny());
    let tensors = bytes.windows(17).position(|w| w == b"token_embd.weight").unwrap() - 8;
    let cuts = [
        ("empty", 0),
        ("inside the magic number", 3),
        ("behind the magic number", 4),
        ("behind the version", 8),
        ("behind the number of tensors", 16),
        ("behind both counts", 24),
        ("inside a key", 40),
        ("behind the metadata", tensors),
        ("inside a tensor name", tensors + 12),
        ("behind the first tensor", tensors + 8 + 17 + 4 + 16 + 4 + 8),
        ("behind all tensors", bytes.len() - 31),
        ("in front of the data", bytes.len()),
    ];
    let mut cases: Vec<_> =
        cuts.iter().map(|(name, len)| (*name, scratch.of_bytes(&bytes[..*len], *len as u64))).collect();
    cases.push(("inside the data", scratch.of_bytes(&bytes, size - 4096)));
    insta::assert_snapshot!(report(cases));
}

/// Every cut inside the header gives a diagnostic of the first hundred.
#[test]
fn gguf_cut_anywhere() {
    let scratch = Scratch::new();
    let (bytes, _) = gguf_header(&Spec::tiny());
    for len in (0..bytes.len()).step_by(7) {
        let message = scratch.of_bytes(&bytes[..len], len as u64);
        assert!(message.starts_with("error[DS4-01"), "{len}: {message}");
    }
}

fn patched(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

#[test]
fn gguf_counts_and_headers() {
    let scratch = Scratch::new();
    let (bytes, size) = gguf_header(&Spec::tiny());
    let huge = u64::MAX.to_le_bytes();
    let patch = |at, value: &[u8]| scratch.of_bytes(&patched(&bytes, at, value), size);
    let cases = vec![
        ("no GGUF", patch(0, b"GGML")),
        ("version 2", patch(4, &2u32.to_le_bytes())),
        ("big endian", patch(4, &3u32.to_be_bytes())),
        ("tensor count", patch(8, &huge)),
        ("metadata count", patch(16, &huge)),
        ("key length", patch(24, &huge)),
        ("key length that wraps around", patch(24, &(u64::MAX - 20).to_le_bytes())),
        ("value type", patch(24 + 8 + 20, &99u32.to_le_bytes())),
        ("key that is no text", patch(32, &[0xff])),
        ("no keys of the model", scratch.of_writer(|w| w.key("x", &Value::Bool(true)))),
    ];
    insta::assert_snapshot!(report(cases));
}

#[test]
fn gguf_metadata() {
    let scratch = Scratch::new();
    let mut other = GgufWriter::default();
    other.key("general.architecture", &text("llama"));
    let (bytes, size) = other.finish();
    let nothing = GgufWriter::default().finish();
    let mut deep = List::Unsigned(vec![1]);
    for _ in 0..6 {
        deep = List::List(vec![deep]);
    }
    let align = |n| scratch.of_writer(|w| w.key("general.alignment", &Value::Unsigned(n)));
    let cases = vec![
        ("another architecture", scratch.of_bytes(&bytes, size)),
        ("no architecture", scratch.of_bytes(&nothing.0, nothing.1)),
        ("key twice", scratch.of_writer(|w| w.key("a", &text("x")).key("a", &text("y")))),
        ("deep arrays", scratch.of_writer(|w| w.key("deep", &Value::List(deep)))),
        ("alignment 0", align(0)),
        ("alignment 48", align(48)),
    ];
    insta::assert_snapshot!(report(cases));
}

#[test]
fn gguf_tensors() {
    let scratch = Scratch::new();
    let raw = |kind, shape: &[u64], offset| scratch.of_writer(|w| w.raw_tensor("t", kind, shape, offset));
    let two = |a: &str, b: &str, offset| {
        scratch.of_writer(|w| w.tensor(a, Format::F32, &[16]).raw_tensor(b, 0, &[8], offset))
    };
    let cases = vec![
        ("type Q4_0", raw(2, &[32], 0)),
        ("type 777", raw(777, &[32], 0)),
        ("no dimensions", raw(0, &[], 0)),
        ("five dimensions", raw(0, &[1, 1, 1, 1, 1], 0)),
        ("dimension 0", raw(0, &[4, 0], 0)),
        ("product overflows", raw(0, &[1 << 40, 1 << 40], 0)),
        ("rows that no block fits", raw(10, &[2, 200], 0)),
        ("misaligned", raw(0, &[8], 4)),
        ("beyond the file", raw(0, &[8], 1 << 40)),
        ("offset overflows", raw(0, &[8], u64::MAX - 31)),
        ("shared bytes", two("a", "b", 32)),
        ("name twice", two("a", "a", 64)),
    ];
    insta::assert_snapshot!(report(cases));
}

#[test]
fn split_files() {
    let fresh = |change: &dyn Fn(&Scratch, &[PathBuf])| {
        let scratch = Scratch::new();
        let paths = gguf_parts(scratch.0.path(), &Spec::tiny(), 3).unwrap();
        change(&scratch, &paths);
        let survivor = paths.iter().find(|path| path.is_file()).cloned();
        scratch.message(&survivor.unwrap_or_else(|| scratch.path("odd.gguf")))
    };
    let cases = vec![
        ("missing part", fresh(&|_, paths| fs::remove_file(&paths[1]).unwrap())),
        ("missing first part", fresh(&|_, paths| fs::remove_file(&paths[0]).unwrap())),
        (
            "swapped parts",
            fresh(&|scratch, paths| {
                fs::rename(&paths[1], scratch.path("x")).unwrap();
                fs::rename(&paths[2], &paths[1]).unwrap();
                fs::rename(scratch.path("x"), &paths[2]).unwrap();
            }),
        ),
        (
            "renamed",
            fresh(&|scratch, paths| {
                fs::rename(&paths[0], scratch.path("odd.gguf")).unwrap();
                fs::remove_file(&paths[1]).unwrap();
                fs::remove_file(&paths[2]).unwrap();
            }),
        ),
        ("part twice", fresh(&|_, paths| assert!(fs::copy(&paths[0], &paths[1]).unwrap() > 0))),
        (
            "part of another checkpoint",
            fresh(&|scratch, paths| {
                let other = Scratch::new();
                let mut spec = Spec::tiny();
                spec.architecture.layers.kind.pop();
                let strange = gguf_parts(other.0.path(), &spec, 3).unwrap();
                fs::copy(&strange[2], &paths[2]).unwrap();
                let _ = scratch;
            }),
        ),
    ];
    insta::assert_snapshot!(report(cases));
}

/// Writes the released form of the tiny sample, changes it, and gives the message about it.
fn released(change: impl FnOnce(&Scratch)) -> String {
    let scratch = Scratch::new();
    write_released(scratch.0.path(), &Spec::tiny()).unwrap();
    change(&scratch);
    scratch.message(scratch.0.path())
}

/// Replaces text of the same length in the header of the weight file.
fn in_header(from: &'static str, to: &'static str) -> String {
    released(|scratch| {
        assert_eq!(from.len(), to.len());
        let path = scratch.path("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect(from);
        fs::write(&path, patched(&bytes, at, to.as_bytes())).unwrap();
    })
}

#[test]
fn directories() {
    let index = |text: &'static str| {
        released(move |scratch| {
            fs::rename(scratch.path("model.safetensors"), scratch.path("a.safetensors")).unwrap();
            fs::write(scratch.path("model.safetensors.index.json"), text).unwrap();
        })
    };
    let cases = vec![
        ("as written", released(|_| {})),
        ("no config.json", released(|scratch| fs::remove_file(scratch.path("config.json")).unwrap())),
        (
            "no config.json beside a GGUF file",
            released(|scratch| {
                fs::rename(scratch.path("config.json"), scratch.path("model.gguf")).unwrap();
            }),
        ),
        ("no weights", released(|scratch| fs::remove_file(scratch.path("model.safetensors")).unwrap())),
        ("config.json is no JSON", released(|scratch| fs::write(scratch.path("config.json"), "{\"a\": \n ]").unwrap())),
        ("index without a map", index("{}")),
        ("index with a path", index(r#"{"weight_map": {"embed.weight": "../a.safetensors"}}"#)),
        ("index with a missing file", index(r#"{"weight_map": {"embed.weight": "b.safetensors"}}"#)),
        ("index with a missing tensor", index(r#"{"weight_map": {"nowhere": "a.safetensors"}}"#)),
        ("index that leaves out tensors", index(r#"{"weight_map": {"embed.weight": "a.safetensors"}}"#)),
    ];
    insta::assert_snapshot!(report(cases));
}

#[test]
fn safetensors_headers() {
    let bytes =
        |bytes: &'static [u8]| released(move |scratch| fs::write(scratch.path("model.safetensors"), bytes).unwrap());
    let json = |text: &'static str| {
        let bytes = [&(text.len() as u64).to_le_bytes(), text.as_bytes(), &[0; 16]].concat();
        released(move |scratch| fs::write(scratch.path("model.safetensors"), bytes).unwrap())
    };
    let cases = vec![
        ("empty", bytes(b"")),
        ("inside the length", bytes(&[1, 0, 0])),
        ("length of all", bytes(&[0xff; 16])),
        ("behind the length", bytes(&[4, 0, 0, 0, 0, 0, 0, 0])),
        ("no object", bytes(&[2, 0, 0, 0, 0, 0, 0, 0, b'[', b']'])),
        ("no shape", json(r#"{"a":{"dtype":"I8"}}"#)),
        ("offsets that fall", json(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#)),
        ("name twice", json(r#"{"a":{"dtype":"F32"},"a":{"dtype":"F32"}}"#)),
        ("type", in_header("\"I64\"", "\"F64\"")),
        ("length and shape", in_header("\"shape\":[288,2]}", "\"shape\":[288,3]}")),
        ("misaligned", json(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#)),
        ("shared bytes", {
            let a = r#"{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"#;
            json(format!(r#"{a}"b":{{"dtype":"I8","shape":[2],"data_offsets":[1,3]}}}}"#).leak())
        }),
        ("no matrix", json(r#"{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}"#)),
        ("half a group", json(r#"{"a":{"dtype":"I8","shape":[1,8],"data_offsets":[0,8]}}"#)),
        ("scales alone", json(r#"{"a.scale":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]}}"#)),
        ("no scales", in_header("layers.0.attn.wkv.scale", "layers.0.attn.wkx.scale")),
        ("scales of another shape", in_header("\"F8_E8M0\",\"shape\":[1,2]", "\"F8_E8M0\",\"shape\":[2,1]")),
        (
            "cut inside the data",
            released(|scratch| {
                let file = fs::File::options().write(true).open(scratch.path("model.safetensors")).unwrap();
                file.set_len(file.metadata().unwrap().len() - 10).unwrap();
            }),
        ),
        (
            "no block size",
            released(|scratch| {
                let mut config = config_json(&Spec::tiny());
                config.as_object_mut().unwrap().remove("quantization_config");
                fs::write(scratch.path("config.json"), config.to_string()).unwrap();
            }),
        ),
    ];
    insta::assert_snapshot!(report(cases));
}

/// Changes `config.json` of the tiny sample.
fn with_key(key: &'static str, value: serde_json::Value) -> String {
    released(move |scratch| {
        let mut config = config_json(&Spec::tiny());
        let object = config.as_object_mut().unwrap();
        match value {
            serde_json::Value::Null => drop(object.remove(key)),
            value => drop(object.insert(key.into(), value)),
        }
        fs::write(scratch.path("config.json"), config.to_string()).unwrap();
    })
}

#[test]
fn keys_of_the_model() {
    use serde_json::json;
    let cases = vec![
        ("missing", with_key("hidden_size", json!(null))),
        ("type", with_key("hidden_size", json!("wide"))),
        ("fraction", with_key("hidden_size", json!(1.5))),
        ("zero", with_key("sliding_window", json!(0))),
        ("layers", with_key("num_hidden_layers", json!(4_000_000_000u32))),
        ("layers beyond the schedule", with_key("num_hidden_layers", json!(4))),
        ("ratio", with_key("compress_ratios", json!([0, 8, 128]))),
        ("no schedule", with_key("compress_ratios", json!(null))),
        ("scoring", with_key("scoring_func", json!("sigmoid"))),
        ("top-k", with_key("num_experts_per_tok", json!(5))),
        ("groups", with_key("o_groups", json!(3))),
        ("odd rope", with_key("qk_rope_head_dim", json!(15))),
        ("wide rope", with_key("qk_rope_head_dim", json!(48))),
        ("epsilon", with_key("rms_norm_eps", json!(-1.0))),
        ("infinite", with_key("rope_theta", json!("inf"))),
        ("token", with_key("bos_token_id", json!(288))),
        ("tied", with_key("tie_word_embeddings", json!(true))),
        ("two key-value heads", with_key("num_key_value_heads", json!(2))),
        ("another model", with_key("model_type", json!("deepseek_v3"))),
        ("rope scaling", with_key("rope_scaling", json!({"type": "linear", "factor": 2}))),
    ];
    insta::assert_snapshot!(report(cases));
}

/// A schedule may be given by layer types, and hash-routed layers by the types of their experts.
#[test]
fn schedule_by_types() {
    let scratch = Scratch::new();
    write_released(scratch.0.path(), &Spec::tiny()).unwrap();
    let mut config = config_json(&Spec::tiny());
    let object = config.as_object_mut().unwrap();
    for key in ["compress_ratios", "num_hash_layers", "qk_rope_head_dim"] {
        object.remove(key);
    }
    let types =
        ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"];
    object.insert("layer_types".into(), types.into_iter().collect());
    object.insert("mlp_layer_types".into(), ["hash_moe", "moe", "moe"].into_iter().collect());
    object.insert("partial_rotary_factor".into(), 0.25.into());
    fs::write(scratch.path("config.json"), config.to_string()).unwrap();
    let model = Model::read(&read::open(scratch.0.path()).unwrap()).unwrap();
    assert_eq!(model.architecture, Spec::tiny().architecture);
}

/// A GGUF sample with one tensor renamed, reshaped or of another format.
fn with_tensor(name: &str, change: impl for<'a> Fn(&'a mut GgufWriter, &[u64]) -> &'a mut GgufWriter) -> String {
    let scratch = Scratch::new();
    let spec = Spec::tiny();
    let mut keys = GgufWriter::default();
    copy_keys(&mut keys, &spec);
    for (role, layer, shape) in spec.weights() {
        let tensor = role.gguf_name(layer);
        if tensor == name {
            change(&mut keys, &shape);
        } else {
            keys.tensor(&tensor, spec.formats.of(role), &shape);
        }
    }
    let (bytes, size) = keys.finish();
    scratch.of_bytes(&bytes, size)
}

/// The metadata of a sample, read back from its file.
fn copy_keys(writer: &mut GgufWriter, spec: &Spec) {
    let scratch = Scratch::new();
    let path = scratch.path("keys.gguf");
    write_gguf(&path, spec).unwrap();
    match read::open(&path).unwrap().metadata {
        read::Metadata::Gguf(table) => {
            for (key, value) in &table {
                writer.key(key, value);
            }
        }
        read::Metadata::Config(_) => unreachable!(),
    }
}

#[test]
fn weights_of_the_model() {
    let name = "blk.1.attn_q_a.weight";
    let sinks = "blk.0.attn_sinks.weight";
    let table = "blk.0.ffn_gate_tid2eid.weight";
    let cases = vec![
        ("as written", with_tensor(name, |w, shape| w.tensor(name, Format::F16, shape))),
        ("missing", with_tensor(name, |w, _| w)),
        ("shape", with_tensor(name, |w, _| w.tensor(name, Format::F16, &[64, 128]))),
        ("transposed", with_tensor(name, |w, shape| w.tensor(name, Format::F16, &[shape[1], shape[0]]))),
        ("one dimension more", with_tensor(sinks, |w, shape| w.tensor(sinks, Format::F32, &[1, shape[0]]))),
        ("ids as numbers", with_tensor(table, |w, shape| w.tensor(table, Format::F32, shape))),
        ("matrix of ids", with_tensor(name, |w, shape| w.tensor(name, Format::I32, shape))),
        (
            "indexer in a layer of ratio 128",
            with_tensor(name, |w, shape| {
                w.tensor(name, Format::F16, shape).tensor("blk.2.indexer.proj.weight", Format::F16, &[2, 256])
            }),
        ),
    ];
    insta::assert_snapshot!(report(cases));
}

/// Tensors of drafting blocks are left alone, others are listed.
#[test]
fn tensors_without_a_role() {
    let scratch = Scratch::new();
    let spec = Spec::tiny();
    let mut writer = GgufWriter::default();
    copy_keys(&mut writer, &spec);
    for (role, layer, shape) in spec.weights() {
        writer.tensor(&role.gguf_name(layer), spec.formats.of(role), &shape);
    }
    for name in ["mtp.0.enorm.weight", "blk.3.attn_norm.weight", "blk.0.nextn.eh_proj.weight", "rope_freqs.weight"] {
        writer.tensor(name, Format::F32, &[8]);
    }
    let path = scratch.path("m.gguf");
    writer.write(&path).unwrap();
    let checkpoint = read::open(&path).unwrap();
    let model = Model::read(&checkpoint).unwrap();
    assert_eq!(model.warnings(&checkpoint), ["tensor rope_freqs.weight is not used"]);
}

#[test]
fn paths_and_tokenizers() {
    let scratch = Scratch::new();
    fs::write(scratch.path("notes.txt"), "hello").unwrap();
    write_released(&scratch.path("released"), &Spec::tiny()).unwrap();
    let alone = read::open(&scratch.path("released")).unwrap();
    let cases = vec![
        ("no such file", scratch.message(&scratch.path("none.gguf"))),
        ("another file", scratch.message(&scratch.path("notes.txt"))),
        ("no tokenizer", {
            let error = tokenizer::tokenizer_json(&alone).unwrap_err();
            assert_eq!(error.code, codes::NO_TOKENIZER);
            error.to_string().replace(scratch.0.path().to_str().unwrap(), "DIR")
        }),
    ];
    insta::assert_snapshot!(report(cases));
}
