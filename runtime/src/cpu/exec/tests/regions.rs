//! Launches made by hand: regions side by side, values computed twice, launches that are not in the order of their ids.

use ds4_ir::{Builder, ReduceKind, ScalarOp, Tree, Type, Value};

use super::maps::{binary, floats, unary};
use super::{Case, Lists, Storing};

/// A graph with two branches, of which one reads a state before it is replaced; its values by names.
struct Branches {
    case: Case,
    names: [(&'static str, Value); 8],
}

impl Branches {
    /// Runs launches (`a b, c; d` are two, the first of two regions).
    fn check(&self, launches: &str) {
        let value = |name: &str| self.names.iter().find(|row| row.0 == name).unwrap().1;
        let region = |text: &str| text.split_whitespace().map(value).collect();
        let launch = |text: &str| text.split(',').map(region).collect();
        self.case.check_launches(&[1, 3, 2], launches.split(';').map(launch).collect());
    }
}

fn branches() -> Branches {
    let mut b = Builder::new();
    let (t, one, n) = (b.columns(), b.n(1), b.n(24));
    let state = b.add_state("kept", Type::F32, &[16, 24]);
    let table = floats(&mut b, "rows", &[16, 24]);
    let tokens = b.tokens();
    let row = b.gather(0, 0, table, tokens);
    let negative = unary(&mut b, ScalarOp::Neg, row);
    let old = b.read(state);
    let seen = b.gather(0, 0, old, tokens);
    let total = b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, seen, None);
    let spread = b.reshape(total, &[t, one]);
    let spread = b.broadcast(spread, &[t, n]);
    let joined = binary(&mut b, ScalarOp::Add, negative, spread);
    let write = b.write(old, tokens, joined);
    let after = b.gather(0, 0, write, tokens);
    for (name, v) in [("joined", joined), ("after", after)] {
        b.tap(name, v);
        b.output(name, v);
    }
    let names = [
        ("tokens", tokens),
        ("row", row),
        ("negative", negative),
        ("seen", seen),
        ("total", total),
        ("joined", joined),
        ("write", write),
        ("after", after),
    ];
    Branches { case: Case::new(b, 64, 3), names }
}

#[test]
fn regions_of_a_launch_run_side_by_side() {
    branches().check("tokens; row negative, seen total; joined; write; after");
    branches().check("tokens; seen, row; total, negative; joined; write; after");
}

#[test]
fn a_value_without_memory_is_computed_by_each_region_that_lists_it() {
    branches().check("tokens; seen total; row negative joined, row negative; row negative joined write; after");
    branches().check("tokens; seen total; row negative joined; row negative joined write; joined after");
}

#[test]
fn launches_come_in_another_order_than_their_values() {
    branches().check("tokens; seen total; row; negative; joined; write; after");
    branches().check("tokens; seen; total, row; negative joined; write; after");
}

/// What the drawn plans of the other tests are made of.
#[test]
fn drawn_plans_have_regions_duplicates_and_interior_values() {
    let b = branches();
    let (graph, bounds) = (b.case.graph.view(), super::bounds(64, 3));
    let write = b.names[6].1;
    let (mut side_by_side, mut twice, mut interior, mut moved) = (0, 0, 0, 0);
    for seed in 1..40 {
        let Lists { launches, stored } = Lists::of(&graph, bounds, Storing::Regions(seed));
        let listed: Vec<Value> = launches.iter().flatten().flatten().copied().collect();
        let count = |v: &Value| listed.iter().filter(|other| *other == v).count();
        side_by_side += launches.iter().filter(|regions| regions.len() > 1).count();
        twice += listed.iter().filter(|v| count(v) > 1).count();
        interior += listed.iter().filter(|v| **v != write && stored.binary_search(v).is_err()).count();
        moved += usize::from(!listed.is_sorted());
    }
    assert!([side_by_side, twice, interior, moved].iter().all(|&n| n > 5), "{side_by_side} {twice} {interior} {moved}");
}
