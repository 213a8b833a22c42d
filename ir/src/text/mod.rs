//! The textual form of a value graph, `.ds4ir`.
//!
//! [`print()`] writes tables and [`parse`] reads them; `docs/ir.md` has the grammar. Two laws hold:
//!
//! - `parse(print(t)) == t`, table-equal, for every `t` that [`crate::Builder`] makes;
//! - `print(parse(x)) == x` for every printed `x`.
//!
//! The first one needs the order of every table to survive. Dimensions and shapes are listed in table order; names,
//! spans and scalar nodes are listed (`names`, `spans`, `order`) only where the rest of the text would make them in
//! another order.
//!
//! A parsed value is made by [`crate::Builder::value`], so a text that parses is well-typed. What needs the whole
//! graph (one write per version of a state, masks, bounds) is the verifier's.

mod bodies;
mod body_printer;
mod cursor;
mod dims;
mod lexer;
mod literal;
mod names;
mod parser;
mod printer;
mod scalars;
mod values;

pub use dims::{dim_text, shape_text};
pub use parser::parse;
pub use printer::{print, value_lines};

/// Limits that keep reading and everything behind it bounded, whatever the text says.
pub mod limits {
    /// Depth of parentheses in dimensions and scalar expressions.
    pub const NESTING: usize = 64;
    /// Nodes of a dimension when it is written out: evaluating a dimension walks all of them.
    pub const DIM_NODES: u32 = 1024;
    /// Axes of a shape.
    pub const RANK: usize = 16;
    /// Parameters of a body.
    pub const PARAMETERS: usize = 64;
    /// Segments of a span's path.
    pub const SEGMENTS: usize = 64;
}
