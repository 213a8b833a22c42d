//! Extents: numbers that follow from the step, each with a static bound; and grids, their products.

use ds4_ir::Dim;

use super::tables::Extent;

/// Most workgroups along one axis of a dispatch, on every device.
pub const MOST_GROUPS: u32 = 65_535;

/// `ceil(times * min(scalar, most) / per)`; without a scalar, `scalar` is `most`.
///
/// `scalar` is a word of the step's block: the value of a dimension in this step. The clamp keeps loops and indices within
/// their static bounds whatever the block holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExtentRow {
    /// Which dimension, if the step chooses.
    pub scalar: Option<Dim>,
    /// Largest value of the scalar.
    pub most: u32,
    /// Factor.
    pub times: u32,
    /// Divisor, not zero; the quotient is rounded up.
    pub per: u32,
}

impl ExtentRow {
    /// A number.
    pub fn constant(n: u32) -> ExtentRow {
        ExtentRow { scalar: None, most: 1, times: n, per: 1 }
    }

    /// The number, if no step changes it.
    pub fn is_constant(&self) -> Option<u32> {
        self.scalar.is_none().then(|| self.largest()).flatten()
    }

    /// The largest value; `None` if the product leaves 32 bits.
    pub fn largest(&self) -> Option<u32> {
        self.value(self.most)
    }

    /// The value where the scalar has this value.
    pub fn value(&self, scalar: u32) -> Option<u32> {
        Some(self.times.checked_mul(scalar.min(self.most))?.div_ceil(self.per))
    }
}

/// A grid in one step: for each part of the kernel the number of workgroups along each axis, slowest first.
///
/// A dispatch has few axes of at most [`MOST_GROUPS`] workgroups, so the parts are laid one behind the other and folded:
/// workgroup `(x, y)` of the dispatch is the grid's number `x + y * width`, and those at and beyond the total have nothing to
/// do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Extents of the axes of each part.
    pub parts: Vec<Vec<u32>>,
}

impl Grid {
    /// Number of workgroups.
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|axes| count(axes)).fold(0, u64::saturating_add)
    }

    /// Width and height of the dispatch, `None` if not even folded axes hold the grid. An empty grid needs no dispatch.
    pub fn folded(&self) -> Option<(u32, u32)> {
        let total = self.total();
        let height = total.div_ceil(MOST_GROUPS.into()).max(1);
        let width = total.div_ceil(height);
        Some((u32::try_from(width).ok()?, u32::try_from(height).ok().filter(|&h| h <= MOST_GROUPS)?))
    }

    /// The part that a number belongs to, and its coordinates there; `None` at and beyond the total.
    pub fn place(&self, mut number: u64) -> Option<(usize, Vec<u32>)> {
        for (part, axes) in self.parts.iter().enumerate() {
            let count = count(axes);
            if number < count {
                return Some((part, coordinates(axes, number)));
            }
            number -= count;
        }
        None
    }
}

/// Number of workgroups of a part.
fn count(axes: &[u32]) -> u64 {
    axes.iter().fold(1, |count, &n| count.saturating_mul(n.into()))
}

fn coordinates(axes: &[u32], mut number: u64) -> Vec<u32> {
    let mut at = vec![0; axes.len()];
    for (i, &n) in at.iter_mut().zip(axes).rev() {
        *i = (number % u64::from(n)) as u32;
        number /= u64::from(n);
    }
    at
}

/// The extents of a part's axes in a step; `scalar` gives the value of a dimension.
pub(super) fn axes(extents: &[ExtentRow], axes: &[Extent], scalar: &dyn Fn(Dim) -> u32) -> Option<Vec<u32>> {
    let value = |&e: &Extent| {
        let row = extents.get(e.0 as usize)?;
        row.value(row.scalar.map_or(row.most, scalar))
    };
    axes.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_clamped_and_rounded_up() {
        let row = ExtentRow { scalar: Some(Dim(3)), most: 8, times: 5, per: 16 };
        assert_eq!([0, 1, 3, 4, 8, 9, u32::MAX].map(|n| row.value(n)), [0, 1, 1, 2, 3, 3, 3].map(Some));
        assert_eq!((row.largest(), row.is_constant()), (Some(3), None));
        assert_eq!(ExtentRow { times: u32::MAX, ..row }.largest(), None);
        assert_eq!(ExtentRow::constant(7).is_constant(), Some(7));
    }

    #[test]
    fn a_large_grid_is_folded() {
        let folded = |axes: &[u32]| Grid { parts: vec![axes.to_vec()] }.folded();
        assert_eq!(folded(&[65_535]), Some((65_535, 1)));
        assert_eq!(folded(&[65_536]), Some((32_768, 2)));
        assert_eq!(folded(&[3, 65_535]), Some((65_535, 3)));
        assert_eq!(folded(&[5, 0]), Some((0, 1)));
        assert_eq!(folded(&[u32::MAX, 2]), None);
        let (width, height) = folded(&[1000, 1001]).unwrap();
        assert!(u64::from(width) * u64::from(height) >= 1_001_000 && width <= MOST_GROUPS);
        assert_eq!(Grid { parts: vec![vec![65_000], vec![3, 200]] }.folded(), Some((32_800, 2)));
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        let grid = Grid { parts: vec![vec![2, 3], vec![4, 0], vec![], vec![4, 3, 5]] };
        assert_eq!(grid.total(), 67);
        assert_eq!(grid.place(5), Some((0, vec![1, 2])));
        assert_eq!(grid.place(6), Some((2, vec![])));
        assert_eq!(grid.place(7), Some((3, vec![0, 0, 0])));
        assert_eq!(grid.place(7 + 3 * 15 + 2 * 5 + 4), Some((3, vec![3, 2, 4])));
        assert_eq!(grid.place(67), None);
    }
}
