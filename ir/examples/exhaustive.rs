//! Runs the functions of the numeric contract over all 2^32 inputs: largest error and hash of all outputs.
//!
//! `cargo run --release -p ds4-ir --example exhaustive -- [function ...]` (all without names). Exits with 1 if an
//! error or a hash differs from the recorded one.

#[path = "../src/numerics/reference.rs"]
mod reference;

use ds4_ir::numerics::hashes::{CHUNK, RECORDS, Record, combine, digest, sample_hash};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

const CHUNKS: u32 = 256;
const BLOCK: u32 = 1 << 14;

/// An error with the input that has it.
#[derive(Clone, Copy)]
struct Worst {
    error: f64,
    input: u32,
}

impl Worst {
    const NONE: Worst = Worst { error: 0.0, input: 0 };

    /// The larger error; of equals the lower input, so that the order of merging does not matter.
    fn merge(self, other: Worst) -> Worst {
        let later = other.error == self.error && other.input > self.input;
        if other.error < self.error || later { self } else { other }
    }
}

/// What is learnt from one chunk, or from all.
struct Findings {
    chunk: u32,
    digest: [u8; 32],
    /// Over the inputs that count.
    normal: Worst,
    /// Over the others: small results, whose ulp is 2^-149.
    apart: Worst,
}

fn examine(record: &Record, chunk: u32) -> Findings {
    let exact = reference::exact(record.name);
    let mut output = vec![0.0; CHUNK as usize];
    let (mut normal, mut apart) = (Worst::NONE, Worst::NONE);
    for (block, part) in output.chunks_mut(BLOCK as usize).enumerate() {
        let first = chunk * CHUNK + block as u32 * BLOCK;
        let input: Vec<f32> = (first..=first + (BLOCK - 1)).map(f32::from_bits).collect();
        (record.apply)(&input, part);
        for (&x, &y) in input.iter().zip(part.iter()) {
            let wanted = exact(f64::from(x));
            let error = reference::error(y, wanted);
            let class = match reference::counts(record.name, x, wanted) {
                true => &mut normal,
                false => &mut apart,
            };
            if error > class.error {
                let input = x.to_bits();
                *class = Worst { error, input };
            }
        }
    }
    Findings { chunk, digest: digest([&output[..]]), normal, apart }
}

fn examine_all(record: &Record, threads: usize) -> Vec<Findings> {
    let next = AtomicU32::new(0);
    let worker = || {
        let mut found = Vec::new();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= CHUNKS {
                return found;
            }
            found.push(examine(record, chunk));
        }
    };
    let mut all: Vec<Findings> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let join = |w: std::thread::ScopedJoinHandle<'_, _>| w.join().expect("a worker panicked");
        workers.into_iter().flat_map(join).collect()
    });
    all.sort_by_key(|f| f.chunk);
    all
}

fn report(record: &Record, threads: usize) -> bool {
    let found = examine_all(record, threads);
    let worst = |class: fn(&Findings) -> Worst| found.iter().map(class).fold(Worst::NONE, Worst::merge);
    let (normal, apart) = (worst(|f| f.normal), worst(|f| f.apart));
    let hash = combine(&found.iter().map(|f| f.digest).collect::<Vec<_>>());
    let sample = sample_hash(record.apply);
    println!("{}", record.name);
    for (label, Worst { error, input }) in [("ulp", normal), ("ulp apart", apart)] {
        let x = f32::from_bits(input);
        println!("  error  {error:.4} {label}, at {input:#010x} ({x:e})");
    }
    println!("  hash   {hash}\n  sample {sample}");
    let same = (normal.error - record.error).abs() < 1e-4
        && normal.input == record.worst
        && hash == record.hash
        && sample == record.sample;
    println!("  {}", if same { "as recorded" } else { "NOT as recorded" });
    same
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if let Some(name) = names.iter().find(|n| RECORDS.iter().all(|r| r.name != **n)) {
        let known = RECORDS.map(|r| r.name).join(" ");
        eprintln!("no function `{name}`; there are: {known}");
        return ExitCode::from(2);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = |r: &&Record| names.is_empty() || names.iter().any(|n| n == r.name);
    let mut same = true;
    for record in RECORDS.iter().filter(wanted) {
        same &= report(record, threads);
    }
    ExitCode::from(u8::from(!same))
}
