//! Executes the entry points of a plan on one device.
//!
//! ```text
//! fit       whether the plan fits the device, and what would
//! memory    buffers: the weights in their device layout, constants, states, the arena, the step's block
//! weights   the bytes of a tensor as a device stores them
//! program   an entry point as a sequence of dispatches with their grids
//! mod       a step: block and tokens up, dispatches, outputs down
//! ```

mod fit;
mod memory;
mod program;
mod weights;

use ds4_ir::diagnostic::codes;
use ds4_ir::dim::dim_value;
use ds4_ir::graph::Graph;
use ds4_ir::plan::{Plan, SlotRow};
use ds4_ir::{Diagnostic, Op, Place, Step, Value};
use indicatif::{ProgressBar, ProgressStyle};
use memmap2::MmapMut;

use super::backend::{Backend, Function, Piece, Text};
use crate::cpu::exec::{FileBytes, check_files};
use crate::reader::{Observer, Reader, View, anonymous, readers};
use crate::session::Runner;

use memory::Memory;
pub use memory::VALUES_NAME;
use program::Program;

/// Executes the entry points of a plan on a device.
///
/// The host keeps an image of arena and states, into which outputs, and values that somebody looks at, are read back;
/// the rest of it is never touched.
pub struct DeviceExecutor {
    backend: Box<dyn Backend>,
    memory: Memory<'static>,
    programs: Vec<Program>,
    arena: MmapMut,
    state: MmapMut,
    /// Whether the states have to be cleared before the next step.
    stale: bool,
}

impl DeviceExecutor {
    /// Puts a plan onto a device. `graph` and `plan` have been verified together; `files` are the plan's files, in order, each
    /// at least as long as the plan says.
    ///
    /// # Errors
    /// The plan has no kernels for the device, the device is too small or refuses a kernel, or the files are damaged.
    pub fn new(
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        files: &[FileBytes],
        mut backend: Box<dyn Backend>,
    ) -> Result<DeviceExecutor, Diagnostic> {
        let files: Vec<&[u8]> = files.iter().map(|file| (**file).as_ref()).collect();
        check_files(plan, &files)?;
        let memory = Memory::of(graph, plan, &files)?;
        fit::check(graph, plan, &memory, backend.name(), backend.limits())?;
        let functions = functions(plan, &mut *backend)?;
        let memory = memory.make(graph, &mut *backend)?;
        let programs = plan.entries.iter();
        let programs = programs.map(|row| Program::new(graph, plan, row, &functions, &memory, &mut *backend));
        let programs = programs.collect::<Result<_, _>>()?;
        let arena = anonymous(memory.arena_bytes())?;
        let state = anonymous(memory.state_bytes())?;
        Ok(DeviceExecutor { backend, memory, programs, arena, state, stale: false })
    }

    /// Queues all dispatches of a step.
    fn queue(&mut self, entry: usize, words: &[u32]) -> Result<(), Diagnostic> {
        let program = &self.programs[entry];
        let all = 0..program.len();
        self.backend.run(program.sequence, &program.grids(all, words)?)
    }

    /// Runs launch after launch and reads back what each stored.
    fn watch(
        &mut self,
        graph: &Graph<'_>,
        entry: usize,
        words: &[u32],
        after: &mut Observer<'_>,
    ) -> Result<(), Diagnostic> {
        for at in 0..self.programs[entry].launches.len() {
            let program = &self.programs[entry];
            let (values, dispatches) = program.launches[at].clone();
            self.backend.run(program.sequence, &program.grids(dispatches, words)?)?;
            for value in values {
                self.fetch(graph, entry, value)?;
                after(value, View { arena: &self.arena, state: &self.state });
            }
        }
        Ok(())
    }

