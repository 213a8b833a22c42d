//! Versions of states: every write replaces its version in place.

use super::{END, Facts};
use crate::entity::Entity;
use crate::fault::Fault;
use crate::graph::{Graph, State, Value};
use crate::op::Op;

/// A state is read once and its versions form one chain of writes. Nothing behind a write looks at the version that
/// it replaced, be it through views or gathers.
pub(super) fn check(graph: &Graph, facts: &mut Facts) -> Result<(), Fault> {
    let mut chains = Chains { state: vec![None; graph.len()] };
    facts.version = vec![None; graph.len()];
    facts.replaced_by = vec![None; graph.len()];
    facts.final_versions = vec![None; graph.states.len()];
    for v in graph.values() {
        chains.add(graph, v, facts).map_err(|what| Fault::at(graph, v, what))?;
        for &arg in graph.args(v) {
            check_use(facts, arg, v).map_err(|what| Fault::at(graph, v, what))?;
        }
    }
    for row in graph.outputs {
        check_use(facts, row.value, END).map_err(|what| Fault::at(graph, row.value, what))?;
    }
    Ok(())
}

/// For each version its state.
struct Chains {
    state: Vec<Option<State>>,
}

impl Chains {
    fn add(&mut self, graph: &Graph, v: Value, facts: &mut Facts) -> Result<(), String> {
        let args = graph.args(v);
        facts.version[v.index()] = match graph.op(v) {
            Op::Read => {
                let state = State(graph.attrs(v)[0]);
                if facts.final_versions[state.index()].is_some() {
                    return Err(format!("state {state} is read twice"));
                }
                self.begin(v, state, facts)
            }
            Op::Write => {
                let state = self.state[args[0].index()].ok_or_else(|| format!("{} is no state", args[0]))?;
                if let Some(other) = facts.replaced_by[args[0].index()] {
                    return Err(format!("{} is written twice, first by {other}", args[0]));
                }
                facts.replaced_by[args[0].index()] = Some(v);
                self.begin(v, state, facts)
            }
            op if op.is_view() || op == Op::Gather => facts.version[args[0].index()],
            _ => None,
        };
        Ok(())
    }

    /// Makes `v` the last version of its state so far.
    fn begin(&mut self, v: Value, state: State, facts: &mut Facts) -> Option<Value> {
        self.state[v.index()] = Some(state);
        facts.final_versions[state.index()] = Some(v);
        Some(v)
    }
}

/// `reader` uses `arg`: the version that it shows is not yet replaced by then.
fn check_use(facts: &Facts, arg: Value, reader: Value) -> Result<(), String> {
    let write = facts.version[arg.index()].and_then(|version| facts.replaced_by[version.index()]);
    match write {
        Some(write) if write < reader => Err(format!("{arg} shows a state that {write} has replaced by then")),
        _ => Ok(()),
    }
}
