//! The backend over a driver of paper, which runs PTX on the kernel machine; and over a real one where there is a device.

mod driver;

use ds4_ir::diagnostic::{Code, codes};
use ds4_ir::numerics::Arith;
use ds4_ir::{Diagnostic, Dim, Value};
use ds4_kernels::Target;
use ds4_kernels::emit::{StepBlock, ptx};
use ds4_kernels::kernel::{Access, Builder, ExtentRow, Source, Type, Word};
use libloading::Library;

use super::api::Api;
use super::*;
use crate::device::backend::{Backend, Buffer, Dispatch, Function, Piece, Text};
use driver::Driver;

const LANES: u32 = 64;
const CELLS: u32 = 1000;

/// PTX of `x[i] = 3 * x[i] + i` below a number that the step chooses.
fn source() -> String {
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
    ptx::emit(&kernel, &StepBlock::of([&kernel])).unwrap()
}

fn text(source: &str) -> Text<'_> {
    Text { name: "layer.0.triple", entry: "triple", source, lanes: LANES, arguments: 2 }
}

fn functions(backend: &mut CudaBackend, source: &str) -> Result<Vec<Function>, Diagnostic> {
    backend.functions(&[text(source)], &mut || ())
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn upload(backend: &mut CudaBackend, piece: Piece, words: &[u32]) {
    let bytes = bytes(words);
    backend.fill(piece, &mut |at, part| part.copy_from_slice(&bytes[at as usize..][..part.len()])).unwrap();
}

/// A buffer of so many words.
fn words(backend: &mut CudaBackend, name: &str, words: u32) -> Piece {
    let bytes = 4 * u64::from(words);
    Piece { buffer: backend.buffer(name, bytes).unwrap(), offset: 0, bytes }
}

/// Launches see what launches before them wrote, over a folded grid and over part of a buffer.
fn runs(backend: &mut CudaBackend) {
    assert_eq!(backend.target(), Target::Ptx);
    let source = source();
    let mut count = 0;
    let functions = backend.functions(&[text(&source); 9], &mut || count += 1).unwrap();
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
fn refuses(backend: &mut CudaBackend) {
    fn code<T>(result: Result<T, Diagnostic>) -> Code {
        result.err().unwrap().code
    }
    let function = functions(backend, &source()).unwrap()[0];
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
    let fault = functions(backend, &source().replace("mul.lo.u32", "mul.low.u32")).unwrap_err();
    println!("{fault}");
    assert_eq!((fault.code, fault.place.source.is_some()), (codes::KERNEL_TEXT, true));
    let other = source().replace("triple", "single");
    assert_eq!(code(functions(backend, &other)), codes::DEVICE_REFUSES);
    assert_eq!(code(functions(backend, "// \0\n")), codes::DEVICE_REFUSES);
}

#[test]
fn a_driver_of_paper_runs_kernels() {
    let driver = Driver::new();
    for number in [0, 1] {
        let mut backend = driver.open(number).unwrap();
        assert_eq!(backend.name(), format!("cuda:{number} Paper {number}"));
        runs(&mut backend);
        refuses(&mut backend);
        // The device works on.
        runs(&mut backend);
    }
    driver.is_clean();
}

#[test]
fn a_device_of_this_machine_runs_kernels() {
    let Some(about) = devices().into_iter().next() else {
        println!("skipped: a_device_of_this_machine_runs_kernels: no device of NVIDIA");
        return;
    };
    println!("{about:?}");
    let mut backend = open(0).unwrap();
    assert_eq!((backend.about(), backend.name()), (&about, format!("cuda:0 {}", about.name).as_str()));
    runs(&mut backend);
    refuses(&mut backend);
    runs(&mut backend);
    assert_eq!(open(99).err().unwrap().code, codes::DEVICE_ABSENT);
}

/// Without a device: a driver that is not there, or has no device.
#[test]
fn a_machine_without_devices_says_so() {
    if !devices().is_empty() {
        println!("skipped: a_machine_without_devices_says_so: there is a device");
        return;
    }
    let fault = open(0).err().unwrap();
    println!("{fault}");
    assert!([codes::DEVICE_DRIVER, codes::DEVICE_ABSENT].contains(&fault.code), "{fault}");
}

#[test]
fn a_library_that_is_no_driver_is_named() {
    let this = Library::from(libloading::os::unix::Library::this());
    assert_eq!(Api::of(this).err().unwrap(), "it has no cuInit");
}

#[test]
fn devices_are_listed_and_counted() {
    let driver = Driver::new();
    let names: Vec<String> = device::all(&driver.api()).ok().unwrap().into_iter().map(|about| about.name).collect();
    assert_eq!(names, ["Paper 0", "Paper 1"]);
    let absent = driver.open(2).err().unwrap();
    assert_eq!((absent.code, absent.wanted.as_str()), (codes::DEVICE_ABSENT, "a number below 2"));
    driver.fails("cuInit", 100);
    let absent = driver.open(0).err().unwrap();
    assert_eq!((absent.code, absent.found.as_str()), (codes::DEVICE_ABSENT, "none"));
    driver.is_clean();
}

/// Each call fails once: there is a diagnostic, and nothing stays behind.
#[test]
fn every_failure_is_told_and_leaves_nothing() {
    let driver = Driver::new();
    let used = |backend: &mut CudaBackend| -> Result<(), Diagnostic> {
        let function = functions(backend, &source())?[0];
        let block = Piece { buffer: backend.buffer("step", 12)?, offset: 0, bytes: 12 };
        let x = Piece { buffer: backend.buffer("x", 400)?, offset: 0, bytes: 400 };
        backend.fill(x, &mut |_, part| part.fill(7))?;
        let sequence = backend.sequence(&[Dispatch { function, arguments: vec![block, x] }])?;
        backend.run(sequence, &[(0, [1, 1])])?;
        backend.read(x, &mut [0; 400])
    };
    driver.open(0).and_then(|mut backend| used(&mut backend)).unwrap();
    let calls = driver.calls();
    let may_fail = |name: &&&str| !["cuMemFree_v2", "cuModuleUnload", "cuStreamDestroy_v2"].contains(*name);
    let released = ["cuDevicePrimaryCtxRelease_v2", "cuGetErrorName", "cuGetErrorString", "cuMemGetInfo_v2"];
    let mut failed = 0;
    for &name in calls.iter().filter(may_fail).filter(|name| !released.contains(*name)) {
        driver.fails(name, 700);
        let fault = driver.open(0).and_then(|mut backend| used(&mut backend)).err().unwrap_or_else(|| panic!("{name}"));
        assert_eq!((fault.code, fault.found.as_str()), (codes::DEVICE_LOST, "PAPER_ERROR_700: of paper"), "{name}");
        driver.is_clean();
        failed += 1;
    }
    assert!(failed >= 18, "{calls:?}");
}

#[test]
fn large_buffers_are_filled_in_parts() {
    let driver = Driver::new();
    let mut backend = driver.open(0).unwrap();
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
