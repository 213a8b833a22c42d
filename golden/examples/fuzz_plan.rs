//! Fuzzes the plan reader for a number of seconds:
//! `cargo run --release -p ds4-golden --example fuzz_plan -- SECONDS [SEED]`

use std::time::{Duration, Instant};

use ds4_compiler::assemble::compile;
use ds4_compiler::frame::Form;
use ds4_golden::fuzz::PlanFuzzer;
use ds4_golden::run::Source;
use ds4_ir::plan::file::plan_bytes;
use ds4_kernels::Target;

fn main() -> Result<(), ds4_ir::Diagnostic> {
    let number = |i: usize| std::env::args().nth(i).and_then(|text| text.parse::<u64>().ok());
    let (seconds, seed) = (number(1).unwrap_or(60), number(2).unwrap_or(1));
    let source = Source::open("oracle/tiny-r")?;
    let compiled = compile(
        &source.checkpoint,
        &source.model,
        &source.options(|_| ()),
        "model",
        &Form { targets: &[Target::Wgsl], fusion: None },
    )?;
    let mut fuzzer = PlanFuzzer::new(plan_bytes(&compiled.graph, &compiled.plan), seed);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        fuzzer.step();
    }
    println!("{} plans refused, {} accepted, no panic", fuzzer.refused, fuzzer.accepted);
    Ok(())
}
