//! Values, shapes, scalars, trees, numerics and plan tables.

pub mod diagnostic;
pub mod entity;
pub mod format;
pub mod formats;

pub use diagnostic::{Code, Diagnostic, Place};
pub use format::Format;
