//! Paths of spans, and the order in which the text mentions names and spans.

use std::collections::HashSet;

use super::cursor::{Cursor, Read};
use super::limits;
use super::literal::quoted;
use crate::diagnostic::codes;
use crate::graph::{Graph, Name, Span};

/// The spans from below the root down to `span`.
pub(super) fn ancestry(graph: &Graph, span: Span) -> Vec<Span> {
    let mut chain = Vec::new();
    let mut at = span;
    while graph.spans[at.0 as usize].parent != at {
        chain.push(at);
        at = graph.spans[at.0 as usize].parent;
    }
    chain.reverse();
    chain
}

/// The path of a span as text: `layer.0.attn`, odd segments in quotes: `layer/"a.b"/x`.
pub(super) fn path_text(graph: &Graph, span: Span) -> String {
    let mut text = String::new();
    let mut is_open = false;
    for part in ancestry(graph, span) {
        let segment = graph.name(graph.spans[part.0 as usize].name);
        let is_plain = !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let may_begin = is_plain && !segment.starts_with(|c: char| c.is_ascii_digit());
        if is_open && is_plain {
            text.push('.');
            text.push_str(segment);
            continue;
        }
        if !text.is_empty() {
            text.push('/');
        }
        text.push_str(&if may_begin { segment.to_string() } else { quoted(segment) });
        is_open = may_begin;
    }
    text
}

/// Reads a path into its segments.
pub(super) fn path(cursor: &mut Cursor) -> Read<Vec<String>> {
    let start = cursor.peek().start;
    let mut segments = Vec::new();
    loop {
        let is_quoted = cursor.peek().kind == super::lexer::Kind::Quoted;
        let (part, range) = cursor.name("a path of a span")?;
        if is_quoted {
            segments.push(part);
        } else if part.split('.').any(str::is_empty) {
            return Err(cursor.fault(codes::TEXT_TOKEN, range, "a path has an empty segment"));
        } else {
            segments.extend(part.split('.').map(String::from));
        }
        if segments.len() > limits::SEGMENTS {
            let range = start..cursor.end_of_last();
            return Err(cursor.too_large("a path", limits::SEGMENTS, range));
        }
        if cursor.at_line_end() || !cursor.take_mark(b'/') {
            return Ok(segments);
        }
    }
}

/// What the printer must list so that the parser makes spans and names in table order.
pub(super) struct Lists {
    /// Whether the spans are listed.
    pub spans: bool,
    /// Whether the names are listed.
    pub names: bool,
}

/// Compares the order of mention with the order of the tables.
pub(super) fn lists(graph: &Graph) -> Lists {
    let count = graph.spans.len() as u32;
    let of_values = || graph.value_span.iter().copied();
    let spans = mentioned_spans(graph, of_values()) != (0..count).map(Span).collect::<Vec<_>>();
    let order = if spans { (0..count).map(Span).collect() } else { mentioned_spans(graph, of_values()) };
    let mut seen = HashSet::new();
    let mut names: Vec<Name> = Vec::new();
    let mentions = [graph.spans[0].name]
        .into_iter()
        .chain(graph.weights.iter().map(|w| w.name))
        .chain(graph.constants.iter().map(|c| c.name))
        .chain(graph.states.iter().map(|s| s.name))
        .chain(order.into_iter().map(|s| graph.spans[s.0 as usize].name))
        .chain(graph.named.iter().map(|row| row.name))
        .chain(graph.outputs.iter().map(|row| row.name));
    names.extend(mentions.filter(|&name| seen.insert(name)));
    let names = names != (0..graph.names.len() as u32).map(Name).collect::<Vec<_>>();
    Lists { spans, names }
}

/// The root, then the spans in the order in which paths make them.
fn mentioned_spans(graph: &Graph, spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut seen = HashSet::from([Span(0)]);
    let mut order = vec![Span(0)];
    for span in spans {
        if !seen.contains(&span) {
            order.extend(ancestry(graph, span).into_iter().filter(|&part| seen.insert(part)));
        }
    }
    order
}
