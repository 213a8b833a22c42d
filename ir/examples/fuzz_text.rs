//! Feeds damaged texts to the parser of IR text: `cargo run --release -p ds4-ir --example fuzz_text -- SECONDS [SEED]`.
//!
//! A text that breaks a rule makes it panic, and the seed of its round is printed.

#[path = "../tests/support/mutate.rs"]
mod mutate;
#[path = "../tests/support/random.rs"]
mod random;

use std::io::IsTerminal;
use std::panic::{catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Texts between two looks at the clock.
const ROUND: usize = 1000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(seconds)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: fuzz_text SECONDS [SEED]");
        std::process::exit(2);
    };
    let mut seed = seed.and_then(Result::ok).unwrap_or(1);
    let samples = mutate::samples();
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut texts, mut accepted) = (0, 0);
    while Instant::now() < until {
        // Progress on a terminal; in a pipe only the end is said.
        if std::io::stderr().is_terminal() {
            eprint!("\rround {seed}: {texts} texts, {accepted} accepted");
        }
        let round = catch_unwind(|| {
            let mut random = random::Random(seed);
            (0..ROUND).filter(|_| mutate::check(&mutate::mutated(&samples, &mut random))).count()
        });
        accepted += round.unwrap_or_else(|panic| {
            eprintln!("\nround {seed} found it");
            resume_unwind(panic)
        });
        texts += ROUND;
        seed += 1;
    }
    println!("{texts} texts, {accepted} accepted, no panic");
}
