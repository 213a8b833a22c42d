//! Kernels side by side: they leave the bits that each leaves alone.

use std::collections::HashMap;

use ds4_ir::numerics::Arith;
use ds4_ir::{Builder as GraphBuilder, DimOp, ReduceKind, ScalarOp, Step, Tree};

use crate::emit::StepBlock;
use crate::kernel::{Access, Builder, ExtentRow, Kernel, Part, Source, Space, Type};
use crate::machine::{Cells, Check, LaneOrder, Machine};
use crate::schedule::{Apart, MOST_ARGUMENTS, side_by_side};

use super::bench::{Bench, Caught, Checkpoint, D, LANGUAGES, Language, Random, Small};
use super::corpus;

/// Kernels of a bench in as few launches as there can be: side by side goes what is independent and has the same lanes.
pub(crate) fn launches(kernels: &[Kernel]) -> Vec<Kernel> {
    let mut depths: HashMap<Source, usize> = HashMap::new();
    let mut groups: Vec<((usize, u32), Vec<Kernel>)> = Vec::new();
    for kernel in kernels {
        let depth = kernel.arguments().filter_map(|(_, source, _)| depths.get(&source)).max().map_or(0, |d| d + 1);
        for (_, source, row) in kernel.arguments() {
            if row.access != Access::Read || source.is_written() {
                depths.insert(source, depth);
            }
        }
        let key = (depth, kernel.lanes);
        let arguments = |kernels: &[Kernel]| kernels.iter().map(|k| k.arguments().count()).sum::<usize>();
        let room = MOST_ARGUMENTS - kernel.arguments().count();
        match groups.iter_mut().rev().find(|group| group.0 == key && arguments(&group.1) <= room) {
            Some(group) => group.1.push(kernel.clone()),
            None => groups.push((key, vec![kernel.clone()])),
        }
    }
    groups.sort_by_key(|group| group.0.0);
    let joined = |(i, (_, kernels)): (usize, (_, Vec<Kernel>))| match kernels.len() {
        1 => kernels[0].clone(),
        _ => side_by_side(&format!("beside.{i}"), kernels).unwrap(),
    };
    groups.into_iter().enumerate().map(joined).collect()
}

fn shared_words(kernel: &Kernel) -> u32 {
    kernel.memories.iter().filter(|row| row.space == Space::Workgroup).map(|row| row.len).sum()
}

#[test]
fn kernels_of_every_kind_go_side_by_side() {
    let (mut before, mut after, mut most) = (0, 0, 0);
    for bench in corpus::benches() {
        let kernels = bench.all_kernels();
        let launches = launches(&kernels);
        let steps = [3, 1, 8].map(|columns| Step { position: 5, columns, outputs: columns });
        bench.check_kernels(&launches, &steps);
        before += kernels.len();
        after += launches.len();
        most = most.max(launches.iter().map(|kernel| kernel.parts.len()).max().unwrap());
    }
    println!("{before} kernels in {after} launches, at most {most} side by side");
    assert!(before > 2 * after && most >= 10, "{before} {after} {most}");
}

/// Rows of columns and of outputs, of several schedules: with workgroup memory, two axes, several lanes an element.
pub(crate) fn mixed() -> Bench {
    let mut random = Random(600);
    let mut b = GraphBuilder::new();
    let (rows, wide) = (b.floats(&[8, 150], &random.tame(1200)), b.floats(&[8, 300], &random.tame(2400)));
    let (zero, outputs) = (b.n(0), b.dims.dim(DimOp::Outputs));
    let x = b.per_column(rows);
    let y = b.slice(rows, 0, zero, outputs);
    let z = b.per_column(wide);
    b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, x, None);
    b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, y, None);
    b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, z, None);
    b.apply(ScalarOp::Exp, &[y]);
    b.apply(ScalarOp::Add, &[x, x]);
    b.reduce(ReduceKind::Max, Tree::Free, 1, x, None);
    b.reduce(ReduceKind::Max, Tree::Free, 1, y, None);
    let ids = b.ints(&[8, 2], &[0, 1, 5, 3, 3, 3, 7, 2, 0, 4, 1, 1, 6, 5, 4, 2]);
    let w = b.floats(&[5, 150], &random.tame(750));
    b.product(Tree::Lanes(128), x, w, None);
    b.per_column(ids);
    Bench::new(b, Checkpoint::default(), &[])
}

