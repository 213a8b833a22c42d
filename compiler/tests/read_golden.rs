//! Every golden checkpoint is read, and says of itself what its files say.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use ds4_compiler::model::{LayerKind, Model, Role};
use ds4_compiler::read::{self, Checkpoint, TokenizerSource};
use ds4_ir::Format;

fn golden(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../golden").join(path)
}

fn open(path: &str) -> (Checkpoint, Model) {
    let checkpoint = read::open(&golden(path)).unwrap_or_else(|e| panic!("{e}"));
    let model = Model::read(&checkpoint).unwrap_or_else(|e| panic!("{e}"));
    assert!(model.warnings(&checkpoint).is_empty());
    (checkpoint, model)
}

fn ratios(model: &Model) -> Vec<u32> {
    model.layers().kind.iter().map(|kind| kind.ratio).collect()
}

const ALL: [&str; 10] = [
    "oracle/tiny-a",
    "oracle/tiny-a/model.f16.gguf",
    "oracle/tiny-b",
    "oracle/tiny-f",
    "oracle/tiny-k/model.q2.gguf",
    "oracle/tiny-m/model.mxfp4-00001-of-00002.gguf",
    "oracle/tiny-r",
    "oracle/tiny-r/config.json",
    "models/kjv-9m/model.q8.gguf",
    "models/kjv-9m/model.q2.gguf",
];

/// One line for each golden checkpoint: files, tensors, dimensions, schedule, weights, bytes of weights.
#[test]
fn facts() {
    let mut out = String::new();
    for path in ALL {
        let (checkpoint, model) = open(path);
        let a = &model.architecture;
        let bytes: u64 = checkpoint.tensors.bytes.iter().sum();
        out += &format!(
            "{path}: {} files, {} tensors of {bytes} bytes, {} weights; vocabulary {}, hidden {}, heads {} of {} with rope {}, \
             ratios {:?}, window {}, experts {}/{} of {}, hash {}, clamp {:?}, scale {}\n",
            checkpoint.files.len(),
            checkpoint.tensors.len(),
            model.weights.len(),
            a.vocab_size,
            a.hidden,
            a.heads,
            a.head_dim,
            a.rope_dims,
            ratios(&model),
            a.window,
            a.experts.used,
            a.experts.count,
            a.experts.width,
            a.experts.hash_layers,
            a.layers.clamp[0],
            a.experts.route_scale,
        );
    }
    insta::assert_snapshot!(out);
}

/// The same model as a directory and as GGUF has one architecture, weight for weight.
#[test]
fn both_forms_agree() {
    let (directory, released) = open("oracle/tiny-a");
    let (gguf, converted) = open("oracle/tiny-a/model.f16.gguf");
    let mut a = released.architecture.clone();
    a.special.pad = converted.architecture.special.pad;
    assert_eq!(a, converted.architecture);
    assert_eq!(released.weights.role, converted.weights.role);
    for id in released.weights.ids() {
        let row = id.0 as usize;
        let (one, other) = (&released.weights.reference[row], &converted.weights.reference[row]);
        assert_eq!(one.shape, other.shape);
        assert_eq!(other.parts.len(), 1);
        let role = released.weights.role[row];
        assert_eq!(one.parts.len(), if role.is_stacked() { 8 } else { 1 }, "{role:?}");
    }
    assert_ne!(directory.identity(), gguf.identity());
    assert_ne!(directory.contents_hash(|_| ()), gguf.contents_hash(|_| ()));
}

#[test]
fn architecture_of_tiny_a() {
    let (_, model) = open("oracle/tiny-a");
    insta::assert_snapshot!(format!("{:#?}", model.architecture));
}

/// FP8 blocks are partial, FP4 rows have a scale for each 32, a pair lies in two files.
#[test]
fn released_formats() {
    let (checkpoint, model) = open("oracle/tiny-f");
    assert_eq!(ratios(&model), [0, 4, 128, 4]);
    assert!(checkpoint.tensors.ids().any(|id| { checkpoint.tensors.name[id.0 as usize].starts_with("mtp.0.") }));
    let query = model.weight(Role::QueryDown, Some(0)).unwrap();
    assert_eq!((query.format, query.scale_block), (Format::Fp8, [128, 128]));
    assert_eq!(query.shape, [96, 160]);
    let tensor = query.parts[0].tensor;
    assert_eq!(checkpoint.tensors.scale[tensor.0 as usize].unwrap().shape, [1, 2]);
    assert_eq!(checkpoint.scale_data(tensor).len(), 2);
    let gate = model.weight(Role::ExpertGate, Some(3)).unwrap();
    assert_eq!((gate.format, gate.scale_block), (Format::Fp4, [1, 32]));
    assert_eq!(gate.shape, [6, 96, 160]);
    assert_eq!(gate.parts.len(), 6);
    assert!(gate.parts.iter().all(|part| part.bytes == 96 * 80));
    assert_eq!(checkpoint.scale_data(gate.parts[0].tensor).len(), 96 * 5);
    let parts = model.weights.reference.iter().flat_map(|weight| &weight.parts);
    let apart = parts.filter(|part| part.scale.is_some_and(|(file, _)| file != part.file));
    assert_eq!(apart.count(), 1);
    let table = model.weight(Role::ExpertTable, Some(0)).unwrap();
    assert_eq!((table.format, &table.shape[..]), (Format::I64, &[288, 2][..]));
    assert!(model.weight(Role::ExpertTable, Some(1)).is_none());
    assert!(model.weight(Role::RouterBias, Some(0)).is_none());
    assert_eq!(checkpoint.files.len(), 4);
}

