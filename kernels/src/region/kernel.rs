//! From a planned region to its kernel.

use crate::kernel::Kernel;
use crate::schedule::Scene;

use super::locality::Region;
use super::plan::RegionPlan;
use super::refusal::Refusal;

/// The kernel of a region.
///
/// # Errors
/// An operand that the region does not compute has no slot, or is reached in a way that no schedule knows.
pub fn kernel(scene: &Scene<'_>, region: &Region<'_>, plan: &RegionPlan) -> Result<Kernel, Refusal> {
    let _ = (scene, plan);
    Err(Refusal::NoSchedule(*region.values.last().ok_or(Refusal::Empty)?))
}
