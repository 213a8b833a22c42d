//! Values made from the step, views, `concat` and `gather`.

use ScalarOp::{Abs, AddI, Neg};
use ds4_ir::{DimOp, ScalarOp, Value};

use super::Case;
use super::draft::Draft;

/// The family's name.
pub const FAMILY: &str = "views";

/// All cases.
pub fn cases() -> Vec<Case> {
    vec![
        made(),
        reshaped(),
        sliced_by_step(),
        concat_of_rows(),
        concat_of_columns(),
        concat_in_place(),
        gathered(),
        gathered_in_batches(),
        gathered_along_the_last_axis(),
        gathered_ids(),
        gathered_by_tokens(),
    ]
}

/// Tokens, extents and indices along every axis.
fn made() -> Case {
    let mut d = Draft::new(FAMILY, "made");
    d.vocabulary(1000);
    let (columns, three, five) = (d.b.columns(), d.b.n(3), d.b.n(5));
    let tokens = d.b.tokens();
    d.output("tokens", tokens);
    let position = d.b.dims.dim(DimOp::Position);
    let end = d.b.dims.dim(DimOp::Add(position, columns));
    let completed = d.b.dims.dim(DimOp::Completed(4));
    let outputs = d.b.dims.dim(DimOp::Outputs);
    for (name, dim) in [("position", position), ("end", end), ("completed", completed), ("outputs", outputs)] {
        let extent = d.b.extent(dim);
        d.output(name, extent);
    }
    for axis in 0..3 {
        let iota = d.b.iota(&[three, columns, five], axis);
        d.output(&format!("iota_{axis}"), iota);
    }
    d.steps_with_outputs(&[[1, 1], [8, 3], [5, 0], [3, 3]])
}

/// Reshapes that strides cannot express, so that elements move.
fn reshaped() -> Case {
    let mut d = Draft::new(FAMILY, "reshaped");
    let (columns, ten, six) = (d.b.columns(), d.b.n(10), d.b.n(6));
    let x = d.activations(&[3, 5]);
    let x = d.apply(Neg, &[x]);
    let turned = d.b.permute(x, &[0, 2, 1]);
    let cut = d.b.cut(turned, 2, 1, 2);
    let flat = d.b.reshape(cut, &[columns, ten]);
    let odd = d.b.cut(x, 2, 1, 2);
    let back = d.b.permute(odd, &[0, 2, 1]);
    let other = d.b.reshape(back, &[columns, six]);
    let sum = d.apply(Abs, &[other]);
    for (name, v) in [("turned", turned), ("flat", flat), ("other", other), ("sum", sum)] {
        d.output(name, v);
    }
    d.steps(&[8, 1, 3])
}

/// The last columns, as many as there are outputs; at times none.
fn sliced_by_step() -> Case {
    let mut d = Draft::new(FAMILY, "sliced_by_step");
    let x = d.activations(&[37]);
    let x = d.apply(Neg, &[x]);
    let (columns, outputs) = (d.b.columns(), d.b.dims.dim(DimOp::Outputs));
    let start = d.b.dims.dim(DimOp::Sub(columns, outputs));
    let last = d.b.slice(x, 0, start, outputs);
    let y = d.apply(Abs, &[last]);
    d.output("last", last);
    d.output("y", y);
    d.steps_with_outputs(&[[8, 1], [8, 8], [5, 3], [1, 0], [8, 0], [1, 1]])
}

fn negated(d: &mut Draft, inner: &[u32]) -> Value {
    let x = d.activations(inner);
    d.apply(Neg, &[x])
}

/// Parts one behind the other along the inner axis; one of them occurs twice.
fn concat_of_rows() -> Case {
    let mut d = Draft::new(FAMILY, "concat_of_rows");
    let (x, y) = (d.activations(&[3]), negated(&mut d, &[4]));
    let wide = d.b.concat(1, &[x, y, x]);
    d.output("wide", wide);
    d.steps(&[8, 1, 3])
}

/// Parts whose places follow from the number of columns.
fn concat_of_columns() -> Case {
    let mut d = Draft::new(FAMILY, "concat_of_columns");
    let (x, y, z) = (negated(&mut d, &[5]), d.activations(&[5]), negated(&mut d, &[5]));
    let first = d.b.cut(z, 1, 0, 5);
    let tall = d.b.concat(0, &[x, y, first]);
    d.output("tall", tall);
    d.steps(&[8, 1, 3])
}

