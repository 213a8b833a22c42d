//! The backend over a driver of paper, which runs texts on the kernel machine; and over real ones where there is a device.

mod driver;

use std::ffi::CString;

use ds4_ir::diagnostic::{Code, codes};
use ds4_ir::numerics::Arith;
use ds4_ir::{Diagnostic, Dim, Value};
use ds4_kernels::Target;
use ds4_kernels::emit::{StepBlock, hip, ptx};
use ds4_kernels::kernel::{Access, Builder, ExtentRow, Source, Type, Word};
use libloading::Library;

use super::api::Api;
use super::compiler::Refused;
use super::*;
use crate::device::backend::{Backend, Buffer, Dispatch, Function, Piece, Text};
use driver::Driver;

const LANES: u32 = 64;
const CELLS: u32 = 1000;

/// An interface with the language of its texts.
const WAYS: [(Interface, Target); 3] =
    [(Interface::Cuda, Target::Ptx), (Interface::Cuda, Target::Hip), (Interface::Hip, Target::Hip)];

/// The text of `x[i] = 3 * x[i] + i` below a number that the step chooses.
fn source(target: Target) -> String {
    let b = Builder::new("triple", &[], LANES);
    b.about("x = 3 * x + i");
    let len = ExtentRow { scalar: Some(Dim(0)), most: 1 << 20, times: 1, per: 1 };
    let group = b.group(ExtentRow { per: LANES, ..len });
    let x = b.argument(Source::Slot(Value(0)), Type::Word, Access::ReadWrite, "x");
    let i = b.name("i", b.add_int(b.mul_int(group, b.word(LANES)), b.lane()));
    b.when(b.below(i, b.extent_value(len)), || {
        let old: Word = b.load("old", x, i);
        b.store(x, i, b.add_int(b.mul_int(old, b.word(3)), i));
    });
    let kernel = b.finish();
    let emit = if target == Target::Ptx { ptx::emit } else { hip::emit };
    emit(&kernel, &StepBlock::of([&kernel])).unwrap()
}

fn text_of(source: &str) -> Text<'_> {
    Text { name: "layer.0.triple", entry: "triple", source, lanes: LANES, arguments: 2 }
}

