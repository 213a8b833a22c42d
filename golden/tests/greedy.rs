//! Plans that give the most probable token alone: the arg-max of the logits that the other plan gives, and no logit in memory.

#![allow(clippy::unwrap_used)]

mod vulkan;

use std::path::Path;

use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_compiler::lower::Head;
use ds4_golden::devices;
use ds4_golden::models::{Case, cases};
use ds4_golden::run::Source;
use ds4_ir::diagnostic::codes;
use ds4_ir::plan::SlotRow;
use ds4_ir::{Dim, DimOp};
use ds4_kernels::Target;
use ds4_runtime::sample::arg_max;
use ds4_runtime::session::{OpenOptions, Session};
use vulkan::vulkan;

/// Tokens that are fed.
const TOKENS: usize = 40;
/// Widths of steps, over and over.
const WIDTHS: [&[usize]; 3] = [&[TOKENS], &[1], &[1, 2, 3, 4, 5, 6, 7, 8]];

/// The model's plan with a head.
fn session(source: &Source, case: Option<&Case>, folder: &Path, head: Head, form: &Form<'_>, device: &str) -> Session {
    let options = source.options(|o| {
        o.activations = case.map(|case| case.activations);
        (o.context, o.prefill, o.head) = (o.context.min(512), TOKENS as u32, head);
    });
    let plan = source.plan_for(folder, &options, form).unwrap();
    Session::open_on(&plan, &OpenOptions::default(), devices::open(device).unwrap()).unwrap()
}

/// The most probable token behind each of these, from logits or from the plan alone.
fn tokens(session: &mut Session, fed: &[u32], widths: &[usize]) -> Vec<u32> {
    session.reset();
    let vocabulary = session.facts().vocabulary;
    let (mut found, mut at) = (Vec::new(), 0);
    for &width in widths.iter().cycle() {
        let width = width.min(fed.len() - at);
        if width == 0 {
            return found;
        }
        session.step(&fed[at..at + width], width).unwrap();
        match session.facts().greedy {
            true => assert!(session.logits().is_empty() && session.greedy().len() == width),
            false => assert!(session.greedy().is_empty() && session.logits().len() == width * vocabulary),
        }
        found.extend_from_slice(session.greedy());
        found.extend(session.logits().chunks(vocabulary).map(|row| arg_max(row).unwrap()));
        at += width;
    }
    found
}

/// The entry points that have memory for a logit of every token.
fn storing(session: &Session) -> Vec<String> {
    let (graph, plan) = session.tables().unwrap();
    let vocabulary = session.facts().vocabulary as u32;
    let row = [DimOp::Outputs, DimOp::Const(vocabulary)].map(Some);
    let op = |d: &Dim| DimOp::of(graph.dims[d.0 as usize]);
    let is_row = |slot: &SlotRow| graph.dims_of(slot.value).iter().map(op).eq(row);
    let entries = plan.entries.iter().filter(|entry| entry.slots.of(plan.slots).iter().any(is_row));
    entries.map(|entry| plan.str(entry.name).to_string()).collect()
}

/// Every model on the CPU, unfused and fused for each profile; no fused plan of a trained model has memory for logits.
#[test]
fn greedy_plans_give_the_arg_max_of_the_logits() {
    for case in cases().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::open(case.path).unwrap();
        let fed = &case.tokens().unwrap()[..TOKENS];
        let open = |head, form: &Form<'_>| session(&source, Some(&case), folder.path(), head, form, "cpu");
        let wanted = tokens(&mut open(Head::Logits, &Form::default()), fed, &[TOKENS]);
        assert_eq!(wanted.len(), TOKENS);
        for name in [None].into_iter().chain(Profile::names().map(Some)) {
            let profile = name.map(|name| Profile::find(name).unwrap());
            let mut session = open(Head::Greedy, &Form { targets: &[], fusion: profile.as_ref() });
            for widths in WIDTHS {
                assert_eq!(tokens(&mut session, fed, widths), wanted, "{} {name:?} {widths:?}", case.name);
            }
            let storing = storing(&session);
            match name {
                None => assert_eq!(storing, ["decode1", "decode", "prefill"], "{}", case.name),
                // The random models have some hundred tokens; there it may cost less to store.
                Some(_) if case.path.starts_with("models") => assert_eq!(storing, [""; 0], "{} {name:?}", case.name),
                Some(_) => println!("{} {name:?}: {storing:?} store logits", case.name),
            }
        }
    }
}

