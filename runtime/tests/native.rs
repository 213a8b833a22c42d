//! Kernels of every schedule, operator and format on the devices of this machine, through the drivers of their makers: the
//! bits are those of the kernel machine. PTX and HIP on a device of NVIDIA, HIP on one of AMD. Without a device there is
//! nothing to run, and the test says so.

#![allow(clippy::unwrap_used)]

#[path = "../../kernels/tests/hip/samples.rs"]
#[allow(dead_code)]
mod samples;

use std::collections::HashMap;
use std::time::Instant;

use ds4_ir::numerics::canonical;
use ds4_ir::{Diagnostic, Dim};
use ds4_kernels::Target;
use ds4_kernels::emit::{entry_point, hip, ptx};
use ds4_kernels::kernel::{Kernel, Source, Type};
use ds4_kernels::machine::{Cells, LaneOrder, Machine, Numbers};
use ds4_runtime::device::backend::{Backend, Dispatch, Function, Piece, Text};
use ds4_runtime::device::cache::Cache;
use ds4_runtime::device::native::{Interface, NativeBackend, devices, open_cuda, open_cuda_with_hip, open_hip};

use samples::{D, Sample, samples};

/// What memory holds that nothing has written.
const UNWRITTEN: u32 = 0xdead_beef;

type Open = fn(&Cache) -> Result<NativeBackend, Diagnostic>;

/// How devices are opened, and the interface that they are found by.
const WAYS: [(&str, Interface, Open); 3] = [
    ("PTX on a device of NVIDIA", Interface::Cuda, |_| open_cuda(0)),
    ("HIP on a device of NVIDIA", Interface::Cuda, |cache| open_cuda_with_hip(0, cache)),
    ("HIP on a device of AMD", Interface::Hip, |cache| open_hip(0, cache)),
];

#[test]
fn every_kernel_has_the_machines_bits() {
    let samples = samples();
    for (way, interface, open) in WAYS {
        if let Err(reason) = devices(interface) {
            println!("skipped: {way}: {reason}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        // The second time code comes from the cache.
        for _ in 0..2 {
            let begun = Instant::now();
            let mut backend = match open(&Cache::at(folder.path())) {
                Err(fault) if fault.message.contains("compiler") => {
                    println!("skipped: {way}: {}", fault.found);
                    break;
                }
                opened => opened.unwrap(),
            };
            let mut words = 0;
            let functions: Vec<Vec<Function>> = samples.iter().map(|s| functions(&mut backend, s)).collect();
            let ready = begun.elapsed();
            for (sample, functions) in samples.iter().zip(&functions) {
                words +=
                    [1, 3, 8].map(|columns| compare(&mut backend, sample, functions, columns)).iter().sum::<usize>();
            }
            let kernels: usize = functions.iter().map(Vec::len).sum();
            println!("{way}, {}: {kernels} kernels ready in {ready:?}, {words} words compared", backend.name());
            assert!(kernels > 100 && words > 300_000);
        }
    }
}

fn functions(backend: &mut NativeBackend, sample: &Sample) -> Vec<Function> {
    let emit = if backend.target() == Target::Ptx { ptx::emit } else { hip::emit };
    let emitted = |kernel: &Kernel| (entry_point(kernel), emit(kernel, &sample.block).unwrap());
    let all: Vec<(String, String)> = sample.kernels.iter().map(emitted).collect();
    let texts = all.iter().zip(&sample.kernels).map(|((entry, source), kernel)| {
        let arguments = kernel.arguments().count() as u32 + 1;
        Text { name: &kernel.name, entry, source, lanes: kernel.lanes, arguments }
    });
    backend.functions(&texts.collect::<Vec<_>>(), &mut || ()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Runs the kernels of a sample one after the other; the number of words that were compared.
fn compare(backend: &mut NativeBackend, sample: &Sample, functions: &[Function], columns: u32) -> usize {
    let scalar = sample.scalar(columns);
    let block = buffer(backend, &sample.block.words(&scalar));
    let mut memories = sample.memories();
    let launches = sample.kernels.iter().zip(functions);
    launches.map(|(kernel, &function)| launch(backend, kernel, function, block, &scalar, &mut memories)).sum()
}

fn launch(
    backend: &mut NativeBackend,
    kernel: &Kernel,
    function: Function,
    block: Piece,
    scalar: &dyn Fn(Dim) -> u32,
    memories: &mut HashMap<Source, Cells<Numbers>>,
) -> usize {
    let sources: Vec<Source> = kernel.arguments().map(|(_, source, _)| source).collect();
    let mut cells: Vec<Cells<Numbers>> = sources.iter().map(|source| memories.remove(source).unwrap()).collect();
    let pieces: Vec<Piece> = cells.iter().map(|cells| buffer(backend, &words(cells))).collect();
    Machine::new(kernel, &D, LaneOrder::Ascending).unwrap().run(scalar, &mut cells).unwrap();
    let grid = kernel.grid_in(scalar).unwrap();
    let (width, height) = grid.folded().unwrap();
    if grid.total() > 0 {
        let arguments = [block].into_iter().chain(pieces.iter().copied()).collect();
        let sequence = backend.sequence(&[Dispatch { function, arguments }]).unwrap();
        backend.run(sequence, &[(0, [width, height])]).unwrap();
    }
    for ((cells, &piece), (_, source, row)) in cells.iter().zip(&pieces).zip(kernel.arguments()) {
        let mut bytes = vec![0; 4 * cells.len()];
        backend.read(piece, &mut bytes).unwrap();
        let found = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
        for (at, (found, wanted)) in found.zip(words(cells)).enumerate() {
            let (found, wanted) = (seen(found, row.element), seen(wanted, row.element));
            assert_eq!(found, wanted, "{} {source:?} {at}: {found:x}, wanted {wanted:x}", kernel.about);
        }
    }
    let count = cells.iter().map(Cells::len).sum();
    memories.extend(sources.into_iter().zip(cells));
    count
}

/// A buffer of its own with these words.
fn buffer(backend: &mut NativeBackend, words: &[u32]) -> Piece {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let buffer = backend.buffer("words", bytes.len() as u64).unwrap();
    let piece = Piece { buffer, offset: 0, bytes: bytes.len() as u64 };
    backend.fill(piece, &mut |at, part| part.copy_from_slice(&bytes[at as usize..][..part.len()])).unwrap();
    piece
}

fn words(cells: &Cells<Numbers>) -> Vec<u32> {
    (0..cells.len()).map(|at| cells.word(&D, at).unwrap_or(UNWRITTEN)).collect()
}

/// NaN has one pattern that counts.
fn seen(word: u32, element: Type) -> u32 {
    if element == Type::F32 { canonical(f32::from_bits(word)).to_bits() } else { word }
}
