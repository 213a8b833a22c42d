//! Plan files: the same bytes twice, and every damage refused with its diagnostic.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use ds4_compiler::assemble::{Compiled, compile, remembered_path};
use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_golden::aligned::Aligned;
use ds4_golden::run::Source;
use ds4_ir::Run;
use ds4_ir::diagnostic::codes;
use ds4_ir::plan::file::{certified_bytes, plan_bytes};
use ds4_ir::plan::tables::PlanTables;
use ds4_ir::plan::{ExtentRow, PlanBytes};
use ds4_ir::rules::Exact;
use ds4_kernels::Target;

fn bytes_of(path: &str, targets: &[Target]) -> Vec<u8> {
    let source = Source::open(path).unwrap();
    let options = source.options(|_| ());
    let compiled =
        compile(&source.checkpoint, &source.model, &options, "model.gguf", &Form { targets, fusion: None }).unwrap();
    plan_bytes(&compiled.graph, &compiled.plan)
}

fn refused(bytes: &[u8]) -> String {
    let opened = PlanBytes::open(Aligned::new(bytes), "p.ds4plan");
    match opened.and_then(|plan| plan.verified().map(|_| ())) {
        Ok(()) => panic!("a damaged plan was accepted"),
        Err(diagnostic) => diagnostic.to_string(),
    }
}

/// Number, offset and length of every section, read from the table as the format says.
fn sections(bytes: &[u8]) -> Vec<(u32, usize, usize)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    (0..word(12) as usize).map(|i| 64 + i * 64).map(|row| (word(row), long(row + 8), long(row + 16))).collect()
}

#[test]
fn compiling_twice_gives_the_same_bytes() {
    for path in ["oracle/tiny-a", "oracle/tiny-f", "models/kjv-9m/model.q2.gguf"] {
        let (a, b) = (bytes_of(path, &Target::ALL), bytes_of(path, &Target::ALL));
        assert!(a == b, "{path}");
        let plan = PlanBytes::open(Aligned::new(&a), "p.ds4plan").unwrap();
        plan.verified().unwrap();
    }
}

/// A fused plan, too, is the same bytes twice; its certificate is accepted, refused with one reason changed, and missed where it
/// was taken away.
#[test]
fn certificates_are_checked_with_their_plan() {
    let source = Source::open("oracle/tiny-r").unwrap();
    let profile = Profile::find("generic").unwrap();
    let form = Form { targets: &[Target::Wgsl], fusion: Some(&profile) };
    let compiled = || compile(&source.checkpoint, &source.model, &source.options(|_| ()), "m", &form).unwrap();
    let Compiled { graph, plan, certificate, .. } = compiled();
    let certificate = certificate.unwrap();
    let bytes = certified_bytes(&graph, &plan, Some(&certificate));
    let again = compiled();
    assert!(bytes == certified_bytes(&again.graph, &again.plan, again.certificate.as_ref()));

    let proved = |bytes: &[u8]| PlanBytes::open(Aligned::new(bytes), "p.ds4plan").unwrap().proved(Exact::rules());
    let report = proved(&bytes).unwrap().unwrap();
    assert!(report.uses.values().sum::<usize>() > 0, "nothing was rewritten");
    let missing = proved(&plan_bytes(&graph, &plan)).unwrap_err();
    assert_eq!(missing.code, codes::CERTIFICATE_REFUSED, "{missing}");
    let mut changed = certificate;
    changed.value_lemmas.iter_mut().for_each(|lemma| lemma.b = lemma.a);
    let refused = proved(&certified_bytes(&graph, &plan, Some(&changed))).unwrap_err();
    assert_eq!(refused.code, codes::CERTIFICATE_REFUSED, "{refused}");
}

