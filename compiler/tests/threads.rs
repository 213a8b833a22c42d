//! What is compiled does not depend on the number of threads.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use ds4_compiler::assemble::compile_on;
use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_compiler::lower::Options;
use ds4_compiler::model::Model;
use ds4_compiler::read;
use ds4_compiler::rewrite::Limits;
use ds4_ir::plan::write_plan;
use ds4_kernels::Target;

/// The bytes of the plan that so many threads make.
fn plan(model: &Path, threads: usize, profile: Option<&Profile>) -> Vec<u8> {
    let checkpoint = read::open(model).unwrap();
    let model = Model::read(&checkpoint).unwrap();
    let options = Options { context: 64, prefill: 16, ..Options::for_model(&model.architecture) };
    let form = Form { targets: &Target::ALL, fusion: profile };
    let made = compile_on(threads, &checkpoint, &model, &options, "model", &form, &Limits::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    write_plan(&path, &made.graph, &made.plan, made.certificate.as_ref()).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn plans_do_not_depend_on_threads() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/models/kjv-9m/model.q8.gguf");
    let profile = Profile::find("generic").unwrap();
    for profile in [None, Some(&profile)] {
        let one = plan(&model, 1, profile);
        for threads in [2, 2, 5] {
            assert!(plan(&model, threads, profile) == one, "{threads} threads");
        }
    }
}
