//! HIP text through AMD's back end of clang, without a device: what the machine code of every kind of kernel is made of, and
//! that flags which change bits are found there.

use ds4_ir::numerics::Arith;
use ds4_ir::{Dim, Value};
use ds4_kernels::emit::hip::{CLANG_FLAGS, emit};
use ds4_kernels::emit::{StepBlock, entry_point};
use ds4_kernels::kernel::{Access, Builder, ExtentRow, Kernel, Number, Source, Type};

use crate::code::{EXACT, listing, modes, strange};
use crate::samples::samples;
use crate::tools::{run, runs, shim, there, together};

/// Devices of the kinds that plans are made for: CDNA 3, RDNA 3, RDNA 3.5, RDNA 4.
const DEVICES: [&str; 4] = ["gfx942", "gfx1100", "gfx1151", "gfx1201"];

fn clang(test: &str) -> bool {
    there(test, "clang-19", runs("clang-19")) && disassembler(test)
}

/// Whether there is a disassembler.
pub fn disassembler(test: &str) -> bool {
    there(test, "llvm-objdump-19", runs("llvm-objdump-19"))
}

/// All kernels, and one source of their texts.
pub fn sources() -> (Vec<Kernel>, String) {
    let (mut kernels, mut texts) = (Vec::new(), Vec::new());
    for sample in samples() {
        texts.extend(sample.kernels.iter().map(|k| (entry_point(k), emit(k, &sample.block).unwrap())));
        kernels.extend(sample.kernels);
    }
    let uniform = uniform();
    texts.push((entry_point(&uniform), emit(&uniform, &StepBlock::default()).unwrap()));
    kernels.push(uniform);
    (kernels, together(&texts))
}

/// A kernel in which all lanes compute the same: some devices do that in scalar code.
pub fn uniform() -> Kernel {
    let b = Builder::new("uniform", &[], 64);
    b.about("the same in all lanes");
    let group = b.group(ExtentRow::constant(3));
    let x = b.argument(Source::Tokens, Type::F32, Access::Read, "x");
    let out = b.argument(Source::Slot(Value(0)), Type::F32, Access::Write, "out");
    let (first, second): (Number, Number) = (b.load("first", x, group), b.load("second", x, b.word(7)));
    b.when(b.equal_int(b.lane(), b.word(0)), || b.store(out, group, b.add(b.mul(first, second), first)));
    b.finish()
}

/// A kernel whose coordinates are a quotient and a remainder by a number of the step, and a product and a sum of floats.
pub fn coordinates() -> Kernel {
    let b = Builder::new("coordinates", &[], 64);
    b.about("a place of a grid that the step chooses");
    let columns = ExtentRow { scalar: Some(Dim(0)), most: 8, times: 1, per: 1 };
    let (row, column) = (b.group(ExtentRow::constant(16)), b.group(columns));
    let x = b.argument(Source::Tokens, Type::F32, Access::Read, "x");
    let out = b.argument(Source::Slot(Value(0)), Type::F32, Access::Write, "out");
    let (first, second): (Number, Number) = (b.load("first", x, row), b.load("second", x, column));
    let place = b.add_int(b.mul_int(row, b.word(8)), column);
    b.when(b.equal_int(b.lane(), b.word(0)), || b.store(out, place, b.add(b.mul(first, second), first)));
    b.finish()
}

/// The code object of a source, or what clang says.
fn compiled(source: &str, device: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (input, output) = (path("kernels.hip"), path("kernels.co"));
    std::fs::write(&input, source).unwrap();
    let (device, header) = (format!("--offload-arch={device}"), shim().join("hip_clang.h"));
    let mut arguments = flags.to_vec();
    arguments.extend([&device, "-include", header.to_str().unwrap(), &input, "-o", &output]);
    match run("clang-19", &arguments) {
        (_, true) => Ok(std::fs::read(output).unwrap()),
        (text, false) => Err(text),
    }
}

/// The flags of the list without one.
fn flags_without(flag: &str) -> Vec<&'static str> {
    assert!(CLANG_FLAGS.contains(&flag), "{flag}");
    CLANG_FLAGS.iter().copied().filter(|f| *f != flag).collect()
}

fn flags_with(flag: &'static str) -> Vec<&'static str> {
    CLANG_FLAGS.iter().copied().chain([flag]).collect()
}

/// The disassembly of a code object.
fn disassembled(object: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object).unwrap();
    let (disassembly, good) = run("llvm-objdump-19", &["-d", file.path().to_str().unwrap()]);
    assert!(good, "{disassembly}");
    disassembly
}

/// What is wrong with the code of kernels `k0`, `k1`, ..., a line for each.
pub fn faults(kernels: &[Kernel], object: &[u8]) -> Vec<String> {
    let (listing, modes) = (listing(&disassembled(object)), modes(object));
    let mut faults = Vec::new();
    for (i, kernel) in kernels.iter().enumerate() {
        let symbol = format!("k{i}");
        if modes[&symbol] != EXACT {
            faults.push(format!("{}: {:?}", kernel.about, modes[&symbol]));
        }
        if let Some(instruction) = strange(kernel, &listing[&symbol]) {
            faults.push(format!("{}: {instruction}", kernel.about));
        }
    }
    faults
}

