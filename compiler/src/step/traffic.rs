//! What regions read and write.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use ds4_ir::graph::{Constant, Graph, State, Value, Weight};
use ds4_ir::{Bounds, Op, Type};

/// A region: its launch, and its number there.
pub type Found = (usize, usize);

/// What a region reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// A tensor of the checkpoint.
    Weight(Weight),
    /// A table of the plan.
    Constant(Constant),
    /// A state as the step begins.
    State(State),
    /// What another region computed; a `write` is a later version of a state.
    Value(Value),
}

/// Bytes that regions move, at the largest extents of the entry point. A region reads each element once, however many of its
/// workgroups do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Read of tensors of the checkpoint and tables of the plan; of rows that ids select, only these.
    pub weights: u64,
    /// Read of states.
    pub states_read: u64,
    /// Rows written to states.
    pub states_written: u64,
    /// Read of values.
    pub values_read: u64,
    /// Written to values.
    pub values_written: u64,
}

impl Traffic {
    /// Everything but weights.
    pub fn activations(&self) -> u64 {
        self.states_read + self.states_written + self.values_read + self.values_written
    }

    /// What is read.
    pub fn read(&self) -> u64 {
        self.weights + self.states_read + self.values_read
    }

    /// What is written.
    pub fn written(&self) -> u64 {
        self.states_written + self.values_written
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.weights += other.weights;
        self.states_read += other.states_read;
        self.states_written += other.states_written;
        self.values_read += other.values_read;
        self.values_written += other.values_written;
    }
}

/// The values of the regions of launches, with what is stored.
pub struct Lists<'a> {
    graph: Graph<'a>,
    bounds: Bounds,
    /// For each launch the values of its regions.
    pub launches: Vec<Vec<&'a [Value]>>,
    stored: Vec<bool>,
    /// The first region that lists each value: it stores it.
    first: Vec<Option<Found>>,
}

impl<'a> Lists<'a> {
    /// Launches whose values with a slot are `stored`.
    pub fn new(
        graph: Graph<'a>,
        bounds: Bounds,
        launches: Vec<Vec<&'a [Value]>>,
        slots: impl Iterator<Item = Value>,
    ) -> Lists<'a> {
        let mut stored = vec![false; graph.len()];
        slots.for_each(|v| stored[v.0 as usize] = true);
        let mut first = vec![None; graph.len()];
        for (l, launch) in launches.iter().enumerate() {
            for (r, values) in launch.iter().enumerate() {
                for v in *values {
                    first[v.0 as usize].get_or_insert((l, r));
                }
            }
        }
        Lists { graph, bounds, launches, stored, first }
    }

    /// The first region that lists a value.
    pub fn first(&self, v: Value) -> Option<Found> {
        self.first[v.0 as usize]
    }

    /// Whether a value has memory.
    pub fn is_stored(&self, v: Value) -> bool {
        self.stored[v.0 as usize]
    }

    fn elements(&self, v: Value) -> u64 {
        let extents = self.graph.max_extents(self.graph.value_shape[v.0 as usize], self.bounds);
        extents.iter().map(|&e| e as u64).product()
    }

    /// Bytes of a value.
    pub fn bytes(&self, v: Value) -> u64 {
        bytes(self.graph.ty(v), self.elements(v))
    }

    /// What a region reads from outside, with bytes, each source once, in the order of the sources.
    pub fn reads(&self, values: &[Value]) -> Vec<(Source, u64)> {
        let mut reads = Reads { lists: self, inside: values, found: BTreeMap::new() };
        for &v in values {
            for (i, &operand) in self.graph.args(v).iter().enumerate() {
                match (self.graph.op(v), i) {
                    // Rows are replaced; the others stay unread.
                    (Op::Write, 0) => {}
                    (Op::Gather, 0) => reads.follow(operand, operand, self.elements(v)),
                    _ => reads.follow(operand, operand, self.elements(operand)),
                }
            }
        }
        let mut sums: BTreeMap<Source, (Value, u64)> = BTreeMap::new();
        for ((source, _), (at, elements)) in reads.found {
            sums.entry(source).or_insert((at, 0)).1 += elements;
        }
        let sum = |(source, (at, elements)): (Source, (Value, u64))| {
            (source, bytes(self.graph.ty(at), elements.min(self.elements(at))))
        };
        sums.into_iter().map(sum).collect()
    }

    /// What a region leaves in memory, with bytes: values, and rows of states.
    pub fn writes(&self, found: Found) -> Vec<(Value, u64)> {
        let is_written =
            |v: &&Value| self.first(**v) == Some(found) && (self.is_stored(**v) || self.graph.op(**v) == Op::Write);
        let size = |v: Value| match self.graph.op(v) {
            Op::Write => self.bytes(self.graph.args(v)[2]),
            _ => self.bytes(v),
        };
        self.launches[found.0][found.1].iter().filter(is_written).map(|&v| (v, size(v))).collect()
    }

    /// What a region moves.
    pub fn traffic(&self, found: Found) -> Traffic {
        let mut traffic = Traffic::default();
        for (source, bytes) in self.reads(self.launches[found.0][found.1]) {
            match source {
                Source::Weight(_) | Source::Constant(_) => traffic.weights += bytes,
                Source::State(_) => traffic.states_read += bytes,
                Source::Value(v) if self.graph.op(v) == Op::Write => traffic.states_read += bytes,
                Source::Value(_) => traffic.values_read += bytes,
            }
        }
        for (v, bytes) in self.writes(found) {
            match self.graph.op(v) {
                Op::Write => traffic.states_written += bytes,
                _ => traffic.values_written += bytes,
            }
        }
        traffic
    }
}

/// Bytes of elements of a type; q8 without what aligns its scales.
fn bytes(ty: Type, elements: u64) -> u64 {
    match ty.format() {
        Some(format) => elements.div_ceil(format.block_len() as u64) * format.block_bytes() as u64,
        None if ty == Type::Q8 => elements + elements / 32 * 4,
        None => 4 * elements,
    }
}

/// A number of bytes for people.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// Follows the operands of a region to where they lie.
struct Reads<'l, 'a> {
    lists: &'l Lists<'a>,
    inside: &'l [Value],
    /// For each source, and the view on it that is read: the value that is the source, and how many of its elements.
    found: BTreeMap<(Source, Value), (Value, u64)>,
}

impl Reads<'_, '_> {
    /// `view` is what reads `at`: `at` itself, or a view on it. Not more than `elements` of it are read.
    fn follow(&mut self, at: Value, view: Value, elements: u64) {
        let graph = &self.lists.graph;
        if self.inside.binary_search(&at).is_ok() {
            return;
        }
        let elements = elements.min(self.lists.elements(at));
        let attr = || graph.attrs(at)[0];
        let source = match graph.op(at) {
            Op::Weight => Source::Weight(Weight(attr())),
            Op::Const => Source::Constant(Constant(attr())),
            Op::Read => Source::State(State(attr())),
            _ if self.lists.first(at).is_some() => Source::Value(at),
            op => {
                // Nobody computes it: a view, a concat whose operands lie in its memory, or what readers make themselves.
                for (i, &operand) in graph.args(at).iter().enumerate() {
                    let asked = if op == Op::Gather && i > 0 { u64::MAX } else { elements };
                    self.follow(operand, at, asked);
                }
                return;
            }
        };
        let known = self.found.entry((source, view)).or_insert((at, 0));
        known.1 = known.1.max(elements);
    }
}
