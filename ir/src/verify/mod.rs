//! The verifier: whether tables are a graph, and what is known of it then.
//!
//! [`verify`] is safe on any content of the tables, as a file from anywhere may hold it: it never panics, its
//! recursion is bounded and its time is close to linear. Whatever reads a graph relies on what it checked. In this
//! order:
//!
//! 1. `names`: strings, spans; names of weights, constants and states are unique.
//! 2. `dims`: dimensions refer to earlier ones, shapes to dimensions.
//! 3. `scalars`: nodes refer to earlier ones of the right types, bodies to their parameters.
//! 4. `leaves`: weights, constants and states have the types and shapes that they may have.
//! 5. `values`: operands come first, and [`crate::infer`] gives each value's type and shape.
//! 6. `uses`: who reads what, until when.
//! 7. `versions`: states may be updated in place.
//! 8. `guards`: elements that a masked id leaves without a value are not used.
//!
//! [`check_bounds`] adds what depends on an entry point.

mod bounds;
mod dims;
mod guards;
mod leaves;
mod names;
mod ranges;
mod scalars;
mod uses;
mod values;
mod versions;

#[cfg(test)]
mod tests;

use crate::entity::Run;
use crate::fault::Fault;
use crate::graph::{Graph, Value};

pub use bounds::check_bounds;
pub use guards::{Guard, Guards, Root};

/// A use behind all values: by the caller, or as the state of the next step.
pub const END: Value = Value(u32::MAX);

/// What is known of a verified graph. The columns have a row for each value, unless they say otherwise.
#[derive(Clone, Default, Debug)]
pub struct Facts {
    /// The last reader; [`END`] for outputs and last versions of states, the value itself if nothing reads it.
    pub last_use: Vec<Value>,
    /// The readers in `readers`, ascending, each once.
    pub reader_runs: Vec<Run>,
    /// Pool of readers.
    pub readers: Vec<Value>,
    /// Whether an output or a state's last version needs the value.
    pub live: Vec<bool>,
    /// The state version that the value shows: itself, or the one that views and gathers lead to.
    pub version: Vec<Option<Value>>,
    /// For a state version the write that replaces it.
    pub replaced_by: Vec<Option<Value>>,
    /// For each state its last version; `None` if the graph does not use it.
    pub final_versions: Vec<Option<Value>>,
    /// Which masked ids leave elements of the value without a value.
    pub guard: Vec<Guard>,
    /// For ids, what they are as a mask.
    pub root: Vec<Guard>,
    /// What the guards stand for.
    pub guards: Guards,
}

impl Facts {
    /// The values that read `v`, ascending.
    pub fn readers_of(&self, v: Value) -> &[Value] {
        self.reader_runs[v.0 as usize].of(&self.readers)
    }
}

/// Checks tables of any content. The fault says the value, its span and what is wrong.
pub fn verify(graph: &Graph) -> Result<Facts, Fault> {
    names::check(graph)?;
    dims::check(graph)?;
    scalars::check(graph)?;
    leaves::check(graph)?;
    values::check(graph)?;
    names::check_named(graph)?;
    let mut facts = Facts::default();
    uses::find(graph, &mut facts);
    versions::check(graph, &mut facts)?;
    uses::extend(graph, &mut facts);
    guards::check(graph, &mut facts)?;
    Ok(facts)
}

/// Checks the values of a graph alone: that operands come first and what inference gives. The other tables must have
/// passed [`verify`] with another graph.
pub(crate) fn check_values(graph: &Graph) -> Result<(), Fault> {
    values::check(graph)
}
