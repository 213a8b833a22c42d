//! Lowering: a model becomes a value graph.
//!
//! One graph serves every entry point: the number of columns, their position and the number of outputs are symbols. The
//! operations are the small set of [`ds4_ir::op`]; the model's constructs exist as spans only. Formulas follow the
//! contract, `docs/numerics.md`.

mod attention;
mod experts;
mod head;
mod index;
mod layer;
mod linear;
mod math;
mod options;
mod pool;
mod rope;
mod rows;
mod sims;
mod streams;

use ds4_ir::build::Builder;
use ds4_ir::graph::Constant;
use ds4_ir::{Diagnostic, Dim, GraphTables, Type, Value};

use crate::model::{Architecture, Model, Role};

pub use options::{Activations, Head, KvRows, Options, Sims};

/// Rows of a softmax block: the contract's `blocks(64)`.
const BLOCK: u32 = 64;

/// The value graph of a step of `model`.
///
/// Afterwards the graph is well-typed ([`ds4_ir::verify`] agrees), weight `i` of the graph is row `i` of
/// `model.weights`, and its outputs are `greedy` i32 `[outputs]`, the most probable tokens, and `logits` f32
/// `[outputs, vocabulary]`, or with [`Head::Greedy`] `peak` f32 `[outputs]`, the largest logit, NaN where any logit is.
///
/// Errors: options that the model's shape does not allow.
pub fn lower(model: &Model, options: &Options) -> Result<GraphTables, Diagnostic> {
    options::check(model, options)?;
    let mut lowering = Lowering::new(model, options);
    lowering.step();
    Ok(lowering.b.finish())
}

/// The state of a lowering.
struct Lowering<'a> {
    b: Builder,
    model: &'a Model,
    a: &'a Architecture,
    options: &'a Options,
    /// Number of columns.
    columns: Dim,
    /// Absolute position of each column, i32 `[columns]`.
    position: Value,
    /// Rope frequencies of layers without and with pooled rows.
    frequencies: [Constant; 2],
}

impl<'a> Lowering<'a> {
    fn new(model: &'a Model, options: &'a Options) -> Self {
        let mut b = Builder::new();
        for id in model.weights.ids() {
            let i = id.0 as usize;
            let name = model.weights.role[i].gguf_name(model.weights.layer[i]);
            let reference = &model.weights.reference[i];
            let shape: Vec<u32> = reference.shape.iter().map(|&n| n as u32).collect();
            b.add_weight(&name, Type::weight(reference.format), &shape);
        }
        let a = &model.architecture;
        let frequencies = rope::tables(&mut b, a);
        let columns = b.columns();
        let position = rows::positions(&mut b, columns);
        Lowering { b, model, a, options, columns, position, frequencies }
    }

    /// The whole step.
    fn step(&mut self) {
        let mut streams = self.b_within("embed", |l| l.embed());
        for index in 0..self.a.layers.len() as u32 {
            let outer = self.b.enter("layer");
            self.b.enter(&index.to_string());
            streams = self.layer(index, streams);
            self.b.leave(outer);
        }
        self.b_within("head", |l| l.head(streams));
    }

    /// Runs a part of the lowering inside a span.
    fn b_within<R>(&mut self, span: &str, part: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.b.enter(span);
        let result = part(self);
        self.b.leave(outer);
        result
    }

    /// The weight of a role, in its storage format.
    fn weight(&mut self, role: Role, layer: Option<u32>) -> Value {
        let id = self.model.weights.find(role, layer).expect("a model has every weight that its layers need");
        self.b.weight(ds4_ir::graph::Weight(id.0))
    }

    /// The weight of a role, decoded to f32.
    fn vector(&mut self, role: Role, layer: Option<u32>) -> Value {
        let weight = self.weight(role, layer);
        self.b.widen(weight)
    }

    /// Names a value of a layer for taps: `layer.3.route.ids`.
    fn tap(&mut self, layer: u32, name: &str, value: Value) {
        self.b.tap(&format!("layer.{layer}.{name}"), value);
    }
}