#[test]
fn no_device_gets_an_instruction_that_rounds_otherwise() {
    if !clang("no_device_gets_an_instruction_that_rounds_otherwise") {
        return;
    }
    let (kernels, source) = sources();
    assert!(kernels.len() > 100);
    for device in DEVICES {
        let object = compiled(&source, device, CLANG_FLAGS).unwrap();
        let faults = faults(&kernels, &object);
        assert!(faults.is_empty(), "{device}:\n{}", faults.join("\n"));
        println!("{device}: {} kernels", kernels.len());
    }
}

/// What turns contraction off in the text.
pub const PRAGMA: &str = "#pragma clang fp contract(off)";

/// Either of pragma and flag is enough against the compiler's own choice; without both, or with a flag that wins over the
/// pragma, the fused operations are found by name, in vector code and where it is used in scalar code.
#[test]
fn contraction_is_found() {
    if !clang("contraction_is_found") {
        return;
    }
    let (kernels, source) = sources();
    assert!(source.contains(PRAGMA));
    let without = source.replace(PRAGMA, "");
    let off = "-ffp-contract=off";
    let found =
        |source: &str, device: &str, flags: &[&str]| faults(&kernels, &compiled(source, device, flags).unwrap());
    assert_eq!(found(&source, "gfx1201", &flags_without(off)), Vec::<String>::new());
    assert_eq!(found(&without, "gfx1201", CLANG_FLAGS), Vec::<String>::new());
    let mut names = String::new();
    for device in ["gfx942", "gfx1201"] {
        for faults in
            [found(&without, device, &flags_without(off)), found(&source, device, &flags_with("-ffp-contract=fast"))]
        {
            assert!(faults.len() > 20, "{device}: {}", faults.join("\n"));
            assert!(faults.iter().all(|fault| fault.contains("fma")), "{}", faults.join("\n"));
            names += &faults.join("\n");
        }
    }
    for name in ["v_fma_f32", "v_fmac_f32", "v_dual_fmac_f32", "s_fmac_f32"] {
        assert!(names.contains(name), "{name} in\n{names}");
    }
}

/// A quotient of integers has a fused operation of its own, which makes no room for a contraction beside it.
#[test]
fn contraction_beside_a_quotient_is_found() {
    if !clang("contraction_beside_a_quotient_is_found") {
        return;
    }
    let kernels = [coordinates()];
    let text = emit(&kernels[0], &StepBlock::of(&kernels)).unwrap();
    let source = together(&[(entry_point(&kernels[0]), text)]);
    for device in DEVICES {
        let object = compiled(&source, device, CLANG_FLAGS).unwrap();
        let disassembly = disassembled(&object);
        assert!(disassembly.contains("rcp_iflag_f32") && disassembly.contains("_fma"), "{device}: {disassembly}");
        assert_eq!(faults(&kernels, &object), Vec::<String>::new(), "{device}");
        let fast = compiled(&source, device, &flags_with("-ffp-contract=fast")).unwrap();
        let faults = faults(&kernels, &fast);
        assert!(faults.len() == 1 && faults[0].contains("_fma"), "{device}: {faults:?}");
        // The instruction of the quotient is not taken for the contraction.
        let quotient = listing(&disassembly)["k0"].iter().find(|text| text.contains("_fma")).unwrap().clone();
        println!("{device}: {quotient} is the quotient's, {faults:?}");
    }
}

#[test]
fn flushed_subnormals_are_found() {
    if !clang("flushed_subnormals_are_found") {
        return;
    }
    let (kernels, source) = sources();
    let object = compiled(&source, "gfx1151", &flags_with("-fgpu-flush-denormals-to-zero")).unwrap();
    let faults = faults(&kernels, &object);
    let flushed = faults.iter().filter(|fault| fault.ends_with("Modes { rounding: 0, subnormals: 0 }"));
    assert_eq!(flushed.count(), kernels.len(), "{}", faults.join("\n"));
}

/// Division without its flag is an approximation, which is found in those kernels that divide.
#[test]
fn approximate_division_is_found() {
    if !clang("approximate_division_is_found") {
        return;
    }
    let (kernels, source) = sources();
    let flags = flags_with("-fno-hip-fp32-correctly-rounded-divide-sqrt");
    let faults = faults(&kernels, &compiled(&source, "gfx1100", &flags).unwrap());
    assert!(!faults.is_empty());
    println!("{}", faults.join("\n"));
}

#[test]
fn the_guard_stops_fast_math() {
    if !clang("the_guard_stops_fast_math") {
        return;
    }
    let (_, source) = sources();
    for flag in ["-ffast-math", "-ffinite-math-only"] {
        let text = compiled(&source, "gfx942", &flags_with(flag)).unwrap_err();
        assert!(text.contains("this kernel needs IEEE arithmetic"), "{flag}: {text}");
    }
}
