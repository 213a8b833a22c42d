//! The command line of `ds4-run`.
//!
//! Exit codes: 0, 1 for a diagnostic, 2 for wrong usage. Results go to standard output, all else to standard error.

mod arguments;
mod execute;
mod prompt;
mod report;

use std::io::{self, Write};
use std::process::ExitCode;

use ds4_ir::Diagnostic;
use ds4_ir::diagnostic::codes;

use arguments::Arguments;
use execute::execute;

use crate::cpu::products::Isa;
use crate::session::{OpenOptions, Session};

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::of_process() {
        Ok(arguments) => arguments,
        // Prints help to standard output and exits 0, errors to standard error and exits 2.
        Err(error) => error.exit(),
    };
    match open_and_execute(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(diagnostic) => {
            // A closed standard error leaves the exit code to tell.
            let _ = writeln!(io::stderr(), "{diagnostic}");
            ExitCode::FAILURE
        }
    }
}

fn open_and_execute(arguments: &Arguments) -> Result<(), Diagnostic> {
    let options = OpenOptions {
        model: arguments.model.clone(),
        threads: arguments.threads,
        isa: arguments.isa.as_deref().map(isa).transpose()?,
        contents: arguments.contents,
    };
    let mut session = Session::open(&arguments.plan, &options)?;
    let tokenizer = session.tokenizer()?.to_vec();
    execute(arguments, &mut session, &tokenizer, &mut io::stdout(), &mut io::stderr())
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
