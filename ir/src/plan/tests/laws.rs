//! The laws of launches: a plan that uses each, and for each side condition a plan that breaks it and nothing else.

use std::collections::BTreeSet;

use super::*;
use crate::plan::tables::{BindingRow, DispatchRow, ExtentRow, Kernel, KernelRow, binding};
use crate::plan::uses;
use crate::rules::launch::{self, Condition, RULES, hook};

/// A graph and a plan of it.
type Case = (Named, PlanTables);

const STORED: &str = "tokens row total joined after";

/// `branches` without the name of a value, in a plan of these launches.
fn unnamed(launches: &str, stored: &str) -> Case {
    let mut g = branches();
    g.graph.named.clear();
    let plan = g.plan(launches, stored);
    (g, plan)
}

/// The same with the memory of one value where another's is.
fn sharing(launches: &str, a: &str, b: &str) -> Case {
    let (g, mut plan) = unnamed(launches, STORED);
    let slot = |v: &str| STORED.split(' ').position(|other| other == v).unwrap();
    plan.slots[slot(a)].offset = plan.slots[slot(b)].offset;
    (g, plan)
}

fn all(launches: &str) -> Case {
    let g = branches();
    let plan = g.plan(launches, ALL);
    (g, plan)
}

/// The region of `row` and `negative` in these tiles.
fn tiled(tiles: &[u32]) -> Case {
    let (g, mut plan) = all("tokens; row negative; seen; total; joined; write; after");
    plan.regions[1].tiles = Run::push(&mut plan.region_tiles, tiles);
    (g, plan)
}

/// A row, its negative, and both beside each other, to which a value is added that nobody needs.
fn joined(launches: &str, stored: &str) -> Case {
    let mut b = Builder::new();
    let tokens = b.tokens();
    let table = b.add_constant("rows", Type::F32, &[4, 2], &[0; 8]);
    let table = b.constant(table);
    let row = b.gather(0, 0, table, tokens);
    let negative = map(&mut b, ScalarOp::Neg, &[row]);
    let again = map(&mut b, ScalarOp::Neg, &[negative]);
    let both = b.concat(1, &[negative, again]);
    let spare = map(&mut b, ScalarOp::Abs, &[row]);
    b.output("both", both);
    let names = vec![("tokens", tokens), ("row", row), ("negative", negative), ("again", again), ("both", both)];
    let names = [names, vec![("spare", spare)]].concat();
    let g = Named { graph: b.finish(), names };
    let plan = g.plan(launches, stored);
    (g, plan)
}

/// Both operands of `both` in its memory.
fn in_place() -> Case {
    let (g, mut plan) = joined("tokens; row negative; again", "tokens negative again both");
    let both = plan.slots[3];
    for slot in &mut plan.slots[1..3] {
        (slot.within, slot.offset) = (both.value, both.offset);
    }
    (g, plan)
}

fn versions(launches: &str) -> Case {
    let g = two_writes();
    let plan = g.plan(launches, "");
    (g, plan)
}

/// What each launch of a plan of `branches` reads and writes; `kept` is the state, `ids` are the step's tokens.
const KERNELS: [(&str, &str); 6] = [
    ("ids", "tokens"),
    ("table tokens", "row negative"),
    ("kept tokens", "seen total"),
    ("negative total", "joined"),
    ("tokens joined", "kept"),
    ("kept tokens", "after"),
];

fn bound(g: &Named, name: &str) -> BindingRow {
    let (kind, id) = match name {
        "ids" => (binding::TOKENS, 0),
        "kept" => (binding::STATE, 0),
        "table" => (binding::CONSTANT, 0),
        _ => (binding::SLOT, g.value(name).0),
    };
    BindingRow { kind, id }
}

