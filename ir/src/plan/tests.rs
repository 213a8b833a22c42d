//! The check of launches: the forms that it takes, and each fault planted once.

mod laws;

use crate::entity::Run;
use crate::graph::{GraphTables, Value};
use crate::op::{ReduceKind, Type};
use crate::plan::ALIGN;
use crate::plan::check::check;
use crate::plan::layout::stored_bytes;
use crate::plan::tables::{Device, EntryRow, LaunchRow, PlanTables, RegionRow, SlotRow, StatePlaceRow};
use crate::scalar::{ScalarOp, ScalarType};
use crate::{Bounds, Builder, Tree};

const BOUNDS: Bounds = Bounds { context: 64, columns: 3, outputs: 3 };

/// A graph whose values are known by names.
struct Named {
    graph: GraphTables,
    names: Vec<(&'static str, Value)>,
}

impl Named {
    fn value(&self, name: &str) -> Value {
        self.names.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("no value {name}")).1
    }

    fn values(&self, names: &str) -> Vec<Value> {
        names.split_whitespace().map(|name| self.value(name)).collect()
    }

    /// A plan of launches (`a b, c; d` are two, the first of two regions). Each slot has its own memory.
    fn plan(&self, launches: &str, stored: &str) -> PlanTables {
        let graph = self.graph.view();
        let mut plan = PlanTables { model_hash: vec![[0; 32]], context: vec![BOUNDS.context], ..PlanTables::default() };
        let bytes = |ty, shape| stored_bytes(ty, &graph.max_extents(shape, BOUNDS)).unwrap();
        for state in graph.states {
            plan.state_places.push(StatePlaceRow { offset: 0, bytes: bytes(state.ty, state.shape) });
        }
        for v in self.values(stored) {
            let bytes = bytes(graph.ty(v), graph.value_shape[v.0 as usize]);
            plan.slots.push(SlotRow { value: v, within: v, offset: ALIGN * plan.slots.len() as u64, bytes });
        }
        for regions in launches.split(';') {
            let regions: Vec<RegionRow> = regions.split(',').map(|values| self.region(&mut plan, values)).collect();
            let regions = Run::push(&mut plan.regions, &regions);
            plan.launches.push(LaunchRow { device: Device(0), regions, dispatches: Run::default() });
        }
        let name = plan.intern("step");
        plan.entries.push(EntryRow {
            name,
            columns: BOUNDS.columns,
            outputs: BOUNDS.outputs,
            launches: Run { start: 0, len: plan.launches.len() as u32 },
            slots: Run { start: 0, len: plan.slots.len() as u32 },
            reserved: 0,
            arena_bytes: ALIGN * plan.slots.len() as u64,
        });
        plan
    }

    /// A region of several values has all of them whole; a single one says nothing.
    fn region(&self, plan: &mut PlanTables, values: &str) -> RegionRow {
        let values = self.values(values);
        let rank = values.last().map_or(0, |&v| self.graph.view().dims_of(v).len());
        let split = if values.len() > 1 { vec![0; rank] } else { Vec::new() };
        let tiles = Run::push(&mut plan.region_tiles, &split);
        RegionRow { values: Run::push(&mut plan.region_values, &values), tiles }
    }

    #[track_caller]
    fn accepts(&self, plan: &PlanTables) {
        if let Err(fault) = check(&self.graph.view(), &plan.view()) {
            panic!("{fault}");
        }
    }

    /// The fault holds this text, in which names in braces stand for values.
    #[track_caller]
    fn refuses(&self, plan: &PlanTables, wanted: &str) {
        let named = |text: String, (name, v): &(&str, Value)| text.replace(&format!("{{{name}}}"), &v.to_string());
        let wanted = self.names.iter().fold(wanted.to_string(), named);
        match check(&self.graph.view(), &plan.view()) {
            Ok(_) => panic!("accepted, but {wanted}"),
            Err(fault) => assert!(fault.contains(&wanted), "wanted {wanted}, found {fault}"),
        }
    }
}

