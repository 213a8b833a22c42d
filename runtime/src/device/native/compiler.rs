//! Compilers of HIP text that run beside a device: hiprtc for AMD's, NVRTC for NVIDIA's. They take the same text and have the
//! same entry points under other names.
//!
//! What they make is kept in the cache, under a key of everything that it depends on: text, flags, architecture, compiler and
//! its version.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use ds4_kernels::emit::hip::{HIPRTC_FLAGS, NVRTC_FLAGS};
use libloading::Library;

use super::device::Architecture;
use super::interface::Interface;
use crate::device::cache::Cache;

/// What entry points return; 0 is success.
type Status = c_int;
/// A text in the hands of a compiler.
type Program = *mut c_void;

/// The status of a text that is wrong; what is wrong stands in the log.
const WRONG_TEXT: Status = 6;
/// What the text is called in the log.
const FILE: &CStr = c"kernel.hip";
/// What kind of content the cache keeps.
const KIND: &str = "code";

/// The entry points of both, but for the prefix of their names and those that give the code.
pub(super) struct Api {
    pub(super) version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    pub(super) create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    pub(super) compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    pub(super) destroy: unsafe extern "C" fn(*mut Program) -> Status,
    pub(super) log_bytes: unsafe extern "C" fn(Program, *mut usize) -> Status,
    pub(super) log: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    pub(super) code_bytes: unsafe extern "C" fn(Program, *mut usize) -> Status,
    pub(super) code: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    pub(super) error_text: unsafe extern "C" fn(Status) -> *const c_char,
    /// Where they lie; never unloaded.
    pub(super) _library: ManuallyDrop<Library>,
}

/// A compiler with where it keeps what it made.
pub(super) struct Compiler {
    api: Api,
    interface: Interface,
    version: [c_int; 2],
    cache: Cache,
    /// Whether something was compiled already. The first time, hiprtc of HIP 5 makes itself ready, and two threads that do so
    /// at once spoil it; later ones do not disturb each other.
    begun: Mutex<bool>,
}

/// Why there is no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// The text is wrong; the compiler's log.
    Text(String),
    /// Something else; what the compiler calls it, with its log.
    Other(String),
}

impl Api {
    /// The compiler for the devices of an interface, or why there is none.
    pub(super) fn load(interface: Interface) -> Result<Api, String> {
        let mut reason = String::new();
        for name in libraries(interface) {
            // SAFETY: loading runs the initialisers of a library that the system's owner installed.
            let loaded = unsafe { Library::new(&name) }.map_err(|error| error.to_string());
            match loaded.and_then(|library| Api::of(library, interface)) {
                Ok(api) => return Ok(api),
                Err(error) if reason.is_empty() => reason = error.lines().next().unwrap_or_default().into(),
                Err(_) => {}
            }
        }
        Err(reason)
    }

    /// The entry points of a library.
    pub(super) fn of(library: Library, interface: Interface) -> Result<Api, String> {
        let prefix = interface.pick(&["nvrtc", "hiprtc"]);
        let code = interface.pick(&["GetCUBIN", "GetCode"]);
        macro_rules! entry {
            ($name:expr) => {{
                let name = format!("{prefix}{}", $name);
                // SAFETY: the type is that of the symbol in the headers `nvrtc.h` and `hiprtc.h`, and the library stays
                // loaded.
                *unsafe { library.get(name.as_bytes()) }.map_err(|_| format!("it has no {name}"))?
            }};
        }
        Ok(Api {
            version: entry!("Version"),
            create: entry!("CreateProgram"),
            compile: entry!("CompileProgram"),
            destroy: entry!("DestroyProgram"),
            log_bytes: entry!("GetProgramLogSize"),
            log: entry!("GetProgramLog"),
            code_bytes: entry!(format!("{code}Size")),
            code: entry!(code),
            error_text: entry!("GetErrorString"),
            _library: ManuallyDrop::new(library),
        })
    }

