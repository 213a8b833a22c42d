//! The devices of this machine, and one that is opened.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use ds4_ir::Diagnostic;
use ds4_kernels::kernel::MOST_GROUPS;

use super::api::{Api, Context, NON_BLOCKING, Ordinal, Own, Properties, Status, Stream, attribute};
use super::fault::{self, Failure};
use super::interface::Interface;

/// The least compute capability: that of the texts' target.
const CAPABILITY: [u32; 2] = [7, 5];
/// The first driver of CUDA that takes the texts' version of PTX.
const DRIVER: [u32; 2] = [10, 0];
/// The first versions of HIP whose compiler knows architectures that begin so; an older one crashes over them.
const KNOWN_SINCE: [(&str, [u32; 2]); 2] = [("gfx11", [5, 3]), ("gfx12", [6, 2])];
/// Bytes of a device's name.
const NAME: usize = 256;
/// Words of room for the properties of a device of HIP, several times what they take.
const PROPERTIES: usize = 1024;

/// What a device executes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Architecture {
    /// Compute capability, major and minor.
    Capability([u32; 2]),
    /// AMD's name of it with its features: `gfx90a:sramecc+:xnack-`.
    Target(String),
    /// The driver does not say.
    Unknown,
}

impl fmt::Display for Architecture {
    /// The name that compilers take.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Architecture::Capability([major, minor]) => write!(f, "sm_{major}{minor}"),
            Architecture::Target(name) => f.write_str(name),
            Architecture::Unknown => f.write_str("unknown"),
        }
    }
}

/// What a device says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub bytes: u64,
    /// What it executes.
    pub architecture: Architecture,
    /// The version of CUDA or HIP that the driver speaks, major and minor.
    pub driver: [u32; 2],
    /// Most workgroups along the two axes of a grid.
    pub grid: [u32; 2],
}

/// The devices of this machine, in the order of their numbers, at least one; or why there are none.
pub fn devices(interface: Interface) -> Result<Vec<About>, String> {
    let none = || format!("{} has no device", interface.drivers());
    match all(&Api::load(interface)?) {
        Err(Failure { status: NO_DEVICE | NOT_A_DEVICE, .. }) => Err(none()),
        Err(failure) => Err(failure.words),
        Ok(all) if all.is_empty() => Err(none()),
        Ok(all) => Ok(all),
    }
}

/// What the first call says where there is no device; AMD's says the second.
const NO_DEVICE: Status = 100;
const NOT_A_DEVICE: Status = 101;

/// What all devices of a driver are.
pub(super) fn all(api: &Api) -> Result<Vec<About>, Failure> {
    ordinals(api)?.into_iter().map(|ordinal| About::of(api, ordinal)).collect()
}

/// The driver's numbers of all devices.
fn ordinals(api: &Api) -> Result<Vec<Ordinal>, Failure> {
    // SAFETY: the first call of the driver; its flags are 0, as they must be.
    api.done(unsafe { (api.init)(0) })?;
    // SAFETY: the count lives through the call.
    let count = ask(api, |count| unsafe { (api.device_count)(count) })?;
    // SAFETY: the number lives through the call, and the index is below the count.
    (0..count).map(|index| ask(api, |ordinal| unsafe { (api.device)(ordinal, index) })).collect()
}

/// Calls an entry point that writes a number.
fn ask(api: &Api, call: impl FnOnce(*mut c_int) -> Status) -> Result<c_int, Failure> {
    let mut number = 0;
    api.done(call(&mut number))?;
    Ok(number)
}

