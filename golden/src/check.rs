//! The kernel suite on a device: every case, every step, every compared tensor, bit by bit.
//!
//! A case runs twice: as a whole, with only its outputs looked at, as a model's steps run; then again from the beginning,
//! launch by launch, with everything looked at that it compares. A case whose values are fused runs as a whole three times, for
//! each device profile; on a device the launches are written down, must be the same each time, and every kernel has to be among
//! them. What is found is compared with the golden files' hashes. Only
//! where a hash differs, the evaluator says which elements do; if it does not give the golden words itself, that is said
//! instead, since then nobody knows what is right.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ds4_compiler::fuse::Profile;
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::numerics::order::plain::key;
use ds4_ir::plan::Plan;
use ds4_ir::{Diagnostic, Place, Step, Type, Value};
use ds4_kernels::Target;
use ds4_runtime::cpu::exec::{Executor, FileBytes};
use ds4_runtime::cpu::products::Isa;
use ds4_runtime::device::backend::Backend;
use ds4_runtime::device::exec::DeviceExecutor;
use ds4_runtime::reader::View;
use ds4_runtime::session::Runner;

use crate::cases::{Case, Feed};
use crate::expect::{CaseRow, StepRow, TensorRow, evaluate};
use crate::seen::{Look, Seen};
use crate::shared::Shared;
use crate::trace::{Trace, Traced};

/// How often a fused case runs as a whole.
const REPLAYS: usize = 3;

/// What runs the cases.
#[derive(Clone)]
pub enum Device {
    /// The CPU's executor.
    Cpu {
        /// Threads, the caller's included.
        threads: usize,
        /// Instruction-set level.
        isa: Isa,
    },
    /// A device that takes kernels as text.
    Backend(Shared),
}

/// How a case was run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// All launches of a step at once.
    Whole,
    /// Launch by launch.
    Watched,
}

/// What running a case gave.
pub struct Found {
    /// Kernels that a step launches.
    pub kernels: usize,
    /// The tensors, in this way after the step with this number.
    pub tensors: Vec<(Way, usize, Seen)>,
    /// Compiling and loading.
    pub prepare: Duration,
    /// Running and reading back.
    pub run: Duration,
}

/// What became of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every tensor has the golden words.
    Equal,
    /// Tensors differ.
    Different(Vec<Difference>),
    /// The golden files lack the case, or have it with other steps or tensors.
    Unknown(String),
    /// It did not run to its end.
    Failed(String),
}

/// A tensor with other words than it should have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Who differs from the golden file.
    pub whose: Whose,
    /// The step, counted from 0.
    pub step: usize,
    /// Its scalars.
    pub scalars: Step,
    /// Its name.
    pub tensor: String,
    /// The first element that differs; `None` if only the hash says so.
    pub element: Option<Element>,
    /// How many elements differ, of how many; not known of a hash alone.
    pub wrong: Option<[usize; 2]>,
}

/// Who differs from the golden file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// The device: evaluator and golden file agree.
    Device(Way),
    /// The evaluator: the case, the contract or the file has changed.
    Evaluator,
}

/// An element that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// Its index along each axis.
    pub index: Vec<usize>,
    /// Type of the tensor.
    pub ty: Type,
    /// The golden bits.
    pub wanted: u32,
    /// Those that were found.
    pub found: u32,
}

/// A case in the report.
pub struct Row {
    /// Its family.
    pub family: String,
    /// Its name.
    pub case: String,
    /// Kernels that a step launches, in all forms.
    pub kernels: usize,
    /// Elements that were compared, in all steps and both ways.
    pub elements: usize,
    /// Compiling and loading.
    pub prepare: Duration,
    /// Running and reading back.
    pub run: Duration,
    /// The form that the verdict is about, if it is not about all.
    pub form: String,
    /// What became of it.
    pub verdict: Verdict,
}

