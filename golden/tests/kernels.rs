//! The kernel suite: what its cases cover, that devices give the golden words, that faults are found and told well.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use ds4_golden::bless;
use ds4_golden::cases::{self, Case, FAMILIES, fused};
use ds4_golden::check::{Device, Found, Verdict, compare};
use ds4_golden::command::folder;
use ds4_golden::devices;
use ds4_golden::expect::{CaseRow, FamilyFile};
use ds4_golden::machine_device::MachineDevice;
use ds4_golden::report::Table;
use ds4_golden::shared::Shared;
use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Format, Op, ReduceKind, Run, ScalarOp, Tree, Type};
use ds4_kernels::Target;
use ds4_kernels::kernel::MOST_GROUPS;
use ds4_kernels::machine::LaneOrder;
use ds4_runtime::cpu::products::Isa;
use ds4_runtime::device::backend::{Backend, Buffer, Dispatch, Function, Piece, Sequence, Text};

/// The CPU as plain as it can be.
fn cpu() -> Device {
    Device::Cpu { threads: 1, isa: Isa::available().next().unwrap() }
}

fn golden(family: &str) -> FamilyFile {
    FamilyFile::read(&folder(), family).unwrap().unwrap()
}

fn case(family: &str, name: &str) -> Case {
    let cases = FAMILIES.iter().find(|row| row.0 == family).unwrap().1();
    cases.into_iter().find(|case| case.name == name).unwrap()
}

fn row(family: &str, name: &str) -> CaseRow {
    golden(family).case(name).unwrap().clone()
}

#[test]
fn cases_have_names_of_their_own() {
    let cases = cases::all();
    let names: BTreeSet<_> = cases.iter().map(|case| (case.family, &case.name)).collect();
    assert_eq!(names.len(), cases.len());
    for case in &cases {
        let compared = case.compared();
        let names: BTreeSet<_> = compared.iter().map(|row| &row.0).collect();
        assert!(!compared.is_empty() && names.len() == compared.len(), "{} {}", case.family, case.name);
    }
}

/// A new operation, format or tree needs a case.
#[test]
fn every_operation_format_and_tree_occurs() {
    let (mut ops, mut scalars, mut sums) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut products = BTreeSet::new();
    let mut widened = BTreeSet::new();
    for case in cases::all() {
        let graph = case.graph.view();
        scalars.extend(graph.scalars.iter().map(|row| row.op));
        for v in graph.values() {
            let (op, args) = (graph.op(v), graph.args(v));
            ops.insert(op);
            match op {
                Op::Reduce => {
                    sums.insert((graph.ty(v).0, graph.attrs(v)[0], graph.attrs(v)[1], args.len() == 2));
                }
                Op::Product => {
                    let is_gathered = graph.op(args[1]) == Op::Gather;
                    products.insert((graph.ty(args[0]).0, graph.ty(args[1]).format(), graph.attrs(v)[0], is_gathered));
                }
                Op::Widen => {
                    widened.insert((graph.ty(args[0]).format(), graph.op(args[0]) == Op::Gather));
                }
                _ => {}
            }
        }
    }
    let missing: Vec<&str> = Op::ALL.iter().filter(|op| !ops.contains(op)).map(|op| op.name()).collect();
    assert!(missing.is_empty(), "no case has {missing:?}");
    let leaves = [ScalarOp::Param, ScalarOp::F32, ScalarOp::I32];
    let missing = ScalarOp::ALL.iter().chain(&leaves).filter(|op| !scalars.contains(&(**op as u32)));
    let missing: Vec<&str> = missing.map(|op| op.name()).collect();
    assert!(missing.is_empty(), "no case has {missing:?}");
    for tree in [Tree::Seq, Tree::Lanes(32), Tree::Lanes(128)] {
        for masked in [false, true] {
            let sum = (Type::F32.0, ReduceKind::Sum as u32, tree.number(), masked);
            assert!(sums.contains(&sum), "no sum in {tree:?}, masked {masked}");
        }
        for format in Format::ALL.into_iter().filter(|format| !format.is_integer()) {
            let product = (Type::F32.0, Some(format), tree.number(), false);
            assert!(products.contains(&product), "no product with {} in {tree:?}", format.name());
        }
        assert!(products.contains(&(Type::F32.0, None, tree.number(), false)), "no product of values in {tree:?}");
    }
    for (ty, kind) in [(Type::F32, ReduceKind::Max), (Type::I32, ReduceKind::Sum), (Type::I32, ReduceKind::Max)] {
        assert!(sums.contains(&(ty.0, kind as u32, Tree::Free.number(), false)), "no {} of {}", kind.name(), ty.name());
    }
    for format in Format::ALL {
        for gathered in [false, true] {
            let place = format!("{}, gathered {gathered}", format.name());
            assert!(widened.contains(&(Some(format), gathered)), "nothing widens {place}");
            let with_q8 = products.contains(&(Type::Q8.0, Some(format), Tree::BLOCKS.number(), gathered));
            assert_eq!(with_q8, format.takes_q8(), "q8 product with {place}");
            let with_f32 = products.iter().any(|row| (row.0, row.1, row.3) == (Type::F32.0, Some(format), gathered));
            assert_eq!(with_f32, !format.is_integer(), "f32 product with {place}");
        }
    }
}

