//! Loop nests over strided operands, with axes merged where all operands allow it.

use super::extents::{Ext, Extents};

/// Axes that a nest may have after merging.
pub(crate) const MOST_AXES: usize = 8;

/// A loop nest: extents, and for each operand a stride along each axis, in elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nest {
    /// Extents, slowest first.
    pub(crate) extents: Vec<Ext>,
    /// `strides[operand][axis]`.
    pub(crate) strides: Vec<Vec<usize>>,
}

impl Nest {
    /// The nest of these axes with axes of extent 1 dropped and neighbours merged; `None` if too many remain.
    ///
    /// The inner one of two merged axes has a constant extent, so the merged extent is a multiple of one dimension.
    pub(crate) fn merged(extents: &mut Extents, axes: &[Ext], operands: &[&[usize]]) -> Option<Nest> {
        let mut nest = Nest { extents: Vec::new(), strides: vec![Vec::new(); operands.len()] };
        for (axis, &ext) in axes.iter().enumerate() {
            if extents.fixed(ext) == Some(1) {
                continue;
            }
            if let Some(last) = nest.extents.len().checked_sub(1)
                && let Some(n) = extents.fixed(ext)
                && nest.strides.iter().zip(operands).all(|(s, o)| s[last] == o[axis] * n)
            {
                nest.extents[last] = extents.times(nest.extents[last], n);
                for (s, o) in nest.strides.iter_mut().zip(operands) {
                    s[last] = o[axis];
                }
                continue;
            }
            nest.extents.push(ext);
            for (s, o) in nest.strides.iter_mut().zip(operands) {
                s.push(o[axis]);
            }
        }
        (nest.extents.len() <= MOST_AXES).then_some(nest)
    }

    /// The nest of these axes as they are; `None` if there are too many.
    pub(crate) fn unmerged(axes: &[Ext], operands: &[&[usize]]) -> Option<Nest> {
        let nest = Nest { extents: axes.to_vec(), strides: operands.iter().map(|s| s.to_vec()).collect() };
        (axes.len() <= MOST_AXES).then_some(nest)
    }

    /// Takes the innermost axis off: its extent and the operands' strides. Extent `one` and stride 1 if there is none.
    pub(crate) fn pop(&mut self, one: Ext) -> (Ext, Vec<usize>) {
        match self.extents.pop() {
            Some(ext) => {
                let strides = self.strides.iter_mut().filter_map(Vec::pop).collect();
                (ext, strides)
            }
            None => (one, vec![1; self.strides.len()]),
        }
    }

    /// Number of positions of this step.
    pub(crate) fn count(&self, values: &[usize]) -> usize {
        self.extents.iter().map(|&e| values[e as usize]).product()
    }

    /// A walk that begins at position `first` (in row-major order).
    pub(crate) fn walk<'a>(&'a self, values: &'a [usize], first: usize) -> Walk<'a> {
        let mut walk = Walk { nest: self, values, at: [0; MOST_AXES] };
        let mut rest = first;
        if first > 0 {
            for axis in (0..self.extents.len()).rev() {
                let extent = values[self.extents[axis] as usize];
                walk.at[axis] = rest % extent;
                rest /= extent;
            }
        }
        walk
    }
}

/// A position in a nest.
pub(crate) struct Walk<'a> {
    nest: &'a Nest,
    values: &'a [usize],
    at: [usize; MOST_AXES],
}

impl Walk<'_> {
    /// Elements from the operand's start to this position.
    #[inline]
    pub(crate) fn offset(&self, operand: usize) -> usize {
        let strides = &self.nest.strides[operand];
        strides.iter().zip(&self.at).map(|(s, i)| s * i).sum()
    }

    /// The index along an axis.
    pub(crate) fn index(&self, axis: usize) -> usize {
        self.at[axis]
    }

    /// Writes the offsets of all operands.
    #[inline]
    pub(crate) fn offsets(&self, out: &mut [usize]) {
        for (operand, offset) in out.iter_mut().enumerate().take(self.nest.strides.len()) {
            *offset = self.offset(operand);
        }
    }

    /// Moves to the next position and updates offsets that [`Walk::offsets`] gave.
    #[inline]
    pub(crate) fn advance(&mut self, offsets: &mut [usize]) {
        for axis in (0..self.nest.extents.len()).rev() {
            let extent = self.values[self.nest.extents[axis] as usize];
            self.at[axis] += 1;
            if self.at[axis] < extent {
                for (offset, strides) in offsets.iter_mut().zip(&self.nest.strides) {
                    *offset += strides[axis];
                }
                return;
            }
            self.at[axis] = 0;
            for (offset, strides) in offsets.iter_mut().zip(&self.nest.strides) {
                // Wrapping: behind the last position the offsets mean nothing.
                *offset = offset.wrapping_sub(strides[axis] * (extent - 1));
            }
        }
    }
}