#[test]
fn a_part_may_have_nothing_to_do() {
    let bench = mixed();
    let launches = launches(&bench.all_kernels());
    let parts: Vec<usize> = launches.iter().map(|kernel| kernel.parts.len()).collect();
    assert!(parts.iter().filter(|&&parts| parts > 1).count() >= 2, "{parts:?}");
    let step = |columns, outputs| Step { position: 5, columns, outputs };
    let empty = |step: Step| {
        let scalar = |dim| ds4_ir::dim::dim_value(bench.tables.dims.as_slice(), dim, step);
        launches.iter().any(|kernel| kernel.grid_in(&scalar).unwrap().parts.iter().any(|part| part.contains(&0)))
    };
    assert!(empty(step(4, 0)) && !empty(step(4, 1)));
    bench.check_kernels(&launches, &[step(4, 0), step(8, 8), step(5, 2), step(1, 0)]);
    let block = StepBlock::of(&launches);
    let grids = |kernel: &Kernel, place: &dyn Fn(ds4_ir::Dim) -> ds4_ir::Dim| -> Vec<Vec<ExtentRow>> {
        let row = |row: &ExtentRow| ExtentRow { scalar: row.scalar.map(place), ..*row };
        let axes = |part: &Part| part.grid.iter().map(|e| row(&kernel.extents[e.0 as usize])).collect();
        kernel.parts.iter().map(axes).collect()
    };
    let place = |dim| ds4_ir::Dim(block.place(dim).unwrap() as u32);
    for language in &LANGUAGES {
        for (kernel, text) in launches.iter().zip(language.texts(&launches)) {
            assert_eq!(grids(&text.unwrap().kernel, &|place| place), grids(kernel, &place), "{}", kernel.name);
        }
    }
}

/// A kernel that writes the number of each workgroup and its own in its buffer, over a grid of two axes.
fn numbered(number: u32, axes: [ExtentRow; 2]) -> Kernel {
    let b = Builder::new("numbered", &[ds4_ir::Value(number)], 8);
    let (outer, inner) = (b.group(axes[0]), b.group(axes[1]));
    let out = b.argument(Source::Slot(ds4_ir::Value(number)), Type::Word, Access::Write, "out");
    let at = b.name("at", b.add_int(b.mul_int(outer, b.extent_value(axes[1])), inner));
    b.when(b.equal_int(b.lane(), b.word(0)), || b.store(out, at, b.add_int(at, b.word(number << 24))));
    b.finish()
}

/// More workgroups than an axis of a dispatch has: what each writes says which one it was.
#[test]
fn a_large_grid_is_folded() {
    let step = |most, times, per| ExtentRow { scalar: Some(ds4_ir::Dim(0)), most, times, per };
    let constant = ExtentRow::constant;
    let grids = [
        [constant(200), constant(150)],
        [step(300, 2, 1), constant(70)],
        [constant(3), step(300, 7, 3)],
        [step(300, 1, 1), step(300, 1, 3)],
    ];
    let kernels = (0..).zip(grids).map(|(number, axes)| numbered(number, axes)).collect();
    let kernel = side_by_side("all", kernels).unwrap();
    let block = StepBlock::of([&kernel]);
    let mut all = vec![("kernel", kernel.clone())];
    all.extend(LANGUAGES.iter().map(|language| {
        let text = (language.emit)(&kernel, &block).unwrap();
        (language.target.name(), (language.read)(&text).unwrap().kernel)
    }));
    for scalar in [300, 0, 5] {
        let value = |row: ExtentRow| row.value(row.scalar.map_or(row.most, |_| scalar)).unwrap();
        let counts = grids.map(|axes| axes.map(value).iter().product::<u32>());
        for (name, kernel) in &all {
            let grid = kernel.grid_in(&|_| scalar).unwrap();
            assert_eq!(grid.total(), u64::from(counts.iter().sum::<u32>()), "{name}");
            assert_eq!(grid.folded().unwrap().1, if scalar == 300 { 2 } else { 1 }, "{name}");
            let mut cells: Vec<_> = counts.iter().map(|&count| Cells::unwritten(count as usize)).collect();
            Machine::new(kernel, &D, LaneOrder::Descending).unwrap().run(&|_| scalar, &mut cells).unwrap();
            for (number, (cells, count)) in (0..).zip(cells.iter().zip(counts)) {
                let right = |at: u32| cells.word(&D, at as usize) == Some(at + (number << 24));
                assert!((0..count).all(right), "{name}, part {number}");
            }
        }
    }
}

