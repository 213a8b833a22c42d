//! The entry points of the drivers that are used, and what they take.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null;

use libloading::Library;

use super::fault::Failure;
use super::interface::Interface;

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

/// Loads each entry point by its symbol, of which there may be one for each interface: CUDA's, HIP's.
macro_rules! entry_points {
    ($(#[$meta:meta])* $table:ident: $($name:ident = $($symbol:literal)* ($($arg:ty),*) -> $result:ty;)*) => {
        $(#[$meta])*
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "system" fn($($arg),*) -> $result,)*
        }

        impl $table {
            fn of(library: &Library, interface: Interface) -> Result<$table, String> {
                Ok($table {
                    $(
                        // SAFETY: the type is that of the symbol in the headers `cuda.h` and `hip_runtime_api.h`, and the
                        // library stays loaded.
                        $name: unsafe { symbol(library, interface.pick(&[$($symbol),*])) }?,
                    )*
                })
            }
        }
    };
}

/// An entry point of a library, or the message that it lacks it.
///
/// # Safety
/// The type is that of the symbol, and the library stays loaded as long as it is used.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: by the caller.
    unsafe { library.get::<T>(name.as_bytes()) }.map(|symbol| *symbol).map_err(|_| format!("it has no {name}"))
}

entry_points! {
    /// What both have.
    Common:
    init = "cuInit" "hipInit" (c_uint) -> Status;
    driver_version = "cuDriverGetVersion" "hipDriverGetVersion" (*mut c_int) -> Status;
    device_count = "cuDeviceGetCount" "hipGetDeviceCount" (*mut c_int) -> Status;
    device = "cuDeviceGet" "hipDeviceGet" (*mut Ordinal, c_int) -> Status;
    device_name = "cuDeviceGetName" "hipDeviceGetName" (*mut c_char, c_int, Ordinal) -> Status;
    device_bytes = "cuDeviceTotalMem_v2" "hipDeviceTotalMem" (*mut usize, Ordinal) -> Status;
    create_stream = "cuStreamCreate" "hipStreamCreateWithFlags" (*mut Stream, c_uint) -> Status;
    destroy_stream = "cuStreamDestroy_v2" "hipStreamDestroy" (Stream) -> Status;
    wait = "cuStreamSynchronize" "hipStreamSynchronize" (Stream) -> Status;
    free_bytes = "cuMemGetInfo_v2" "hipMemGetInfo" (*mut usize, *mut usize) -> Status;
    allocate = "cuMemAlloc_v2" "hipMalloc" (*mut Address, usize) -> Status;
    free = "cuMemFree_v2" "hipFree" (Address) -> Status;
    clear = "cuMemsetD8Async" "hipMemsetD8Async" (Address, u8, usize, Stream) -> Status;
    upload = "cuMemcpyHtoDAsync_v2" "hipMemcpyHtoDAsync" (Address, *const c_void, usize, Stream) -> Status;
    download = "cuMemcpyDtoHAsync_v2" "hipMemcpyDtoHAsync" (*mut c_void, Address, usize, Stream) -> Status;
    load_module = "cuModuleLoadDataEx" "hipModuleLoadDataEx"
        (*mut Module, *const c_void, c_uint, *mut c_int, *mut *mut c_void) -> Status;
    unload_module = "cuModuleUnload" "hipModuleUnload" (Module) -> Status;
    kernel = "cuModuleGetFunction" "hipModuleGetFunction" (*mut Kernel, Module, *const c_char) -> Status;
    launch = "cuLaunchKernel" "hipModuleLaunchKernel" (
        Kernel, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void
    ) -> Status;
}

entry_points! {
    /// What CUDA alone has, or has otherwise.
    Cuda:
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, Ordinal) -> Status;
    retain_context = "cuDevicePrimaryCtxRetain" (*mut Context, Ordinal) -> Status;
    release_context = "cuDevicePrimaryCtxRelease_v2" (Ordinal) -> Status;
    enter_context = "cuCtxSetCurrent" (Context) -> Status;
    error_name = "cuGetErrorName" (Status, *mut *const c_char) -> Status;
    error_text = "cuGetErrorString" (Status, *mut *const c_char) -> Status;
}

entry_points! {
    /// What HIP alone has, or has otherwise.
    Hip:
    enter_device = "hipSetDevice" (Ordinal) -> Status;
    error_name = "hipGetErrorName" (Status) -> *const c_char;
    error_text = "hipGetErrorString" (Status) -> *const c_char;
}

/// Writes the properties of a device of HIP.
pub(super) type Properties = unsafe extern "system" fn(*mut c_void, Ordinal) -> Status;

/// What one of the interfaces has.
pub(super) enum Own {
    Cuda(Cuda),
    Hip(Hip, Properties),
}

/// A driver.
pub(super) struct Api {
    pub(super) interface: Interface,
    pub(super) common: Common,
    pub(super) own: Own,
    /// Where the entry points lie. It is never unloaded: drivers leave threads and handlers in a process.
    pub(super) _library: ManuallyDrop<Library>,
}

impl Deref for Api {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// Attributes of a device of CUDA.
pub(super) mod attribute {
    use std::ffi::c_int;

    pub(in super::super) const GRID_WIDTH: c_int = 5;
    pub(in super::super) const GRID_HEIGHT: c_int = 6;
    pub(in super::super) const CAPABILITY_MAJOR: c_int = 75;
    pub(in super::super) const CAPABILITY_MINOR: c_int = 76;
}

/// Options of CUDA's compiler of PTX.
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
    pub(super) fn load(interface: Interface) -> Result<Api, String> {
        let name = interface.driver().find()?;
        // SAFETY: loading runs the initialisers of a driver that the system's owner installed.
        let library = unsafe { Library::new(name) }.map_err(|error| error.to_string())?;
        Api::of(library, interface)
    }

    /// The entry points of a library.
    pub(super) fn of(library: Library, interface: Interface) -> Result<Api, String> {
        let common = Common::of(&library, interface)?;
        let own = match interface {
            Interface::Cuda => Own::Cuda(Cuda::of(&library, interface)?),
            Interface::Hip => Own::Hip(Hip::of(&library, interface)?, properties(&library)?),
        };
        Ok(Api { interface, common, own, _library: ManuallyDrop::new(library) })
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
        let texts = match &self.own {
            Own::Cuda(cuda) => [cuda.error_name, cuda.error_text].map(|entry| {
                let mut text = null();
                // SAFETY: `text` outlives the call, which needs no context.
                let status = unsafe { entry(status, &mut text) };
                if status == 0 { text } else { null() }
            }),
            // SAFETY: the calls take any number and need no device.
            Own::Hip(hip, _) => [hip.error_name, hip.error_text].map(|entry| unsafe { entry(status) }),
        };
        let known = texts.into_iter().filter(|text| !text.is_null());
        // SAFETY: the driver gives strings that end with NUL and live as long as the driver.
        let words: Vec<_> = known.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy()).collect();
        if words.is_empty() { format!("error {status}") } else { words.join(": ") }
    }
}

/// The properties have another layout since HIP 6, which has a name of its own; the old name has the old layout.
fn properties(library: &Library) -> Result<Properties, String> {
    // SAFETY: both take a place for the properties and the number of a device.
    unsafe { symbol(library, "hipGetDevicePropertiesR0600").or_else(|_| symbol(library, "hipGetDeviceProperties")) }
}
