//! Random tables survive the text, and no damaged text makes the parser panic.

#[path = "support/mutate.rs"]
mod mutate;
#[path = "support/random.rs"]
mod random;
#[path = "support/random_graph.rs"]
mod random_graph;

use ds4_ir::text::{parse, print};
use proptest::prelude::*;

/// The columns in which two tables differ.
fn differing(a: &ds4_ir::GraphTables, b: &ds4_ir::GraphTables) -> String {
    let (a, b) = (a.view(), b.view());
    let pairs = a.sections().into_iter().zip(b.sections());
    let names: Vec<_> = pairs.filter(|(a, b)| a.bytes != b.bytes).map(|(a, _)| a.name).collect();
    names.join(", ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_of_random_tables_gives_them_again(seed: u64) {
        let tables = random_graph::random_graph(seed);
        let text = print(&tables.view());
        let again = parse(&text, "printed").map_err(|fault| TestCaseError::fail(format!("{fault}\n{text}")))?;
        prop_assert!(again == tables, "{} differ in\n{text}", differing(&again, &tables));
        prop_assert_eq!(print(&again.view()), text);
    }
}

#[test]
fn text_random_tables_hold_every_operation() {
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..3000 {
        found.extend(random_graph::random_graph(seed).value_op);
    }
    let missing: Vec<_> = ds4_ir::Op::ALL.iter().filter(|&&op| !found.contains(&(op as u32))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn text_damaged_never_makes_the_parser_panic() {
    let samples = mutate::samples();
    let mut random = random::Random(7);
    let accepted = (0..3000).filter(|_| mutate::check(&mutate::mutated(&samples, &mut random))).count();
    assert!(accepted > 30, "{accepted} of 3000 texts are accepted: the mutations are too coarse to test the rest");
}
