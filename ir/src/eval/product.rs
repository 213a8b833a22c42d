//! `product`, `quantise` and `widen`.

use std::sync::Arc;

use super::tensor::{Data, MASKED, Tensor, count};
use super::tree;
use super::weights::Rows;
use crate::formats::WeightRow;
use crate::formats::leaf::{f32_leaf, q8_leaf};
use crate::formats::q8::{BLOCK, quantise_q8};
use crate::op::Type;
use crate::tree::Tree;

/// The operands of a product, with the extents of its loops.
pub(super) struct Product<'a> {
    /// Order of the sum over K.
    pub tree: Tree,
    /// `[B.., M.., K]`, f32 or q8.
    pub x: &'a Tensor,
    /// `[B.., N, K]`, f32 or a weight type.
    pub w: &'a Tensor,
    /// Reads the rows of `w` if that is of a weight type.
    pub rows: Option<Rows<'a>>,
    /// `[B.., K]`.
    pub mask: Option<&'a Tensor>,
}

/// Extents of the loops: batches, rows of x in a batch, rows of w in a batch, length of a row.
#[derive(Clone, Copy)]
struct Loops {
    b: usize,
    m: usize,
    n: usize,
    k: usize,
}

/// A row of `w`.
enum Row<'a> {
    Floats,
    Blocks(WeightRow<'a>),
}

impl<'a> Product<'a> {
    /// The result `[B.., M.., N]`.
    pub fn run(&self, extents: Vec<usize>) -> Result<Tensor, String> {
        if let Some(mask) = self.mask {
            mask.expect_present("the mask")?;
        }
        let total = count(&extents);
        let mut words = vec![0; total];
        if total == 0 {
            return Ok(Tensor::words(Type::F32, extents, words));
        }
        let loops = self.loops();
        let mut scratch = vec![0.0; loops.k];
        for b in 0..loops.b {
            for n in 0..loops.n {
                let row = self.row(b * loops.n + n, &mut scratch)?;
                for m in 0..loops.m {
                    let value = self.element(loops, b, m, &row, &scratch);
                    words[(b * loops.m + m) * loops.n + n] = value.to_bits();
                }
            }
        }
        let result = Tensor::words(Type::F32, extents, words);
        Ok(match self.x.any_absent() || self.w.any_absent() {
            true => result.with_absent(self.absent(loops)),
            false => result,
        })
    }

    fn loops(&self) -> Loops {
        let (x, w) = (&self.x.extents, &self.w.extents);
        let batch = w.len() - 2;
        Loops { b: count(&w[..batch]), m: count(&x[batch..x.len() - 1]), n: w[batch], k: w[batch + 1] }
    }

    /// Row `index` of `w`: widened into `scratch`, or as blocks for q8 activations.
    fn row(&self, index: usize, scratch: &mut [f32]) -> Result<Row<'a>, String> {
        match &self.w.data {
            Data::Rows { rows, .. } if !self.w.is_absent(index) => {
                let source = self.rows.as_ref().ok_or("a weight has no source")?;
                if self.x.ty == Type::Q8 {
                    return Ok(Row::Blocks(source.row(rows[index])?));
                }
                source.floats(rows[index], scratch)?;
            }
            Data::Words(_) => scratch.copy_from_slice(&self.w.floats()[index * scratch.len()..][..scratch.len()]),
            // A row without a value makes elements without a value; what they hold is not looked at.
            _ => scratch.fill(0.0),
        }
        Ok(Row::Floats)
    }

    fn element(&self, loops: Loops, b: usize, m: usize, row: &Row, w: &[f32]) -> f32 {
        let at = b * loops.m + m;
        match (&self.x.data, row) {
            (Data::Q8 { codes, scales }, Row::Blocks(row)) => {
                let codes = &codes[at * loops.k..][..loops.k];
                let scales = &scales[at * (loops.k / BLOCK)..][..loops.k / BLOCK];
                let leaf = |i: usize| q8_leaf(row, i, &codes[BLOCK * i..][..BLOCK], scales[i]);
                tree::sum(self.tree, scales.len(), |i| Some(leaf(i)))
            }
            (Data::Words(_), Row::Floats) => {
                let x = &self.x.floats()[at * loops.k..][..loops.k];
                match self.mask_of(loops, b) {
                    None => tree::sum(self.tree, loops.k, |k| Some(f32_leaf(w[k], x[k]))),
                    Some(mask) => tree::sum(self.tree, loops.k, |k| (mask[k] != MASKED).then(|| f32_leaf(w[k], x[k]))),
                }
            }
            _ => 0.0,
        }
    }

    fn mask_of(&self, loops: Loops, b: usize) -> Option<&'a [u32]> {
        self.mask.map(|mask| &mask.bits()[b * loops.k..][..loops.k])
    }

    /// Which elements have no value: those with a leaf that exists and has none.
    fn absent(&self, loops: Loops) -> Vec<bool> {
        let lacks = |tensor: &Tensor, row: usize, b: usize| match &tensor.data {
            Data::Words(_) => (0..loops.k).any(|k| {
                let exists = self.mask_of(loops, b).is_none_or(|mask| mask[k] != MASKED);
                exists && tensor.is_absent(row * loops.k + k)
            }),
            _ => tensor.is_absent(row),
        };
        let mut absent = Vec::with_capacity(loops.b * loops.m * loops.n);
        for b in 0..loops.b {
            let w: Vec<bool> = (0..loops.n).map(|n| lacks(self.w, b * loops.n + n, b)).collect();
            for m in 0..loops.m {
                let x = lacks(self.x, b * loops.m + m, b);
                absent.extend(w.iter().map(|w| w | x));
            }
        }
        absent
    }
}

/// `quantise`: q8 along the last axis. A row with an element without a value has none.
pub(super) fn quantise(x: &Tensor, extents: Vec<usize>) -> Tensor {
    let len = extents.last().copied().unwrap_or(0);
    let mut codes = vec![0; count(&extents)];
    let mut scales = vec![0.0; codes.len() / BLOCK];
    quantise_q8(x.floats(), &mut codes, &mut scales);
    let rows = codes.len().checked_div(len).unwrap_or(0);
    let data = Data::Q8 { codes: Arc::new(codes), scales: Arc::new(scales) };
    let result = Tensor { ty: Type::Q8, extents, data, absent: None };
    match x.any_absent() {
        true => result.with_absent((0..rows).map(|r| (0..len).any(|i| x.is_absent(r * len + i))).collect()),
        false => result,
    }
}

/// `widen`: the rows of a weight-typed value, decoded.
pub(super) fn widen(x: &Tensor, rows: &Rows, ty: Type, extents: Vec<usize>) -> Result<Tensor, String> {
    let mut words = Vec::with_capacity(count(&extents));
    let mut absent = Vec::new();
    if let (Data::Rows { rows: list, .. }, true) = (&x.data, count(&extents) > 0) {
        for (cell, &row) in list.iter().enumerate() {
            match x.is_absent(cell) {
                true => words.resize(words.len() + rows.len, 0),
                false => rows.words(row, &mut words)?,
            }
            absent.resize(words.len(), x.is_absent(cell));
        }
    }
    Ok(Tensor::words(ty, extents, words).with_absent(absent))
}
