//! What a value costs in the value stratum: a fixed part, and its work at one column.

use std::collections::HashMap;

use ds4_ir::dim::{Bounds, dim_max};
use ds4_ir::scalar::Body;
use ds4_ir::{Op, Shape};

use super::bodies::body_cost;
use super::terms::Terms;

/// A value may become a launch or an index of one: more than the work on some elements.
const VALUE: u64 = 64;
/// A rearrangement that is only an index costs less.
const VIEW: u64 = 16;

/// Costs of labels on operands of known shapes.
pub struct Costs {
    bounds: Bounds,
    bodies: HashMap<u32, u64>,
    elements: HashMap<Shape, u64>,
}

impl Costs {
    /// Costs at the largest step within bounds.
    pub fn new(bounds: Bounds) -> Costs {
        Costs { bounds, bodies: HashMap::new(), elements: HashMap::new() }
    }

    fn elements(&mut self, terms: &Terms, shape: Shape) -> u64 {
        let bounds = self.bounds;
        let rows = terms.dims.columns().0;
        *self.elements.entry(shape).or_insert_with(|| {
            let extents = terms.dims.of(shape).iter().map(|&dim| u64::from(dim_max(rows, dim, bounds)));
            extents.fold(1u64, u64::saturating_mul)
        })
    }

    /// The cost of a label on operands of these labels.
    pub fn of(&mut self, terms: &Terms, label: u32, args: &[u32]) -> u64 {
        let (op, shape) = (terms.of(label).op, terms.of(label).shape);
        if terms.of(label).outside.is_some() || op.is_leaf() {
            return 0;
        }
        let own = self.elements(terms, shape);
        let first = args.first().map_or(0, |&arg| self.elements(terms, terms.of(arg).shape));
        let work = match op {
            Op::Map => own.saturating_mul(args.len() as u64 + self.body(terms, terms.of(label).attrs[0])),
            Op::Product => own.saturating_mul(self.inner(terms, args)),
            Op::Reduce | Op::Quantise | Op::TopK | Op::ArgMax | Op::SortIds => first.saturating_mul(2),
            // A weight that is gathered is read by its product.
            Op::Gather if terms.of(label).ty.format().is_some() => 0,
            Op::Write => args.get(2).map_or(0, |&rows| self.elements(terms, terms.of(rows).shape)),
            _ => own,
        };
        work.saturating_add(if op.is_view() { VIEW } else { VALUE })
    }

    fn body(&mut self, terms: &Terms, body: u32) -> u64 {
        *self.bodies.entry(body).or_insert_with(|| body_cost(&terms.scalars, Body(body)))
    }

    /// The length of a product's sum.
    fn inner(&self, terms: &Terms, args: &[u32]) -> u64 {
        let last = args.first().and_then(|&x| terms.dims.of(terms.of(x).shape).last().copied());
        last.map_or(0, |dim| u64::from(dim_max(terms.dims.columns().0, dim, self.bounds)))
    }
}
