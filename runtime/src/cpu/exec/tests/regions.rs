//! Launches made by hand: regions side by side, values listed twice, launches that are not in the order of their ids.

use ds4_ir::plan::tables::{PlanTables, RegionRow};
use ds4_ir::plan::{ALIGN, SlotRow, check};
use ds4_ir::schedule::{Schedule, slot};
use ds4_ir::{Builder, Op, ReduceKind, Run, ScalarOp, Step, Tree, Type, Value};

use super::maps::{binary, floats, unary};
use super::{Case, Executor, FileBytes, Isa, plan_of};
use crate::reader::View;

/// A graph with two branches, of which one reads a state before it is replaced; its values by names.
struct Branches {
    case: Case,
    names: [(&'static str, Value); 8],
}

impl Branches {
    fn value(&self, name: &str) -> Value {
        self.names.iter().find(|row| row.0 == name).unwrap().1
    }

    /// The plan of launches (`a b, c; d` are two, the first of two regions). Every value that a region does not compute
    /// itself, outputs and named values have slots.
    fn plan(&self, launches: &str) -> PlanTables {
        let graph = self.case.graph.view();
        let mut schedule = Schedule::default();
        let mut stored: Vec<Value> = ["joined", "after"].map(|name| self.value(name)).into();
        for launch in launches.split(';') {
            let regions: Vec<RegionRow> = launch.split(',').map(|region| self.region(region, &mut schedule)).collect();
            for row in &regions {
                let own = row.values.of(&schedule.values);
                stored.push(own[own.len() - 1]);
                let outside = |v: &&Value| graph.op(**v) != Op::Read && !graph.op(**v).is_view() && !own.contains(v);
                stored.extend(own.iter().flat_map(|&v| graph.args(v)).filter(outside));
            }
            schedule.launches.push(Run::push(&mut schedule.regions, &regions));
        }
        stored.extend(["total", "tokens", "negative"].map(|name| self.value(name)));
        stored.retain(|&v| graph.op(v) != Op::Write && graph.op(v) != Op::Const);
        stored.sort();
        stored.dedup();
        let bounds = super::bounds(self.case.context, self.case.columns);
        for v in stored {
            let row = slot(&graph, bounds, v).unwrap();
            schedule.slots.push(SlotRow { offset: schedule.arena_bytes, ..row });
            schedule.arena_bytes += row.bytes.next_multiple_of(ALIGN);
        }
        plan_of(&graph, &self.case.checkpoint, bounds, &schedule)
    }

    fn region(&self, text: &str, schedule: &mut Schedule) -> RegionRow {
        let values: Vec<Value> = text.split_whitespace().map(|name| self.value(name)).collect();
        let rank = self.case.graph.view().dims_of(values[values.len() - 1]).len();
        let split = if values.len() > 1 { vec![0; rank] } else { Vec::new() };
        let tiles = Run::push(&mut schedule.tiles, &split);
        RegionRow { values: Run::push(&mut schedule.values, &values), tiles }
    }

    fn check(&self, launches: &str) {
        let tables = self.plan(launches);
        for isa in Isa::available() {
            self.case.check_plan(&[1, 3, 2], &tables, isa, 2);
        }
    }

    fn pieces(&self, launches: &str) -> usize {
        let (graph, tables) = (self.case.graph.view(), self.plan(launches));
        let files: Vec<FileBytes> = vec![Box::new(self.case.checkpoint.bytes.clone())];
        Executor::new(&graph, &tables.view(), files, 1, Isa::best()).unwrap().kernel_count(0)
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

/// Regions side by side, values that several of them compute, values without memory, launches that are not in the order of
/// their values: all is done once, in as many pieces as without regions, and gives the same bits.
#[test]
fn every_value_is_computed_once_whatever_the_regions() {
    let b = branches();
    let alone = b.pieces("tokens; row; negative; seen; total; joined; write; after");
    for launches in [
        "tokens; row negative, seen total; joined; write; after",
        "tokens; seen, row; total, negative; joined; write; after",
        "tokens; seen total; row negative joined, row negative; row negative joined write; after",
        "tokens; seen total; row negative joined; row negative joined write; joined after",
        "tokens; seen total; row; negative; joined; write; after",
        "tokens; seen; total, row; negative joined; write; after",
    ] {
        assert_eq!(b.pieces(launches), alone, "{launches}");
        b.check(launches);
    }
}

/// Planted: a state is replaced before `seen` has read it. Such a plan is refused, and kernels in such an order have other bits.
#[test]
fn a_state_that_is_replaced_before_its_reader_is_noticed() {
    let b = branches();
    let graph = b.case.graph.view();
    let tables = b.plan("tokens; seen total; row negative joined write; seen; after");
    let fault = check::check(&graph, &tables.view()).unwrap_err();
    assert!(fault.contains("replaces"), "{fault}");

    let tables = b.plan("tokens; seen total; row negative joined; write; after");
    let files: Vec<FileBytes> = vec![Box::new(b.case.checkpoint.bytes.clone())];
    let lasting: Vec<Value> = b.names.iter().map(|row| row.1).filter(|&v| graph.op(v) != Op::Write).collect();
    let mut executor = Executor::keeping(&graph, &tables.view(), files, 1, Isa::best(), &lasting).unwrap();
    let mut bits = |planted: bool| {
        executor.clear_states();
        if planted {
            executor.swap_kernels(0, b.value("seen"), b.value("write"));
        }
        let mut ignore = |_, _: View<'_>| {};
        let mut words = Vec::new();
        for position in [0, 3] {
            let step = Step { position, columns: 3, outputs: 2 };
            executor.run(&graph, 0, step, &[1, 2, 3], Some(&mut ignore)).unwrap();
            words = executor.value_words(&graph, &tables.view(), 0, b.value("seen"), step);
        }
        words
    };
    let right = bits(false);
    assert_ne!(bits(true), right);
}
