//! Whole models on a device beside the stored hashes: `models DEVICE [FEEDS]`.

fn main() {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().unwrap_or_else(|| "cpu".into());
    let feeds = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(5);
    match ds4_golden::models::report(&device, feeds, &mut |line| println!("{line}")) {
        Ok(failed) => println!("{failed} comparisons failed"),
        Err(diagnostic) => println!("{diagnostic}"),
    }
}
