//! The laws of rewriting are proved: obligations by two solvers, unary laws on all inputs, laws of values on random graphs.
//! False laws have counterexamples, so that an encoding that proves everything is noticed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ds4_golden::proofs::solvers::{SOLVERS, ask, find};
use ds4_golden::proofs::{Claim, blessing, exhaustive, lock_file, obligations, structural};
use ds4_golden::proofs::{examples::EXAMPLES, trials};
use ds4_ir::rules::lock::{self, Entry};

/// What takes longer is proved again only if its text changes.
const QUICK: f64 = 3.0;
/// Seconds for a solver on one claim when proofs are made.
const PATIENCE: f64 = 20.0;
/// Random inputs of each text of a law of values.
const INPUTS: u64 = 200;

fn is_answer(answer: &str) -> bool {
    answer == "sat" || answer == "unsat"
}

#[test]
fn every_obligation_has_two_proofs_and_quick_ones_are_proved_again() {
    let test = "every_obligation_has_two_proofs_and_quick_ones_are_proved_again";
    let claims = obligations();
    let entries = lock::parse(lock::TEXT);
    for claim in &claims {
        let of = || entries.iter().filter(|entry| claim.is_of(entry));
        assert!(of().count() >= 2, "{}: its text has changed and has no two proofs; {}", claim.head.name, how());
        assert!(of().all(|entry| entry.answer == claim.wanted), "{}: another answer", claim.head.name);
    }
    let Some(tools) = find(test) else { return };
    let mut again: BTreeMap<&str, Vec<&Claim>> = BTreeMap::new();
    for claim in &claims {
        let mut quick: Vec<&Entry> = entries.iter().filter(|entry| claim.is_of(entry) && entry.cost < QUICK).collect();
        quick.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let solvers = SOLVERS.into_iter().filter(|solver| quick.iter().take(2).any(|entry| entry.solver == *solver));
        solvers.for_each(|solver| again.entry(solver).or_default().push(claim));
    }
    let mut proved = 0;
    for (solver, claims) in &again {
        let found = ask(&tools, solver, PATIENCE, claims).unwrap();
        for (claim, (answer, _)) in claims.iter().zip(&found.answers) {
            assert_eq!(answer, claim.wanted, "{solver} on {}: {}", claim.head.name, claim.head.law);
            proved += 1;
        }
        println!("{solver} {}: {} answers as wanted", found.version, claims.len());
    }
    let slow = 2 * claims.len() - proved;
    println!("{} claims, {proved} answers again, {slow} slow ones by their hash", claims.len());
    assert!(proved * 10 > 2 * claims.len() * 9, "most are quick");
}

#[test]
fn laws_of_one_operand_hold_on_a_sample_of_all_inputs() {
    let entries = lock::parse(lock::TEXT);
    for (rule, claim) in exhaustive() {
        let entry = entries.iter().find(|entry| claim.is_of(entry));
        let entry = entry.unwrap_or_else(|| panic!("{}: its text has changed; {}", rule.head.name, how()));
        assert_eq!((entry.answer.as_str(), entry.cost), ("equal", (1u64 << 32) as f64), "{}", rule.head.name);
        assert!(trials::unary(rule, 4099).unwrap() > 1_000_000, "{}", rule.head.name);
    }
}

#[test]
fn laws_of_values_hold_on_random_inputs() {
    let entries = lock::parse(lock::TEXT);
    let mut compared = 0;
    for (rule, claim) in structural() {
        let is_known = entries.iter().any(|entry| claim.is_of(entry) && entry.answer == "equal");
        assert!(is_known, "{}: its text has changed; {}", rule.head.name, how());
        compared += tried(rule).unwrap();
    }
    println!("{compared} elements compared");
}

/// Elements compared in all texts of a rule.
fn tried(rule: &'static ds4_ir::rules::value::ValueRule) -> Result<usize, String> {
    let example = EXAMPLES.iter().find(|example| example.rule == rule.head.number);
    let example = example.ok_or_else(|| format!("{} has no example", rule.head.name))?;
    let mut compared = 0;
    for text in example.fires {
        let found = trials::instances_in(text, rule)?;
        let name = rule.head.name;
        if found.pairs.is_empty() {
            return Err(format!("{name} says nothing of\n{text}"));
        }
        compared += trials::compare(&found, INPUTS).map_err(|fault| format!("{name}: {fault} of\n{text}"))?;
    }
    Ok(compared)
}

/// Scalar laws hold on random words too, and false ones show on them or are subtle.
#[test]
fn scalar_laws_hold_on_random_words() {
    for rule in ds4_ir::rules::scalar::all() {
        assert_eq!(trials::scalar_difference(rule, 20_000, 1), None, "{}", rule.head.name);
    }
    for rule in ds4_ir::rules::scalar::FALSE_LAWS {
        assert!(trials::scalar_difference(rule, 20_000, 1).is_some(), "{}", rule.head.name);
    }
}

fn how() -> &'static str {
    "DS4_PROOFS=bless cargo test --release -p ds4-golden --test rules_proofs makes proofs"
}

/// Makes the proofs that are missing; does nothing unless it is asked to. The file is written after each stage.
#[test]
fn bless() {
    if !blessing() {
        return;
    }
    let old = lock::parse(&std::fs::read_to_string(lock_file()).unwrap());
    let mut entries: Vec<Entry> = vec![];
    let known = |claim: &Claim, solver: &str| old.iter().find(|e| claim.is_of(e) && e.solver == solver).cloned();
    for (rule, claim) in structural() {
        match tried(rule) {
            Ok(compared) => entries.push(claim.entry("trials", "1", "equal", compared as f64)),
            Err(fault) => println!("no proof: {fault}"),
        }
    }
    entries.extend(exhaustive().iter().filter_map(|(_, claim)| known(claim, "trials")));
    write(&mut entries);
    let tools = find("bless").expect("proofs need the solvers");
    let claims = obligations();
    for solver in SOLVERS {
        entries.extend(claims.iter().filter_map(|claim| known(claim, solver)));
        let missing: Vec<&Claim> = claims.iter().filter(|claim| known(claim, solver).is_none()).collect();
        let found = ask(&tools, solver, PATIENCE, &missing).unwrap();
        for (claim, (answer, seconds)) in missing.iter().zip(found.answers) {
            if is_answer(&answer) {
                entries.push(claim.entry(solver, &found.version, &answer, seconds));
            } else {
                println!("{solver} on {}: {answer}", claim.head.name);
            }
        }
        write(&mut entries);
    }
    for (rule, claim) in exhaustive().into_iter().filter(|(_, claim)| known(claim, "trials").is_none()) {
        entries.push(claim.entry("trials", "1", "equal", trials::unary(rule, 1).unwrap() as f64));
        write(&mut entries);
    }
}

fn write(entries: &mut [Entry]) {
    entries.sort_by(|a, b| (a.number, &a.solver).cmp(&(b.number, &b.solver)));
    let text: String = entries.iter().map(|entry| entry.line() + "\n").collect();
    std::fs::write(lock_file(), text).unwrap();
}
