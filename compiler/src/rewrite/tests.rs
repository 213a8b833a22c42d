use ds4_ir::graph::GraphTables;
use ds4_ir::rules::{Exact, lock, value};
use ds4_ir::text;

use super::*;

fn parsed(source: &str) -> GraphTables {
    text::parse(source, "test").unwrap()
}

fn rewritten(source: &str) -> Rewritten {
    rewrite(&parsed(source).view(), &Limits::default()).unwrap()
}

/// The rewritten graph's values as text.
fn lines(source: &str) -> String {
    text::print(&rewritten(source).graph.view())
}

const SHARED: &str = "\
state s: f32[8, 64]
x = read s
t = tokens
g: f32[columns, 64] = gather axis=0 x, t @ a.first
r: f32[columns, 1, 64] = reshape g @ a.first
u: f32[columns, 64] = reshape r @ a.first
c = map { x0 } u @ a.second
b = map { div(mul(x0, 1.0), 8.0) } c @ a.second
q = quantise b @ a.third
v: f32[columns, 1, 64] = reshape b @ b
p = quantise v @ b
weight m: w.q8_0[16, 64]
w = weight m
y = product lanes(32) q, w @ b
z: f32[columns, 4] = slice axis=1 start=3 y @ b
tap half = z
output y = y
";

#[test]
fn copies_views_and_quotients_go() {
    let Rewritten { graph, outcome, .. } = rewritten(SHARED);
    let graph = graph.view();
    let count = |op| graph.values().filter(|&v| graph.op(v) == op).count();
    assert_eq!((count(Op::Reshape), count(Op::Map), count(Op::Quantise)), (0, 1, 1));
    assert_eq!(outcome.kept, None);
    let body = graph.values().find(|&v| graph.op(v) == Op::Map).map(|v| graph.attrs(v)[0]).unwrap();
    let printed = text::print(&graph);
    assert!(printed.contains(&format!("map b{body}")) && printed.contains("mul(x0, 0.125)"), "{printed}");
}

/// Outputs, named values and spans stay; the order is that of the source.
#[test]
fn names_and_spans_stay() {
    let Rewritten { graph, .. } = rewritten(SHARED);
    let graph = graph.view();
    assert!(graph.output("y").is_some());
    assert_eq!(graph.name(graph.named[0].name), "half");
    let spans: Vec<String> = graph.values().map(|v| graph.span_path(graph.value_span[v.0 as usize])).collect();
    assert_eq!(spans.iter().filter(|path| *path == "a.third").count(), 1);
}

#[test]
fn the_same_graph_gives_the_same_bytes() {
    assert_eq!(rewritten(SHARED), rewritten(SHARED));
}

/// Nothing looks at names: other spans give the same values.
#[test]
fn spans_have_no_influence() {
    let renamed = SHARED.replace("@ a.first", "@ z").replace("@ a.second", "@ q.r").replace("@ b", "");
    let (one, other) = (rewritten(SHARED), rewritten(&renamed));
    assert_eq!(one.certificate.value_lemmas, other.certificate.value_lemmas);
    assert_eq!(one.graph.value_op, other.graph.value_op);
    assert_eq!(one.graph.args, other.graph.args);
}

#[test]
fn caps_end_a_search_and_are_reported() {
    let mut limits = Limits { values: Caps { iterations: 1, nodes: 2000 }, ..Limits::default() };
    let tables = parsed(SHARED);
    assert_eq!(rewrite(&tables.view(), &limits).unwrap().outcome.hit[0].iterations, 1);
    limits.values = Caps { iterations: 8, nodes: 1 };
    assert_eq!(rewrite(&tables.view(), &limits).unwrap().outcome.hit[0].nodes, 1);
}

/// Without rules there is nothing to do, and a rule alone does what it says.
#[test]
fn only_admitted_rules_are_used() {
    let entries = lock::parse(lock::TEXT);
    let none = Exact::admit(&[], &[], &entries).unwrap();
    let tables = parsed(SHARED);
    let same = rewrite_with(&tables.view(), &Limits::default(), &none).unwrap();
    assert!(same.certificate.value_lemmas.is_empty() && same.certificate.scalar_lemmas.is_empty());
    let copy = value::all().find(|rule| rule.head.name == "map-of-parameter").unwrap();
    let one = Exact::admit(&[], &[copy], &entries).unwrap();
    let found = rewrite_with(&tables.view(), &Limits::default(), &one).unwrap();
    let fired: Vec<u32> = found.outcome.fired.into_keys().collect();
    assert_eq!(fired, vec![copy.head.number]);
}

/// A gather before a write stays before it, though views around it change.
#[test]
fn states_are_updated_in_place() {
    let source = "\
state s: f32[8, 4]
s0 = read s
t = tokens
old: f32[columns, 4] = gather axis=0 s0, t
a: f32[columns, 2, 2] = reshape old
rows: f32[columns, 4] = reshape a
new = map { add(x0, 1.0) } rows
s1 = write s0, t, new
now: f32[columns, 4] = gather axis=0 s1, t
b: f32[columns, 2, 2] = reshape now
c: f32[columns, 4] = reshape b
sum = map { add(x0, x1) } c, new
output sum = sum
";
    let Rewritten { graph, outcome, .. } = rewritten(source);
    assert_eq!(outcome.kept, None);
    assert!(!graph.view().values().any(|v| graph.view().op(v) == Op::Reshape), "{}", lines(source));
}