/// A plan with a kernel for each launch; the second launch is split over columns and halves of rows.
fn with_kernels(kernels: &[(&str, &str)]) -> Case {
    let (g, mut plan) = all("tokens; row negative; seen total; joined; write; after");
    plan.regions[1].tiles = Run::push(&mut plan.region_tiles, &[1, 2]);
    plan.step_dims = vec![g.graph.view().dims_of(g.value("row"))[0]];
    plan.targets = vec![plan.intern("wgsl")];
    for (i, (reads, writes)) in kernels.iter().enumerate() {
        let arguments: Vec<&str> = reads.split_whitespace().chain(writes.split_whitespace()).collect();
        let written = writes.split_whitespace().count();
        let rows: Vec<BindingRow> = arguments.iter().map(|name| bound(&g, name)).collect();
        let bindings = Run::push(&mut plan.bindings, &rows);
        let dispatch = DispatchRow { kernel: Kernel(i as u32), bindings };
        plan.launches[i].dispatches = Run::push(&mut plan.dispatches, &[dispatch]);
        let columns = ExtentRow { word: 2, most: BOUNDS.columns, times: 1, per: 1 };
        let halves = ExtentRow { word: u32::MAX, most: 2, times: 1, per: 1 };
        let axes = if i == 1 { vec![columns, halves] } else { vec![] };
        let part = Run::push(&mut plan.extents, &axes);
        let name = plan.intern(&format!("kernel {i}"));
        plan.kernels.push(KernelRow {
            name,
            entry: name,
            lanes: 64,
            workgroup_bytes: 0,
            exchange: 0,
            arguments: arguments.len() as u32,
            written: ((1u32 << written) - 1) << (arguments.len() - written),
            iterations: 0,
            grid: Run::push(&mut plan.grid_parts, &[part]),
        });
        plan.sources.push(Run::default());
    }
    (g, plan)
}

/// The kernels with those of one launch replaced.
fn bound_otherwise(launch: usize, kernel: (&'static str, &'static str)) -> Case {
    let mut kernels = KERNELS;
    kernels[launch] = kernel;
    with_kernels(&kernels)
}

/// A plan that uses a law.
fn using(rule: u32) -> Case {
    let once = "tokens; row; seen total; row negative joined; write; after";
    match rule {
        launch::ABSORB => all("tokens; row negative; seen; total; joined; write; after"),
        launch::DUPLICATE => all("tokens; row negative; seen total; row negative joined; write; after"),
        launch::LOOK_UP => unnamed("tokens; row; seen total; row negative joined; write; after", STORED),
        launch::PAIR => all("tokens; row negative, seen total; joined; write; after"),
        launch::REORDER => all("tokens; seen total; row negative; joined; write; after"),
        launch::LEAVE_OUT => joined("tokens; row negative; again; both", "tokens negative again both"),
        launch::SPLIT => tiled(&[1, 2]),
        launch::INTERIOR => unnamed(once, STORED),
        launch::REUSE => sharing(once, "after", "total"),
        launch::IN_PLACE => in_place(),
        launch::REPLACE => versions("first; second"),
        launch::KERNELS => with_kernels(&KERNELS),
        _ => panic!("no plan uses law {rule}"),
    }
}

/// A plan that breaks a condition and nothing else, and what is said of it.
fn breaking(condition: Condition) -> (Case, &'static str) {
    let later = "tokens; row; seen total; row negative joined; write; negative joined after";
    match condition {
        Condition::Before => (all("tokens; row negative; joined; seen total; write; after"), "reads {total} before"),
        Condition::Apart => (
            all("tokens; row, negative; seen total; joined; write; after"),
            "another region of this launch computes it",
        ),
        Condition::WrittenOnce => (all("tokens; row negative; seen total; joined; write; write; after"), "again"),
        Condition::Tiles => (tiled(&[1, 3]), "wanted for each axis 0, or a number that divides it"),
        Condition::Whole => {
            let (g, mut plan) = joined("tokens; row negative; again both", "tokens negative again both");
            plan.regions[2].tiles = Run::push(&mut plan.region_tiles, &[1, 2]);
            ((g, plan), "divides what `concat` needs in one piece")
        }
        Condition::Memory => {
            let launches = "tokens; seen total; row negative joined; joined; write; after";
            (unnamed(launches, "tokens total joined after"), "reads {negative}, which has no memory")
        }
        Condition::Lives => (sharing(later, "after", "total"), "share memory"),
        Condition::Within => {
            let (g, mut plan) = in_place();
            plan.slots[1].offset = 0;
            ((g, plan), "{negative} does not lie inside {both}")
        }
        Condition::Replaced => (
            all("tokens; row negative; seen total; joined; write; seen total; after"),
            "replaces {old} by {write}, but",
        ),
        Condition::Versions => (versions("second; first"), "({second}) replaces {first} before it is computed"),
        Condition::Needed => {
            let (mut g, _) = joined("tokens", "tokens");
            let name = g.graph.outputs[0].name;
            g.graph.named.push(crate::graph::NamedRow { name, value: g.value("spare") });
            let plan = g.plan("tokens; row negative; again; both", "tokens negative again both spare");
            ((g, plan), "{spare} is never computed")
        }
        Condition::Writes => {
            (bound_otherwise(3, ("negative total", "after")), "its kernels write {after}, but it stores")
        }
        Condition::Reads => (bound_otherwise(3, ("negative seen", "joined")), "its kernels read {seen}, but it reads"),
        Condition::Grid => {
            let (g, mut plan) = with_kernels(&KERNELS);
            plan.extents[1].most = 1;
            ((g, plan), "the grid of kernel `kernel 1` has not the workgroups")
        }
    }
}

