//! The positions of a value that a workgroup has.

use ds4_ir::Dim;
use ds4_ir::dim::{Bounds, DimRow};

use super::axes::{Axis, Extent, Factor, Walk};

/// The axes of a value as factors, slowest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Space {
    pub(super) axes: Vec<Vec<Factor>>,
}

impl Space {
    /// The space of a value with these dimensions of which a workgroup has these parts.
    pub(super) fn of(dims: &[DimRow], shape: &[Dim], axes: &[Axis]) -> Space {
        let factors = |(&dim, axis): (&Dim, &Axis)| match axis {
            Axis::Whole => match Extent::of(dims, dim) {
                Extent::Const(1) => Vec::new(),
                extent => vec![Factor { extent, walk: Walk::Local }],
            },
            Axis::Split(factors) => factors.clone(),
        };
        Space { axes: shape.iter().zip(axes).map(factors).collect() }
    }

    /// The extents that the workgroup walks, slowest first.
    pub(super) fn locals(&self) -> impl DoubleEndedIterator<Item = Extent> + use<'_> {
        self.axes.iter().flatten().filter(|f| f.walk == Walk::Local).map(|f| f.extent)
    }

    /// Elements of a workgroup at the largest extents.
    pub(super) fn count(&self, dims: &[DimRow], bounds: Bounds) -> u64 {
        self.locals().map(|extent| u64::from(extent.most(dims, bounds))).fold(1, u64::saturating_mul)
    }

    /// The extents that the workgroup walks along one axis, if they are constant.
    pub(super) fn local_constant(&self, axis: usize) -> Option<u32> {
        let locals = self.axes[axis].iter().filter(|f| f.walk == Walk::Local);
        locals.map(|f| f.extent.constant()).try_fold(1u32, |n, extent| n.checked_mul(extent?))
    }
}
