//! Taps: named values kept from each step.

use ds4_ir::diagnostic::codes;
use ds4_ir::dim::{DimOp, DimRow};
use ds4_ir::graph::Graph;
use ds4_ir::op::Type;
use ds4_ir::{Diagnostic, Place, Step, Value};

use super::Session;
use crate::reader::{Reader, View};

/// A named value of the last step.
#[derive(Clone, PartialEq, Debug)]
pub struct TapValue<'a> {
    /// Its name.
    pub name: &'a str,
    /// f32, i32 or ids.
    pub ty: Type,
    /// Extents in this step, slowest first.
    pub extents: &'a [usize],
    /// The elements' bits in row-major order; a masked id is all ones.
    pub words: &'a [u32],
    /// Whether axis 0 counts columns, outputs or completed blocks of the step and the other axes are constant.
    pub appends: bool,
}

/// The values that are kept.
#[derive(Default)]
pub(super) struct Taps {
    list: Vec<Tap>,
    /// Entry point and scalars of the present step.
    entry: usize,
    step: Option<Step>,
}

struct Tap {
    name: String,
    appends: bool,
    /// A reader for each entry point.
    readers: Vec<Reader>,
    extents: Vec<usize>,
    words: Vec<u32>,
}

impl Taps {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets the last step.
    pub(super) fn clear(&mut self) {
        self.step = None;
    }

    pub(super) fn begin(&mut self, entry: usize, step: Step) {
        self.entry = entry;
        self.step = Some(step);
    }

    /// Copies the values that `value`, just stored, is or is a part of.
    pub(super) fn keep(&mut self, dims: &[DimRow], value: Value, view: View<'_>) {
        let Some(step) = self.step else { return };
        for tap in &mut self.list {
            let reader = &tap.readers[self.entry];
            if reader.roots.binary_search(&value).is_ok() {
                tap.extents = reader.extents(dims, step);
                tap.words.clear();
                reader.read(dims, step, view, &mut tap.words);
            }
        }
    }
}

/// Whether rows of a step continue those of the step before.
fn appends(graph: &Graph<'_>, v: Value) -> bool {
    let op = |d: &ds4_ir::Dim| DimOp::of(graph.dims[d.0 as usize]);
    match graph.dims_of(v).split_first() {
        Some((first, rest)) => {
            let grows = matches!(op(first), Some(DimOp::Columns | DimOp::Outputs | DimOp::Completed(_)));
            grows && rest.iter().all(|d| matches!(op(d), Some(DimOp::Const(_))))
        }
        None => false,
    }
}

impl Session {
    /// Names of all values that can be tapped, in the order of the graph.
    pub fn named_values(&self) -> Vec<String> {
        let Ok((graph, _)) = self.plan.tables() else {
            return Vec::new();
        };
        let words = |v: Value| graph.ty(v).scalar().is_some();
        let named = graph.named.iter().filter(|row| words(row.value));
        named.map(|row| graph.name(row.name).to_string()).collect()
    }

    /// Keeps these values of each step from now on; none stops it.
    ///
    /// # Errors
    /// A name is not that of a value, or the value has no memory in this plan.
    pub fn set_taps(&mut self, names: &[String]) -> Result<(), Diagnostic> {
        let list = names.iter().map(|name| self.tap(name));
        let list = list.collect::<Result<_, _>>()?;
        self.taps = Taps { list, ..Taps::default() };
        Ok(())
    }

    fn tap(&self, name: &str) -> Result<Tap, Diagnostic> {
        let (graph, plan) = self.plan.tables()?;
        let unmatched = |found: &str| {
            Diagnostic::new(codes::TAP_UNMATCHED, "a tap matches no named value")
                .at(Place::item(&self.facts.plan, name))
                .wanted("the name of a value that is stored", found)
                .help("`ds4c show` lists the named values of a plan")
        };
        let row = graph.named.iter().find(|row| graph.name(row.name) == name);
        let value = row.ok_or_else(|| unmatched("no such name"))?.value;
        let readers = self.entries.iter().map(|entry| {
            let readers = self.runner.readers(&graph, &plan, entry.index, &[value]);
            let reader = readers.into_iter().next().flatten();
            reader.ok_or_else(|| unmatched("a value without memory"))
        });
        Ok(Tap {
            name: name.into(),
            appends: appends(&graph, value),
            readers: readers.collect::<Result<_, _>>()?,
            extents: Vec::new(),
            words: Vec::new(),
        })
    }

    /// The kept values of the last step.
    pub fn taps(&self) -> Vec<TapValue<'_>> {
        if self.last.is_none() {
            return Vec::new();
        }
        let list = self.taps.list.iter();
        list.map(|tap| TapValue {
            name: &tap.name,
            ty: tap.readers[self.taps.entry].ty,
            extents: &tap.extents,
            words: &tap.words,
            appends: tap.appends,
        })
        .collect()
    }
}
