//! Assembling the plan of a model: its graph, its facts, and where its weights lie.

use std::path::{Component, Path, PathBuf};

use ds4_ir::certificate::CertificateTables;
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, GraphTables};
use ds4_ir::plan::tables::{File, PartRow, Plan, PlanTables};
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::parallel;
use ds4_kernels::plan::{add_kernels, limit_facts};

use crate::frame::{Form, Frame, SourceFile, SourceWeight, assemble_on};
use crate::fuse::Profile;
use crate::lower::{Activations, Head, KvRows, Options, Sims};
use crate::model::{Model, Part};
use crate::read::{Checkpoint, Metadata};
use crate::rewrite::{Limits, Outcome, Rewritten, rewrite};

/// A compiled model: the tables of a plan.
pub struct Compiled {
    /// The value graph.
    pub graph: GraphTables,
    /// Everything else.
    pub plan: PlanTables,
    /// Why the graph has the bits of the one that the model was lowered to; none if it is that one.
    pub certificate: Option<CertificateTables>,
    /// What rewriting did; none without fusion.
    pub rewriting: Option<Outcome>,
}

/// Compiles a model for what `form` names. `model_path` is how the plan finds the checkpoint again: absolute, or
/// relative to the plan's folder.
///
/// A pure function of its arguments: the same checkpoint headers, options and path give the same tables.
pub fn compile(
    checkpoint: &Checkpoint,
    model: &Model,
    options: &Options,
    model_path: &str,
    form: &Form<'_>,
) -> Result<Compiled, Diagnostic> {
    compile_on(parallel::available(), checkpoint, model, options, model_path, form, &Limits::default())
}

/// The same on so many threads, on which the tables do not depend, within other limits of rewriting.
///
/// # Errors
/// As [`compile`].
pub fn compile_on(
    threads: usize,
    checkpoint: &Checkpoint,
    model: &Model,
    options: &Options,
    model_path: &str,
    form: &Form<'_>,
    limits: &Limits,
) -> Result<Compiled, Diagnostic> {
    let lowered = crate::lower::lower(model, options)?;
    let (graph, certificate, rewriting) = match form.fusion {
        Some(_) => {
            let Rewritten { graph, certificate, outcome } = rewrite(&lowered.view(), limits)?;
            (graph, Some(certificate), Some(outcome))
        }
        None => (lowered, None, None),
    };
    let entries = entries(options);
    // Kernels come behind the check of sizes, whose diagnostic says more.
    let form_of_lists = Form { targets: &[], ..*form };
    let frame = Frame { form: form_of_lists, entries: &entries, ..frame(checkpoint, model, options, model_path, form) };
    let mut plan = assemble_on(threads, &graph.view(), &frame)?;
    plan.tokenizer = crate::read::tokenizer::tokenizer_json(checkpoint)?;
    check_sizes(&graph.view(), &plan.view(), options, &frame)?;
    add_kernels(threads, &mut plan, &graph.view(), form.targets, form.fusion.map(Profile::limits))?;
    check_kernels(&graph.view(), &plan.view())?;
    Ok(Compiled { graph, plan, certificate, rewriting })
}

/// The entry points of a model: names, and the most columns of a step.
pub(crate) fn entries(options: &Options) -> [(&'static str, u32); 3] {
    [("decode1", 1), ("decode", options.columns), ("prefill", options.prefill)]
}

/// What a model's plan says beside its graph, without entry points and kernels.
pub(crate) fn frame<'a>(
    checkpoint: &Checkpoint,
    model: &Model,
    options: &Options,
    model_path: &str,
    form: &Form<'_>,
) -> Frame<'a> {
    Frame {
        identity: model.identity,
        facts: facts(checkpoint, model, options, model_path, form),
        files: files(checkpoint),
        weights: weights(model),
        context: options.context,
        entries: &[],
        form: Form::default(),
    }
}

