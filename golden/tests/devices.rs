//! Whole models on devices: the CPU's bits, which stand as hashes in `golden/hashes`.

#![allow(clippy::unwrap_used)]

mod vulkan;

use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_golden::models::{
    Case, FEEDS, Hashes, LENGTHS, SHORT, SHORT_FEEDS, Thorough, cases, compare_on, logits_hash, store, stored,
};
use ds4_golden::{devices, run};
use ds4_ir::diagnostic::codes;
use ds4_kernels::Target;
use vulkan::vulkan;

/// The stored hashes are those of the CPU's executor. `BLESS=1` stores what it gives now.
#[test]
fn the_stored_hashes_are_the_cpus() {
    let mut found = Hashes::new();
    for case in cases().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = case.session(&case.plan(folder.path(), &Form::default()).unwrap(), None).unwrap();
        let tokens = case.tokens().unwrap();
        for length in LENGTHS {
            let hash = logits_hash(&mut session, &tokens[..length], &[length]).unwrap();
            found.entry(case.name.clone()).or_default().insert(length.to_string(), hash);
        }
    }
    if std::env::var_os("BLESS").is_some() {
        store(&found).unwrap();
    }
    assert_eq!(found, stored().unwrap());
}

/// Fused plans have the stored hashes on the CPU, whatever device they were fused for: one step, one by one, and widths of one to
/// eight.
#[test]
fn fused_plans_have_the_bits_of_unfused_ones() {
    for case in cases().unwrap() {
        for name in Profile::names() {
            let profile = Profile::find(name).unwrap();
            let row = compare_on("cpu", &case, Some(&profile), SHORT).unwrap();
            println!("{}", row.text());
            assert_eq!(row.failed(), 0, "{}", row.text());
        }
    }
}

/// No kernel of a fused plan takes more than its profile says: memory and loop iterations of a workgroup, and buffers. Regions side by
/// side share their memory, and one by one they may fit where together they do not.
#[test]
fn fused_kernels_keep_to_their_profile() {
    for case in cases().unwrap() {
        for name in Profile::names() {
            let profile = Profile::find(name).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let plan = case.plan(folder.path(), &Form { targets: &[Target::Wgsl], fusion: Some(&profile) }).unwrap();
            let bytes = ds4_golden::aligned::Aligned::new(&std::fs::read(plan).unwrap());
            let bytes = ds4_ir::plan::PlanBytes::open(bytes, &case.name).unwrap();
            let (_, plan) = bytes.tables().unwrap();
            for row in plan.kernels {
                let (kernel, place) = (plan.str(row.name), format!("{} for {name}", case.name));
                assert!(
                    row.workgroup_bytes <= profile.workgroup_bytes,
                    "{place}: {kernel}: {} bytes",
                    row.workgroup_bytes
                );
                assert!(row.iterations <= profile.iterations, "{place}: {kernel}: {} iterations", row.iterations);
                assert!(row.arguments <= profile.arguments, "{place}: {kernel}: {} buffers", row.arguments);
            }
        }
    }
}

/// Every model through WGSL on the Vulkan device of this machine: one step, one by one, widths of 1 to 8; and for one model of
/// each kind of activations 300 tokens in one step and one by one.
#[test]
fn wgpu_has_the_cpus_bits() {
    if !vulkan("wgpu_has_the_cpus_bits") {
        return;
    }
    for case in cases().unwrap() {
        let long = ["tiny-a f32", "tiny-k q8"].contains(&case.name.as_str());
        let row = compare_on(
            "wgpu",
            &case,
            None,
            Thorough { feeds: if long { FEEDS.len() } else { SHORT_FEEDS }, replays: 1 },
        );
        let row = row.unwrap();
        println!("{}", row.text());
        assert_eq!(row.failed(), 0, "{}", row.text());
    }
}

/// The same of fused plans, each feed three times with the same launches; with 300 tokens every kernel runs. Of one model also the
/// kernels for an ordinary device.
#[test]
fn wgpu_has_the_cpus_bits_from_fused_plans() {
    if !vulkan("wgpu_has_the_cpus_bits_from_fused_plans") {
        return;
    }
    for case in cases().unwrap() {
        let long = case.name == "tiny-k q8";
        let names = if case.name == "tiny-r f32" { &["lavapipe", "generic"][..] } else { &["lavapipe"] };
        for name in names {
            let profile = Profile::find(name).unwrap();
            let how = Thorough { feeds: if long { FEEDS.len() } else { SHORT_FEEDS }, replays: 3 };
            let row = compare_on("wgpu", &case, Some(&profile), how).unwrap();
            println!("{}", row.text());
            assert_eq!(row.failed(), 0, "{}", row.text());
            assert!(row.kernels > 30 && (!long || row.idle.is_empty()), "{}: {:?}", case.name, row.idle);
        }
    }
}

