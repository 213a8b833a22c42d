//! A reshape as groups of axes: each group of the one shape has as many elements as its group of the other, so rows of
//! groups correspond one by one.

use crate::dim::{Dim, Dims};

/// Ends of the smallest groups, `(axes of from, axes of to)`; nothing if the shapes do not have equal counts.
pub(super) fn groups(dims: &Dims, from: &[Dim], to: &[Dim]) -> Option<Vec<(usize, usize)>> {
    let mut ends = vec![];
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (more_from, more_to) = next(dims, &from[i..], &to[j..])?;
        (i, j) = (i + more_from, j + more_to);
        ends.push((i, j));
    }
    Some(ends)
}

/// The smallest beginnings of equal counts.
fn next(dims: &Dims, from: &[Dim], to: &[Dim]) -> Option<(usize, usize)> {
    let pairs = (1..=from.len() + to.len()).flat_map(|sum| (0..=sum).map(move |a| (a, sum - a)));
    let mut fitting = pairs.filter(|&(a, b)| a <= from.len() && b <= to.len());
    fitting.find(|&(a, b)| dims.count(&from[..a]) == dims.count(&to[..b]))
}
