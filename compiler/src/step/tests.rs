//! Bytes and parts of small graphs, counted by hand.

use ds4_ir::Bounds;
use ds4_ir::graph::{Graph, GraphTables, State, Value, Weight};
use ds4_ir::plan::PlanTables;
use ds4_ir::plan::tables::{File, PartRow};
use ds4_kernels::Target;

use super::*;
use crate::frame::{Form, Frame, SourceFile, SourceWeight, assemble};
use crate::step::parts::{Parts, divide, ranges};
use crate::step::traffic::Lists;

const TEXT: &str = "\
weight small: w.q8_0[64, 32]
weight many: w.f16[4, 8, 32]
state rows: f32[16, 32]
t = tokens @ block.0
r = read rows
x: f32[columns, 32] = gather axis=0 r, t @ block.0
n = map { neg(x0) } x @ block.0
x1: f32[columns, 1, 32] = reshape n @ block.0
b: f32[columns, 2, 32] = broadcast x1 @ block.0
s = map { add(x0, x0) } b @ block.0
w = weight small
y = product lanes(32) n, w @ block.1
p: f32[columns, 8] = slice axis=1 start=3 y @ block.1
z = map { neg(x0) } p @ block.1
e = weight many
g: w.f16[columns, 8, 32] = gather axis=0 e, t @ block.1
h = product lanes(32) n, g @ block.1
output s = s
output z = z
output h = h
";

fn graph() -> GraphTables {
    ds4_ir::text::parse(TEXT, "test").unwrap()
}

/// The plan of a graph without fusion, with kernels; its weights are nowhere.
pub(crate) fn assembled(graph: &Graph<'_>) -> PlanTables {
    let file = SourceFile { name: "f".into(), size: 1 << 20, header_len: 0, header_hash: [0; 32] };
    let weight = || {
        let part = PartRow { file: File(0), scale_file: File(0), offset: 0, scale_offset: 0 };
        SourceWeight { parts: vec![part], scale_block: [0, 0] }
    };
    let frame = Frame {
        identity: [0; 32],
        facts: Vec::new(),
        files: vec![file],
        weights: graph.weights.iter().map(|_| weight()).collect(),
        context: 16,
        entries: &[("decode1", 1)],
        form: Form { targets: &[Target::Wgsl], fusion: None },
    };
    assemble(graph, &frame).unwrap()
}

/// The value that a name of the text stands for: its place among the values.
fn named(name: &str) -> Value {
    let names = TEXT.lines().filter(|line| line.contains(" = ") && !line.starts_with("output"));
    let names: Vec<&str> = names.map(|line| line.split([':', ' ']).next().unwrap()).collect();
    Value(names.iter().position(|&known| known == name).unwrap() as u32)
}

fn values(names: &str) -> Vec<Value> {
    names.split(' ').map(named).collect()
}

const ONE: Bounds = Bounds { context: 16, columns: 1, outputs: 1 };

/// The bytes of each region of launches of one region each.
fn traffic(regions: &[&str], stored: &str) -> Vec<Traffic> {
    let graph = graph();
    let regions: Vec<Vec<Value>> = regions.iter().map(|names| values(names)).collect();
    let launches = regions.iter().map(|values| vec![&values[..]]).collect();
    let lists = Lists::new(graph.view(), ONE, launches, values(stored).into_iter());
    (0..regions.len()).map(|launch| lists.traffic((launch, 0))).collect()
}

