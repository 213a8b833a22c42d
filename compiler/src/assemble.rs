//! Assembling a plan: graph, places of the weights, launches and memory of every entry point.

use std::path::{Component, Path, PathBuf};

use ds4_ir::diagnostic::codes;
use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, GraphTables};
use ds4_ir::plan::layout::stored_bytes;
use ds4_ir::plan::tables::{
    Device, EntryRow, File, FileRow, LaunchRow, PartRow, PlanTables, StatePlaceRow, WeightPlaceRow,
};
use ds4_ir::plan::{ALIGN, Plan};
use ds4_ir::{Bounds, Diagnostic, Place};
use ds4_kernels::Target;

use crate::kernels::{add_kernels, add_weight_fields};
use crate::lower::{Activations, KvRows, Options, Sims};
use crate::model::Model;
use crate::read::{Checkpoint, Metadata};
use crate::schedule::schedule;

/// A compiled model: the tables of a plan.
pub struct Compiled {
    /// The value graph.
    pub graph: GraphTables,
    /// Everything else.
    pub plan: PlanTables,
}

/// Compiles a model, with kernels for the targets. `model_path` is how the plan finds the checkpoint again: absolute, or relative to the plan's folder.
///
/// A pure function of its arguments: the same checkpoint headers, options and path give the same tables.
pub fn compile(
    checkpoint: &Checkpoint,
    model: &Model,
    options: &Options,
    model_path: &str,
    targets: &[Target],
) -> Result<Compiled, Diagnostic> {
    let graph = crate::lower::lower(model, options)?;
    let mut plan =
        PlanTables { model_hash: vec![model.identity], context: vec![options.context], ..Default::default() };
    set_options(&mut plan, checkpoint, model, options, model_path);
    place_files(&mut plan, checkpoint);
    place_weights(&mut plan, model);
    add_weight_fields(&mut plan, &graph.view());
    place_states(&mut plan, &graph.view());
    for (name, columns) in [("decode1", 1), ("decode", options.columns), ("prefill", options.prefill)] {
        add_entry(&mut plan, &graph.view(), name, Bounds { context: options.context, columns, outputs: columns });
    }
    plan.tokenizer = crate::read::tokenizer::tokenizer_json(checkpoint)?;
    check_sizes(&graph.view(), &plan.view(), options)?;
    add_kernels(&mut plan, &graph.view(), targets)?;
    Ok(Compiled { graph, plan })
}

/// Every plan that is written can be opened: what the check of a plan would refuse is refused here, where only its sizes
/// can be wrong.
fn check_sizes(graph: &Graph<'_>, plan: &Plan<'_>, options: &Options) -> Result<(), Diagnostic> {
    ds4_ir::plan::check::check(graph, plan).map(|_| ()).map_err(|fault| {
        Diagnostic::new(codes::OPTION_RANGE, "the context or the prefill step is too large")
            .at(Place::item("the command line", "--context and --prefill"))
            .wanted("values of fewer than 2^40 elements", fault)
            .help(format!(
                "give a smaller `--prefill` than {} or a smaller `--context` than {}",
                options.prefill, options.context
            ))
    })
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
    let name = model_name(checkpoint);
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
        ("model.name", name),
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

/// The name of a GGUF file, or of a released directory.
fn model_name(checkpoint: &Checkpoint) -> String {
    let file = PathBuf::from(checkpoint.name());
    let absolute = std::path::absolute(&file).unwrap_or(file);
    let named = match &checkpoint.metadata {
        Metadata::Gguf(_) => Some(absolute.as_path()),
        Metadata::Config(_) => absolute.parent(),
    };
    named.and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
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
        plan.weight_places.push(WeightPlaceRow { parts, scale_rows, scale_cols, fields: Run::default() });
    }
}

fn place_states(plan: &mut PlanTables, graph: &Graph<'_>) {
    let none = Bounds { context: 0, columns: 0, outputs: 0 };
    let mut offset = 0;
    for state in graph.states {
        let bytes = stored_bytes(state.ty, &graph.max_extents(state.shape, none));
        let bytes = bytes.expect("states are f32 and of constant shape");
        plan.state_places.push(StatePlaceRow { offset, bytes });
        offset += bytes.next_multiple_of(ALIGN);
    }
}

fn add_entry(plan: &mut PlanTables, graph: &Graph<'_>, name: &str, bounds: Bounds) {
    let schedule = schedule(graph, bounds);
    let name = plan.intern(name);
    let first = plan.launches.len() as u32;
    for run in &schedule.launches {
        let values = Run::push(&mut plan.launch_values, run.of(&schedule.values));
        plan.launches.push(LaunchRow { device: Device(0), values, dispatches: Run::default() });
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

/// The path under which a plan at `plan` remembers `model`: absolute as given, else relative to the plan's folder, so that a
/// folder with both can be moved. Links are followed, so that `..` means what the runtime will find.
pub fn remembered_path(model: &Path, plan: &Path) -> String {
    let folder = match plan.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if model.is_absolute() {
        return model.to_string_lossy().into_owned();
    }
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    let (Some(model_path), Some(folder)) = (real(model), real(folder)) else {
        return model.to_string_lossy().into_owned();
    };
    let (model_parts, folder_parts): (Vec<_>, Vec<_>) =
        (model_path.components().collect(), folder.components().collect());
    let common = model_parts.iter().zip(&folder_parts).take_while(|(a, b)| a == b).count();
    let up = folder_parts[common..].iter().map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(model_parts[common..].iter().copied()).collect();
    match path.as_os_str().is_empty() {
        true => ".".into(),
        false => path.to_string_lossy().into_owned(),
    }
}
