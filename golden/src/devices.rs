//! Devices by name, as suites and the program `ds4-golden` take them.

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use ds4_runtime::device::backend::Backend;
use ds4_runtime::device::cache::Cache;
use ds4_runtime::device::select::Choice;

/// The device with a name, opened; none for the CPU's executor.
///
/// # Errors
/// No such name, or the device cannot be had.
pub fn open(name: &str) -> Result<Option<Box<dyn Backend>>, Diagnostic> {
    let choice: Choice = name.parse().map_err(|wanted: String| {
        Diagnostic::new(codes::DEVICE_ABSENT, "there is no such device")
            .at(Place::item("the command line", format!("--device {name}")))
            .wanted(wanted, name)
            .help("`ds4-run --list-devices` lists the devices of this machine")
    })?;
    choice.open(&Cache::of_user())
}
