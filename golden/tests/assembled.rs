//! Every kernel of every model of this repository through the compilers of devices: the machine code holds no rounding that
//! the text does not ask for.

#![allow(clippy::unwrap_used)]

#[path = "../../kernels/tests/hip/code.rs"]
mod code;
#[path = "../../kernels/src/emit/ptx/tests/tools.rs"]
mod ptx;
#[allow(dead_code)]
#[path = "../../kernels/tests/hip/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::sync::Mutex;

use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_golden::models::{Case, cases};
use ds4_ir::plan::PlanBytes;
use ds4_kernels::Target;
use ds4_kernels::emit::hip::CLANG_FLAGS;
use ds4_kernels::read::read;

/// Models whose fused kernels are compiled, with the devices of AMD that they are compiled for. Fused kernels of one model have
/// as much text as the others of all models, and a compiler takes about a minute for them: so there are three, and each is
/// there for something. One whose experts have blocks of four bits, on the device with the widest waves; a trained one with
/// products of bytes, on a device that computes with floats in scalar code too; and the only one with workgroups whose
/// coordinates are quotients by numbers of the step, on both. The longest first, so that two threads end together.
const FUSED: [(&str, &[&str]); 3] =
    [("tiny-m q8", &["gfx942"]), ("kjv-9m-q8 q8", &["gfx1201"]), ("tiny-r f32", &["gfx942", "gfx1201"])];

/// How many of the last of [`FUSED`] go to NVIDIA's assembler, which gets each text twice: with quotients and roots, and without.
const FUSED_PTX: usize = 1;

/// The distinct texts of the kernels of models.
fn texts(target: Target, cases: &[Case], fusion: Option<&Profile>) -> Vec<String> {
    let mut texts = BTreeSet::new();
    for case in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = case.plan(folder.path(), &Form { targets: &[target], fusion }).unwrap();
        let bytes = ds4_golden::aligned::Aligned::new(&std::fs::read(file).unwrap());
        let bytes = PlanBytes::open(bytes, &case.name).unwrap();
        let (_, plan) = bytes.tables().unwrap();
        let kernels = 0..plan.kernels.len() as u32;
        texts.extend(kernels.map(|i| plan.source(ds4_ir::plan::tables::Kernel(i), 0).to_string()));
    }
    texts.into_iter().collect()
}

/// The texts of a model's fused kernels.
fn fused_texts(target: Target, name: &str) -> Vec<String> {
    let (profile, cases) = (Profile::find("generic").unwrap(), cases().unwrap());
    let case = cases.iter().find(|case| case.name == name).unwrap();
    let texts = texts(target, std::slice::from_ref(case), Some(&profile));
    assert!(texts.len() > 30, "{name}: {}", texts.len());
    texts
}

/// Does jobs, the first ones first, in two threads.
fn on_two_threads<J: Send>(jobs: impl IntoIterator<Item = J, IntoIter: Send>, job: impl Fn(J) + Sync) {
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap().next();
    let work = || std::iter::from_fn(next).for_each(&job);
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
}

/// Compiles and searches texts for NVIDIA's devices.
fn ptx_is_exact(tools: &ptx::Tools, of: &str, texts: Vec<String>) {
    let (sequences, plain): (Vec<String>, Vec<String>) = texts.into_iter().partition(|text| ptx::has_sequence(text));
    let without: Vec<String> = sequences.iter().map(|text| ptx::without_sequences(text)).collect();
    for (name, texts) in [("plain", &plain), ("without", &without), ("sequences", &sequences)] {
        if texts.is_empty() {
            continue;
        }
        let code = tools.code("sm_90", &ptx::module(texts)).unwrap();
        assert_eq!(code.len(), texts.len(), "{of}: {name}");
        let found = ptx::inexact(&code);
        assert!(found.is_empty() || name == "sequences", "{of}: inexact instructions in {found:?}");
    }
    println!("{of}: {} kernels, {} with quotients or square roots", plain.len() + sequences.len(), sequences.len());
}