#[test]
fn each_law_is_used_by_a_plan_that_is_accepted() {
    for rule in RULES {
        let (g, plan) = using(rule.head.number);
        g.accepts(&plan);
        let uses = uses(&g.graph.view(), &plan.view(), &plan.entries[0]);
        assert!(uses.contains_key(&rule.head.number), "`{}` is not used: {uses:?}", rule.head.name);
    }
}

/// Launches of single values use none but that of states.
#[test]
fn launches_of_single_values_use_one_law() {
    let (g, plan) = all(SINGLE);
    let found: Vec<u32> = uses(&g.graph.view(), &plan.view(), &plan.entries[0]).into_keys().collect();
    assert_eq!(found, [launch::REPLACE]);
}

/// Each condition is what refuses its plan: without it the plan is accepted. So none can be left out or turned round without
/// that a test fails.
#[test]
fn each_condition_refuses_what_nothing_else_refuses() {
    for condition in Condition::ALL {
        let ((g, plan), wanted) = breaking(condition);
        g.refuses(&plan, wanted);
        hook::without(condition, || g.accepts(&plan));
        for other in Condition::ALL.into_iter().filter(|&other| other != condition) {
            hook::without(other, || g.refuses(&plan, wanted));
        }
    }
}

#[test]
fn laws_have_conditions_and_conditions_laws() {
    let used: BTreeSet<Condition> = RULES.iter().flat_map(|rule| rule.conditions).copied().collect();
    assert_eq!(used.len(), Condition::ALL.len());
    assert!(RULES.iter().all(|rule| !rule.conditions.is_empty()));
    assert!(RULES.is_sorted_by(|a, b| a.head.number < b.head.number));
    let names: BTreeSet<&str> = Condition::ALL.iter().map(|condition| condition.name()).collect();
    assert_eq!(names.len(), Condition::ALL.len());
}

/// Memory of quantised values, of weights, and of what is read through gathers and views.
#[test]
fn a_kernel_may_be_bound_to_less_than_its_launch_reads() {
    let (g, plan) = bound_otherwise(3, ("negative", "joined"));
    g.accepts(&plan);
    let (g, plan) = bound_otherwise(3, ("negative total", ""));
    g.refuses(&plan, "its kernels write nothing, but it stores {joined}");
}

#[test]
fn a_grid_has_the_splits_of_its_regions() {
    let changed = |change: fn(&mut PlanTables)| {
        let (g, mut plan) = with_kernels(&KERNELS);
        change(&mut plan);
        g.refuses(&plan, "has not the workgroups of its regions' splits");
    };
    changed(|plan| plan.extents[0].most -= 1);
    changed(|plan| plan.extents[0].word = u32::MAX);
    changed(|plan| plan.extents[0].times = 2);
    changed(|plan| plan.extents[1].per = 2);
    changed(|plan| plan.grid_parts[1].len = 1);
    changed(|plan| plan.region_tiles.iter_mut().filter(|tile| **tile == 2).for_each(|tile| *tile = 1));
    // Kernels that entry points share may be made for a wider one.
    let (g, mut plan) = with_kernels(&KERNELS);
    plan.extents[0].most += 1;
    g.accepts(&plan);
}
