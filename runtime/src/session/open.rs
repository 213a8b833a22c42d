//! Opening: the plan and the model's files are mapped, checked and prepared.

use std::fs::File;
use std::path::{Path, PathBuf};

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::plan::contents::{CONTENTS, contents_hash};
use ds4_ir::plan::{FileRow, Plan, PlanBytes};
use ds4_ir::rules::{Exact, Reasons};
use ds4_ir::{Diagnostic, Place, Type};
use ds4_kernels::plan::check_kernels;
use memmap2::Mmap;

use super::taps::Taps;
use super::{Answer, Entry, Runner, Session};
use crate::cpu::exec::{Executor, FileBytes};
use crate::cpu::products::Isa;
use crate::device::backend::Backend;
use crate::device::exec::DeviceExecutor;
use crate::generate::{Facts, Width};

/// How a session is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The model's file or folder, if it is not where the plan remembers it.
    pub model: Option<PathBuf>,
    /// Threads that execute, the caller's included; as many as the machine runs at once if not given.
    pub threads: Option<usize>,
    /// Instruction-set level; the widest if not given.
    pub isa: Option<Isa>,
    /// Whether the weights are compared with the hash in the plan. This reads all of them.
    pub contents: bool,
    /// Whether the certificate in the plan is checked, and that its kernels are those of its launches.
    pub verify: bool,
}

impl Session {
    /// Opens a plan with its model, to run on the CPU.
    ///
    /// # Errors
    /// The plan or the model's files cannot be read, are damaged or do not belong together, or the machine refuses
    /// memory or threads.
    pub fn open(plan: &Path, options: &OpenOptions) -> Result<Session, Diagnostic> {
        Session::open_on(plan, options, None)
    }

    /// Opens a plan with its model, to run on a device, or on the CPU if there is none.
    ///
    /// # Errors
    /// As [`Session::open`]; and the plan has no kernels for the device, or the device is too small.
    pub fn open_on(
        plan: &Path,
        options: &OpenOptions,
        backend: Option<Box<dyn Backend>>,
    ) -> Result<Session, Diagnostic> {
        let name = plan.display().to_string();
        let bytes = PlanBytes::open(map(plan)?, &name)?;
        let (graph, tables, _) = bytes.verified()?;
        let paths = file_paths(&tables, &model_path(&tables, plan, options.model.as_deref()))?;
        let files = model_files(&tables, &paths)?;
        let verified = if options.verify { verified(&bytes, &name)? } else { Vec::new() };
        if options.contents {
            check_contents(&tables, &files, &name)?;
        }
        let runner = match backend {
            None => on_cpu(&graph, &tables, files, options)?,
            Some(backend) => Box::new(DeviceExecutor::new(&graph, &tables, &files, backend)?),
        };
        let entries = entries(&graph, &tables, &*runner, &name)?;
        let plan_hash = blake3::hash(&map(plan)?).to_hex().to_string();
        let facts = Facts {
            plan_hash,
            device: runner.device(),
            launches: entries.first().map_or(0, |entry| runner.kernel_count(entry.index)),
            files: paths,
            verified,
            ..facts(&tables, &entries, &name)?
        };
        Ok(Session {
            facts,
            runner,
            entries,
            position: 0,
            last: None,
            logits: Vec::new(),
            greedy: Vec::new(),
            taps: Taps::default(),
            plan: bytes,
        })
    }
}

/// Checks the certificate, and that the kernels are those of the launches; gives what was proved by what.
fn verified(bytes: &PlanBytes<Mmap>, name: &str) -> Result<Vec<String>, Diagnostic> {
    let (graph, plan, _) = bytes.verified()?;
    let proved = bytes.proved(Exact::rules())?;
    let kernels = check_kernels(&graph, &plan, name)?;
    let steps = proved.iter().flat_map(|report| Reasons::of_certificate(report).lines());
    let of_kernels = (kernels > 0).then(|| format!("{kernels} kernels are those of the launches, texts unproved"));
    Ok(steps.chain(Reasons::of_launches(&graph, &plan).lines()).chain(of_kernels).collect())
}

fn on_cpu(
    graph: &Graph<'_>,
    plan: &Plan<'_>,
    files: Vec<FileBytes>,
    options: &OpenOptions,
) -> Result<Box<dyn Runner>, Diagnostic> {
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = options.threads.unwrap_or_else(cores);
    let isa = options.isa.unwrap_or_else(Isa::best);
    Ok(Box::new(Executor::new(graph, plan, files, threads, isa)?))
}

fn map(path: &Path) -> Result<Mmap, Diagnostic> {
    let refused = |error: std::io::Error| {
        Diagnostic::new(codes::FILE_OPEN, "a file cannot be opened or mapped")
            .at(Place::file(path.display().to_string()))
            .wanted("a file that can be read", error)
            .help("check the path and its permissions")
    };
    let file = File::open(path).map_err(refused)?;
    // SAFETY: the mapping is private to this process and read-only; that nobody cuts or rewrites the file while it
    // runs is asked of the user, as of every reader of mapped models.
    unsafe { Mmap::map(&file) }.map_err(refused)
}

/// The model's files in the order of the plan, each checked against it.
fn model_files(plan: &Plan<'_>, paths: &[PathBuf]) -> Result<Vec<FileBytes>, Diagnostic> {
    let files = plan.files.iter().zip(paths);
    files
        .map(|(row, path)| {
            let bytes = map(path)?;
            check_file(row, path, &bytes)?;
            Ok(Box::new(bytes) as FileBytes)
        })
        .collect()
}