/// Compiles and searches texts for a device of AMD; how many quotients of integers have the form that is known.
fn hip_is_exact(device: &str, of: &str, texts: &[String]) -> usize {
    let readings: Vec<_> = texts.iter().map(|text| (read(Target::Hip, text).unwrap().kernel, text)).collect();
    let entries: Vec<_> = readings.iter().map(|(kernel, text)| (kernel.name.clone(), text.to_string())).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (input, output) = (path("kernels.hip"), path("kernels.co"));
    std::fs::write(&input, tools::together(&entries)).unwrap();
    let header = tools::shim().join("hip_clang.h");
    let architecture = format!("--offload-arch={device}");
    let mut arguments = CLANG_FLAGS.to_vec();
    arguments.extend([&architecture, "-include", header.to_str().unwrap(), &input, "-o", &output]);
    let (text, good) = tools::run("clang-19", &arguments);
    assert!(good, "{device}: {text}");
    let (disassembly, good) = tools::run("llvm-objdump-19", &["-d", &output]);
    assert!(good, "{disassembly}");
    let (listing, modes) = (code::listing(&disassembly), code::modes(&std::fs::read(&output).unwrap()));
    let mut quotients = 0;
    for (i, (kernel, _)) in readings.iter().enumerate() {
        let instructions = &listing[&format!("k{i}")];
        assert_eq!(modes[&format!("k{i}")], code::EXACT, "{of} on {device}: {}", kernel.name);
        assert_eq!(code::strange(kernel, instructions), None, "{of} on {device}: {}", kernel.name);
        quotients += code::of_quotients(instructions).iter().flatten().filter(|&&is_one| is_one).count();
    }
    println!("{of} on {device}: {} kernels, {quotients} quotients of integers by floats", readings.len());
    quotients
}

/// Whether the tools for AMD's devices are there.
fn has_hip_tools(test: &str) -> bool {
    let found = tools::runs("clang-19") && tools::runs("llvm-objdump-19");
    tools::there(test, "clang-19 and llvm-objdump-19", found)
}

#[test]
fn ptx_of_all_models_assembles_and_nothing_is_inexact() {
    let Some(tools) = ptx::Tools::find("ptx_of_all_models_assembles_and_nothing_is_inexact") else { return };
    let texts = texts(Target::Ptx, &cases().unwrap(), None);
    assert!(texts.len() > 1000);
    ptx_is_exact(&tools, "all models", texts);
}

#[test]
fn hip_of_all_models_compiles_and_nothing_is_inexact() {
    if !has_hip_tools("hip_of_all_models_compiles_and_nothing_is_inexact") {
        return;
    }
    let texts = texts(Target::Hip, &cases().unwrap(), None);
    assert!(texts.len() > 1000);
    for device in ["gfx942", "gfx1100", "gfx1151", "gfx1201"] {
        hip_is_exact(device, "all models", &texts);
    }
}

#[test]
fn fused_ptx_assembles_and_nothing_is_inexact() {
    let Some(tools) = ptx::Tools::find("fused_ptx_assembles_and_nothing_is_inexact") else { return };
    for (name, _) in &FUSED[FUSED.len() - FUSED_PTX..] {
        ptx_is_exact(&tools, &format!("{name}, fused"), fused_texts(Target::Ptx, name));
    }
}

#[test]
fn fused_hip_compiles_and_nothing_is_inexact() {
    if !has_hip_tools("fused_hip_compiles_and_nothing_is_inexact") {
        return;
    }
    let jobs = FUSED.iter().flat_map(|(name, devices)| devices.iter().map(move |device| (name, device)));
    let quotients = Mutex::new(0);
    on_two_threads(jobs, |(name, device)| {
        let found = hip_is_exact(device, &format!("{name}, fused"), &fused_texts(Target::Hip, name));
        *quotients.lock().unwrap() += found;
    });
    assert!(quotients.into_inner().unwrap() > 0, "no kernel has the quotient that is looked for by its form");
}