    /// Reads the memory of a stored value, or of the state that it writes, into the image.
    fn fetch(&mut self, graph: &Graph<'_>, entry: usize, value: Value) -> Result<(), Diagnostic> {
        if graph.op(value) == Op::Write {
            let place = self.memory.state(self.programs[entry].written[&value]);
            let range = place.offset as usize..(place.offset + place.bytes) as usize;
            return match range.is_empty() {
                true => Ok(()),
                false => self.backend.read(place, &mut self.state[range]),
            };
        }
        let slots = &self.programs[entry].slots;
        let Ok(at) = slots.binary_search_by_key(&value, |slot| slot.value) else { return Ok(()) };
        let (offset, bytes) = (slots[at].offset, self.programs[entry].outer_bytes(at));
        let range = offset as usize..(offset + bytes) as usize;
        match range.is_empty() {
            true => Ok(()),
            false => self.backend.read(self.memory.arena_piece(offset, bytes), &mut self.arena[range]),
        }
    }
}

impl Runner for DeviceExecutor {
    fn run(
        &mut self,
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        entry: usize,
        step: Step,
        tokens: &[u32],
        after: Option<&mut Observer<'_>>,
    ) -> Result<(), Diagnostic> {
        if self.stale {
            self.memory.clear_states(&mut *self.backend)?;
            self.stale = false;
        }
        let words = plan.step_words(|dim| dim_value(graph.dims, dim, step));
        self.memory.begin(&mut *self.backend, &words, tokens)?;
        match after {
            None => self.queue(entry, &words),
            Some(after) => self.watch(graph, entry, &words, after),
        }
    }

    fn output(&mut self, graph: &Graph<'_>, reader: &Reader, step: Step) -> Result<(), Diagnostic> {
        let Some((start, bytes)) = reader.span(graph.dims, step) else {
            // A step ends when its work is done, and its faults are this step's: any word read back waits for that.
            return self.backend.read(Piece { bytes: 4, ..self.memory.step() }, &mut [0; 4]);
        };
        let range = start as usize..(start + bytes) as usize;
        self.backend.read(self.memory.arena_piece(start, bytes), &mut self.arena[range])
    }

    fn readers(&self, graph: &Graph<'_>, plan: &Plan<'_>, entry: usize, values: &[Value]) -> Vec<Option<Reader>> {
        readers(graph, plan, entry, &self.programs[entry].slots, values)
    }

    fn slots(&self, entry: usize) -> &[SlotRow] {
        &self.programs[entry].slots
    }

    fn view(&self) -> View<'_> {
        View { arena: &self.arena, state: &self.state }
    }

    fn clear_states(&mut self) {
        self.stale = true;
    }

    fn kernel_count(&self, entry: usize) -> usize {
        self.programs[entry].len()
    }

    fn device(&self) -> String {
        self.backend.name().into()
    }
}

/// All kernels of the plan, ready on the device.
fn functions(plan: &Plan<'_>, backend: &mut dyn Backend) -> Result<Vec<Function>, Diagnostic> {
    let target = backend.target().name();
    let number = plan.target(target).ok_or_else(|| without_target(plan, target, backend.name()))?;
    let texts = (0..).zip(plan.kernels).map(|(i, row)| Text {
        name: plan.str(row.name),
        entry: plan.str(row.entry),
        source: plan.source(ds4_ir::plan::tables::Kernel(i), number),
        lanes: row.lanes,
        arguments: row.arguments + 1,
    });
    let texts: Vec<Text<'_>> = texts.collect();
    let bar = progress(texts.len() as u64, "kernels");
    let functions = backend.functions(&texts, &mut || bar.inc(1))?;
    bar.finish_and_clear();
    Ok(functions)
}

/// A bar on a terminal, nothing in a pipe.
fn progress(len: u64, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}%");
    let bar = ProgressBar::new(len).with_message(what.to_string());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn without_target(plan: &Plan<'_>, target: &str, device: &str) -> Diagnostic {
    let found: Vec<&str> = plan.targets.iter().map(|&text| plan.str(text)).collect();
    let found = if found.is_empty() { "none".into() } else { found.join(", ") };
    Diagnostic::new(codes::DEVICE_TARGET, format!("the plan has no kernels for {device}"))
        .at(Place::item("the plan", "its targets"))
        .wanted(target, found)
        .help(format!("compile the model again with `ds4c compile --target {target}`"))
}
