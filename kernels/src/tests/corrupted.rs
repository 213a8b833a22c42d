//! One character of a text is another: the reader refuses it, or the kernel that it gives does something else.
//!
//! Every distinct kind of line, which is a line without its names and numbers, is tried at each of its characters. What is
//! read and is not the same kernel with other names runs beside the right one, over the same memory, with several step
//! blocks, some of which hold more than any step does. Where that memory does not show a difference, changed expressions are
//! compared by themselves, over all values near their constants. A change that cannot be told apart fails the test, but for
//! the few that are the same function and are listed.

use std::collections::{HashMap, HashSet};

use ds4_ir::dim::dim_value;
use ds4_ir::eval::States;
use ds4_ir::{Builder, Dim, Format, ReduceKind, Run, ScalarOp, ScalarType, Step, Tree, Type};

use crate::emit::{StepBlock, hip};
use crate::kernel::{
    Access, Block, Expr, ExprRow, Extent, ExtentRow, Kernel, Local, LocalRow, Memory, MemoryRow, Operator, Source,
    Space, Stmt, Type as Element,
};
use crate::machine::{Cells, LaneOrder, Machine, Numbers};
use crate::read;

use super::bench::{Bench, COLUMNS, Checkpoint, D, Random, Small};

/// A kernel with the memory that it begins with, and step blocks to run it with.
struct Sample {
    text: String,
    kernel: Kernel,
    cells: Vec<Cells<Numbers>>,
    blocks: Vec<Vec<u32>>,
    /// What the right kernel does in all runs.
    outcomes: Vec<Outcome>,
}

/// The kernels of a graph, each behind those before it.
fn samples(b: Builder, checkpoint: Checkpoint) -> Vec<Sample> {
    let bench = Bench::new(b, checkpoint, &[]);
    let kernels = bench.all_kernels();
    let block = StepBlock::of(&kernels);
    let states = States::new(&bench.tables.view());
    let most = *COLUMNS.iter().max().unwrap();
    let step = |columns| Step { position: 5, columns, outputs: columns };
    let words = |columns| block.words(&|dim| dim_value(bench.tables.dims.as_slice(), dim, step(columns)));
    // Scalars that differ from each other, those of a whole step, and more than any step has.
    let mixed = words(0).iter().enumerate().map(|(i, &w)| if i < 2 { w } else { [7, 2][i % 2] }).collect();
    let beyond = words(most).iter().enumerate().map(|(i, &w)| if i < 2 { w } else { w + 1 }).collect();
    let huge = block.words(&|_| u32::MAX);
    let blocks = vec![mixed, words(most), beyond, huge];
    let mut memories = bench.memories(&states, &[0, 1, 2, 0, 1, 2, 0, 1]);
    let sample = |kernel: &Kernel| {
        let cells = kernel.arguments().map(|(_, source, _)| memories[&source].clone()).collect();
        let text = hip::emit(kernel, &block).unwrap();
        let read = read::hip::read(&text).unwrap().kernel;
        bench.execute(std::slice::from_ref(kernel), step(most), &mut memories, LaneOrder::Ascending).unwrap();
        let mut sample = Sample { text, kernel: read, cells, blocks: blocks.clone(), outcomes: Vec::new() };
        sample.outcomes = runs(&blocks).map(|(block, order)| outcome(&sample, &sample.kernel, block, order)).collect();
        sample
    };
    kernels.iter().map(sample).collect()
}

/// Floats that show what random ones hide, and rows of one value: sums of zeros of one sign, ties, edges of functions.
fn values(random: &mut Random, count: usize) -> Vec<f32> {
    let mut values = random.adversarial(count);
    let edges = [-0.0, 0.0, f32::from_bits(1), 1.0, 88.722_84, -87.336_54, 20.0, 0.5, 1.5, 2.5, f32::INFINITY];
    for (i, row) in values.chunks_mut(count / 8).enumerate() {
        match i {
            0 => row.fill(-0.0),
            1 => row.iter_mut().zip(edges.iter().cycle()).enumerate().for_each(|(j, (x, &edge))| {
                *x = f32::from_bits((edge.to_bits()).wrapping_add((j / edges.len()) as u32 % 5).wrapping_sub(2));
            }),
            2 => row.iter_mut().for_each(|x| *x = random.next() as i32 as f32 / 65_536.0 / 65_536.0 * 180.0),
            _ => {}
        }
    }
    values
}

