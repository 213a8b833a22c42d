//! Line 1 and 2 of the main job: logits, choices and rows against an independent float64 implementation.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ds4_compiler::lower::{Activations, Sims};
use ds4_golden::oracle::{Array, arg_max, compare, deviation, read_npz};
use ds4_golden::run::{self, Source, TINY, expected, session};
use ds4_runtime::session::Session;

/// Largest error of f32 arithmetic in standard deviations of the logits; the reference's own float32 run is at 1e-5 to 2e-5.
const F32_LIMIT: f64 = 5e-5;

fn open(path: &str, activations: Activations, sims: Sims) -> (tempfile::TempDir, Session) {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::open(path).unwrap();
    let options = source.options(|o| {
        o.activations = Some(activations);
        o.sims = sims;
    });
    let plan = source.plan(folder.path(), &options).unwrap();
    (folder, session(&plan, 1).unwrap())
}

/// Logits of the prefill and of all cached decodes.
fn check_logits(name: &str, s: &mut Session, e: &BTreeMap<String, Array>) {
    let tokens = e["tokens"].ids();
    let width = e["logits"].shape[1];
    let scale = deviation(&e["logits"].data);
    let found = run::logits(s, &tokens, tokens.len()).unwrap();
    let errors = compare(&found, &e["logits"].data, width, scale);
    println!("{name}: prefill {errors:?}");
    assert!(errors.largest < F32_LIMIT, "{name}: prefill {errors:?}");
    assert_eq!(errors.same_greedy, 1.0, "{name}: greedy tokens");

    let mut worst: f64 = 0.0;
    for (case, &prefix) in e["decode_prefix"].ids().iter().enumerate() {
        s.reset();
        s.step(&tokens[..prefix as usize], 1).unwrap();
        let wanted: Vec<u32> = e["decode_tokens"].row(case).iter().map(|&x| x as u32).collect();
        for (row, &token) in wanted.iter().enumerate() {
            let steps = e["decode_logits"].shape[1];
            let expected = &e["decode_logits"].data[(case * steps + row) * width..][..width];
            let found = s.logits();
            let errors = compare(found, expected, width, scale);
            worst = worst.max(errors.largest);
            assert!(errors.largest < F32_LIMIT, "{name}: decode {case} row {row} {errors:?}");
            assert_eq!(arg_max(found.iter().map(|&x| f64::from(x))) as u32, token, "{name}: decode {case} row {row}");
            s.step(&[token], 1).unwrap();
        }
    }
    println!("{name}: decode largest {worst:.2e}");
}

/// Chosen experts, selected rows and pooled rows, through named values.
fn check_choices(name: &str, s: &mut Session, e: &BTreeMap<String, Array>) {
    let tokens = e["tokens"].ids();
    let layers = e["router_ids"].shape[0];
    let mut names = Vec::new();
    for layer in 0..layers {
        names.push(format!("layer.{layer}.route.ids"));
        for (key, tap) in [("compressed_kv", "pooled"), ("index_ids", "index.ids")] {
            if e.contains_key(&format!("{key}_{layer}")) {
                names.push(format!("layer.{layer}.{tap}"));
            }
        }
    }
    s.set_taps(&names).unwrap();
    s.reset();
    s.step(&tokens, 1).unwrap();
    let taps: BTreeMap<String, (Vec<usize>, Vec<u32>)> =
        s.taps().iter().map(|t| (t.name.to_string(), (t.extents.to_vec(), t.words.to_vec()))).collect();
    let positions = e["positions"].ids();
    for layer in 0..layers {
        let (extents, ids) = &taps[&format!("layer.{layer}.route.ids")];
        let k = extents[1];
        for (i, &p) in positions.iter().enumerate() {
            let at = (layer * positions.len() + i) * k;
            let expected: Vec<u32> = e["router_ids"].data[at..at + k].iter().map(|&x| x as u32).collect();
            assert_eq!(&ids[p as usize * k..][..k], expected, "{name}: experts of layer {layer}, position {p}");
        }
        if let Some(rows) = e.get(&format!("compressed_kv_{layer}")) {
            let (extents, words) = &taps[&format!("layer.{layer}.pooled")];
            assert_eq!(extents, &rows.shape, "{name}: pooled rows of layer {layer}");
            let scale = deviation(&rows.data);
            let error = words.iter().zip(&rows.data).map(|(&w, &x)| (f64::from(f32::from_bits(w)) - x).abs() / scale);
            let worst = error.fold(0.0, f64::max);
            println!("{name}: pooled rows of layer {layer} within {worst:.2e}");
            assert!(worst < F32_LIMIT, "{name}: pooled rows of layer {layer} off by {worst:.2e}");
        }
        if let Some(selected) = e.get(&format!("index_ids_{layer}")) {
            let (extents, ids) = &taps[&format!("layer.{layer}.index.ids")];
            let k = extents[1];
            for (i, &p) in positions.iter().enumerate() {
                let found: Vec<u32> = ids[p as usize * k..][..k].iter().copied().filter(|&id| id != u32::MAX).collect();
                let mut wanted: Vec<u32> = selected.row(i).iter().filter(|&&x| x >= 0.0).map(|&x| x as u32).collect();
                wanted.sort();
                assert_eq!(found, wanted, "{name}: selected rows of layer {layer}, position {p}");
            }
        }
    }
    s.set_taps(&[]).unwrap();
}

