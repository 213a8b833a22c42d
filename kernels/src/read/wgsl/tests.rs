//! What no printer writes is refused, and the fault says why and where.

use crate::kernel::{Operator, Stmt, Type};
use crate::read::Reading;

use super::read;

/// A kernel that has one of most things.
const TEXT: &str = "\
// v1 f32[columns, 40] = made by hand
@group(0) @binding(0) var<storage, read> step: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
var<workgroup> cells: array<f32, 64>;

fn flipped(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }

@compute @workgroup_size(64)
fn made_v1(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = workgroup.x + workgroup.y * workgroups.x;
    let extent0 = min(step[2], 8u);
    if (number >= extent0) { return; }
    var count = 3u;
    var sum = bitcast<f32>(step[1]);
    for (var k = lane; k < 40u; k += 64u) {
        let value = x[(number * 40u) + k];
        sum = sum + flipped(value);
        count = count + k;
    }
    cells[lane] = sum;
    workgroupBarrier();
    let mine = sum;
    let other = subgroupShuffleXor(mine, 4u);
    if ((lane < 8u) && !(lane == 3u)) {
        let there = cells[lane ^ 1u];
        out[(number * 8u) + lane] = other + there;
    }
}
";

/// The text with other words in the place of these, which it holds.
fn with(old: &str, new: &str) -> String {
    assert!(TEXT.contains(old), "{old}");
    TEXT.replacen(old, new, 1)
}

#[track_caller]
fn refused(text: &str) -> (u32, String) {
    let fault = read(text).unwrap_err();
    (fault.line, fault.what)
}

#[test]
fn a_text_is_read_line_by_line() {
    let Reading { kernel, lines } = read(TEXT).unwrap();
    assert_eq!((kernel.name.as_str(), kernel.lanes), ("made_v1", 64));
    assert_eq!(kernel.about, "v1 f32[columns, 40] = made by hand");
    let names: Vec<_> = kernel.locals.iter().map(|l| (l.name.as_str(), l.ty, l.mutable)).collect();
    let wanted = [
        ("count", Type::Word, true),
        ("sum", Type::F32, true),
        ("k", Type::Word, false),
        ("value", Type::F32, false),
        ("mine", Type::F32, false),
        ("other", Type::F32, false),
        ("there", Type::F32, false),
    ];
    assert_eq!(names, wanted);
    let content = |at: usize| TEXT.lines().nth(lines[at] as usize - 1).unwrap().trim();
    for (at, stmt) in kernel.stmts.iter().enumerate() {
        let begins = match stmt {
            Stmt::Let { .. } => "let mine = sum;",
            Stmt::Var { .. } => "var ",
            Stmt::Set { .. } => "",
            Stmt::Load { .. } => "let ",
            Stmt::Store { memory, .. } => &kernel.memories[memory.0 as usize].name,
            Stmt::Shuffle { .. } => "let other",
            Stmt::Barrier { .. } => "workgroupBarrier();",
            Stmt::If { .. } => "if ((lane < 8u)",
            Stmt::For { .. } => "for ",
            Stmt::Present { .. } => unreachable!("a text has words"),
        };
        assert!(content(at).starts_with(begins), "{stmt:?} at {}", content(at));
    }
    assert!([Operator::Neg, Operator::Both, Operator::Not].iter().all(|&op| kernel.exprs.iter().any(|x| x.op == op)));
    let inside = with("other + there", "other + cells[lane]");
    assert_eq!(refused(&inside), (31, "a load without a name".into()));
}