#[test]
fn parts_share_arguments_and_memory() {
    let bench = mixed();
    let kernels = bench.all_kernels();
    let sums: Vec<Kernel> = kernels.iter().filter(|kernel| shared_words(kernel) > 0).cloned().collect();
    let same: Vec<Kernel> = sums.iter().filter(|kernel| kernel.lanes == sums[0].lanes).cloned().collect();
    assert!(same.len() >= 3);
    let joined = side_by_side("sums", same.clone()).unwrap();
    assert_eq!(shared_words(&joined), same.iter().map(shared_words).max().unwrap());
    let apart: usize = same.iter().map(|kernel| kernel.arguments().count()).sum();
    assert!(joined.arguments().count() < apart);
    let sources: std::collections::HashSet<Source> = joined.arguments().map(|(_, source, _)| source).collect();
    assert_eq!(sources.len(), joined.arguments().count());
    // Arrays of several types: the largest of each type is one.
    let arrays = |rows: &[(Type, u32)]| {
        let b = Builder::new("arrays", &[], 8);
        b.group(ExtentRow::constant(1));
        for &(ty, len) in rows {
            b.shared(ty, len, "array");
        }
        b.finish()
    };
    let rows =
        [arrays(&[(Type::F32, 10), (Type::F32, 300), (Type::Word, 5)]), arrays(&[(Type::Word, 7), (Type::F32, 20)])];
    let joined = side_by_side("arrays", rows.to_vec()).unwrap();
    let mut lens: Vec<_> = joined.memories.iter().map(|row| (row.element, row.len)).collect();
    lens.sort();
    assert_eq!(lens, [(Type::F32, 10), (Type::F32, 300), (Type::Word, 7)]);
}

#[test]
fn what_does_not_go_side_by_side_is_refused() {
    let kernel = |number: u32, lanes: u32, arguments: &[(u32, Type, Access)]| {
        let b = Builder::new("some", &[ds4_ir::Value(number)], lanes);
        b.group(ExtentRow::constant(2));
        for &(v, ty, access) in arguments {
            b.argument(Source::Slot(ds4_ir::Value(v)), ty, access, "x");
        }
        b.finish()
    };
    let (read, write) = (Access::Read, Access::Write);
    let refused = |kernels: &[Kernel]| side_by_side("all", kernels.to_vec()).unwrap_err();
    let slot = |v| Source::Slot(ds4_ir::Value(v));
    let one = kernel(0, 8, &[(1, Type::F32, read), (2, Type::F32, write)]);
    assert_eq!(refused(&[]), Apart::Nothing);
    assert_eq!(refused(&[one.clone(), kernel(1, 16, &[])]), Apart::Lanes(8, 16));
    assert_eq!(refused(&[one.clone(), kernel(1, 8, &[(2, Type::F32, write)])]), Apart::Written(slot(2)));
    assert_eq!(refused(&[one.clone(), kernel(1, 8, &[(1, Type::Word, read)])]), Apart::Element(slot(1)));
    let many = |first: u32, count: u32| {
        kernel(first, 8, &(first..first + count).map(|v| (v, Type::F32, read)).collect::<Vec<_>>())
    };
    assert_eq!(refused(&[many(0, 16), many(16, 16)]), Apart::Arguments(32));
    let joined = side_by_side("all", vec![many(0, 16), many(15, 16)]).unwrap();
    assert_eq!(joined.arguments().count(), MOST_ARGUMENTS);
    let joined = side_by_side("all", vec![one.clone(), kernel(1, 8, &[(2, Type::F32, read)])]).unwrap();
    assert_eq!(joined.memories.iter().map(|row| row.access).collect::<Vec<_>>(), [read, Access::ReadWrite]);
    let mut wrong = kernel(1, 8, &[]);
    wrong.parts[0].grid[0] = crate::kernel::Extent(9);
    assert!(matches!(refused(&[one, wrong]), Apart::Wrong(_)));
}

/// A launch of several parts, among the launches of its bench.
fn several(bench: &Bench) -> (Vec<Kernel>, usize) {
    let launches = launches(&bench.all_kernels());
    let at = (0..launches.len()).max_by_key(|&at| launches[at].parts.len()).unwrap();
    (launches, at)
}

