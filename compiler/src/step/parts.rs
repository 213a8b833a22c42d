//! The launches of a step by layers, and which layers are alike.
//!
//! A layer is what lies below a span that is a number, such as `layer.17`; no name is known here. Launches that do the work of
//! one layer are that layer's part of the step, those that join layers, or a layer and what is outside of all, are a boundary.

use std::collections::BTreeMap;

use ds4_ir::Op;
use ds4_ir::graph::{Span, Value};

use super::{Found, Step, Traffic};

/// Launches that do the work of the same layers.
pub struct Part {
    /// Whether they do work outside of all layers.
    pub outside: bool,
    /// The layers, ascending, as numbers of [`Parts::layers`].
    pub layers: Vec<usize>,
    /// The launches, ascending.
    pub launches: Vec<usize>,
    /// The kind of the part.
    pub kind: usize,
}

impl Part {
    /// Whether it is one layer and nothing else.
    pub fn is_layer(&self) -> bool {
        !self.outside && self.layers.len() == 1
    }
}

/// Parts whose launches are the same but for ids.
pub struct Kind {
    /// The parts, ascending; the first one serves as the example.
    pub parts: Vec<usize>,
    /// What the spans of this kind have and those of others do not.
    pub marks: Vec<String>,
}

/// Launches and bytes before and after fusion.
#[derive(Clone, Copy, Default)]
pub struct Sums {
    /// Launches, were nothing fused.
    pub launches_before: usize,
    /// Launches.
    pub launches: usize,
    /// Bytes, were nothing fused.
    pub before: Traffic,
    /// Bytes.
    pub after: Traffic,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.launches_before += other.launches_before;
        self.launches += other.launches;
        self.before += other.before;
        self.after += other.after;
    }
}

/// A step, divided.
pub struct Parts {
    /// Path and number of each layer.
    pub layers: Vec<Layer>,
    /// The parts, by their first launch.
    pub parts: Vec<Part>,
    /// Their kinds, by the first part.
    pub kinds: Vec<Kind>,
    /// The part of each launch.
    pub of_launch: Vec<usize>,
}

impl Parts {
    /// Divides a step.
    pub fn new(step: &Step<'_>) -> Parts {
        let spans: Vec<Option<Layer>> =
            (0..step.graph.spans.len() as u32).map(|span| divide(&step.graph.span_path(Span(span))).0).collect();
        let mut layers: Vec<Layer> = spans.iter().flatten().cloned().collect();
        layers.sort();
        layers.dedup();
        let mut found: BTreeMap<(bool, Vec<usize>), Vec<usize>> = BTreeMap::new();
        for launch in 0..step.launches() {
            let (mut outside, mut within) = (false, Vec::new());
            let mut add = |v: &Value| match &spans[step.graph.value_span[v.0 as usize].0 as usize] {
                Some(layer) => within.extend(layers.binary_search(layer)),
                None => outside = true,
            };
            step.owned(launch).iter().for_each(&mut add);
            if step.owned(launch).is_empty() {
                // All that it computes is computed earlier, too.
                step.regions(launch).flat_map(|found| step.values(found)).for_each(&mut add);
            }
            within.sort();
            within.dedup();
            found.entry((outside, within)).or_default().push(launch);
        }
        let part = |((outside, layers), launches)| Part { outside, layers, launches, kind: 0 };
        let mut parts: Vec<Part> = found.into_iter().map(part).collect();
        parts.sort_by_key(|part| part.launches[0]);
        let mut of_launch = vec![0; step.launches()];
        for (i, part) in parts.iter().enumerate() {
            part.launches.iter().for_each(|&launch| of_launch[launch] = i);
        }
        let mut parts = Parts { layers, parts, kinds: Vec::new(), of_launch };
        parts.find_kinds(step);
        parts.find_marks(step);
        parts
    }

    fn find_kinds(&mut self, step: &Step<'_>) {
        let mut known: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for i in 0..self.parts.len() {
            let kinds = known.len();
            let kind = *known.entry(signature(step, &self.parts[i])).or_insert(kinds);
            self.kinds.resize_with(known.len(), || Kind { parts: Vec::new(), marks: Vec::new() });
            self.kinds[kind].parts.push(i);
            self.parts[i].kind = kind;
        }
    }

