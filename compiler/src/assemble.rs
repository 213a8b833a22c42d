//! Assembling a plan: graph, places of the weights, launches and memory of every entry point.

use std::path::{Component, Path, PathBuf};

use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, GraphTables};
use ds4_ir::plan::layout::stored_bytes;
use ds4_ir::plan::tables::{
    Device, EntryRow, File, FileRow, LaunchRow, PartRow, PlanTables, StatePlaceRow, WeightPlaceRow,
};
use ds4_ir::{Bounds, Diagnostic};

use crate::lower::{Activations, KvRows, Options, Sims};
use crate::model::Model;
use crate::read::Checkpoint;
use crate::schedule::schedule;

/// A compiled model: the tables of a plan.
pub struct Compiled {
    /// The value graph.
    pub graph: GraphTables,
    /// Everything else.
    pub plan: PlanTables,
}

/// Compiles a model. `model_path` is how the plan finds the checkpoint again: absolute, or relative to the plan's folder.
///
/// A pure function of its arguments: the same checkpoint headers, options and path give the same tables.
pub fn compile(
    checkpoint: &Checkpoint,
    model: &Model,
    options: &Options,
    model_path: &str,
) -> Result<Compiled, Diagnostic> {
    let graph = crate::lower::lower(model, options)?;
    let mut plan =
        PlanTables { model_hash: vec![model.identity], context: vec![options.context], ..Default::default() };
    set_options(&mut plan, checkpoint, model, options, model_path);
    place_files(&mut plan, checkpoint);
    place_weights(&mut plan, model);
    place_states(&mut plan, &graph.view());
    for (name, columns) in [("decode1", 1), ("decode", options.columns), ("prefill", options.prefill)] {
        add_entry(&mut plan, &graph.view(), name, Bounds { context: options.context, columns, outputs: columns });
    }
    plan.tokenizer = crate::read::tokenizer::tokenizer_json(checkpoint)?;
    Ok(Compiled { graph, plan })
}

fn set_options(plan: &mut PlanTables, checkpoint: &Checkpoint, model: &Model, options: &Options, model_path: &str) {
    let a = &model.architecture;
    let activations = match options.activations_of(model) {
        Activations::Q8 => "q8",
        Activations::F32 => "f32",
    };
    let kv = match options.kv {
        KvRows::F32 => "f32",
        KvRows::F16 => "f16",
    };
    let sims = match options.sims {
        Sims::None => "none",
        Sims::Official => "official",
    };
    let ids = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let name = Path::new(&checkpoint.name()).file_name().map(|n| n.to_string_lossy().into_owned());
    let facts = [
        ("compiler", env!("CARGO_PKG_VERSION").to_string()),
        ("contract", ds4_ir::plan::CONTRACT.to_string()),
        ("activations", activations.to_string()),
        ("kv", kv.to_string()),
        ("sims", sims.to_string()),
        ("context", options.context.to_string()),
        ("prefill", options.prefill.to_string()),
        ("columns", options.columns.to_string()),
        ("model.path", model_path.to_string()),
        ("model.name", name.unwrap_or_default()),
        ("model.layers", a.layers.len().to_string()),
        ("model.hidden", a.hidden.to_string()),
        ("model.vocab_size", a.vocab_size.to_string()),
        ("model.context_length", a.context_length.to_string()),
        ("model.bos", a.special.bos.map(|id| id.to_string()).unwrap_or_default()),
        ("model.eos", ids(&a.special.eos)),
    ];
    for (key, value) in facts {
        plan.set_option(key, &value);
    }
}

fn place_files(plan: &mut PlanTables, checkpoint: &Checkpoint) {
    let files = &checkpoint.files;
    for i in 0..files.len() {
        let name = files.path[i].file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let path = plan.intern(&name);
        plan.files.push(FileRow {
            path,
            reserved: 0,
            size: files.size[i],
            header_len: files.header_len[i],
            header_hash: files.header_hash[i],
        });
    }
}

fn place_weights(plan: &mut PlanTables, model: &Model) {
    for reference in &model.weights.reference {
        let parts: Vec<PartRow> = reference
            .parts
            .iter()
            .map(|part| {
                let (scale_file, scale_offset) = part.scale.unwrap_or((part.file, 0));
                PartRow { file: File(part.file.0), scale_file: File(scale_file.0), offset: part.offset, scale_offset }
            })
            .collect();
        let parts = Run::push(&mut plan.parts, &parts);
        let [scale_rows, scale_cols] = reference.scale_block;
        plan.weight_places.push(WeightPlaceRow { parts, scale_rows, scale_cols });
    }
}

fn place_states(plan: &mut PlanTables, graph: &Graph<'_>) {
    let none = Bounds { context: 0, columns: 0, outputs: 0 };
    let mut offset = 0;
    for state in graph.states {
        let bytes = stored_bytes(state.ty, &graph.max_extents(state.shape, none));
        let bytes = bytes.expect("states are f32 and of constant shape");
        plan.state_places.push(StatePlaceRow { offset, bytes });
        offset += bytes.next_multiple_of(64);
    }
}

fn add_entry(plan: &mut PlanTables, graph: &Graph<'_>, name: &str, bounds: Bounds) {
    let schedule = schedule(graph, bounds);
    let name = plan.intern(name);
    let first = plan.launches.len() as u32;
    for run in &schedule.launches {
        let values = Run::push(&mut plan.launch_values, run.of(&schedule.values));
        plan.launches.push(LaunchRow { device: Device(0), values });
    }
    let launches = Run { start: first, len: schedule.launches.len() as u32 };
    let slots = Run::push(&mut plan.slots, &schedule.slots);
    plan.entries.push(EntryRow {
        name,
        columns: bounds.columns,
        outputs: bounds.outputs,
        launches,
        slots,
        reserved: 0,
        arena_bytes: schedule.arena_bytes,
    });
}

/// The path under which a plan at `plan` remembers `model`: as given if absolute, else relative to the plan's folder, so
/// that a folder with both can be moved.
pub fn remembered_path(model: &Path, plan: &Path) -> String {
    let folder = plan.parent().unwrap_or(Path::new(""));
    let plain = |path: &Path| path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if model.is_absolute() || folder.is_absolute() || !plain(folder) {
        let absolute = std::path::absolute(model).unwrap_or_else(|_| model.to_path_buf());
        return absolute.to_string_lossy().into_owned();
    }
    let (model_parts, folder_parts) = (normal_parts(model), normal_parts(folder));
    let common = model_parts.iter().zip(&folder_parts).take_while(|(a, b)| a == b).count();
    let up = folder_parts[common..].iter().map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(model_parts[common..].iter().copied()).collect();
    path.to_string_lossy().into_owned()
}

fn normal_parts(path: &Path) -> Vec<Component<'_>> {
    path.components().filter(|c| *c != Component::CurDir).collect()
}
