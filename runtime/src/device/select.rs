//! `--device`: which device, and whether it can be had.

use std::fmt;
use std::str::FromStr;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::backend::Backend;
use super::cache::Cache;
use super::driver::Driver;
use super::native;
use super::probe;
use super::wgpu::{Adapters, Device, WgpuBackend};

/// A device by name: `cpu`, `wgpu`, `wgpu:1`, `cuda:0`, `hip:2`. Without a number, the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// The CPU of this machine.
    #[default]
    Cpu,
    /// A device through wgpu on Vulkan.
    Wgpu(usize),
    /// A device of NVIDIA through CUDA's driver.
    Cuda(usize),
    /// A device of AMD through HIP.
    Hip(usize),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || "one of cpu, wgpu[:N], cuda[:N], hip[:N]".to_string();
        let (kind, number) = match text.split_once(':') {
            None => (text, 0),
            Some(("cpu", _)) => return Err("cpu has no number".into()),
            Some((kind, number)) => (kind, number.parse().map_err(|_| unknown())?),
        };
        match kind {
            "cpu" => Ok(Choice::Cpu),
            "wgpu" => Ok(Choice::Wgpu(number)),
            "cuda" => Ok(Choice::Cuda(number)),
            "hip" => Ok(Choice::Hip(number)),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Cpu => f.write_str("cpu"),
            Choice::Wgpu(number) => write!(f, "wgpu:{number}"),
            Choice::Cuda(number) => write!(f, "cuda:{number}"),
            Choice::Hip(number) => write!(f, "hip:{number}"),
        }
    }
}

impl Choice {
    /// The device, opened and probed; none for the CPU.
    ///
    /// # Errors
    /// The first reason that applies: its driver or compiler is missing, there is no such device, or it does not keep the
    /// contract.
    pub fn open(self, cache: &Cache) -> Result<Option<Box<dyn Backend>>, Diagnostic> {
        match self {
            Choice::Cpu => Ok(None),
            Choice::Wgpu(number) => {
                Driver::Vulkan.find().map_err(|reason| missing(self, Driver::Vulkan, &reason))?;
                Ok(Some(Box::new(open_wgpu(number, cache)?)))
            }
            Choice::Cuda(number) => Ok(Some(Box::new(native::open_cuda(number)?))),
            Choice::Hip(number) => Ok(Some(Box::new(native::open_hip(number, cache)?))),
        }
    }
}

fn open_wgpu(number: usize, cache: &Cache) -> Result<WgpuBackend, Diagnostic> {
    let device = Device::open(&Adapters::find(), number, cache)?;
    let verdict = probe::verdict(&device, cache)?;
    device.keep_pipelines();
    verdict.check(&device.about().name)?;
    Ok(WgpuBackend::new(device, number, verdict.iterations))
}

fn place(choice: Choice) -> Place {
    Place::item("the command line", format!("--device {choice}"))
}

/// The diagnostic of a driver that is not there.
pub(super) fn missing(choice: Choice, driver: Driver, reason: &str) -> Diagnostic {
    Diagnostic::new(codes::DEVICE_DRIVER, format!("there is no driver for {choice}"))
        .at(place(choice))
        .wanted(driver.libraries()[0], reason)
        .help(format!("install {}, or use --device cpu", driver.package()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed() {
        for (text, choice) in [
            ("cpu", Choice::Cpu),
            ("wgpu:0", Choice::Wgpu(0)),
            ("wgpu:12", Choice::Wgpu(12)),
            ("cuda:1", Choice::Cuda(1)),
            ("hip:0", Choice::Hip(0)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!("hip".parse(), Ok(Choice::Hip(0)));
        for text in ["", "gpu", "cpu:0", "wgpu:", "wgpu:-1", "wgpu:x", "wgpu:1:2", "CPU"] {
            assert!(text.parse::<Choice>().is_err(), "{text}");
        }
    }

    #[test]
    fn refusals_have_their_texts() {
        let reason = "cannot open shared object file: No such file or directory";
        let texts = [
            missing(Choice::Wgpu(0), Driver::Vulkan, reason),
            missing(Choice::Cuda(0), Driver::Cuda, reason),
            missing(Choice::Hip(1), Driver::Hip, reason),
        ];
        insta::assert_snapshot!(texts.map(|text| text.to_string()).join("\n\n"));
        assert!(Choice::Cpu.open(&Cache::none()).unwrap().is_none());
    }
}