/// Bodies that lie in each other's grid, and grids that are one workgroup too long or too short, do not go unseen.
#[test]
fn exchanged_parts_and_wrong_grids_are_caught() {
    let bench = mixed();
    let (launches, at) = several(&bench);
    let kernel = &launches[at];
    assert_eq!(bench.caught(&launches, at, kernel, 8), None);
    let step = Step { position: 5, columns: 8, outputs: 8 };
    let grid = kernel.grid_in(&|dim| ds4_ir::dim::dim_value(bench.tables.dims.as_slice(), dim, step)).unwrap();
    let mut different = 0;
    for (a, b) in (0..kernel.parts.len()).flat_map(|b| (0..b).map(move |a| (a, b))) {
        let (mut bodies, mut parts) = (kernel.clone(), kernel.clone());
        let (body, other) = (bodies.parts[a].body, bodies.parts[b].body);
        (bodies.parts[a].body, bodies.parts[b].body) = (other, body);
        parts.parts.swap(a, b);
        let differ = grid.parts[a] != grid.parts[b];
        different += usize::from(differ);
        assert_eq!(bench.caught(&launches, at, &bodies, 8).is_some(), differ, "{a} {b}");
        assert_eq!(bench.caught(&launches, at, &parts, 8), None, "{a} {b}");
    }
    assert!(different > 0);
}

/// A text in which a part begins a workgroup too early or too late is refused; one whose parts lie in each other's place is
/// seen.
#[test]
fn a_first_group_off_by_one_is_refused() {
    let bench = mixed();
    let (launches, at) = several(&bench);
    let block = StepBlock::of(&launches);
    for language in &LANGUAGES {
        let text = (language.emit)(&launches[at], &block).unwrap();
        let rest: Vec<&str> = text.lines().filter(|line| takes_off(line)).collect();
        assert_eq!(rest.len(), launches[at].parts.len() - 1, "{text}");
        let refused = |old: &str, new: &str| {
            let changed = text.replacen(old, new, 1);
            assert_ne!(changed, text);
            assert!(!outcome(language, &bench, (&launches, at), &changed), "{}\n{changed}", language.target.name());
        };
        for line in rest {
            let count = line.trim_end_matches(';').rsplit(' ').next().unwrap();
            let other =
                if count.trim_end_matches('u').parse::<u32>().is_ok() { format!("{count}0") } else { "7u".into() };
            let (before, _) = line.rsplit_once(' ').unwrap();
            refused(line, &format!("{before} {other};"));
            refused(line, &line.replace('-', "+").replace("sub.", "add."));
            refused(&format!("{line}\n"), "");
        }
    }
}

/// Whether a line takes the count of a part off the workgroup's number.
fn takes_off(line: &str) -> bool {
    let line = line.trim_start();
    ["let number", "sub.u32 %number", "const unsigned number"]
        .iter()
        .any(|start| line.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
}

/// Whether a text is taken for a kernel and leaves the evaluator's bits.
fn outcome(language: &Language, bench: &Bench, (launches, at): (&[Kernel], usize), text: &str) -> bool {
    bench.caught_in_text(language, launches, at, text, 8).is_none()
}

/// Two parts that use one cell are a race, as two workgroups of one part are.
#[test]
fn parts_that_are_not_independent_race() {
    let part = |number: u32, from: u32, to: u32| {
        let b = Builder::new("part", &[ds4_ir::Value(number)], 8);
        b.group(ExtentRow::constant(1));
        let x = b.argument(Source::Slot(ds4_ir::Value(from)), Type::Word, Access::Read, "x");
        let out = b.argument(Source::Slot(ds4_ir::Value(to)), Type::Word, Access::Write, "out");
        let word: crate::kernel::Word = b.load("word", x, b.lane());
        b.store(out, b.lane(), word);
        b.finish()
    };
    let kernel = side_by_side("both", vec![part(0, 0, 1), part(1, 1, 2)]).unwrap();
    for order in LaneOrder::ALL {
        let mut cells = vec![Cells::of_words(&D, &[5; 8]); 3];
        let trap = Machine::new(&kernel, &D, order).unwrap().run(&|_| 0, &mut cells).unwrap_err();
        assert_eq!((trap.check, Caught::Machine(trap.check)), (Check::Race, Caught::Machine(Check::Race)));
    }
}