/// Parts that are computed where they belong, and a part of them that is moved.
fn concat_in_place() -> Case {
    let mut d = Draft::new(FAMILY, "concat_in_place");
    let (columns, six) = (d.b.columns(), d.b.n(6));
    let made = negated(&mut d, &[3, 2]);
    let inside = d.b.reshape(made, &[columns, six]);
    let doubled = d.apply(Abs, &[inside]);
    let turned = d.b.permute(made, &[0, 2, 1]);
    let flat = d.b.reshape(turned, &[columns, six]);
    let wide = d.b.concat(1, &[doubled, flat, inside]);
    let z = d.apply(Neg, &[wide]);
    d.output("wide", wide);
    d.output("z", z);
    d.steps(&[8, 2, 5])
}

/// Rows of a table by ids of each column, some masked.
fn gathered() -> Case {
    let mut d = Draft::new(FAMILY, "gathered");
    let words = d.random.rows(6, 13);
    let source = d.floats(&[6, 13], &words);
    let ids: Vec<i32> = (0..24).map(|i| if i % 5 == 3 { -1 } else { i * 7 % 6 }).collect();
    let ids = d.ids(&[8, 3], &ids);
    let ids = d.per_column(ids);
    let rows = d.b.gather(0, 0, source, ids);
    let negated = d.apply(Neg, &[rows]);
    d.tap("rows", rows);
    d.tap("negated", negated);
    d.steps(&[8, 1, 3])
}

/// Ids of a batch select within it, along an inner axis.
fn gathered_in_batches() -> Case {
    let mut d = Draft::new(FAMILY, "gathered_in_batches");
    let source = d.activations(&[3, 6, 2]);
    let source = d.apply(Neg, &[source]);
    let ids: Vec<i32> = (0..32).map(|i| if i % 5 == 4 { -1 } else { i * 5 % 6 }).collect();
    let ids = d.ids(&[8, 4], &ids);
    let ids = d.per_column(ids);
    let rows = d.b.gather(2, 1, source, ids);
    d.tap("rows", rows);
    let plain: Vec<i32> = (0..32).map(|i| i * 5 % 6).collect();
    let plain = d.ints(&[8, 4], &plain);
    let plain = d.per_column(plain);
    let whole = d.b.gather(2, 1, source, plain);
    d.output("whole", whole);
    d.steps(&[8, 1, 3])
}

/// Single elements of rows.
fn gathered_along_the_last_axis() -> Case {
    let mut d = Draft::new(FAMILY, "gathered_elements");
    let source = d.activations(&[29]);
    let ids: Vec<i32> = (0..56).map(|i| if i % 6 == 1 { -1 } else { i * 11 % 29 }).collect();
    let ids = d.ids(&[8, 7], &ids);
    let ids = d.per_column(ids);
    let elements = d.b.gather(1, 1, source, ids);
    d.tap("elements", elements);
    d.steps(&[8, 1, 5])
}

/// Ids and integers, by integers.
fn gathered_ids() -> Case {
    let mut d = Draft::new(FAMILY, "gathered_ids");
    let table = d.ids(&[6], &[5, -1, 3, 2, -1, 0]);
    let picks = d.ints(&[11], &[5, 1, 0, 4, 4, 2, 3, 1, 0, 5, 2]);
    let ids = d.b.gather(0, 0, table, picks);
    d.output("ids", ids);
    let numbers = d.ints(&[6], &[i32::MIN, -1, 0, 1, i32::MAX, 7]);
    let chosen = d.b.gather(0, 0, numbers, picks);
    let sum = d.apply(AddI, &[chosen, picks]);
    d.output("sum", sum);
    d.once()
}

/// A row for each token.
fn gathered_by_tokens() -> Case {
    let mut d = Draft::new(FAMILY, "gathered_by_tokens");
    d.vocabulary(7);
    let words = d.random.rows(7, 65);
    let table = d.floats(&[7, 65], &words);
    let tokens = d.b.tokens();
    let rows = d.b.gather(0, 0, table, tokens);
    d.output("rows", rows);
    d.steps(&[8, 1, 4])
}
