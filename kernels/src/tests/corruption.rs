//! Texts with one wrong character: a reader refuses them, or the machine shows the change. No change is silent.
//!
//! The lines come from kernels of many schedules, one line of each kind (its words are gone, what stays is what it does). At
//! each place of a line a few other characters stand instead. What comes of that is counted:
//!
//! | outcome | |
//! |---|---|
//! | refused | the reader says that this is no kernel |
//! | trapped | the machine refuses to run it |
//! | launched | it asks for another grid, other lanes or other memory of the workgroup |
//! | changed | it leaves other bits than the kernel does |
//! | computed | it leaves the same bits by other operations: the [terms](super::terms) differ |
//! | same | it is the same kernel but for names: a comment, a local's name, a literal written in another way |

use std::collections::HashSet;

use ds4_ir::eval::States;
use ds4_ir::{Builder, Dim, DimOp, Format, ReduceKind, ScalarOp, ScalarType, Step, Tree, Type};

use crate::emit::StepBlock;
use crate::kernel::{Kernel, Operator};
use crate::machine::{Cells, Check, LaneOrder, Machine};
use crate::read::Reading;

use super::bench::{Bench, Checkpoint, LANGUAGES, Language, Random, Small};
use super::beside::launches;
use super::terms::{Terms, leaves, terms};

/// A kernel with the memory that it starts from, in several steps.
struct Subject {
    kernel: Kernel,
    block: StepBlock,
    /// The step's block, and the arguments' cells before the launch.
    settings: Vec<(Vec<u32>, Vec<Cells<Terms>>)>,
}

/// What a kernel does in one setting.
#[derive(PartialEq, Eq)]
struct Left {
    /// Workgroups, lanes, words of the workgroup.
    launch: (Option<u64>, u32, u32),
    /// The words of all arguments with their terms, or the check that refused.
    cells: Result<Vec<Option<(u32, u64)>>, Check>,
    /// The hash of the indices and conditions.
    asked: u64,
}

impl Subject {
    /// The kernels of a bench. They run in steps of one and of eight columns, and with a block that says more than any bound.
    fn all(bench: &Bench) -> Vec<Subject> {
        Subject::of(bench, &bench.all_kernels())
    }

    /// The same of other kernels in the place of the values' own.
    fn of(bench: &Bench, kernels: &[Kernel]) -> Vec<Subject> {
        let block = StepBlock::of(kernels);
        let step = |columns: u32| Step { position: 5, columns, outputs: columns.div_ceil(2) };
        let mut subjects: Vec<Subject> = kernels
            .iter()
            .map(|kernel| Subject { kernel: kernel.clone(), block: block.clone(), settings: Vec::new() })
            .collect();
        for columns in [8, 1] {
            let tokens: Vec<u32> = (0..columns).map(|i| i % 3).collect();
            let mut memories = bench.memories(&States::new(&bench.tables.view()), &tokens);
            let words = bench.step_words(kernels, step(columns));
            for (kernel, subject) in kernels.iter().zip(&mut subjects) {
                let arguments = kernel.arguments().enumerate();
                let cells: Vec<_> = arguments.map(|(i, (_, source, _))| leaves(i, &memories[&source])).collect();
                if columns == 8 {
                    let beyond = words.iter().enumerate().map(|(place, &w)| if place < 2 { w } else { 100_000 });
                    subject.settings.push((beyond.collect(), cells.clone()));
                }
                subject.settings.push((words.clone(), cells));
                bench
                    .execute(std::slice::from_ref(kernel), step(columns), &mut memories, LaneOrder::Ascending)
                    .unwrap();
            }
        }
        subjects
    }

