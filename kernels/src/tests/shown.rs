//! Kernels that snapshots show in every language.

use ds4_ir::{Builder as GraphBuilder, Format, ScalarOp, ScalarType, Tree, Type as ValueType};

use crate::emit::StepBlock;
use crate::kernel::{Access, Builder, ExtentRow, Kernel, Number, Source, Type};

use super::bench::{Bench, Checkpoint, Random, Small};

/// The last kernel of a graph, with the block of all.
fn last(b: GraphBuilder, checkpoint: Checkpoint) -> (Kernel, StepBlock) {
    let mut kernels = Bench::new(b, checkpoint, &[]).all_kernels();
    let block = StepBlock::of(&kernels);
    (kernels.pop().unwrap(), block)
}

/// A gated product with the logistic function spelled out.
pub(crate) fn map() -> (Kernel, StepBlock) {
    let mut b = GraphBuilder::new();
    for span in ["layer", "3", "ffn"] {
        b.enter(span);
    }
    let gate = b.floats(&[8, 40], &[1.0; 320]);
    let up = b.floats(&[8, 40], &[1.0; 320]);
    let (gate, up) = (b.per_column(gate), b.per_column(up));
    let s = &mut b.scalars;
    let (x, y, one) = (s.param(0, ScalarType::F32), s.param(1, ScalarType::F32), s.f32(1.0));
    let negative = s.op(ScalarOp::Neg, &[x]).unwrap();
    let exp = s.op(ScalarOp::Exp, &[negative]).unwrap();
    let below = s.op(ScalarOp::Add, &[one, exp]).unwrap();
    let silu = s.op(ScalarOp::Div, &[x, below]).unwrap();
    let result = s.op(ScalarOp::Mul, &[silu, y]).unwrap();
    let body = s.body(&[ScalarType::F32; 2], result).unwrap();
    b.map(body, &[gate, up]);
    last(b, Checkpoint::default())
}

/// A product of q8 rows and a quantised matrix.
pub(crate) fn quantised_product() -> (Kernel, StepBlock) {
    let mut b = GraphBuilder::new();
    let w = b.add_weight("w", ValueType::weight(Format::Q8_0), &[5, 96]);
    let w = b.weight(w);
    let x = b.floats(&[8, 96], &[1.0; 768]);
    let x = b.per_column(x);
    let x = b.quantise(x);
    b.product(Tree::BLOCKS, x, w, None);
    let mut checkpoint = Checkpoint::default();
    checkpoint.random(Format::Q8_0, [1, 5, 96], &mut Random(1));
    last(b, checkpoint)
}

/// A gather by ids of which some are masked.
pub(crate) fn gather() -> (Kernel, StepBlock) {
    let mut b = GraphBuilder::new();
    let source = b.floats(&[6, 3], &[1.0; 18]);
    let ids = b.ids(&[8], &[5, -1, 0, 2, -1, 3, 4, 1]);
    let ids = b.per_column(ids);
    b.gather(0, 0, source, ids);
    last(b, Checkpoint::default())
}

/// A kernel that stores what `value` makes.
pub(crate) fn stores(value: impl FnOnce(&Builder) -> Number) -> Kernel {
    let b = Builder::new("value", &[], 64);
    b.group(ExtentRow::constant(1));
    let out = b.argument(Source::Slot(ds4_ir::Value(0)), Type::F32, Access::Write, "out");
    b.store(out, b.lane(), value(&b));
    b.finish()
}
