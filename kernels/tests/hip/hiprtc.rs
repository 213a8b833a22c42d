//! HIP text through hiprtc, which compiles at run time for the device that is there; it needs no device to do so.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use ds4_kernels::emit::hip::HIPRTC_FLAGS;
use libloading::Library;

use crate::clang::{PRAGMA, disassembler, faults, sources};
use crate::tools::there;

/// Devices that hiprtc of HIP 5.2 knows.
const DEVICES: [&str; 2] = ["gfx1030", "gfx90a"];

fn library() -> Option<Library> {
    let names = ["libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5"];
    // SAFETY: loading runs the initialisers of a library that the system's owner installed.
    names.iter().find_map(|name| unsafe { Library::new(name) }.ok())
}

/// The code object of a source, or what hiprtc says.
fn compiled(library: &Library, source: &str, device: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    type Create = unsafe extern "C" fn(
        *mut *mut c_void,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int;
    type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    type Text = unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int;
    let source = CString::new(source).unwrap();
    let device = format!("--offload-arch={device}");
    let flags: Vec<CString> = [&*device].iter().chain(flags).map(|&flag| CString::new(flag).unwrap()).collect();
    let pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
    // SAFETY: the types are those of hiprtc.h; strings end with a zero and live longer than the calls; a buffer is as long
    // as the size that the library gave for it.
    unsafe {
        let bytes = |size: &[u8], text: &[u8], program: *mut c_void| {
            let mut length = 0;
            assert_eq!(library.get::<Size>(size).unwrap()(program, &mut length), 0);
            let mut bytes = vec![0u8; length];
            assert_eq!(library.get::<Text>(text).unwrap()(program, bytes.as_mut_ptr().cast()), 0);
            bytes
        };
        let mut program = null_mut();
        let create = library.get::<Create>(b"hiprtcCreateProgram\0").unwrap();
        assert_eq!(create(&mut program, source.as_ptr(), c"kernels.hip".as_ptr(), 0, null(), null()), 0);
        let compile = library.get::<Compile>(b"hiprtcCompileProgram\0").unwrap();
        let result = compile(program, pointers.len() as c_int, pointers.as_ptr());
        let found = match result {
            0 => Ok(bytes(b"hiprtcGetCodeSize\0", b"hiprtcGetCode\0", program)),
            _ => Err(bytes(b"hiprtcGetProgramLogSize\0", b"hiprtcGetProgramLog\0", program)),
        };
        let destroy =
            library.get::<unsafe extern "C" fn(*mut *mut c_void) -> c_int>(b"hiprtcDestroyProgram\0").unwrap();
        assert_eq!(destroy(&mut program), 0);
        found.map_err(|log| String::from_utf8_lossy(&log).into_owned())
    }
}

/// The roundings are kept; contraction, flushed subnormals and fast math are found.
#[test]
fn hiprtc_keeps_the_roundings() {
    let library = library();
    let test = "hiprtc_keeps_the_roundings";
    if !there(test, "hiprtc", library.is_some()) || !disassembler(test) {
        return;
    }
    let library = library.unwrap();
    let (kernels, source) = sources();
    for device in DEVICES {
        let object = compiled(&library, &source, device, HIPRTC_FLAGS).unwrap();
        let faults = faults(&kernels, &object);
        assert!(faults.is_empty(), "{device}:\n{}", faults.join("\n"));
        println!("{device}: {} kernels", kernels.len());
    }
    // Planted faults, on one device. One of the flags of the list keeps subnormals by itself there.
    let found = |source: &str, flags: &[&str]| {
        let listed = HIPRTC_FLAGS.iter().filter(|flag| **flag != "-fno-fast-math");
        let flags: Vec<&str> = listed.chain(flags).copied().collect();
        compiled(&library, source, DEVICES[0], &flags).map(|object| faults(&kernels, &object))
    };
    let fast = found(&source.replace(PRAGMA, ""), &["-ffp-contract=fast"]).unwrap();
    assert!(fast.len() > 20 && fast.iter().all(|fault| fault.contains("fma")), "{}", fast.join("\n"));
    let flushed = found(&source, &["-fgpu-flush-denormals-to-zero"]).unwrap();
    assert_eq!(flushed.iter().filter(|fault| fault.contains("subnormals: 0")).count(), kernels.len());
    assert!(found(&source, &["-ffast-math"]).unwrap_err().contains("this kernel needs IEEE arithmetic"));
}
