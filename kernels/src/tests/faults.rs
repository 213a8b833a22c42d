//! Planted faults: each is caught, and the test says by which check.

use ds4_ir::numerics::Arith;
use ds4_ir::{Builder as GraphBuilder, Format, ReduceKind, ScalarOp, ScalarType, Tree, Type as ValueType, Value};

use crate::emit::StepBlock;
use crate::kernel::{Builder, Expr, ExprRow, ExtentRow, Kernel, Operator, Source, Stmt, Type, verify};
use crate::machine::{Cells, Check, LaneOrder, Machine};

use super::bench::{Bench, Caught, Checkpoint, D, LANGUAGES, Random, Small};

/// A kernel without one statement.
pub(super) fn without(kernel: &Kernel, at: usize) -> Kernel {
    let mut faulty = kernel.clone();
    faulty.stmts.remove(at);
    for run in &mut faulty.blocks {
        let (start, end) = (run.start as usize, (run.start + run.len) as usize);
        run.len -= u32::from(start <= at && at < end);
        run.start -= u32::from(start > at);
    }
    faulty
}

/// A kernel in which load or store `at` means the next element.
pub(super) fn shifted(kernel: &Kernel, at: usize) -> Option<Kernel> {
    let mut faulty = kernel.clone();
    let next = |faulty: &mut Kernel, index: Expr| {
        let one = push(faulty, Operator::Int, [1, 0, 0]);
        push(faulty, Operator::AddInt, [index.0, one.0, 0])
    };
    faulty.stmts[at] = match kernel.stmts[at] {
        Stmt::Load { local, memory, index } => Stmt::Load { local, memory, index: next(&mut faulty, index) },
        Stmt::Store { memory, index, value } => Stmt::Store { memory, index: next(&mut faulty, index), value },
        _ => return None,
    };
    Some(faulty)
}

fn push(kernel: &mut Kernel, op: Operator, words: [u32; 3]) -> Expr {
    kernel.exprs.push(ExprRow { op, words });
    Expr(kernel.exprs.len() as u32 - 1)
}

/// A sum in 128 lanes: barriers, shuffles, a tree.
pub(super) fn sum_bench(seed: u64) -> Bench {
    let mut random = Random(seed);
    let mut b = GraphBuilder::new();
    let x = b.floats(&[8, 700], &random.tame(5600));
    let x = b.per_column(x);
    b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, x, None);
    Bench::new(b, Checkpoint::default(), &[])
}

pub(super) fn only(bench: &Bench) -> (Vec<Kernel>, usize) {
    let kernels = bench.all_kernels();
    let last = kernels.len() - 1;
    (kernels, last)
}

#[test]
fn a_removed_barrier_is_a_race() {
    let mut keys = Random(1);
    let mut b = GraphBuilder::new();
    let x = b.floats(&[8, 100], &keys.tame(800));
    let x = b.per_column(x);
    b.top_k(5, x, None);
    b.arg_max(x);
    for bench in [sum_bench(2), Bench::new(b, Checkpoint::default(), &[])] {
        let kernels = bench.all_kernels();
        let mut removed = 0;
        for (i, kernel) in kernels.iter().enumerate() {
            for at in (0..kernel.stmts.len()).filter(|&at| matches!(kernel.stmts[at], Stmt::Barrier { .. })) {
                let caught = bench.caught(&kernels, i, &without(kernel, at), 2);
                let found = [Check::Race, Check::Unwritten].map(|check| Some(Caught::Machine(check)));
                assert!(found.contains(&caught), "{} statement {at}: {caught:?}", kernel.name);
                removed += 1;
            }
        }
        assert!(removed >= 3);
    }
}

/// In both orders taken together, every shifted index shows: as a bound, an unwritten cell, a race or other bits.
#[test]
fn an_index_off_by_one_is_caught_wherever_it_is() {
    // More blocks than lanes, so that no lane's part is the sum of nothing.
    const K: u32 = 35 * 32;
    let mut random = Random(3);
    let mut b = GraphBuilder::new();
    let w = b.add_weight("w", ValueType::weight(Format::Q8_0), &[3, K]);
    let w = b.weight(w);
    let x = b.floats(&[8, K], &random.tame(8 * K as usize));
    let x = b.per_column(x);
    let x = b.quantise(x);
    b.product(Tree::BLOCKS, x, w, None);
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(Format::Q8_0, [1, 3, K as usize], &mut random);
    for bench in [sum_bench(4), Bench::new(b, checkpoint, &[])] {
        let kernels = bench.all_kernels();
        let mut checks = std::collections::HashSet::new();
        for (i, kernel) in kernels.iter().enumerate() {
            for at in 0..kernel.stmts.len() {
                let Some(faulty) = shifted(kernel, at) else { continue };
                let caught = bench.caught(&kernels, i, &faulty, 8);
                assert!(caught.is_some(), "{} statement {at}: {:?}", kernel.name, kernel.stmts[at]);
                checks.extend(caught);
            }
        }
        assert!(checks.contains(&Caught::Machine(Check::OutOfBounds)), "{checks:?}");
    }
}

