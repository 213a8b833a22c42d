//! The kernel IR: what one launch does, between the value graph and the text of a target.
//!
//! A kernel runs over a **grid** of workgroups of `lanes` lanes each. Its body is structured statements over typed locals
//! and pure, hash-consed expressions. A kernel may have several **parts**, each with a grid and a body of its own: a workgroup
//! runs one of them.
//!
//! | table | rows |
//! |---|---|
//! | expressions | an [`Operator`] and its operands; every rounding is one of them, there is no fma |
//! | statements | [`Stmt`]: let, var, set, load, store, shuffle, barrier, if, present, for |
//! | locals | type, name, whether `set` may change it |
//! | memories | the arguments (plan constants and buffers) and the workgroup's arrays |
//! | extents | numbers that a step may choose: loop ends, grid axes, shifts; each has a static bound |
//!
//! There are four types. A *word* is 32 bits; operations say how they read its sign, as in [`ds4_ir::numerics::Arith`],
//! which [`Builder`] implements, so that `exp`, rounding and quantisation are emitted from their one definition. A *masked
//! id* has one use besides being stored: [`Stmt::Present`], which gives its index to a branch. No operator takes one.
//!
//! Loads and shuffles are statements, so an expression has no effect and means the same wherever it stands between two
//! statements. Workgroup memory is shared between lanes; a [`Stmt::Barrier`] orders it, and one that says so orders what the
//! workgroup does with buffers as well. Nothing orders workgroups. [`verify`] checks all of this.

mod arith;
mod builder;
mod extent;
mod iterations;
mod operator;
mod tables;
mod uniform;
mod verify;

pub use builder::{Builder, Handle, MaskedId, Number, Truth, Var, Word};
pub use extent::{ExtentRow, Grid, MOST_GROUPS};
pub use operator::{Operator, Type};
pub use tables::{
    Access, Block, Expr, ExprRow, Extent, Kernel, Local, LocalRow, Memory, MemoryRow, Part, Source, Space, Stmt,
};
pub use verify::{MOST_SHARED, Wrong, verify};