/// The cases called `large` have a kernel whose grid is folded, whatever it does.
#[test]
fn large_grids_are_folded() {
    let large: Vec<Case> = cases::all().into_iter().filter(|case| case.name == "large").collect();
    assert_eq!(large.iter().map(|case| case.family).collect::<Vec<_>>(), ["map", "reduce", "product", "choose"]);
    for case in large {
        let tables = case.plan(&[Target::Wgsl], None).unwrap();
        let plan = tables.view();
        let groups = plan.kernels.iter().map(|kernel| {
            let parts = kernel.grid.of(plan.grid_parts).iter();
            let axes = |part: &Run| {
                part.of(plan.extents).iter().map(|row| u64::from((row.times * row.most).div_ceil(row.per)))
            };
            parts.map(|part| axes(part).product::<u64>()).sum::<u64>()
        });
        assert!(groups.max() > Some(MOST_GROUPS.into()), "{}", case.family);
    }
}

/// Every graph of the folder is a case, but for those that the verifier refuses.
#[test]
fn every_fusion_is_a_case() {
    let entries = std::fs::read_dir(ds4_golden::data("fusions")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<(String, String)> = entries
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap()))
        .filter(|(_, text)| !text.contains(";! refused"))
        .collect();
    found.sort();
    let listed: Vec<_> = fused::GRAPHS.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    assert_eq!(found, listed);
    let left_out = listed.len() - fused::cases().len();
    assert!(left_out <= 2, "{left_out} graphs are too large");
}

/// The files are small, and the evaluator gives their words.
#[test]
fn golden_files_are_what_the_evaluator_gives() {
    let changes = bless::changes(&folder(), |_| true).unwrap();
    let lines: Vec<&String> = changes.iter().flat_map(|change| &change.lines).collect();
    assert!(lines.is_empty(), "`ds4-golden bless` would change {lines:#?}");
    let other = tempfile::tempdir().unwrap();
    let fresh = bless::changes(other.path(), |_| true).unwrap();
    assert!(fresh.iter().all(|change| change.is_any() && !change.loses));
    bless::write(other.path(), &fresh).unwrap();
    let mut bytes = 0;
    for (family, _) in FAMILIES {
        let [present, written] = [&folder(), other.path()]
            .map(|folder: &Path| std::fs::read(ds4_golden::expect::path(folder, family)).unwrap());
        assert!(present == written, "{family}");
        bytes += present.len();
    }
    assert!(bytes < 600_000, "{bytes} bytes");
    assert!(bless::changes(other.path(), |_| true).unwrap().iter().all(|change| !change.is_any()));
}

/// Runs cases on a device; the lines of those that are not equal.
fn unequal(device: &Device, is_wanted: impl Fn(&Case) -> bool) -> Vec<String> {
    let cases: Vec<Case> = cases::all().into_iter().filter(is_wanted).collect();
    let table = Table::of(cases.iter().map(|case| (case.family, case.name.as_str())));
    let mut rows = Vec::new();
    for (family, _) in FAMILIES {
        let file = golden(family);
        let of = cases.iter().filter(|case| case.family == family);
        rows.extend(of.map(|case| device.check(case, file.case(&case.name))));
    }
    println!("{}: {}", device.name(), table.total(&rows));
    rows.iter().filter(|row| row.verdict != Verdict::Equal).map(|row| table.row(row)).collect()
}