/// Declarations.
#[test]
fn other_declarations_are_refused() {
    let what = |old: &str, new: &str| refused(&with(old, new));
    let declared = |new: &str| what("var<workgroup>", &format!("{new}\nvar<workgroup>"));
    let neither = "a variable of the module that is neither a buffer of group 0 nor an array of the workgroup";
    assert_eq!(declared("@group(1) @binding(0) var<storage, read> other: array<u32>;"), (5, neither.into()));
    assert_eq!(declared("var<private> other: array<u32, 4>;"), (5, neither.into()));
    let array = "a variable of the module that is no array of words or floats";
    assert_eq!(declared("@group(0) @binding(3) var<uniform> other: vec4<u32>;"), (5, array.into()));
    assert_eq!(declared("@group(0) @binding(3) var image: texture_2d<f32>;"), (5, array.into()));
    assert_eq!(declared("var<workgroup> one: u32;"), (5, array.into()));
    let element = "an array of another type than f32 and u32";
    assert_eq!(declared("@group(0) @binding(3) var<storage, read> other: array<i32>;"), (5, element.into()));
    assert_eq!(declared("var<workgroup> other: array<atomic<u32>, 4>;"), (5, element.into()));
    assert_eq!(declared("const SIZE = 4u;"), (5, "a constant of the module".into()));
    assert_eq!(declared("override size: u32 = 4u;").1, "an override or a filter of diagnostics");
    let numbered = "bindings are numbered from 0 on, and 0 is the step's block";
    assert_eq!(what("@binding(2)", "@binding(3)"), (4, numbered.into()));
    assert_eq!(
        what("@binding(0) var<storage, read>", "@binding(0) var<storage, read_write>").1,
        "the step's block holds words that are read"
    );
    assert_eq!(what("@compute", "@compute @workgroup_size(8)\nfn other() {}\n@compute").1, "wanted one entry point");
    assert_eq!(what("(64)", "(8, 8)").1, "a workgroup has its lanes along x");
    assert_eq!(what("workgroup_size(64)", "workgroup_size(63)").1, "63 lanes; wanted a multiple of 8 up to 256");
    assert!(what("local_invocation_index", "subgroup_invocation_id").1.contains("an input of the entry point"));
}

/// Functions: by their bodies, not by their names.
#[test]
fn other_functions_are_refused() {
    let what = |old: &str, new: &str| refused(&with(old, new));
    let other = (7, "`flipped` is not the function of this name".to_string());
    assert_eq!(what("0x80000000u", "0x80000001u"), other);
    assert_eq!(what("{ return bitcast", "{ if (x > 1.0f) { return x; } return bitcast"), other);
    assert_eq!(what("bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u)", "-x"), other);
    assert_eq!(what("flipped(x: f32)", "flopped(x: f32)").0, 22, "naga knows no `flipped`");
    let unknown = with("fn flipped", "fn twice(x: f32) -> f32 { return x + x; }\nfn flipped");
    assert_eq!(refused(&unknown), (7, "an unknown function `twice`".into()));
    // The parameter's name may be another one.
    let renamed = with(
        "flipped(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x)",
        "flipped(y: f32) -> f32 { return bitcast<f32>(bitcast<u32>(y)",
    );
    assert!(read(&renamed).is_ok());
}

/// Every function of the printer has a body that the reader knows.
#[test]
fn the_printers_functions_are_known() {
    for (name, _) in crate::emit::wgsl::FUNCTIONS {
        assert!(super::functions::BODIES.contains_key(name), "{name}");
    }
}

/// Expressions.
#[test]
fn other_expressions_are_refused() {
    let value = |new: &str| {
        let (line, what) = refused(&with("other + there", new));
        assert_eq!(line, 31, "{what}");
        what
    };
    let zero = "a literal float zero: compilers fold it, so zeros come from the step's block";
    assert_eq!(value("other + 0.0f"), zero);
    assert_eq!(value("other * -0.0f"), zero);
    assert_eq!(value("other + 1e-40f"), "a literal float that is not normal");
    assert_eq!(value("-other"), "`Negate` of a value");
    assert_eq!(value("fma(other, there, there)"), "`Math` is an expression that no kernel has");
    assert_eq!(value("max(other, there)"), "the builtin function `Max`");
    assert_eq!(value("abs(other)"), "the builtin function `Abs`");
    assert_eq!(value("sqrt(other)"), "the builtin function `Sqrt`");
    assert_eq!(value("exp(other)"), "the builtin function `Exp`");
    assert_eq!(
        value("dot(vec2<f32>(other, there), vec2<f32>(there, other))"),
        "`Compose` is an expression that no kernel has"
    );
    assert_eq!(value("select(other, there, other < there)"), "`Less` of f32");
    assert_eq!(value("other % there"), "`Modulo` of f32");
    assert_eq!(value("f32(lane)"), "a conversion to Float that no kernel has");
    assert_eq!(value("bitcast<f32>(~lane)"), "`BitwiseNot` of a value");
    assert_eq!(value("bitcast<f32>(lane / number)"), "a divisor is not a positive constant");
    assert_eq!(value("bitcast<f32>(step[2])"), "the step's block is read outside of extents");
    assert_eq!(value("bitcast<f32>(step[lane])"), "an index that is not constant, of no memory of the kernel");
    assert_eq!(value("bitcast<f32>(step[0] + lane)"), "the bits of a zero are used as a word");
    assert_eq!(value("bitcast<f32>(workgroups.y)"), "a component that no kernel reads");
    assert_eq!(value("bitcast<f32>(workgroup.x + lane)"), "an input or a variable where a value is wanted");
    assert_eq!(value("bitcast<f32>(arrayLength(&x))"), "`ArrayLength` is an expression that no kernel has");
    assert_eq!(value("bitcast<f32>(min(lane, 3u))"), "the step's block is read outside of extents");
    assert_eq!(
        value("f32(bitcast<i32>(lane) + bitcast<i32>(lane))"),
        "a signed value where a float, a word or a truth value is wanted"
    );
    assert_eq!(value("bitcast<f32>(bitcast<u32>(7i))"), "a literal of type I32");
}