impl Device {
    /// The device with a name: the CPU with all its threads and its widest instruction set, or an opened backend.
    ///
    /// # Errors
    /// The device cannot be had.
    pub fn open(name: &str) -> Result<Device, Diagnostic> {
        Ok(match crate::devices::open(name)? {
            Some(backend) => Device::Backend(Shared::new(backend)),
            None => {
                let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
                Device::Cpu { threads, isa: Isa::best() }
            }
        })
    }

    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Device::Cpu { threads: 1, isa } => format!("cpu, 1 thread, {}", isa.name()),
            Device::Cpu { threads, isa } => format!("cpu, {threads} threads, {}", isa.name()),
            Device::Backend(shared) => shared.name().into(),
        }
    }

    fn targets(&self) -> Vec<Target> {
        match self {
            Device::Cpu { .. } => Vec::new(),
            Device::Backend(shared) => vec![shared.target()],
        }
    }

    fn runner(&self, graph: &Graph<'_>, plan: &Plan<'_>, case: &Case) -> Result<(Box<dyn Runner>, Log), Diagnostic> {
        let files: Vec<FileBytes> = vec![Box::new(case.weights.bytes().to_vec())];
        Ok(match self {
            Device::Cpu { threads, isa } => (Box::new(Executor::new(graph, plan, files, *threads, *isa)?), None),
            Device::Backend(shared) => {
                let (traced, trace) = Traced::new(Box::new(shared.clone()));
                (Box::new(DeviceExecutor::new(graph, plan, &files, Box::new(traced))?), Some(trace))
            }
        })
    }

    /// Runs a case in both ways, in one of its forms.
    ///
    /// # Errors
    /// The device refuses a kernel or its memory, or was lost; a kernel of a fused form did not run.
    pub fn run(&self, case: &Case, fusion: Option<&Profile>) -> Result<Found, Diagnostic> {
        let start = Instant::now();
        let (tables, graph) = (case.plan(&self.targets(), fusion)?, case.graph.view());
        let plan = tables.view();
        let (runner, log) = self.runner(&graph, &plan, case)?;
        let looks = looks(&graph, &plan, &*runner, case)?;
        let prepare = start.elapsed();
        let mut run = Run { graph, plan, runner, case, looks };
        let start = Instant::now();
        let (mut tensors, mut replays) = (Vec::new(), Vec::new());
        let wholes = if fusion.is_some() { REPLAYS } else { 1 };
        for way in std::iter::repeat_n(Way::Whole, wholes).chain([Way::Watched]) {
            run.runner.clear_states();
            for (i, feed) in case.feeds.iter().enumerate() {
                let seen = match way {
                    Way::Whole => run.whole(feed)?,
                    Way::Watched => run.watched(feed)?,
                };
                tensors.extend(seen.into_iter().map(|seen| (way, i, seen)));
            }
            replays.extend(log.as_ref().map(|trace| trace.borrow_mut().take()));
        }
        if let (Some(profile), Some(trace)) = (fusion, &log) {
            ran(case, profile, &replays[..REPLAYS], &trace.borrow())?;
        }
        Ok(Found { kernels: run.runner.kernel_count(0), tensors, prepare, run: start.elapsed() })
    }

    /// Runs a case and compares what it gives with its golden row.
    pub fn check(&self, case: &Case, golden: Option<&CaseRow>) -> Row {
        let mut row = Row {
            family: case.family.into(),
            case: case.name.clone(),
            kernels: 0,
            elements: 0,
            prepare: Duration::ZERO,
            run: Duration::ZERO,
            form: String::new(),
            verdict: Verdict::Unknown("the golden file lacks the case".into()),
        };
        let Some(golden) = golden else { return row };
        let forms = match case.forms() {
            Ok(forms) => forms,
            Err(diagnostic) => return Row { verdict: Verdict::Failed(diagnostic.to_string()), ..row },
        };
        for form in forms {
            row.verdict = match self.run(case, form.as_ref()) {
                Ok(found) => {
                    row.kernels += found.kernels;
                    row.elements += found.tensors.iter().map(|(_, _, seen)| seen.words.len()).sum::<usize>();
                    row.prepare += found.prepare;
                    row.run += found.run;
                    compare(case, golden, &found)
                }
                Err(diagnostic) => Verdict::Failed(diagnostic.to_string()),
            };
            if row.verdict != Verdict::Equal {
                row.form = form.map_or(String::new(), |profile| format!("fused for {}", profile.name));
                break;
            }
        }
        row
    }
}