#[test]
fn the_cpu_gives_the_golden_words() {
    for isa in Isa::available() {
        for threads in [1, 3] {
            let found = unequal(&Device::Cpu { threads, isa }, |_| true);
            assert!(found.is_empty(), "{}, {threads} threads\n{}", isa.name(), found.join("\n"));
        }
    }
}

/// On the first Vulkan device. Without one, the test says that it is skipped; under `CI=true` it fails.
#[test]
fn wgpu_gives_the_golden_words() {
    let backend = match devices::open("wgpu") {
        Ok(backend) => backend.unwrap(),
        Err(absent) if [codes::DEVICE_DRIVER, codes::DEVICE_ABSENT].contains(&absent.code) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "a Vulkan device is needed: run scripts/tools");
            println!("skipped: wgpu_gives_the_golden_words: no Vulkan device; scripts/tools installs one");
            return;
        }
        Err(diagnostic) => panic!("{diagnostic}"),
    };
    let found = unequal(&Device::Backend(Shared::new(backend)), |_| true);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether the kernel machine takes the case from this language: fused ones with few weights, a third from each.
fn is_for_the_machine(case: &Case, target: Target) -> bool {
    match (case.family, case.name.as_str()) {
        (_, "large") => target == Target::Hip,
        (fused::FAMILY, name) => {
            let third = name.bytes().map(usize::from).sum::<usize>() % 3;
            case.weights.bytes().len() < 300_000 && [Target::Wgsl, Target::Ptx, Target::Hip][third] == target
        }
        _ => true,
    }
}

/// The kernel machine, from the texts of a language. Large grids look alike in all of them and take long.
fn machine(target: Target, order: LaneOrder) {
    let device = Device::Backend(Shared::new(Box::new(MachineDevice::new(target, order))));
    let found = unequal(&device, |case| is_for_the_machine(case, target));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_machine_gives_the_golden_words_from_wgsl() {
    machine(Target::Wgsl, LaneOrder::Ascending);
}

#[test]
fn the_machine_gives_the_golden_words_from_ptx() {
    machine(Target::Ptx, LaneOrder::Descending);
}

#[test]
fn the_machine_gives_the_golden_words_from_hip() {
    machine(Target::Hip, LaneOrder::Descending);
}

/// A device that leaves out the last launch.
struct Lazy(Box<dyn Backend>);

impl Backend for Lazy {
    fn target(&self) -> Target {
        self.0.target()
    }
    fn name(&self) -> &str {
        "lazy"
    }
    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.0.buffer(name, bytes)
    }
    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.0.fill(piece, write)
    }
    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        self.0.read(piece, bytes)
    }
    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        self.0.functions(texts, progress)
    }
    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        self.0.sequence(dispatches)
    }
    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        self.0.run(sequence, &dispatches[..dispatches.len().saturating_sub(1)])
    }
}

/// What did not run is noticed: a launch that the device leaves out by the words, a kernel that no step launches by the trace.
#[test]
fn launches_that_do_not_run_are_noticed() {
    let machine = || Box::new(MachineDevice::new(Target::Wgsl, LaneOrder::Ascending));
    let mut case = case(fused::FAMILY, "pooling_16");
    let row = row(fused::FAMILY, "pooling_16");
    let lazy = Device::Backend(Shared::new(Box::new(Lazy(machine()))));
    let verdict = lazy.check(&case, Some(&row)).verdict;
    assert!(matches!(&verdict, Verdict::Different(list) if !list.is_empty()), "{verdict:?}");
    // No block of sixteen tokens is complete behind nine.
    case.feeds.truncate(2);
    let device = Device::Backend(Shared::new(machine()));
    let Verdict::Failed(text) = device.check(&case, Some(&row)).verdict else { panic!("a kernel did not run") };
    assert!(text.contains("every kernel to run") && text.contains("not a.pool.region"), "{text}");
}

/// A device on which the lowest bit of one word is read wrong.
struct Broken(Box<dyn Backend>);