/// Any part of a split file leads to the same checkpoint.
#[test]
fn parts_of_a_split_file() {
    let (first, model) = open("oracle/tiny-m/model.mxfp4-00001-of-00002.gguf");
    let (second, _) = open("oracle/tiny-m/model.mxfp4-00002-of-00002.gguf");
    assert_eq!(first.identity(), second.identity());
    assert_eq!(first.contents_hash(|_| ()), second.contents_hash(|_| ()));
    assert_eq!(first.files.len(), 2);
    assert_eq!(first.tensors.len(), 92);
    assert_eq!(model.weight(Role::ExpertGate, Some(0)).unwrap().format, Format::MXFP4);
    assert_eq!(model.weight(Role::SharedDown, Some(2)).unwrap().format, Format::Q4_K);
}

#[test]
fn quantised_formats() {
    let (_, model) = open("oracle/tiny-k/model.q2.gguf");
    let format = |role| model.weight(role, Some(1)).unwrap().format;
    assert_eq!(format(Role::ExpertGate), Format::IQ2_XXS);
    assert_eq!(format(Role::ExpertDown), Format::Q2_K);
    assert_eq!(format(Role::QueryUp), Format::Q8_0);
    assert_eq!(format(Role::Router), Format::F16);
    assert_eq!(format(Role::Sinks), Format::F32);
}

#[test]
fn kinds_of_layers() {
    let (_, model) = open("models/kjv-9m/model.q8.gguf");
    let kind = |ratio, both| LayerKind { ratio, overlap: both, indexer: both };
    let wanted = [kind(0, false), kind(4, true), kind(128, false), kind(4, true)];
    assert_eq!(model.layers().kind, wanted);
    assert_eq!(model.layers().hash_routed, [true, false, false, false]);
    assert_eq!(model.architecture.special.bos, Some(0));
    assert_eq!(model.architecture.special.eos, [1]);
}

/// The bytes of a tensor are those that the `safetensors` crate finds.
#[test]
fn data_is_what_safetensors_finds() {
    for path in ["oracle/tiny-b", "oracle/tiny-f"] {
        let checkpoint = read::open(&golden(path)).unwrap();
        let mut seen = 0;
        for file in checkpoint.files.ids() {
            if checkpoint.files.kind[file.0 as usize] != read::FileKind::Data {
                continue;
            }
            let other = safetensors::SafeTensors::deserialize(checkpoint.files.bytes(file)).unwrap();
            for (name, view) in other.tensors() {
                seen += 1;
                match checkpoint.tensors.find(&name) {
                    Some(id) => assert_eq!(checkpoint.data(id), view.data(), "{name}"),
                    None => assert!(name.ends_with(".scale"), "{name}"),
                }
            }
        }
        let scales = checkpoint.tensors.scale.iter().flatten().count();
        assert_eq!(seen, checkpoint.tensors.len() + scales);
    }
}

#[test]
fn files_and_tokenizers() {
    let (checkpoint, _) = open("oracle/tiny-f/model-00002-of-00002.safetensors");
    assert!(matches!(checkpoint.tokenizer, TokenizerSource::File(_)));
    for (row, path) in checkpoint.files.path.iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(checkpoint.files.size[row], bytes.len() as u64);
        let header = &bytes[..checkpoint.files.header_len[row] as usize];
        assert_eq!(checkpoint.files.header_hash[row], *blake3::hash(header).as_bytes());
    }
    let copy = tempfile::tempdir().unwrap();
    let gguf = copy.path().join("m.gguf");
    std::fs::copy(golden("models/kjv-9m/model.q2.gguf"), &gguf).unwrap();
    let alone = read::open(&gguf).unwrap();
    assert_eq!(alone.tokenizer, TokenizerSource::Vocabulary);
    let beside = read::open(&golden("models/kjv-9m/model.q2.gguf")).unwrap();
    assert_eq!(alone.identity(), beside.identity());
}
