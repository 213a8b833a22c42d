//! Where a NaN in the logits came from: the step again, looking at what each kernel stores.

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::op::Type;
use ds4_ir::verify::{Facts, Guard};
use ds4_ir::{Diagnostic, Place, Step, Value};

use super::Session;
use crate::reader::View;

impl Session {
    /// Runs the step again and names the first value that has a NaN.
    pub(super) fn find_nan(&mut self, at: usize, step: Step, tokens: &[u32]) -> Diagnostic {
        match self.first_nan(at, step, tokens) {
            Ok(place) => Diagnostic::new(codes::LOGITS_NAN, "the logits are not numbers: a NaN came up on the way")
                .at(Place::item(&self.facts.plan, place))
                .wanted("finite values", "NaN")
                .help("the model's weights, or the input to this tensor, overflow; tap the tensors before it"),
            Err(diagnostic) => diagnostic,
        }
    }

    /// Span and name of the first value with a NaN.
    fn first_nan(&mut self, at: usize, step: Step, tokens: &[u32]) -> Result<String, Diagnostic> {
        let (graph, plan, facts) = self.plan.verified()?;
        let index = self.entries[at].index;
        let watched = watched(&graph, &facts);
        let readers = self.runner.readers(&graph, &plan, index, &watched);
        let mut first = None;
        let mut words = Vec::new();
        let mut look = |value: Value, view: View<'_>| {
            let known = watched.binary_search(&value).ok();
            let reader = known.and_then(|i| readers[i].as_ref());
            if first.is_some() || reader.is_none() {
                return;
            }
            words.clear();
            if let Some(reader) = reader {
                reader.read(graph.dims, step, view, &mut words);
            }
            if words.iter().any(|&w| f32::from_bits(w).is_nan()) {
                first = Some(value);
            }
        };
        self.runner.run(&graph, &plan, index, step, tokens, Some(&mut look))?;
        Ok(match first {
            Some(value) => describe(&graph, value),
            None => "the logits".into(),
        })
    }
}

/// Float values all of whose elements mean something.
fn watched(graph: &Graph<'_>, facts: &Facts) -> Vec<Value> {
    let whole = |v: &Value| facts.guard[v.0 as usize] == Guard::NONE;
    graph.values().filter(|v| graph.ty(*v) == Type::F32 && whole(v)).collect()
}

/// Span and operation of a value, with its name or that of the next named value behind it.
fn describe(graph: &Graph<'_>, value: Value) -> String {
    let path = graph.span_path(graph.value_span[value.0 as usize]);
    let behind = graph.named.iter().filter(|row| row.value >= value);
    let op = graph.op(value).name();
    match behind.min_by_key(|row| row.value) {
        Some(row) if row.value == value => format!("`{}` in `{path}`", graph.name(row.name)),
        Some(row) => format!("{value} (`{op}`) in `{path}`, before `{}`", graph.name(row.name)),
        None => format!("{value} (`{op}`) in `{path}`"),
    }
}