fn maps() -> Builder {
    let mut random = Random(400);
    let mut b = Builder::new();
    let x = b.floats(&[8, 96], &values(&mut random, 768));
    let y = b.floats(&[8, 96], &values(&mut random, 768));
    let (x, y) = (b.per_column(x), b.per_column(y));
    for op in [ScalarOp::Exp, ScalarOp::Sqrt, ScalarOp::RoundF16, ScalarOp::Floor, ScalarOp::Ceil, ScalarOp::Abs] {
        b.apply(op, &[x]);
    }
    for op in [ScalarOp::Max, ScalarOp::Div, ScalarOp::Sub] {
        b.apply(op, &[x, y]);
    }
    let ids = b.ids(&[8, 96], &(0..768).map(|i| if i % 3 == 1 { -1 } else { i % 96 }).collect::<Vec<_>>());
    let ids = b.per_column(ids);
    b.gather(1, 1, x, ids);
    let s = &mut b.scalars;
    let (id, one, two) = (s.param(0, ScalarType::Id), s.f32(1.0), s.f32(2.0));
    let present = s.op(ScalarOp::Present, &[id]).unwrap();
    let result = s.op(ScalarOp::SelectF32, &[present, one, two]).unwrap();
    let body = s.body(&[ScalarType::Id], result).unwrap();
    b.map(body, &[ids]);
    b
}

fn reductions() -> Builder {
    let mut random = Random(401);
    let mut b = Builder::new();
    let x = b.floats(&[8, 150], &values(&mut random, 1200));
    let x = b.per_column(x);
    let masked: Vec<i32> = (0..1200).map(|i| if i % 3 == 1 { -1 } else { i % 150 }).collect();
    let ids = b.ids(&[8, 150], &masked);
    let ids = b.per_column(ids);
    for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(128)] {
        b.reduce(ReduceKind::Sum, tree, 1, x, None);
    }
    b.reduce(ReduceKind::Max, Tree::Free, 1, x, Some(ids));
    b.top_k(5, x, Some(ids));
    b.arg_max(x);
    b.sort_ids(ids);
    b
}

/// Of a row that leaves lanes of its last workgroup without work.
fn quantised() -> Builder {
    let mut b = Builder::new();
    let x = b.floats(&[8, 384], &values(&mut Random(402), 3072));
    let x = b.per_column(x);
    b.quantise(x);
    b
}

/// Of rows that are longer than a workgroup is wide.
fn products() -> (Builder, Checkpoint) {
    let mut random = Random(403);
    let (mut b, mut checkpoint) = (Builder::new(), Checkpoint::default());
    let x = b.floats(&[8, 1280], &random.tame(10_240));
    let x = b.per_column(x);
    let q = b.quantise(x);
    for format in [Format::Q8_0, Format::IQ2_XXS] {
        let w = b.add_weight(format.name(), Type::weight(format), &[3, 1280]);
        let w = b.weight(w);
        checkpoint.random(format, [1, 3, 1280], &mut random);
        b.product(Tree::BLOCKS, q, w, None);
    }
    (b, checkpoint)
}

fn writes() -> Builder {
    let mut random = Random(404);
    let mut b = Builder::new();
    let state = b.add_state("rows", Type::F32, &[16, 3]);
    let old = b.read(state);
    let ids = b.ids(&[8], &[7, -1, 3, 0, 15, -1, 2, 4]);
    let ids = b.per_column(ids);
    let rows = b.floats(&[8, 3], &random.tame(24));
    let rows = b.per_column(rows);
    b.write(old, ids, rows);
    b
}

