//! Why two values are not computed by one launch.

use ds4_ir::Bounds;
use ds4_ir::graph::{Graph, Value};

use super::cost::Scene;
use super::nodes::Nodes;
use super::path::Launch;
use super::profile::Profile;
use super::regions::{Unfit, regions};
use super::{depth, levels};

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
    /// They could be one launch, which costs more.
    Costs {
        /// Microseconds of that launch.
        together: f64,
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
            Answer::Costs { together, apart, launches } => format!(
                "rule `absorb` could join the {launches} launches from one to the other, but one launch takes {together:.1} us, \
                 and they take {apart:.1} us"
            ),
            Answer::NoNode(v) => format!("{v} has no launch of its own: its readers make it themselves"),
        }
    }
}

/// Why one launch does not compute both values.
pub fn why_not(graph: &Graph<'_>, bounds: Bounds, profile: &Profile, a: Value, b: Value) -> Answer {
    let nodes = Nodes::of(graph);
    if let Some(v) = [a, b].into_iter().find(|&v| !nodes.is_node(v)) {
        return Answer::NoNode(v);
    }
    let scene = Scene::new(*graph, &nodes, bounds, profile);
    let found = super::path::shortest(&scene, &levels(&scene, &depth::depths(&scene))).launches;
    let holds = |launch: &Launch, v: Value| launch.regions.iter().any(|r| r.values.binary_search(&v).is_ok());
    let place = |v: Value| found.iter().position(|launch| holds(launch, v));
    let (Some(from), Some(to)) = (place(a), place(b)) else { return Answer::NoNode(a) };
    let (from, to) = (from.min(to), from.max(to));
    if from == to {
        let both = |r: &super::regions::Planned| [a, b].iter().all(|v| r.values.binary_search(v).is_ok());
        return Answer::Together { launch: from, one_region: found[from].regions.iter().any(both) };
    }
    let range = &found[from..=to];
    let mut set: Vec<Value> = range.iter().flat_map(|l| &l.regions).flat_map(|r| &r.values).copied().collect();
    set.sort();
    set.dedup();
    set.retain(|&v| nodes.is_node(v));
    match regions(&scene, &set) {
        Err(why) => Answer::Unfit(why),
        Ok(joined) => Answer::Costs {
            together: scene.launch_time(joined.iter().map(|r| &r.cost)),
            apart: range.iter().map(|launch| launch.time).sum(),
            launches: range.len(),
        },
    }
}