#[test]
fn f32_activations_meet_the_oracle() {
    for (name, path) in TINY {
        let (_folder, mut s) = open(path, Activations::F32, Sims::None);
        let e = read_npz(&expected(path).join("expected.npz")).unwrap();
        check_logits(name, &mut s, &e);
        check_choices(name, &mut s, &e);
    }
}

/// Decoded rows have rounding decisions as close as 3e-8, which f32 could take the other way; the reference's own float32 run
/// takes none so, and nor may ours. `decode_margin` of a row that fails says how close it was.
#[test]
fn the_official_roundings_meet_the_oracle() {
    let path = "oracle/tiny-r";
    let (_folder, mut s) = open(path, Activations::F32, Sims::Official);
    let e = read_npz(&expected(path).join("expected_rounded.npz")).unwrap();
    check_logits("tiny-r rounded", &mut s, &e);
    // All cached steps without doubt: the searched tokens, one by one.
    let tokens = e["tokens"].ids();
    let found = run::logits(&mut s, &tokens, 1).unwrap();
    let errors = compare(&found, &e["logits"].data, e["logits"].shape[1], deviation(&e["logits"].data));
    println!("tiny-r rounded: one by one {errors:?}");
    assert!(errors.largest < F32_LIMIT, "{errors:?}");
}

#[test]
fn one_model_in_two_formats_has_one_set_of_bits() {
    let tokens = read_npz(&expected("oracle/tiny-a").join("expected.npz")).unwrap()["tokens"].ids();
    let both = ["oracle/tiny-a", "oracle/tiny-a/model.f16.gguf"].map(|path| {
        let (_folder, mut s) = open(path, Activations::F32, Sims::None);
        run::logits(&mut s, &tokens, tokens.len()).unwrap()
    });
    let bits = both.map(|logits| logits.into_iter().map(f32::to_bits).collect::<Vec<_>>());
    assert_eq!(bits[0], bits[1]);
}

#[test]
fn q8_activations_stay_near_the_oracle() {
    for path in ["oracle/tiny-k/model.q2.gguf", "oracle/tiny-m/model.mxfp4-00001-of-00002.gguf"] {
        let (_folder, mut s) = open(path, Activations::Q8, Sims::None);
        let e = read_npz(&expected(path).join("expected.npz")).unwrap();
        let tokens = e["tokens"].ids();
        let found = run::logits(&mut s, &tokens, tokens.len()).unwrap();
        let errors = compare(&found, &e["logits"].data, e["logits"].shape[1], deviation(&e["logits"].data));
        println!("{path}: {errors:?}");
        assert!(errors.rms < 0.2 && errors.same_greedy >= 0.8, "{path}: {errors:?}");
    }
}