/// Two branches on the tokens, of which one reads a state that is replaced behind them.
fn branches() -> Named {
    let mut b = Builder::new();
    let (t, one, n) = (b.columns(), b.n(1), b.n(4));
    let state = b.add_state("kept", Type::F32, &[16, 4]);
    let words: Vec<u32> = (0..64).collect();
    let table = b.add_constant("rows", Type::F32, &[16, 4], &words);
    let table = b.constant(table);
    let tokens = b.tokens();
    let row = b.gather(0, 0, table, tokens);
    let negative = map(&mut b, ScalarOp::Neg, &[row]);
    let old = b.read(state);
    let seen = b.gather(0, 0, old, tokens);
    let total = b.reduce(ReduceKind::Sum, Tree::Seq, 1, seen, None);
    let spread = b.reshape(total, &[t, one]);
    let spread = b.broadcast(spread, &[t, n]);
    let joined = map(&mut b, ScalarOp::Add, &[negative, spread]);
    let write = b.write(old, tokens, joined);
    let after = b.gather(0, 0, write, tokens);
    b.tap("negative", negative);
    b.output("joined", joined);
    b.output("after", after);
    let names = vec![
        ("table", table),
        ("tokens", tokens),
        ("row", row),
        ("negative", negative),
        ("old", old),
        ("seen", seen),
        ("total", total),
        ("joined", joined),
        ("write", write),
        ("after", after),
    ];
    Named { graph: b.finish(), names }
}

fn map(b: &mut Builder, op: ScalarOp, args: &[Value]) -> Value {
    let params: Vec<_> = (0..args.len() as u32).map(|i| b.scalars.param(i, ScalarType::F32)).collect();
    let result = b.scalars.op(op, &params).unwrap();
    let body = b.scalars.body(&vec![ScalarType::F32; args.len()], result).unwrap();
    b.map(body, args)
}

const SINGLE: &str = "tokens; row; negative; seen; total; joined; write; after";
const ALL: &str = "tokens row negative seen total joined after";

#[test]
fn single_values_are_launches() {
    let g = branches();
    g.accepts(&g.plan(SINGLE, ALL));
}

#[test]
fn regions_stand_side_by_side_share_values_and_come_in_any_order() {
    let g = branches();
    let few = "tokens negative total joined after";
    g.accepts(&g.plan("tokens; seen total, row negative; joined; write; after", few));
    let shared = "tokens; seen total; row negative, row negative joined; row negative joined write; after";
    g.accepts(&g.plan(shared, few));
}

#[test]
fn the_values_of_a_region_are_computed_in_order() {
    let g = branches();
    let with = |region: &str| g.plan(&format!("tokens; row; {region}"), ALL);
    g.refuses(&with("total seen"), "not in order");
    g.refuses(&with("seen seen total"), "not in order");
    g.refuses(&with(""), "has no values");
    g.refuses(&with("table negative"), "{table} is in a region, but nothing computes it");
    g.refuses(&with("old seen total"), "{old} is in a region, but nothing computes it");
    let mut absent = with("negative");
    absent.region_values[2] = Value(1000);
    g.refuses(&absent, "not in order");
    let mut beyond = with("negative");
    beyond.regions[2].values.len = 1000;
    g.refuses(&beyond, "do not exist");
    let mut none = with("negative");
    none.launches[2].regions.len = 0;
    g.refuses(&none, "launch 2 has no regions");
    none.launches[2].regions.len = 1000;
    g.refuses(&none, "launch 2 has no regions");
}

#[test]
fn the_last_value_of_a_region_is_stored() {
    let g = branches();
    g.refuses(&g.plan(SINGLE, "tokens row negative seen joined after"), "the region of {total} stores nothing");
}

#[test]
fn a_split_is_one_of_the_last_values_axes() {
    let g = branches();
    let with = |tiles: &[u32]| {
        let mut plan = g.plan("tokens; row negative; seen; total; joined; write; after", ALL);
        plan.regions[1].tiles = Run::push(&mut plan.region_tiles, tiles);
        plan
    };
    g.accepts(&with(&[0, 0]));
    for tiles in [[1, 0], [0, 4], [1, 2], [1, 1]] {
        g.accepts(&with(&tiles));
    }
    for tiles in [&[3, 4][..], &[1, 3], &[1, 8], &[4, 4], &[0], &[0, 0, 0]] {
        g.refuses(&with(tiles), "not one of its axes");
    }
    g.refuses(&with(&[]), "has no split");
    let mut beyond = with(&[0, 0]);
    beyond.regions[1].tiles.start = 1000;
    g.refuses(&beyond, "the split of a region does not exist");
}

