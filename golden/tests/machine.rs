//! Kernels of whole models on the kernel machine: the evaluator's bits in every stored value and state.

#![allow(clippy::unwrap_used)]

use ds4_compiler::lower::lower;
use ds4_compiler::schedule::schedule;
use ds4_golden::machine::Model;
use ds4_golden::run::Source;
use ds4_golden::weights::Rows;
use ds4_ir::{Bounds, Step};
use ds4_kernels::machine::LaneOrder;

/// Steps of 3, 1 and 5 columns: what crosses a block of 4 tokens, and rows of an earlier step.
#[test]
fn kernels_of_whole_models_have_the_evaluators_bits() {
    for path in ["oracle/tiny-r", "oracle/tiny-f", "oracle/tiny-m/model.mxfp4-00001-of-00002.gguf"] {
        let source = Source::open(path).unwrap();
        let options = source.options(|o| {
            o.context = 64;
            o.prefill = 8;
        });
        let tables = lower(&source.model, &options).unwrap();
        let graph = tables.view();
        let bounds = Bounds { context: 64, columns: 8, outputs: 8 };
        let schedule = schedule(&graph, bounds);
        let rows = Rows { checkpoint: &source.checkpoint, model: &source.model };
        let mut model = Model::new(graph, &rows, bounds, &schedule).unwrap();
        let mut position = 0;
        for (columns, order) in [(3, LaneOrder::Ascending), (1, LaneOrder::Descending), (5, LaneOrder::Descending)] {
            let tokens: Vec<u32> = (0..columns).map(|i| 3 + 7 * (position + i)).collect();
            let compared = model.step(Step { position, columns, outputs: columns }, &tokens, order).unwrap();
            println!("{path}, {columns} columns: {compared:?}");
            assert!(compared.wrong == 0 && compared.elements > 10_000, "{path}: {compared:?}");
            position += columns;
        }
    }
}
