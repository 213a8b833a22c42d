//! Values, shapes, scalars, trees, numerics and plan tables.

pub mod build;
pub mod diagnostic;
pub mod dim;
pub mod entity;
pub mod eval;
pub mod fault;
pub mod format;
pub mod formats;
pub mod graph;
pub mod infer;
pub mod numerics;
pub mod op;
pub mod plan;
pub mod scalar;
pub mod tables;
pub mod text;
pub mod tree;
pub mod verify;

pub use build::Builder;
pub use diagnostic::{Code, Diagnostic, Place};
pub use dim::{Bounds, Dim, DimOp, Shape, Step};
pub use entity::Run;
pub use format::Format;
pub use graph::{Graph, GraphTables, Span, State, Value};
pub use op::{Op, ReduceKind, Type};
pub use scalar::{Body, Scalar, ScalarOp, ScalarType};
pub use tree::Tree;
