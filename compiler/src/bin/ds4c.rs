//! The compiler's command line; see [`ds4_compiler::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_compiler::command::run()
}
