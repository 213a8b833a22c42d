//! Outside tools: compilers, disassemblers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a tool is there. A test that lacks one says so and is skipped; where `CI` is `true` it fails.
pub fn there(test: &str, tool: &str, found: bool) -> bool {
    if !found {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{test} needs {tool}: run scripts/tools-hip");
        println!("skipped: {test} needs {tool}, which scripts/tools-hip installs");
    }
    found
}

/// Whether a program can be run.
pub fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The folder of the headers behind which text compiles.
pub fn shim() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/shim")
}

/// A file of NVIDIA's that `scripts/tools-hip` fetches.
pub fn fetched(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/hip/nvidia/cu13").join(file)
}

/// Runs a program; what it writes to both outputs, and whether it succeeded.
pub fn run(program: &str, arguments: &[&str]) -> (String, bool) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

/// One source of many texts, whose entry points are renamed to `k0`, `k1`, ...: pairs of entry point and text.
pub fn together(texts: &[(String, String)]) -> String {
    let one = |(i, (entry, text)): (usize, &(String, String))| {
        format!("namespace n{i} {{\n#define {entry} k{i}\n{text}\n#undef {entry}\n}}\n")
    };
    texts.iter().enumerate().map(one).collect()
}