impl About {
    fn of(api: &Api, ordinal: Ordinal) -> Result<About, Failure> {
        let mut name = [0 as c_char; NAME];
        // SAFETY: the name has the length that is said, and the driver ends it with NUL within.
        api.done(unsafe { (api.device_name)(name.as_mut_ptr(), NAME as c_int, ordinal) })?;
        name[NAME - 1] = 0;
        // SAFETY: the array ends with NUL.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let mut bytes = 0;
        // SAFETY: the number lives through the call.
        api.done(unsafe { (api.device_bytes)(&mut bytes, ordinal) })?;
        // SAFETY: the number lives through the call.
        let version = ask(api, |version| unsafe { (api.driver_version)(version) })? as u32;
        let bytes = bytes as u64;
        match &api.own {
            Own::Cuda(cuda) => {
                // SAFETY: the number lives through the call.
                let number = |which| ask(api, |number| unsafe { (cuda.device_attribute)(number, which, ordinal) });
                let pair = |first, second| Ok::<_, Failure>([number(first)? as u32, number(second)? as u32]);
                let capability = pair(attribute::CAPABILITY_MAJOR, attribute::CAPABILITY_MINOR)?;
                let architecture = Architecture::Capability(capability);
                let grid = pair(attribute::GRID_WIDTH, attribute::GRID_HEIGHT)?;
                Ok(About { name, bytes, architecture, driver: [version / 1000, version % 1000 / 10], grid })
            }
            Own::Hip(_, properties) => {
                let architecture = hip_architecture(api, *properties, ordinal)?;
                let driver = [version / 10_000_000, version / 100_000 % 100];
                // The numbers of HIP's attributes differ between its versions. Its devices take more than kernels ask for.
                Ok(About { name, bytes, architecture, driver, grid: [MOST_GROUPS; 2] })
            }
        }
    }

    /// An error if kernels cannot run here.
    fn check(&self, interface: Interface, device: &str) -> Result<(), Diagnostic> {
        let versions = match &self.architecture {
            Architecture::Capability(found) => {
                vec![("a driver of CUDA", DRIVER, self.driver), ("compute capability", CAPABILITY, *found)]
            }
            Architecture::Target(name) => {
                let known = KNOWN_SINCE.iter().filter(|(start, _)| name.starts_with(start));
                known.map(|&(_, version)| ("HIP", version, self.driver)).collect()
            }
            Architecture::Unknown => return Err(fault::unknown_architecture(interface, device)),
        };
        match versions.into_iter().find(|(_, wanted, found)| found < wanted) {
            Some((what, wanted, found)) => Err(fault::too_old(interface, device, what, wanted, found)),
            None => Ok(()),
        }
    }
}

fn hip_architecture(api: &Api, properties: Properties, ordinal: Ordinal) -> Result<Architecture, Failure> {
    let mut room = [0u64; PROPERTIES];
    // SAFETY: the room is larger than the properties of any version, and aligned as they are.
    api.done(unsafe { properties(room.as_mut_ptr().cast(), ordinal) })?;
    Ok(named_in(bytemuck::cast_slice(&room)).map_or(Architecture::Unknown, Architecture::Target))
}

/// The name of an architecture in the properties of a device of HIP. Where it stands depends on the version; it is the only
/// string in them that begins so, behind the marketing name in front.
fn named_in(properties: &[u8]) -> Option<String> {
    let behind = properties.get(NAME..)?;
    let start = behind.windows(3).position(|three| three == b"gfx")?;
    let name: Vec<u8> = behind[start..].iter().copied().take_while(|&b| b != 0).collect();
    let plain = name.iter().all(|&b| b.is_ascii_alphanumeric() || b":+-".contains(&b));
    String::from_utf8(name).ok().filter(|_| plain)
}

/// An opened device: what the driver needs to be told of it, and one stream.
pub(super) struct Device {
    pub(super) api: Api,
    pub(super) about: About,
    /// `cuda:0 NVIDIA H200`
    pub(super) name: String,
    ordinal: Ordinal,
    /// Of CUDA.
    context: Context,
    pub(super) stream: Stream,
}

impl Device {
    /// The device with a number.
    pub(super) fn open(api: Api, number: usize) -> Result<Device, Diagnostic> {
        let interface = api.interface;
        let name = format!("{}:{number}", interface.name());
        let failed = |failure: Failure| fault::failed(interface, &name, "the driver", &failure);
        let ordinals = match ordinals(&api) {
            Err(Failure { status: NO_DEVICE | NOT_A_DEVICE, .. }) => Vec::new(),
            found => found.map_err(failed)?,
        };
        let &ordinal = ordinals.get(number).ok_or_else(|| fault::absent(interface, number, ordinals.len()))?;
        let about = About::of(&api, ordinal).map_err(failed)?;
        let name = format!("{name} {}", about.name);
        about.check(interface, &name)?;
        let mut context = Context::NONE;
        if let Own::Cuda(cuda) = &api.own {
            // SAFETY: the handle lives through the call; it is released when the device is dropped.
            let retained = api.done(unsafe { (cuda.retain_context)(&mut context, ordinal) });
            retained.map_err(|failure| fault::failed(interface, &name, "a context", &failure))?;
        }
        let mut device = Device { api, about, name, ordinal, context, stream: Stream::NONE };
        device.enter()?;
        let mut stream = Stream::NONE;
        // SAFETY: the handle lives through the call; it is destroyed when the device is dropped.
        device.guard("a stream", unsafe { (device.api.create_stream)(&mut stream, NON_BLOCKING) })?;
        device.stream = stream;
        Ok(device)
    }