/// A line without its names and numbers.
fn kind(line: &str) -> String {
    let words = ["const", "unsigned", "float", "bool", "if", "else", "for", "return", "int", "step", "lane", "number"];
    let mut kind = String::new();
    let mut word = String::new();
    for c in line.trim().chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '_' || (c == '.' && !word.is_empty()) {
            word.push(c);
            continue;
        }
        let known = words.contains(&word.as_str()) || word.starts_with('_');
        let called = c == '(' || c == '<';
        match word.chars().next() {
            None => {}
            Some(_) if known || called => kind += &word,
            Some(first) if first.is_ascii_digit() => kind.push('0'),
            Some(_) => kind.push('n'),
        }
        word.clear();
        kind.push(c);
    }
    kind
}

/// What a character is replaced with.
fn replacements(c: char) -> Vec<char> {
    let next = |by: u8| (c as u8 + by) as char;
    match c {
        '0' => vec!['1', 'x', ' '],
        '1'..='8' => vec![next(1), '0', '.'],
        '9' => vec!['8', 'u'],
        'z' | 'Z' | '_' => vec!['x', '1'],
        'a'..='y' | 'A'..='Y' => vec![next(1), '1', ' '],
        '+' => vec!['-', '*', ' '],
        '-' => vec!['+', ' ', '*'],
        '*' => vec!['+', '/', '&'],
        '/' => vec!['*', '%'],
        '%' => vec!['/', '*'],
        '<' => vec!['>', '=', '-'],
        '>' => vec!['<', '='],
        '=' => vec!['<', '!', ' '],
        '!' => vec!['=', ' '],
        '&' => vec!['|', '^', ' '],
        '|' => vec!['&', '^'],
        '^' => vec!['&', '|'],
        ' ' => vec!['-', '!', ';'],
        _ => vec![' ', ',', '-'],
    }
}

/// A kernel without what only a reader sees.
fn nameless(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    kernel.name.clear();
    kernel.about.clear();
    kernel.locals.iter_mut().for_each(|row| row.name.clear());
    kernel.memories.iter_mut().for_each(|row| row.name.clear());
    kernel
}

/// What a kernel leaves in memory; a trap in the words of the machine.
type Outcome = Result<Vec<Option<u32>>, String>;

/// A run of a kernel over the sample's memory.
fn outcome(sample: &Sample, kernel: &Kernel, block: &[u32], order: LaneOrder) -> Outcome {
    let mut cells = sample.cells.clone();
    // A place outside of the block is memory of somebody else.
    let scalar = |place: Dim| block.get(place.0 as usize).copied().unwrap_or(77);
    Machine::new(kernel, &D, order).unwrap().run(&scalar, &mut cells).map_err(|trap| trap.message)?;
    Ok(cells.iter().flat_map(|cells| (0..cells.len()).map(|at| cells.word(&D, at))).collect())
}

/// All runs: each block in each order.
fn runs(blocks: &[Vec<u32>]) -> impl Iterator<Item = (&[u32], LaneOrder)> {
    blocks.iter().flat_map(|block| LaneOrder::ALL.map(|order| (&block[..], order)))
}

/// Whether a run with the block at this place shows that a kernel is not the sample's.
fn shows(sample: &Sample, kernel: &Kernel, at: usize) -> bool {
    let (block, order) = (&sample.blocks[at / 2], LaneOrder::ALL[at % 2]);
    kernel.arguments().count() != sample.cells.len()
        || kernel.lanes != sample.kernel.lanes
        || outcome(sample, kernel, block, order) != sample.outcomes[at]
}

/// Words that tell expressions apart: their constants, what differs from these in two bits or is next to them, floats, and
/// words of all sizes.
fn words(constants: &[u32], random: &mut Random) -> Vec<u32> {
    let bits = || (0..32).flat_map(|i| (i..32).map(move |j| 1 << i | 1 << j));
    let near = |&word: &u32| bits().map(move |b| word ^ b).chain([word, word.wrapping_sub(1), word.wrapping_add(1)]);
    let mut words: Vec<u32> = constants.iter().flat_map(near).collect();
    words.sort();
    words.dedup();
    words.extend(random.adversarial(200).iter().map(|x| x.to_bits()));
    words.extend((0..200).map(|_| random.next() >> (random.next() % 32)));
    words
}

/// A leaf whose value a run decides: operator and word.
type Leaf = (Operator, u32);