/// Where the model is: as the user says, or as the plan remembers it, relative to the plan's own folder (that of the file, if
/// the plan is named by a link).
fn model_path(plan: &Plan<'_>, plan_path: &Path, model: Option<&Path>) -> PathBuf {
    let real = plan_path.canonicalize().unwrap_or_else(|_| plan_path.to_path_buf());
    let folder = real.parent().unwrap_or(Path::new(""));
    model.map_or_else(|| folder.join(plan.option("model.path").unwrap_or("")), Path::to_path_buf)
}

/// A single file may have any name; several are found by theirs in the model's folder.
fn file_paths(plan: &Plan<'_>, model: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !model.exists() {
        return Err(Diagnostic::new(codes::FILE_OPEN, "the model is not where the plan says")
            .at(Place::file(model.display().to_string()))
            .wanted("the model that the plan was made for", "nothing there")
            .help("name the model with --model PATH"));
    }
    let folder = match model.is_dir() {
        true => model,
        false if plan.files.len() == 1 => return Ok(vec![model.to_path_buf()]),
        false => model.parent().unwrap_or(Path::new("")),
    };
    let files = plan.files.iter();
    Ok(files.map(|row| folder.join(plan.str(row.path))).collect())
}

fn check_file(row: &FileRow, path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let other = |wanted: String, found: String| {
        Diagnostic::new(codes::MODEL_CHANGED, "the plan was made for another model")
            .at(Place::file(path.display().to_string()))
            .wanted(wanted, found)
            .help("name the right model with --model PATH, or compile this one again")
    };
    if bytes.len() as u64 != row.size {
        return Err(other(format!("{} bytes", row.size), format!("{} bytes", bytes.len())));
    }
    let header = blake3::hash(&bytes[..row.header_len as usize]);
    if header.as_bytes() != &row.header_hash {
        let wanted = blake3::Hash::from_bytes(row.header_hash).to_hex();
        return Err(other(format!("a header with BLAKE3 {wanted}"), header.to_hex().to_string()));
    }
    Ok(())
}

/// Compares the bytes of all files with the hash that the plan holds.
fn check_contents(plan: &Plan<'_>, files: &[FileBytes], name: &str) -> Result<(), Diagnostic> {
    let Some(wanted) = plan.option(CONTENTS) else {
        return Err(Diagnostic::new(codes::PLAN_FACT, "the plan has no hash of the weights")
            .at(Place::file(name))
            .help("compile the model with `ds4c compile --contents`"));
    };
    let found = contents_hash(files.iter().map(|file| (**file).as_ref()), |_| ());
    if found == wanted {
        return Ok(());
    }
    Err(Diagnostic::new(codes::MODEL_CHANGED, "the weights are not those that the plan was made for")
        .at(Place::file(name))
        .wanted(format!("contents with BLAKE3 {wanted}"), found)
        .help("name the right model with --model PATH, or compile this one again"))
}

/// The entry points with what their steps give, ascending by columns.
fn entries(graph: &Graph<'_>, plan: &Plan<'_>, runner: &dyn Runner, name: &str) -> Result<Vec<Entry>, Diagnostic> {
    let missing = |what: &str| {
        Diagnostic::new(codes::PLAN_FACT, format!("the plan lacks {what}"))
            .at(Place::file(name))
            .help("compile the model again with `ds4c compile`")
    };
    let mut entries = Vec::new();
    for (index, row) in plan.entries.iter().enumerate() {
        let reader = |name: &str, ty: Type| {
            let value = graph.output(name).ok_or_else(|| missing(&format!("the output `{name}`")))?;
            let reader = runner.readers(graph, plan, index, &[value]).pop().flatten();
            reader.filter(|r| r.ty == ty).ok_or_else(|| missing(&format!("memory for `{name}`")))
        };
        let answer = match gives_greedy(plan) {
            false => Answer::Logits(reader("logits", Type::F32)?),
            true => Answer::Greedy { tokens: reader("greedy", Type::I32)?, peak: reader("peak", Type::F32)? },
        };
        let width = Width { columns: row.columns as usize, outputs: row.outputs as usize };
        entries.push(Entry { index, width, answer });
    }
    entries.sort_by_key(|e| e.width.columns);
    match entries.is_empty() {
        true => Err(missing("entry points")),
        false => Ok(entries),
    }
}

/// Whether steps give the most probable tokens alone.
fn gives_greedy(plan: &Plan<'_>) -> bool {
    plan.option("head") == Some("greedy")
}

/// What the plan says of its model; the machine's part is filled in by the caller.
fn facts(plan: &Plan<'_>, entries: &[Entry], name: &str) -> Result<Facts, Diagnostic> {
    let option = |key: &str| plan.option(key).unwrap_or("");
    let vocabulary = option("model.vocab_size").parse().map_err(|_| {
        Diagnostic::new(codes::PLAN_FACT, "the plan lacks the vocabulary's size")
            .at(Place::item(name, "option model.vocab_size"))
            .wanted("a number", option("model.vocab_size"))
            .help("compile the model again with `ds4c compile`")
    })?;
    let (narrow, wide) = (entries.len().saturating_sub(2), entries.len() - 1);
    let model_name = Some(option("model.name")).filter(|n| !n.is_empty());
    Ok(Facts {
        plan: name.into(),
        plan_hash: String::new(),
        model: model_name.unwrap_or(option("model.path")).into(),
        files: Vec::new(),
        vocabulary,
        greedy: gives_greedy(plan),
        context: plan.context[0] as usize,
        decode: entries[narrow].width,
        prefill: entries[wide].width,
        begin: option("model.bos").parse().ok(),
        end: option("model.eos").split(',').filter_map(|id| id.trim().parse().ok()).collect(),
        device: String::new(),
        launches: 0,
        verified: Vec::new(),
    })
}
