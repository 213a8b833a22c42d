//! The inputs of the kernel suite have teeth: faults that compilers and devices are known for change results.

#![allow(clippy::unwrap_used)]

mod faults;
mod graphs;

use std::fmt::Write;

use ds4_compiler::schedule::schedule;
use ds4_golden::cases::{self, Case};
use ds4_golden::machine::Model;
use ds4_kernels::machine::{Domain, LaneOrder};

use faults::*;
use graphs::*;

/// Cases that say nothing more than others but take long: grids and rows beyond ordinary sizes.
const LONG: [&str; 2] = ["large", "wide"];

/// The cases whose values are launches of their own: each is about one thing. Fused ones are about what is computed together.
fn own_cases() -> Vec<Case> {
    cases::all().into_iter().filter(|case| case.profiles.is_empty()).collect()
}

fn short_cases() -> Vec<Case> {
    own_cases().into_iter().filter(|case| !LONG.contains(&case.name.as_str())).collect()
}

/// Elements that were compared, and those that differ from the evaluator's, with a case's kernels in a domain. A trap is an
/// element that differs.
fn on_machine<D: Domain>(case: &Case, domain: D) -> (u64, u64) {
    let graph = case.graph.view();
    let schedule = schedule(&graph, case.bounds);
    let source = (&case.weights as &dyn ds4_ir::eval::WeightSource, case.weights.scale_blocks());
    let mut model = Model::over(domain, graph, source, case.bounds, &schedule).unwrap();
    let (mut elements, mut wrong) = (0, 0);
    for (i, feed) in case.feeds.iter().enumerate() {
        match model.step(feed.step, &feed.tokens, LaneOrder::ALL[i % 2]) {
            Ok(compared) => {
                elements += compared.elements;
                wrong += compared.wrong;
            }
            Err(_) => return (elements, wrong + 1),
        }
    }
    (elements, wrong)
}

/// All cases on the kernel machine: no race, no access beyond a memory, no word that nobody wrote, and the evaluator's bits.
#[test]
fn sound_kernels_have_the_evaluators_bits() {
    let mut all = 0;
    for case in own_cases() {
        let (elements, wrong) = on_machine(&case, Faulty::<Sound>::new());
        assert!(wrong == 0 && elements > 0, "{} {}: {wrong} of {elements}", case.family, case.name);
        all += elements;
    }
    println!("{all} elements");
    assert!(all > 10_000_000, "{all}");
}

/// The cases that a fault of the arithmetic changes.
fn bitten<R: Fault>(cases: &[Case]) -> Vec<bool> {
    cases.iter().map(|case| on_machine(case, Faulty::<R>::new()).1 > 0).collect()
}

/// For each family that a fault changes anything in: how many of its cases, and which not.
fn report(fault: &str, cases: &[Case], changed: &[bool]) -> String {
    let mut text = format!("{fault}\n");
    for (family, _) in cases::FAMILIES {
        let of = |wanted: bool| {
            let both = cases.iter().zip(changed).filter(|(case, changed)| case.family == family && **changed == wanted);
            both.map(|(case, _)| case.name.as_str()).collect::<Vec<_>>()
        };
        let (yes, no) = (of(true), of(false));
        let names = match (yes.len(), no.len()) {
            (0, _) => continue,
            (_, 0) => "all".to_string(),
            // The shorter list says as much.
            (yes_len, no_len) if yes_len <= no_len => yes.join(" "),
            _ => format!("all but {}", no.join(" ")),
        };
        let _ = writeln!(text, "  {family} {}/{}: {names}", yes.len(), yes.len() + no.len());
    }
    text
}

/// Every fault changes a case of each family that has the operation in question; the snapshot says which ones.
#[test]
fn faults_of_arithmetic_change_bits() {
    let cases = short_cases();
    let all = [
        ("products fused into sums", bitten::<Contracted>(&cases), &["map", "product"][..]),
        ("subnormals flushed", bitten::<Flushed>(&cases), &["map", "states", "widen", "reduce", "quantise", "product"]),
        ("results flushed", bitten::<FlushedResults>(&cases), &["map", "widen", "reduce", "product"]),
        ("reciprocals", bitten::<Approximate>(&cases), &["map", "quantise", "product"]),
        ("rounded towards zero", bitten::<Truncated>(&cases), &["map", "reduce", "quantise", "product"]),
        ("operands exchanged", bitten::<Exchanged>(&cases), &["map", "widen", "quantise", "product"]),
        ("no -0", bitten::<Unsigned>(&cases), &["map", "views", "states", "widen", "reduce", "product"]),
        ("products reassociated", bitten::<Reassociated>(&cases), &["map", "product"]),
        ("ties away from zero", bitten::<OtherIntegers>(&cases), &["map", "quantise"]),
        ("NaN compares as true", bitten::<Unordered>(&cases), &["map"]),
        ("zeros differ", bitten::<EqualBits>(&cases), &["map"]),
        ("shifts without sign", bitten::<LogicalShift>(&cases), &["map", "widen", "reduce", "product", "choose"]),
    ];
    let mut text = String::new();
    for (fault, changed, families) in &all {
        text.push_str(&report(fault, &cases, changed));
        for family in *families {
            let touched = cases.iter().zip(changed).any(|(case, changed)| case.family == *family && *changed);
            assert!(touched, "{fault}: no case of {family} changes");
        }
    }
    insta::assert_snapshot!("faults", text);
}

/// Every sum of every case shows its tree.
#[test]
fn another_tree_changes_every_sum() {
    let (mut tried, mut same) = (0, Vec::new());
    for case in short_cases() {
        for (v, tree, other, changed) in with_other_trees(&case) {
            tried += 1;
            if !changed {
                same.push(format!("{} {}: {v} in {other:?} for {tree:?}", case.family, case.name));
            }
        }
    }
    assert!(tried > 200 && same.is_empty(), "{tried} tried, {same:#?}");
}

/// Every scalar operation of every case, taken for another one or with operands exchanged.
#[test]
fn other_scalar_operations_change_bits() {
    let (mut tried, mut same) = (0, Vec::new());
    for case in short_cases().iter().filter(|case| case.family == "map") {
        for (what, changed) in with_other_scalars(case) {
            tried += 1;
            if !changed {
                same.push(format!("{}: {what}", case.name));
            }
        }
    }
    assert!(tried > 150, "{tried}");
    insta::assert_snapshot!("same_scalars", same.join("\n"));
}

#[test]
fn parts_of_a_concat_are_not_exchanged() {
    let found: Vec<bool> = short_cases().iter().flat_map(with_exchanged_parts).collect();
    assert!(found.len() >= 3 && found.iter().all(|changed| *changed), "{found:?}");
}

#[test]
fn another_rule_chooses_otherwise() {
    let cases: Vec<Case> = short_cases().into_iter().filter(|case| case.family == "choose").collect();
    for rule in &RULES {
        let changed: Vec<&str> =
            cases.iter().filter(|case| chooses_otherwise(case, rule)).map(|case| case.name.as_str()).collect();
        println!("{}: {}", rule.name, changed.join(" "));
        let of = |op: &str| changed.iter().filter(|name| name.starts_with(op)).count();
        match rule.name == RULES[0].name {
            true => assert_eq!(changed.len(), 0, "{changed:?}"),
            false => assert!(of("top_k") >= 2 && of("arg_max") >= 1, "{}: {changed:?}", rule.name),
        }
    }
}
