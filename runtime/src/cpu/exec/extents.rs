//! Extents of a step: every loop bound as an index into one small table.
//!
//! Constants are filled in at load; a step evaluates the few symbolic ones once, and kernels look them up.

use ds4_ir::graph::Graph;
use ds4_ir::{Bounds, Dim, DimOp, Step};

/// Place of an extent in the table.
pub(crate) type Ext = u32;

/// The extents that the kernels of an entry point use.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// What each is: a dimension times a factor, or the constant `factor`.
    rows: Vec<(Option<Dim>, usize)>,
    /// The values of this step.
    values: Vec<usize>,
    /// The largest values at the entry point.
    largest: Vec<usize>,
    /// Places of the symbolic ones.
    symbolic: Vec<Ext>,
}

impl Extents {
    /// The extent of a dimension.
    pub(crate) fn dim(&mut self, graph: &Graph<'_>, dim: Dim, bounds: Bounds) -> Ext {
        match DimOp::of(graph.dims[dim.0 as usize]) {
            Some(DimOp::Const(n)) => self.constant(n as usize),
            _ => {
                let largest = ds4_ir::dim::dim_max(graph.dims, dim, bounds) as usize;
                self.row((Some(dim), 1), largest)
            }
        }
    }

    /// A constant extent.
    pub(crate) fn constant(&mut self, n: usize) -> Ext {
        self.row((None, n), n)
    }

    /// An extent times a constant.
    pub(crate) fn times(&mut self, ext: Ext, n: usize) -> Ext {
        let (dim, factor) = self.rows[ext as usize];
        let largest = self.largest[ext as usize].saturating_mul(n);
        self.row((dim, factor * n), largest)
    }

    fn row(&mut self, row: (Option<Dim>, usize), largest: usize) -> Ext {
        if let Some(found) = self.rows.iter().position(|&r| r == row) {
            return found as Ext;
        }
        let place = self.rows.len() as Ext;
        self.rows.push(row);
        self.values.push(largest);
        self.largest.push(largest);
        if row.0.is_some() {
            self.symbolic.push(place);
        }
        place
    }

    /// The value, if it is the same at every step.
    pub(crate) fn fixed(&self, ext: Ext) -> Option<usize> {
        let (dim, factor) = self.rows[ext as usize];
        dim.is_none().then_some(factor)
    }

    /// The largest value at this entry point.
    pub(crate) fn largest(&self, ext: Ext) -> usize {
        self.largest[ext as usize]
    }

    /// Evaluates the symbolic extents. No value exceeds its bound: a verified plan has none that does.
    pub(crate) fn evaluate(&mut self, graph: &Graph<'_>, step: Step) {
        for &place in &self.symbolic {
            let (dim, factor) = self.rows[place as usize];
            if let Some(dim) = dim {
                let value = ds4_ir::dim::dim_value(graph.dims, dim, step) as usize * factor;
                assert!(value <= self.largest[place as usize], "a step's extents keep to the entry point's bounds");
                self.values[place as usize] = value;
            }
        }
    }

    /// The values of this step.
    pub(crate) fn values(&self) -> &[usize] {
        &self.values
    }
}
