//! The house rules that a machine can see: dependency arrows, folder names in the map, the list of codes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const CRATES: [&str; 6] = ["ir", "kernels", "compiler", "runtime", "golden", "bench"];

/// Crates of the workspace that a crate's manifest names, development dependencies included.
fn arrows(name: &str) -> BTreeSet<String> {
    let manifest = read(&format!("{name}/Cargo.toml"));
    CRATES
        .iter()
        .filter(|c| manifest.lines().any(|l| l.starts_with(&format!("ds4-{c}"))))
        .map(|c| c.to_string())
        .collect()
}

#[test]
fn arrows_point_downwards() {
    let allowed = |name| -> &[&str] {
        match name {
            "ir" => &[],
            "kernels" => &["ir"],
            "compiler" | "runtime" => &["ir", "kernels"],
            _ => &["ir", "kernels", "compiler", "runtime"],
        }
    };
    for name in CRATES {
        for arrow in arrows(name).iter().filter(|a| *a != name) {
            assert!(allowed(name).contains(&arrow.as_str()), "{name} must not depend on {arrow}");
        }
    }
}

#[test]
fn the_map_names_what_exists() {
    let map = read("ARCHITECTURE.md");
    let mut checked = 0;
    for word in map.split('`') {
        let is_path =
            word.contains('/') && !word.contains(' ') && CRATES.iter().any(|c| word.starts_with(&format!("{c}/")));
        if is_path || word.starts_with("docs/") {
            assert!(top().join(word).exists(), "ARCHITECTURE.md names {word}, which does not exist");
            checked += 1;
        }
    }
    assert!(checked >= 8, "the map names paths");
}

#[test]
fn every_code_is_listed_and_raised() {
    let list = read("docs/errors.md");
    let mut sources = String::new();
    for name in CRATES {
        collect(&top().join(name), &mut sources);
    }
    let declared = read("ir/src/diagnostic.rs");
    for (code, title) in ds4_ir::diagnostic::codes::ALL {
        assert!(list.contains(&format!("| {code} | {title} |")), "docs/errors.md lacks `| {code} | {title} | ... |`");
        let line = declared.lines().find(|l| l.contains(&format!(" = {}: ", code.0))).expect("the table declares it");
        let name = line.trim().split(' ').next().expect("a name");
        assert!(sources.contains(&format!("codes::{name}")), "{code} ({name}) is never raised");
    }
    let listed = list.lines().filter(|l| l.starts_with("| DS4-")).count();
    assert_eq!(listed, ds4_ir::diagnostic::codes::ALL.len(), "docs/errors.md lists codes that do not exist");
}

fn collect(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

#[test]
fn the_operations_are_the_small_set() {
    let names: Vec<&str> = ds4_ir::Op::ALL.iter().map(|op| op.name()).collect();
    let expected = "weight const tokens extent iota map reduce product quantise widen reshape slice permute broadcast concat \
                    gather top_k arg_max sort_ids read write";
    assert_eq!(names.join(" "), expected);
}
