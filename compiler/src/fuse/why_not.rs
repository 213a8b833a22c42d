//! Why two values are not computed by one launch.

use ds4_ir::Bounds;
use ds4_ir::graph::{Graph, Value};

use super::cost::Scene;
use super::nodes::Nodes;
use super::pack::{pack, packed_time};
use super::profile::Profile;
use super::regions::{Known, Planned, Unfit, regions};

/// Why two values are not in one launch.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// They are.
    Together {
        /// The launch.
        launch: usize,
        /// Whether one region computes both.
        one_region: bool,
    },
    /// The launches from one to the other cannot be one.
    Unfit(Unfit),
    /// They could be joined.
    Costs {
        /// Microseconds of the launches that compute all.
        together: f64,
        /// How many these are: buffers and workgroup memory may not suffice for one.
        joined: usize,
        /// Microseconds of the launches as they are.
        apart: f64,
        /// How many these are.
        launches: usize,
    },
    /// No launch computes one of them: its readers make it themselves.
    NoNode(Value),
}

impl Answer {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Answer::Together { launch, one_region: true } => format!("one region of launch {launch} computes both"),
            Answer::Together { launch, .. } => format!("launch {launch} computes both, in regions side by side"),
            Answer::Unfit(why) => format!("rule `absorb` refuses: {why}"),
            Answer::Costs { together, joined, apart, launches } => {
                let takes = match joined {
                    1 => format!("one launch would take {together:.1} us by the profile"),
                    _ => {
                        format!("buffers and workgroup memory would suffice for {joined} launches of {together:.1} us")
                    }
                };
                let why = match together < apart {
                    true => {
                        "; the search tries whole depths and neighbours, and takes only what schedules have kernels for"
                    }
                    false => "",
                };
                format!(
                    "rule `absorb` could join the {launches} launches from one to the other: {takes}, and they take \
                     {apart:.1} us{why}"
                )
            }
            Answer::NoNode(v) => format!("{v} has no launch of its own: its readers make it themselves"),
        }
    }
}

/// Why one launch of a plan does not compute both values. `launches` are the lists of the plan's regions.
pub fn why_not(
    graph: &Graph<'_>,
    bounds: Bounds,
    profile: &Profile,
    launches: &[Vec<&[Value]>],
    pair: [Value; 2],
) -> Answer {
    let nodes = Nodes::of(graph);
    let both = |list: &&[Value]| pair.iter().all(|v| list.binary_search(v).is_ok());
    if let Some(launch) = launches.iter().position(|launch| launch.iter().any(both)) {
        return Answer::Together { launch, one_region: true };
    }
    let place = |v: Value| launches.iter().position(|launch| launch.iter().any(|list| list.binary_search(&v).is_ok()));
    let mut places = Vec::new();
    for v in pair {
        match place(v).filter(|_| nodes.is_node(v)) {
            Some(place) => places.push(place),
            None => return Answer::NoNode(v),
        }
    }
    let (from, to) = (places[0].min(places[1]), places[0].max(places[1]));
    if from == to {
        return Answer::Together { launch: from, one_region: false };
    }
    let scene = Scene::new(*graph, &nodes, bounds, profile);
    let mut known = Known::new();
    let joined = match regions(&scene, &mut known, &nodes_of(&nodes, &launches[from..=to])) {
        Ok(joined) => joined,
        Err(why) => return Answer::Unfit(why),
    };
    let time = |found: &[Planned]| packed_time(&scene, &found.iter().collect::<Vec<_>>());
    let apart = launches[from..=to].iter().map(|launch| {
        let found = regions(&scene, &mut known, &nodes_of(&nodes, std::slice::from_ref(launch)));
        found.map_or(profile.launch, |found| time(&found))
    });
    let (apart, together) = (apart.sum(), time(&joined));
    Answer::Costs { together, joined: pack(&scene, joined).len(), apart, launches: to - from + 1 }
}

/// The nodes that launches compute, each once.
fn nodes_of(nodes: &Nodes, launches: &[Vec<&[Value]>]) -> Vec<Value> {
    let mut set: Vec<Value> = launches.iter().flatten().flat_map(|list| list.iter().copied()).collect();
    set.sort();
    set.dedup();
    set.retain(|&v| nodes.is_node(v));
    set
}
