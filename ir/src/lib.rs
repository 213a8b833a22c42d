//! What everything else agrees on: the value graph of a step, its meaning, and the plan file.
//!
//! # Tables
//! - [`graph`]: values as struct-of-arrays tables, their operations ([`op`]), shapes over step scalars ([`dim`]), scalar
//!   bodies ([`scalar`]), reduction trees ([`tree`]). [`Builder`] makes them hash-consed; [`infer`] gives types and shapes.
//! - [`plan`]: the plan file. It is the graph's tables and its own: places of weights, launches, memory.
//! - [`mod@format`], [`formats`]: storage formats of weights and what their bytes mean.
//! - [`numerics`]: the contract's scalar arithmetic and functions (`docs/numerics.md`), written once.
//!
//! # Passes
//! - [`verify`]: tables of any content are safe to use, or there is a [`fault`].
//! - [`eval`]: the meaning of a graph, plain and slow. It shares no product or tree code with an executor.
//! - [`rules`]: the laws of rewriting with their proofs. [`certificate`]: why a rewritten graph is equal, and the checker.
//! - [`schedule`]: launches and memory of a graph whose values are launches of their own.
//! - [`output`]: files that are whole or absent.
//! - [`text`]: printing and parsing (`docs/ir.md`).
//!
//! # Invariants
//! - Ids are dense; operands have lower ids than users. The evaluator goes by ids; a plan may launch in any order that
//!   [`plan::launches`] accepts.
//! - Equal operations on equal operands are one id.
//! - No device, no thread, no command line, no name of a model's construct.
//!
//! Begin with [`op::Op`] and its table, then [`graph::Graph`], then [`eval`].

pub mod build;
pub mod certificate;
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
pub mod output;
pub mod plan;
pub mod rules;
pub mod scalar;
pub mod schedule;
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
