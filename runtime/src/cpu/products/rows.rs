//! Dots with, and weighted sums of, f32 rows that lie where a list says.

use ds4_ir::Tree;

use super::isa::{Isa, Kernel};
use super::level::Level;
use super::tree::{ABSENT, add_in_sequence, add_to_lanes, halve};

/// Elements of an accumulator that stay in registers while the rows pass.
const STRIP: usize = 64;

/// The dot of two rows: leaves `mul(row, q)`, summed by `tree` (`seq`, `lanes(32)` or `lanes(128)`).
pub fn dot_row(isa: Isa, q: &[f32], row: &[f32], tree: Tree) -> f32 {
    let mut out = [0.0];
    dot_rows(isa, q, row, &[0], tree, &mut out);
    out[0]
}

/// [`dot_row`] of `q` with each row of `q.len()` elements that starts at an entry of `starts` in `rows`.
pub fn dot_rows(isa: Isa, q: &[f32], rows: &[f32], starts: &[usize], tree: Tree, out: &mut [f32]) {
    assert_eq!(starts.len(), out.len(), "one result per row");
    isa.run(DotRows {
        q,
        rows,
        starts,
        tree,
        out,
    });
}

/// Adds one term of a `seq` sum to each element: `acc = add(acc, mul(scale, row))`.
///
/// An accumulator filled with -0.0 is empty: the first term added to it is the term itself.
pub fn add_scaled_row(isa: Isa, scale: f32, row: &[f32], acc: &mut [f32]) {
    weighted_rows(isa, row, &[0], &[scale], acc);
}

/// Adds to `acc` the terms `mul(weight, row)` of the rows at `starts`, ascending, as
/// [`add_scaled_row`] would one by one.
pub fn weighted_rows(isa: Isa, rows: &[f32], starts: &[usize], weights: &[f32], acc: &mut [f32]) {
    assert_eq!(starts.len(), weights.len(), "one weight per row");
    isa.run(WeightedRows {
        rows,
        starts,
        weights,
        acc,
    });
}

struct DotRows<'a> {
    q: &'a [f32],
    rows: &'a [f32],
    starts: &'a [usize],
    tree: Tree,
    out: &'a mut [f32],
}

impl Kernel for DotRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self, _level: L) {
        for (&start, out) in self.starts.iter().zip(self.out) {
            let row = &self.rows[start..][..self.q.len()];
            *out = match self.tree {
                Tree::Seq => in_sequence(row, self.q),
                Tree::Lanes(32) => in_lanes::<32>(row, self.q),
                Tree::Lanes(128) => in_lanes::<128>(row, self.q),
                tree => panic!("dots have no tree {tree:?}"),
            };
        }
    }
}

#[inline(always)]
fn in_sequence(row: &[f32], q: &[f32]) -> f32 {
    let mut sum = ABSENT;
    add_in_sequence(&mut sum, row, q);
    sum
}

#[inline(always)]
fn in_lanes<const N: usize>(row: &[f32], q: &[f32]) -> f32 {
    let mut lanes = [ABSENT; N];
    add_to_lanes(&mut lanes, row, q);
    halve(lanes)
}

struct WeightedRows<'a> {
    rows: &'a [f32],
    starts: &'a [usize],
    weights: &'a [f32],
    acc: &'a mut [f32],
}

impl Kernel for WeightedRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self, _level: L) {
        let len = self.acc.len();
        let (strips, rest) = self.acc.as_chunks_mut::<STRIP>();
        for (i, strip) in strips.iter_mut().enumerate() {
            let mut sums = *strip;
            for (&start, &weight) in self.starts.iter().zip(self.weights) {
                let row = &self.rows[start + STRIP * i..][..STRIP];
                for (sum, v) in sums.iter_mut().zip(row) {
                    *sum += weight * v;
                }
            }
            *strip = sums;
        }
        let done = len - rest.len();
        for (&start, &weight) in self.starts.iter().zip(self.weights) {
            let row = &self.rows[start + done..start + len];
            for (sum, v) in rest.iter_mut().zip(row) {
                *sum += weight * v;
            }
        }
    }
}
