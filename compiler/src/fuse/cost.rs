//! What a region costs on a device.

use std::collections::HashSet;

use ds4_ir::dim::{Bounds, DimRow, Step, dim_max, dim_value};
use ds4_ir::graph::{Graph, Value};
use ds4_ir::scalar::{Scalar, reachable};
use ds4_ir::{Dim, Op, ScalarOp};
use ds4_kernels::region::{Axis, Extent, Factor, Locality, Region, Walk, demands};

use super::nodes::{Kind, Nodes};
use super::profile::Profile;
use super::terms::term_numbers;

/// Elements up to which a value's step is computed in registers.
const SMALL: f64 = 64.0;

/// How much faster than memory the bytes of all workgroups come together: most of them are read by several, from caches.
const CACHED: f64 = 8.0;
/// What work counts for beside its time, so that of two equal times the one with less work is taken.
const REPEATED_WORK: f64 = 0.05;
/// What the code of a region counts for, as a part of the time of one workgroup.
const REPEATED_CODE: f64 = 0.25;

/// A graph at an entry point, with what costs ask again and again.
pub struct Scene<'a> {
    /// The graph.
    pub graph: Graph<'a>,
    /// Its nodes.
    pub nodes: &'a Nodes,
    /// Bounds of the entry point.
    pub bounds: Bounds,
    /// The device.
    pub profile: &'a Profile,
    /// For each value a number that does not depend on ids: what comes first where costs are equal.
    pub order: Vec<u64>,
    /// Regions that no schedule computes: signature of the nodes, then the split; without one, all splits of these nodes.
    pub unscheduled: HashSet<Vec<u32>>,
    /// Each dimension in an ordinary step: the most columns, in the middle of the context.
    typical: Vec<u32>,
    /// Operations of each body.
    bodies: Vec<f64>,
}

impl<'a> Scene<'a> {
    /// The scene of a graph at an entry point.
    pub fn new(graph: Graph<'a>, nodes: &'a Nodes, bounds: Bounds, profile: &'a Profile) -> Scene<'a> {
        let position = (bounds.context - bounds.columns) / 2;
        let step = Step { position, columns: bounds.columns, outputs: bounds.outputs.min(1) };
        let typical = (0..graph.dims.len()).map(|i| dim_value(graph.dims, Dim(i as u32), step)).collect();
        let bodies = graph.bodies.iter().map(|body| body_cost(&graph, body.result)).collect();
        let order = term_numbers(&graph);
        Scene { graph, nodes, bounds, profile, order, unscheduled: HashSet::new(), typical, bodies }
    }

    pub(super) fn extent(&self, extent: Extent) -> f64 {
        match extent {
            Extent::Const(n) => n.into(),
            Extent::Dim(dim) => self.typical[dim.0 as usize].into(),
        }
    }

    /// Positions of an axis that a workgroup has.
    fn local(&self, axis: &Axis, dim: Dim) -> f64 {
        let is_local = |f: &&Factor| f.walk == Walk::Local;
        match axis {
            Axis::Whole => self.typical[dim.0 as usize].into(),
            Axis::Split(factors) => factors.iter().filter(is_local).map(|f| self.extent(f.extent)).product(),
        }
    }

    fn elements(&self, axes: &[Axis], dims: &[Dim]) -> f64 {
        axes.iter().zip(dims).map(|(axis, &dim)| self.local(axis, dim)).product()
    }

    /// The largest value of a dimension.
    pub fn most(&self, dim: Dim) -> u32 {
        dim_max(self.graph.dims, dim, self.bounds)
    }

    /// The rows of dimensions.
    pub fn dims(&self) -> &'a [DimRow] {
        self.graph.dims
    }

    /// Workgroups of a region.
    pub fn workgroups(&self, locality: &Locality) -> f64 {
        locality.atoms.iter().map(|&atom| self.extent(atom)).product()
    }

    /// What one workgroup of a region takes, and what the region reads.
    pub fn cost(&self, region: &Region<'_>, locality: &Locality) -> Cost {
        let mut cost = Cost { workgroups: self.workgroups(locality), ..Cost::default() };
        for (i, &v) in region.values.iter().enumerate() {
            if !self.nodes.is_node(v) {
                continue;
            }
            self.add_value(&mut cost, region, v, &locality.axes[i]);
        }
        cost
    }

