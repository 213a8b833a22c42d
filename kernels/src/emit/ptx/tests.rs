//! How the text looks.

use super::{StepBlock, emit};
use crate::tests::bench::{Bench, Checkpoint, Random, Small};
use ds4_ir::{Builder as GraphBuilder, Format, Tree, Type as ValueType};

/// The first instruction that a text must not have: a rounded operation without rounding, or one whose result is not fixed.
pub(crate) fn broken_rule(text: &str) -> Option<String> {
    let rounded = ["add", "sub", "mul", "div", "sqrt"].map(|op| format!("{op}."));
    let breaks = |instruction: &&str| {
        let is_float = instruction.ends_with(".f32") && !instruction.starts_with("setp.");
        let bare = is_float && rounded.iter().any(|op| instruction.starts_with(op)) && !instruction.contains(".rn.");
        let loose =
            ["ftz", "approx", "full", "sat"].iter().any(|word| instruction.split('.').any(|part| part == *word));
        bare || loose
            || ["mad", "fma", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "min.f32", "max.f32", "neg", "abs"]
                .iter()
                .any(|name| instruction.starts_with(name))
    };
    let instructions =
        text.lines().filter_map(|line| line.split("//").next()?.split_whitespace().find(|word| !word.starts_with('@')));
    instructions.into_iter().find(breaks).map(|found| format!("`{found}`"))
}

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
