//! How the text looks.

use super::{StepBlock, emit};
use crate::tests::bench::{Bench, Checkpoint, Random, Small};
use ds4_ir::{Builder as GraphBuilder, Format, Tree, Type as ValueType};

/// The text of the last kernel of a graph.
fn last(b: GraphBuilder, checkpoint: Checkpoint) -> String {
    let kernels = Bench::new(b, checkpoint, &[]).all_kernels();
    let block = StepBlock::of(&kernels);
    emit(&kernels[kernels.len() - 1], &block).unwrap()
}

#[test]
fn a_quantised_product_reads_well() {
    let mut b = GraphBuilder::new();
    let w = b.add_weight("w", ValueType::weight(Format::Q8_0), &[5, 96]);
    let w = b.weight(w);
    let x = b.floats(&[8, 96], &[1.0; 768]);
    let x = b.per_column(x);
    let x = b.quantise(x);
    b.product(Tree::BLOCKS, x, w, None);
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(Format::Q8_0, [1, 5, 96], &mut Random(1));
    insta::assert_snapshot!(last(b, checkpoint));
}