    /// An error if a call failed; `what` was wanted.
    pub(super) fn guard(&self, what: &str, status: Status) -> Result<(), Diagnostic> {
        self.api.done(status).map_err(|failure| fault::failed(self.api.interface, &self.name, what, &failure))
    }

    /// Makes the calls of this thread mean this device.
    pub(super) fn enter(&self) -> Result<(), Diagnostic> {
        let status = match &self.api.own {
            // SAFETY: the context is retained until the device is dropped.
            Own::Cuda(cuda) => unsafe { (cuda.enter_context)(self.context) },
            // SAFETY: the driver gave this number of a device.
            Own::Hip(hip, _) => unsafe { (hip.enter_device)(self.ordinal) },
        };
        self.guard("the device", status)
    }

    /// Waits until all queued work is done.
    pub(super) fn wait(&self, what: &str) -> Result<(), Diagnostic> {
        // SAFETY: the stream lives until the device is dropped.
        self.guard(what, unsafe { (self.api.wait)(self.stream) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // What fails here fails with the process's end in view, or because the device is lost: there is nobody to tell.
        if self.stream != Stream::NONE {
            // SAFETY: the stream was created once, and nothing uses it any more.
            unsafe { (self.api.destroy_stream)(self.stream) };
        }
        if let Own::Cuda(cuda) = &self.api.own {
            // SAFETY: the context was retained once.
            unsafe { (cuda.release_context)(self.ordinal) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_devices_and_drivers_are_refused() {
        let capability = Architecture::Capability;
        let new = About {
            name: "Toy".into(),
            bytes: 1 << 34,
            architecture: capability([7, 5]),
            driver: [10, 0],
            grid: [1, 1],
        };
        let check = |about: About| about.check(Interface::Cuda, "cuda:0 Toy");
        check(new.clone()).unwrap();
        check(About { architecture: capability([12, 1]), driver: [13, 0], ..new.clone() }).unwrap();
        let refused = |about: About| check(about).unwrap_err().wanted;
        assert_eq!(refused(About { architecture: capability([7, 0]), ..new.clone() }), "compute capability 7.5");
        assert_eq!(refused(About { driver: [9, 2], ..new.clone() }), "a driver of CUDA 10.0");
        let hip = |architecture: &str, driver| {
            let architecture = Architecture::Target(architecture.into());
            About { architecture, driver, ..new.clone() }.check(Interface::Hip, "hip:0 Toy")
        };
        hip("gfx1100", [5, 3]).unwrap();
        hip("gfx90a:xnack-", [5, 2]).unwrap();
        assert_eq!(hip("gfx1100", [5, 2]).unwrap_err().wanted, "HIP 5.3");
        assert_eq!(hip("gfx1201", [6, 1]).unwrap_err().wanted, "HIP 6.2");
        let unknown = About { architecture: Architecture::Unknown, ..new.clone() };
        assert!(unknown.check(Interface::Hip, "hip:0 Toy").is_err());
    }

    #[test]
    fn architectures_are_found_in_properties_of_any_layout() {
        let properties = |at: usize, name: &str| {
            let mut bytes = vec![7; 1500];
            bytes[..9].copy_from_slice(b"gfx9 Toy\0");
            bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
            bytes[at + name.len()] = 0;
            named_in(&bytes)
        };
        for at in [256, 396, 1160] {
            assert_eq!(properties(at, "gfx90a:sramecc+:xnack-").as_deref(), Some("gfx90a:sramecc+:xnack-"));
        }
        assert_eq!(properties(300, "gfx9 0"), None);
        assert_eq!(properties(300, "sm_90"), None);
        assert_eq!(named_in(b"gfx1100"), None);
        let names = [Architecture::Capability([12, 1]), Architecture::Target("gfx1100".into())];
        assert_eq!(names.map(|name| name.to_string()), ["sm_121", "gfx1100"]);
    }
}
