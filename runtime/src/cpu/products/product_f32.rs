//! Products of rows of any format with f32 activations: one leaf, `mul(w, x)`, per element.

use ds4_ir::{Format, Tree};

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

/// A format whose elements are numbers, 16 of them in `BYTES`.
trait Numbers<const BYTES: usize> {
    fn load<L: Level>(level: L, bytes: &[u8; BYTES]) -> L::Vector;
}

/// Declares formats with the operation that loads them.
macro_rules! numbers {
    ($($name:ident, $bytes:literal, $load:ident;)*) => {$(
        struct $name;

        impl Numbers<$bytes> for $name {
            #[inline(always)]
            fn load<L: Level>(level: L, bytes: &[u8; $bytes]) -> L::Vector {
                level.$load(bytes)
            }
        }
    )*};
}

numbers! {
    F32s, 64, load_f32;
    F16s, 32, load_f16;
    BF16s, 32, load_bf16;
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
        match (T, self.matrix.format) {
            (1, Format::F32) => return self.direct::<L, R, 64, F32s>(level, first),
            (1, Format::F16) => return self.direct::<L, R, 32, F16s>(level, first),
            (1, Format::BF16) => return self.direct::<L, R, 32, BF16s>(level, first),
            _ => {}
        }
        let mut values = [0.0; PIECE];
        for r in self.out.range() {
            let mut lanes = [absent_lanes::<L, R>(level); T];
            self.pieces(level, r, &mut values, |start, w| {
                for (t, lanes) in lanes[..columns].iter_mut().enumerate() {
                    *lanes = add_to_lanes(level, *lanes, w, &self.column(first + t)[start..]);
                }
            });
            for (t, lanes) in lanes[..columns].iter().enumerate() {
                self.out.set(r, first + t, halve(level, *lanes));
            }
        }
    }

    /// All rows with one column, in `16 * R` lanes, of a format whose elements are numbers: 16 of them, in `BYTES`, go
    /// from memory to a vector.
    #[inline(always)]
    fn direct<L: Level, const R: usize, const BYTES: usize, N: Numbers<BYTES>>(&mut self, level: L, column: usize) {
        let (x, last_x) = self.x.column(column, self.matrix.cols).as_chunks::<16>();
        // Products that are absent: -0.0 times 1.
        let (mut absent, mut ones) = ([ABSENT; 16], [1.0; 16]);
        ones[..last_x.len()].copy_from_slice(last_x);
        for r in self.out.range() {
            let (w, last_w) = self.matrix.row(r).data.as_chunks::<BYTES>();
            let mut lanes = absent_lanes::<L, R>(level);
            let rounds = w.chunks_exact(R).zip(x.chunks_exact(R));
            for (w, x) in rounds {
                for i in 0..R {
                    lanes[i] = level.add(lanes[i], level.mul(N::load(level, &w[i]), level.load(&x[i])));
                }
            }
            let done = w.len() / R * R;
            for i in 0..R {
                if done + i < w.len() {
                    let product = level.mul(N::load(level, &w[done + i]), level.load(&x[done + i]));
                    lanes[i] = level.add(lanes[i], product);
                } else if done + i == w.len() && !last_x.is_empty() {
                    let mut bytes = [0; BYTES];
                    bytes[..last_w.len()].copy_from_slice(last_w);
                    let mut wide = [0.0; 16];
                    level.store(N::load(level, &bytes), &mut wide);
                    absent[..last_x.len()].copy_from_slice(&wide[..last_x.len()]);
                    lanes[i] = level.add(lanes[i], level.mul(level.load(&absent), level.load(&ones)));
                }
            }
            self.out.set(r, column, halve(level, lanes));
        }
    }

    #[inline(always)]
    fn rows_in_sequence<L: Level>(&mut self, level: L, first: usize, columns: usize) {
        let mut values = [0.0; PIECE];
        for r in self.out.range() {
            let mut sums = [ABSENT; TILE];
            self.pieces(level, r, &mut values, |start, w| {
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
    fn pieces<L: Level>(&self, level: L, r: usize, values: &mut [f32; PIECE], mut visit: impl FnMut(usize, &[f32])) {
        let row = self.matrix.row(r);
        let mut start = 0;
        while start < self.matrix.cols {
            let values = &mut values[..PIECE.min(self.matrix.cols - start)];
            decode(level, self.matrix.format, &row, start, values);
            visit(start, values);
            start += PIECE;
        }
    }
}
