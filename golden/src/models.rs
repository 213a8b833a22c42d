//! Whole models on a device: the hashes of their logits, whatever the steps.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ds4_compiler::frame::Form;
use ds4_compiler::fuse::Profile;
use ds4_compiler::lower::Activations;
use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};
use ds4_kernels::Target;
use ds4_runtime::device::backend::Backend;
use ds4_runtime::session::{OpenOptions, Session};

use crate::data;
use crate::devices;
use crate::oracle::read_npz;
use crate::run::{Source, TINY, expected};
use crate::trace::{Trace, Traced};

/// Tokens of the short comparison, and of the long one.
pub const LENGTHS: [usize; 2] = [40, 300];
/// Below this crate: for each case, the hash of the logits of each length.
const FILE: &str = "hashes/logits.json";

/// A model with a kind of activations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// `tiny-k q8`
    pub name: String,
    /// Path of the checkpoint below this crate.
    pub path: &'static str,
    /// What its products with quantised weights take.
    pub activations: Activations,
}

/// All models that stand in this repository, with each kind of activations that they take.
///
/// # Errors
/// A checkpoint is missing or damaged.
pub fn cases() -> Result<Vec<Case>, Diagnostic> {
    let kjv = [("kjv-9m-q8", "models/kjv-9m/model.q8.gguf"), ("kjv-9m-q2", "models/kjv-9m/model.q2.gguf")];
    let mut cases = Vec::new();
    for (name, path) in TINY.into_iter().chain(kjv) {
        let source = Source::open(path)?;
        let mut add = |activations, text| {
            cases.push(Case { name: format!("{name} {text}"), path, activations });
        };
        add(Activations::F32, "f32");
        if source.model.weights.reference.iter().any(|w| w.format.takes_q8()) {
            add(Activations::Q8, "q8");
        }
    }
    Ok(cases)
}

impl Case {
    /// The plan, in `folder`, in this form.
    ///
    /// # Errors
    /// The checkpoint is missing or damaged, or the plan cannot be written.
    pub fn plan(&self, folder: &Path, form: &Form<'_>) -> Result<PathBuf, Diagnostic> {
        let source = Source::open(self.path)?;
        let options = source.options(|o| {
            o.activations = Some(self.activations);
            o.context = o.context.min(512);
            o.prefill = LENGTHS[1] as u32;
        });
        source.plan_for(folder, &options, form)
    }

    /// The model on a device, or on the CPU if there is none.
    ///
    /// # Errors
    /// As [`Case::plan`]; or the device refuses.
    pub fn session(&self, plan: &Path, backend: Option<Box<dyn Backend>>) -> Result<Session, Diagnostic> {
        Session::open_on(plan, &OpenOptions::default(), backend)
    }

    /// 300 tokens: those of the oracle, or for trained models drawn ones, repeated as far as needed.
    ///
    /// # Errors
    /// The oracle's file is missing or damaged.
    pub fn tokens(&self) -> Result<Vec<u32>, Diagnostic> {
        if !self.path.starts_with("oracle") {
            return Ok((0..LENGTHS[1] as u32).map(|i| (i * 37 + i * i * 11) % 1000).collect());
        }
        let file = expected(self.path).join("expected.npz");
        let arrays = read_npz(&file).map_err(|fault| {
            Diagnostic::new(codes::FILE_OPEN, "the oracle's values cannot be read")
                .at(Place::file(file.display().to_string()))
                .wanted("the file of this repository", fault)
        })?;
        Ok(arrays["tokens"].ids().iter().copied().cycle().take(LENGTHS[1]).collect())
    }
}

