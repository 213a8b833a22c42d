//! Products, reductions and activation quantisation of the numeric contract, made fast.
//!
//! Everything here works on slices and knows no graph. What a storage format means is defined in
//! `ds4_ir::formats`; this code shares nothing with it but the table of `IQ2_XXS`, and the tests
//! compare the two bit for bit at every [`Isa`] level.
//!
//! Two facts carry the trees. `x + -0.0` is `x` for every `x`, so a lane may start at -0.0 and a lane
//! or leaf that is absent is -0.0: each tree is a full halving tree, of fewer lanes where only the
//! first few have leaves. And Rust never contracts or reorders float operations, so the same generic
//! code compiled for a wider instruction set gives the same bits; only integer sums, which are exact,
//! take another order.
//!
//! ```text
//! isa        instruction-set levels and their detection
//! level      the operations that have an implementation per level; x86/ those of x86-64
//! matrix     what is multiplied, q8 columns, and where results go
//! tree       lanes, halving, seq
//! quantise   f32 to q8
//! codes      a row's blocks as signed bytes with factors and scales     -> product_q8
//! decode     a row's elements as f32                                    -> product_f32
//! rows       dots with, and weighted sums of, gathered f32 rows
//! ```

mod codes;
mod decode;
mod isa;
mod level;
mod matrix;
mod product_f32;
mod product_q8;
mod quantise;
mod rows;
mod tree;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use isa::Isa;
pub use matrix::{F32Columns, Matrix, Out, OutRows, Q8Columns};
pub use product_f32::product_f32;
pub use product_q8::{product_q8, sum_codes};
pub use quantise::quantise_q8;
pub use rows::{add_scaled_row, dot_row, dot_rows, weighted_rows};

#[cfg(test)]
mod tests;