fn functions(backend: &mut NativeBackend, source: &str) -> Result<Vec<Function>, Diagnostic> {
    backend.functions(&[text_of(source)], &mut || ())
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn upload(backend: &mut NativeBackend, piece: Piece, words: &[u32]) {
    let bytes = bytes(words);
    backend.fill(piece, &mut |at, part| part.copy_from_slice(&bytes[at as usize..][..part.len()])).unwrap();
}

/// A buffer of so many words.
fn words(backend: &mut NativeBackend, name: &str, words: u32) -> Piece {
    let bytes = 4 * u64::from(words);
    Piece { buffer: backend.buffer(name, bytes).unwrap(), offset: 0, bytes }
}

/// Launches see what launches before them wrote, over a folded grid and over part of a buffer.
fn runs(backend: &mut NativeBackend) {
    let source = source(backend.target());
    let mut count = 0;
    let functions = backend.functions(&[text_of(&source); 9], &mut || count += 1).unwrap();
    assert_eq!((functions.len(), count), (9, 9));
    let (block, x) = (words(backend, "step", 3), words(backend, "x", CELLS));
    upload(backend, block, &[0, 0x8000_0000, CELLS]);
    let part = Piece { offset: 400, bytes: 400, ..x };
    let dispatch = |x| Dispatch { function: functions[4], arguments: vec![block, x] };
    backend.sequence(&[dispatch(part)]).unwrap();
    let sequence = backend.sequence(&[dispatch(x), dispatch(part)]).unwrap();
    // Some groups beyond the last.
    backend.run(sequence, &[(0, [6, 3]), (0, [16, 1])]).unwrap();
    upload(backend, block, &[0, 0x8000_0000, 100]);
    backend.run(sequence, &[(1, [1, 2])]).unwrap();
    let mut found = vec![0; x.bytes as usize];
    backend.read(x, &mut found).unwrap();
    let twice = |i: u32| 3 * i + i;
    let wanted = |i: u32| if (100..200).contains(&i) { 3 * twice(i) + (i - 100) } else { twice(i) };
    assert_eq!(found, bytes(&(0..CELLS).map(wanted).collect::<Vec<_>>()));
}

/// What the executor never asks for, and what it may.
fn refuses(backend: &mut NativeBackend) {
    fn code<T>(result: Result<T, Diagnostic>) -> Code {
        result.err().unwrap().code
    }
    let function = functions(backend, &source(backend.target())).unwrap()[0];
    let (block, x) = (words(backend, "step", 3), words(backend, "x", 100));
    for (offset, bytes) in [(0, 404), (2, 8), (4, 6), (0, 0), (u64::MAX - 3, 8)] {
        let piece = Piece { offset, bytes, ..x };
        assert_eq!(code(backend.fill(piece, &mut |_, _| ())), codes::DEVICE_REFUSES, "{piece:?}");
    }
    assert_eq!(code(backend.read(x, &mut [0; 8])), codes::DEVICE_REFUSES);
    let dispatch = |arguments| [Dispatch { function, arguments }];
    assert_eq!(code(backend.sequence(&dispatch(vec![block]))), codes::DEVICE_REFUSES);
    assert_eq!(code(backend.sequence(&dispatch(vec![block, Piece { bytes: 404, ..x }]))), codes::DEVICE_REFUSES);
    let sequence = backend.sequence(&dispatch(vec![block, x])).unwrap();
    let fault = backend.run(sequence, &[(0, [1, 1 << 20])]).unwrap_err();
    assert_eq!((fault.code, fault.found.as_str()), (codes::DEVICE_SMALL, "at most 65535"));
    assert_eq!(code(backend.buffer("huge", u64::MAX)), codes::DEVICE_SMALL);
    let fault = backend.buffer("full", backend.about().bytes).unwrap_err();
    println!("{fault}");
    assert!(fault.code == codes::DEVICE_MEMORY && fault.found.contains("bytes are free of"), "{fault}");
    let source = source(backend.target());
    let wrong = source.replace("mul.lo.u32", "mul.low.u32").replace("* 3u)", "** 3u)");
    let fault = functions(backend, &wrong).unwrap_err();
    println!("{fault}");
    assert_eq!((fault.code, fault.place.source.is_some()), (codes::KERNEL_TEXT, true));
    let other = source.replace("triple", "single");
    assert_eq!(code(functions(backend, &other)), codes::DEVICE_REFUSES);
    assert_eq!(code(functions(backend, "// \0\n")), codes::DEVICE_REFUSES);
}

#[test]
fn a_driver_of_paper_runs_kernels() {
    let driver = Driver::new();
    for (interface, target) in WAYS {
        for number in [0, 1] {
            let mut backend = driver.open(interface, target, number).unwrap();
            assert_eq!(backend.target(), target);
            assert_eq!(backend.name(), format!("{}:{number} Paper {number}", interface.name()));
            runs(&mut backend);
            refuses(&mut backend);
            // The device works on.
            runs(&mut backend);
        }
        driver.is_clean();
    }
}

/// A device of this machine for texts of a language.
fn open(interface: Interface, target: Target, number: usize) -> Result<NativeBackend, Diagnostic> {
    match (interface, target) {
        (Interface::Cuda, Target::Hip) => open_cuda_with_hip(number, &Cache::none()),
        (Interface::Cuda, _) => open_cuda(number),
        (Interface::Hip, _) => open_hip(number, &Cache::none()),
    }
}

#[test]
fn a_device_of_this_machine_runs_kernels() {
    for (interface, target) in WAYS {
        let way = format!("{} of {} devices", target.name(), interface.name());
        let about = match devices(interface) {
            Ok(mut all) => all.swap_remove(0),
            Err(reason) => {
                println!("skipped: a_device_of_this_machine_runs_kernels: {way}: {reason}");
                continue;
            }
        };
        println!("{way}: {about:?}");
        let mut backend = match open(interface, target, 0) {
            Err(fault) if fault.message.contains("compiler") => {
                println!("skipped: a_device_of_this_machine_runs_kernels: {way}: {fault}");
                continue;
            }
            opened => opened.unwrap(),
        };
        assert_eq!(backend.about(), &about);
        assert_eq!(backend.name(), format!("{}:0 {}", interface.name(), about.name));
        runs(&mut backend);
        refuses(&mut backend);
        runs(&mut backend);
        assert_eq!(open(interface, target, 99).err().unwrap().code, codes::DEVICE_ABSENT);
    }
}

/// Without a device: a driver that is not there, or has no device.
#[test]
fn a_machine_without_devices_says_so() {
    for (interface, target) in WAYS {
        if devices(interface).is_ok() {
            println!("skipped: a_machine_without_devices_says_so: there is a device of {}", interface.name());
            continue;
        }
        let fault = open(interface, target, 0).err().unwrap();
        println!("{fault}");
        assert!([codes::DEVICE_DRIVER, codes::DEVICE_ABSENT].contains(&fault.code), "{fault}");
    }
}

#[test]
fn a_library_that_is_no_driver_is_named() {
    let this = || Library::from(libloading::os::unix::Library::this());
    let lacks = |interface| Api::of(this(), interface).err().unwrap();
    assert_eq!([Interface::Cuda, Interface::Hip].map(lacks), ["it has no cuInit", "it has no hipInit"]);
    let lacks = |interface| compiler::Api::of(this(), interface).err().unwrap();
    let names = ["it has no nvrtcVersion", "it has no hiprtcVersion"];
    assert_eq!([Interface::Cuda, Interface::Hip].map(lacks), names);
}

#[test]
fn devices_are_listed_and_counted() {
    let driver = Driver::new();
    for (interface, target) in WAYS {
        let all = device::all(&driver.api(interface)).ok().unwrap();
        let names: Vec<&str> = all.iter().map(|about| about.name.as_str()).collect();
        assert_eq!(names, ["Paper 0", "Paper 1"]);
        let wanted = if interface == Interface::Cuda { ("sm_90", [13, 0]) } else { ("gfx1100", [6, 2]) };
        assert_eq!((all[1].architecture.to_string().as_str(), all[1].driver), wanted);
        let absent = driver.open(interface, target, 2).err().unwrap();
        assert_eq!((absent.code, absent.wanted.as_str()), (codes::DEVICE_ABSENT, "a number below 2"));
        for status in [100, 101] {
            driver.fails("cuInit", status);
            let absent = driver.open(interface, target, 0).err().unwrap();
            assert_eq!((absent.code, absent.found.as_str()), (codes::DEVICE_ABSENT, "none"));
        }
        driver.is_clean();
    }
}

/// Each call fails once: there is a diagnostic, and nothing stays behind.
#[test]
fn every_failure_is_told_and_leaves_nothing() {
    let driver = Driver::new();
    let used = |backend: &mut NativeBackend| -> Result<(), Diagnostic> {
        let function = functions(backend, &source(backend.target()))?[0];
        let block = Piece { buffer: backend.buffer("step", 12)?, offset: 0, bytes: 12 };
        let x = Piece { buffer: backend.buffer("x", 400)?, offset: 0, bytes: 400 };
        backend.fill(x, &mut |_, part| part.fill(7))?;
        let sequence = backend.sequence(&[Dispatch { function, arguments: vec![block, x] }])?;
        backend.run(sequence, &[(0, [1, 1])])?;
        backend.read(x, &mut [0; 400])
    };
    // What gives back, and what is asked for a message only.
    let others = [
        "cuMemFree_v2",
        "cuModuleUnload",
        "cuStreamDestroy_v2",
        "cuDevicePrimaryCtxRelease_v2",
        "cuGetErrorName",
        "cuGetErrorString",
        "cuMemGetInfo_v2",
        "DestroyProgram",
        "GetProgramLogSize",
        "GetProgramLog",
    ];
    for (interface, target) in WAYS {
        driver.forget_calls();
        driver.open(interface, target, 0).and_then(|mut backend| used(&mut backend)).unwrap();
        let calls: Vec<&str> = driver.calls().into_iter().filter(|name| !others.contains(name)).collect();
        for &name in &calls {
            driver.fails(name, 700);
            let done = driver.open(interface, target, 0).and_then(|mut backend| used(&mut backend));
            let fault = done.err().unwrap_or_else(|| panic!("{name}"));
            let of_compiler = !name.starts_with("cu") && !name.starts_with("hip");
            let (code, found) = match of_compiler {
                true => (codes::DEVICE_REFUSES, "an error of paper"),
                false => (codes::DEVICE_LOST, "PAPER_ERROR_700: of paper"),
            };
            assert_eq!((fault.code, fault.found.as_str()), (code, found), "{name}");
            driver.is_clean();
        }
        assert!(calls.len() >= 17, "{calls:?}");
    }
}

/// What was compiled once is taken from the cache, as long as text, architecture and compiler are the same.
#[test]
fn code_is_kept_in_the_cache() {
    let driver = Driver::new();
    let folder = tempfile::tempdir().unwrap();
    let compiles = |interface, source: &str| {
        let mut backend = driver.open_with(interface, Target::Hip, 0, Cache::at(folder.path())).unwrap();
        driver.forget_calls();
        functions(&mut backend, source).unwrap();
        driver.calls().contains(&"CompileProgram")
    };
    let source = source(Target::Hip);
    let other = source.replace("x = 3 * x + i", "another comment");
    assert!(compiles(Interface::Cuda, &source) && !compiles(Interface::Cuda, &source));
    assert!(compiles(Interface::Cuda, &other) && !compiles(Interface::Cuda, &other));
    assert!(compiles(Interface::Hip, &source) && !compiles(Interface::Hip, &source));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    assert!(compiles(Interface::Cuda, &source) && !compiles(Interface::Cuda, &source));
    driver.is_clean();
}

/// The compilers of this machine, which need no device: code for an architecture, from several threads at once, and what is
/// wrong with a text.
#[test]
fn compilers_of_this_machine_make_code() {
    let target = Architecture::Target("gfx90a:sramecc+:xnack-".into());
    for (interface, architecture) in [(Interface::Cuda, Architecture::Capability([9, 0])), (Interface::Hip, target)] {
        let compiler = compiler::Api::load(interface).and_then(|api| Compiler::new(api, interface, Cache::none()));
        let compiler = match compiler {
            Ok(compiler) => compiler,
            Err(reason) => {
                println!("skipped: compilers_of_this_machine_make_code: {}: {reason}", Compiler::name(interface));
                let hip = interface == Interface::Hip;
                assert!(!hip || std::env::var("CI").as_deref() != Ok("true"), "run scripts/tools-hip");
                continue;
            }
        };
        let source = source(Target::Hip);
        let text = CString::new(source.as_str()).unwrap();
        std::thread::scope(|scope| {
            let make = || compiler.code(&text, &architecture).unwrap();
            let threads = [scope.spawn(make), scope.spawn(make), scope.spawn(make)];
            let codes = threads.map(|thread| thread.join().unwrap());
            assert!(codes.iter().all(|code| code.starts_with(b"\x7fELF") && code.len() > 1000));
        });
        let wrong = source.replace("* 3u)", "** 3u)");
        let Err(Refused::Text(log)) = compiler.code(&CString::new(wrong.as_str()).unwrap(), &architecture) else {
            panic!("a wrong text is refused");
        };
        let fault = fault::kernel(&text_of(&wrong), "HIP", &log, "");
        println!("{fault}");
        let (shown, range) = fault.place.source.unwrap();
        assert!(shown[range].contains("** 3u)"), "{log}");
        // hiprtc of HIP 5 does not come back from such a question.
        if interface == Interface::Cuda {
            let refused = compiler.code(&text, &Architecture::Capability([1, 0])).unwrap_err();
            assert!(matches!(&refused, Refused::Other(words) if words.contains("architecture")), "{refused:?}");
        }
    }
}

#[test]
fn large_buffers_are_filled_in_parts() {
    let driver = Driver::new();
    let mut backend = driver.open(Interface::Cuda, Target::Ptx, 0).unwrap();
    let bytes = (40 << 20) + 12;
    let buffer: Buffer = backend.buffer("weights", bytes).unwrap();
    let mut parts = Vec::new();
    let word = |at: u64| ((at / 4) as u32).wrapping_mul(0x9e37_79b9);
    let mut write = |at: u64, part: &mut [u8]| {
        parts.push((at, part.len()));
        let starts = (at..).step_by(4);
        part.chunks_exact_mut(4).zip(starts).for_each(|(cell, at)| cell.copy_from_slice(&word(at).to_le_bytes()));
    };
    backend.fill(Piece { buffer, offset: 4, bytes: bytes - 8 }, &mut write).unwrap();
    assert_eq!(parts, [(0, 16 << 20), (16 << 20, 16 << 20), (32 << 20, (8 << 20) + 4)]);
    let mut found = vec![1; bytes as usize];
    backend.read(Piece { buffer, offset: 0, bytes }, &mut found).unwrap();
    let words: Vec<u32> = found.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let (inner, last) = (&words[1..words.len() - 1], words[words.len() - 1]);
    assert!(words[0] == 0 && last == 0 && inner.iter().zip(0..).all(|(&found, i)| found == word(4 * i)));
    drop(backend);
    driver.is_clean();
}
