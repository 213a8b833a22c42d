//! Printing tables as text, statement by statement in table order.

use super::body_printer::BodyPrinter;
use super::dims::Writer;
use super::literal::{name_text, quoted};
use super::names::{NameList, lists, path_text, path_texts};
use crate::dim::{Dim, Shape};
use crate::graph::{Graph, NamedRow, Span, Value};
use crate::op::{Op, ReduceKind, Type};
use crate::tree::Tree;

/// Columns of a line that holds a list.
const WIDTH: usize = 100;

/// The text of a graph. [`super::parse`] gives the same tables back.
///
/// The tables are consistent as [`crate::Builder`] makes them; a plan's tables are verified before they are printed.
pub fn print(graph: &Graph) -> String {
    let lists = lists(graph);
    let printer = Printer { graph, dims: Writer::new(graph.dims), paths: path_texts(graph, lists.spans) };
    let sections = [
        printer.dims(),
        printer.shapes(),
        if lists.names == NameList::Front { printer.names(0) } else { String::new() },
        printer.weights(),
        printer.constants(),
        match lists.names {
            NameList::BehindConstants(first) => printer.names(first),
            _ => String::new(),
        },
        printer.states(),
        if lists.spans { printer.spans() } else { String::new() },
        BodyPrinter::new(graph).statements(),
        graph.values().map(|v| printer.value(v)).collect(),
        printer.named("tap", graph.named),
        printer.named("output", graph.outputs),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|s| !s.is_empty()).collect();
    sections.join("\n")
}

/// The statement of each value, as [`print()`] writes it, without the line's end.
pub fn value_lines(graph: &Graph) -> Vec<String> {
    let printer = Printer { graph, dims: Writer::new(graph.dims), paths: path_texts(graph, lists(graph).spans) };
    graph.values().map(|v| printer.value(v).trim_end().to_string()).collect()
}

/// A statement that is a list: `keyword item, item, ...`, wrapped after commas.
pub(super) fn wrapped(keyword: &str, items: &[String]) -> String {
    let mut text = keyword.to_string();
    let mut width = text.len();
    for (i, item) in items.iter().enumerate() {
        let comma = if i + 1 < items.len() { "," } else { "" };
        if i > 0 && width + item.len() + 2 > WIDTH {
            text.push_str("\n ");
            width = 1;
        }
        text.push_str(&format!(" {item}{comma}"));
        width += item.len() + 1 + comma.len();
    }
    text + "\n"
}

struct Printer<'a> {
    graph: &'a Graph<'a>,
    dims: Writer<'a>,
    /// How values write each span.
    paths: Vec<String>,
}