/// BLAKE3 of the logits of all tokens, fed in steps of these widths, over and over.
///
/// # Errors
/// A step fails.
pub fn logits_hash(session: &mut Session, tokens: &[u32], widths: &[usize]) -> Result<String, Diagnostic> {
    session.reset();
    let mut hasher = blake3::Hasher::new();
    let (mut at, mut step) = (0, 0);
    while at < tokens.len() {
        let width = widths[step % widths.len()].min(tokens.len() - at);
        session.step(&tokens[at..at + width], width)?;
        for logit in session.logits() {
            hasher.update(&logit.to_bits().to_le_bytes());
        }
        (at, step) = (at + width, step + 1);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Tokens and widths of steps: short sequences as one step, one by one, and in steps of one to eight columns; then long ones.
pub const FEEDS: [(usize, &[usize]); 5] = [
    (LENGTHS[0], &[LENGTHS[0]]),
    (LENGTHS[0], &[1]),
    (LENGTHS[0], &[1, 2, 3, 4, 5, 6, 7, 8]),
    (LENGTHS[1], &[LENGTHS[1]]),
    (LENGTHS[1], &[1]),
];

/// Number of the short ones.
pub const SHORT_FEEDS: usize = 3;

/// How a model is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thorough {
    /// How many of [`FEEDS`].
    pub feeds: usize,
    /// How often each is fed, from the beginning.
    pub replays: usize,
}

/// Each short feed once.
pub const SHORT: Thorough = Thorough { feeds: SHORT_FEEDS, replays: 1 };

/// One comparison of a model with its stored hash.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// Tokens that were fed.
    pub tokens: usize,
    /// Widths of the steps, over and over.
    pub widths: &'static [usize],
    /// Whether the logits had the stored hash whenever they were fed, and the same launches ran each time.
    pub equal: bool,
    /// Launches of each time, as the device took them; 0 on the CPU.
    pub launches: usize,
    /// Seconds of the steps of all times, without opening.
    pub seconds: f64,
}

/// What ran, if there is a device that wrote it down.
type Log = Option<Rc<RefCell<Trace>>>;

/// Feeds a model and compares with its stored hashes; the kernels that ran are added to `ran`.
///
/// # Errors
/// A step fails, or there are no stored hashes.
fn compare(
    case: &Case,
    session: &mut Session,
    how: Thorough,
    log: &Log,
    ran: &mut BTreeSet<u32>,
) -> Result<Vec<Compared>, Diagnostic> {
    let (tokens, hashes) = (case.tokens()?, stored()?);
    let mut found = Vec::new();
    for (length, widths) in FEEDS.into_iter().take(how.feeds) {
        let begin = std::time::Instant::now();
        let wanted = hashes.get(&case.name).and_then(|of_case| of_case.get(&length.to_string()));
        let (mut equal, mut first) = (true, None);
        for _ in 0..how.replays {
            let hash = logits_hash(session, &tokens[..length], widths)?;
            let launches = log.as_ref().map_or(Vec::new(), |trace| trace.borrow_mut().take());
            ran.extend(launches.iter().map(|(kernel, _)| kernel));
            equal &= wanted == Some(&hash) && *first.get_or_insert_with(|| launches.clone()) == launches;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let launches = first.map_or(0, |launches| launches.len());
        found.push(Compared { tokens: length, widths, equal, launches, seconds });
    }
    Ok(found)
}

/// What a model showed on a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The model.
    pub model: String,
    /// The device, as it calls itself.
    pub device: String,
    /// Kernels that a step of one token launches.
    pub launches: usize,
    /// Seconds until it was ready.
    pub opened: f64,
    /// Kernels of the plan, 0 on the CPU.
    pub kernels: usize,
    /// Those that no feed launched: what they compute did not come up.
    pub idle: Vec<String>,
    /// What was compared.
    pub compared: Vec<Compared>,
}

