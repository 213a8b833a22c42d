//! Solvers as processes.

use std::path::PathBuf;
use std::process::Command;

use super::Claim;

/// The solvers that `scripts/tools-smt` fetches. The last one has no equality of uninterpreted sorts.
pub const SOLVERS: [&str; 3] = ["z3", "cvc5", "bitwuzla"];

/// Where the solvers are; nothing, with a line on standard output, if they are not there. Under `CI=true` their absence is a failure.
///
/// # Panics
/// They are missing and `CI` is `true`.
pub fn find(test: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/tools/smt");
    if folder.join("installed").is_file() {
        return Some(folder);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: the solvers are missing; run scripts/tools-smt");
    println!("skipped: {test}: the solvers are missing; scripts/tools-smt fetches them");
    None
}

/// What a solver says to each claim, with the seconds that it took, and its version.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Version of the solver.
    pub version: String,
    /// `sat`, `unsat`, `unknown` or `error:...`, and seconds.
    pub answers: Vec<(String, f64)>,
}

/// Asks a solver about claims, one after the other in one process.
///
/// # Errors
/// The process does not run or says something else.
pub fn ask(tools: &PathBuf, solver: &str, seconds: f64, claims: &[&Claim]) -> Result<Answers, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", tools).arg(crate::data("proofs/solve.py")).args([solver, &seconds.to_string()]);
    for (place, claim) in claims.iter().enumerate() {
        let file = folder.path().join(format!("{place}.smt2"));
        std::fs::write(&file, &claim.text).map_err(|error| error.to_string())?;
        command.arg(file);
    }
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Solvers print warnings of their own.
    let mut lines = text.lines().filter(|line| !line.starts_with('['));
    let version = lines.next().ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())?.to_string();
    let answer = |line: &str| {
        let (answer, seconds) = line.split_once(' ').ok_or_else(|| format!("{solver} said `{line}`"))?;
        Ok((answer.to_string(), seconds.parse::<f64>().map_err(|_| format!("{solver} said `{line}`"))?))
    };
    let answers = lines.map(answer).collect::<Result<Vec<_>, String>>()?;
    match answers.len() == claims.len() {
        true => Ok(Answers { version, answers }),
        false => Err(format!("{solver} answered {} of {} claims", answers.len(), claims.len())),
    }
}
