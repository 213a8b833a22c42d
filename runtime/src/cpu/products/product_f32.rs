//! Products of rows of any format with f32 activations: one leaf, `mul(w, x)`, per element.

use ds4_ir::Tree;

use super::decode::{PIECE, decode};
use super::isa::{Isa, Kernel};
use super::level::Level;
use super::matrix::{F32Columns, Matrix, OutRows};
use super::tree::{ABSENT, absent_lanes, add_in_sequence, add_to_lanes, halve};

/// Columns that share one decoding of a row.
const TILE: usize = 8;

/// Writes, for every row of `out` and every column of `x`, the product of the decoded matrix row with
/// the column, summed by `tree`: `seq`, `lanes(32)` or `lanes(128)`.
pub fn product_f32(isa: Isa, matrix: &Matrix, x: F32Columns, tree: Tree, out: &mut OutRows) {
    assert!(out.range().end <= matrix.rows, "rows of the matrix");
    if matrix.format.has_scales() {
        assert!(matrix.scale_block_cols > 0, "a scale has elements");
    }
    isa.run(ProductF32 { matrix, x, tree, out });
}

struct ProductF32<'a, 'b, 'c> {
    matrix: &'a Matrix<'a>,
    x: F32Columns<'a>,
    tree: Tree,
    out: &'b mut OutRows<'c>,
}

impl Kernel for ProductF32<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(mut self, level: L) {
        let mut first = 0;
        while first < self.x.columns {
            let columns = TILE.min(self.x.columns - first);
            match (self.tree, columns) {
                (Tree::Seq, _) => self.rows_in_sequence(level, first, columns),
                (Tree::Lanes(32), 1) => self.rows::<L, 2, 1>(level, first, columns),
                (Tree::Lanes(32), _) => self.rows::<L, 2, TILE>(level, first, columns),
                (Tree::Lanes(128), 1) => self.rows::<L, 8, 1>(level, first, columns),
                (Tree::Lanes(128), _) => self.rows::<L, 8, TILE>(level, first, columns),
                (tree, _) => panic!("products have no tree {tree:?}"),
            }
            first += columns;
        }
    }
}

impl ProductF32<'_, '_, '_> {
    /// All rows with up to `T` columns, in `16 * R` lanes.
    #[inline(always)]
    fn rows<L: Level, const R: usize, const T: usize>(&mut self, level: L, first: usize, columns: usize) {
        for r in self.out.range() {
            let mut lanes = [absent_lanes::<L, R>(level); T];
            self.pieces(level, r, |start, w| {
                for (t, lanes) in lanes[..columns].iter_mut().enumerate() {
                    *lanes = add_to_lanes(level, *lanes, w, &self.column(first + t)[start..]);
                }
            });
            for (t, lanes) in lanes[..columns].iter().enumerate() {
                self.out.set(r, first + t, halve(level, *lanes));
            }
        }
    }

    #[inline(always)]
    fn rows_in_sequence<L: Level>(&mut self, level: L, first: usize, columns: usize) {
        for r in self.out.range() {
            let mut sums = [ABSENT; TILE];
            self.pieces(level, r, |start, w| {
                for (t, sum) in sums[..columns].iter_mut().enumerate() {
                    *sum = add_in_sequence(*sum, w, &self.column(first + t)[start..]);
                }
            });
            for (t, &sum) in sums[..columns].iter().enumerate() {
                self.out.set(r, first + t, sum);
            }
        }
    }

    fn column(&self, t: usize) -> &[f32] {
        self.x.column(t, self.matrix.cols)
    }

    /// Decodes row `r` piece by piece and gives each, with its first element, to `visit`.
    #[inline(always)]
    fn pieces<L: Level>(&self, level: L, r: usize, mut visit: impl FnMut(usize, &[f32])) {
        let row = self.matrix.row(r);
        let mut values = [0.0; PIECE];
        let mut start = 0;
        while start < self.matrix.cols {
            let values = &mut values[..PIECE.min(self.matrix.cols - start)];
            decode(level, self.matrix.format, &row, start, values);
            visit(start, values);
            start += PIECE;
        }
    }
}