impl Backend for Broken {
    fn target(&self) -> Target {
        self.0.target()
    }
    fn name(&self) -> &str {
        "broken"
    }
    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, Diagnostic> {
        self.0.buffer(name, bytes)
    }
    fn fill(&mut self, piece: Piece, write: &mut dyn FnMut(u64, &mut [u8])) -> Result<(), Diagnostic> {
        self.0.fill(piece, write)
    }
    fn read(&mut self, piece: Piece, bytes: &mut [u8]) -> Result<(), Diagnostic> {
        self.0.read(piece, bytes)?;
        bytes[4 * 5] ^= 1;
        Ok(())
    }
    fn functions(&mut self, texts: &[Text<'_>], progress: &mut dyn FnMut()) -> Result<Vec<Function>, Diagnostic> {
        self.0.functions(texts, progress)
    }
    fn sequence(&mut self, dispatches: &[Dispatch]) -> Result<Sequence, Diagnostic> {
        self.0.sequence(dispatches)
    }
    fn run(&mut self, sequence: Sequence, dispatches: &[(u32, [u32; 2])]) -> Result<(), Diagnostic> {
        self.0.run(sequence, dispatches)
    }
}

#[test]
fn a_broken_device_is_told() {
    let machine = Box::new(MachineDevice::new(Target::Wgsl, LaneOrder::Ascending));
    let device = Device::Backend(Shared::new(Box::new(Broken(machine))));
    let verdict = device.check(&case("map", "addi"), Some(&row("map", "addi"))).verdict;
    let way = |way: &str| {
        format!(
            "step 0 (1 column at 0), {way}: `k`[5]: wanted 00000003 (3), found 00000002 (2); 1 of 722 elements differ"
        )
    };
    assert_eq!(verdict.lines(), [way("as a whole"), way("launch by launch")], "{}", device.name());
}

/// What a verdict says of a case whose results were changed.
fn told(family: &str, name: &str, change: impl FnOnce(&mut Found)) -> String {
    let case = case(family, name);
    let mut found = cpu().run(&case, None).unwrap();
    change(&mut found);
    let verdict = compare(&case, &row(family, name), &found);
    [&[verdict.word().to_string()], &verdict.lines()[..]].concat().join("\n")
}

/// A changed word of the last tensor that has this name.
fn plant(found: &mut Found, name: &str, at: usize, change: impl Fn(u32) -> u32) {
    let words = found.tensors.iter_mut().rev().find(|row| row.2.name == name).map(|row| &mut row.2.words).unwrap();
    words[at] = change(words[at]);
}

#[test]
fn a_wrong_result_is_told_with_its_place() {
    let mut text = Vec::new();
    // A float of two axes, one unit of the last place off; in a sum that is a subnormal; and a sign.
    text.push(told("reduce", "sum.lanes32.37", |found| plant(found, "last", 1, |w| w + 1)));
    text.push(told("reduce", "sum.lanes32.37", |found| {
        plant(found, "last", 1, |_| 1);
        plant(found, "middle", 0, |w| w ^ 0x8000_0000);
    }));
    // The first way only, and several elements.
    text.push(told("map", "columns", |found| {
        let first = &mut found.tensors[2];
        first.2.words[3..70].iter_mut().for_each(|w| *w ^= 1 << 20);
    }));
    // Integers, ids, codes and scales of q8.
    text.push(told("map", "addi", |found| plant(found, "k", 30, |w| w + 1)));
    text.push(told("choose", "sort_ids.6", |found| plant(found, "ids", 5, |_| 7)));
    text.push(told("quantise", "rows", |found| plant(found, "q.codes", 161, |w| w.wrapping_sub(1))));
    text.push(told("quantise", "rows", |found| plant(found, "q.scales", 6, |_| f32::NAN.to_bits())));
    // A state.
    text.push(told("states", "ring", |found| plant(found, "ring", 40, |_| 0x3f80_0000)));
    insta::assert_snapshot!("wrong_results", text.join("\n\n"));
}

#[test]
fn elements_without_a_value_may_hold_anything() {
    let ids = row("views", "gathered");
    let tensor = ids.steps[0].tensors.iter().find(|tensor| tensor.name == "rows").unwrap();
    let absent = tensor.absent(tensor.shape.iter().product());
    let at = |wanted: bool| absent.iter().position(|&absent| absent == wanted).unwrap();
    let change = |at: usize| {
        told("views", "gathered", |found| {
            let row = found.tensors.iter_mut().find(|row| row.2.name == "rows").unwrap();
            row.2.words[at] ^= 1;
        })
    };
    assert_eq!(change(at(true)), "equal");
    assert!(change(at(false)).starts_with("DIFFERENT"));
}

/// The golden file is at fault, or the evaluator: nobody knows, and nothing is said of the device.
#[test]
fn a_wrong_golden_word_is_no_fault_of_the_device() {
    let case = case("reduce", "sum.lanes32.37");
    let mut wrong = row("reduce", "sum.lanes32.37");
    let tensor = &mut wrong.steps[1].tensors[0];
    let mut words = tensor.first_words();
    words[2] ^= 2;
    tensor.first = words.iter().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" ");
    tensor.blake3.replace_range(..2, "00");
    let beyond = &mut wrong.steps[2].tensors[1];
    beyond.blake3.replace_range(..2, "00");
    let verdict = cpu().check(&case, Some(&wrong)).verdict;
    let mut text = vec![verdict.word().to_string()];
    text.extend(verdict.lines());
    // Other steps, other tensors, no case at all.
    let mut fewer = row("reduce", "sum.lanes32.37");
    fewer.steps.pop();
    text.extend(cpu().check(&case, Some(&fewer)).verdict.lines());
    let mut other = row("reduce", "sum.lanes32.37");
    other.steps[0].tensors[0].name = "first".into();
    text.extend(cpu().check(&case, Some(&other)).verdict.lines());
    text.extend(cpu().check(&case, None).verdict.lines());
    insta::assert_snapshot!("wrong_golden_words", text.join("\n"));
}

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ds4-golden")).args(arguments).output().unwrap()
}

