//! Who reads a value, until when, and which values are needed.

use super::{END, Facts};
use crate::entity::{Entity, Run};
use crate::graph::{Graph, Value};

/// Finds the readers of every value.
pub(super) fn find(graph: &Graph, facts: &mut Facts) {
    let mut counts = vec![0u32; graph.len()];
    for v in graph.values() {
        distinct(graph.args(v)).for_each(|arg| counts[arg.index()] += 1);
    }
    let mut start = 0;
    for &count in &counts {
        facts.reader_runs.push(Run { start, len: 0 });
        start += count;
    }
    facts.readers = vec![END; start as usize];
    facts.last_use = graph.values().collect();
    for v in graph.values() {
        for arg in distinct(graph.args(v)) {
            let run = &mut facts.reader_runs[arg.index()];
            facts.readers[(run.start + run.len) as usize] = v;
            run.len += 1;
            facts.last_use[arg.index()] = v;
        }
    }
}

/// Adds the uses behind all values, once the last versions of the states are known.
pub(super) fn extend(graph: &Graph, facts: &mut Facts) {
    facts.live = vec![false; graph.len()];
    let outputs = graph.outputs.iter().map(|row| row.value);
    for v in outputs.chain(facts.final_versions.iter().flatten().copied()) {
        facts.live[v.index()] = true;
        facts.last_use[v.index()] = END;
    }
    for v in graph.values().rev() {
        if facts.live[v.index()] {
            graph.args(v).iter().for_each(|arg| facts.live[arg.index()] = true);
        }
    }
}

/// The operands of a value, each once. No operation takes more than 64.
fn distinct(args: &[Value]) -> impl Iterator<Item = Value> {
    args.iter().enumerate().filter(|(i, arg)| !args[..*i].contains(arg)).map(|(_, &arg)| arg)
}