    /// Spans below a layer that some kinds of layers have and others lack, without those that a longer or shorter path stands
    /// for just as well.
    fn find_marks(&mut self, step: &Step<'_>) {
        let mut having: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut all = Vec::new();
        for (kind, row) in self.kinds.iter().enumerate() {
            let part = &self.parts[row.parts[0]];
            if !part.is_layer() {
                continue;
            }
            all.push(kind);
            for v in part.launches.iter().flat_map(|&launch| step.owned(launch)) {
                for path in beginnings(&divide(&step.span(*v)).1) {
                    let kinds = having.entry(path.to_string()).or_default();
                    if kinds.last() != Some(&kind) {
                        kinds.push(kind);
                    }
                }
            }
        }
        for (path, kinds) in &having {
            let above = path.rsplit_once('.').and_then(|(above, _)| having.get(above));
            if *kinds != all && above != Some(kinds) {
                kinds.iter().for_each(|&kind| self.kinds[kind].marks.push(path.clone()));
            }
        }
    }

    /// The part that is a layer with this number, or the only one with it where there are several lists of layers.
    pub fn layer(&self, number: u32) -> Option<usize> {
        self.parts.iter().position(|part| part.is_layer() && self.layers[part.layers[0]].1 == number)
    }

    /// Launches that do nothing for a layer.
    pub fn outside(&self) -> usize {
        self.parts.iter().filter(|part| part.layers.is_empty()).map(|part| part.launches.len()).sum()
    }

    /// Launches less, were those counted as one that follow each other and share the work of one span with this name. One of the two
    /// computes nothing else: a launch that has other work beside is needed for that.
    pub fn split(&self, step: &Step<'_>, name: &str) -> usize {
        let mut sharing: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for launch in 0..step.launches() {
            for &v in step.owned(launch) {
                let path = step.span(v);
                let segments: Vec<&str> = path.split('.').collect();
                let Some(at) = segments.iter().position(|&segment| segment == name) else { continue };
                let launches = sharing.entry(segments[..=at].join(".")).or_default();
                if launches.last() != Some(&launch) {
                    launches.push(launch);
                }
            }
        }
        let within = |launch: usize, path: &str| {
            step.owned(launch).iter().all(|&v| beginnings(&step.span(v)).any(|beginning| beginning == path))
        };
        // Two spans may share the same pair of launches; it is one meeting of all workgroups.
        let mut pairs: Vec<usize> = Vec::new();
        for (path, launches) in &sharing {
            let neighbours = launches.windows(2).filter(|pair| pair[1] == pair[0] + 1);
            let divided = neighbours.filter(|pair| pair.iter().any(|&launch| within(launch, path)));
            pairs.extend(divided.map(|pair| pair[0]));
        }
        pairs.sort();
        pairs.dedup();
        pairs.len()
    }

    /// What a part is called: `layer.4`, `layer.4 + layer.5`, `outside of layers`.
    pub fn name(&self, part: &Part) -> String {
        let path = |layer: usize| {
            let (path, number) = &self.layers[layer];
            if path.is_empty() { number.to_string() } else { format!("{path}.{number}") }
        };
        let mut names: Vec<String> = part.outside.then(|| "outside of layers".into()).into_iter().collect();
        names.extend(part.layers.iter().take(4).map(|&layer| path(layer)));
        if part.layers.len() > 4 {
            names.push(format!("{} more", part.layers.len() - 4));
        }
        names.join(" + ")
    }

    /// The names of the parts of a kind: all layers by number.
    pub fn names(&self, kind: &Kind) -> String {
        let parts: Vec<&Part> = kind.parts.iter().map(|&part| &self.parts[part]).collect();
        let example = parts[0];
        if parts.len() == 1 || !example.is_layer() {
            let names: Vec<String> = parts.iter().map(|part| self.name(part)).collect();
            return match &names[..] {
                [first, .., last] if names.len() > 3 => format!("{first} … {last}"),
                _ => names.join(", "),
            };
        }
        let path = &self.layers[example.layers[0]].0;
        let numbers: Vec<u32> = parts.iter().map(|part| self.layers[part.layers[0]].1).collect();
        format!("{path} {}", ranges(&numbers))
    }

    /// Launches and bytes of a part.
    pub fn sums(&self, step: &Step<'_>, part: &Part) -> Sums {
        let mut sums = Sums::default();
        for &launch in &part.launches {
            sums.add(Sums {
                launches_before: step.owned(launch).len(),
                launches: 1,
                before: step.traffic_before(launch),
                after: step.traffic(launch),
            });
        }
        sums
    }

    /// Launches and bytes of all parts of a kind.
    pub fn kind_sums(&self, step: &Step<'_>, kind: &Kind) -> Sums {
        let mut sums = Sums::default();
        kind.parts.iter().for_each(|&part| sums.add(self.sums(step, &self.parts[part])));
        sums
    }

