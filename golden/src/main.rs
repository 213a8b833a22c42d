//! The suites' command line; see [`ds4_golden::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_golden::command::run()
}