/// Standard output and standard error, times and folders left out.
fn said(output: &Output, folder: &Path) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap().replace(&folder.display().to_string(), "FOLDER");
    let lines = text.lines().map(|line| {
        let line = if line.starts_with("device: cpu") { "device: CPU" } else { line };
        let words = line.split(' ').map(|word| match word.parse::<f64>() {
            Ok(_) if word.contains('.') => "_",
            _ => word,
        });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_program_checks_and_blesses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut text = Vec::new();
    let mut run = |arguments: &[&str], code: i32| {
        let output = program(arguments);
        text.push(format!("$ {}\n{}", arguments.join(" ").replace(path, "FOLDER"), said(&output, folder.path())));
        assert_eq!(output.status.code(), Some(code), "{}", text.last().unwrap());
    };
    let check = ["check", "--golden", path, "--family", "quantise"];
    // Without golden words; then with.
    run(&[&check[..], &["--case", "edges"]].concat(), 1);
    run(&["bless", "--golden", path, "--family", "quantise"], 0);
    run(&["bless", "--golden", path, "--family", "quantise"], 0);
    run(&["check", "--golden", path, "--family", "nothing"], 1);
    run(&["check", "--golden", path, "--case", "no such case"], 1);
    run(&["check", "--device", "abacus"], 1);
    let file = folder.path().join("quantise.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    let output = program(&check);
    assert!(output.status.success(), "{}", said(&output, folder.path()));
    // A golden word changes: told by both, and written only when asked for.
    let hash = golden("quantise").case("edges").unwrap().steps[0].tensors[1].blake3.clone();
    let changed = whole.replace(&hash, &hash.replace(&hash[..8], "00000000"));
    assert_ne!(changed, whole);
    std::fs::write(&file, &changed).unwrap();
    run(&[&check[..], &["--case", "edges"]].concat(), 1);
    run(&["bless", "--golden", path], 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), changed);
    let json = program(&[&check[..], &["--json", "--case", "edges"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json.status.code(), &report["equal"]), (Some(1), &serde_json::Value::Bool(false)));
    assert_eq!(report["cases"][0]["differences"][0]["whose"], "evaluator");
    run(&["bless", "--golden", path, "--family", "quantise", "--yes"], 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    std::fs::write(&file, "{").unwrap();
    run(&[&check[..], &["--case", "edges"]].concat(), 1);
    run(&["bless", "--golden", path, "--family", "quantise"], 1);
    assert_eq!(program(&["chek"]).status.code(), Some(2));
    insta::assert_snapshot!("program", text.join("\n\n"));
}
