//! Plans changed in every way that lists, memory, graphs and kernels can be wrong: each is refused by the check that `ds4c check`
//! and `ds4-run --verify` do, or with the model at hand; or it states the same thing, which is shown by its bits.

#![allow(clippy::unwrap_used)]

#[path = "plan_mutants/edit.rs"]
mod edit;
#[path = "plan_mutants/graphs.rs"]
mod graphs;
#[path = "plan_mutants/kernels.rs"]
mod kernels;
#[path = "plan_mutants/lists.rs"]
mod lists;
#[path = "plan_mutants/memory.rs"]
mod memory;
#[path = "plan_mutants/subject.rs"]
mod subject;

use std::collections::BTreeMap;

use ds4_golden::proofs::trials::Words;
use ds4_kernels::Target;

use edit::Mutant;
use subject::{Stage, Subject};

/// A way to change a plan at an entry point; it says what was changed, or nothing if there is nothing to change.
type Change = fn(&mut Mutant, usize, &mut Words) -> Option<String>;

/// A kind of mutants.
struct Kind {
    name: &'static str,
    change: Change,
    /// Whether every mutant of the kind says the same in other words.
    harmless: bool,
}

const fn kind(name: &'static str, change: Change) -> Kind {
    Kind { name, change, harmless: false }
}

const fn harmless(name: &'static str, change: Change) -> Kind {
    Kind { name, change, harmless: true }
}

/// What became of the mutants of a kind.
#[derive(Clone, Default)]
struct Count {
    /// Refused, by stage.
    refused: BTreeMap<Stage, usize>,
    accepted: usize,
}

/// Tries `times` mutants of each kind at each entry point.
fn mutate(subject: &Subject, kinds: &[&[Kind]], times: usize, counts: &mut BTreeMap<&'static str, Count>) {
    let mut words = Words::new(23);
    for kind in kinds.iter().copied().flatten() {
        for i in 0..3 * times {
            let mut mutant = subject.mutant();
            let Some(what) = (kind.change)(&mut mutant, i % 3, &mut words) else { continue };
            if subject.is_same(&mutant) {
                continue;
            }
            let count = counts.entry(kind.name).or_default();
            match subject.refused(&mutant) {
                Some((stage, _)) => *count.refused.entry(stage).or_default() += 1,
                None => {
                    count.accepted += 1;
                    match subject.difference(&mutant) {
                        None => println!("{}: accepted with the same bits: {}: {what}", subject.name, kind.name),
                        Some(fault) => panic!("{}: {}: accepted, but {fault}: {what}", subject.name, kind.name),
                    }
                }
            }
        }
    }
}

fn report(counts: &BTreeMap<&'static str, Count>) -> [usize; 2] {
    println!("{:<34} refused by lists, certificate, kernels, model; accepted with the same bits", "kind");
    let mut totals = [0, 0];
    for (name, count) in counts {
        let by = |stage| count.refused.get(&stage).copied().unwrap_or(0);
        let stages = [Stage::Lists, Stage::Certificate, Stage::Kernels, Stage::Model].map(by);
        println!("{name:<34} {stages:?} {}", count.accepted);
        totals[0] += stages.iter().sum::<usize>();
        totals[1] += count.accepted;
    }
    println!("{} mutants refused, {} accepted", totals[0], totals[1]);
    totals
}

/// Every kind has been refused, but those that say the same in other words.
fn check_kinds(kinds: &[&[Kind]], counts: &BTreeMap<&'static str, Count>) {
    for kind in kinds.iter().copied().flatten() {
        let count = counts.get(kind.name).cloned().unwrap_or_default();
        let refused: usize = count.refused.values().sum();
        assert!(refused > 0 || kind.harmless && count.accepted > 0, "no mutant is refused: {}", kind.name);
    }
}

const SMALL: &str = "oracle/tiny-r";
const KJV: &str = "models/kjv-9m/model.q8.gguf";
const ALL: [&[Kind]; 3] = [lists::KINDS, memory::KINDS, graphs::KINDS];

/// Tries the kinds, so many mutants at each entry point; `DS4_MUTANTS=8` is eight times as many.
fn run(subject: &Subject, kinds: &[&[Kind]], times: usize) -> [usize; 2] {
    let factor = std::env::var("DS4_MUTANTS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut counts = BTreeMap::new();
    mutate(subject, kinds, times * factor, &mut counts);
    if times >= ENOUGH {
        check_kinds(kinds, &counts);
    }
    report(&counts)
}

/// As many mutants of a kind that at least one of them is wrong.
const ENOUGH: usize = 8;

#[test]
fn mutants_of_a_small_plan_are_refused() {
    let [refused, accepted] = run(&Subject::new(SMALL, "lavapipe", &[]), &ALL, 16);
    assert!(refused > 2500 && accepted < refused / 3, "{refused} refused, {accepted} accepted");
}

/// The same with kernels, which have to be those of the lists. Each is made again, so there are fewer.
#[test]
fn mutants_of_a_plan_with_kernels_are_refused() {
    let [refused, accepted] = run(&Subject::new(SMALL, "generic", &[Target::Wgsl]), &ALL, 2);
    assert!(refused > 300 && accepted < refused / 4, "{refused} refused, {accepted} accepted");
}

#[test]
fn mutants_of_kernels_are_refused() {
    let [refused, accepted] = run(&Subject::new(SMALL, "generic", &[Target::Wgsl]), &[kernels::KINDS], 8);
    assert!(refused > 300 && accepted < refused / 4, "{refused} refused, {accepted} accepted");
}

#[test]
fn mutants_of_the_trained_model_are_refused() {
    let [refused, accepted] = run(&Subject::new(KJV, "generic", &[]), &ALL, 5);
    assert!(refused > 700 && accepted < refused / 3, "{refused} refused, {accepted} accepted");
}

#[test]
fn mutants_of_the_trained_models_kernels_are_refused() {
    let [refused, accepted] = run(&Subject::new(KJV, "h200", &[Target::Wgsl]), &[lists::KINDS, kernels::KINDS], 1);
    assert!(refused > 60 && accepted < refused / 3, "{refused} refused, {accepted} accepted");
}

/// The unchanged plans are accepted, and a fault that is no mutant of a table shows in the bits: the comparison has teeth.
#[test]
fn plans_are_accepted_and_the_bits_have_teeth() {
    for targets in [&[][..], &[Target::Wgsl]] {
        let subject = Subject::new("oracle/tiny-r", "generic", targets);
        let plain = subject.mutant();
        assert_eq!(subject.refused(&plain), None);
        assert_eq!(subject.difference(&plain), None);
        let verified = subject.verified(&plain).unwrap().join("\n");
        assert!(verified.contains("steps by structural (lists checked): absorb "), "{verified}");
        assert_eq!(verified.contains("kernels are those of the launches"), !targets.is_empty(), "{verified}");
        let mut wrong = subject.mutant();
        wrong.plan.parts[0].offset += 64;
        assert!(matches!(subject.refused(&wrong), Some((Stage::Model, _))));
        assert!(subject.difference(&wrong).is_some());
        let mut wrong = subject.mutant();
        wrong.plan.source_text.iter_mut().filter(|c| **c == b'+').for_each(|c| *c = b'-');
        assert_eq!(subject.verified(&wrong).is_err(), !targets.is_empty(), "`ds4-run --verify` looks at kernels");
        let mut wrong = subject.mutant();
        wrong.certificate.value_lemmas.pop();
        assert!(subject.verified(&wrong).is_err(), "`ds4-run --verify` looks at the certificate");
    }
}