/// Without a split a region is one value, with slotless gathers that it reads itself.
#[test]
fn only_own_gathers_stand_in_a_region_without_a_split() {
    let g = branches();
    let with = |region: &str, stored: &str| {
        let mut plan = g.plan(&format!("tokens; row negative; {region}; joined; write; after"), stored);
        plan.regions[2].tiles.len = 0;
        plan
    };
    let slotless = "tokens row negative total joined after";
    g.accepts(&with("seen total", slotless));
    g.refuses(&with("seen total", ALL), "has no split");
    g.refuses(&with("seen joined", slotless), "has no split");
    g.refuses(&with("negative total", slotless), "has no split");
}

#[test]
fn a_region_reads_no_other_region_of_its_launch() {
    let g = branches();
    g.refuses(&g.plan("tokens; row, negative; seen total; joined; write; after", ALL), "reads {row} before");
    g.refuses(&g.plan("tokens; row; row negative, negative joined; write; after", ALL), "reads {total} before");
}

#[test]
fn a_region_reads_nothing_from_a_later_launch() {
    let g = branches();
    g.refuses(&g.plan("tokens; negative; row; seen; total; joined; write; after", ALL), "reads {row} before");
    // What is computed again reads again.
    let again = "tokens; row negative; seen total, row negative joined; joined; write; after";
    g.refuses(&g.plan(again, ALL), "reads {total} before");
}

#[test]
fn what_has_no_slot_is_read_by_regions_that_list_it() {
    let g = branches();
    // `seen` is a gather, which a reader does itself; `negative` is none.
    let stored = "tokens negative total joined after";
    g.accepts(&g.plan("tokens; row negative; total; joined; write; after", stored));
    let lists = "tokens; seen total; row negative joined; joined; write; after";
    g.refuses(&g.plan(lists, "tokens total joined after"), "reads {negative}, which has no memory");
}

#[test]
fn a_state_is_replaced_behind_all_readers_of_what_it_held() {
    let g = branches();
    let with = |lists: &str, stored: &str| g.plan(&format!("tokens; row negative; {lists}; after"), stored);
    g.accepts(&with("seen total; joined; write", ALL));
    let wanted = "replaces {old} by {write}, but launch";
    // From a later launch, from the same launch, from the same region.
    g.refuses(&with("seen total; joined; write; seen total", ALL), wanted);
    g.refuses(&with("seen total; joined; write, seen total", ALL), wanted);
    g.refuses(&with("seen total; joined; seen total, write", ALL), wanted);
    g.refuses(&with("seen total joined write", ALL), wanted);
    // Through a gather that its reader does.
    let slotless = "tokens negative total joined after";
    g.accepts(&with("total; joined; write", slotless));
    g.refuses(&with("total; joined; write; total", slotless), wanted);
    g.refuses(&with("total; joined; total, write", slotless), wanted);
}

#[test]
fn a_state_is_read_behind_the_launch_that_replaced_it() {
    let g = branches();
    let with = |end: &str| g.plan(&format!("tokens; row negative; seen total; joined; {end}"), ALL);
    g.accepts(&with("write; after"));
    let early = "reads {write} before it is computed";
    g.refuses(&with("after; write"), early);
    g.refuses(&with("write, after"), early);
    g.refuses(&with("write after"), early);
    g.refuses(&with("write; write; after"), "writes {write} again");
}

/// Two writes of one state.
fn two_writes() -> Named {
    let mut b = Builder::new();
    let state = b.add_state("kept", Type::F32, &[4, 2]);
    let ids = b.add_constant("ids", Type::I32, &[1], &[2]);
    let rows = b.add_constant("rows", Type::F32, &[1, 2], &[1, 2]);
    let (ids, rows) = (b.constant(ids), b.constant(rows));
    let old = b.read(state);
    let first = b.write(old, ids, rows);
    let second = b.write(first, ids, rows);
    Named { graph: b.finish(), names: vec![("first", first), ("second", second)] }
}