    /// What a text of this kernel does in one of the settings.
    fn left(&self, text: &Reading, setting: usize, order: LaneOrder) -> Left {
        let (words, cells) = &self.settings[setting];
        let mut cells = cells.clone();
        let (kernel, scalar) = (&text.kernel, |place: Dim| words.get(place.0 as usize).copied().unwrap_or(0));
        let domain = Terms::spelled();
        let done = Machine::new(kernel, &domain, order).unwrap().run(&scalar, &mut cells);
        let words = kernel.memories.iter().map(|row| row.len).sum();
        Left {
            launch: (kernel.grid_in(&scalar).map(|grid| grid.total()), kernel.lanes, words),
            cells: done.map(|()| terms(&cells)).map_err(|trap| trap.check),
            asked: domain.asked(),
        }
    }

    /// What a text leaves in all settings and orders.
    fn all_left<'s>(&'s self, text: &'s Reading) -> impl Iterator<Item = Left> + 's {
        let settings = (0..self.settings.len()).flat_map(|i| LaneOrder::ALL.map(|order| (i, order)));
        settings.map(|(setting, order)| self.left(text, setting, order))
    }
}

/// Kernels of many schedules, those with little text first.
fn subjects() -> Vec<Subject> {
    let products = [Format::Q8_0, Format::Q4_K, Format::MXFP4].map(products);
    let benches = [maps(), gathers(), reductions(), choices()];
    let mut subjects: Vec<Subject> = benches.iter().chain(&products).flat_map(Subject::all).collect();
    subjects.sort_by_key(|subject| subject.kernel.stmts.len() + subject.kernel.exprs.len());
    subjects
}

/// A kernel of several parts, over columns and over outputs. The last workgroup of each map is full, so that one more or less
/// shows.
fn beside() -> Vec<Subject> {
    let mut random = Random(405);
    let mut b = Builder::new();
    let rows = b.floats(&[8, 64], &random.tame(512));
    let (zero, outputs) = (b.n(0), b.dims.dim(DimOp::Outputs));
    let x = b.per_column(rows);
    let y = b.slice(rows, 0, zero, outputs);
    b.apply(ScalarOp::Neg, &[y]);
    b.apply(ScalarOp::Abs, &[x]);
    let w = b.floats(&[16, 64], &random.tame(1024));
    b.product(Tree::Seq, x, w, None);
    let bench = Bench::new(b, Checkpoint::default(), &[]);
    let subjects = Subject::of(&bench, &launches(&bench.all_kernels()));
    assert!(subjects.iter().any(|subject| subject.kernel.parts.len() > 1));
    subjects
}

fn maps() -> Bench {
    let mut random = Random(400);
    let mut b = Builder::new();
    let (x, y) = (b.floats(&[8, 40], &random.adversarial(320)), b.floats(&[8, 40], &random.adversarial(320)));
    let (x, y) = (b.per_column(x), b.per_column(y));
    let s = &mut b.scalars;
    let (p, q, one) = (s.param(0, ScalarType::F32), s.param(1, ScalarType::F32), s.f32(1.0));
    let exp = s.op(ScalarOp::Exp, &[p]).unwrap();
    let below = s.op(ScalarOp::Add, &[one, exp]).unwrap();
    let ratio = s.op(ScalarOp::Div, &[q, below]).unwrap();
    let body = s.body(&[ScalarType::F32; 2], ratio).unwrap();
    b.map(body, &[x, y]);
    for op in [ScalarOp::Sqrt, ScalarOp::Neg, ScalarOp::Abs, ScalarOp::RoundEven] {
        b.apply(op, &[x]);
    }
    Bench::new(b, Checkpoint::default(), &[])
}

fn gathers() -> Bench {
    let mut random = Random(401);
    let mut b = Builder::new();
    let source = b.floats(&[6, 3], &random.tame(18));
    let ids = b.ids(&[8], &[5, -1, 0, 2, -1, 3, 4, 1]);
    let ids = b.per_column(ids);
    b.gather(0, 0, source, ids);
    Bench::new(b, Checkpoint::default(), &[])
}