#[test]
fn a_gather_reads_the_rows_that_ids_select_and_a_view_what_it_shows() {
    let found = traffic(&["t", "x n", "s", "y", "z", "g h"], "t n s y z h");
    let expected = [
        Traffic { values_written: 4, ..Traffic::default() },
        // One of 16 rows, the id, and a row written.
        Traffic { states_read: 128, values_read: 4, values_written: 128, ..Traffic::default() },
        // A broadcast repeats what is read once.
        Traffic { values_read: 128, values_written: 256, ..Traffic::default() },
        // 64 rows of one block of 34 bytes.
        Traffic { weights: 64 * 34, values_read: 128, values_written: 256, ..Traffic::default() },
        // 8 of 64 elements.
        Traffic { values_read: 32, values_written: 32, ..Traffic::default() },
        // One of four matrices.
        Traffic { weights: 8 * 32 * 2, values_read: 4 + 128, values_written: 32, ..Traffic::default() },
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_value_inside_a_region_moves_nothing_and_a_duplicate_is_stored_once() {
    let found = traffic(&["t x n s", "t x n y z"], "s z");
    assert_eq!((found[0].values_read, found[0].values_written, found[0].states_read), (0, 256, 128));
    assert_eq!((found[1].values_read, found[1].values_written, found[1].states_read), (0, 32, 128));
    let found = traffic(&["t x n", "t x n s"], "n s");
    assert_eq!((found[0].values_written, found[1].values_written), (128, 256), "the first region stores it");
}

#[test]
fn sources_are_listed_once_with_their_kind() {
    let graph = graph();
    let regions = [values("t x n y z")];
    let lists = Lists::new(graph.view(), ONE, vec![vec![&regions[0][..]]], values("z").into_iter());
    assert_eq!(lists.reads(&regions[0]), [(Source::Weight(Weight(0)), 64 * 34), (Source::State(State(0)), 128)]);
}

#[test]
fn layers_are_spans_that_are_numbers() {
    let layer = |path: &str, number| Some((path.to_string(), number));
    assert_eq!(divide("layer.17.ffn.hc_pre"), (layer("layer", 17), "ffn.hc_pre".into()));
    assert_eq!(divide("a.b.3"), (layer("a.b", 3), String::new()));
    assert_eq!(divide("7.x"), (layer("", 7), "x".into()));
    for path in ["", "head.norm", "layer.x1", "layer.+1", "layer.99999999999"] {
        assert_eq!(divide(path), (None, path.into()));
    }
}

#[test]
fn numbers_of_layers_are_said_shortly() {
    for (numbers, text) in [
        (&[4][..], "4"),
        (&[0, 1, 2], "0, 1, 2"),
        (&[0, 1, 2, 3, 9], "0 to 3, 9"),
        (&[2, 4, 6, 8, 9], "2, 4 … 8, 9"),
        (&[1, 5, 6, 7, 8], "1, 5 to 8"),
    ] {
        assert_eq!(ranges(numbers), text);
    }
}

/// Layers that differ in nothing but names, and others.
fn layers(of: &[&str]) -> Vec<Vec<usize>> {
    let mut text = String::from("state rows: f32[16, 32]\n");
    let weights = of.iter().enumerate();
    text.extend(
        weights.map(|(i, kind)| format!("weight w{i}: w.{}[32, 32]\n", if *kind == "f32" { "f32" } else { "f16" })),
    );
    text += "t = tokens\nr = read rows\ny: f32[columns, 32] = gather axis=0 r, t\n";
    let mut last = "y".to_string();
    for (i, kind) in of.iter().enumerate() {
        let body = if *kind == "abs" { "abs(x0)" } else { "neg(x0)" };
        let tree = if *kind == "seq" { "seq" } else { "lanes(32)" };
        text += &format!("m{i} = weight w{i}\np{i} = product {tree} {last}, m{i} @ stack.{i}.inner\n");
        text += &format!("n{i} = map {{ {body} }} p{i} @ stack.{i}\n");
        last = if *kind == "reads p" { format!("p{i}") } else { format!("n{i}") };
    }
    text += &format!("output y = {last}\noutput n = n0\n");
    let graph = ds4_ir::text::parse(&text, "layers").unwrap();
    let (graph, plan) = (graph.view(), assembled(&graph.view()));
    let plan = plan.view();
    let step = Step::new(graph, plan, &plan.entries[0]);
    let parts = Parts::new(&step);
    assert_eq!(parts.layers.len(), of.len());
    let number = |&part: &usize| parts.parts[part].layers.first().map(|&layer| parts.layers[layer].1 as usize);
    let kinds = parts.kinds.iter().map(|kind| kind.parts.iter().filter_map(number).collect::<Vec<_>>());
    kinds.filter(|kind| !kind.is_empty()).collect()
}

#[test]
fn layers_are_alike_if_only_ids_differ() {
    assert_eq!(layers(&["", "", ""]), [vec![0, 1, 2]]);
    assert_eq!(layers(&["", "f32", ""]), [vec![0, 2], vec![1]], "a weight of another type");
    assert_eq!(layers(&["", "abs", "abs"]), [vec![0], vec![1, 2]], "another body");
    assert_eq!(layers(&["", "", "seq"]), [vec![0, 1], vec![2]], "another tree");
}
