//! NVIDIA's assembler and disassembler, and what machine code of a text may hold.
//!
//! This file knows nothing of its crate, so that the suite over whole models includes it as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// NVIDIA's tools.
pub struct Tools {
    assembler: PathBuf,
    disassembler: PathBuf,
}

impl Tools {
    /// Named by variables of the environment, fetched by `scripts/tools-ptx`, or on the path. Where they are missing, the
    /// test says so; in CI it fails.
    pub fn find(test: &str) -> Option<Tools> {
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
    pub fn code(&self, device: &str, module: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
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
pub fn module(texts: &[String]) -> String {
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
pub fn inexact(code: &BTreeMap<String, Vec<String>>) -> Vec<&str> {
    let flushes = |word: &str| {
        let mut parts = word.split('.');
        ["FADD", "FMUL", "FSETP", "FSET", "FMNMX", "FRND"].contains(&parts.next().unwrap_or_default())
            && parts.any(|part| part == "FTZ")
    };
    let inexact = |line: &String| line.contains("FFMA") || line.split_whitespace().any(flushes);
    code.iter().filter(|(_, lines)| lines.iter().any(inexact)).map(|(name, _)| name.as_str()).collect()
}

/// Whether a text has an operation with fma of its own.
pub fn has_sequence(text: &str) -> bool {
    text.contains("div.rn.f32") || text.contains("sqrt.rn.f32")
}

/// The text with sums for quotients and square roots.
pub fn without_sequences(text: &str) -> String {
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