/// A plan whose kernels may take more loop iterations than llvmpipe does is refused there, and not run wrongly.
#[test]
fn wgpu_refuses_loops_that_the_device_ends() {
    if !vulkan("wgpu_refuses_loops_that_the_device_ends") {
        return;
    }
    let backend = devices::open("wgpu").unwrap().unwrap();
    let most = backend.limits().iterations;
    if !backend.name().contains("llvmpipe") {
        println!("skipped: wgpu_refuses_loops_that_the_device_ends is about llvmpipe, this is {}", backend.name());
        return;
    }
    assert_eq!(most, 65_535);
    let case = cases().unwrap().into_iter().find(|case| case.name == "tiny-k q8").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bound = Profile::find("lavapipe").unwrap();
    let profile = Profile { iterations: u32::MAX, ..bound };
    let plan = case.plan(folder.path(), &Form { targets: &[Target::Wgsl], fusion: Some(&profile) }).unwrap();
    let refused = case.session(&plan, Some(backend)).unwrap_err();
    assert_eq!(refused.code, codes::DEVICE_SMALL, "{refused}");
    assert!(refused.to_string().contains("at most 65535 loop iterations of a lane"), "{refused}");
}

/// Texts with a clear gap between the two best tokens everywhere.
const TEXTS: usize = 7;

/// The trained model's texts, generated on the Vulkan device of this machine.
#[test]
fn wgpu_generates_the_greedy_texts() {
    if !vulkan("wgpu_generates_the_greedy_texts") {
        return;
    }
    let text = std::fs::read_to_string(ds4_golden::data("models/kjv-9m/expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ids = |value: &serde_json::Value| -> Vec<u32> {
        value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
    };
    let case = cases().unwrap().into_iter().find(|case| case.name == "kjv-9m-q8 f32").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plan = case.plan(folder.path(), &Form { targets: &[Target::Wgsl], fusion: None }).unwrap();
    let mut session = case.session(&plan, devices::open("wgpu").unwrap()).unwrap();
    let mut compared = 0;
    for text in expected["q8"]["greedy"].as_array().unwrap() {
        if text["smallest_gap"].as_f64().unwrap() <= 1e-3 {
            continue;
        }
        let wanted = ids(&text["greedy_ids"]);
        let found = run::greedy(&mut session, &ids(&text["prompt_ids"]), wanted.len()).unwrap();
        assert_eq!(found, wanted, "{}", text["prompt"]);
        compared += 1;
    }
    assert_eq!(compared, TEXTS);
}

/// A model on the kernel machine, which reads the texts back, refuses races and unwritten memory: the logits of the first tokens.
fn machine_has_the_cpus_bits(case: &Case, target: Target, profile: Option<&Profile>) {
    let folder = tempfile::tempdir().unwrap();
    let plan = case.plan(folder.path(), &Form { targets: &[target], fusion: profile }).unwrap();
    let tokens = &case.tokens().unwrap()[..4];
    let wanted = logits_hash(&mut case.session(&plan, None).unwrap(), tokens, &[4]).unwrap();
    let device = devices::open(&format!("machine:{}", target.name())).unwrap();
    let mut session = case.session(&plan, device).unwrap();
    let launches = session.facts().launches;
    let found = logits_hash(&mut session, tokens, &[3, 1]).unwrap();
    assert_eq!(found, wanted, "{} {}", case.name, target.name());
    println!("{} {}: equal in {launches} launches a token", case.name, target.name());
}

fn the_machine_has_the_cpus_bits(target: Target) {
    for case in cases().unwrap().iter().filter(|case| case.path.starts_with("oracle")) {
        machine_has_the_cpus_bits(case, target, None);
    }
}

#[test]
fn the_machine_has_the_cpus_bits_from_wgsl() {
    the_machine_has_the_cpus_bits(Target::Wgsl);
}

#[test]
fn the_machine_has_the_cpus_bits_from_ptx() {
    the_machine_has_the_cpus_bits(Target::Ptx);
}

#[test]
fn the_machine_has_the_cpus_bits_from_hip() {
    the_machine_has_the_cpus_bits(Target::Hip);
}

/// Fused kernels, each model through another language; with `DS4_LANGUAGES` set to a number, through so many.
#[test]
fn the_machine_has_the_bits_of_fused_kernels() {
    let profile = Profile::find("generic").unwrap();
    let languages = std::env::var("DS4_LANGUAGES").map_or(1, |count| count.parse().unwrap());
    for (i, case) in cases().unwrap().iter().enumerate() {
        for target in Target::ALL.iter().cycle().skip(i).take(languages) {
            machine_has_the_cpus_bits(case, *target, Some(&profile));
        }
    }
}

/// Every named value of steps of several widths, on a device and on the CPU.
#[test]
fn taps_of_a_device_are_the_cpus() {
    for name in ["tiny-a gguf f32", "tiny-m q8"] {
        let case = cases().unwrap().into_iter().find(|case| case.name == name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let plan = case.plan(folder.path(), &Form { targets: &[Target::Ptx], fusion: None }).unwrap();
        let tokens = case.tokens().unwrap();
        let mut sessions =
            [None, devices::open("machine:ptx").unwrap()].map(|device| case.session(&plan, device).unwrap());
        for session in &mut sessions {
            let names = session.named_values();
            session.set_taps(&names).unwrap();
        }
        let mut at = 0;
        for width in [5, 1, 3] {
            let [cpu, device] = sessions.each_mut().map(|session| {
                session.step(&tokens[at..at + width], 1).unwrap();
                session.taps()
            });
            assert!(cpu.len() > 20 && cpu.len() == device.len());
            for (wanted, found) in cpu.iter().zip(&device) {
                assert_eq!(found, wanted, "{name}, {width} columns at {at}: {}", wanted.name);
            }
            at += width;
        }
    }
}