/// Words that mean nothing are zero, each by itself and not in sum.
#[test]
fn words_that_mean_nothing_are_zero() {
    let g = branches();
    let mut plan = g.plan("tokens; row; negative; seen; total; joined; write; after", ALL);
    g.accepts(&plan);
    let mut second = plan.entries[0];
    second.name = plan.intern("second");
    plan.entries.push(second);
    plan.entries.iter_mut().for_each(|entry| entry.reserved = 1 << 31);
    g.refuses(&plan, "a word that means nothing is not zero");
}

#[test]
fn the_versions_of_a_state_are_written_one_by_one() {
    let g = two_writes();
    g.accepts(&g.plan("first; second", ""));
    for early in ["second; first", "first, second", "first second"] {
        g.refuses(&g.plan(early, ""), "({second}) replaces {first} before it is computed");
    }
    g.refuses(&g.plan("first", ""), "{second} is never computed");
}

#[test]
fn all_that_a_step_is_for_is_computed() {
    let mut g = branches();
    g.refuses(&g.plan("tokens; row; negative; seen; total; joined; after", ALL), "reads {write} before");
    g.refuses(&g.plan("tokens; row; negative; seen; total; joined; write", ALL), "an output reads {after} before");
    // A named value that lies in regions only cannot be looked at.
    let interior = g.plan("tokens; seen total; row negative joined; write; after", "tokens total joined after");
    g.refuses(&interior, "a named value reads {negative}, which has no memory");
    let absent = g.plan("tokens; row; seen; total; after; joined; write", ALL);
    g.refuses(&absent, "reads {write} before");
    g.graph.named.clear();
    g.accepts(&interior);
}

/// Nothing but the name keeps the named value.
#[test]
fn a_named_value_is_computed() {
    let mut b = Builder::new();
    let tokens = b.tokens();
    let table = b.add_constant("rows", Type::F32, &[4, 2], &[0; 8]);
    let table = b.constant(table);
    let row = b.gather(0, 0, table, tokens);
    let negative = map(&mut b, ScalarOp::Neg, &[row]);
    b.tap("negative", negative);
    b.output("row", row);
    let names = vec![("tokens", tokens), ("row", row), ("negative", negative)];
    let g = Named { graph: b.finish(), names };
    g.accepts(&g.plan("tokens; row; negative", "tokens row negative"));
    g.refuses(&g.plan("tokens; row", "tokens row negative"), "{negative} is never computed");
}

#[test]
fn leaves_and_writes_have_no_slots() {
    let g = branches();
    for (leaf, stored) in [
        ("table", "table tokens row negative seen total joined after"),
        ("old", "tokens row negative old seen total joined after"),
        ("write", "tokens row negative seen total joined write after"),
    ] {
        g.refuses(&g.plan(SINGLE, stored), &format!("{{{leaf}}} has a slot, but lies elsewhere"));
    }
}

/// Memory of what is read lives until the last region that computes from it again.
#[test]
fn memory_lives_until_a_value_is_computed_for_the_last_time() {
    let mut g = branches();
    g.graph.named.clear();
    let stored = "tokens row total joined after";
    let slot = |v: &str| stored.split(' ').position(|other| other == v).unwrap();
    let sharing = |lists: &str, a: &str, b: &str| {
        let mut plan = g.plan(lists, stored);
        plan.slots[slot(a)].offset = plan.slots[slot(b)].offset;
        plan
    };
    let once = "tokens; row; seen total; row negative joined; write; after";
    // `total` is read for the last time with `joined`, whoever computes that.
    let again = once.replace("write", "negative joined write");
    g.accepts(&sharing(once, "after", "total"));
    g.accepts(&sharing(&again, "after", "total"));
    let later = once.replace("after", "negative joined after");
    g.refuses(&sharing(&later, "after", "total"), "share memory");
    g.refuses(&sharing(&later, "after", "row"), "share memory");
    // A value that was stored is kept for the regions that list it again.
    let kept = once.replace("after", "row after");
    g.accepts(&sharing(once, "after", "row"));
    g.refuses(&sharing(&kept, "after", "row"), "share memory");
}