/// Contexts in which blocks of tokens never, just, or sometimes complete.
#[test]
fn any_context_has_kernels() {
    let source = Source::open("oracle/tiny-m/model.mxfp4-00001-of-00002.gguf").unwrap();
    for context in [1, 3, 4, 63, 64, 65, 100, 127, 128, 129] {
        let options = source.options(|o| {
            o.context = context;
            o.prefill = context.min(o.prefill);
            o.columns = context.min(o.columns);
        });
        let compiled =
            compile(&source.checkpoint, &source.model, &options, "m", &Form { targets: &Target::ALL, fusion: None })
                .unwrap();
        let bytes = plan_bytes(&compiled.graph, &compiled.plan);
        PlanBytes::open(Aligned::new(&bytes), "p").unwrap().verified().map(|_| ()).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_any_section_is_refused() {
    let bytes = bytes_of("oracle/tiny-a", &Target::ALL);
    let mut seen = 0;
    for (number, offset, len) in sections(&bytes) {
        if len == 0 {
            continue;
        }
        for at in [offset, offset + len / 2, offset + len - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let text = refused(&damaged);
            assert!(text.contains(&format!("section {number} does not match its hash")), "{text}");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} sections");
    for at in 0..64 + sections(&bytes).len() * 64 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        refused(&damaged);
    }
}

/// What a plan says of grids and bindings is checked, whatever its hashes say.
#[test]
fn grids_and_bindings_are_checked() {
    let source = Source::open("oracle/tiny-a").unwrap();
    let options = source.options(|_| ());
    let compiled =
        compile(&source.checkpoint, &source.model, &options, "m", &Form { targets: &Target::ALL, fusion: None })
            .unwrap();
    let changed = |change: fn(&mut PlanTables)| {
        let mut plan = compiled.plan.clone();
        change(&mut plan);
        refused(&plan_bytes(&compiled.graph, &plan))
    };
    let grid = "the grid of kernel 0 is out of range";
    assert!(changed(|plan| plan.kernels[0].grid.len = 0).contains(grid));
    assert!(changed(|plan| plan.kernels[0].grid.start = plan.grid_parts.len() as u32).contains(grid));
    assert!(changed(|plan| plan.grid_parts[0].len = u32::MAX).contains(grid));
    let many = |plan: &mut PlanTables| {
        // Each part alone fits a dispatch, all together do not.
        let axes = [ExtentRow { word: u32::MAX, most: 65_535, times: 1, per: 1 }; 2];
        let part = Run::push(&mut plan.extents, &axes);
        plan.kernels[0].grid = Run::push(&mut plan.grid_parts, &[part, part]);
    };
    assert!(changed(many).contains(grid));
    let twice = changed(|plan| {
        let bindings = plan.dispatches.iter().map(|dispatch| dispatch.bindings).find(|run| run.len > 1).unwrap();
        plan.bindings[bindings.start as usize + 1] = plan.bindings[bindings.start as usize];
    });
    assert!(twice.contains("is bound to what does not exist, or twice to one thing"), "{twice}");
}

#[test]
fn a_plan_cut_anywhere_is_refused() {
    let bytes = bytes_of("oracle/tiny-a", &Target::ALL);
    let boundaries = sections(&bytes).into_iter().flat_map(|(_, offset, len)| [offset, offset + len]);
    for at in boundaries.chain([0, 1, 63, 64, 65, bytes.len() - 1]).filter(|&at| at < bytes.len()) {
        refused(&bytes[..at]);
    }
    refused(&[&bytes[..], &[0; 64]].concat());
}

#[test]
fn damage_has_its_own_diagnostics() {
    let bytes = bytes_of("oracle/tiny-a", &[]);
    let changed = |at: usize, with: &[u8]| {
        let mut damaged = bytes.clone();
        damaged[at..at + with.len()].copy_from_slice(with);
        refused(&damaged)
    };
    insta::assert_snapshot!("plan_no_plan", changed(0, b"GGUF"));
    insta::assert_snapshot!("plan_other_version", changed(8, &7u32.to_le_bytes()));
    insta::assert_snapshot!("plan_other_contract", changed(24, b"rn32-v9\0"));
    insta::assert_snapshot!("plan_flipped_bit", changed(sections(&bytes)[3].1, &[0xff]));
    insta::assert_snapshot!("plan_cut", refused(&bytes[..bytes.len() / 2]));
    insta::assert_snapshot!("plan_empty", refused(&[]));
}

/// Words of any section changed and the hashes made to fit: whatever the content, the answer is a plan or a diagnostic.
#[test]
fn a_plan_of_any_content_is_checked() {
    let bytes = bytes_of("oracle/tiny-r", &[Target::Wgsl]);
    let mut fuzzer = ds4_golden::fuzz::PlanFuzzer::new(bytes, 1);
    for _ in 0..3000 {
        fuzzer.step();
    }
    assert!(fuzzer.refused > 1000, "mutations matter: {} of 3000 refused", fuzzer.refused);
}

#[test]
fn a_plan_remembers_its_model_relative_to_itself() {
    // Tests run in this crate's folder, whose `models` and `oracle` exist.
    let path = |model: &str, plan: &str| remembered_path(Path::new(model), Path::new(plan));
    assert_eq!(path("models/kjv-9m/config.json", "a.ds4plan"), "models/kjv-9m/config.json");
    assert_eq!(path("models/kjv-9m/config.json", "models/kjv-9m/a.ds4plan"), "config.json");
    assert_eq!(path("./models/kjv-9m", "oracle/tiny-a/a.ds4plan"), "../../models/kjv-9m");
    assert_eq!(path("oracle/../models", "oracle/a.ds4plan"), "../models");
    assert_eq!(path("oracle", "oracle/a.ds4plan"), ".");
    assert_eq!(path("/models/a.gguf", "oracle/a.ds4plan"), "/models/a.gguf");
}
