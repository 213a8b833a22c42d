//! Strings, spans, and names that are unique.

use std::collections::HashSet;

use super::ranges;
use crate::fault::Fault;
use crate::graph::{Graph, Name, NamedRow};

/// Strings are UTF-8, spans form a tree under span 0, and things of one kind have different names.
pub(super) fn check(graph: &Graph) -> Result<(), Fault> {
    for (i, &run) in graph.names.iter().enumerate() {
        let bytes = ranges::run(run, graph.text, || format!("name n{i}"))?;
        if std::str::from_utf8(bytes).is_err() {
            return Err(Fault::new(format!("name n{i} is no UTF-8")));
        }
    }
    check_spans(graph)?;
    check_unique(graph, "weight", graph.weights.iter().map(|row| row.name))?;
    check_unique(graph, "constant", graph.constants.iter().map(|row| row.name))?;
    check_unique(graph, "state", graph.states.iter().map(|row| row.name))
}

/// Named values and outputs exist, and their names are unique.
pub(super) fn check_named(graph: &Graph) -> Result<(), Fault> {
    for (kind, rows) in [("named value", graph.named), ("output", graph.outputs)] {
        let rows: &[NamedRow] = rows;
        check_unique(graph, kind, rows.iter().map(|row| row.name))?;
        for row in rows {
            ranges::id(row.value, graph.len(), || format!("{kind} `{}`", graph.name(row.name)))?;
        }
    }
    Ok(())
}

fn check_spans(graph: &Graph) -> Result<(), Fault> {
    let Some(root) = graph.spans.first() else {
        return Err(Fault::new("there is no root span"));
    };
    for (i, span) in graph.spans.iter().enumerate() {
        ranges::id(span.name, graph.names.len(), || format!("span sp{i}"))?;
        let is_ordered = (span.parent.0 as usize) < i || i == 0 && span.parent.0 == 0;
        if !is_ordered {
            return Err(Fault::new(format!("the parent of span sp{i} does not come before it")));
        }
    }
    match graph.name(root.name) {
        "" => Ok(()),
        name => Err(Fault::new(format!("the root span has the name `{name}`"))),
    }
}

fn check_unique(graph: &Graph, kind: &str, names: impl Iterator<Item = Name>) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    for (i, name) in names.enumerate() {
        ranges::id(name, graph.names.len(), || format!("{kind} {i}"))?;
        if !seen.insert(graph.name(name)) {
            return Err(Fault::new(format!("two of the {kind}s have the name `{}`", graph.name(name))));
        }
    }
    Ok(())
}