fn reductions() -> Bench {
    let mut random = Random(402);
    let mut b = Builder::new();
    let x = b.floats(&[8, 150], &random.tame(1200));
    let ids = b.ids(&[8, 150], &(0..1200).map(|i| if i % 7 == 3 { -1 } else { i }).collect::<Vec<_>>());
    let (x, ids) = (b.per_column(x), b.per_column(ids));
    b.reduce(ReduceKind::Sum, Tree::Lanes(128), 1, x, None);
    b.reduce(ReduceKind::Sum, Tree::Lanes(32), 1, x, Some(ids));
    b.reduce(ReduceKind::Max, Tree::Free, 1, x, None);
    Bench::new(b, Checkpoint::default(), &[])
}

fn choices() -> Bench {
    let mut random = Random(403);
    let mut b = Builder::new();
    let x = b.floats(&[8, 70], &random.tame(560));
    let x = b.per_column(x);
    b.top_k(3, x, None);
    b.arg_max(x);
    Bench::new(b, Checkpoint::default(), &[])
}

fn products(format: Format) -> Bench {
    let mut random = Random(404);
    let k = format.block_len().max(64) as u32;
    let mut b = Builder::new();
    let w = b.add_weight("w", Type::weight(format), &[3, k]);
    let w = b.weight(w);
    let x = b.floats(&[8, k], &random.tame(8 * k as usize));
    let x = b.per_column(x);
    b.product(Tree::Lanes(32), x, w, None);
    if format.takes_q8() {
        let x = b.quantise(x);
        b.product(Tree::BLOCKS, x, w, None);
    }
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(format, [1, 3, k as usize], &mut random);
    Bench::new(b, checkpoint, &[])
}

/// What came of the corrupted texts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    kinds: usize,
    refused: usize,
    trapped: usize,
    launched: usize,
    changed: usize,
    computed: usize,
    same: usize,
}

impl Counts {
    /// The count for what a text left in the place of what was expected.
    fn of(&mut self, left: &Left, expected: &Left) -> &mut usize {
        let word = |cell: &Option<(u32, u64)>| cell.map(|(word, _)| word);
        let words = |left: &Left| left.cells.as_ref().map(|cells| cells.iter().map(word).collect::<Vec<_>>()).ok();
        match &left.cells {
            _ if left.launch != expected.launch => &mut self.launched,
            Err(_) => &mut self.trapped,
            Ok(_) if words(left) != words(expected) => &mut self.changed,
            Ok(_) => &mut self.computed,
        }
    }
}

/// Corrupts one line of each kind, or all; panics with the changes that nothing showed.
fn corrupt(language: &Language, subjects: Vec<Subject>, all: bool) -> Counts {
    let mut counts = Counts::default();
    let mut silent = Vec::new();
    let mut kinds = HashSet::new();
    for subject in subjects {
        let text = (language.emit)(&subject.kernel, &subject.block).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let original = Original::of(language, &subject, &text);
        for at in (0..lines.len()).filter(|&at| kinds.insert(kind(lines[at])) || all) {
            for line in corrupted(lines[at]) {
                let faulty = [&lines[..at], &[&line], &lines[at + 1..]].concat().join("\n");
                match original.outcome(&faulty, &mut counts) {
                    Some(count) => *count += 1,
                    None => silent.push(format!("{}: {}\n    became {line}", subject.kernel.name, lines[at])),
                }
            }
        }
    }
    counts.kinds = kinds.len();
    println!("{}: {counts:?}", language.target.name());
    assert!(silent.is_empty(), "{}: {} silent changes\n{}", language.target.name(), silent.len(), silent.join("\n"));
    counts
}

/// A text that is right.
struct Original<'s> {
    language: &'s Language,
    subject: &'s Subject,
    kernel: Kernel,
    left: Vec<Left>,
}

