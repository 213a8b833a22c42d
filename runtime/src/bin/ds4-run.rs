//! The runtime's command line; see [`ds4_runtime::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ds4_runtime::command::run()
}