/// What a device was told to run, if there is one.
type Log = Option<Rc<RefCell<Trace>>>;

/// An error unless every kernel of a fused case ran, and the same launches each time.
fn ran(case: &Case, profile: &Profile, replays: &[Vec<crate::trace::Ran>], trace: &Trace) -> Result<(), Diagnostic> {
    let fault = |wanted: &str, found: String| {
        Diagnostic::new(codes::PLAN_FACT, "the launches of a fused case are not what they should be")
            .at(Place::item(case.family, format!("{}, fused for {}", case.name, profile.name)))
            .wanted(wanted, found)
            .help("this is a fault of ours, please report it")
    };
    let first = &replays[0];
    if let Some(other) = replays.iter().find(|other| *other != first) {
        return Err(fault("the same launches at every replay", format!("{} and {}", first.len(), other.len())));
    }
    let kernels: BTreeSet<u32> = first.iter().map(|(kernel, _)| *kernel).collect();
    match trace.idle(&kernels).split_first() {
        None => Ok(()),
        Some((name, rest)) => Err(fault("every kernel to run", format!("not {name}, nor {} others", rest.len()))),
    }
}

fn looks(graph: &Graph<'_>, plan: &Plan<'_>, runner: &dyn Runner, case: &Case) -> Result<Vec<Look>, Diagnostic> {
    let look = |(name, value): (String, Value)| {
        Look::of(graph, plan, runner, &name, value).ok_or_else(|| {
            Diagnostic::new(codes::TAP_UNMATCHED, "a compared value has no memory")
                .at(Place::item(case.family, format!("{}, `{name}`", case.name)))
                .help("this is a fault of ours, please report it")
        })
    };
    case.compared().into_iter().map(look).collect()
}

/// A case on a runner.
struct Run<'a> {
    graph: Graph<'a>,
    plan: Plan<'a>,
    runner: Box<dyn Runner>,
    case: &'a Case,
    looks: Vec<Look>,
}

impl Run<'_> {
    /// The outputs after a step that ran as a whole.
    fn whole(&mut self, feed: &Feed) -> Result<Vec<Seen>, Diagnostic> {
        self.runner.run(&self.graph, &self.plan, 0, feed.step, &feed.tokens, None)?;
        let mut all = Vec::new();
        for look in &self.looks[..self.case.outputs()] {
            if let Some(reader) = look.reader() {
                self.runner.output(&self.graph, reader, feed.step)?;
            }
            all.extend(look.see(&self.graph, feed.step, self.runner.view()));
        }
        Ok(all)
    }

    /// All compared values of a step, each as it was behind the last launch that wrote it.
    fn watched(&mut self, feed: &Feed) -> Result<Vec<Seen>, Diagnostic> {
        let mut seen: Vec<Vec<Seen>> = vec![Vec::new(); self.looks.len()];
        let mut look_at = |value: Value, view: View<'_>| {
            for (look, seen) in self.looks.iter().zip(&mut seen).filter(|(look, _)| look.is_written_by(value)) {
                *seen = look.see(&self.graph, feed.step, view);
            }
        };
        self.runner.run(&self.graph, &self.plan, 0, feed.step, &feed.tokens, Some(&mut look_at))?;
        Ok(seen.concat())
    }
}

