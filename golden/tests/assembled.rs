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

use ds4_compiler::frame::Form;
use ds4_golden::models::cases;
use ds4_ir::plan::PlanBytes;
use ds4_kernels::Target;
use ds4_kernels::emit::hip::CLANG_FLAGS;
use ds4_kernels::read::read;

/// The distinct texts of all models.
fn texts(target: Target) -> Vec<String> {
    let mut texts = BTreeSet::new();
    for case in cases().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let file = case.plan(folder.path(), &Form { targets: &[target], fusion: None }).unwrap();
        let bytes = ds4_golden::aligned::Aligned::new(&std::fs::read(file).unwrap());
        let bytes = PlanBytes::open(bytes, &case.name).unwrap();
        let (_, plan) = bytes.tables().unwrap();
        let kernels = 0..plan.kernels.len() as u32;
        texts.extend(kernels.map(|i| plan.source(ds4_ir::plan::tables::Kernel(i), 0).to_string()));
    }
    texts.into_iter().collect()
}

#[test]
fn ptx_of_all_models_assembles_and_nothing_is_inexact() {
    let Some(tools) = ptx::Tools::find("ptx_of_all_models_assembles_and_nothing_is_inexact") else { return };
    let texts = texts(Target::Ptx);
    let (sequences, plain): (Vec<String>, Vec<String>) = texts.into_iter().partition(|text| ptx::has_sequence(text));
    let without: Vec<String> = sequences.iter().map(|text| ptx::without_sequences(text)).collect();
    for (name, texts) in [("plain", &plain), ("without", &without), ("sequences", &sequences)] {
        let code = tools.code("sm_90", &ptx::module(texts)).unwrap();
        assert_eq!(code.len(), texts.len(), "{name}");
        let found = ptx::inexact(&code);
        assert!(found.is_empty() || name == "sequences", "inexact instructions in {found:?}");
    }
    println!("{} kernels, {} with quotients or square roots", plain.len() + sequences.len(), sequences.len());
    assert!(plain.len() > 300);
}

#[test]
fn hip_of_all_models_compiles_and_nothing_is_inexact() {
    let test = "hip_of_all_models_compiles_and_nothing_is_inexact";
    let found = tools::runs("clang-19") && tools::runs("llvm-objdump-19");
    if !tools::there(test, "clang-19 and llvm-objdump-19", found) {
        return;
    }
    let readings: Vec<_> =
        texts(Target::Hip).into_iter().map(|text| (read(Target::Hip, &text).unwrap().kernel, text)).collect();
    let entries: Vec<_> = readings.iter().map(|(kernel, text)| (kernel.name.clone(), text.clone())).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (input, output) = (path("kernels.hip"), path("kernels.co"));
    std::fs::write(&input, tools::together(&entries)).unwrap();
    let header = tools::shim().join("hip_clang.h");
    for device in ["gfx942", "gfx1100", "gfx1151", "gfx1201"] {
        let device = format!("--offload-arch={device}");
        let mut arguments = CLANG_FLAGS.to_vec();
        arguments.extend([&device, "-include", header.to_str().unwrap(), &input, "-o", &output]);
        let (text, good) = tools::run("clang-19", &arguments);
        assert!(good, "{device}: {text}");
        let (disassembly, good) = tools::run("llvm-objdump-19", &["-d", &output]);
        assert!(good, "{disassembly}");
        let (listing, modes) = (code::listing(&disassembly), code::modes(&std::fs::read(&output).unwrap()));
        for (i, (kernel, _)) in readings.iter().enumerate() {
            let symbol = format!("k{i}");
            assert_eq!(modes[&symbol], code::EXACT, "{device}: {}", kernel.name);
            assert_eq!(code::strange(kernel, &listing[&symbol]), None, "{device}: {}", kernel.name);
        }
        println!("{device}: {} kernels", readings.len());
    }
}
