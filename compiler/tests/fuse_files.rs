//! File tests of fusion: graphs in `golden/fusions`, with directives that say which values are computed together and which
//! are not. They are written from what the operations mean, without knowledge of the search.
#![allow(clippy::unwrap_used)]

#[path = "fuse/claims.rs"]
mod claims;
#[path = "fuse/directives.rs"]
mod directives;
#[path = "fuse/lists.rs"]
mod lists;
#[path = "fuse/shuffle.rs"]
mod shuffle;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ds4_compiler::fuse::{Found, Profile, fuse};
use ds4_ir::graph::Value;
use ds4_ir::text::parse;
use ds4_ir::verify::verify;

use claims::{bounds, failures, profile, toothless};
use directives::Header;
use lists::Lists;
use shuffle::{Random, order, shuffled};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/fusions")
}

/// The files with their texts, by name.
fn files() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("the folder of file tests");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ds4ir"));
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The files whose graphs are no faults.
fn graphs() -> Vec<(String, String)> {
    files().into_iter().filter(|(_, text)| !text.contains(";! refused")).collect()
}

#[test]
fn files_keep_their_claims() {
    let only = std::env::var("FUSE_FILE").unwrap_or_default();
    let files: Vec<_> = files().into_iter().filter(|(name, _)| name.contains(&only)).collect();
    assert!(!files.is_empty(), "no file has `{only}` in its name");
    let failures: Vec<String> = files.iter().flat_map(|(name, text)| failures(text, name)).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn claims_of_files_have_teeth() {
    let toothless: Vec<String> = files().iter().flat_map(|(name, text)| toothless(text, name).unwrap()).collect();
    assert!(toothless.is_empty(), "{}", toothless.join("\n"));
}

/// A graph of two launches: a product whose row a norm needs whole, and a state.
const PLANTED: &str = "
weight w: w.f16[8192, 4096]
state rows: f32[64, 4096]
state kept: f32[64, 8192]
ids = tokens
rows = read rows
x = gather axis=0 rows, ids
ww = weight w
y = product lanes(128) x, ww
y1: f32[columns, 1, 8192] = reshape y
squares = product lanes(128) y, y1
r = map { div(1.0, sqrt(x0)) } squares
rs: f32[columns, 8192] = broadcast r
normed = map { mul(x0, x1) } y, rs
doubled = map { add(x0, x0) } normed
kept = read kept
at = map { remi(x0, 64) } ids
after = write kept, at, doubled
output normed = normed
";

#[test]
fn each_kind_of_claim_can_fail() {
    let kinds = [
        ("together squares r", "together y squares"),
        ("separate y squares", "separate squares r"),
        ("beside squares r", "beside y normed"),
        ("apart y squares", "apart squares r"),
        ("before y normed", "before normed y"),
        ("launches <= 4", "launches <= 1"),
        ("once y", "once x ids"),
        ("stored y normed", "stored squares"),
        ("interior doubled", "interior y"),
    ];
    for (right, wrong) in kinds {
        assert_eq!(failures(&format!(";! {right}\n{PLANTED}"), "right"), Vec::<String>::new());
        let found = failures(&format!(";! columns 1\n;! {wrong}\n{PLANTED}"), "wrong");
        assert_eq!(found.len(), 1, "`{wrong}` does not fail, or fails otherwise: {found:?}");
        assert!(found[0].contains(wrong), "{found:?}");
    }
}
#[test]
fn claims_about_reasons_can_fail() {
    let declined = |words: &str| failures(&format!(";! columns 1\n;! declined {words}\n{VERSIONS}"), "declined");
    assert_eq!(declined("Order"), Vec::<String>::new());
    assert_eq!(declined("Order Disorder").len(), 1);
    let unmasked = "state rows: f32[64, 32]\ni: i32[8] = iota axis=0\nids = map { id_where(lti(x0, 5), x0) } i\n\
        old = read rows\nx = gather axis=0 old, ids\noutput x = x\n";
    let refused = |words: &str, graph: &str| failures(&format!(";! refused {words}\n{graph}"), "refused").len();
    assert_eq!((refused("without a value", unmasked), refused("out of memory", unmasked)), (0, 1));
    assert_eq!(refused("without a value", VERSIONS), 1, "a graph that is accepted is not refused");
}

#[test]
fn directives_that_are_none_are_refused() {
    let faults = [
        "",
        ";! together a",
        ";! columns 0\n;! launches <= 1",
        ";! launches < 1",
        ";! next to a b",
        ";! once y\n;! expected-to-fail: no",
    ];
    for text in faults {
        assert!(Header::parse(text).is_err(), "`{text}` is taken");
    }
    for claims in ["once nothing", "set size 1\n;! once y", "profile none\n;! once y", "refused it"] {
        assert_ne!(failures(&format!(";! {claims}\n{PLANTED}"), "planted"), Vec::<String>::new(), "`{claims}` holds");
    }
}

#[test]
fn an_expected_failure_fails_as_soon_as_it_holds() {
    let excused = |claim: &str| failures(&format!(";! expected-to-fail: a reason\n;! {claim}\n{PLANTED}"), "excused");
    assert_eq!(excused("launches <= 1"), Vec::<String>::new());
    let found = excused("together squares r");
    assert!(matches!(&found[..], [one] if one.contains("holds now") && one.contains("a reason")), "{found:?}");
}

#[test]
fn a_claim_about_some_columns_is_about_those_only() {
    let about = |columns: &str| failures(&format!(";! when {columns}: launches <= 1\n{PLANTED}"), "some").len();
    assert_eq!((about("4"), about("1"), about("1 8")), (0, 1, 2));
}

/// Launches with a fault in them.
type Fault = (&'static str, fn(&mut Vec<(usize, Vec<Value>)>));

#[test]
fn each_fault_of_lists_is_found() {
    let tables = parse(PLANTED, "planted").unwrap();
    let found = fuse(&tables.view(), bounds(1), &Profile::find("generic").unwrap(), &[]);
    let faults: [Fault; 7] = [
        ("no region computes", |regions| regions.iter_mut().for_each(|r| r.1.retain(|v| v.0 != 4))),
        ("no ascending list", |regions| regions[0].1.reverse()),
        ("which no earlier launch computes", |regions| {
            let last = regions.iter().map(|r| r.0).max().unwrap();
            regions.iter_mut().for_each(|r| r.0 = last - r.0);
        }),
        ("for nothing", |regions| regions.last_mut().unwrap().1.insert(0, Value(2))),
        ("written more than once", |regions| regions.extend(regions.last().cloned())),
        ("which is given", |regions| regions[0].1.insert(0, Value(1))),
        ("has no region", |regions| regions.retain(|r| r.0 > 0)),
    ];
    let sound = Lists::of(tables.view(), &found);
    assert_eq!(sound.faults(), Vec::<String>::new());
    for (message, plant) in faults {
        let mut lists = Lists::of(tables.view(), &found);
        plant(&mut lists.regions);
        let faults = lists.faults();
        assert!(faults.iter().any(|fault| fault.contains(message)), "`{message}` is not among {faults:?}");
    }
}

/// A state whose old rows and new rows are read.
const VERSIONS: &str = "
state ring: f32[64, 32]
ids = tokens
old = read ring
was = gather axis=0 old, ids
row = map { neg(x0) } was
new = write old, ids, row
is = gather axis=0 new, ids
y = map { add(x0, 1.0) } is
output y = y
";

#[test]
fn a_write_beside_its_readers_is_found() {
    let tables = parse(VERSIONS, "versions").unwrap();
    let found = fuse(&tables.view(), bounds(1), &Profile::find("generic").unwrap(), &[]);
    let lists = Lists::of(tables.view(), &found);
    assert_eq!(lists.faults(), Vec::<String>::new());
    let launches = |regions: &[(usize, Vec<u32>)]| {
        let mut lists = Lists::of(tables.view(), &found);
        lists.regions = regions.iter().map(|(at, list)| (*at, list.iter().map(|&v| Value(v)).collect())).collect();
        lists.launches = regions.iter().map(|(at, _)| at + 1).max().unwrap_or(0);
        lists.faults().join("\n")
    };
    assert_eq!(launches(&[(0, vec![2, 3]), (1, vec![4]), (2, vec![5, 6])]), "");
    assert!(launches(&[(0, vec![2, 3, 4]), (1, vec![5, 6])]).contains("v2 in launch 0 reads v1, which v4 replaces"));
    assert!(launches(&[(0, vec![2, 3]), (1, vec![4, 5, 6])]).contains("v5 in launch 1 reads v4 of launch 1"));
    let again = launches(&[(0, vec![2, 3]), (1, vec![4]), (2, vec![2, 3, 5, 6])]);
    assert!(again.contains("v2 in launch 2 reads v1, which v4 replaces in launch 1"), "{again}");
}

/// The launches as sets of sets, so that neither the order of ids nor that of regions shows.
fn launches(found: &Found, name: impl Fn(Value) -> Value) -> BTreeSet<BTreeSet<BTreeSet<Value>>> {
    let region = |values: &[Value]| values.iter().map(|&v| name(v)).collect::<BTreeSet<Value>>();
    found.launches.iter().map(|launch| launch.regions.iter().map(|r| region(&r.values)).collect()).collect()
}

#[test]
fn names_and_order_of_values_change_nothing() {
    let mut different = BTreeSet::new();
    for (name, text) in graphs() {
        let header = Header::parse(&text).unwrap();
        let (tables, profile) = (parse(&text, &name).unwrap(), profile(&header).unwrap());
        for (seed, columns) in (1..=8).zip([1, 8].into_iter().cycle()) {
            let order = order(&tables.view(), &mut Random::new(seed));
            let other = shuffled(&tables, &order, 1 + seed as u8);
            verify(&other.view()).unwrap_or_else(|fault| panic!("{name}, seed {seed}: {fault}"));
            let here = fuse(&tables.view(), bounds(columns), &profile, &[]);
            let there = fuse(&other.view(), bounds(columns), &profile, &[]);
            if launches(&here, |v| v) != launches(&there, |v| order[v.0 as usize]) {
                println!("{name}: seed {seed}, columns {columns}: other regions");
                different.insert(name.clone());
            }
            let faults = Lists::of(other.view(), &there).faults();
            assert_eq!(faults, Vec::<String>::new(), "{name}: seed {seed}, columns {columns}");
        }
    }
    assert!(different.is_empty(), "the regions of {different:?} depend on the order of ids");
}

#[test]
fn lists_are_sound_for_every_profile() {
    for (name, text) in graphs() {
        let tables = parse(&text, &name).unwrap();
        for profile in Profile::names() {
            for columns in [1, 4, 64, 512] {
                let found = fuse(&tables.view(), bounds(columns), &Profile::find(profile).unwrap(), &[]);
                let faults = Lists::of(tables.view(), &found).faults();
                assert_eq!(faults, Vec::<String>::new(), "{name}: {profile}, columns {columns}");
            }
        }
    }
}

#[test]
fn a_search_is_repeated_to_the_letter() {
    for (name, text) in graphs() {
        let tables = parse(&text, &name).unwrap();
        let profile = Profile::find("generic").unwrap();
        let lists = || Lists::of(tables.view(), &fuse(&tables.view(), bounds(8), &profile, &[])).regions;
        assert_eq!(lists(), lists(), "{name}");
    }
}

#[test]
fn a_shuffle_moves_values_and_renames_spans() {
    let tables = parse(PLANTED, "planted").unwrap();
    let order = order(&tables.view(), &mut Random::new(3));
    assert!(order.windows(2).any(|pair| pair[0] > pair[1]), "the order is as it was");
    let other = shuffled(&tables, &order, 1);
    assert_ne!(other.text, tables.text);
    let output = other.view().outputs[0];
    assert_eq!(order[output.value.0 as usize], tables.view().output("normed").unwrap());
    assert_eq!(other.view().name(output.name), "opsnfe");
}
