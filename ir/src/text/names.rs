//! Paths of spans, and the order in which the text mentions names and spans.

use std::collections::{HashMap, HashSet};

use super::cursor::{Cursor, Read};
use super::limits;
use super::literal::{name_text, quoted};
use crate::diagnostic::codes;
use crate::graph::{Graph, Name, Span, SpanRow};

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

/// How values write their spans. Where the spans are listed, a dotted path means the first of them that reads so:
/// segments that hold dots need no quotes then.
pub(super) fn path_texts(graph: &Graph, is_listed: bool) -> Vec<String> {
    let mut first: HashMap<String, Span> = HashMap::new();
    let mut texts = Vec::new();
    for span in (0..graph.spans.len() as u32).map(Span) {
        let dotted = graph.span_path(span);
        let is_word = !dotted.is_empty() && name_text(&dotted) == dotted;
        if !is_listed || !is_word {
            texts.push(path_text(graph, span));
        } else if *first.entry(dotted.clone()).or_insert(span) == span {
            texts.push(dotted);
        } else {
            let segments = ancestry(graph, span).into_iter();
            let segments = segments.map(|part| quoted(graph.name(graph.spans[part.0 as usize].name)));
            texts.push(segments.collect::<Vec<_>>().join("/"));
        }
    }
    texts
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

/// Where the printer lists names, so that the parser makes them in table order.
#[derive(PartialEq, Eq)]
pub(super) enum NameList {
    /// Nowhere: the rest of the text mentions them in order.
    None,
    /// All of them, before everything else.
    Front,
    /// The names from this one, behind weights and constants, whose own names come first in the table.
    BehindConstants(u32),
}

/// What the printer must list.
pub(super) struct Lists {
    /// Whether the spans are listed.
    pub spans: bool,
    /// Where names are listed.
    pub names: NameList,
}

/// Compares the order of mention with the order of the tables.
pub(super) fn lists(graph: &Graph) -> Lists {
    let table: Vec<_> = (0..graph.spans.len() as u32).map(Span).collect();
    let is_dotted = |span: &SpanRow| graph.name(span.name).contains('.');
    let spans = graph.spans.iter().any(is_dotted) || mentioned_spans(graph, graph.value_span.iter().copied()) != table;
    // Listed or not, the spans are mentioned in table order.
    let mut mentions = Mentions::default();
    mentions.extend([graph.spans[0].name].into_iter());
    mentions.extend(graph.weights.iter().map(|w| w.name));
    mentions.extend(graph.constants.iter().map(|c| c.name));
    let behind_constants = mentions.is_ordered().then_some(mentions.seen.len() as u32);
    mentions.extend(graph.states.iter().map(|s| s.name));
    mentions.extend(graph.spans.iter().map(|s| s.name));
    mentions.extend(graph.named.iter().chain(graph.outputs).map(|row| row.name));
    let names = match behind_constants {
        _ if mentions.is_ordered() && mentions.seen.len() == graph.names.len() => NameList::None,
        Some(first) => NameList::BehindConstants(first),
        None => NameList::Front,
    };
    Lists { spans, names }
}

/// Names in the order of their first mention.
#[derive(Default)]
struct Mentions {
    seen: HashSet<Name>,
    order: Vec<Name>,
}

impl Mentions {
    fn extend(&mut self, names: impl Iterator<Item = Name>) {
        self.order.extend(names.filter(|&name| self.seen.insert(name)));
    }

    fn is_ordered(&self) -> bool {
        self.order.iter().zip(0..).all(|(name, i)| name.0 == i)
    }
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
