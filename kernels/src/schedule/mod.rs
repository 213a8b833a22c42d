//! Generic schedules: from one launch of the value graph to kernels.
//!
//! | schedule | operations | lanes |
//! |---|---|---|
//! | `map` | `map`, `iota`, `extent`, `tokens` | one an element |
//! | `moves` | views that are stored, `concat`, `gather`, `widen`, `write` | one an element |
//! | `reduce` | `reduce` | one an element, or as many as the tree has |
//! | `product` | `product` | as many as the tree has for each element |
//! | `quantise` | `quantise` | one a block of 32 |
//! | `choose` | `top_k`, `arg_max`, `sort_ids` | a workgroup a row |
//!
//! Kernels that do not depend on each other become one (`beside`).
//!
//! None of them knows a construct of the model. Operands are described by a place, strides, what a step adds to
//! them, and for a gather that the reader does itself the ids that select. Axes that merge for all operands are merged
//! (`axes`), an index is split again by divisions by constants.
//!
//! What a masked id selects has no value; where a kernel must store something for it, it stores zero.

mod axes;
mod beside;
pub(crate) mod body;
pub(crate) mod choose;
pub(crate) mod decode;
pub(crate) mod leaf;
mod map;
mod moves;
pub(crate) mod operand;
mod product;
mod quantise;
mod reduce;
pub(crate) mod scene;
mod tree;

use ds4_ir::{Op, Value};

use crate::kernel::Kernel;

pub use beside::{Apart, MOST_ARGUMENTS, side_by_side};
pub use scene::{Refusal, ScaleBlocks, Scene};

/// The kernels that compute `v`, in the order of their launches; none for what needs nothing done.
///
/// Operands have layouts: they are stored, or are views or gathers of what is.
pub fn kernels(scene: &Scene<'_>, v: Value) -> Result<Vec<Kernel>, Refusal> {
    match scene.graph.op(v) {
        Op::Weight | Op::Const | Op::Read => Ok(Vec::new()),
        Op::Gather if !scene.is_stored(v) => Ok(Vec::new()),
        op if op.is_view() && !scene.is_stored(v) => Ok(Vec::new()),
        Op::Map => Ok(vec![map::map(scene, v)?]),
        Op::Tokens | Op::Extent | Op::Iota => Ok(vec![map::made(scene, v)?]),
        Op::Reshape => Ok(vec![moves::reshape(scene, v)?]),
        Op::Slice | Op::Permute | Op::Broadcast => Ok(vec![moves::view(scene, v)?]),
        Op::Concat => moves::concat(scene, v),
        Op::Gather => Ok(vec![moves::gather(scene, v)?]),
        Op::Widen => Ok(vec![moves::widen(scene, v)?]),
        Op::Write => Ok(vec![moves::write(scene, v)?]),
        Op::Reduce => Ok(vec![reduce::reduce(scene, v)?]),
        Op::Product => Ok(vec![product::product(scene, v)?]),
        Op::Quantise => Ok(vec![quantise::quantise(scene, v)?]),
        Op::TopK | Op::ArgMax | Op::SortIds => Ok(vec![choose::choose(scene, v)?]),
    }
}
