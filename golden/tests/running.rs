//! What goes wrong when a plan runs, each with its diagnostic, and nothing half done.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use ds4_compiler::assemble::compile;
use ds4_compiler::frame::Form;
use ds4_compiler::lower::Options;
use ds4_compiler::model::Model;
use ds4_golden::run::{self, Source, session};
use ds4_ir::diagnostic::codes;
use ds4_ir::plan::contents::CONTENTS;
use ds4_ir::plan::write_plan;
use ds4_runtime::session::{OpenOptions, Session};

fn shown(diagnostic: &ds4_ir::Diagnostic, folder: &Path) -> String {
    diagnostic.to_string().replace(&folder.display().to_string(), "FOLDER")
}

/// A copy of a checkpoint file with bytes of one tensor replaced.
fn damaged_copy(folder: &Path, tensor: &str, at: usize, bytes: &[u8]) -> PathBuf {
    let original = ds4_golden::data("oracle/tiny-a/model.f16.gguf");
    let checkpoint = ds4_compiler::read::open(&original).unwrap();
    let id = checkpoint.tensors.find(tensor).unwrap();
    let offset = checkpoint.tensors.offset[id.0 as usize] as usize + at;
    let mut all = std::fs::read(&original).unwrap();
    all[offset..offset + bytes.len()].copy_from_slice(bytes);
    let path = folder.join("damaged.gguf");
    std::fs::write(&path, all).unwrap();
    path
}

fn plan_of(model_path: &Path, folder: &Path) -> PathBuf {
    let checkpoint = ds4_compiler::read::open(model_path).unwrap();
    let model = Model::read(&checkpoint).unwrap();
    let options = Options::for_model(&model.architecture);
    let targets = [ds4_kernels::Target::Wgsl];
    let compiled = compile(
        &checkpoint,
        &model,
        &options,
        &model_path.to_string_lossy(),
        &Form { targets: &targets, fusion: None },
    )
    .unwrap();
    let plan = folder.join("damaged.ds4plan");
    write_plan(&plan, &compiled.graph, &compiled.plan, None).unwrap();
    plan
}

#[test]
fn the_first_nan_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // One element of a norm in the third layer.
    let model = damaged_copy(folder.path(), "blk.2.attn_q_a_norm.weight", 4 * 5, &f32::NAN.to_le_bytes());
    let plan = plan_of(&model, folder.path());
    let device = ds4_golden::devices::open("machine:wgsl").unwrap();
    let on_device = Session::open_on(&plan, &OpenOptions::default(), device).unwrap();
    for mut s in [session(&plan, 1).unwrap(), session(&plan, 2).unwrap(), on_device] {
        for tokens in [&[0, 1, 2, 3][..], &[4]] {
            let fault = s.step(tokens, 1).unwrap_err();
            insta::assert_snapshot!("nan_is_named", shown(&fault, folder.path()));
            assert_eq!(s.position(), 0, "a failed step does not advance");
        }
    }
}

/// Facts by which a session works are the graph's: a plan that says otherwise is refused before it runs.
#[test]
fn facts_that_the_graph_denies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open("oracle/tiny-a").unwrap();
    let options = source.options(|_| ());
    let path = ds4_golden::data("oracle/tiny-a");
    let open = |facts: &[(&str, &str)]| {
        let (checkpoint, model) = (&source.checkpoint, &source.model);
        let mut made = compile(checkpoint, model, &options, path.to_str().unwrap(), &Form::default()).unwrap();
        for (key, value) in facts {
            let value = made.plan.intern(value);
            let at = made.plan.options.iter().position(|row| made.plan.view().str(row.key) == *key).unwrap();
            made.plan.options[at].value = value;
        }
        let plan = folder.path().join("facts.ds4plan");
        write_plan(&plan, &made.graph, &made.plan, None).unwrap();
        session(&plan, 1)
    };
    open(&[]).unwrap();
    for fact in [
        ("model.vocab_size", "99999"),
        ("model.vocab_size", "5"),
        ("model.vocab_size", "many"),
        ("head", "greedy"),
        ("head", "nonsense"),
    ] {
        let refused = open(&[fact]).unwrap_err();
        assert!(refused.code == codes::PLAN_DAMAGED && refused.to_string().contains(fact.1), "{refused}");
    }
}