/// Compares what a case gave with its golden row.
pub fn compare(case: &Case, golden: &CaseRow, found: &Found) -> Verdict {
    let steps: Vec<_> = golden.steps.iter().map(|step| [step.position, step.columns, step.outputs]).collect();
    let feeds = case.feeds.iter().map(|feed| feed.step).map(|step| [step.position, step.columns, step.outputs]);
    if !feeds.eq(steps) {
        return Verdict::Unknown("the golden file has the case with other steps".into());
    }
    let mut evaluated = None;
    let mut differences = Vec::new();
    for (way, step, seen) in &found.tensors {
        let Some(row) = golden.steps[*step].tensor(&seen.name) else {
            return Verdict::Unknown(format!("the golden file lacks `{}`", seen.name));
        };
        if row.is_equal(seen) {
            continue;
        }
        let evaluated = match evaluated.get_or_insert_with(|| evaluate(case)) {
            Ok(steps) => steps[*step].iter().find(|tensor| tensor.name == seen.name),
            Err(diagnostic) => return Verdict::Failed(diagnostic.to_string()),
        };
        let comparable = |wanted: &&Seen| wanted.extents == seen.extents && wanted.ty == seen.ty;
        let Some(wanted) = evaluated.filter(comparable) else {
            let found = format!("{}{:?}", seen.ty.name(), seen.extents);
            return Verdict::Failed(format!("`{}` is {found}, which is not what the evaluator gives", seen.name));
        };
        let (whose, (element, wrong)) = match row.is_equal(wanted) {
            true => (Whose::Device(*way), differing(row, wanted, seen)),
            false => (Whose::Evaluator, (differing_first(row, wanted), None)),
        };
        let (scalars, tensor) = (case.feeds[*step].step, seen.name.clone());
        let found = Difference { whose, step: *step, scalars, tensor, element, wrong };
        // The evaluator's fault shows in both ways and is one.
        if !differences.contains(&found) {
            differences.push(found);
        }
    }
    let all: usize = golden.steps.iter().map(|step| step.tensors.len()).sum();
    let watched = found.tensors.iter().filter(|(way, ..)| *way == Way::Watched).count();
    match differences.is_empty() {
        true if all == watched => Verdict::Equal,
        true => Verdict::Unknown(format!("the golden file has {all} tensors, the case {watched}")),
        false => Verdict::Different(differences),
    }
}

impl StepRow {
    fn tensor(&self, name: &str) -> Option<&TensorRow> {
        self.tensors.iter().find(|row| row.name == name)
    }
}

/// The first of the words that are written down which the evaluator does not give.
fn differing_first(row: &TensorRow, wanted: &Seen) -> Option<Element> {
    let (golden, now) = (row.first_words(), wanted.compared(&wanted.absent));
    let i = golden.iter().zip(&now).position(|(golden, now)| golden != now)?;
    Some(Element::at(wanted, i, golden[i], now[i]))
}

/// The first element that differs from the evaluator's, and how many do, of how many.
fn differing(row: &TensorRow, wanted: &Seen, seen: &Seen) -> (Option<Element>, Option<[usize; 2]>) {
    let absent = row.absent(seen.words.len());
    let (wanted, found) = (wanted.compared(&absent), seen.compared(&absent));
    let wrong: Vec<usize> = (0..found.len()).filter(|&i| wanted[i] != found[i]).collect();
    let element = wrong.first().map(|&i| Element::at(seen, i, wanted[i], found[i]));
    (element, Some([wrong.len(), found.len()]))
}

impl Element {
    fn at(tensor: &Seen, mut i: usize, wanted: u32, found: u32) -> Element {
        let mut index = vec![0; tensor.extents.len()];
        for (at, &extent) in index.iter_mut().zip(&tensor.extents).rev() {
            *at = i % extent;
            i /= extent;
        }
        Element { index, ty: tensor.ty, wanted, found }
    }

    /// Floats between the wanted and the found one, the last included; `None` if one of them is NaN or they are no floats.
    pub fn ulps(&self) -> Option<u64> {
        let [wanted, found] = [self.wanted, self.found].map(f32::from_bits);
        let comparable = self.ty == Type::F32 && !wanted.is_nan() && !found.is_nan();
        comparable.then(|| i64::from(key(wanted)).abs_diff(i64::from(key(found))))
    }
}
