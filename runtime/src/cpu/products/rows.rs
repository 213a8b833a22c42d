//! Dots with, and weighted sums of, f32 rows that lie where a list says.

use ds4_ir::Tree;

use super::isa::{Isa, Kernel};
use super::level::Level;
use super::tree::{ABSENT, absent_lanes, add_in_sequence, add_to_lanes, halve};

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
    isa.run(DotRows { q, rows, starts, tree, out });
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
    isa.run(WeightedRows { rows, starts, weights, acc });
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
    fn run<L: Level>(self, level: L) {
        for (&start, out) in self.starts.iter().zip(self.out) {
            let row = &self.rows[start..][..self.q.len()];
            *out = match self.tree {
                Tree::Seq => add_in_sequence(ABSENT, row, self.q),
                Tree::Lanes(32) => in_lanes::<L, 2>(level, row, self.q),
                Tree::Lanes(128) => in_lanes::<L, 8>(level, row, self.q),
                tree => panic!("dots have no tree {tree:?}"),
            };
        }
    }
}

#[inline(always)]
fn in_lanes<L: Level, const R: usize>(level: L, row: &[f32], q: &[f32]) -> f32 {
    halve(level, add_to_lanes::<L, R>(level, absent_lanes(level), row, q))
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
    fn run<L: Level>(self, level: L) {
        let len = self.acc.len();
        let (strips, rest) = self.acc.as_chunks_mut::<STRIP>();
        for (i, strip) in strips.iter_mut().enumerate() {
            let (vectors, _) = strip.as_chunks_mut::<16>();
            let mut sums = [level.splat(0.0); STRIP / 16];
            for (sum, vector) in sums.iter_mut().zip(vectors.iter()) {
                *sum = level.load(vector);
            }
            for (&start, &weight) in self.starts.iter().zip(self.weights) {
                let (row, _) = self.rows[start + STRIP * i..][..STRIP].as_chunks::<16>();
                let weight = level.splat(weight);
                for r in 0..STRIP / 16 {
                    sums[r] = level.add(sums[r], level.mul(weight, level.load(&row[r])));
                }
            }
            for (sum, vector) in sums.iter().zip(vectors) {
                level.store(*sum, vector);
            }
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
