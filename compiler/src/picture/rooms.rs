//! Rooms: what is drawn of a part of a step, before it has a place.

use std::collections::{BTreeMap, BTreeSet};

use ds4_ir::Op;
use ds4_ir::graph::Value;

use crate::step::parts::{Part, divide};
use crate::step::{Found, Source, Step, Traffic, common, size};

/// A region, or a run of launches of one value each in the same span.
pub struct Room {
    /// The regions, at least one.
    pub regions: Vec<Found>,
    /// Their values, ascending.
    pub values: Vec<Value>,
    /// What it is called.
    pub title: String,
    /// What it says above its values.
    pub above: Vec<String>,
    /// What it says below its values.
    pub below: Vec<String>,
    /// What it reads of what other rooms computed, with bytes.
    pub inputs: Vec<(Value, u64)>,
    /// What other rooms read of what it computed, with bytes.
    pub outputs: Vec<(Value, u64)>,
    /// Launches, were nothing fused.
    pub before: usize,
}

/// Rooms that are side by side, since one launch computes them; or one room of several launches.
pub struct Band {
    /// The launches, ascending.
    pub launches: Vec<usize>,
    /// The rooms.
    pub rooms: Vec<Room>,
}

/// Who reads what of what regions computed.
pub struct Readers {
    /// For each value that is read by another region, these regions, ascending.
    pub of: BTreeMap<Value, Vec<Found>>,
}

impl Readers {
    /// The readers of all values of a step.
    pub fn new(step: &Step<'_>) -> Readers {
        let mut of: BTreeMap<Value, Vec<Found>> = BTreeMap::new();
        for found in step.all() {
            for (source, _) in step.lists.reads(step.values(found)) {
                if let Source::Value(v) = source {
                    of.entry(v).or_default().push(found);
                }
            }
        }
        Readers { of }
    }
}

/// The bands of a part, in the order of its launches.
pub fn bands(step: &Step<'_>, readers: &Readers, part: &Part) -> Vec<Band> {
    let mut bands = Vec::new();
    let mut rest = &part.launches[..];
    while let [first, ..] = *rest {
        let span = lone_span(step, first);
        let same = |pair: &&[usize]| pair[1] == pair[0] + 1 && span.is_some() && lone_span(step, pair[1]) == span;
        let count = 1 + rest.windows(2).take_while(same).count();
        let (launches, behind) = rest.split_at(count);
        let rooms = match count {
            1 => step.regions(first).map(|found| room(step, readers, vec![found])).collect(),
            _ => vec![room(step, readers, launches.iter().map(|&launch| (launch, 0)).collect())],
        };
        bands.push(Band { launches: launches.to_vec(), rooms });
        rest = behind;
    }
    bands
}

/// The span of a launch that computes one value by itself.
fn lone_span(step: &Step<'_>, launch: usize) -> Option<String> {
    let [values] = step.lists.launches[launch][..] else { return None };
    let last = values.last()?;
    (step.tiles((launch, 0)).is_empty() && step.before((launch, 0)) == 1).then(|| step.span(*last))
}

fn room(step: &Step<'_>, readers: &Readers, regions: Vec<Found>) -> Room {
    let mut values: Vec<Value> = regions.iter().flat_map(|&found| step.values(found)).copied().collect();
    values.sort();
    values.dedup();
    let reads = step.lists.reads(&values);
    let inputs = reads.iter().filter_map(|&(source, bytes)| match source {
        Source::Value(v) => Some((v, bytes)),
        _ => None,
    });
    let is_read = |v: &Value| readers.of.get(v).is_some_and(|found| found.iter().any(|found| !regions.contains(found)));
    let writes = regions.iter().flat_map(|&found| step.lists.writes(found));
    let outputs = writes.filter(|(v, _)| is_read(v)).collect();
    let mut traffic = Traffic::default();
    regions.iter().for_each(|&found| traffic += step.lists.traffic(found));
    let mut room = Room {
        title: title(step, &values),
        above: Vec::new(),
        below: below(&reads, &traffic),
        inputs: inputs.collect(),
        outputs,
        before: regions.iter().map(|&found| step.before(found)).sum(),
        values,
        regions,
    };
    room.above = above(step, &room);
    room
}

/// The path that the values have in common below their layer; where there is none, what their paths begin with.
fn title(step: &Step<'_>, values: &[Value]) -> String {
    let spans: BTreeSet<String> =
        values.iter().filter(|&&v| step.is_launched_alone(v)).map(|&v| step.span(v)).collect();
    let divided: Vec<_> = spans.iter().map(|span| divide(span)).collect();
    let one_layer = divided.windows(2).all(|pair| pair[0].0 == pair[1].0);
    let common = common(divided.iter().map(|(_, below)| below.clone()));
    if one_layer && !common.is_empty() {
        return common;
    }
    let mut heads: Vec<String> = Vec::new();
    for (layer, below) in &divided {
        let head = below.split('.').next().unwrap_or_default();
        let number = layer.as_ref().filter(|_| !one_layer).map(|(_, number)| format!("{number}."));
        let head = number.unwrap_or_default() + if head.is_empty() { "step" } else { head };
        if !heads.contains(&head) {
            heads.push(head);
        }
    }
    heads.join(" + ")
}

fn above(step: &Step<'_>, room: &Room) -> Vec<String> {
    let count = match room.values.len() {
        1 => "1 value".into(),
        n => format!("{n} values"),
    };
    let Some(&last) = room.values.last() else { return Vec::new() };
    if room.regions.len() > 1 {
        return vec![format!("{} launches of one value", room.regions.len()), count];
    }
    let tiles: Vec<String> = step.tiles(room.regions[0]).iter().map(u32::to_string).collect();
    let tiles = if tiles.is_empty() { String::new() } else { format!(", split [{}]", tiles.join(", ")) };
    let before = match room.before {
        1 => "1 launch".into(),
        n => format!("{n} launches"),
    };
    vec![format!("{last} {}", step.typed(last)), format!("{count}, {before} before{tiles}")]
}

fn below(reads: &[(Source, u64)], traffic: &Traffic) -> Vec<String> {
    let mut lines = Vec::new();
    let states: u64 = reads.iter().filter(|(source, _)| matches!(source, Source::State(_))).map(|read| read.1).sum();
    for (what, bytes) in
        [("weights", traffic.weights), ("reads states", states), ("writes states", traffic.states_written)]
    {
        if bytes > 0 {
            lines.push(format!("{what} {}", size(bytes)));
        }
    }
    lines
}

/// Groups of operations that are drawn alike: class, and what they are called.
pub const GROUPS: [(&str, &str); 7] = [
    ("map", "map"),
    ("sum", "reduce"),
    ("mul", "product"),
    ("code", "quantise, widen"),
    ("mem", "gather, concat, write"),
    ("sel", "top_k, sort_ids, arg_max"),
    ("fix", "what needs no operand"),
];

/// The group of an operation.
pub fn group(op: Op) -> &'static str {
    let index = match op {
        Op::Map => 0,
        Op::Reduce => 1,
        Op::Product => 2,
        Op::Quantise | Op::Widen => 3,
        Op::Gather | Op::Concat | Op::Write | Op::Reshape | Op::Slice | Op::Permute | Op::Broadcast => 4,
        Op::TopK | Op::SortIds | Op::ArgMax => 5,
        Op::Weight | Op::Const | Op::Read | Op::Tokens | Op::Extent | Op::Iota => 6,
    };
    GROUPS[index].0
}
