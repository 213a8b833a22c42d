//! Regions: values that one kind of workgroup computes, one after the other, on chip where they are read on chip.

mod arrays;
mod axes;
mod blocks;
mod choose;
mod element;
mod existence;
mod forward;
mod index;
mod kernel;
mod locality;
mod plan;
mod product;
mod refusal;
mod share;
mod space;
mod steps;
mod sums;
mod work;

pub use axes::{Axis, Extent, Factor, Walk};
pub use forward::forward;
pub use kernel::kernel;
pub use locality::{Locality, Region, demands, locality, with_views, work_dims};
pub use plan::{Limits, Place, Planned, RegionPlan, plan};
pub use refusal::Refusal;
