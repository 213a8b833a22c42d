//! HIP text on the CPU: g++ compiles it behind a header that stands for the device, and every kernel leaves the bits that the
//! kernel machine leaves, in both orders of lanes.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use ds4_ir::Dim;
use ds4_ir::numerics::{Arith, canonical};
use ds4_kernels::emit::hip::{CPU_FLAGS, emit};
use ds4_kernels::emit::{StepBlock, entry_point};
use ds4_kernels::kernel::{Access, Builder, ExtentRow, Kernel, Number, Source, Type};
use ds4_kernels::machine::{Cells, LaneOrder, Machine, Numbers};
use libloading::Library;
use tempfile::TempDir;

use crate::samples::{D, Random, Sample, samples};
use crate::tools::{run, runs, shim, there, together};

/// What memory holds that nothing has written.
const UNWRITTEN: u32 = 0xdead_beef;

/// A library of kernels, and the folder that it lies in.
struct Kernels {
    library: Library,
    _folder: TempDir,
}

/// Compiles texts into one library, entry points renamed to `k0`, `k1`, ...; or what the compiler says.
fn compiled(texts: &[(String, String)], flags: &[&str]) -> Result<Kernels, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("kernels.cpp"), "#include \"hip_cpu.h\"\n".to_string() + &together(texts)).unwrap();
    let include = format!("-I{}", shim().display());
    let (object, kernels) = (path("kernels.so"), path("kernels.cpp"));
    let mut arguments = CPU_FLAGS.to_vec();
    arguments.extend(flags);
    arguments.extend([include.as_str(), "-o", &object, &kernels]);
    let (output, good) = run("g++", &arguments);
    if !good {
        return Err(output);
    }
    // SAFETY: the library was just made from our own text and header, whose initialisers do nothing.
    let library = unsafe { Library::new(&object) }.unwrap();
    Ok(Kernels { library, _folder: folder })
}

/// A launch of a kernel of a library.
struct Launch<'a> {
    number: usize,
    lanes: u32,
    width: u32,
    height: u32,
    /// The step's block, then the arguments.
    memories: &'a mut [Vec<u32>],
}

impl Kernels {
    /// Runs a whole grid; the message of the header if its lanes part.
    fn run(&self, launch: Launch<'_>, order: LaneOrder) -> Result<(), String> {
        type Run = unsafe extern "C" fn(*mut c_void, c_uint, c_uint, c_uint, c_int, *mut *mut c_void, c_uint) -> c_int;
        let Launch { number, lanes, width, height, memories } = launch;
        let mut pointers: Vec<*mut c_void> = memories.iter_mut().map(|m| m.as_mut_ptr().cast()).collect();
        let reversed = c_int::from(order == LaneOrder::Descending);
        // SAFETY: the types are those of the header. The kernel is given as many pointers as it takes, each to as many words
        // as the machine found it to touch, and nothing else runs in this library meanwhile.
        unsafe {
            let kernel = self.library.get::<*mut c_void>(format!("k{number}\0").as_bytes()).unwrap();
            let run = self.library.get::<Run>(b"hip_cpu_run\0").unwrap();
            let kernel = kernel.try_as_raw_ptr().unwrap();
            if run(kernel, lanes, width, height, reversed, pointers.as_mut_ptr(), pointers.len() as c_uint) == 0 {
                return Ok(());
            }
            let message = self.library.get::<unsafe extern "C" fn() -> *const c_char>(b"hip_cpu_message\0").unwrap();
            Err(CStr::from_ptr(message()).to_string_lossy().into_owned())
        }
    }
}

fn words(cells: &Cells<Numbers>) -> Vec<u32> {
    (0..cells.len()).map(|at| cells.word(&D, at).unwrap_or(UNWRITTEN)).collect()
}

/// NaN has one pattern that counts.
fn seen(word: u32, element: Type) -> u32 {
    if element == Type::F32 { canonical(f32::from_bits(word)).to_bits() } else { word }
}

