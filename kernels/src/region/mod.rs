//! Regions: values that one kind of workgroup computes, one after the other, on chip where they are read on chip.
//!
//! ```text
//! values, tiles of the last --locality--> part of each value --plan--> how each exists, steps, arrays --kernel--> kernel
//! ```
//!
//! | module | what |
//! |---|---|
//! | `axes` | axes as factors that the grid or the lanes walk |
//! | `locality` | which part of each value a workgroup has |
//! | `existence` | what is kept, what is computed again where it is read |
//! | `steps`, `arrays` | the order of work, barriers, workgroup memory by lifetime |
//! | `share` | lanes of a tree, rows and columns of a product that share what they load |
//! | `index`, `space` | positions as sums of words, so that views compose without divisions |
//! | `element` | an element where it is read: loaded, or made from its operands' elements |
//! | `work`, `roll`, `sums`, `product`, `blocks`, `choose` | the steps |
//!
//! What a workgroup computes again that others compute as well is stored by the first of them. Barriers stand between steps
//! where one reads or overwrites what another used; a barrier orders slots only where a value is read back from its slot.

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
mod roll;
mod share;
mod space;
mod steps;
mod sums;
mod work;

pub use axes::{Axis, Extent, Factor, Walk};
pub use forward::forward;
pub use kernel::kernel;
pub use locality::{Locality, Region, demands, locality, with_views, work_dims};
pub use plan::{Limits, Place, Planned, RegionPlan, plan, plan_parts};
pub use refusal::Refusal;
