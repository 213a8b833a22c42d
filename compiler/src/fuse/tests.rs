use std::path::Path;

use super::*;
use crate::lower::{Options, lower};
use crate::model::Model;

/// Where no further search is allowed, launches with a region that has no schedule become launches of single values, which have one;
/// with one search more there are other launches, and fewer.
#[test]
fn regions_without_a_schedule_become_single_values() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/models/kjv-9m/model.q8.gguf");
    let model = Model::read(&crate::read::open(&path).unwrap()).unwrap();
    let graph = lower(&model, &Options::for_model(&model.architecture)).unwrap();
    let (graph, bounds) = (graph.view(), Bounds { context: 4096, columns: 8, outputs: 8 });
    let profile = Profile { lanes: 256, ..Profile::find("generic").unwrap() };
    let scales = vec![ScaleBlocks::default(); graph.weights.len()];
    let single = fuse_within(&graph, bounds, &profile, &scales, 0).launches;
    let searched = fuse(&graph, bounds, &profile, &scales).launches;
    assert!(single.len() > searched.len(), "{} {}", single.len(), searched.len());
    let nodes = Nodes::of(&graph);
    let scene = Scene::new(graph, &nodes, bounds, &profile);
    for launches in [single, searched] {
        assert_eq!(schedulable::refused(&scene, &launches, &scales, &mut HashSet::new()).len(), 0);
        let listed = |v: Value| launches.iter().flat_map(|l| &l.regions).any(|r| r.values.binary_search(&v).is_ok());
        assert!(graph.values().filter(|&v| nodes.is_node(v)).all(listed));
    }
}