#[test]
fn every_kernel_has_the_machines_bits_in_both_orders() {
    if !there("every_kernel_has_the_machines_bits_in_both_orders", "g++", runs("g++")) {
        return;
    }
    let samples = samples();
    let text = |kernel: &Kernel, block: &StepBlock| (entry_point(kernel), emit(kernel, block).unwrap());
    let texts: Vec<(String, String)> =
        samples.iter().flat_map(|s| s.kernels.iter().map(|kernel| text(kernel, &s.block))).collect();
    let library = compiled(&texts, &[]).unwrap();
    let mut compared = 0;
    let mut first = 0;
    for sample in &samples {
        for columns in [1, 3, 8] {
            let scalar = sample.scalar(columns);
            let mut memories = sample.memories();
            for (number, kernel) in (first..).zip(&sample.kernels) {
                compared += both_orders(&library, number, kernel, &sample.block.words(&scalar), &scalar, &mut memories);
            }
        }
        first += sample.kernels.len();
    }
    println!("{} kernels, {compared} words compared", texts.len());
    assert!(texts.len() > 100 && compared > 300_000);
}

/// Runs a kernel on the machine and in both orders on the CPU, and compares all its memory.
fn both_orders(
    library: &Kernels,
    number: usize,
    kernel: &Kernel,
    block: &[u32],
    scalar: &dyn Fn(Dim) -> u32,
    memories: &mut HashMap<Source, Cells<Numbers>>,
) -> usize {
    let sources: Vec<Source> = kernel.arguments().map(|(_, source, _)| source).collect();
    let mut cells: Vec<Cells<Numbers>> = sources.iter().map(|source| memories.remove(source).unwrap()).collect();
    let before: Vec<Vec<u32>> = [block.to_vec()].into_iter().chain(cells.iter().map(words)).collect();
    Machine::new(kernel, &D, LaneOrder::Ascending).unwrap().run(scalar, &mut cells).unwrap();
    let grid = kernel.grid_in(scalar).unwrap();
    let (width, height) = grid.folded().unwrap();
    for order in LaneOrder::ALL {
        let mut found = before.clone();
        if grid.total() > 0 {
            let launch = Launch { number, lanes: kernel.lanes, width, height, memories: &mut found };
            library.run(launch, order).unwrap_or_else(|message| panic!("{}: {message}", kernel.name));
        }
        for ((cells, found), (_, source, row)) in cells.iter().zip(&found[1..]).zip(kernel.arguments()) {
            for (at, (&found, wanted)) in found.iter().zip(words(cells)).enumerate() {
                let (found, wanted) = (seen(found, row.element), seen(wanted, row.element));
                assert_eq!(found, wanted, "{} {order:?} {source:?} {at}: {found:x}, wanted {wanted:x}", kernel.about);
            }
        }
    }
    let count = cells.iter().map(Cells::len).sum();
    memories.extend(sources.into_iter().zip(cells));
    count
}

/// A sum in 128 lanes, and the text of its kernel.
fn sum() -> (Sample, usize, String) {
    let sample = samples().swap_remove(3);
    let is_sum = |k: &Kernel| k.about.contains("lanes(128)") && !k.about.contains("id[");
    let at = sample.kernels.iter().position(is_sum).unwrap();
    let text = emit(&sample.kernels[at], &sample.block).unwrap();
    (sample, at, text)
}

/// What a text in the place of the sum's leaves in the last argument, in each order.
fn sums(sample: &Sample, at: usize, text: &str) -> [Result<Vec<u32>, String>; 2] {
    let kernel = &sample.kernels[at];
    let library = compiled(&[(entry_point(kernel), text.to_string())], &[]).unwrap();
    let scalar = sample.scalar(8);
    let (width, height) = kernel.grid_in(&scalar).unwrap().folded().unwrap();
    let cells = sample.memories();
    LaneOrder::ALL.map(|order| {
        let mut memories = vec![sample.block.words(&scalar)];
        memories.extend(kernel.arguments().map(|(_, source, _)| words(&cells[&source])));
        let launch = Launch { number: 0, lanes: kernel.lanes, width, height, memories: &mut memories };
        library.run(launch, order).map(|()| memories.pop().unwrap())
    })
}

/// Without any one barrier the sums are others, at least in one order.
#[test]
fn a_removed_barrier_shows() {
    if !there("a_removed_barrier_shows", "g++", runs("g++")) {
        return;
    }
    let (sample, at, text) = sum();
    let [ascending, descending] = sums(&sample, at, &text);
    assert_eq!(ascending, descending);
    let barriers: Vec<usize> = text.match_indices("__syncthreads();").map(|(at, _)| at).collect();
    assert!(barriers.len() >= 2);
    for barrier in barriers {
        let mut without = text.clone();
        without.replace_range(barrier..barrier + "__syncthreads();".len(), "");
        assert!(sums(&sample, at, &without).iter().any(|found| *found != ascending), "{without}");
    }
}

