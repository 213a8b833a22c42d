//! Feeds damaged texts to the parser of IR text: `cargo run --release -p ds4-ir --example fuzz_text -- SECONDS [SEED]`.
//!
//! A text that breaks a rule makes it panic; the seed of its round is printed before.

#[path = "../tests/support/mutate.rs"]
mod mutate;
#[path = "../tests/support/random.rs"]
mod random;

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
        eprint!("\rround {seed}: {texts} texts, {accepted} accepted");
        let mut random = random::Random(seed);
        accepted += (0..ROUND).filter(|_| mutate::check(&mutate::mutated(&samples, &mut random))).count();
        texts += ROUND;
        seed += 1;
    }
    eprintln!();
}
