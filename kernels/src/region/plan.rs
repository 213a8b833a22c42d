//! How each value of a region exists, and what the region takes of a workgroup. No kernel is built here.

use ds4_ir::graph::Graph;
use ds4_ir::{Bounds, Value};

use super::arrays::{self, Arrays};
use super::axes::Extent;
use super::existence::{self, Existence};
use super::locality::{Locality, Region, locality};
use super::refusal::Refusal;
use super::steps::{self, Step};

/// What a workgroup may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Lanes of a workgroup: a power of two, 64 to 256.
    pub lanes: u32,
    /// Iterations of all loops of a lane.
    pub iterations: u32,
}

/// How the elements of a value exist in a workgroup.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// A view: its elements are its operand's.
    View,
    /// Computed where it is read.
    Inline,
    /// In locals of a lane, computed with the other values of a chain.
    Registers,
    /// In workgroup memory.
    OnChip,
    /// In its slot only. Where the region reads it, it is read back.
    Stored,
}

/// A value of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// How its elements exist.
    pub place: Place,
    /// Whether they are also stored to its slot.
    pub stored: bool,
    /// Elements that a workgroup has, at the largest extents.
    pub elements: u64,
    /// How often a workgroup computes an element of it: once for each, or more where it is computed at each reader.
    pub computed: u64,
}

/// A region with everything that its kernel needs to be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionPlan {
    /// The part of each value that a workgroup has.
    pub locality: Locality,
    /// Lanes of a workgroup.
    pub lanes: u32,
    /// For each value of the region how it exists.
    pub values: Vec<Planned>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Barriers that a lane comes by, those within loops counted once for each turn.
    pub barriers: u32,
    /// What a workgroup does, in order.
    pub(crate) steps: Vec<Step>,
    /// Where on-chip values lie.
    pub(super) arrays: Arrays,
}

impl RegionPlan {
    /// Words of each array of a workgroup. Regions side by side share them: the launch takes the largest of each.
    pub fn array_words(&self) -> [u32; 3] {
        self.arrays.lens
    }

    /// Workgroups along each axis of the grid.
    pub fn workgroups(&self) -> &[Extent] {
        &self.locality.atoms
    }
}

/// Decides how each value of a region exists. `stored` says which values have slots that the region writes.
///
/// # Errors
/// The parts do not fit, an operation has no schedule beside others, or workgroup memory is too small.
pub fn plan(
    graph: &Graph<'_>,
    bounds: Bounds,
    region: &Region<'_>,
    stored: &dyn Fn(Value) -> bool,
    limits: Limits,
) -> Result<RegionPlan, Refusal> {
    plan_parts(graph, bounds, region, locality(graph, region)?, stored, limits)
}

/// The same for the parts of the region's values.
///
/// # Errors
/// An operation has no schedule beside others, or workgroup memory is too small.
pub fn plan_parts(
    graph: &Graph<'_>,
    bounds: Bounds,
    region: &Region<'_>,
    locality: Locality,
    stored: &dyn Fn(Value) -> bool,
    limits: Limits,
) -> Result<RegionPlan, Refusal> {
    let facts = existence::Facts { graph, bounds, region, locality: &locality, lanes: limits.lanes };
    let stored: Vec<bool> = region.values.iter().map(|&v| stored(v)).collect();
    let mut spared = vec![None; region.values.len()];
    loop {
        let existence = Existence::of(&facts, &stored, &spared);
        let mut steps = steps::steps(&facts, &existence)?;
        let arrays = arrays::place(&facts, &existence, &mut steps);
        let wanted = arrays.bytes();
        if wanted <= limits.workgroup_bytes {
            let barriers = steps::barriers(&facts, &steps)?;
            let values = existence.planned(&arrays);
            let lanes = limits.lanes;
            return Ok(RegionPlan { locality, lanes, values, workgroup_bytes: wanted, barriers, steps, arrays });
        }
        let Some((largest, how)) = existence.largest_spared(&facts, &arrays) else {
            return Err(Refusal::OnChip { wanted, available: limits.workgroup_bytes });
        };
        spared[largest] = Some(how);
    }
}
