//! Whole models on devices: the CPU's bits, which stand as hashes in `golden/hashes`.

#![allow(clippy::unwrap_used)]

use ds4_golden::devices;
use ds4_golden::models::{FEEDS, Hashes, LENGTHS, cases, compare, logits_hash, store, stored};
use ds4_kernels::Target;

/// The stored hashes are those of the CPU's executor. `BLESS=1` stores what it gives now.
#[test]
fn the_stored_hashes_are_the_cpus() {
    let mut found = Hashes::new();
    for case in cases().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = case.session(&case.plan(folder.path(), &[]).unwrap(), None).unwrap();
        let tokens = case.tokens().unwrap();
        for length in LENGTHS {
            let hash = logits_hash(&mut session, &tokens[..length], &[length]).unwrap();
            found.entry(case.name.clone()).or_default().insert(length.to_string(), hash);
        }
    }
    if std::env::var_os("BLESS").is_some() {
        store(&found).unwrap();
    }
    assert_eq!(found, stored().unwrap());
}

/// Every model through WGSL, on the Vulkan device of this machine: prefill, one by one, widths of 1 to 8, and for one model
/// of each kind of activations 300 tokens as one step and one by one.
#[test]
fn wgpu_has_the_cpus_bits() {
    for case in cases().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let plan = case.plan(folder.path(), &[Target::Wgsl]).unwrap();
        let begin = std::time::Instant::now();
        let mut session = case.session(&plan, devices::open("wgpu").unwrap()).unwrap();
        let opened = begin.elapsed().as_secs_f64();
        let compared = compare(&case, &mut session, FEEDS.len()).unwrap();
        println!("{}: opened in {opened:.1} s; {compared:?}", case.name);
        assert!(compared.iter().all(|c| c.equal), "{}: {compared:?}", case.name);
    }
}

/// The small models on the kernel machine, which reads the texts back: the logits of the first tokens, in every language.
#[test]
fn the_machine_has_the_cpus_bits() {
    for case in cases().unwrap().into_iter().filter(|case| case.path.starts_with("oracle")) {
        let folder = tempfile::tempdir().unwrap();
        let plan = case.plan(folder.path(), &Target::ALL).unwrap();
        let tokens = &case.tokens().unwrap()[..6];
        let mut cpu = case.session(&plan, None).unwrap();
        let wanted = logits_hash(&mut cpu, tokens, &[6]).unwrap();
        for target in Target::ALL {
            let begin = std::time::Instant::now();
            let device = devices::open(&format!("machine:{}", target.name())).unwrap();
            let mut session = case.session(&plan, device).unwrap();
            let found = logits_hash(&mut session, tokens, &[3, 1, 2]).unwrap();
            println!("{} {}: {:.1} s", case.name, target.name(), begin.elapsed().as_secs_f64());
            assert_eq!(found, wanted, "{} {}", case.name, target.name());
        }
    }
}
