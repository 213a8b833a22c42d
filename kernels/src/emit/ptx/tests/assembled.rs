//! Texts through NVIDIA's assembler and disassembler: they assemble, and no product and sum are contracted.
//!
//! Quotients and square roots are sequences with fma of their own. So every text is assembled once more with each of them
//! exchanged for a sum of the same operands, and there no fma may be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::read::ptx::tests::every;
use crate::tests::corpus;

use super::{StepBlock, emit, entry_point};

/// The least device, that of servers, the newest.
const DEVICES: [&str; 3] = ["sm_75", "sm_90", "sm_121"];

/// NVIDIA's tools.
struct Tools {
    assembler: PathBuf,
    disassembler: PathBuf,
}

impl Tools {
    /// Named by variables of the environment, fetched by `scripts/tools-ptx`, or on the path. Where they are missing, the
    /// test says so; in CI it fails.
    fn find(test: &str) -> Option<Tools> {
        let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/ptx/nvidia/cu13/bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = [fetched].into_iter().chain(std::env::split_paths(&path)).collect();
        let find = |variable: &str, name: &str| match std::env::var_os(variable) {
            Some(file) => Some(PathBuf::from(file)),
            None => folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()),
        };
        let found = find("DS4_PTXAS", "ptxas").zip(find("DS4_NVDISASM", "nvdisasm"));
        if found.is_none() {
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "{test} needs ptxas and nvdisasm: run scripts/tools-ptx"
            );
            println!("skipped: {test}: no ptxas and nvdisasm; scripts/tools-ptx fetches them");
        }
        found.map(|(assembler, disassembler)| Tools { assembler, disassembler })
    }

    /// The machine code of a module, as lines for each entry point; or what the assembler says.
    fn code(&self, device: &str, module: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let [source, binary] = ["kernel.ptx", "kernel.cubin"].map(|name| folder.path().join(name));
        std::fs::write(&source, module).unwrap();
        let [source, binary] = [source, binary].map(|path| path.display().to_string());
        run(&self.assembler, &[&format!("-arch={device}"), &source, "-o", &binary])?;
        let listing = run(&self.disassembler, &["-c", &binary])?;
        Ok(entries(&listing))
    }
}

fn run(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr) + &text(&output.stdout)) }
}

/// The instructions of each section of code.
fn entries(listing: &str) -> BTreeMap<String, Vec<String>> {
    let mut entries: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in listing.lines() {
        if let Some(section) = line.strip_prefix(".text.") {
            name = section.trim_end_matches(':').into();
        }
        if line.trim_start().starts_with("/*") {
            entries.entry(name.clone()).or_default().push(line.into());
        }
    }
    entries
}

/// One module of many texts: the directives of the first, and entry points with other names.
fn module(texts: &[String]) -> String {
    let parts = texts.iter().enumerate().map(|(i, text)| {
        let at = text.find(".visible").unwrap();
        let directives = if i == 0 { &text[..at] } else { "" };
        let (name, rest) = text[at..].strip_prefix(".visible .entry ").unwrap().split_once('(').unwrap();
        format!("{directives}.visible .entry k{i}_{name}({rest}")
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// The entry points with an instruction that no rounded operation becomes: a contraction, or one that flushes subnormals.
/// Quotients of integers are made with conversions that flush what cannot be subnormal.
fn inexact(code: &BTreeMap<String, Vec<String>>) -> Vec<&str> {
    let flushes = |word: &str| {
        let mut parts = word.split('.');
        ["FADD", "FMUL", "FSETP", "FSET", "FMNMX", "FRND"].contains(&parts.next().unwrap_or_default())
            && parts.any(|part| part == "FTZ")
    };
    let inexact = |line: &String| line.contains("FFMA") || line.split_whitespace().any(flushes);
    code.iter().filter(|(_, lines)| lines.iter().any(inexact)).map(|(name, _)| name.as_str()).collect()
}

/// All texts.
fn texts() -> Vec<String> {
    let every = every::kernel();
    let block = StepBlock::of([&every]);
    let all = corpus::kernels().into_iter().chain([(every, block)]);
    all.map(|(kernel, block)| emit(&kernel, &block).unwrap()).collect()
}

/// Whether a text has an operation with fma of its own.
fn has_sequence(text: &str) -> bool {
    text.contains("div.rn.f32") || text.contains("sqrt.rn.f32")
}

/// The text with sums for quotients and square roots.
fn without_sequences(text: &str) -> String {
    let changed = |line: &str| match line.trim_start().split_once(' ') {
        Some(("div.rn.f32", operands)) => format!("    add.rn.f32 {operands}\n"),
        Some(("sqrt.rn.f32", operands)) => {
            let (operands, remark) = operands.split_once(';').unwrap();
            format!("    add.rn.f32 {operands}, {}; {remark}\n", operands.split_once(", ").unwrap().1)
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(changed).collect()
}

#[test]
fn every_kind_of_kernel_assembles_and_nothing_is_inexact() {
    let Some(tools) = Tools::find("every_kind_of_kernel_assembles_and_nothing_is_contracted") else { return };
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
    let quotient = super::kernel(|b| b.div(loaded(b), b.from_bits(b.add_int(b.lane(), b.word(7)))));
    let root = super::kernel(|b| b.sqrt(loaded(b)));
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
    let kernel = super::kernel(|b| {
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
