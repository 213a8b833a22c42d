//! The trained model: its greedy texts, and q8 activations beside f32.

#![allow(clippy::unwrap_used)]

use ds4_compiler::lower::Activations;
use ds4_golden::oracle::{compare, deviation};
use ds4_golden::run::{self, Source, session};
use ds4_runtime::session::Session;
use serde_json::Value;

const MODELS: [(&str, &str); 2] = [("q8", "models/kjv-9m/model.q8.gguf"), ("q2", "models/kjv-9m/model.q2.gguf")];

fn open(path: &str, activations: Activations) -> (tempfile::TempDir, Session) {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open(path).unwrap();
    let options = source.options(|o| o.activations = Some(activations));
    let plan = source.plan(folder.path(), &options).unwrap();
    (folder, session(&plan, 1).unwrap())
}

fn expected() -> Value {
    let text = std::fs::read_to_string(ds4_golden::data("models/kjv-9m/expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn greedy_texts_are_the_expected_ones() {
    let expected = expected();
    for (name, path) in MODELS {
        let (_folder, mut s) = open(path, Activations::F32);
        let mut compared = 0;
        for case in expected[name]["greedy"].as_array().unwrap() {
            if case["smallest_gap"].as_f64().unwrap() <= 1e-3 {
                continue;
            }
            let wanted = ids(&case["greedy_ids"]);
            let found = run::greedy(&mut s, &ids(&case["prompt_ids"]), wanted.len()).unwrap();
            assert_eq!(found, wanted, "{name}: {}", case["prompt"]);
            compared += 1;
        }
        println!("{name}: {compared} texts of {} equal", expected[name]["greedy"].as_array().unwrap().len());
        assert!(compared >= 6, "{name}: only {compared} texts have clear gaps");
    }
}

/// 300 tokens of the model's own greedy text after a prompt: text as the model knows it.
fn sample_tokens(s: &mut Session) -> Vec<u32> {
    let prompt = ids(&expected()["q8"]["greedy"][0]["prompt_ids"]);
    let text = run::greedy(s, &prompt, 300 - prompt.len()).unwrap();
    [prompt, text].concat()
}

#[test]
fn q8_activations_stay_near_f32() {
    for (name, path) in MODELS {
        let (_folder, mut f32s) = open(path, Activations::F32);
        let tokens = sample_tokens(&mut f32s);
        let reference: Vec<f64> = run::logits(&mut f32s, &tokens, 300).unwrap().into_iter().map(f64::from).collect();
        let (_folder, mut q8s) = open(path, Activations::Q8);
        let found = run::logits(&mut q8s, &tokens, 300).unwrap();
        let width = reference.len() / tokens.len();
        let errors = compare(&found, &reference, width, deviation(&reference));
        println!("{name}: {errors:?}");
        assert!(errors.rms < 0.2 && errors.same_greedy >= 0.8, "{name}: {errors:?}");
    }
}
