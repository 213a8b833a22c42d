//! Regions: values that one kind of workgroup computes, one after the other, on chip where they are read on chip.

mod axes;
mod forward;
mod locality;
mod refusal;

pub use axes::{Axis, Extent, Factor, Walk};
pub use forward::forward;
pub use locality::{Locality, Region, demands, locality, with_views, work_dims};
pub use refusal::Refusal;
