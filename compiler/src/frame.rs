//! From any value graph to the tables of its plan: places of weights and states, launches, memory and kernels.
//!
//! A model's compilation fills the frame from its checkpoint; a suite that checks kernels fills it from memory.

use ds4_ir::entity::Run;
use ds4_ir::graph::Graph;
use ds4_ir::plan::ALIGN;
use ds4_ir::plan::layout::stored_bytes;
use ds4_ir::plan::tables::{
    Device, EntryRow, FileRow, LaunchRow, PartRow, PlanTables, RegionRow, StatePlaceRow, WeightPlaceRow,
};
use ds4_ir::{Bounds, Diagnostic};
use ds4_kernels::Target;
use ds4_kernels::parallel;
use ds4_kernels::plan::{add_kernels, add_weight_fields, scale_blocks};
use ds4_kernels::schedule::ScaleBlocks;

use crate::fuse::{Profile, fuse};
use crate::schedule::{Schedule, fused, schedule};

/// A file that holds weights.
#[derive(Clone)]
pub struct SourceFile {
    /// Its name, without folders.
    pub name: String,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes in front of the weights' data.
    pub header_len: u64,
    /// BLAKE3 of these.
    pub header_hash: [u8; 32],
}

/// Where a weight lies.
#[derive(Clone)]
pub struct SourceWeight {
    /// One part, or one for each index of the first axis.
    pub parts: Vec<PartRow>,
    /// Rows and columns that share a scale; zeros where the format has its scales itself.
    pub scale_block: [u32; 2],
}

/// What a plan says beside its graph.
#[derive(Clone)]
pub struct Frame<'a> {
    /// By which the weights are known again.
    pub identity: [u8; 32],
    /// Options and facts of the compilation.
    pub facts: Vec<(&'a str, String)>,
    /// The files of the weights.
    pub files: Vec<SourceFile>,
    /// A row for each weight of the graph.
    pub weights: Vec<SourceWeight>,
    /// Largest `position + columns`.
    pub context: u32,
    /// Entry points: names, and the most columns of a step.
    pub entries: &'a [(&'a str, u32)],
    /// What the plan is made for.
    pub form: Form<'a>,
}

/// What a plan is made for: it changes how values are computed, never what they are.
#[derive(Clone, Copy, Default)]
pub struct Form<'a> {
    /// The languages that kernels are printed in; none for the CPU alone.
    pub targets: &'a [Target],
    /// The device whose costs decide what is computed together; without one every value is a launch.
    pub fusion: Option<&'a Profile>,
}

/// The tables of a graph's plan. The graph has passed [`ds4_ir::verify`]; whether its values are within the limits of a
/// plan, [`ds4_ir::plan::check`] says.
///
/// # Errors
/// Devices have no kernel for one of the values.
pub fn assemble(graph: &Graph<'_>, frame: &Frame<'_>) -> Result<PlanTables, Diagnostic> {
    assemble_on(parallel::available(), graph, frame)
}

/// The same on so many threads.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_on(threads: usize, graph: &Graph<'_>, frame: &Frame<'_>) -> Result<PlanTables, Diagnostic> {
    let mut plan =
        PlanTables { model_hash: vec![frame.identity], context: vec![frame.context], ..PlanTables::default() };
    for (key, value) in &frame.facts {
        plan.set_option(key, value);
    }
    for file in &frame.files {
        place_file(&mut plan, file);
    }
    for weight in &frame.weights {
        place_weight(&mut plan, weight);
    }
    add_weight_fields(&mut plan, graph);
    place_states(&mut plan, graph);
    let scales: Vec<ScaleBlocks> = plan.weight_places.iter().map(scale_blocks).collect();
    let bounds = |columns: u32| Bounds { context: frame.context, columns, outputs: columns };
    let schedules = parallel::each(frame.entries, threads, |&(_, columns)| match frame.form.fusion {
        Some(profile) => fused(graph, bounds(columns), &fuse(graph, bounds(columns), profile, &scales).launches),
        None => schedule(graph, bounds(columns)),
    });
    for (&(name, columns), schedule) in frame.entries.iter().zip(&schedules) {
        add_entry(&mut plan, schedule, name, bounds(columns));
    }
    add_kernels(threads, &mut plan, graph, frame.form.targets, frame.form.fusion.map(Profile::limits))?;
    Ok(plan)
}

fn place_file(plan: &mut PlanTables, file: &SourceFile) {
    let path = plan.intern(&file.name);
    let SourceFile { size, header_len, header_hash, .. } = *file;
    plan.files.push(FileRow { path, reserved: 0, size, header_len, header_hash });
}

fn place_weight(plan: &mut PlanTables, weight: &SourceWeight) {
    let parts = Run::push(&mut plan.parts, &weight.parts);
    let [scale_rows, scale_cols] = weight.scale_block;
    plan.weight_places.push(WeightPlaceRow { parts, scale_rows, scale_cols, fields: Run::default() });
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

fn add_region(plan: &mut PlanTables, schedule: &Schedule, region: &RegionRow) -> RegionRow {
    RegionRow {
        values: Run::push(&mut plan.region_values, region.values.of(&schedule.values)),
        tiles: Run::push(&mut plan.region_tiles, region.tiles.of(&schedule.tiles)),
    }
}

fn add_entry(plan: &mut PlanTables, schedule: &Schedule, name: &str, bounds: Bounds) {
    let name = plan.intern(name);
    let first = plan.launches.len() as u32;
    for run in &schedule.launches {
        let regions: Vec<RegionRow> =
            run.of(&schedule.regions).iter().map(|region| add_region(plan, schedule, region)).collect();
        let regions = Run::push(&mut plan.regions, &regions);
        plan.launches.push(LaunchRow { device: Device(0), regions, dispatches: Run::default() });
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
