//! Devices by name, as suites and the program `ds4-golden` take them.

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::Target;
use ds4_kernels::machine::LaneOrder;
use ds4_runtime::device::backend::Backend;
use ds4_runtime::device::cache::Cache;
use ds4_runtime::device::native;
use ds4_runtime::device::select::Choice;

use crate::machine_device::MachineDevice;

/// The device with a name, opened; none for the CPU's executor. Beside the names that `ds4-run` takes there are the kernel
/// machine, `machine[:wgsl|:ptx|:hip]`, and HIP text on a device of NVIDIA, `nvrtc[:N]`.
///
/// # Errors
/// No such name, or the device cannot be had.
pub fn open(name: &str) -> Result<Option<Box<dyn Backend>>, Diagnostic> {
    if let Some(target) = name.strip_prefix("machine").map(|rest| rest.strip_prefix(':').unwrap_or("wgsl"))
        && let Some(target) = Target::named(target)
    {
        return Ok(Some(Box::new(MachineDevice::new(target, LaneOrder::Descending))));
    }
    if let Some(number) = name.strip_prefix("nvrtc").map(|rest| rest.strip_prefix(':').unwrap_or("0"))
        && let Ok(number) = number.parse()
    {
        return Ok(Some(Box::new(native::open_cuda_with_hip(number, &Cache::of_user())?)));
    }
    let choice: Choice = name.parse().map_err(|wanted: String| {
        Diagnostic::new(codes::DEVICE_ABSENT, "there is no such device")
            .at(Place::item("the command line", format!("--device {name}")))
            .wanted(format!("{wanted}, machine[:wgsl|:ptx|:hip], nvrtc[:N]"), name)
            .help("`ds4-run --list-devices` lists the devices of this machine")
    })?;
    choice.open(&Cache::of_user())
}