pub(super) fn gather_bench() -> Bench {
    let mut b = GraphBuilder::new();
    let source = b.floats(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let ids = b.ids(&[8], &[5, -1, 0, 2, -1, 3, 4, 1]);
    let ids = b.per_column(ids);
    b.gather(0, 0, source, ids);
    Bench::new(b, Checkpoint::default(), &[])
}

/// A kernel whose first guard of a masked id always lets the index pass.
pub(super) fn unguarded(kernel: &Kernel) -> Kernel {
    let at = kernel.stmts.iter().position(|s| matches!(s, Stmt::Present { .. })).unwrap();
    let Stmt::Present { id, index, then, .. } = kernel.stmts[at] else { unreachable!() };
    // The branch always taken: a truth value, and the index bound to the id.
    let mut faulty = kernel.clone();
    let always = push(&mut faulty, Operator::Truth, [1, 0, 0]);
    faulty.blocks.push(ds4_ir::Run { start: 0, len: 0 });
    let empty = crate::kernel::Block(faulty.blocks.len() as u32 - 1);
    faulty.stmts[at] = Stmt::If { condition: always, then, otherwise: empty };
    let bound = Stmt::Let { local: index, value: id };
    insert(&mut faulty, at, bound);
    faulty
}

#[test]
fn an_unguarded_masked_id_is_refused() {
    let bench = gather_bench();
    let (kernels, last) = only(&bench);
    let mut faulty = unguarded(&kernels[last]);
    // An id is no index: types say so.
    assert_eq!(bench.caught(&kernels, last, &faulty, 8), Some(Caught::Verifier));
    assert!(verify(&faulty).unwrap_err().message.contains("id"));
    // Text has words only, and there the machine finds it.
    let Some(Stmt::Load { local, memory, .. }) = faulty.stmts.iter().copied().find(|s| loads_id(&faulty, *s)) else {
        panic!("the ids are loaded")
    };
    faulty.locals[local.0 as usize].ty = Type::Word;
    faulty.memories[memory.0 as usize].element = Type::Word;
    assert_eq!(bench.caught(&kernels, last, &faulty, 8), Some(Caught::Machine(Check::OutOfBounds)));
}

fn loads_id(kernel: &Kernel, stmt: Stmt) -> bool {
    matches!(stmt, Stmt::Load { local, .. } if kernel.locals[local.0 as usize].ty == Type::Id)
}

fn insert(kernel: &mut Kernel, at: usize, stmt: Stmt) {
    kernel.stmts.insert(at, stmt);
    for run in &mut kernel.blocks {
        let (start, end) = (run.start as usize, (run.start + run.len) as usize);
        run.len += u32::from(start <= at && at < end);
        run.start += u32::from(start > at);
    }
}

/// `exp`'s body and a plain difference: each subtraction exchanged in turn.
#[test]
fn exchanged_operands_of_a_subtraction_change_bits() {
    let mut random = Random(5);
    let mut b = GraphBuilder::new();
    let x = b.floats(&[8, 50], &random.tame(400));
    let x = b.per_column(x);
    let (p, q) = (b.scalars.param(0, ScalarType::F32), b.scalars.param(1, ScalarType::F32));
    let exp = b.scalars.op(ScalarOp::Exp, &[p]).unwrap();
    let difference = b.scalars.op(ScalarOp::Sub, &[exp, q]).unwrap();
    let body = b.scalars.body(&[ScalarType::F32; 2], difference).unwrap();
    b.map(body, &[x, x]);
    let bench = Bench::new(b, Checkpoint::default(), &[]);
    let (kernels, last) = only(&bench);
    let mut exchanged = 0;
    for at in 0..kernels[last].exprs.len() {
        let mut faulty = kernels[last].clone();
        let row = &mut faulty.exprs[at];
        if row.op == Operator::Sub {
            row.words.swap(0, 1);
            assert_eq!(bench.caught(&kernels, last, &faulty, 8), Some(Caught::Bits));
            exchanged += 1;
        }
    }
    assert!(exchanged >= 4);
}

#[test]
fn a_lane_exchange_in_a_tree_changes_bits() {
    let bench = sum_bench(6);
    let (kernels, last) = only(&bench);
    let shuffles = |k: &Kernel| (0..k.stmts.len()).filter(|&at| matches!(k.stmts[at], Stmt::Shuffle { .. })).collect();
    let places: Vec<usize> = shuffles(&kernels[last]);
    assert_eq!(places.len(), 3);
    let mut faulty = kernels[last].clone();
    let distance = |stmt: &mut Stmt, new: u32| {
        if let Stmt::Shuffle { distance, .. } = stmt {
            *distance = new;
        }
    };
    // 4, 2, 1 becomes 2, 4, 1: the same leaves in another tree.
    distance(&mut faulty.stmts[places[0]], 2);
    distance(&mut faulty.stmts[places[1]], 4);
    assert_eq!(bench.caught(&kernels, last, &faulty, 8), Some(Caught::Bits));
}

/// A barrier that only some lanes reach: the verifier sees it, and so does the machine.
#[test]
fn a_barrier_in_a_branch_is_refused() {
    let b = Builder::new("branch", &[], 64);
    let lane = b.lane();
    let condition = b.below(lane, b.word(3));
    b.group(ExtentRow::constant(1));
    b.when(condition, || b.barrier());
    let kernel = b.finish();
    assert!(verify(&kernel).unwrap_err().message.contains("barrier"));
    let trap = Machine::of_verified(&kernel, &D, LaneOrder::Ascending).run(&|_| 0, &mut []).unwrap_err();
    assert_eq!((trap.check, trap.statement), (Check::Diverged, Some(0)));
}

#[test]
fn unwritten_memory_and_two_writers_are_refused() {
    let race = |same: bool| {
        let b = Builder::new("cells", &[], 64);
        b.group(ExtentRow::constant(2));
        let out = b.argument(Source::Slot(Value(0)), Type::Word, crate::kernel::Access::Write, "out");
        let shared = b.shared(Type::Word, 64, "shared");
        match same {
            true => b.store(out, b.word(0), b.word(7)),
            false => {
                let x: crate::kernel::Word = b.load("x", shared, b.lane());
                b.store(out, b.lane(), x);
            }
        }
        let kernel = b.finish();
        let mut cells = [Cells::unwritten(64)];
        Machine::new(&kernel, &D, LaneOrder::Descending).unwrap().run(&|_| 0, &mut cells).unwrap_err().check
    };
    assert_eq!(race(true), Check::Race);
    assert_eq!(race(false), Check::Unwritten);
}

/// A grid of three axes: all coordinates come back from the folded number, on the machine and in every text.
#[test]
fn a_grid_of_several_axes_is_split_again() {
    let b = Builder::new("grid", &[], 64);
    let columns = ExtentRow { scalar: Some(ds4_ir::Dim(0)), most: 4, times: 1, per: 1 };
    let (outer, middle, inner) = (b.group(ExtentRow::constant(2)), b.group(columns), b.group(ExtentRow::constant(3)));
    let out = b.argument(Source::Slot(Value(0)), Type::Word, crate::kernel::Access::Write, "out");
    let row = b.add_int(b.mul_int(middle, b.word(3)), inner);
    let at = b.mul_int(b.add_int(b.mul_int(outer, b.word(12)), row), b.word(64));
    b.store(out, b.add_int(at, b.lane()), b.add_int(b.mul_int(outer, b.word(100)), row));
    let kernel = b.finish();
    let block = StepBlock::of([&kernel]);
    let words = block.words(&|_| 2);
    let check = |kernel: &Kernel, scalar: &dyn Fn(ds4_ir::Dim) -> u32| {
        for order in LaneOrder::ALL {
            let mut cells = [Cells::unwritten(2 * 4 * 3 * 64)];
            Machine::new(kernel, &D, order).unwrap().run(scalar, &mut cells).unwrap();
            let word = |row: usize| cells[0].word(&D, row * 64 + 63);
            assert_eq!([0, 5, 6, 12, 17].map(word), [Some(0), Some(5), None, Some(100), Some(105)]);
        }
    };
    check(&kernel, &|_| 2);
    for language in &LANGUAGES {
        let text = (language.emit)(&kernel, &block).unwrap();
        let reading = (language.read)(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        check(&reading.kernel, &|place| words[place.0 as usize]);
    }
    let text = crate::emit::wgsl::emit(&kernel, &block).unwrap();
    assert!(text.contains("let group2 = number % 3u;") && text.contains("let group0 = group1 / extent1;"), "{text}");
}
