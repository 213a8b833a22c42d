//! The graphs of whole models: verified, bounded, and the same table after printing and parsing.

#![allow(clippy::unwrap_used)]

use ds4_compiler::lower::{KvRows, Sims, lower};
use ds4_compiler::model::Model;
use ds4_compiler::sample::{Spec, write_gguf};
use ds4_golden::run::{Source, TINY};
use ds4_ir::graph::GraphTables;
use ds4_ir::{Bounds, text, verify};

fn check(name: &str, tables: &GraphTables, context: u32) {
    let graph = tables.view();
    verify::verify(&graph).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    for columns in [1, 8, 300] {
        let bounds = Bounds { context, columns, outputs: columns };
        verify::check_bounds(&graph, bounds).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
    let printed = text::print(&graph);
    let parsed = text::parse(&printed, name).unwrap_or_else(|diagnostic| panic!("{name}: {diagnostic}"));
    assert!(parsed == *tables, "{name}: parse(print(t)) is not t");
    assert!(text::print(&parsed.view()) == printed, "{name}: print(parse(x)) is not x");
}

#[test]
fn graphs_of_the_small_models_survive_printing() {
    for (name, path) in TINY.into_iter().chain([("kjv-9m", "models/kjv-9m/model.q2.gguf")]) {
        let source = Source::open(path).unwrap();
        let options = source.options(|o| o.prefill = o.context.min(300));
        check(name, &lower(&source.model, &options).unwrap(), options.context);
    }
    let source = Source::open("oracle/tiny-r").unwrap();
    let options = source.options(|o| {
        o.sims = Sims::Official;
        o.kv = KvRows::F16;
        o.prefill = 300;
    });
    check("tiny-r with roundings", &lower(&source.model, &options).unwrap(), options.context);
}

#[test]
fn graphs_of_v4_survive_printing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, spec) in [("flash", Spec::flash(5)), ("pro", Spec::pro(4))] {
        let path = folder.path().join("model.gguf");
        write_gguf(&path, &spec).unwrap();
        let checkpoint = ds4_compiler::read::open(&path).unwrap();
        let model = Model::read(&checkpoint).unwrap();
        let mut options = ds4_compiler::lower::Options::for_model(&model.architecture);
        options.context = 65_536;
        check(name, &lower(&model, &options).unwrap(), options.context);
    }
}

/// Spans are how a person finds a layer's constructs; there is no operation for them.
#[test]
fn spans_name_the_constructs() {
    let source = Source::open("oracle/tiny-a").unwrap();
    let tables = lower(&source.model, &source.options(|_| ())).unwrap();
    let graph = tables.view();
    let paths: Vec<String> = (0..graph.spans.len() as u32).map(|i| graph.span_path(ds4_ir::Span(i))).collect();
    for wanted in ["layer.3.ffn.hc_pre.sinkhorn", "layer.1.attn.pool.index", "layer.2.attn.window", "head.hc"] {
        assert!(paths.iter().any(|path| path == wanted), "no span {wanted}");
    }
}
