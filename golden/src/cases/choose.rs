//! `top_k`, `arg_max` and `sort_ids`: ties, signed zeros, infinities, NaN, masked candidates.

use ds4_ir::{ScalarOp, Value};

use super::Case;
use super::draft::Draft;

/// The family's name.
pub const FAMILY: &str = "choose";

/// All cases.
pub fn cases() -> Vec<Case> {
    let top = [(1, 1), (7, 3), (5, 9), (64, 8), (130, 6), (200, 64)].map(|(n, k)| top_k(n, k));
    let first = [1, 2, 63, 64, 65, 300].map(arg_max);
    let sorted = [1, 6, 70, 133].map(sort_ids);
    top.into_iter().chain(first).chain(sorted).chain([large()]).collect()
}

/// Keys `[8, n]` with many ties, both zeros, infinities, NaN and subnormals; one row of NaN, one of ties.
fn keys(d: &mut Draft, n: u32) -> Value {
    let random = &mut d.random;
    let mut key = |row: u32| match (row, random.below(12)) {
        (3, _) => f32::NAN,
        (4, _) => -0.0,
        (5, r) => [0.0, -0.0][r as usize % 2],
        (_, 0) => 0.0,
        (_, 1) => -0.0,
        (_, 2) => f32::from_bits(0xffc0_0001),
        (_, 3) => f32::INFINITY,
        (_, 4) => f32::NEG_INFINITY,
        (_, 5) => f32::from_bits(1),
        (_, 6) => -f32::from_bits(1),
        (0, _) => random.unit(),
        (_, r) => r as f32 - 9.0,
    };
    let words: Vec<u32> = (0..8 * n).map(|i| key(i / n).to_bits()).collect();
    let table = d.floats(&[8, n], &words);
    d.per_column(table)
}

/// The k largest, of all and of candidates; row 1 has no candidate, row 2 fewer than k.
fn top_k(n: u32, k: u32) -> Case {
    let mut d = Draft::new(FAMILY, &format!("top_k.{k}_of_{n}"));
    let x = keys(&mut d, n);
    let all = d.b.top_k(k, x, None);
    let random = &mut d.random;
    let mut is_masked = |row: u32, i: u32| match row {
        1 => true,
        2 => i.is_multiple_of(2) || i >= k,
        _ => random.below(3) == 0,
    };
    let ids: Vec<i32> = (0..8 * n).map(|i| if is_masked(i / n, i % n) { -1 } else { (i % n) as i32 }).collect();
    let ids = d.ids(&[8, n], &ids);
    let ids = d.per_column(ids);
    let some = d.b.top_k(k, x, Some(ids));
    d.output("all", all);
    d.output("some", some);
    d.steps(&[8, 1, 3])
}

fn arg_max(n: u32) -> Case {
    let mut d = Draft::new(FAMILY, &format!("arg_max.of_{n}"));
    let x = keys(&mut d, n);
    let y = d.b.arg_max(x);
    d.output("y", y);
    d.steps(&[8, 1, 3])
}

/// Ids with repetitions, masked ones among them; and integers.
fn sort_ids(n: u32) -> Case {
    let mut d = Draft::new(FAMILY, &format!("sort_ids.{n}"));
    let values: Vec<i32> = (0..8 * n).map(|_| d.random.below(40) as i32 - 8).collect();
    let ids = d.ids(&[8, n], &values);
    let ids = d.per_column(ids);
    let sorted = d.b.sort_ids(ids);
    let plain: Vec<i32> = values.iter().map(|i| i.abs()).collect();
    let plain = d.ints(&[8, n], &plain);
    let plain = d.per_column(plain);
    let plain = d.b.sort_ids(plain);
    d.output("ids", sorted);
    d.output("integers", plain);
    d.steps(&[8, 1, 3])
}

/// A workgroup for each of 65,539 rows: more than one axis of a grid has.
fn large() -> Case {
    let mut d = Draft::new(FAMILY, "large");
    let shape = [d.b.n(65_539), d.b.n(3)];
    let (i, j) = (d.b.iota(&shape, 0), d.b.iota(&shape, 1));
    let x = d.map(&[i, j], |m, p| {
        // Small numbers, so that there are ties.
        let mixed = m.op(ScalarOp::MulI, &[m.op(ScalarOp::AddI, &[p[0], p[1]]), m.i(0x9e37_79b1u32 as i32)]);
        m.op(ScalarOp::FloatOf, &[m.op(ScalarOp::SarI, &[mixed, m.i(30)])])
    });
    let y = d.b.arg_max(x);
    d.output("y", y);
    d.once()
}
