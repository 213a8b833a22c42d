//! Axes of a value as a workgroup sees them: whole, or split into factors that the grid and the workgroup walk.

use ds4_ir::Dim;
use ds4_ir::dim::{Bounds, DimOp, DimRow, dim_max};

/// A number of positions: a constant, or what a step chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extent {
    /// A constant.
    Const(u32),
    /// A dimension that is no constant.
    Dim(Dim),
}

impl Extent {
    /// The extent of a dimension.
    pub fn of(dims: &[DimRow], dim: Dim) -> Extent {
        match DimOp::of(dims[dim.0 as usize]) {
            Some(DimOp::Const(n)) => Extent::Const(n),
            _ => Extent::Dim(dim),
        }
    }

    /// The constant, if it is one.
    pub fn constant(self) -> Option<u32> {
        match self {
            Extent::Const(n) => Some(n),
            Extent::Dim(_) => None,
        }
    }

    /// The largest value at an entry point.
    pub fn most(self, dims: &[DimRow], bounds: Bounds) -> u32 {
        match self {
            Extent::Const(n) => n,
            Extent::Dim(dim) => dim_max(dims, dim, bounds),
        }
    }
}

/// Who walks a factor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Walk {
    /// The lanes of every workgroup: all positions are there.
    Local,
    /// The grid: a workgroup has one position, `index of the atom / step % extent of the factor`.
    Grid {
        /// An axis of the region's grid.
        atom: u32,
        /// How many positions of the atom one step along this factor is.
        step: u32,
    },
    /// Nobody: its first position. Of blocks that are computed together.
    Fixed,
}

/// A factor of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Factor {
    /// Its positions.
    pub extent: Extent,
    /// Who walks them.
    pub walk: Walk,
}

/// An axis of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// Every workgroup has all of it.
    Whole,
    /// Factors, slowest first, at least one of them walked by the grid.
    Split(Vec<Factor>),
}

impl Axis {
    /// The axis of these factors, in its one form: neighbours that one loop walks are one factor.
    pub fn of(factors: impl IntoIterator<Item = Factor>) -> Axis {
        let mut merged: Vec<Factor> = Vec::new();
        for factor in factors.into_iter().filter(|f| f.extent != Extent::Const(1) || f.walk != Walk::Local) {
            match merged.last_mut() {
                Some(last) if joined(*last, factor).is_some() => *last = joined(*last, factor).unwrap_or(factor),
                _ => merged.push(factor),
            }
        }
        let split = merged.iter().any(|f| matches!(f.walk, Walk::Grid { .. }));
        if split { Axis::Split(merged) } else { Axis::Whole }
    }

    /// Whether every workgroup has all of it.
    pub fn is_whole(&self) -> bool {
        *self == Axis::Whole
    }

    /// The axis that serves readers of both: one of them if they are the same, else all of it.
    pub fn joined(self, other: &Axis) -> Axis {
        if self == *other { self } else { Axis::Whole }
    }
}

/// Two neighbouring factors as one, if one loop walks both.
fn joined(outer: Factor, inner: Factor) -> Option<Factor> {
    let (Extent::Const(o), Extent::Const(i)) = (outer.extent, inner.extent) else { return None };
    let extent = Extent::Const(o.checked_mul(i)?);
    match (outer.walk, inner.walk) {
        (Walk::Local, Walk::Local) => Some(Factor { extent, walk: Walk::Local }),
        (Walk::Grid { atom: a, step: s }, Walk::Grid { atom: b, step: t }) if a == b && Some(s) == t.checked_mul(i) => {
            Some(Factor { extent, walk: inner.walk })
        }
        _ => None,
    }
}

/// The axes of a value whose elements, row-major, are those of a value with axes `from`. An axis for which there is no such form
/// is whole.
pub fn reshaped(dims: &[DimRow], from: (&[Dim], &[Axis]), to: &[Dim]) -> Vec<Axis> {
    let (from_dims, from_axes) = from;
    let mut axes = vec![Axis::Whole; to.len()];
    for (source, target) in blocks(dims, from_dims, to) {
        let inner = &from_axes[source.clone()];
        if inner.iter().all(Axis::is_whole) {
            continue;
        }
        let extents = from_dims[source.clone()].iter().map(|&d| Extent::of(dims, d));
        let factors = extents.zip(inner).flat_map(|(extent, axis)| match axis {
            Axis::Whole => vec![Factor { extent, walk: Walk::Local }],
            Axis::Split(factors) => factors.clone(),
        });
        let wanted: Vec<Extent> = to[target.clone()].iter().map(|&d| Extent::of(dims, d)).collect();
        if let Some(found) = regrouped(factors.collect(), &wanted) {
            axes[target].clone_from_slice(&found);
        }
    }
    axes
}

/// Ranges of axes of two shapes with equal counts, as small as they can be.
pub(super) fn blocks(
    dims: &[DimRow],
    from: &[Dim],
    to: &[Dim],
) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (first_i, first_j) = (i, j);
        let (mut left, mut right) = (Count::default(), Count::default());
        loop {
            let more_left = i < from.len() && (j == to.len() || left.number <= right.number || i == first_i);
            if more_left {
                left.take(dims, from[i]);
                i += 1;
            } else if j < to.len() {
                right.take(dims, to[j]);
                j += 1;
            } else {
                break;
            }
            if i > first_i && j > first_j && left == right {
                break;
            }
        }
        found.push((first_i..i, first_j..j));
    }
    found
}

/// A number of elements: a constant times dimensions.
#[derive(Default, PartialEq, Eq)]
struct Count {
    number: u64,
    symbols: Vec<Dim>,
}

impl Count {
    fn take(&mut self, dims: &[DimRow], dim: Dim) {
        let (mut dim, mut number) = (dim, self.number.max(1));
        if let Some(DimOp::Scale(inner, n)) = DimOp::of(dims[dim.0 as usize]) {
            number = number.saturating_mul(n.into());
            dim = inner;
        }
        match Extent::of(dims, dim) {
            Extent::Const(n) => number = number.saturating_mul(n.into()),
            Extent::Dim(dim) => self.symbols.push(dim),
        }
        self.symbols.sort();
        self.number = number;
    }
}

/// Factors in a row as axes with these extents. A dimension that is no constant keeps its one factor.
fn regrouped(mut factors: Vec<Factor>, wanted: &[Extent]) -> Option<Vec<Axis>> {
    let mut axes = Vec::with_capacity(wanted.len());
    for &extent in wanted.iter().rev() {
        let mut taken = Vec::new();
        let mut rest = match extent {
            Extent::Const(n) => n,
            Extent::Dim(_) => {
                taken.push(factors.pop().filter(|f| f.extent == extent)?);
                1
            }
        };
        while rest > 1 {
            let factor = factors.pop()?;
            let Extent::Const(n) = factor.extent else { return None };
            if n == 0 {
                return None;
            }
            if rest.is_multiple_of(n) {
                rest /= n;
                taken.push(factor);
                continue;
            }
            if !n.is_multiple_of(rest) {
                return None;
            }
            let outer = match factor.walk {
                walk @ (Walk::Local | Walk::Fixed) => walk,
                Walk::Grid { atom, step } => Walk::Grid { atom, step: step.checked_mul(rest)? },
            };
            taken.push(Factor { extent: Extent::Const(rest), ..factor });
            factors.push(Factor { extent: Extent::Const(n / rest), walk: outer });
            rest = 1;
        }
        taken.reverse();
        axes.push(Axis::of(taken));
    }
    let whole = factors.iter().all(|f| f.extent == Extent::Const(1));
    axes.reverse();
    whole.then_some(axes)
}
