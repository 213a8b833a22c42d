use std::path::Path;

use clap::{CommandFactory, Parser};

use super::arguments::Arguments;
use super::execute::execute;
use super::report;
use crate::generate::fake::Fake;
use crate::generate::{Measured, Phase};

fn parse(line: &[&str]) -> Result<Arguments, clap::Error> {
    let words = ["ds4-run", "fake.ds4plan"].iter().chain(line);
    Arguments::try_parse_from(words).and_then(Arguments::checked)
}

fn tokenizer() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/oracle/tiny-a/tokenizer.json")).unwrap()
}

/// Standard output and standard error of a run on a fake; times are cut off.
fn outputs(fake: &mut Fake, line: &[&str]) -> Result<(String, String), String> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    execute(&parse(line).unwrap(), fake, &tokenizer(), &mut out, &mut err).map_err(|error| error.to_string())?;
    let err = String::from_utf8(err).unwrap();
    let untimed = err.lines().map(|line| line.split_inclusive("tokens ").next().unwrap().to_string() + "\n");
    Ok((String::from_utf8(out).unwrap(), untimed.collect()))
}

#[test]
fn the_command_is_well_formed() {
    Arguments::command().debug_assert();
    insta::assert_snapshot!(Arguments::command().term_width(100).render_help());
}

