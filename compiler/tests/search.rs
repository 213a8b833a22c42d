//! What the launches cost that the search finds.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use ds4_compiler::assemble::compile;
use ds4_compiler::frame::Form;
use ds4_compiler::fuse::{Answer, Profile, fuse, why_not};
use ds4_compiler::lower::{Options, lower};
use ds4_compiler::model::Model;
use ds4_compiler::read::{self, Checkpoint};
use ds4_ir::{Bounds, GraphTables, Value};
use ds4_kernels::Target;

/// The trained model of this repository.
fn kjv() -> (Checkpoint, Model) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/models/kjv-9m/model.q8.gguf");
    let checkpoint = read::open(&path).unwrap();
    let model = Model::read(&checkpoint).unwrap();
    (checkpoint, model)
}

/// Its graph.
fn lowered() -> GraphTables {
    let (_, model) = kjv();
    lower(&model, &Options::for_model(&model.architecture)).unwrap()
}

/// A device that binds more buffers at once runs a step in no more time: what regions that do not fit one launch would compute again
/// and again is a launch of its own where that is cheaper.
#[test]
fn more_buffers_do_not_cost_more() {
    let graph = lowered();
    for profile in Profile::names().map(|name| Profile::find(name).unwrap()) {
        let name = &profile.name;
        for columns in [1, 8] {
            let bounds = Bounds { context: 4096, columns, outputs: columns };
            let time = |arguments: u32| {
                let found = fuse(&graph.view(), bounds, &Profile { arguments, ..profile.clone() }, &[]);
                found.launches.iter().map(|launch| launch.time).sum::<f64>()
            };
            let times = [12, 16, 20, 24, 31].map(time);
            println!("{name}, {columns} columns: {times:.1?} us");
            assert!(times.windows(2).all(|pair| pair[1] <= 1.02 * pair[0]), "{name}, {columns} columns: {times:?}");
        }
    }
}

/// No two neighbouring launches would take less time as one, and `--why-not` does not say so; but for splits without a kernel,
/// which it does not know.
#[test]
fn neighbours_are_joined_where_that_pays() {
    let graph = lowered();
    for profile in Profile::names().map(|name| Profile::find(name).unwrap()) {
        let name = &profile.name;
        let bounds = Bounds { context: 4096, columns: 1, outputs: 1 };
        let found = fuse(&graph.view(), bounds, &profile, &[]);
        let lists: Vec<Vec<&[Value]>> = found
            .launches
            .iter()
            .map(|launch| launch.regions.iter().map(|region| &region.values[..]).collect())
            .collect();
        let last = |launch: &Vec<&[Value]>| *launch[0].last().unwrap();
        for pair in lists.windows(2) {
            let [a, b] = [last(&pair[0]), last(&pair[1])];
            let answer = why_not(&graph.view(), bounds, &profile, &lists, [a, b]);
            if let Answer::Costs { together, apart, launches: 2, .. } = answer {
                assert!(together >= 0.99 * apart, "{name}: {a} and {b}: {}", answer.text());
            }
        }
    }
}

/// Whatever a profile allows: every region has a kernel.
#[test]
fn every_region_of_small_devices_has_a_kernel() {
    let (checkpoint, model) = kjv();
    let options = Options { context: 64, prefill: 16, ..Options::for_model(&model.architecture) };
    let generic = Profile::find("generic").unwrap();
    let small = Profile { workgroup_bytes: 8192, ..generic.clone() };
    let few = Profile { arguments: 8, ..generic.clone() };
    let wide = Profile { lanes: 256, ..generic };
    for profile in [small, few, wide] {
        let form = Form { targets: &[Target::Wgsl], fusion: Some(&profile) };
        let made = compile(&checkpoint, &model, &options, "model", &form).unwrap();
        assert!(made.plan.launches.len() < 1000, "{}", made.plan.launches.len());
    }
}