    pub(super) fn add_value(&self, cost: &mut Cost, region: &Region<'_>, v: Value, axes: &[Axis]) {
        let graph = &self.graph;
        let elements = self.elements(axes, ds4_kernels::region::work_dims(graph, v));
        let op = graph.op(v);
        let mut operations = elements;
        let mut bytes = 0.0;
        for (i, (operand, part)) in demands(graph, v, axes).into_iter().enumerate() {
            let count = self.elements(&part, graph.dims_of(operand));
            match op {
                Op::Product if i == 0 => operations = 2.0 * elements * self.leaves(operand),
                Op::Reduce if i == 0 => operations = count,
                Op::TopK | Op::SortIds | Op::ArgMax if i == 0 => operations = 32.0 * count,
                _ => {}
            }
            if op == Op::Write && i == 0 {
                continue;
            }
            bytes += self.bytes(region, operand, count);
        }
        if op == Op::Map {
            operations = elements * self.bodies[graph.attrs(v)[0] as usize];
        }
        let small = elements <= SMALL && operations <= 16.0 * SMALL;
        cost.steps += match op {
            Op::Map | Op::Widen | Op::Gather | Op::Iota | Op::Extent | Op::Tokens | Op::Concat => 0.1,
            _ if small => 0.1,
            _ => 1.0,
        };
        let lanes = f64::from(self.profile.lanes);
        let idle = if small { lanes / 4.0 } else { (lanes / operations.max(1.0)).max(1.0) };
        cost.operations += operations * idle;
        cost.bytes += bytes;
    }

    /// Length of the last axis.
    fn leaves(&self, v: Value) -> f64 {
        self.graph.dims_of(v).last().map_or(1.0, |&d| self.typical[d.0 as usize].into())
    }

    /// Bytes that reading `count` elements of an operand takes: none where they were computed on chip.
    fn bytes(&self, region: &Region<'_>, operand: Value, count: f64) -> f64 {
        let graph = &self.graph;
        let ty = graph.ty(operand);
        let mut at = operand;
        while graph.op(at).is_view() {
            at = graph.args(at)[0];
        }
        let inside = region.values.binary_search(&at).is_ok();
        match self.nodes.kinds[at.0 as usize] {
            Kind::Node if inside => 0.0,
            Kind::Free => 0.0,
            _ => match ty.format() {
                Some(format) => count / format.block_len() as f64 * format.block_bytes() as f64,
                None if ty == ds4_ir::Type::Q8 => count * 1.125,
                None => count * 4.0,
            },
        }
    }

    /// Microseconds of one workgroup.
    pub fn workgroup_time(&self, cost: &Cost) -> f64 {
        let p = self.profile;
        cost.steps * p.step + cost.operations / p.workgroup_rate + cost.bytes / p.workgroup_bandwidth
    }

    /// Microseconds of a launch of these regions.
    pub fn launch_time<'c>(&self, regions: impl Iterator<Item = &'c Cost>) -> f64 {
        let p = self.profile;
        let (mut longest, mut work, mut bytes, mut code) = (0.0f64, 0.0, 0.0, 0.0);
        for cost in regions {
            let time = self.workgroup_time(cost);
            longest = longest.max(time);
            work += time * cost.workgroups;
            code += time;
            bytes += cost.bytes * cost.workgroups;
        }
        let work = work / f64::from(p.workgroups);
        let transfer = bytes / (CACHED * p.bandwidth);
        p.launch + longest.max(work).max(transfer) + REPEATED_WORK * work + REPEATED_CODE * code
    }
}

/// What a workgroup does.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Workgroups of the region.
    pub workgroups: f64,
    /// Steps between barriers.
    pub steps: f64,
    /// Rounded operations.
    pub operations: f64,
    /// Bytes read from outside.
    pub bytes: f64,
    /// Words of each of its arrays.
    pub arrays: [u32; 3],
}

/// Operations of a body; a function of the contract is some twenty.
fn body_cost(graph: &Graph<'_>, result: Scalar) -> f64 {
    use ScalarOp::*;
    let cost = |x: &Scalar| match ScalarOp::from_number(graph.scalars[x.0 as usize].op) {
        Some(Exp | Log | Log1p | Sin | Cos) => 20.0,
        Some(Div | Sqrt) => 8.0,
        Some(Param | F32 | I32) => 0.0,
        _ => 1.0,
    };
    reachable(graph.scalars, result).iter().map(cost).sum::<f64>().max(1.0)
}
