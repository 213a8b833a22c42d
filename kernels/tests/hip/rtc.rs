//! HIP text through the compilers that run beside a device, hiprtc and NVRTC; they need no device to compile.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use ds4_kernels::emit::hip::{HIPRTC_FLAGS, NVRTC_FLAGS};
use ds4_kernels::kernel::{Kernel, Operator};
use libloading::Library;

use crate::clang::{PRAGMA, disassembler, faults, sources};
use crate::tools::{fetched, run, runs, there};

/// Devices that hiprtc of HIP 5.2 knows.
const DEVICES: [&str; 2] = ["gfx1030", "gfx90a"];

/// A compiler: its library, the prefix of its entry points, those that give the code, its option for the device.
struct Compiler {
    library: Library,
    prefix: &'static str,
    code: &'static str,
    device: &'static str,
}

impl Compiler {
    fn hiprtc() -> Option<Compiler> {
        let library = load(&["libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5"])?;
        Some(Compiler { library, prefix: "hiprtc", code: "GetCode", device: "--offload-arch" })
    }

    fn nvrtc() -> Option<Compiler> {
        let fetched = fetched("lib/libnvrtc.so.13");
        let library = load(&[fetched.to_str().unwrap(), "libnvrtc.so.13", "libnvrtc.so.12"])?;
        Some(Compiler { library, prefix: "nvrtc", code: "GetCUBIN", device: "--gpu-architecture" })
    }

    /// The code of a source, or what the compiler says.
    fn compiled(&self, source: &str, device: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
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
        type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
        let symbol = |name: &str| format!("{}{name}\0", self.prefix).into_bytes();
        let library = &self.library;
        let source = CString::new(source).unwrap();
        let device = format!("{}={device}", self.device);
        let flags: Vec<CString> = [&*device].iter().chain(flags).map(|&flag| CString::new(flag).unwrap()).collect();
        let pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
        // SAFETY: the types are those of hiprtc.h and nvrtc.h; strings end with a zero and live longer than the calls; a
        // buffer is as long as the size that the library gave for it.
        unsafe {
            let bytes = |name: &str, program: *mut c_void| {
                let mut length = 0;
                assert_eq!(library.get::<Size>(&symbol(&format!("{name}Size"))).unwrap()(program, &mut length), 0);
                let mut bytes = vec![0u8; length];
                assert_eq!(library.get::<Text>(&symbol(name)).unwrap()(program, bytes.as_mut_ptr().cast()), 0);
                bytes
            };
            let mut program = null_mut();
            let create = library.get::<Create>(&symbol("CreateProgram")).unwrap();
            assert_eq!(create(&mut program, source.as_ptr(), c"kernels.hip".as_ptr(), 0, null(), null()), 0);
            let compile = library.get::<Compile>(&symbol("CompileProgram")).unwrap();
            let found = match compile(program, pointers.len() as c_int, pointers.as_ptr()) {
                0 => Ok(bytes(self.code, program)),
                _ => Err(bytes("GetProgramLog", program)),
            };
            assert_eq!(library.get::<Destroy>(&symbol("DestroyProgram")).unwrap()(&mut program), 0);
            found.map_err(|log| String::from_utf8_lossy(&log).into_owned())
        }
    }
}

fn load(names: &[&str]) -> Option<Library> {
    // SAFETY: loading runs the initialisers of a library that the system's owner installed.
    names.iter().find_map(|name| unsafe { Library::new(name) }.ok())
}