/// What two expressions are made of: the leaves whose values runs decide, with their types, and the constants.
fn leaves(kernels: [&Kernel; 2], exprs: [Expr; 2]) -> (Vec<(Leaf, Element)>, Vec<u32>) {
    let (mut leaves, mut constants) = (Vec::new(), vec![0, u32::MAX]);
    for (kernel, x) in kernels.into_iter().zip(exprs) {
        let mut stack = vec![x];
        while let Some(x) = stack.pop() {
            let row = kernel.expr(x);
            stack.extend(row.operands());
            let leaf = |ty| ((row.op, row.words[0]), ty);
            let leaf = match row.op {
                Operator::Local => leaf(kernel.locals[row.words[0] as usize].ty),
                Operator::Extent | Operator::Group | Operator::Lane => leaf(Element::Word),
                Operator::Int | Operator::Float => {
                    constants.push(row.words[0]);
                    continue;
                }
                _ => continue,
            };
            if !leaves.contains(&leaf) {
                leaves.push(leaf);
            }
        }
    }
    constants.sort();
    constants.dedup();
    (leaves, constants)
}

/// A kernel that does nothing but compute `x` of another: each lane loads the values of the leaves from tables, and stores
/// the result behind the last of them.
fn probe(kernel: &Kernel, x: Expr, leaves: &[(Leaf, Element)], samples: u32) -> Kernel {
    let mut probe = Kernel { memories: Vec::new(), stmts: Vec::new(), locals: Vec::new(), ..kernel.clone() };
    for row in &mut probe.exprs {
        if let Some(at) = leaves.iter().position(|(leaf, _)| *leaf == (row.op, row.words[0])) {
            *row = ExprRow { op: Operator::Local, words: [at as u32, 0, 0] };
        }
    }
    probe.extents = vec![ExtentRow::constant(samples / kernel.lanes)];
    probe.grid = vec![Extent(0)];
    let push = |probe: &mut Kernel, op, words| {
        probe.exprs.push(ExprRow { op, words });
        Expr(probe.exprs.len() as u32 - 1)
    };
    let (lane, group) = (push(&mut probe, Operator::Lane, [0; 3]), push(&mut probe, Operator::Group, [0; 3]));
    let (one, zero) = (push(&mut probe, Operator::Int, [1, 0, 0]), push(&mut probe, Operator::Int, [0; 3]));
    let lanes = push(&mut probe, Operator::Int, [kernel.lanes, 0, 0]);
    let first = push(&mut probe, Operator::MulInt, [group.0, lanes.0, 0]);
    let index = push(&mut probe, Operator::AddInt, [first.0, lane.0, 0]);
    let memory = |probe: &mut Kernel, element| {
        let space = Space::Buffer(Source::Argument(probe.memories.len() as u32));
        probe.memories.push(MemoryRow { space, element, access: Access::ReadWrite, len: 0, name: String::new() });
        Memory(probe.memories.len() as u32 - 1)
    };
    let local = |probe: &mut Kernel, ty| {
        probe.locals.push(LocalRow { ty, name: String::new(), mutable: false });
        Local(probe.locals.len() as u32 - 1)
    };
    for &(_, ty) in leaves {
        local(&mut probe, ty);
    }
    for (at, &(_, ty)) in (0..).zip(leaves) {
        let truth = ty == Element::Bool;
        let memory = memory(&mut probe, if truth { Element::Word } else { ty });
        let word = if truth { local(&mut probe, Element::Word) } else { Local(at) };
        probe.stmts.push(Stmt::Load { local: word, memory, index });
        if truth {
            let word = push(&mut probe, Operator::Local, [word.0, 0, 0]);
            let bit = push(&mut probe, Operator::And, [word.0, one.0, 0]);
            let value = push(&mut probe, Operator::EqualInt, [bit.0, one.0, 0]);
            probe.stmts.push(Stmt::Let { local: Local(at), value });
        }
    }
    let ty = |x: Expr| probe.expr(x).op.signature().map(|(_, result)| result);
    let truth = ty(x) == Some(Element::Bool) || probe.expr(x).op == Operator::Truth;
    let value = if truth { push(&mut probe, Operator::SelectInt, [x.0, one.0, zero.0]) } else { x };
    let out = memory(&mut probe, Element::Word);
    probe.stmts.push(Stmt::Store { memory: out, index, value });
    probe.blocks = vec![Run { start: 0, len: probe.stmts.len() as u32 }];
    probe.body = Block(0);
    probe
}

