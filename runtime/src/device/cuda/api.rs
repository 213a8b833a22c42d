//! The entry points of the driver that are used, and what they take.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null;

use libloading::Library;

use super::fault::Failure;
use crate::device::driver::Driver;

/// What every entry point returns; 0 is success.
pub(super) type Status = c_int;
/// A device as the driver counts them.
pub(super) type Ordinal = c_int;
/// An address in a device's memory.
pub(super) type Address = u64;

macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(transparent)]
        pub(super) struct $name(*mut c_void);

        impl $name {
            /// What a handle is before the driver sets it.
            pub(super) const NONE: $name = $name(std::ptr::null_mut());
        }

        // SAFETY: a handle is a name for something of the driver's; this program never follows the pointer, and the entry
        // points that take it may be called from any thread.
        unsafe impl Send for $name {}
        // SAFETY: as above; sharing a name shares nothing else.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// A context: what a program has on a device.
    Context;
    /// A stream: work in order.
    Stream;
    /// A compiled text.
    Module;
    /// A kernel of a module.
    Kernel;
}

/// Loads each entry point by its symbol.
macro_rules! entry_points {
    ($($name:ident = $symbol:literal ($($arg:ty),*);)*) => {
        /// The driver.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "system" fn($($arg),*) -> Status,)*
            /// Where the entry points lie. It is never unloaded: drivers leave threads and handlers in a process.
            pub(super) _library: ManuallyDrop<Library>,
        }

        impl Api {
            /// The entry points of a library.
            pub(super) fn of(library: Library) -> Result<Api, String> {
                Ok(Api {
                    $(
                        // SAFETY: the type is that of the symbol in CUDA's header `cuda.h`, and the library stays
                        // loaded.
                        $name: *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }
                            .map_err(|_| format!("it has no {}", $symbol))?,
                    )*
                    _library: ManuallyDrop::new(library),
                })
            }
        }
    };
}

entry_points! {
    init = "cuInit" (c_uint);
    driver_version = "cuDriverGetVersion" (*mut c_int);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device = "cuDeviceGet" (*mut Ordinal, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, Ordinal);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, Ordinal);
    device_bytes = "cuDeviceTotalMem_v2" (*mut usize, Ordinal);
    retain_context = "cuDevicePrimaryCtxRetain" (*mut Context, Ordinal);
    release_context = "cuDevicePrimaryCtxRelease_v2" (Ordinal);
    enter_context = "cuCtxSetCurrent" (Context);
    create_stream = "cuStreamCreate" (*mut Stream, c_uint);
    destroy_stream = "cuStreamDestroy_v2" (Stream);
    wait = "cuStreamSynchronize" (Stream);
    free_bytes = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    allocate = "cuMemAlloc_v2" (*mut Address, usize);
    free = "cuMemFree_v2" (Address);
    clear = "cuMemsetD8Async" (Address, u8, usize, Stream);
    upload = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Stream);
    download = "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Stream);
    load_module = "cuModuleLoadDataEx" (*mut Module, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    unload_module = "cuModuleUnload" (Module);
    kernel = "cuModuleGetFunction" (*mut Kernel, Module, *const c_char);
    launch = "cuLaunchKernel" (
        Kernel, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void
    );
    error_name = "cuGetErrorName" (Status, *mut *const c_char);
    error_text = "cuGetErrorString" (Status, *mut *const c_char);
}

/// Attributes of a device.
pub(super) mod attribute {
    use std::ffi::c_int;

    pub(in super::super) const GRID_WIDTH: c_int = 5;
    pub(in super::super) const GRID_HEIGHT: c_int = 6;
    pub(in super::super) const CAPABILITY_MAJOR: c_int = 75;
    pub(in super::super) const CAPABILITY_MINOR: c_int = 76;
}

/// Options of the compiler.
pub(super) mod option {
    use std::ffi::c_int;

    /// Where to write what is wrong.
    pub(in super::super) const ERROR_LOG: c_int = 5;
    /// Bytes of that.
    pub(in super::super) const ERROR_LOG_BYTES: c_int = 6;
}

/// A stream that does not wait for the default one.
pub(super) const NON_BLOCKING: c_uint = 1;

impl Api {
    /// The driver of this machine, or why there is none.
    pub(super) fn load() -> Result<Api, String> {
        let name = Driver::Cuda.find()?;
        // SAFETY: loading runs the initialisers of a driver that the system's owner installed.
        let library = unsafe { Library::new(name) }.map_err(|error| error.to_string())?;
        Api::of(library)
    }

    /// The outcome of a call.
    pub(super) fn done(&self, status: Status) -> Result<(), Failure> {
        match status {
            0 => Ok(()),
            _ => Err(Failure { status, words: self.words(status) }),
        }
    }

    /// What the driver calls a status: `CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected`.
    fn words(&self, status: Status) -> String {
        let mut parts = Vec::new();
        for entry in [self.error_name, self.error_text] {
            let mut text = null();
            // SAFETY: `text` outlives the call, which needs no context.
            if unsafe { entry(status, &mut text) } == 0 && !text.is_null() {
                // SAFETY: the driver gives a string that ends with NUL and lives as long as the driver.
                parts.push(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
            }
        }
        if parts.is_empty() { format!("error {status}") } else { parts.join(": ") }
    }
}
