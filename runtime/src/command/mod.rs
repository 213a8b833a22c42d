//! The command line of `ds4-run`.
//!
//! Exit codes: 0, 1 for a diagnostic, 2 for wrong usage. Results go to standard output, all else to standard error.

mod arguments;
mod execute;
mod prompt;
mod report;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;

use arguments::Arguments;
use execute::{execute, print};

use crate::cpu::products::Isa;
use crate::device::cache::Cache;
use crate::device::list::List;
use crate::session::{OpenOptions, Session};

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::of_process() {
        Ok(arguments) => arguments,
        // Prints help to standard output and exits 0, errors to standard error and exits 2.
        Err(error) => error.exit(),
    };
    let done = match arguments.list_devices {
        true => list_devices(arguments.json, &mut io::stdout()),
        false => open_and_execute(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(diagnostic) => {
            // A closed standard error leaves the exit code to tell.
            let _ = writeln!(io::stderr(), "{diagnostic}");
            ExitCode::FAILURE
        }
    }
}

fn list_devices(json: bool, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let list = List::of_machine(&Cache::of_user());
    print(&if json { list.json() } else { list.text() }, out)
}

fn open_and_execute(arguments: &Arguments) -> Result<(), Diagnostic> {
    let backend = arguments.device.unwrap_or_default().open(&Cache::of_user())?;
    let options = OpenOptions {
        model: arguments.model.clone(),
        threads: arguments.threads,
        isa: arguments.isa.as_deref().map(isa).transpose()?,
        contents: arguments.contents,
        verify: arguments.verify,
    };
    let on_cpu = backend.is_none();
    let plan = arguments.plan.as_deref().unwrap_or(Path::new(""));
    let mut session = Session::open_on(plan, &options, backend)?;
    for line in &session.facts().verified {
        let _ = writeln!(io::stderr(), "verified: {line}");
    }
    // A device holds the weights itself, and refuses a plan that it has no room for.
    if on_cpu && let Some(note) = larger_than_memory(&session) {
        let _ = writeln!(io::stderr(), "{note}");
    }
    let tokenizer = session.tokenizer()?.to_vec();
    execute(arguments, &mut session, &tokenizer, &mut io::stdout(), &mut io::stderr())
}

/// Says so if the weights do not fit into the machine's memory, where the system tells how much there is.
fn larger_than_memory(session: &Session) -> Option<String> {
    let (_, plan) = session.tables().ok()?;
    let weights: u64 = plan.files.iter().map(|file| file.size).sum();
    let system = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = system.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    (weights > total).then(|| {
        format!(
            "note: the weights ({:.1} GiB) do not fit into memory ({:.1} GiB); each token reads them from disk",
            gib(weights),
            gib(total)
        )
    })
}

/// The instruction-set level of a name.
fn isa(name: &str) -> Result<Isa, Diagnostic> {
    Isa::from_name(name).ok_or_else(|| {
        let available: Vec<_> = Isa::available().map(Isa::name).collect();
        let message = format!("this machine does not have the instruction set {name}");
        Diagnostic::new(codes::ISA_ABSENT, message)
            .wanted(format!("one of {}", available.join(", ")), name)
            .help("leave --isa out to take the widest")
    })
}

#[cfg(test)]
mod tests;