/// Whether an expression of one kernel and one of another have the same value for all rows of a table of leaves. Every
/// leaf has every word twice, once with all others, and each constant often.
fn computes_alike(kernels: [&Kernel; 2], exprs: [Expr; 2], random: &mut Random) -> bool {
    let (leaves, constants) = leaves(kernels, exprs);
    let words = words(&constants, random);
    let samples = (3 * words.len()).next_multiple_of(kernels[0].lanes as usize);
    let mut table: Vec<Cells<Numbers>> = Vec::new();
    for _ in &leaves {
        // Rows of one word, then rows of any words.
        let mut rest = words.clone();
        rest.resize_with(samples - words.len(), || constants[random.next() as usize % constants.len()]);
        (1..rest.len()).for_each(|i| rest.swap(i, random.next() as usize % (i + 1)));
        table.push(Cells::of_words(&D, &[&words[..], &rest].concat()));
    }
    table.push(Cells::unwritten(samples));
    let results = [0, 1].map(|i| {
        let probe = probe(kernels[i], exprs[i], &leaves, samples as u32);
        let mut cells = table.clone();
        Machine::of_verified(&probe, &D, LaneOrder::Ascending).run(&|_| 0, &mut cells).unwrap();
        let out = &cells[leaves.len()];
        (0..samples).map(|at| out.word(&D, at)).collect::<Vec<_>>()
    });
    results[0] == results[1]
}

/// Whether two expressions are written alike.
fn written_alike(kernels: [&Kernel; 2], [x, y]: [Expr; 2]) -> bool {
    let (a, b) = (kernels[0].expr(x), kernels[1].expr(y));
    let leaf = a.op.arity() == 0;
    a.op == b.op
        && (!leaf || a.words == b.words)
        && a.operands().zip(b.operands()).all(|(x, y)| written_alike(kernels, [x, y]))
}

/// Whether two kernels with the same statements differ in what an expression is, for some values of its leaves.
fn computes_otherwise(a: &Kernel, b: &Kernel, random: &mut Random) -> bool {
    let alike = a.stmts.len() == b.stmts.len() && a.stmts.iter().zip(&b.stmts).all(|(x, y)| shape(*x) == shape(*y));
    let mut pairs = a.stmts.iter().zip(&b.stmts).flat_map(|(x, y)| x.exprs().zip(y.exprs()));
    alike && pairs.any(|(x, y)| !written_alike([a, b], [x, y]) && !computes_alike([a, b], [x, y], random))
}

/// Whether a kernel is another with more workgroups, which have nothing to do, or with longer arrays.
fn has_room(a: &Kernel, b: &Kernel) -> bool {
    let mut b = b.clone();
    if a.grid != b.grid || a.memories.len() != b.memories.len() {
        return false;
    }
    for e in &a.grid {
        let used = |row: &ExprRow| row.op == Operator::Extent && row.words[0] == e.0;
        let ends = |stmt: &Stmt| matches!(stmt, Stmt::For { end, .. } if end == e);
        let (new, old) = (&mut b.extents[e.0 as usize], a.extents[e.0 as usize]);
        if new.largest() >= old.largest() && !b.exprs.iter().any(used) && !b.stmts.iter().any(ends) {
            *new = old;
        }
    }
    for (new, old) in b.memories.iter_mut().zip(&a.memories) {
        new.len = if new.len >= old.len { old.len } else { new.len };
    }
    nameless(a) == nameless(&b)
}

/// Parts of lines that may be written otherwise and give the same function, and why.
const EQUAL: [(&str, &str); 5] = [
    ("int(1024u)", "the smallest normal numbers of f16 are as far apart as the subnormal ones, so both ways give them"),
    ("int(0x38800000u)", "the same, where f16 is rounded to"),
    ("0x1010101u", "the product of four bits and 0x204081 has bits that are always clear"),
    ("<< 16u) | 0x7f800000u", "the bits of both sides are different ones"),
    ("number >= extent0", "the other extent is larger, and workgroups behind the last have nothing to do"),
];

