//! The evaluator: what a graph means, written plainly.
//!
//! Every other way of running a graph is compared with this one, bit by bit. It is slow and literal: values are
//! materialised row-major one after the other in the order of their ids, and it shares no product or tree code with
//! an executor.
//!
//! - A value that a masked id selects has no value. The tensors remember which elements those are; a use outside a
//!   guard is a [`Fault`], not a number.
//! - The bits of a NaN are made canonical where they can be seen: in tensors that leave the evaluator, in states and
//!   in the bit operations of bodies.
//! - A weight is never decoded as a whole: a weight-typed value is a list of rows, and a row is read where it is used.
//!
//! What the table of [`Op`] leaves open is decided here: a state's row written twice in one `write` is a fault, and so
//! is an id outside its axis, a dimension that is negative in this step and `arg_max` of no elements; a candidate of
//! `top_k` is its own index or masked; an unmasked reduction or product with a leaf without a value has no value, and
//! so has a quantised row with such an element.
//!
//! The graph must have passed [`crate::verify`]; whatever a step or a checkpoint can then do wrong is a fault.

mod frame;
mod product;
mod program;
mod reduce;
mod select;
mod states;
mod tensor;
mod tree;
mod views;
mod weights;
mod write;

#[cfg(test)]
pub(crate) mod tests;

use crate::dim::Step;
use crate::graph::{Graph, State, Value};
use crate::op::Op;

use frame::Frame;
use program::Program;
pub(crate) use program::apply;

pub use crate::fault::Fault;
pub use states::States;
pub use tensor::{Data, MASKED, Tensor};
pub use tree::sum;
pub use weights::WeightSource;

/// Most elements of one materialised value: 1 GiB of words.
const LIMIT: usize = 1 << 28;

/// Runs steps of one graph. What depends on the graph only is prepared once.
pub struct Evaluator<'g> {
    graph: Graph<'g>,
    weights: &'g dyn WeightSource,
    programs: Vec<Program>,
    /// Last version of each state, if the graph uses the state.
    last_versions: Vec<Option<Value>>,
    limit: usize,
}

impl<'g> Evaluator<'g> {
    /// An evaluator of a verified graph.
    pub fn new(graph: Graph<'g>, weights: &'g dyn WeightSource) -> Evaluator<'g> {
        Evaluator {
            graph,
            weights,
            programs: graph.bodies.iter().map(|row| Program::of(graph.scalars, row)).collect(),
            last_versions: last_versions(&graph),
            limit: LIMIT,
        }
    }

    /// The same with another limit of elements per value; a step that exceeds it is a fault.
    pub fn with_limit(mut self, elements: usize) -> Evaluator<'g> {
        self.limit = elements;
        self
    }

    /// Runs a step: gives the wanted values and advances the states to their last versions.
    ///
    /// `tokens` has one id per column. The outputs of the graph are computed and checked whether wanted or not.
    /// A wanted value may have elements without a value, an output may not. After a fault the states are unchanged.
    pub fn step(
        &self,
        states: &mut States,
        step: Step,
        tokens: &[u32],
        wanted: &[Value],
    ) -> Result<Vec<Tensor>, Fault> {
        check_step(&self.graph, states, step, tokens)?;
        let (results, written) = Frame::new(self, states, step, tokens).run(wanted)?;
        for (state, words) in written {
            states.set(state, words);
        }
        Ok(results)
    }
}

/// Runs one step of `graph`; see [`Evaluator::step`].
pub fn evaluate(
    graph: &Graph,
    weights: &dyn WeightSource,
    states: &mut States,
    step: Step,
    tokens: &[u32],
    wanted: &[Value],
) -> Result<Vec<Tensor>, Fault> {
    Evaluator::new(*graph, weights).step(states, step, tokens, wanted)
}

fn last_versions(graph: &Graph) -> Vec<Option<Value>> {
    let mut last = vec![None; graph.states.len()];
    let mut state_of: Vec<Option<State>> = vec![None; graph.len()];
    for v in graph.values() {
        let state = match graph.op(v) {
            Op::Read => Some(State(graph.attrs(v)[0])),
            Op::Write => state_of[graph.args(v)[0].0 as usize],
            _ => None,
        };
        state_of[v.0 as usize] = state;
        if let Some(state) = state {
            last[state.0 as usize] = Some(v);
        }
    }
    last
}

fn check_step(graph: &Graph, states: &States, step: Step, tokens: &[u32]) -> Result<(), Fault> {
    if step.columns == 0 || step.outputs > step.columns || step.position.checked_add(step.columns).is_none() {
        return Err(Fault::new(format!("{step:?} is no step")));
    }
    if tokens.len() != step.columns as usize {
        return Err(Fault::new(format!("{} tokens for {} columns", tokens.len(), step.columns)));
    }
    if !states.fits(graph) {
        return Err(Fault::new("the states are of another graph"));
    }
    Ok(())
}
