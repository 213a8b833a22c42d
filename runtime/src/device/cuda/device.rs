//! The devices of this machine, and one that is opened.

use std::ffi::{CStr, c_char, c_int};

use ds4_ir::Diagnostic;

use super::api::{Api, Context, NON_BLOCKING, Ordinal, Status, Stream, attribute};
use super::fault::{self, Failure};

/// The least compute capability: that of the texts' target.
const CAPABILITY: [u32; 2] = [7, 5];
/// The first driver that takes the texts' version of PTX.
const DRIVER: [u32; 2] = [10, 0];
/// Bytes of a device's name.
const NAME: usize = 256;

/// What a device says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub bytes: u64,
    /// Its compute capability, major and minor.
    pub capability: [u32; 2],
    /// The version of CUDA that the driver speaks, major and minor.
    pub driver: [u32; 2],
    /// Most workgroups along the two axes of a grid.
    pub grid: [u32; 2],
}

/// The devices of this machine, in the order of their numbers; none where the driver is absent or refuses.
pub fn devices() -> Vec<About> {
    Api::load().ok().and_then(|api| all(&api).ok()).unwrap_or_default()
}

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
        let number = |which| ask(api, |number| unsafe { (api.device_attribute)(number, which, ordinal) });
        // SAFETY: the number lives through the call.
        let version = ask(api, |version| unsafe { (api.driver_version)(version) })? as u32;
        let pair = |first, second| Ok::<_, Failure>([number(first)? as u32, number(second)? as u32]);
        Ok(About {
            name,
            bytes: bytes as u64,
            capability: pair(attribute::CAPABILITY_MAJOR, attribute::CAPABILITY_MINOR)?,
            driver: [version / 1000, version % 1000 / 10],
            grid: pair(attribute::GRID_WIDTH, attribute::GRID_HEIGHT)?,
        })
    }

    /// An error if kernels cannot run here.
    fn check(&self, device: &str) -> Result<(), Diagnostic> {
        let versions = [("a driver of CUDA", DRIVER, self.driver), ("compute capability", CAPABILITY, self.capability)];
        match versions.into_iter().find(|(_, wanted, found)| found < wanted) {
            Some((what, wanted, found)) => Err(fault::too_old(device, what, wanted, found)),
            None => Ok(()),
        }
    }
}

/// An opened device: a context and one stream.
pub(super) struct Device {
    pub(super) api: Api,
    pub(super) about: About,
    /// `cuda:0 NVIDIA H200`
    pub(super) name: String,
    ordinal: Ordinal,
    context: Context,
    pub(super) stream: Stream,
}

impl Device {
    /// The device with a number.
    pub(super) fn open(api: Api, number: usize) -> Result<Device, Diagnostic> {
        let name = format!("cuda:{number}");
        let failed = |failure: Failure| fault::failed(&name, "the driver", &failure);
        let ordinals = match ordinals(&api) {
            // What `cuInit` says where there is none.
            Err(Failure { status: 100, .. }) => Vec::new(),
            found => found.map_err(failed)?,
        };
        let &ordinal = ordinals.get(number).ok_or_else(|| fault::absent(number, ordinals.len()))?;
        let about = About::of(&api, ordinal).map_err(failed)?;
        let name = format!("{name} {}", about.name);
        about.check(&name)?;
        let mut context = Context::NONE;
        // SAFETY: the handle lives through the call; it is released when the device is dropped.
        let retained = api.done(unsafe { (api.retain_context)(&mut context, ordinal) });
        retained.map_err(|failure| fault::failed(&name, "a context", &failure))?;
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
        self.api.done(status).map_err(|failure| fault::failed(&self.name, what, &failure))
    }

    /// Makes the calls of this thread mean this device.
    pub(super) fn enter(&self) -> Result<(), Diagnostic> {
        // SAFETY: the context is retained until the device is dropped.
        self.guard("the context", unsafe { (self.api.enter_context)(self.context) })
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
        // SAFETY: the context was retained once.
        unsafe { (self.api.release_context)(self.ordinal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_devices_and_drivers_are_refused() {
        let new = About { name: "Toy".into(), bytes: 1 << 34, capability: [7, 5], driver: [10, 0], grid: [1, 1] };
        new.check("cuda:0 Toy").unwrap();
        About { capability: [12, 1], driver: [13, 0], ..new.clone() }.check("cuda:0 Toy").unwrap();
        let refused = |about: About| about.check("cuda:0 Toy").unwrap_err().wanted;
        assert_eq!(refused(About { capability: [7, 0], ..new.clone() }), "compute capability 7.5");
        assert_eq!(refused(About { driver: [9, 2], ..new }), "a driver of CUDA 10.0");
    }
}