#[test]
fn a_failed_step_leaves_the_sequence_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open("oracle/tiny-a").unwrap();
    let plan = source.plan(folder.path(), &source.options(|_| ())).unwrap();
    let mut s = session(&plan, 1).unwrap();
    let tokens: Vec<u32> = (0..20).collect();
    let whole = run::logits(&mut s, &tokens, 20).unwrap();
    s.reset();
    s.step(&tokens[..10], 10).unwrap();
    let too_large = s.step(&[5, 100_000], 1).unwrap_err();
    insta::assert_snapshot!("token_out_of_range", shown(&too_large, folder.path()));
    s.step(&tokens[10..], 10).unwrap();
    assert_eq!(s.logits(), &whole[whole.len() / 2..]);
}

#[test]
fn the_context_is_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open("oracle/tiny-b").unwrap();
    let options = source.options(|o| {
        o.context = 16;
        o.prefill = 8;
        o.columns = 4;
    });
    let plan = source.plan(folder.path(), &options).unwrap();
    let mut s = session(&plan, 1).unwrap();
    let too_wide = s.step(&[1; 9], 1).unwrap_err();
    insta::assert_snapshot!("step_too_wide", shown(&too_wide, folder.path()));
    s.step(&[1; 8], 1).unwrap();
    s.step(&[1; 8], 1).unwrap();
    let full = s.step(&[1], 1).unwrap_err();
    insta::assert_snapshot!("context_exceeded", shown(&full, folder.path()));
    assert_eq!(s.position(), 16);
}

#[test]
fn a_plan_takes_its_own_model_only() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open("oracle/tiny-a/model.f16.gguf").unwrap();
    let plan = source.plan(folder.path(), &source.options(|_| ())).unwrap();
    let other = ds4_golden::data("models/kjv-9m/model.q8.gguf");
    let renamed = folder.path().join("model.f16.gguf");
    std::fs::copy(&other, &renamed).unwrap();
    let open = OpenOptions { model: Some(renamed), ..OpenOptions::default() };
    let fault = Session::open(&plan, &open).err().unwrap();
    insta::assert_snapshot!("another_model", shown(&fault, folder.path()));
    // The same bytes elsewhere are the same model.
    let copy = folder.path().join("copy.gguf");
    std::fs::copy(ds4_golden::data("oracle/tiny-a/model.f16.gguf"), &copy).unwrap();
    let open = OpenOptions { model: Some(copy), ..OpenOptions::default() };
    Session::open(&plan, &open).unwrap();
}

/// Other weights behind the same header are found when they are asked for.
#[test]
fn contents_are_compared_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.gguf");
    std::fs::copy(ds4_golden::data("oracle/tiny-a/model.f16.gguf"), &model).unwrap();
    let checkpoint = ds4_compiler::read::open(&model).unwrap();
    let described = Model::read(&checkpoint).unwrap();
    let options = Options::for_model(&described.architecture);
    let mut compiled = compile(&checkpoint, &described, &options, &model.to_string_lossy(), &Form::default()).unwrap();
    let plan = folder.path().join("model.ds4plan");
    write_plan(&plan, &compiled.graph, &compiled.plan, None).unwrap();
    let open = |path: &Path| {
        Session::open(&plan, &OpenOptions { model: Some(path.into()), contents: true, ..OpenOptions::default() })
    };
    insta::assert_snapshot!("no_contents_in_the_plan", shown(&open(&model).err().unwrap(), folder.path()));
    compiled.plan.set_option(CONTENTS, &checkpoint.contents_hash(|_| ()));
    write_plan(&plan, &compiled.graph, &compiled.plan, None).unwrap();
    open(&model).unwrap();
    let other = damaged_copy(folder.path(), "blk.2.attn_q_a_norm.weight", 0, &2.5f32.to_le_bytes());
    insta::assert_snapshot!("other_contents", shown(&open(&other).err().unwrap(), folder.path()));
}

/// -1 is how the graph writes an absent id; in a stored table it is damage, not absence.
#[test]
fn a_damaged_expert_table_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = damaged_copy(folder.path(), "blk.0.ffn_gate_tid2eid.weight", 0, &(-1i32).to_le_bytes());
    let plan = plan_of(&model, folder.path());
    let mut s = session(&plan, 1).unwrap();
    let fault = s.step(&[0], 1).unwrap_err();
    insta::assert_snapshot!("negative_id", shown(&fault, folder.path()));
    s.step(&[1], 1).unwrap();
}
