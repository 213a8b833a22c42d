//! Faults: what is wrong with a graph or with one step of it, and where.

use std::fmt;

use crate::graph::{Graph, Value};

/// Something wrong with a graph, or with a step that evaluates it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The value at which it shows, if it is one value's fault.
    pub value: Option<Value>,
    /// Path of the value's span, such as `layer.17.ffn.hc_pre`; empty if there is none.
    pub span: String,
    /// What was wrong, one line without a full stop.
    pub message: String,
}

impl Fault {
    /// A fault of the tables or of the step, at no single value.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { value: None, span: String::new(), message: message.into() }
    }

    /// A fault at a value. The graph's spans must be known to form a tree.
    pub fn at(graph: &Graph, value: Value, message: impl Into<String>) -> Fault {
        Fault { value: Some(value), span: graph.span_path(graph.value_span[value.0 as usize]), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) if self.span.is_empty() => write!(f, "{value}: ")?,
            Some(value) => write!(f, "{value} in `{}`: ", self.span)?,
            None => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