#[test]
fn arguments_without_effect_are_refused() {
    let refused: &[&[&str]] = &[
        &[],
        &["-p", "a", "--tokens", "1"],
        &["-p", "a", "--bench"],
        &["--tokens", "1", "--chat"],
        &["--tokens", "1", "--ids"],
        &["--tokens", "1", "--temp", "1"],
        &["--tokens", "1", "--stop", "x"],
        &["-p", "a", "-n", "0", "--ids"],
        &["-p", "a", "--top-p", "0.5"],
        &["-p", "a", "--temp", "0", "--seed", "1"],
        &["-p", "a", "--tap", "*"],
        &["-p", "a", "--tap-out", "x.npz"],
        &["-p", "a", "--json"],
        &["-p", "a", "--prefill", "4"],
        &["--bench", "--chunk", "4"],
        &["--bench", "-n", "4"],
        &["--bench", "--logits", "x.npy"],
        &["--bench", "--tap", "*", "--tap-out", "x.npz"],
        &["--list-devices"],
        &["--bench", "--list-devices"],
        &["--bench", "--device", "wgpu", "--threads", "2"],
        &["--bench", "--device", "hip", "--isa", "avx2"],
    ];
    for line in refused {
        let error = parse(line).expect_err(&format!("{line:?}"));
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let refused: &[&[&str]] = &[
        &["-p", "a", "--chunk", "0"],
        &["-p", "a", "--temp", "-1"],
        &["-p", "a", "--temp", "nan"],
        &["-p", "a", "--temp", "1e-9"],
        &["-p", "a", "--temp", "1", "--top-p", "0"],
        &["-p", "a", "--temp", "1", "--top-p", "1.5"],
        &["-p", "a", "--stop", ""],
        &["-p", "a", "--tap", "[", "--tap-out", "x.npz"],
        &["-p", "a", "--isa", "sse9"],
        &["-p", "a", "--threads", "0"],
        &["-p", "a", "--threads", "18446744073709551615"],
        &["-p", "a", "--device", "gpu"],
        &["-p", "a", "--device", "wgpu:x"],
        &["-p", "a", "--device", "cpu:0"],
    ];
    for line in refused {
        let error = parse(line).expect_err(&format!("{line:?}"));
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn useful_combinations_are_taken() {
    let taken: &[&[&str]] = &[
        &["-p", "-x", "--stop", "--", "--temp", "0"],
        &["-p", "", "--chat", "--temp", "1", "--top-p", "0.9", "--seed", "18446744073709551615"],
        &["--tokens", "0, 17 5"],
        &["--tokens-file", "f", "-n", "3", "--ids", "--stop", "a", "--stop", "b"],
        &["--tokens", "1", "--tap", "a*", "--tap", "b", "--tap-out", "x.npz", "--logits", "l.npy"],
        &["--bench", "--device", "cpu", "--threads", "2"],
        &["-p", "a", "--device", "cuda:1"],
        &["--bench", "--prefill", "9", "--decode", "2", "--json", "--threads", "2", "--isa", "avx2", "--model", "m"],
    ];
    for line in taken {
        parse(line).unwrap();
    }
}

/// A plan with the most probable tokens alone generates the same text, and refuses what needs logits before the first step.
#[test]
fn a_plan_without_logits_generates_but_does_not_draw() {
    let line = ["--tokens", "5,9", "-n", "6", "--ids"];
    let (text, _) = outputs(&mut Fake::new(), &line).unwrap();
    let mut fake = Fake::new();
    fake.facts.greedy = true;
    assert_eq!(outputs(&mut fake, &line).unwrap().0, text);
    for extra in [&["--temp", "1"][..], &["--logits", "l.npy"]] {
        let mut fake = Fake::new();
        fake.facts.greedy = true;
        let refused = outputs(&mut fake, &[&line[..], extra].concat()).unwrap_err();
        assert!(refused.contains("DS4-0611") && refused.contains(extra[0]), "{refused}");
        assert_eq!(fake.steps, []);
    }
    let mut fake = Fake::new();
    fake.facts.greedy = true;
    outputs(&mut fake, &["--bench", "--prefill", "8", "--decode", "4"]).unwrap();
}

#[test]
fn devices_are_listed_without_a_plan() {
    let parse = |line: &[&str]| Arguments::try_parse_from(line).and_then(Arguments::checked);
    assert!(parse(&["ds4-run", "--list-devices", "--json"]).unwrap().json);
    for without in [
        &["--model", "m"][..],
        &["--threads", "2"],
        &["--isa", "avx2"],
        &["--contents"],
        &["--verify"],
        &["--device", "cpu"],
    ] {
        let line = [&["ds4-run", "--list-devices"], without].concat();
        assert_eq!(parse(&line).unwrap_err().exit_code(), 2, "{line:?}");
    }
}

#[test]
fn the_default_count_gives_way_to_the_context() {
    let text = parse(&["-p", "a"]).unwrap();
    assert_eq!((text.count(10, 4096), text.count(10, 64), text.count(70, 64)), (128, 54, 0));
    assert_eq!(parse(&["-p", "a", "-n", "99"]).unwrap().count(10, 64), 99);
    assert_eq!(parse(&["--tokens", "1"]).unwrap().count(1, 64), 0);
}

#[test]
fn a_text_is_continued() {
    let mut fake = Fake::new();
    let script = crate::text::Tokenizer::open(&tokenizer(), "").unwrap().encode("xyz yes, no").unwrap();
    // The prompt has four tokens: its arg-maxima are not looked at, but for the last one's.
    fake.script = script;
    let (out, err) = outputs(&mut fake, &["-p", "abc", "-n", "8", "--stop", ","]).unwrap();
    assert_eq!(fake.tokens[0], 0);
    insta::assert_snapshot!(format!("{out}----\n{err}"));
}

#[test]
fn a_chat_begins_with_its_markers() {
    let mut fake = Fake::new();
    outputs(&mut fake, &["-p", "AB", "--chat", "-n", "1"]).unwrap();
    assert_eq!(fake.tokens, [0, 2, 72, 73, 3, 5]);
}

#[test]
fn ids_need_no_tokenizer() {
    let mut fake = Fake::new();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ids = parse(&["--tokens", "0,17,5", "-n", "3", "--ids"]).unwrap();
    execute(&ids, &mut fake, b"", &mut out, &mut err).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().split(' ').count(), 3);
    let text = parse(&["--tokens", "0,17,5", "-n", "3"]).unwrap();
    let error = execute(&text, &mut Fake::new(), b"", &mut Vec::new(), &mut err).unwrap_err();
    assert_eq!(error.code, ds4_ir::diagnostic::codes::TOKENIZER_MISSING);
}

#[test]
fn a_wide_chunk_is_noted() {
    let tokens = vec!["7"; 40].join(",");
    let (out, err) = outputs(&mut Fake::new(), &["--tokens", &tokens, "--chunk", "32"]).unwrap();
    insta::assert_snapshot!(format!("{out}----\n{err}"));
}

#[test]
fn mistakes_are_found_before_the_first_step() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    let lines: &[&[&str]] = &[
        &["--tokens", "0,288"],
        &["--tokens", "0", "-n", "64"],
        &["--tokens", "0", "--tap", "layer.*.ids.x", "--tap-out", "absent/x.npz"],
        &["--tokens", "0", "--logits", "absent/x.npy"],
        &["--tokens", "0", "--tap", "*", "--tap-out", "absent/x.npz"],
        &["--tokens-file", empty],
        &["--bench", "--prefill", "60", "--decode", "5"],
    ];
    let mut text = String::new();
    for line in lines {
        let mut fake = Fake::new();
        let error = outputs(&mut fake, line).unwrap_err();
        assert!(fake.steps.is_empty());
        text += &format!("{}\n\n", error.replace(empty, "empty.txt"));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (logits, taps) = (path("logits.npy"), path("taps.npz"));
    let mut line = vec!["--tokens", "0,17,5", "--logits", &logits, "--tap-out", &taps];
    line.extend(["--tap", "layer.*.route.ids", "--tap", "visible"]);
    assert_eq!(outputs(&mut Fake::new(), &line).unwrap().0, "");
    assert!(Path::new(&logits).metadata().unwrap().len() > 3 * 288 * 4);
    assert!(Path::new(&taps).metadata().unwrap().len() > 100);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_measurement_is_printed() {
    let (out, err) = outputs(&mut Fake::new(), &["--bench", "--prefill", "20", "--decode", "5", "--json"]).unwrap();
    assert_eq!(err, "");
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&value["prefill"]["tokens"], &value["decode"]["tokens"]), (&20.into(), &5.into()));
    assert!(value["decode"]["tokens_per_second"].as_f64().unwrap() > 0.0);
    let mut fake = Fake::new();
    outputs(&mut fake, &["--bench"]).unwrap();
    assert_eq!(fake.tokens.len(), 64);
}

#[test]
fn forms_of_a_measurement() {
    let phase = |tokens, millis| Phase { tokens, time: std::time::Duration::from_millis(millis), steps: tokens };
    let measured = Measured { prefill: phase(512, 2500), decode: phase(64, 4000) };
    let facts = Fake::new().facts;
    insta::assert_snapshot!(report::table(&facts, &measured) + &report::json(&facts, &measured));
}
