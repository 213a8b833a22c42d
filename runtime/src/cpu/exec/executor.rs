//! The executor: arenas, threads, and the programs of the entry points.

use std::cell::UnsafeCell;

use ds4_ir::diagnostic::codes;
use ds4_ir::graph::Graph;
use ds4_ir::plan::Plan;
use ds4_ir::{Diagnostic, Place, Step, Value};
use memmap2::MmapMut;

use super::access::Ptr;
use super::entry::{self, Program};
use super::kernel::{FaultKind, Faults, Scratch, StepView};
use super::weights::{Tensor, tensors};
use super::width::Width;
use super::wire::Memory;
use crate::cpu::products::Isa;
use crate::cpu::team::Team;
#[cfg(test)]
use crate::reader::readers;
use crate::reader::{Observer, View, anonymous};

/// Work that takes less than this stays on the calling thread: some ten lines of memory go from core to core and back for
/// what is shared, each in a fifth of a microsecond where the cores share little.
const SHARED_NANOSECONDS: usize = 20_000;

/// Bytes of a checkpoint file, mapped or owned.
pub type FileBytes = Box<dyn AsRef<[u8]> + Send + Sync>;

/// Executes the entry points of a plan on the CPU.
///
/// The executor owns all memory that its kernels point into; nothing is allocated while steps run, but for scratch
/// that grows to what the largest launch needs.
pub struct Executor {
    programs: Vec<Program>,
    tensors: Vec<Tensor>,
    arena: MmapMut,
    state: MmapMut,
    team: Team,
    scratches: Vec<Worker>,
    faults: Faults,
    isa: Isa,
    /// Launches that take less stay on the calling thread, in nanoseconds.
    share_above: usize,
    /// Words of the constants and bytes of the checkpoint, which kernels point into.
    _constants: Vec<u32>,
    _files: Vec<FileBytes>,
}

/// The scratch of one worker.
struct Worker(UnsafeCell<Scratch>);

// SAFETY: worker `i` of the team, and only it, uses entry `i`, and a launch ends before the next begins.
unsafe impl Sync for Worker {}

/// Memory of which nothing is read or written: for the first pass, which only finds what needs memory.
const NOWHERE: Ptr = Ptr(std::ptr::null_mut());

impl Executor {
    /// Prepares the entry points of a plan. `graph` and `plan` have been verified together; `files` are the plan's
    /// files, in order, each at least as long as the plan says.
    ///
    /// # Errors
    /// The machine refuses memory or threads, or a launch has no kernel.
    pub fn new(
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        files: Vec<FileBytes>,
        threads: usize,
        isa: Isa,
    ) -> Result<Executor, Diagnostic> {
        Executor::keeping(graph, plan, files, threads, isa, &[])
    }

    /// The same; what a step stores of these values stays until the next one.
    pub(crate) fn keeping(
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        files: Vec<FileBytes>,
        threads: usize,
        isa: Isa,
        lasting: &[Value],
    ) -> Result<Executor, Diagnostic> {
        let bytes: Vec<&[u8]> = files.iter().map(|f| (**f).as_ref()).collect();
        check_files(plan, &bytes)?;
        let tensors = tensors(graph, plan, &bytes);
        let constants = graph.constant_words.to_vec();
        let mut memory = Memory {
            arena: NOWHERE,
            state: NOWHERE,
            constants: Ptr(constants.as_ptr().cast::<u8>().cast_mut()),
            tensors: &tensors,
        };
        let rows = plan.entries.iter();
        let schedules: Vec<_> =
            rows.map(|row| entry::schedule(graph, plan, row, memory, lasting)).collect::<Result<_, _>>()?;
        let arena_bytes = schedules.iter().map(|schedule| schedule.arena_bytes).max();
        let states = plan.state_places.iter().map(|p| p.offset + p.bytes);
        let mut arena = anonymous(arena_bytes.unwrap_or(0))?;
        let mut state = anonymous(states.max().unwrap_or(0))?;
        memory.arena = Ptr(arena.as_mut_ptr());
        memory.state = Ptr(state.as_mut_ptr());
        let programs = plan.entries.iter().zip(&schedules);
        let programs = programs
            .map(|(row, made)| entry::program(graph, plan, row, made, memory, lasting))
            .collect::<Result<_, _>>()?;
        let team = Team::new(threads).map_err(no_threads)?;
        let scratches = (0..team.workers()).map(|_| Worker(UnsafeCell::default()));
        Ok(Executor {
            programs,
            arena,
            state,
            scratches: scratches.collect(),
            team,
            faults: Faults::default(),
            isa,
            share_above: SHARED_NANOSECONDS,
            _constants: constants,
            tensors,
            _files: files,
        })
    }

    /// Threads that work, the caller's included.
    pub fn threads(&self) -> usize {
        self.team.workers()
    }

    /// The instruction-set level.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Pieces of work of a step at an entry point.
    pub fn kernel_count(&self, entry: usize) -> usize {
        self.programs[entry].work.len()
    }