/// A statement without its expressions.
fn shape(stmt: Stmt) -> Stmt {
    let x = Expr(0);
    match stmt {
        Stmt::Let { local, .. } => Stmt::Let { local, value: x },
        Stmt::Var { local, .. } => Stmt::Var { local, value: x },
        Stmt::Set { local, .. } => Stmt::Set { local, value: x },
        Stmt::Load { local, memory, .. } => Stmt::Load { local, memory, index: x },
        Stmt::Store { memory, .. } => Stmt::Store { memory, index: x, value: x },
        Stmt::Shuffle { local, distance, width, .. } => Stmt::Shuffle { local, value: x, distance, width },
        Stmt::If { then, otherwise, .. } => Stmt::If { condition: x, then, otherwise },
        Stmt::Present { index, then, otherwise, .. } => Stmt::Present { id: x, index, then, otherwise },
        Stmt::For { index, end, step, body, .. } => Stmt::For { index, start: x, end, step, body },
        Stmt::Barrier => Stmt::Barrier,
    }
}

/// How a change showed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Shown {
    /// The reader refused the text.
    Refused,
    /// The kernel leaves other memory or traps.
    Different,
    /// Some expression has another value, at values of its leaves that the sample's memory does not bring.
    Elsewhere,
    /// The kernel is the same but for names and comments.
    Renamed,
    /// The kernel is the same with more room.
    Roomy,
    /// The line is the same function by [`EQUAL`].
    Equal,
    /// Nothing shows.
    Silent,
}

fn shown(sample: &Sample, line: &str, text: &str, changed: &str, random: &mut Random) -> Shown {
    let Ok(reading) = read::hip::read(text) else { return Shown::Refused };
    let kernel = &reading.kernel;
    if nameless(kernel) == nameless(&sample.kernel) {
        return Shown::Renamed;
    }
    if shows(sample, kernel, 0) {
        return Shown::Different;
    }
    if computes_otherwise(&sample.kernel, kernel, random) {
        return Shown::Elsewhere;
    }
    if (1..sample.outcomes.len()).any(|at| shows(sample, kernel, at)) {
        return Shown::Different;
    }
    if has_room(&sample.kernel, kernel) {
        return Shown::Roomy;
    }
    let equal = EQUAL.iter().any(|(part, _)| line.contains(part) && !changed.contains(part));
    if equal { Shown::Equal } else { Shown::Silent }
}

#[test]
fn no_changed_character_goes_unnoticed() {
    let mut all = Vec::new();
    for b in [quantised(), maps(), reductions(), writes()] {
        all.extend(samples(b, Checkpoint::default()));
    }
    let (b, checkpoint) = products();
    all.extend(samples(b, checkpoint));
    let mut kinds = HashSet::new();
    let mut random = Random(405);
    let mut counts: HashMap<Shown, usize> = HashMap::new();
    let mut silent = Vec::new();
    for sample in &all {
        let mut end = 0;
        for line in sample.text.split_inclusive('\n') {
            let start = end;
            end += line.len();
            if !kinds.insert(kind(line)) {
                continue;
            }
            for (i, c) in line.trim_end().char_indices() {
                for new in replacements(c) {
                    let mut text = sample.text.clone();
                    text.replace_range(start + i..start + i + 1, &new.to_string());
                    let changed = &text[start..end];
                    let how = shown(sample, line, &text, changed, &mut random);
                    *counts.entry(how).or_default() += 1;
                    if how == Shown::Silent {
                        silent.push(format!("{line}{changed}"));
                    }
                }
            }
        }
    }
    println!("{} kinds of lines: {counts:?}", kinds.len());
    assert!(silent.is_empty(), "{}", silent.concat());
    let enough = |how: Shown, least: usize| assert!(counts[&how] >= least, "{how:?}: {counts:?}");
    assert!(kinds.len() >= 200);
    enough(Shown::Refused, 20_000);
    enough(Shown::Different, 1000);
    enough(Shown::Elsewhere, 100);
}
