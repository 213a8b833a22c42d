//! Sample checkpoints of full size: written as a header and a hole, read back as the same model.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ds4_compiler::model::{Model, Role};
use ds4_compiler::read;
use ds4_compiler::sample::{Fuzzer, Spec, gguf_parts, write_gguf, write_released};
use ds4_ir::Format::{self, F16, F32, I32, IQ2_XXS, Q2_K, Q8_0};

fn read_back(path: &std::path::Path) -> (read::Checkpoint, Model) {
    let checkpoint = read::open(path).unwrap_or_else(|e| panic!("{e}"));
    let model = Model::read(&checkpoint).unwrap_or_else(|e| panic!("{e}"));
    assert!(model.unknown.is_empty());
    (checkpoint, model)
}

/// The tensors of a V4-Flash file of the usual kind, listed without the table of roles.
fn flash_tensors(layers: u64) -> BTreeMap<String, (Format, Vec<u64>)> {
    let (v, d, ff, e) = (129_280, 4096, 2048, 256);
    let mut list: Vec<(String, Format, Vec<u64>)> = Vec::new();
    let mut put = |name: String, format, shape: &[u64]| list.push((name, format, shape.to_vec()));
    put("token_embd.weight".into(), F16, &[v, d]);
    put("output.weight".into(), Q8_0, &[v, d]);
    put("output_norm.weight".into(), F32, &[d]);
    put("output_hc_fn.weight".into(), F16, &[4, 4 * d]);
    put("output_hc_base.weight".into(), F32, &[4]);
    put("output_hc_scale.weight".into(), F32, &[1]);
    for i in 0..layers {
        let mut put = |name: &str, format, shape: &[u64]| put(format!("blk.{i}.{name}"), format, shape);
        for half in ["attn", "ffn"] {
            put(&format!("hc_{half}_fn.weight"), F16, &[24, 4 * d]);
            put(&format!("hc_{half}_base.weight"), F32, &[24]);
            put(&format!("hc_{half}_scale.weight"), F32, &[3]);
            put(&format!("{half}_norm.weight"), F32, &[d]);
        }
        put("attn_sinks.weight", F32, &[64]);
        put("attn_q_a.weight", Q8_0, &[1024, d]);
        put("attn_q_a_norm.weight", F32, &[1024]);
        put("attn_q_b.weight", Q8_0, &[32_768, 1024]);
        put("attn_kv.weight", Q8_0, &[512, d]);
        put("attn_kv_a_norm.weight", F32, &[512]);
        put("attn_output_a.weight", Q8_0, &[8192, d]);
        put("attn_output_b.weight", Q8_0, &[d, 8192]);
        if i >= 2 {
            let (ratio, width) = if i % 2 == 0 { (4, 1024) } else { (128, 512) };
            put("attn_compressor_ape.weight", F16, &[ratio, width]);
            put("attn_compressor_kv.weight", F16, &[width, d]);
            put("attn_compressor_gate.weight", F16, &[width, d]);
            put("attn_compressor_norm.weight", F32, &[512]);
        }
        if i >= 2 && i % 2 == 0 {
            put("indexer.attn_q_b.weight", F16, &[8192, 1024]);
            put("indexer.proj.weight", F16, &[64, d]);
            put("indexer_compressor_ape.weight", F16, &[4, 256]);
            put("indexer_compressor_kv.weight", F16, &[256, d]);
            put("indexer_compressor_gate.weight", F16, &[256, d]);
            put("indexer_compressor_norm.weight", F32, &[128]);
        }
        put("ffn_gate_inp.weight", F16, &[e, d]);
        if i < 3 {
            put("ffn_gate_tid2eid.weight", I32, &[v, 6]);
        } else {
            put("exp_probs_b.bias", F32, &[e]);
        }
        for (name, format, shape) in [("gate", IQ2_XXS, [ff, d]), ("up", IQ2_XXS, [ff, d]), ("down", Q2_K, [d, ff])] {
            put(&format!("ffn_{name}_exps.weight"), format, &[e, shape[0], shape[1]]);
            put(&format!("ffn_{name}_shexp.weight"), Q8_0, &shape);
        }
    }
    list.into_iter().map(|(name, format, shape)| (name, (format, shape))).collect()
}

#[test]
fn flash_has_the_tensors_of_flash() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flash.gguf");
    let spec = Spec::flash(43);
    write_gguf(&path, &spec).unwrap();
    let (checkpoint, model) = read_back(&path);
    assert_eq!(model.architecture, spec.architecture);
    let tensors = &checkpoint.tensors;
    let found: BTreeMap<_, _> = tensors
        .ids()
        .map(|id| {
            let row = id.0 as usize;
            let shape = tensors.shape_of(id).to_vec();
            (tensors.name[row].clone(), (tensors.format[row], shape))
        })
        .collect();
    assert_eq!(found, flash_tensors(43));
    // 80.8 GiB by the specification.
    assert_eq!(tensors.bytes.iter().sum::<u64>() >> 30, 80);
    let ratio = |n| model.layers().kind.iter().filter(|k| k.ratio == n).count();
    assert_eq!([ratio(0), ratio(4), ratio(128)], [2, 21, 20]);
}

#[test]
fn pro_is_read_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pro.gguf");
    let spec = Spec::pro(61);
    write_gguf(&path, &spec).unwrap();
    let (checkpoint, model) = read_back(&path);
    assert_eq!(model.architecture, spec.architecture);
    let ratio = |n| model.layers().kind.iter().filter(|k| k.ratio == n).count();
    assert_eq!([ratio(0), ratio(4), ratio(128)], [0, 30, 31]);
    let numbers = |id: read::TensorId| checkpoint.tensors.shape_of(id).iter().product::<u64>();
    let parameters: u64 = checkpoint.tensors.ids().map(numbers).sum();
    // 1573 billion by the specification, rounded.
    assert_eq!((parameters + 500_000_000) / 1_000_000_000, 1573);
}

/// The released form of V4-Flash: 33 thousand expert matrices with their scales.
#[test]
fn released_flash() {
    let directory = tempfile::tempdir().unwrap();
    let spec = Spec::flash(43);
    write_released(directory.path(), &spec).unwrap();
    let (checkpoint, model) = read_back(directory.path());
    assert_eq!(model.architecture, spec.architecture);
    let experts = model.weight(Role::ExpertDown, Some(42)).unwrap();
    assert_eq!((experts.format, experts.parts.len()), (Format::Fp4, 256));
    let query = model.weight(Role::QueryUp, Some(0)).unwrap();
    assert_eq!(query.format, Format::Fp8);
    let size = checkpoint.files.size[0];
    // 145.3 GiB by the specification.
    assert_eq!(size >> 30, 145);
}

#[test]
fn parts_are_one_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let paths = gguf_parts(directory.path(), &Spec::tiny(), 3).unwrap();
    let (checkpoint, model) = read_back(&paths[1]);
    assert_eq!(checkpoint.files.len(), 3);
    assert_eq!(model.architecture, Spec::tiny().architecture);
}

#[test]
fn faulty_files_give_diagnostics() {
    for seed in 0..2 {
        let directory = tempfile::tempdir().unwrap();
        let mut fuzzer = match seed {
            0 => Fuzzer::gguf(directory.path(), seed),
            _ => Fuzzer::safetensors(directory.path(), seed),
        };
        for _ in 0..3000 {
            fuzzer.step().unwrap();
        }
        // Both must happen, or the faults are too many or too few.
        let (accepted, refused) = (fuzzer.accepted, fuzzer.refused);
        assert!(accepted > 10 && refused > 500, "{accepted} accepted, {refused} refused");
    }
}