/// A copy of a small checkpoint with another output head: `change` gets its bytes and those of a row.
fn with_head(folder: &Path, change: impl Fn(&mut [u8], usize)) -> Source {
    let original = ds4_golden::data("oracle/tiny-a/model.f16.gguf");
    let tensors = ds4_compiler::read::open(&original).unwrap().tensors;
    let head = tensors.find("output.weight").unwrap().0 as usize;
    let (start, len) = (tensors.offset[head] as usize, tensors.bytes[head] as usize);
    let rows = tensors.shape[head].of(&tensors.dims)[0] as usize;
    let mut bytes = std::fs::read(&original).unwrap();
    change(&mut bytes[start..start + len], len / rows);
    let path = folder.join("changed.gguf");
    std::fs::write(&path, bytes).unwrap();
    Source::open(path.to_str().unwrap()).unwrap()
}

/// Of equal logits the first token is taken, whether they are in one group or in several.
#[test]
fn the_first_of_equal_logits_is_taken() {
    let profile = Profile::find("generic").unwrap();
    let fed: Vec<u32> = (0..TOKENS as u32).map(|i| i * 7 % 64).collect();
    for period in [5, 70] {
        let folder = tempfile::tempdir().unwrap();
        let source = with_head(folder.path(), |head, row| {
            let (first, others) = head.split_at_mut(period * row);
            assert!(others.len() > first.len(), "tokens repeat");
            others.chunks_mut(first.len()).for_each(|part| part.copy_from_slice(&first[..part.len()]));
        });
        for fusion in [None, Some(&profile)] {
            let form = Form { targets: &[], fusion };
            let mut session = session(&source, None, folder.path(), Head::Greedy, &form, "cpu");
            let found = tokens(&mut session, &fed, &[TOKENS]);
            assert!(found.iter().all(|&token| (token as usize) < period), "period {period}: {found:?}");
            assert!(found.iter().any(|&token| token > 0));
        }
    }
}

/// A logit that is no number is told, although no logit is stored.
#[test]
fn a_nan_among_the_logits_is_told() {
    let profile = Profile::find("generic").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = with_head(folder.path(), |head, row| head[3 * row..][..2].copy_from_slice(&0x7e00u16.to_le_bytes()));
    for fusion in [None, Some(&profile)] {
        let form = Form { targets: &[], fusion };
        let mut session = session(&source, None, folder.path(), Head::Greedy, &form, "cpu");
        let fault = session.step(&[1, 2, 3], 1).unwrap_err();
        assert_eq!((fault.code, session.position()), (codes::LOGITS_NAN, 0), "{fault}");
        assert!(session.greedy().is_empty());
    }
}

/// Fused texts of each language on the kernel machine, and the greedy texts of the trained model through WGSL on the Vulkan device.
#[test]
fn devices_give_the_tokens_without_logits() {
    let profile = Profile::find("generic").unwrap();
    let all = cases().unwrap();
    let case = all.iter().find(|case| case.name == "tiny-r f32").unwrap();
    let source = Source::open(case.path).unwrap();
    let fed = &case.tokens().unwrap()[..4];
    let folder = tempfile::tempdir().unwrap();
    let open = |head, form: &Form<'_>, device: &str| session(&source, Some(case), folder.path(), head, form, device);
    let wanted = tokens(&mut open(Head::Logits, &Form::default(), "cpu"), fed, &[4]);
    for target in Target::ALL {
        let form = Form { targets: &[target], fusion: Some(&profile) };
        let mut session = open(Head::Greedy, &form, &format!("machine:{}", target.name()));
        assert_eq!(tokens(&mut session, fed, &[3, 1]), wanted, "{}", target.name());
    }
    if !vulkan("devices_give_the_tokens_without_logits") {
        return;
    }
    let profile = Profile::find("lavapipe").unwrap();
    let case = all.iter().find(|case| case.name == "kjv-9m-q8 q8").unwrap();
    let source = Source::open(case.path).unwrap();
    let fed = &case.tokens().unwrap()[..TOKENS];
    let open = |head, form: &Form<'_>, device: &str| session(&source, Some(case), folder.path(), head, form, device);
    let wanted = tokens(&mut open(Head::Logits, &Form::default(), "cpu"), fed, &[TOKENS]);
    let form = Form { targets: &[Target::Wgsl], fusion: Some(&profile) };
    let mut session = open(Head::Greedy, &form, "wgpu");
    for widths in WIDTHS {
        assert_eq!(tokens(&mut session, fed, widths), wanted, "{widths:?}");
    }
}