#[test]
fn a_barrier_that_some_lanes_miss_is_reported() {
    if !there("a_barrier_that_some_lanes_miss_is_reported", "g++", runs("g++")) {
        return;
    }
    let (sample, at, text) = sum();
    for (condition, message) in [
        ("lane < 3u", "workgroup 0: lane 0 is at a barrier, lane 3 is at a shuffle"),
        ("lane == 5u", "workgroup 0: lane 0 is at a shuffle, lane 5 is at a barrier"),
        ("number == 2u && lane != 0u", "workgroup 2: lane 0 is at a shuffle, lane 1 is at a barrier"),
    ] {
        let (before, after) = text.rsplit_once("__syncthreads();").unwrap();
        let parted = format!("{before}__syncthreads(); if ({condition}) {{ __syncthreads(); }}{after}");
        let [ascending, _] = sums(&sample, at, &parted);
        assert_eq!(ascending.unwrap_err(), message);
    }
    let (before, after) = text.split_once("__syncthreads();").unwrap();
    let left = format!("{before}if (lane == 9u) {{ return; }} __syncthreads();{after}");
    let [_, descending] = sums(&sample, at, &left);
    assert_eq!(descending.unwrap_err(), "workgroup 15: lane 0 is at a barrier, lane 9 has left");
}

/// The compiler itself refuses fast math.
#[test]
fn the_guard_stops_fast_math() {
    if !there("the_guard_stops_fast_math", "g++", runs("g++")) {
        return;
    }
    let (sample, at, text) = sum();
    let texts = [(entry_point(&sample.kernels[at]), text)];
    for flag in ["-ffast-math", "-ffinite-math-only"] {
        let output = compiled(&texts, &[flag]).err().unwrap();
        assert!(output.contains("this kernel needs IEEE arithmetic"), "{flag}: {output}");
    }
}

/// A kernel of one argument and one result.
fn function(value: impl FnOnce(&Builder, Number) -> Number, count: u32) -> Kernel {
    let b = Builder::new("function", &[], 64);
    let group = b.group(ExtentRow::constant(count / 64));
    let x = b.argument(Source::Tokens, Type::F32, Access::Read, "x");
    let out = b.argument(Source::Slot(ds4_ir::Value(0)), Type::F32, Access::Write, "out");
    let at = b.add_int(b.mul_int(group, b.word(64)), b.lane());
    b.store(out, at, value(&b, b.load("x_at", x, at)));
    b.finish()
}

/// Over every significand of both parities of the exponent, the edges, and random bits.
#[test]
fn the_root_is_correctly_rounded() {
    if !there("the_root_is_correctly_rounded", "g++", runs("g++")) {
        return;
    }
    let mut random = Random(9);
    let mut inputs: Vec<u32> = (0x3f80_0000..0x4080_0000).step_by(3).collect();
    inputs.extend(
        (0..0x1000).chain(0x7f_f000..0x80_1000).chain(0x7f7f_f000..0x7f80_1000).chain(0x8000_0000..0x8000_0100),
    );
    inputs.extend((0..1 << 20).map(|_| random.next()));
    inputs.truncate(inputs.len() / 64 * 64);
    let kernel = function(|b, x| b.sqrt(x), inputs.len() as u32);
    let text = emit(&kernel, &StepBlock::default()).unwrap();
    let library = compiled(&[("function".into(), text)], &[]).unwrap();
    let (width, height) = kernel.grid_in(&|_| 0).unwrap().folded().unwrap();
    let mut memories = vec![StepBlock::default().words(&|_| 0), inputs.clone(), vec![UNWRITTEN; inputs.len()]];
    let launch = Launch { number: 0, lanes: 64, width, height, memories: &mut memories };
    library.run(launch, LaneOrder::Ascending).unwrap();
    for (&bits, &found) in inputs.iter().zip(&memories[2]) {
        let wanted = f32::from_bits(bits).sqrt().to_bits();
        assert_eq!(seen(found, Type::F32), seen(wanted, Type::F32), "{bits:#x}");
    }
}