impl Printer<'_> {
    /// Lists of dimensions; large ones have a statement of their own and are referred to by name.
    fn dims(&self) -> String {
        let mut text = String::new();
        let mut list = Vec::new();
        for dim in (0..self.graph.dims.len() as u32).map(Dim) {
            if !self.dims.is_large(dim) {
                list.push(self.dims.text(dim));
                continue;
            }
            if !list.is_empty() {
                text.push_str(&wrapped("dims", &std::mem::take(&mut list)));
            }
            text.push_str(&format!("dim {dim} = {}\n", self.dims.definition(dim)));
        }
        if list.is_empty() { text } else { text + &wrapped("dims", &list) }
    }

    fn shapes(&self) -> String {
        let count = self.graph.shapes.len() as u32;
        let shapes: Vec<_> = (0..count).map(|i| self.shape(Shape(i))).collect();
        if shapes.is_empty() { String::new() } else { wrapped("shapes", &shapes) }
    }

    fn shape(&self, shape: Shape) -> String {
        self.dims.shape(self.graph.shape(shape))
    }

    /// The names from a row on.
    fn names(&self, first: u32) -> String {
        let count = self.graph.names.len() as u32;
        let names: Vec<_> = (first..count).map(|i| name_text(self.graph.name(crate::graph::Name(i)))).collect();
        wrapped("names", &names)
    }

    fn weights(&self) -> String {
        let rows = self.graph.weights.iter();
        rows.map(|w| self.leaf("weight", w.name, w.ty, w.shape) + "\n").collect()
    }

    fn states(&self) -> String {
        let rows = self.graph.states.iter();
        rows.map(|s| self.leaf("state", s.name, s.ty, s.shape) + "\n").collect()
    }

    fn leaf(&self, keyword: &str, name: crate::graph::Name, ty: Type, shape: Shape) -> String {
        let name = name_text(self.graph.name(name));
        format!("{keyword} {name}: {}{}", ty.name(), self.shape(shape))
    }

    fn constants(&self) -> String {
        let rows = self.graph.constants.iter();
        rows.map(|c| {
            let words = c.words.of(self.graph.constant_words);
            self.leaf("constant", c.name, c.ty, c.shape) + " = " + &constant_text(c.ty, words)
        })
        .collect()
    }

    fn spans(&self) -> String {
        let count = self.graph.spans.len() as u32;
        let paths: Vec<_> = (1..count).map(|i| path_text(self.graph, Span(i))).collect();
        if paths.is_empty() { String::new() } else { wrapped("spans", &paths) }
    }

    fn named(&self, keyword: &str, rows: &[NamedRow]) -> String {
        rows.iter().map(|row| format!("{keyword} {} = {}\n", name_text(self.graph.name(row.name)), row.value)).collect()
    }

    fn value(&self, v: Value) -> String {
        let graph = self.graph;
        let shape = self.dims.shape(graph.dims_of(v));
        let mut text = format!("{v}: {}{shape} = {}", graph.ty(v).name(), graph.op(v).name());
        for part in self.attributes(v) {
            text.push(' ');
            text.push_str(&part);
        }
        let operands: Vec<_> = graph.args(v).iter().map(Value::to_string).collect();
        if !operands.is_empty() {
            text.push(' ');
            text.push_str(&operands.join(", "));
        }
        let span = graph.value_span[v.0 as usize];
        if span != Span(0) {
            text.push_str(" @ ");
            text.push_str(&self.paths[span.0 as usize]);
        }
        text + "\n"
    }

    fn attributes(&self, v: Value) -> Vec<String> {
        let graph = self.graph;
        let attrs = graph.attrs(v);
        match graph.op(v) {
            Op::Weight => vec![name_text(graph.name(graph.weights[attrs[0] as usize].name))],
            Op::Const => vec![name_text(graph.name(graph.constants[attrs[0] as usize].name))],
            Op::Read => vec![name_text(graph.name(graph.states[attrs[0] as usize].name))],
            Op::Extent => vec![self.dims.text(Dim(attrs[0]))],
            Op::Iota | Op::Concat => vec![format!("axis={}", attrs[0])],
            Op::Map => vec![format!("b{}", attrs[0])],
            Op::Reduce => {
                let kind = ReduceKind::from_number(attrs[0]).map_or("?", ReduceKind::name);
                vec![kind.into(), tree_text(attrs[1]), format!("axis={}", attrs[2])]
            }
            Op::Product => vec![tree_text(attrs[0])],
            Op::Slice => vec![format!("axis={}", attrs[0]), format!("start={}", self.dims.text(Dim(attrs[1])))],
            Op::Permute => {
                let axes: Vec<_> = attrs.iter().map(u32::to_string).collect();
                vec![format!("axes=[{}]", axes.join(", "))]
            }
            Op::Gather => vec![format!("axis={}", attrs[0]), format!("batch={}", attrs[1])],
            _ => Vec::new(),
        }
    }
}

/// The name of a stored tree: `free`, `seq`, `lanes(32)`.
fn tree_text(number: u32) -> String {
    match Tree::from_number(number) {
        Some(Tree::Free) => "free".into(),
        Some(Tree::Seq) => "seq".into(),
        Some(Tree::Lanes(lanes)) => format!("lanes({lanes})"),
        None => quoted("?"),
    }
}

/// The elements of a constant: floats as bits, integers as numbers, eight in a line where they are many.
fn constant_text(ty: Type, words: &[u32]) -> String {
    let word = |&w: &u32| {
        if ty == Type::F32 { format!("0x{w:08x}") } else { (w as i32).to_string() }
    };
    let lines: Vec<_> = words.chunks(8).map(|line| line.iter().map(word).collect::<Vec<_>>().join(" ")).collect();
    match &lines[..] {
        [] => "[]\n".into(),
        [line] => format!("[{line}]\n"),
        lines => format!("[\n  {}\n]\n", lines.join("\n  ")),
    }
}