    /// Launches and bytes of the step.
    pub fn all_sums(&self, step: &Step<'_>) -> Sums {
        let mut sums = Sums::default();
        self.parts.iter().for_each(|part| sums.add(self.sums(step, part)));
        sums
    }
}

/// Path and number of a layer.
pub type Layer = (String, u32);

/// A span's layer, which is the path up to its first segment that is a number, and the path below it; without a layer, the
/// whole path.
pub fn divide(path: &str) -> (Option<Layer>, String) {
    let segments: Vec<&str> = path.split('.').collect();
    let number = |segment: &str| segment.parse().ok().filter(|_| segment.bytes().all(|b| b.is_ascii_digit()));
    for (at, segment) in segments.iter().enumerate() {
        if let Some(number) = number(segment) {
            return (Some((segments[..at].join("."), number)), segments[at + 1..].join("."));
        }
    }
    (None, path.into())
}

/// The paths that a path below a layer is part of: `attn`, `attn.pool`.
fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end]).filter(|beginning| !beginning.is_empty())
}

/// Ascending numbers for people: `0 to 2`, `2, 4, 6 ... 40`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let step = |pair: &[u32]| pair[1] - pair[0];
    let mut text = Vec::new();
    let mut rest = numbers;
    while let [first, ..] = *rest {
        let even = match rest {
            [a, b, ..] => rest.windows(2).take_while(|pair| step(pair) == b - a).count() + 1,
            _ => 1,
        };
        let last = rest[even - 1];
        match (even, rest.get(1)) {
            (4.., Some(&second)) if second == first + 1 => text.push(format!("{first} to {last}")),
            (4.., Some(&second)) => text.push(format!("{first}, {second} … {last}")),
            (_, _) => text.push(first.to_string()),
        }
        rest = &rest[if even >= 4 { even } else { 1 }..];
    }
    text.join(", ")
}

/// Words that two parts share exactly if their launches are the same but for ids, weights, tables and states.
fn signature(step: &Step<'_>, part: &Part) -> Vec<u32> {
    let mut writer = Writer { step, part, words: vec![u32::from(part.is_layer())] };
    for &launch in &part.launches {
        writer.words.push(step.lists.launches[launch].len() as u32);
        step.regions(launch).for_each(|found| writer.region(found));
    }
    writer.words
}

struct Writer<'s, 'a> {
    step: &'s Step<'a>,
    part: &'s Part,
    words: Vec<u32>,
}

impl Writer<'_, '_> {
    fn region(&mut self, found: Found) {
        let (values, tiles) = (self.step.values(found), self.step.tiles(found));
        self.words.extend([values.len() as u32, tiles.len() as u32]);
        self.words.extend(tiles);
        for &v in values {
            let lists = &self.step.lists;
            let flags = [self.step.is_launched_alone(v), lists.is_stored(v), lists.first(v) == Some(found)];
            self.words.extend(flags.map(u32::from));
            self.operation(v);
            for &operand in self.step.graph.args(v) {
                self.operand(found, operand);
            }
        }
    }

    fn operation(&mut self, v: Value) {
        let graph = &self.step.graph;
        self.words.extend([graph.op(v) as u32, graph.ty(v).0, graph.value_shape[v.0 as usize].0]);
        if !matches!(graph.op(v), Op::Weight | Op::Const | Op::Read) {
            self.words.extend(graph.attrs(v));
        }
    }

    /// An operand: its place in the region or the part, else what it is.
    fn operand(&mut self, reader: Found, v: Value) {
        const HERE: u32 = u32::MAX;
        const THERE: u32 = u32::MAX - 1;
        const ELSEWHERE: u32 = u32::MAX - 2;
        if let Ok(i) = self.step.values(reader).binary_search(&v) {
            self.words.extend([HERE, i as u32]);
            return;
        }
        if let Some(first) = self.step.lists.first(v) {
            let launch = self.part.launches.binary_search(&first.0);
            let index = self.step.values(first).binary_search(&v);
            if let (Ok(launch), Ok(index)) = (launch, index) {
                self.words.extend([THERE, launch as u32, first.1 as u32, index as u32]);
                return;
            }
            let graph = &self.step.graph;
            self.words.extend([ELSEWHERE, graph.ty(v).0, graph.value_shape[v.0 as usize].0]);
            return;
        }
        self.operation(v);
        for &operand in self.step.graph.args(v) {
            self.operand(reader, operand);
        }
    }
}
