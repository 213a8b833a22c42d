//! The built `ds4c`: exit codes, reports, and outputs that never cost an input.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden").join(path)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ds4c")).current_dir(folder).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A folder with a small model, `model.gguf`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(golden("oracle/tiny-a/model.f16.gguf"), folder.path().join("model.gguf")).unwrap();
    folder
}

#[test]
fn help_has_examples_and_wrong_usage_exits_with_2() {
    let folder = folder();
    for command in [&["--help"][..], &["compile", "--help"], &["show", "--help"], &["ir", "--help"]] {
        let output = run(folder.path(), command);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output).contains("Examples:"), "{command:?}");
    }
    for command in [&["compile"][..], &["compile", "m", "-o", "p", "--kv", "f64"], &["nothing"], &[]] {
        assert_eq!(run(folder.path(), command).status.code(), Some(2), "{command:?}");
    }
}

#[test]
fn a_plan_is_made_shown_and_printed() {
    let folder = folder();
    let done = run(folder.path(), &["compile", "model.gguf", "-o", "model.ds4plan", "--fuse", "off"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    let report =
        run(folder.path(), &["show", "model.ds4plan", "--memory", "--taps", "--launches", "--values", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    for key in ["facts", "model_hash", "value_count", "memory_bytes", "entries", "memory", "taps", "launches", "values"]
    {
        assert!(!report[key].is_null(), "{key}");
    }
    assert_eq!(report["values"].as_array().unwrap().len() as u64, report["value_count"].as_u64().unwrap());
    let of_plan = run(folder.path(), &["ir", "model.ds4plan"]);
    let of_model = run(folder.path(), &["ir", "model.gguf"]);
    assert_eq!(of_plan.status.code(), Some(0));
    assert!(of_plan.stdout == of_model.stdout, "an unfused plan's graph is its model's");
    let refused = run(folder.path(), &["ir", "model.ds4plan", "--kv", "f16"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("DS4-0502"));
}

#[test]
fn kernels_are_listed_and_printed() {
    let folder = folder();
    let done = run(
        folder.path(),
        &["compile", "model.gguf", "-o", "p.ds4plan", "--fuse", "off", "--target", "wgsl", "--json"],
    );
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["targets"], serde_json::json!(["wgsl"]));
    assert!(report["device_needs"]["binding_bytes"].as_u64().unwrap() > 1000);
    let list = run(folder.path(), &["show", "p.ds4plan", "--kernels", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let kernels = list["kernels"].as_array().unwrap();
    assert_eq!(kernels.len() as u64, list["kernel_count"].as_u64().unwrap());
    assert!(kernels.iter().all(|k| k["launches"].as_array().unwrap().iter().any(|n| n.as_u64().unwrap() > 0)));
    assert!(kernels.iter().all(|k| k["text"] == "unproved"));
    let lines = text(&run(folder.path(), &["show", "p.ds4plan", "--kernels"]));
    assert_eq!(lines.matches(" text unproved ").count(), kernels.len(), "{lines}");
    let name = kernels[9]["name"].as_str().unwrap();
    let source = text(&run(folder.path(), &["show", "p.ds4plan", "--kernel", name, "--target", "wgsl"]));
    assert!(source.starts_with("// v") && source.contains("@compute"), "{source}");
    let of_value = text(&run(folder.path(), &["show", "p.ds4plan", "--kernel", "v8"]));
    assert!(of_value.contains("// v8 "), "{of_value}");
    for (arguments, code) in [
        (&["--kernel", "nothing"][..], "no such kernel"),
        (&["--kernel", name, "--target", "hip"], "no kernels for this target"),
    ] {
        let refused = run(folder.path(), &[&["show", "p.ds4plan"], arguments].concat());
        assert!(text(&refused).contains("DS4-0405") && text(&refused).contains(code), "{}", text(&refused));
    }
    let done = run(folder.path(), &["compile", "model.gguf", "-o", "p.ds4plan", "--target", "none", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(report["kernel_count"] == 0 && report["device_needs"].is_null());
}

/// Compiles the small model fused, for one target.
fn fused(folder: &Path, model: &str, plan: &str) {
    let done = run(folder, &["compile", model, "-o", plan, "--fuse", "exact", "--target", "wgsl"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = run(folder, arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)))
}

#[test]
fn launches_and_bytes_are_told_by_kind_of_layer() {
    let folder = folder();
    fused(folder.path(), "model.gguf", "p.ds4plan");
    run(folder.path(), &["compile", "model.gguf", "-o", "off.ds4plan", "--fuse", "off", "--target", "none"]);
    let number = |json: &serde_json::Value| json.as_u64().unwrap();
    let moved = |json: &serde_json::Value| json.as_object().unwrap().values().map(number).sum::<u64>();
    for plan in ["p.ds4plan", "off.ds4plan"] {
        for entry in ["decode1", "decode", "prefill"] {
            let report = json(folder.path(), &["explain", plan, "--entry", entry, "--json"]);
            let kinds = report["kinds"].as_array().unwrap();
            let sum = |key: &str| kinds.iter().map(|kind| number(&kind["all"][key])).sum::<u64>();
            assert_eq!(sum("launches"), number(&report["launches"]));
            assert_eq!(sum("launches_before"), number(&report["launches_before"]));
            let sum = |key: &str| kinds.iter().map(|kind| moved(&kind["all"][key])).sum::<u64>();
            assert_eq!(sum("bytes"), moved(&report["bytes"]["bytes"]));
            // What a region reads and writes is what its row of the table adds.
            let listed = report["regions"].as_array().unwrap().iter().flat_map(|region| {
                let lists = [&region["reads"], &region["writes"]].map(|list| list.as_array().unwrap().clone());
                lists.concat().iter().map(|row| number(&row["bytes"])).collect::<Vec<_>>()
            });
            assert_eq!(listed.sum::<u64>(), moved(&report["bytes"]["bytes"]));
            let mut launches: Vec<u64> = Vec::new();
            for part in kinds.iter().flat_map(|kind| kind["launches"].as_array().unwrap()) {
                launches.extend(part.as_array().unwrap().iter().map(number));
            }
            launches.sort();
            assert!(launches.into_iter().eq(0..number(&report["launches"])), "every launch is of one part");
            if plan == "off.ds4plan" {
                assert_eq!(report["bytes"]["bytes"], report["bytes"]["bytes_before"]);
                assert_eq!(report["launches"], report["launches_before"]);
            } else {
                let values = |key: &str| number(&report["bytes"][key]["values_written"]);
                assert!(values("bytes") < values("bytes_before") / 2);
            }
        }
    }
    let lines = text(&run(folder.path(), &["explain", "p.ds4plan", "--once", "hc_pre"]));
    assert!(lines.contains(" the step\n") && lines.contains("counted once"), "{lines}");
    let report = json(folder.path(), &["explain", "off.ds4plan", "--once", "sinkhorn", "--json"]);
    let once = number(&report["launches_with_once"]);
    assert!(once + 100 < number(&report["launches"]), "neighbours that share a span are counted once: {once}");
    let refused = run(folder.path(), &["explain", "off.ds4plan", "--once", "nothing", "--json"]);
    assert!(refused.status.code() == Some(1) && text(&refused).contains("DS4-0406"), "{}", text(&refused));
}

/// Whether all tags of a text are closed, in order; tags without an end close themselves.
fn is_well_formed(text: &str) -> bool {
    let mut open = Vec::new();
    for piece in text.split('<').skip(1) {
        let Some((tag, _)) = piece.split_once('>') else { return false };
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return false,
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    open.is_empty()
}

#[test]
fn a_step_is_drawn_twice_the_same() {
    let folder = folder();
    let strange = "m<script>&\"'.gguf";
    std::fs::rename(folder.path().join("model.gguf"), folder.path().join(strange)).unwrap();
    fused(folder.path(), strange, "p.ds4plan");
    run(folder.path(), &["compile", strange, "-o", "off.ds4plan", "--fuse", "off", "--target", "none"]);
    for (plan, more) in [
        ("p.ds4plan", &[][..]),
        ("p.ds4plan", &["--entry", "prefill"]),
        ("p.ds4plan", &["--layer", "1"]),
        ("off.ds4plan", &[]),
    ] {
        for kind in ["svg", "html"] {
            let drawn = ["a", "b"].map(|name| {
                let name = format!("{name}.{kind}");
                let done = run(folder.path(), &[&["show", plan, "--graph", &name], more].concat());
                assert_eq!(done.status.code(), Some(0), "{}", text(&done));
                std::fs::read_to_string(folder.path().join(name)).unwrap()
            });
            assert!(drawn[0] == drawn[1], "{plan} {kind} {more:?}");
            let [drawn, _] = drawn;
            assert!(!drawn.contains("m<script>") && drawn.contains("m&lt;script&gt;&amp;&quot;&#39;.gguf"));
            assert!(!drawn.contains("http://") || drawn.matches("http").count() == 1, "nothing is fetched");
            let rooms = drawn.matches(" data-room=").count();
            assert!(rooms > 3 && drawn.contains("class=\"v map") && drawn.contains("class=\"way "), "{rooms}");
            assert_eq!(drawn.contains("unproved\" x="), plan == "p.ds4plan", "a plan with kernels says so");
            if kind == "svg" {
                assert!(is_well_formed(&drawn), "{plan} {more:?}");
                let width = drawn.split(" width=\"").nth(1).unwrap().split('"').next().unwrap();
                assert!(width.parse::<u32>().unwrap() < 2200, "{plan} {more:?}: {width}");
            } else {
                let data = drawn.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
                let data: serde_json::Value = serde_json::from_str(data).unwrap();
                assert_eq!(data["rooms"].as_object().unwrap().len(), rooms);
            }
        }
    }
    for (arguments, code) in [
        (&["--graph", "a.png"][..], "DS4-0501"),
        (&["--graph", "plain"], "DS4-0501"),
        (&["--graph", "a.svg", "--layer", "77"], "DS4-0406"),
    ] {
        let refused = run(folder.path(), &[&["show", "p.ds4plan"], arguments].concat());
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused).contains(code), "{}", text(&refused));
    }
    std::fs::hard_link(folder.path().join("p.ds4plan"), folder.path().join("linked.svg")).unwrap();
    let refused = run(folder.path(), &["show", "p.ds4plan", "--graph", "linked.svg"]);
    assert!(text(&refused).contains("DS4-0804"), "{}", text(&refused));
    let left = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.contains("partial") && name != "a.png"));
}

#[test]
fn the_same_layout_gives_the_same_plan() {
    let plans = [folder(), folder()].map(|folder| {
        std::fs::create_dir(folder.path().join("plans")).unwrap();
        let done = run(folder.path(), &["compile", "model.gguf", "-o", "plans/p.ds4plan"]);
        assert_eq!(done.status.code(), Some(0));
        std::fs::read(folder.path().join("plans/p.ds4plan")).unwrap()
    });
    assert!(plans[0] == plans[1]);
}

#[test]
fn an_output_never_costs_an_input() {
    let folder = folder();
    let before = std::fs::read(folder.path().join("model.gguf")).unwrap();
    std::fs::hard_link(folder.path().join("model.gguf"), folder.path().join("other-name")).unwrap();
    for output in ["model.gguf", "./model.gguf", "other-name"] {
        for command in ["compile", "ir"] {
            let refused = run(folder.path(), &[command, "model.gguf", "-o", output]);
            assert_eq!(refused.status.code(), Some(1));
            assert!(text(&refused).contains("DS4-0804"), "{}", text(&refused));
        }
    }
    // A plan stands for its model.
    std::fs::create_dir(folder.path().join("plans")).unwrap();
    let done = run(folder.path(), &["compile", "model.gguf", "-o", "plans/p.ds4plan", "--target", "none"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    std::os::unix::fs::symlink("../model.gguf", folder.path().join("plans/model.svg")).unwrap();
    for command in [
        ["ir", "plans/p.ds4plan", "-o", "model.gguf"],
        ["ir", "plans/p.ds4plan", "-o", "plans/p.ds4plan"],
        ["show", "plans/p.ds4plan", "--graph", "plans/model.svg"],
    ] {
        let refused = run(folder.path(), &command);
        assert!(text(&refused).contains("DS4-0804"), "{command:?}: {}", text(&refused));
    }
    std::fs::remove_dir_all(folder.path().join("plans")).unwrap();
    assert!(std::fs::read(folder.path().join("model.gguf")).unwrap() == before);
    let refused = run(folder.path(), &["compile", "model.gguf", "-o", "."]);
    assert!(text(&refused).contains("DS4-0803"), "{}", text(&refused));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn sizes_that_no_plan_holds_are_refused_before_writing() {
    let folder = folder();
    let command = ["compile", "model.gguf", "-o", "p", "--context", "1048576", "--prefill", "1048576"];
    let refused = run(folder.path(), &command);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("DS4-0501"), "{}", text(&refused));
    assert!(!folder.path().join("p").exists());
}

/// A profile whose limits no launch keeps to is refused as such, and so is one whose name says nothing.
#[test]
fn a_profile_that_is_too_small_is_named() {
    let folder = folder();
    let profile = include_str!("../profiles/generic.toml").replace("\"generic\"", "\"mine\"");
    let with = |from: &str, to: &str| {
        assert!(profile.contains(from));
        std::fs::write(folder.path().join("p.toml"), profile.replace(from, to)).unwrap();
        text(&run(
            folder.path(),
            &["compile", "model.gguf", "-o", "p.ds4plan", "--profile", "p.toml", "--target", "none"],
        ))
    };
    let refused = with("workgroup_bytes = 16384", "workgroup_bytes = 16");
    assert!(refused.contains("DS4-0505") && refused.contains("workgroup_bytes = 16 "), "{refused}");
    for (from, to) in [
        ("arguments = 31", "arguments = 32"),
        ("workgroup_bytes = 16384", "workgroup_bytes = 65536"),
        ("launch = 5.0", "launch = 1e300"),
        ("lanes = 128", "lanes = 64"),
        ("\"mine\"", "\"my own\""),
        ("\"mine\"", "\"\""),
    ] {
        let refused = with(from, to);
        assert!(refused.contains("DS4-0505"), "{to}: {refused}");
    }
    assert!(!with("\"mine\"", "\"mine-2\"").contains("error"));
    let regions = json(folder.path(), &["explain", "p.ds4plan", "--json"])["regions"].clone();
    let [a, b] = [0, 1].map(|i| format!("v{}", regions[i]["values"][0]["value"]));
    let answer = run(folder.path(), &["explain", "p.ds4plan", "--why-not", &a, &b]);
    assert!(text(&answer).contains("DS4-0505") && text(&answer).contains("--profile FILE"), "{}", text(&answer));
}

/// The caps of rewriting are given and told; a plan within smaller ones is accepted too.
#[test]
fn rewriting_keeps_to_its_caps() {
    let folder = folder();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let compile = ["compile", "model.gguf", "-o", "p.ds4plan", "--target", "none", "--json"];
    let whole = json(folder.path(), &compile)["rewriting"].clone();
    let capped = json(folder.path(), &[&compile[..], &["--rewrite-rounds", "1", "--rewrite-nodes", "50"]].concat());
    let capped = &capped["rewriting"];
    assert_eq!((number(&whole["rounds"]), number(&whole["nodes"])), (5, 2000));
    assert_eq!((number(&capped["rounds"]), number(&capped["nodes"])), (1, 50));
    let stopped = |report: &serde_json::Value| {
        number(&report["blocks_stopped_by_rounds"]) + number(&report["blocks_stopped_by_nodes"])
    };
    assert!(number(&whole["blocks"]) > 0 && stopped(capped) > stopped(&whole), "{whole} {capped}");
    let checked = run(folder.path(), &["check", "p.ds4plan", "model.gguf"]);
    assert!(checked.status.success(), "{}", text(&checked));
    let off = run(folder.path(), &[&compile[..], &["--fuse", "off", "--rewrite-rounds", "1"]].concat());
    assert!(text(&off).contains("DS4-0502"), "{}", text(&off));
}

/// A fused plan is accepted, alone and with its model, and says by which rules; another model is refused.
#[test]
fn a_plan_is_checked_against_its_model() {
    let folder = folder();
    let compile = ["compile", "model.gguf", "-o", "p.ds4plan", "--fuse", "exact", "--target", "wgsl"];
    let done = run(folder.path(), &compile);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    let named = run(folder.path(), &["explain", "p.ds4plan", "--why-not", "layer.0.hidden", "layer.1.hidden"]);
    assert!(named.status.success() && text(&named).contains("rule `absorb`"), "{}", text(&named));
    let alone = text(&run(folder.path(), &["check", "p.ds4plan"]));
    for words in ["accepted", "steps by structural (lists checked): absorb ", "taken on trust", "texts unproved"] {
        assert!(alone.contains(words), "{words}: {alone}");
    }
    let with = text(&run(folder.path(), &["check", "p.ds4plan", "model.gguf"]));
    assert!(with.contains("lowered again: the same"), "{with}");
    let report = run(folder.path(), &["check", "p.ds4plan", "model.gguf", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert!(report["launch_rules"].as_array().unwrap().iter().any(|row| row["rule"] == "absorb"));
    assert!(report["rules"].as_array().unwrap().iter().all(|row| row["uses"].as_u64().unwrap() > 0));
    assert!(report["model_values"].as_u64().unwrap() > 100);
    std::fs::copy(folder.path().join("model.gguf"), folder.path().join("renamed.gguf")).unwrap();
    let renamed = text(&run(folder.path(), &["check", "p.ds4plan", "renamed.gguf"]));
    assert!(renamed.contains("lowered again: the same"), "{renamed}");
    std::fs::copy(golden("models/kjv-9m/model.q8.gguf"), folder.path().join("other.gguf")).unwrap();
    let other = run(folder.path(), &["check", "p.ds4plan", "other.gguf"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other).contains("DS4-0601"), "{}", text(&other));
}

/// A norm in front of a product, with views to rewrite.
const NORM: &str = "\
state rows: f32[16, 64]
weight m: w.f16[32, 64]
ids = tokens
old = read rows
x = gather axis=0 old, ids
row: f32[columns, 1, 64] = reshape x
again: f32[columns, 64] = reshape row
half = map { div(mul(x0, 1.0), 2.0) } again
m_w = weight m
y = product lanes(32) half, m_w
new = map { add(x0, x0) } half
after = write old, ids, new
output y = y
";

/// Each term stands there once; each step has its rule, position and substitution; each value its laws.
#[test]
fn a_certificate_is_printed() {
    let folder = folder();
    std::fs::write(folder.path().join("norm.ds4ir"), NORM).unwrap();
    let shown = text(&run(folder.path(), &["fuse", "norm.ds4ir", "--certificate"]));
    insta::assert_snapshot!("fuse_certificate", shown);
    let report = run(folder.path(), &["fuse", "norm.ds4ir", "--certificate", "--json", "--profile", "lavapipe"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["accepted"], true);
    let terms: Vec<&str> = report["terms"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let name = |line: &str| line.split([' ', ':']).next().unwrap().to_string();
    let names: std::collections::BTreeSet<String> = terms.iter().map(|line| name(line)).collect();
    assert_eq!(names.len(), terms.len());
    for step in report["value_steps"].as_array().unwrap() {
        let rewritten = !["congruence", "equal bodies"].contains(&step["rule"].as_str().unwrap());
        assert_eq!(rewritten, !step["substitution"].as_object().unwrap().is_empty(), "{step}");
    }
    assert!(!report["value_steps"].as_array().unwrap().is_empty());
    let launches = report["entries"][0]["launches"].as_array().unwrap();
    assert!(launches.iter().any(|launch| launch.to_string().contains("absorb")), "{launches:?}");
}
