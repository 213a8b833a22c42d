//! Kernels of every schedule on the machine, against the evaluator, bit by bit; and planted faults.

mod barriers;
pub(crate) mod bench;
pub(crate) mod beside;
mod choices;
pub(crate) mod corpus;
mod corruption;
mod faults;
mod maps;
mod moves;
mod mutations;
mod planted;
mod products;
mod reductions;
mod region_faults;
mod region_loops;
mod region_sweep;
mod regions;
pub(crate) mod shown;
mod terms;