/// Statements.
#[test]
fn other_statements_are_refused() {
    let instead = |old: &str, new: &str| refused(&with(old, new)).1;
    let barrier = |new: &str| instead("workgroupBarrier();", new);
    assert_eq!(barrier("storageBarrier();"), "`ControlBarrier` is a statement that no kernel has");
    assert_eq!(barrier("{ workgroupBarrier(); }"), "`Block` is a statement that no kernel has");
    assert_eq!(barrier("return;"), "the kernel leaves behind its header");
    assert_eq!(barrier("loop { break; }"), "a loop that is no `for` below an end by a step");
    assert_eq!(barrier("switch (lane) { default: {} }"), "`Switch` is a statement that no kernel has");
    assert_eq!(
        barrier("let signed = bitcast<i32>(lane);"),
        "`signed` is neither a float nor an unsigned word nor a truth value"
    );
    assert_eq!(barrier("var zero: f32; zero = sum;"), "a variable is set that has no first value");
    let shuffled = |new: &str| instead("subgroupShuffleXor(mine, 4u)", new);
    assert_eq!(shuffled("subgroupShuffle(mine, 4u)"), "an exchange between lanes that is no `subgroupShuffleXor`");
    assert_eq!(shuffled("subgroupShuffleXor(mine, lane)"), "wanted a literal word");
    assert_eq!(shuffled("subgroupShuffleXor(mine, 8u)"), "a shuffle of distance 8 in width 8");
    assert_eq!(shuffled("subgroupAdd(mine)"), "`SubgroupCollectiveOperation` is a statement that no kernel has");
    assert_eq!(instead("mine, 4u);", "mine, 4u) + mine;"), "an exchange without a name");
    let no_for = "a loop that is no `for` below an end by a step";
    assert_eq!(instead("k < 40u", "k <= 40u"), no_for);
    assert_eq!(instead("k < 40u", "40u > k"), no_for);
    assert_eq!(instead("k += 64u", "k *= 64u"), no_for);
    assert_eq!(instead("k += 64u", "k += count"), no_for);
    assert_eq!(instead("k += 64u", "count += 64u"), no_for);
    assert_eq!(instead("k < 40u", "k < count"), "the end of a loop is neither an extent nor a constant");
    assert_eq!(instead("k += 64u", "k += 0u"), "a loop to Some(40) by 0");
    assert_eq!(instead("count = count + k;", "k = k + 1u;"), "`k` cannot be set here");
    assert_eq!(instead("count = count + k;", "if (k < 3u) { break; }"), "`Break` is a statement that no kernel has");
    assert_eq!(
        instead("let mine = sum;", "let mine = sum; if (lane < 3u) { workgroupBarrier(); }"),
        "not every lane comes by this barrier"
    );
}

/// What is not WGSL, or not valid: naga says it, with its line.
#[test]
fn what_naga_refuses_is_refused() {
    assert_eq!(refused("").1, "wanted one entry point");
    assert_eq!(refused(&with("let mine = sum;", "let mine = some;")).0, 27);
    assert_eq!(refused(&with("out[(number * 8u) + lane] =", "x[lane] =")).0, 31);
    assert!(refused(&format!("{}{}", "(".repeat(1000), ")".repeat(1000))).0 > 0);
}

/// Short pieces of a text in any order, and texts that end early.
#[test]
fn no_piece_of_a_text_makes_the_reader_panic() {
    let lines: Vec<&str> = TEXT.lines().collect();
    let mut read_well = 0;
    for at in 0..lines.len() {
        for other in 0..lines.len() {
            let mut moved = lines.clone();
            moved.swap(at, other);
            read_well += usize::from(read(&moved.join("\n")).is_ok());
        }
        let _ = read(&lines[..at].join("\n"));
        let without = [&lines[..at], &lines[at + 1..]].concat();
        let _ = read(&without.join("\n"));
    }
    assert!(read_well > lines.len());
    for end in (0..TEXT.len()).step_by(7) {
        let _ = read(&TEXT[..end]);
    }
}