/// Opens a device, puts a model onto it, fused as a profile says or not at all, and compares with its stored hashes.
///
/// # Errors
/// The device cannot be had or refuses, or a step fails.
pub fn compare_on(device: &str, case: &Case, fusion: Option<&Profile>, how: Thorough) -> Result<Row, Diagnostic> {
    let folder = tempfile::tempdir().map_err(no_folder)?;
    let begin = std::time::Instant::now();
    let backend = devices::open(device)?;
    let targets: Vec<Target> = backend.iter().map(|backend| backend.target()).collect();
    let (backend, log) = backend.map(Traced::new).unzip();
    let backend = backend.map(|traced| Box::new(traced) as Box<dyn Backend>);
    let mut session = case.session(&case.plan(folder.path(), &Form { targets: &targets, fusion })?, backend)?;
    let opened = begin.elapsed().as_secs_f64();
    let mut ran = BTreeSet::new();
    let compared = compare(case, &mut session, how, &log, &mut ran)?;
    let (kernels, idle) = log.map_or((0, Vec::new()), |trace| (trace.borrow().kernels(), trace.borrow().idle(&ran)));
    let facts = session.facts();
    let fused = fusion.map_or(String::new(), |profile| format!(", fused for {}", profile.name));
    let model = format!("{}{fused}", case.name);
    Ok(Row { model, device: facts.device.clone(), launches: facts.launches, opened, kernels, idle, compared })
}

impl Row {
    /// Comparisons that failed.
    pub fn failed(&self) -> usize {
        self.compared.iter().filter(|compared| !compared.equal).count()
    }

    /// For people: a line for each comparison.
    pub fn text(&self) -> String {
        let Row { model, device, launches, opened, kernels, idle, .. } = self;
        let mut text = format!("{model} on {device}: ready in {opened:.3} s, {launches} launches for a token\n");
        if *kernels > 0 {
            text += &format!("  {} of {kernels} kernels ran\n", kernels - idle.len());
        }
        for Compared { tokens, widths, equal, launches, seconds } in &self.compared {
            let verdict = if *equal { "equal" } else { "DIFFERENT" };
            let widths = widths.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            text += &format!(
                "  {tokens:>4} tokens in steps of {widths:<16} {launches:>6} launches {seconds:>9.3} s  {verdict}\n"
            );
        }
        text
    }
}

/// For programs: a list of models.
pub fn json(rows: &[Row]) -> String {
    let compared = |c: &Compared| serde_json::json!({ "tokens": c.tokens, "widths": c.widths, "equal": c.equal, "launches": c.launches, "seconds": c.seconds });
    let row = |row: &Row| {
        serde_json::json!({
            "model": row.model,
            "device": row.device,
            "launches_per_decode_step": row.launches,
            "seconds_to_open": row.opened,
            "kernels": row.kernels,
            "idle": row.idle,
            "compared": row.compared.iter().map(compared).collect::<Vec<_>>(),
        })
    };
    format!("{:#}", rows.iter().map(row).collect::<serde_json::Value>())
}

fn no_folder(error: std::io::Error) -> Diagnostic {
    Diagnostic::new(codes::OUTPUT_WRITE, "there is no place for a plan")
        .at(Place::file("the folder of temporary files"))
        .wanted("a folder that can be written", error)
}

/// Hashes by case, then by number of tokens.
pub type Hashes = BTreeMap<String, BTreeMap<String, String>>;

/// The hashes that stand in this repository.
///
/// # Errors
/// Their file is missing or damaged.
pub fn stored() -> Result<Hashes, Diagnostic> {
    let file = data(FILE);
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
    let hashes = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    hashes.map_err(|fault| {
        Diagnostic::new(codes::FILE_OPEN, "the hashes of logits cannot be read")
            .at(Place::file(file.display().to_string()))
            .wanted("the file of this repository", fault)
    })
}

/// Replaces the stored hashes.
///
/// # Errors
/// The file cannot be written.
pub fn store(hashes: &Hashes) -> Result<(), Diagnostic> {
    let text = serde_json::to_string_pretty(hashes).expect("invariant: texts by text have a JSON form");
    ds4_ir::output::write_whole(&data(FILE), format!("{text}\n").as_bytes())
}
