//! The interfaces, and what is said of each.

use crate::device::driver::Driver;
use crate::device::select::Choice;

/// The driver interface of a maker of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Hip,
}

impl Interface {
    /// What stands in front of the number of a device: `cuda:0`.
    pub fn name(self) -> &'static str {
        match self {
            Interface::Cuda => "cuda",
            Interface::Hip => "hip",
        }
    }

    /// Its library.
    pub(super) fn driver(self) -> Driver {
        match self {
            Interface::Cuda => Driver::Cuda,
            Interface::Hip => Driver::Hip,
        }
    }

    /// The device with a number, as a user names it.
    pub(super) fn choice(self, number: usize) -> Choice {
        match self {
            Interface::Cuda => Choice::Cuda(number),
            Interface::Hip => Choice::Hip(number),
        }
    }

    /// What brings the driver, in the mouth of a message.
    pub(super) fn drivers(self) -> &'static str {
        match self {
            Interface::Cuda => "NVIDIA's driver",
            Interface::Hip => "AMD's ROCm",
        }
    }

    /// Which of the names of an entry point is this interface's. Names that only one interface has stand alone.
    pub(super) fn pick(self, names: &[&'static str]) -> &'static str {
        match (self, names) {
            (Interface::Hip, [_, name]) | (_, [name, ..]) => name,
            (_, []) => "",
        }
    }
}
