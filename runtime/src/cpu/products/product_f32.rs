//! Products of rows of any format with f32 activations: one leaf, `mul(w, x)`, per element.

use ds4_ir::Tree;

use super::decode::{PIECE, decode};
use super::isa::{Isa, Kernel};
use super::level::Level;
use super::matrix::{F32Columns, Matrix, OutRows, Row};
use super::tree::{ABSENT, add_in_sequence, add_to_lanes, halve};

/// Columns that share one decoding of a row.
const TILE: usize = 8;

/// Writes, for every row of `out` and every column of `x`, the product of the decoded matrix row with
/// the column, summed by `tree`: `seq`, `lanes(32)` or `lanes(128)`.
pub fn product_f32(isa: Isa, matrix: &Matrix, x: F32Columns, tree: Tree, out: &mut OutRows) {
    assert!(out.range().end <= matrix.rows, "rows of the matrix");
    if matrix.format.has_scales() {
        assert!(matrix.scale_block_cols > 0, "a scale has elements");
    }
    isa.run(ProductF32 {
        matrix,
        x,
        tree,
        out,
    });
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
                (Tree::Seq, _) => self.rows::<L, 1, TILE>(level, first, columns),
                (Tree::Lanes(32), 1) => self.rows::<L, 32, 1>(level, first, columns),
                (Tree::Lanes(32), _) => self.rows::<L, 32, TILE>(level, first, columns),
                (Tree::Lanes(128), 1) => self.rows::<L, 128, 1>(level, first, columns),
                (Tree::Lanes(128), _) => self.rows::<L, 128, TILE>(level, first, columns),
                (tree, _) => panic!("products have no tree {tree:?}"),
            }
            first += columns;
        }
    }
}

impl ProductF32<'_, '_, '_> {
    /// All rows with up to `T` columns, in `N` lanes; one lane is `seq`.
    #[inline(always)]
    fn rows<L: Level, const N: usize, const T: usize>(
        &mut self,
        level: L,
        first: usize,
        columns: usize,
    ) {
        for r in self.out.range() {
            let row = self.matrix.row(r);
            let lanes = self.row::<L, N, T>(level, &row, first, columns);
            for (t, lanes) in lanes[..columns].iter().enumerate() {
                self.out.set(r, first + t, halve(*lanes));
            }
        }
    }

    #[inline(always)]
    fn row<L: Level, const N: usize, const T: usize>(
        &self,
        level: L,
        row: &Row,
        first: usize,
        columns: usize,
    ) -> [[f32; N]; T] {
        let len = self.matrix.cols;
        let mut lanes = [[ABSENT; N]; T];
        let mut w = [0.0; PIECE];
        let mut start = 0;
        while start < len {
            let w = &mut w[..PIECE.min(len - start)];
            decode(level, self.matrix.format, row, start, w);
            for (t, lanes) in lanes[..columns].iter_mut().enumerate() {
                let x = &self.x.column(first + t, len)[start..];
                match N {
                    1 => add_in_sequence(&mut lanes[0], w, x),
                    _ => add_to_lanes(lanes, w, x),
                }
            }
            start += PIECE;
        }
        lanes
    }
}