    fn words(&self, status: Status) -> String {
        // SAFETY: the call takes any number and gives a string that ends with NUL and lives as long as the library, or null.
        let text = unsafe { (self.error_text)(status) };
        if text.is_null() {
            return format!("error {status}");
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// File names of the library, the preferred one first. That of hiprtc has the version of HIP's own library, or is this one.
fn libraries(interface: Interface) -> Vec<String> {
    match interface {
        Interface::Cuda if cfg!(windows) => {
            ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"].map(String::from).into()
        }
        Interface::Cuda => {
            ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"].map(String::from).into()
        }
        Interface::Hip => match interface.driver().find() {
            Ok(runtime) => vec![runtime.replace("amdhip64", "hiprtc"), runtime.into()],
            Err(_) => interface.driver().libraries().iter().map(|name| name.replace("amdhip64", "hiprtc")).collect(),
        },
    }
}

impl Compiler {
    /// The compiler for the devices of an interface.
    pub(super) fn new(api: Api, interface: Interface, cache: Cache) -> Result<Compiler, String> {
        let mut version = [0; 2];
        let [major, minor] = &mut version;
        // SAFETY: both numbers live through the call.
        match unsafe { (api.version)(major, minor) } {
            0 => Ok(Compiler { api, interface, version, cache, begun: Mutex::new(false) }),
            status => Err(api.words(status)),
        }
    }

    /// What it is called.
    pub(super) fn name(interface: Interface) -> &'static str {
        interface.pick(&["NVRTC", "hiprtc"])
    }

    /// The flags for an architecture.
    fn flags(&self, architecture: &Architecture) -> Vec<String> {
        let (list, target) = match self.interface {
            Interface::Cuda => (NVRTC_FLAGS, "--gpu-architecture"),
            Interface::Hip => (HIPRTC_FLAGS, "--offload-arch"),
        };
        let flags = list.iter().map(|flag| flag.to_string());
        [format!("{target}={architecture}")].into_iter().chain(flags).collect()
    }

    /// Everything that code depends on, in one line.
    fn key(&self, source: &str, flags: &[String]) -> String {
        let [major, minor] = self.version;
        let text = blake3::hash(source.as_bytes()).to_hex();
        format!("{} {major}.{minor} {} {text}", Compiler::name(self.interface), flags.join(" "))
    }

    /// The code of a text for an architecture.
    pub(super) fn code(&self, source: &CStr, architecture: &Architecture) -> Result<Vec<u8>, Refused> {
        let flags = self.flags(architecture);
        let key = self.key(&source.to_string_lossy(), &flags);
        if let Some(code) = self.cache.get(KIND, &key) {
            return Ok(code);
        }
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let code = match *begun {
            true => {
                drop(begun);
                self.compiled(source, &flags)?
            }
            false => {
                *begun = true;
                self.compiled(source, &flags)?
            }
        };
        self.cache.put(KIND, &key, &code);
        Ok(code)
    }

    fn compiled(&self, source: &CStr, flags: &[String]) -> Result<Vec<u8>, Refused> {
        let api = &self.api;
        let mut program = null_mut();
        // SAFETY: the strings end with NUL and live through the call, as does the place; there are no headers.
        let status = unsafe { (api.create)(&mut program, source.as_ptr(), FILE.as_ptr(), 0, null(), null()) };
        if status != 0 {
            return Err(Refused::Other(api.words(status)));
        }
        let program = Owned { api, program };
        let flags: Vec<CString> = flags.iter().filter_map(|flag| CString::new(flag.as_str()).ok()).collect();
        let pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
        // SAFETY: the program is not destroyed yet; there are so many flags, which end with NUL and live through the call.
        match unsafe { (api.compile)(program.program, pointers.len() as c_int, pointers.as_ptr()) } {
            0 => program.bytes(api.code_bytes, api.code).map_err(|status| Refused::Other(api.words(status))),
            status => {
                let log = program.bytes(api.log_bytes, api.log).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).to_string();
                match status {
                    WRONG_TEXT => Err(Refused::Text(log)),
                    _ if log.is_empty() => Err(Refused::Other(api.words(status))),
                    _ => Err(Refused::Other(format!("{}: {log}", api.words(status)))),
                }
            }
        }
    }
}

/// A program that is destroyed.
struct Owned<'a> {
    api: &'a Api,
    program: Program,
}

impl Owned<'_> {
    /// What a pair of entry points gives: how many bytes, and the bytes.
    fn bytes(
        &self,
        count: unsafe extern "C" fn(Program, *mut usize) -> Status,
        content: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, Status> {
        let mut bytes = 0;
        // SAFETY: the program is not destroyed yet, and the number lives through the call.
        let status = unsafe { count(self.program, &mut bytes) };
        if status != 0 {
            return Err(status);
        }
        let mut buffer = vec![0u8; bytes];
        // SAFETY: the buffer has as many bytes as the compiler says that it writes.
        match unsafe { content(self.program, buffer.as_mut_ptr().cast()) } {
            0 => Ok(buffer),
            status => Err(status),
        }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created once, and is not used any more.
        unsafe { (self.api.destroy)(&mut self.program) };
    }
}