/// The roundings are kept; contraction, flushed subnormals and fast math are found.
#[test]
fn hiprtc_keeps_the_roundings() {
    let compiler = Compiler::hiprtc();
    let test = "hiprtc_keeps_the_roundings";
    if !there(test, "hiprtc", compiler.is_some()) || !disassembler(test) {
        return;
    }
    let compiler = compiler.unwrap();
    let (kernels, source) = sources();
    for device in DEVICES {
        let object = compiler.compiled(&source, device, HIPRTC_FLAGS).unwrap();
        let faults = faults(&kernels, &object);
        assert!(faults.is_empty(), "{device}:\n{}", faults.join("\n"));
        println!("{device}: {} kernels", kernels.len());
    }
    // Planted faults, on one device. One of the flags of the list keeps subnormals by itself there.
    let found = |source: &str, flags: &[&str]| {
        let listed = HIPRTC_FLAGS.iter().filter(|flag| **flag != "-fno-fast-math");
        let flags: Vec<&str> = listed.chain(flags).copied().collect();
        compiler.compiled(source, DEVICES[0], &flags).map(|object| faults(&kernels, &object))
    };
    let fast = found(&source.replace(PRAGMA, ""), &["-ffp-contract=fast"]).unwrap();
    assert!(fast.len() > 20 && fast.iter().all(|fault| fault.contains("fma")), "{}", fast.join("\n"));
    let flushed = found(&source, &["-fgpu-flush-denormals-to-zero"]).unwrap();
    assert_eq!(flushed.iter().filter(|fault| fault.contains("subnormals: 0")).count(), kernels.len());
    assert!(found(&source, &["-ffast-math"]).unwrap_err().contains("this kernel needs IEEE arithmetic"));
}

/// Instructions on floats of NVIDIA's devices that round a product and a sum at once, flush, or are approximations.
const STRANGE: [&str; 4] = ["FFMA", ".FTZ", "MUFU", "FSWZADD"];

/// The first instruction of each kernel without quotients and roots that its text does not ask for.
fn strange(kernels: &[Kernel], object: &[u8]) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object).unwrap();
    let (listing, good) = run(&nvdisasm(), &["-c", file.path().to_str().unwrap()]);
    assert!(good, "{listing}");
    let mut faults = Vec::new();
    let mut seen = 0;
    for section in listing.split("\n.text.k").skip(1) {
        let (number, code) = section.split_once(':').unwrap();
        let kernel = &kernels[number.parse::<usize>().unwrap()];
        seen += 1;
        if kernel.exprs.iter().any(|row| matches!(row.op, Operator::Div | Operator::Sqrt)) {
            continue;
        }
        if let Some(line) = code.lines().find(|line| STRANGE.iter().any(|name| line.contains(name))) {
            faults.push(format!("{}: {}", kernel.about, line.trim()));
        }
    }
    assert_eq!(seen, kernels.len());
    faults
}

fn nvdisasm() -> String {
    fetched("bin/nvdisasm").to_str().unwrap().to_string()
}

/// The same text for NVIDIA's devices: the oldest and the newest that kernels run on.
#[test]
fn nvrtc_keeps_the_roundings() {
    let compiler = Compiler::nvrtc();
    let test = "nvrtc_keeps_the_roundings";
    if !there(test, "NVRTC", compiler.is_some()) || !there(test, "nvdisasm", runs(&nvdisasm())) {
        return;
    }
    let compiler = compiler.unwrap();
    let (kernels, source) = sources();
    for device in ["sm_75", "sm_90", "sm_121"] {
        let object = compiler.compiled(&source, device, NVRTC_FLAGS).unwrap();
        let faults = strange(&kernels, &object);
        assert!(faults.is_empty(), "{device}:\n{}", faults.join("\n"));
        println!("{device}: {} kernels", kernels.len());
    }
    let with = |flag: &'static str| {
        let name = flag.split('=').next().unwrap();
        let others = NVRTC_FLAGS.iter().copied().filter(|other| !other.starts_with(name));
        compiler.compiled(&source, "sm_90", &others.chain([flag]).collect::<Vec<_>>())
    };
    let faults = strange(&kernels, &with("--fmad=true").unwrap());
    assert!(faults.len() > 20 && faults.iter().all(|fault| fault.contains("FFMA")), "{}", faults.join("\n"));
    for flag in ["--ftz=true", "--prec-div=false", "--use_fast_math"] {
        assert!(with(flag).unwrap_err().contains("this kernel needs IEEE arithmetic"), "{flag}");
    }
}