    /// Runs a step at entry point `entry` of the plan; `after(value, executor's memory)` is called behind each
    /// kernel with the value that it stored.
    ///
    /// # Errors
    /// An id selects no row, or a stored integer is too large; memory of the step is then undefined, and states
    /// hold what the step may write again.
    pub fn run(
        &mut self,
        graph: &Graph<'_>,
        entry: usize,
        step: Step,
        tokens: &[u32],
        after: Option<&mut Observer<'_>>,
    ) -> Result<(), Diagnostic> {
        let program = &mut self.programs[entry];
        program.extents.evaluate(graph, step);
        let view = StepView {
            values: program.extents.values(),
            tokens,
            isa: self.isa,
            width: Width::of(self.isa),
            faults: &self.faults,
            tensors: &self.tensors,
        };
        let pool = Pool { scratches: &self.scratches, share_above: self.share_above };
        match after {
            None => {
                for &work in &program.work {
                    run_kernel(program.kernel(work), &view, &mut self.team, pool)?;
                }
            }
            Some(after) => {
                for prepared in &program.kernels {
                    run_kernel(&*prepared.kernel, &view, &mut self.team, pool)?;
                    let memory = View { arena: &self.arena, state: &self.state };
                    after(prepared.value, memory);
                }
            }
        }
        match self.faults.take() {
            None => Ok(()),
            Some((kind, value)) => Err(fault(graph, kind, value)),
        }
    }

    /// Divides every launch over the threads, however small.
    #[cfg(test)]
    pub(crate) fn always_share(&mut self) {
        self.share_above = 0;
    }

    /// Exchanges the kernels of two values.
    #[cfg(test)]
    pub(crate) fn swap_kernels(&mut self, entry: usize, a: Value, b: Value) {
        let kernels = &mut self.programs[entry].kernels;
        let at = |v| kernels.iter().position(|prepared| prepared.value == v);
        if let (Some(a), Some(b)) = (at(a), at(b)) {
            kernels.swap(a, b);
        }
    }

    /// The words of a value after a step.
    #[cfg(test)]
    pub(crate) fn value_words(
        &self,
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        entry: usize,
        v: Value,
        step: Step,
    ) -> Vec<u32> {
        let mut words = Vec::new();
        if let Some(Some(reader)) = readers(graph, plan, entry, self.slots(entry), &[v]).first() {
            reader.read(graph.dims, step, self.view(), &mut words);
        }
        words
    }

    /// The slots of an entry point.
    pub(crate) fn slots(&self, entry: usize) -> &[ds4_ir::plan::SlotRow] {
        &self.programs[entry].slots
    }

    /// The memory of intermediate values and states.
    pub(crate) fn view(&self) -> View<'_> {
        View { arena: &self.arena, state: &self.state }
    }

    /// Sets all states to their beginning.
    pub fn clear_states(&mut self) {
        self.state.fill(0);
    }
}

/// What a kernel runs with.
#[derive(Clone, Copy)]
struct Pool<'a> {
    scratches: &'a [Worker],
    share_above: usize,
}

fn run_kernel(
    kernel: &dyn super::kernel::Kernel,
    view: &StepView<'_>,
    team: &mut Team,
    pool: Pool<'_>,
) -> Result<(), Diagnostic> {
    let scratches = pool.scratches;
    let size = kernel.size(view);
    if size.tasks == 0 {
        return Ok(());
    }
    if size.tasks == 1 || size.nanoseconds < pool.share_above || team.workers() == 1 {
        // SAFETY: worker 0 is the caller, and no piece of work is being done.
        let scratch = unsafe { &mut *scratches[0].0.get() };
        kernel.run(view, scratch, 0..size.tasks);
        return Ok(());
    }
    let work = |worker: usize, tasks| {
        // SAFETY: each worker has its own scratch.
        let scratch = unsafe { &mut *scratches[worker].0.get() };
        kernel.run(view, scratch, tasks);
    };
    team.run(size.tasks, work).map_err(|_| {
        Diagnostic::new(codes::WORKER_FAILED, "a thread of the executor failed")
            .help("its message is above; this is a fault of ours, please report it")
    })
}

/// Files that end before the plan's bytes do would be read beyond their end.
pub(crate) fn check_files(plan: &Plan<'_>, files: &[&[u8]]) -> Result<(), Diagnostic> {
    for (row, bytes) in plan.files.iter().zip(files) {
        if (bytes.len() as u64) < row.size {
            return Err(Diagnostic::new(
                codes::MODEL_CHANGED,
                "a file of the model is shorter than when the plan was made",
            )
            .at(Place::file(plan.str(row.path)))
            .wanted(format!("{} bytes", row.size), format!("{} bytes", bytes.len()))
            .help("compile the model again, or restore the file"));
        }
    }
    assert_eq!(plan.files.len(), files.len(), "the caller maps every file of the plan");
    Ok(())
}

fn no_threads(error: std::io::Error) -> Diagnostic {
    Diagnostic::new(codes::THREADS, "the system refuses a thread")
        .wanted("the threads that were asked for", error)
        .help("ask for fewer with --threads")
}

fn fault(graph: &Graph<'_>, kind: FaultKind, value: Value) -> Diagnostic {
    let path = graph.span_path(graph.value_span[value.0 as usize]);
    let message = match kind {
        FaultKind::Id => "an id selects a row that does not exist",
        FaultKind::Integer => "a stored integer does not fit 32 bits",
    };
    Diagnostic::new(codes::ID_OUTSIDE, message)
        .at(Place::item("the step", format!("{value} (`{}`) in `{path}`", graph.op(value).name())))
        .help("the model's integer tables are damaged, or the compiler is at fault")
}
