//! Texts through NVIDIA's assembler and disassembler: they assemble, and no product and sum are contracted.
//!
//! Quotients and square roots are sequences with fma of their own. So every text is assembled once more with each of them
//! exchanged for a sum of the same operands, and there no fma may be.

use crate::read::ptx::tests::every;
use crate::tests::corpus;
use crate::tests::shown::stores;

use super::tools::{Tools, has_sequence, inexact, module, without_sequences};
use super::{StepBlock, emit, entry_point};

/// The least device, that of servers, the newest.
const DEVICES: [&str; 3] = ["sm_75", "sm_90", "sm_121"];

/// All texts.
fn texts() -> Vec<String> {
    let every = every::kernel();
    let block = StepBlock::of([&every]);
    let all = corpus::kernels().into_iter().chain([(every, block)]);
    all.map(|(kernel, block)| emit(&kernel, &block).unwrap()).collect()
}

#[test]
fn every_kind_of_kernel_assembles_and_nothing_is_inexact() {
    let Some(tools) = Tools::find("every_kind_of_kernel_assembles_and_nothing_is_inexact") else { return };
    let (sequences, plain): (Vec<String>, Vec<String>) = texts().into_iter().partition(|text| has_sequence(text));
    let without: Vec<String> = sequences.iter().map(|text| without_sequences(text)).collect();
    assert!(sequences.len() >= 5 && plain.len() >= 50, "{} and {}", sequences.len(), plain.len());
    for device in DEVICES {
        for (name, texts) in [("plain", &plain), ("without", &without), ("sequences", &sequences)] {
            let code = tools.code(device, &module(texts)).unwrap_or_else(|error| panic!("{device}: {error}"));
            assert_eq!(code.len(), texts.len(), "{device}");
            let found = inexact(&code);
            assert!(found.is_empty() || name == "sequences", "{device}: inexact instructions in {found:?}");
        }
        println!("{device}: {} kernels, {} with quotients or square roots", plain.len(), sequences.len());
    }
}

/// The fma of a quotient and of a square root are theirs: a kernel with nothing else has them.
#[test]
fn quotients_and_square_roots_have_fma_of_their_own() {
    let Some(tools) = Tools::find("quotients_and_square_roots_have_fma_of_their_own") else { return };
    use ds4_ir::numerics::Arith;
    let loaded = |b: &crate::kernel::Builder| b.from_bits(b.lane());
    let quotient = stores(|b| b.div(loaded(b), b.from_bits(b.add_int(b.lane(), b.word(7)))));
    let root = stores(|b| b.sqrt(loaded(b)));
    for kernel in [quotient, root] {
        let text = emit(&kernel, &StepBlock::default()).unwrap();
        for device in DEVICES {
            let code = tools.code(device, &text).unwrap();
            assert_eq!(inexact(&code), [entry_point(&kernel)], "{device}\n{text}");
            let plain = tools.code(device, &without_sequences(&text)).unwrap();
            assert!(inexact(&plain).is_empty(), "{device}");
        }
    }
}

/// Without `.rn` the assembler contracts, and the check names the kernel.
#[test]
fn a_missing_rounding_is_found_in_the_machine_code() {
    let Some(tools) = Tools::find("a_missing_rounding_is_found_in_the_machine_code") else { return };
    use ds4_ir::numerics::Arith;
    let kernel = stores(|b| {
        let [x, y, z] = [3, 5, 7].map(|n| b.from_bits(b.mul_int(b.lane(), b.word(n))));
        b.add(b.mul(x, y), z)
    });
    let text = emit(&kernel, &StepBlock::default()).unwrap();
    for device in DEVICES {
        let found = |text: &str| inexact(&tools.code(device, text).unwrap()).join(" ");
        assert_eq!(found(&text), "", "{device}");
        let one = text.replace("mul.rn.f32", "mul.f32");
        assert_eq!(found(&one), "", "{device}: one of both has its rounding");
        assert_eq!(found(&one.replace("add.rn.f32", "add.f32")), entry_point(&kernel), "{device}");
        assert_eq!(found(&text.replace("add.rn.f32", "add.rn.ftz.f32")), entry_point(&kernel), "{device}");
    }
}

/// The assembler's complaint is the test's.
#[test]
fn a_text_that_does_not_assemble_is_refused() {
    let Some(tools) = Tools::find("a_text_that_does_not_assemble_is_refused") else { return };
    let kernel = every::kernel();
    let text = emit(&kernel, &StepBlock::of([&kernel])).unwrap();
    let error = tools.code("sm_90", &text.replacen("add.rn.f32 %f1,", "add.rn.f32 %c1,", 1)).unwrap_err();
    assert!(error.contains("instruction 'add'"), "{error}");
}