/// Every plan that is written can be opened: what the check of a plan would refuse is refused here, where only its sizes
/// can be wrong, or the limits of the profile by which it is fused.
fn check_sizes(graph: &Graph<'_>, plan: &Plan<'_>, options: &Options, frame: &Frame<'_>) -> Result<(), Diagnostic> {
    let Err(fault) = ds4_ir::plan::check::check(graph, plan) else { return Ok(()) };
    let unfused = assemble_on(parallel::available(), graph, &Frame { form: Form::default(), ..frame.clone() })?;
    let by_profile = frame.form.fusion.filter(|_| ds4_ir::plan::check::check(graph, &unfused.view()).is_ok());
    Err(match by_profile {
        Some(profile) => {
            let Profile { workgroup_bytes, iterations, .. } = profile;
            Diagnostic::new(codes::PROFILE, "the limits of the device profile are too small for the model")
                .at(Place::item("the profile", &profile.name))
                .wanted(
                    "a launch for every value",
                    format!("{fault}, with workgroup_bytes = {workgroup_bytes} and iterations = {iterations}"),
                )
                .help("give larger limits, a smaller --prefill, or `--fuse off`")
        }
        None => too_large(&fault, options),
    })
}

fn too_large(fault: &str, options: &Options) -> Diagnostic {
    Diagnostic::new(codes::OPTION_RANGE, "the context or the prefill step is too large")
        .at(Place::item("the command line", "--context and --prefill"))
        .wanted("values of fewer than 2^40 elements", fault)
        .help(format!(
            "give a smaller `--prefill` than {} or a smaller `--context` than {}",
            options.prefill, options.context
        ))
}

/// Behind [`check_sizes`] only the kernels can be wrong.
fn check_kernels(graph: &Graph<'_>, plan: &Plan<'_>) -> Result<(), Diagnostic> {
    ds4_ir::plan::check::check(graph, plan).map(|_| ()).map_err(|fault| {
        Diagnostic::new(codes::UNSUPPORTED_LAUNCH, "the kernels for devices are not what a plan can hold")
            .at(Place::item("the plan", "its kernels"))
            .wanted("grids and arguments within the limits of devices", fault)
            .help("give a smaller --prefill or --context, or compile for the CPU alone with --target none")
    })
}

fn facts(
    checkpoint: &Checkpoint,
    model: &Model,
    options: &Options,
    model_path: &str,
    form: &Form<'_>,
) -> Vec<(&'static str, String)> {
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
    let head = match options.head {
        Head::Logits => "logits",
        Head::Greedy => "greedy",
    };
    let name = model_name(checkpoint);
    let limits = form.fusion.into_iter().flat_map(|profile| limit_facts(profile.limits()));
    let facts = vec![
        ("compiler", env!("CARGO_PKG_VERSION").to_string()),
        ("contract", ds4_ir::plan::CONTRACT.to_string()),
        ("activations", activations.to_string()),
        ("kv", kv.to_string()),
        ("sims", sims.to_string()),
        ("head", head.to_string()),
        ("context", options.context.to_string()),
        ("prefill", options.prefill.to_string()),
        ("columns", options.columns.to_string()),
        ("fusion", form.fusion.map_or("off", |profile| &profile.name).to_string()),
        ("model.path", model_path.to_string()),
        ("model.name", name),
        ("model.layers", a.layers.len().to_string()),
        ("model.hidden", a.hidden.to_string()),
        ("model.vocab_size", a.vocab_size.to_string()),
        ("model.context_length", a.context_length.to_string()),
        ("model.bos", a.special.bos.map(|id| id.to_string()).unwrap_or_default()),
        ("model.eos", ids(&a.special.eos)),
    ];
    facts.into_iter().chain(limits).collect()
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

fn files(checkpoint: &Checkpoint) -> Vec<SourceFile> {
    let files = &checkpoint.files;
    let name = |i: usize| files.path[i].file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let file = |i| SourceFile {
        name: name(i),
        size: files.size[i],
        header_len: files.header_len[i],
        header_hash: files.header_hash[i],
    };
    (0..files.len()).map(file).collect()
}

fn weights(model: &Model) -> Vec<SourceWeight> {
    let part = |part: &Part| {
        let (scale_file, scale_offset) = part.scale.unwrap_or((part.file, 0));
        PartRow { file: File(part.file.0), scale_file: File(scale_file.0), offset: part.offset, scale_offset }
    };
    let references = model.weights.reference.iter();
    references.map(|r| SourceWeight { parts: r.parts.iter().map(part).collect(), scale_block: r.scale_block }).collect()
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
