//! What the launches cost that the search finds.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use ds4_compiler::fuse::{Profile, fuse};
use ds4_compiler::lower::{Options, lower};
use ds4_compiler::model::Model;
use ds4_compiler::read;
use ds4_ir::Bounds;

/// A device that binds more buffers at once runs a step in no more time: what regions that do not fit one launch would compute again
/// and again is a launch of its own where that is cheaper.
#[test]
fn more_buffers_do_not_cost_more() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/models/kjv-9m/model.q8.gguf");
    let model = Model::read(&read::open(&path).unwrap()).unwrap();
    let graph = lower(&model, &Options::for_model(&model.architecture)).unwrap();
    for name in Profile::names() {
        let profile = Profile::find(name).unwrap();
        for columns in [1, 8] {
            let bounds = Bounds { context: 4096, columns, outputs: columns };
            let time = |arguments: u32| {
                let found = fuse(&graph.view(), bounds, &Profile { arguments, ..profile.clone() }, &[]);
                found.launches.iter().map(|launch| launch.time).sum::<f64>()
            };
            let times = [12, 16, 20, 24, 31].map(time);
            println!("{name}, {columns} columns: {times:.1?} us");
            assert!(times.windows(2).all(|pair| pair[1] <= 1.01 * pair[0]), "{name}, {columns} columns: {times:?}");
        }
    }
}