impl<'s> Original<'s> {
    fn of(language: &'s Language, subject: &'s Subject, text: &str) -> Original<'s> {
        let reading = (language.read)(text).unwrap();
        let left: Vec<Left> = subject.all_left(&reading).collect();
        assert!(left.iter().any(|left| left.cells.is_ok()), "{}", subject.kernel.name);
        Original { language, subject, kernel: nameless(&reading.kernel), left }
    }

    /// The count for what comes of a text; `None` if its kernel is another one and nothing shows it.
    fn outcome<'c>(&self, faulty: &str, counts: &'c mut Counts) -> Option<&'c mut usize> {
        let Ok(reading) = (self.language.read)(faulty) else { return Some(&mut counts.refused) };
        if nameless(&reading.kernel) == self.kernel {
            return Some(&mut counts.same);
        }
        let mut left = self.subject.all_left(&reading).zip(&self.left);
        let (left, expected) = left.find(|(left, expected)| left != *expected)?;
        Some(counts.of(&left, expected))
    }
}

/// What a line does, without its names and numbers: the first word, operators, functions; what lies in brackets is left out.
fn kind(line: &str) -> String {
    if line.starts_with("//") {
        return "//".into();
    }
    let mut tokens: Vec<&str> = Vec::new();
    let mut depth = 0;
    let mut rest = line.trim();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.%@$".contains(c);
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, behind) = rest.split_at(len);
        rest = behind;
        depth -= i32::from(")]".contains(first));
        if depth == 0 && first != ' ' {
            let means = match tokens[..] {
                [] => !rest.trim_start().starts_with(['=', '[']),
                // The name that a declaration gives.
                [first] if first.starts_with(is_word) => false,
                _ => rest.starts_with(['(', '<']),
            };
            tokens.push(if is_word(first) && !means { "n" } else { token });
        }
        depth += i32::from("([".contains(first));
    }
    tokens.join(" ")
}

/// The line with another character at each place: one of the same class and one of another.
fn corrupted(line: &str) -> impl Iterator<Item = String> {
    const CLASSES: [&str; 5] =
        ["0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ_", "+-*/%&|^<>=!~", "()[]{},;:.@ "];
    let place = |c: char| CLASSES.iter().enumerate().find_map(|(class, all)| all.find(c).map(|at| (class, at)));
    let changed = move |at: usize, c: char| {
        let (class, of) = place(c).unwrap_or((0, 0));
        let pick = |class: usize, of: usize| CLASSES[class % CLASSES.len()].chars().cycle().nth(of).unwrap();
        [pick(class, of + 1 + at % 4), pick(class + 1 + at % 4, of + at)].map(|new| (at, c, new))
    };
    let all: Vec<_> = line.char_indices().flat_map(|(at, c)| changed(at, c)).filter(|(_, c, new)| c != new).collect();
    let line = line.to_string();
    all.into_iter().map(move |(at, c, new)| format!("{}{new}{}", &line[..at], &line[at + c.len_utf8()..]))
}

/// A kernel without what only a reader of the text sees; all NaN constants are one.
fn nameless(kernel: &Kernel) -> Kernel {
    let mut kernel = Kernel { name: String::new(), about: String::new(), ..kernel.clone() };
    kernel.locals.iter_mut().for_each(|row| row.name.clear());
    kernel.memories.iter_mut().for_each(|row| row.name.clear());
    for row in kernel.exprs.iter_mut().filter(|row| row.op == Operator::Float) {
        row.words[0] = super::bench::canonical_bits(row.words[0]);
    }
    kernel
}

#[test]
fn no_wrong_character_is_silent() {
    std::thread::scope(|scope| {
        for language in &LANGUAGES {
            scope.spawn(|| {
                let Counts { kinds, refused, trapped, launched, changed, .. } = corrupt(language, subjects(), false);
                // In PTX most names are declared, so nearly all wrong ones are refused.
                let enough = kinds > 30 && refused > 2000 && trapped > 2 && launched > 2 && changed > 40;
                assert!(enough, "{}", language.target.name());
            });
        }
    });
}

/// The same of every line of a kernel with several parts.
#[test]
fn no_wrong_character_beside_other_parts_is_silent() {
    std::thread::scope(|scope| {
        for language in &LANGUAGES {
            scope.spawn(|| {
                let Counts { refused, launched, changed, .. } = corrupt(language, beside(), true);
                assert!(refused > 4000 && launched > 5 && changed > 5, "{}", language.target.name());
            });
        }
    });
}
