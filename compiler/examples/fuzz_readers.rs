//! Feeds faulty checkpoints to the readers for some seconds.
//!
//! `cargo run --release -p ds4-compiler --example fuzz_readers -- gguf 60 [SEED]`, or `safetensors`.
//! A panic ends the run; the faulty files stay where the message says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ds4_compiler::sample::Fuzzer;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (reader, seconds, seed) = match words[..] {
        [reader, seconds] => (reader, seconds.parse(), Ok(1)),
        [reader, seconds, seed] => (reader, seconds.parse(), seed.parse()),
        _ => return usage(),
    };
    let (Ok(seconds), Ok(seed)) = (seconds, seed) else {
        return usage();
    };
    let directory = std::env::temp_dir().join(format!("ds4-fuzz-{reader}-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(&directory) {
        eprintln!("cannot make {}: {error}", directory.display());
        return ExitCode::FAILURE;
    }
    let fuzzer = match reader {
        "gguf" => Fuzzer::gguf(&directory, seed),
        "safetensors" => Fuzzer::safetensors(&directory, seed),
        _ => return usage(),
    };
    let passed = fuzz(fuzzer, Duration::from_secs(seconds));
    if passed {
        // What is left of a run without a finding is of no use to anybody.
        let _ = std::fs::remove_dir_all(&directory);
        return ExitCode::SUCCESS;
    }
    eprintln!("the faulty files are in {}", directory.display());
    ExitCode::FAILURE
}

fn usage() -> ExitCode {
    eprintln!("usage: fuzz_readers gguf|safetensors SECONDS [SEED]");
    ExitCode::FAILURE
}

/// Whether no step panicked.
fn fuzz(mut fuzzer: Fuzzer, time: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < time {
        match catch_unwind(AssertUnwindSafe(|| fuzzer.step())) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                eprintln!("cannot write a file: {error}");
                return false;
            }
            Err(_) => {
                eprintln!("panic after {} files", fuzzer.accepted + fuzzer.refused);
                return false;
            }
        }
    }
    println!("{} files accepted, {} refused", fuzzer.accepted, fuzzer.refused);
    true
}
