//! Kernels of a plan: what each launch is on a device, and the texts that its targets run.
//!
//! A model has tens of thousands of launches and some hundred kernels: launches whose kernels differ in nothing but what
//! their arguments are bound to share one.

mod same;

use std::collections::{HashMap, HashSet};

use crate::Target;
use crate::emit::{StepBlock, entry_point};
use crate::kernel::{Access, Kernel, Part, Source, Space, Stmt};
use crate::region::{self, Limits, Region, with_views};
use crate::schedule::{ScaleBlocks, Scene, kernels, side_by_side};
use crate::weight_layout::WeightLayout;
use ds4_ir::diagnostic::codes;
use ds4_ir::dim::dim_max;
use ds4_ir::entity::Run;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::layout::layouts;
use ds4_ir::plan::tables::{Kernel as KernelId, PlanTables, binding};
use ds4_ir::plan::{BindingRow, DispatchRow, EntryRow, ExtentRow, FieldRow, KernelRow, LaunchRow, WeightPlaceRow};
use ds4_ir::{Bounds, Diagnostic, Op, Place};

use crate::parallel;
pub use same::{check_kernels, limit_facts};

/// Launches whose kernels one thread makes before it takes others.
const BATCH: usize = 16;
/// Such batches that are made before their kernels are entered in the tables: they are large.
const WAVE: usize = 16;

/// Adds the kernels of all entry points, with their texts for the targets; nothing where there is no target. `limits` are what a
/// workgroup of a fused plan may take; without them every value is a launch. The kernels do not depend on the number of threads.
///
/// # Errors
/// Devices have no kernel for one of the launches.
pub fn add_kernels(
    threads: usize,
    plan: &mut PlanTables,
    graph: &Graph<'_>,
    targets: &[Target],
    limits: Option<Limits>,
) -> Result<(), Diagnostic> {
    if targets.is_empty() {
        return Ok(());
    }
    let mut shared = Shared { threads, limits, ..Shared::default() };
    for entry in plan.entries.clone() {
        shared.entry(plan, graph, &entry)?;
    }
    let block = StepBlock::of(&shared.kernels);
    plan.step_dims = block.dims().to_vec();
    plan.targets = targets.iter().map(|target| plan.intern(target.name())).collect();
    for kernel in &shared.kernels {
        add_kernel(plan, kernel, &block);
    }
    for text in texts(threads, &shared.kernels, targets, &block) {
        let text = text.expect("invariant: the block has the dimensions of all kernels");
        let run = Run::push(&mut plan.source_text, text.as_bytes());
        plan.sources.push(run);
    }
    Ok(())
}

/// Says for each weight how devices store its rows.
pub fn add_weight_fields(plan: &mut PlanTables, graph: &Graph<'_>) {
    for (row, place) in graph.weights.iter().zip(&mut plan.weight_places) {
        let Some(layout) = row.ty.format().and_then(|format| WeightLayout::of(format, format.block_len())) else {
            continue;
        };
        let fields = layout.fields().iter().map(|f| FieldRow { begin: f.start as u32, end: f.end as u32 });
        place.fields = Run::push(&mut plan.weight_fields, &fields.collect::<Vec<_>>());
    }
}

/// Rows and columns of a weight that share a scale.
pub fn scale_blocks(place: &WeightPlaceRow) -> ScaleBlocks {
    ScaleBlocks { rows: place.scale_rows, cols: place.scale_cols }
}

/// A kernel without what distinguishes its uses, and which of its arguments a step writes.
type Key = (Kernel, Vec<bool>);

/// The kernels that were found.
#[derive(Default)]
struct Shared {
    threads: usize,
    /// What a workgroup may take, in a fused plan.
    limits: Option<Limits>,
    kernels: Vec<Kernel>,
    ids: HashMap<Key, KernelId>,
    names: HashSet<String>,
}

impl Shared {
    fn entry(&mut self, plan: &mut PlanTables, graph: &Graph<'_>, entry: &EntryRow) -> Result<(), Diagnostic> {
        let bounds = plan.view().bounds(entry);
        let slots = entry.slots.of(&plan.slots).to_vec();
        let found = layouts(graph, bounds, &slots);
        let scales: Vec<ScaleBlocks> = plan.weight_places.iter().map(scale_blocks).collect();
        let scene = Scene { graph: *graph, bounds, slots: &slots, layouts: &found, scales: &scales };
        let widest = widest(plan);
        let name = plan.view().str(entry.name).to_string();
        let limits = self.limits;
        let make = |batch: &Batch| -> Result<Vec<Vec<Kernel>>, Diagnostic> {
            let mut stored = batch.stored.clone();
            let launches = batch.launches.iter();
            let kernels = launches.map(|regions| match limits {
                None => unfused(&scene, regions, widest),
                Some(limits) => fused(&scene, regions, limits, &mut stored),
            });
            kernels.collect()
        };
        let batches = batches(plan, graph, entry);
        let mut at = entry.launches.start as usize;
        for wave in batches.chunks(WAVE) {
            for made in parallel::each(wave, self.threads, make) {
                for kernels in made? {
                    let dispatches: Vec<DispatchRow> =
                        kernels.into_iter().map(|kernel| self.dispatch(plan, kernel, &name)).collect();
                    plan.launches[at].dispatches = Run::push(&mut plan.dispatches, &dispatches);
                    at += 1;
                }
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, plan: &mut PlanTables, mut kernel: Kernel, entry: &str) -> DispatchRow {
        let bindings: Vec<BindingRow> = kernel.arguments().map(|(_, source, _)| bound(source)).collect();
        let bindings = Run::push(&mut plan.bindings, &bindings);
        let next = KernelId(self.kernels.len() as u32);
        let id = *self.ids.entry(key(&kernel)).or_insert(next);
        if id == next {
            kernel.name = self.free_name(&kernel.name, entry);
            self.names.insert(kernel.name.clone());
            self.kernels.push(kernel);
        }
        DispatchRow { kernel: id, bindings }
    }

    /// The name, or with the entry point's behind it, or with a number too: the first that no kernel has.
    fn free_name(&self, name: &str, entry: &str) -> String {
        let with_entry = format!("{name}.{entry}");
        let numbered = (2..).map(|n| format!("{with_entry}.{n}"));
        let mut names = [name.to_string(), with_entry.clone()].into_iter().chain(numbered);
        names.find(|name| !self.names.contains(name)).unwrap_or(with_entry)
    }
}

/// The regions of a launch: their values and splits.
type Regions = Vec<(Vec<Value>, Vec<u32>)>;

/// Launches that follow each other.
struct Batch {
    launches: Vec<Regions>,
    /// What regions before them compute.
    stored: Vec<bool>,
}

/// The launches of an entry point.
fn batches(plan: &PlanTables, graph: &Graph<'_>, entry: &EntryRow) -> Vec<Batch> {
    let mut stored = vec![false; graph.len()];
    let mut found = Vec::new();
    for rows in entry.launches.of(&plan.launches).chunks(BATCH) {
        let before = stored.clone();
        let regions = |row: &LaunchRow| -> Regions {
            let regions = row.regions.of(&plan.regions).iter();
            regions
                .map(|row| (row.values.of(&plan.region_values).to_vec(), row.tiles.of(&plan.region_tiles).to_vec()))
                .collect()
        };
        let launches: Vec<Regions> = rows.iter().map(regions).collect();
        launches.iter().flatten().flat_map(|(values, _)| values).for_each(|v| stored[v.0 as usize] = true);
        found.push(Batch { launches, stored: before });
    }
    found
}

/// The kernels of a launch of single values.
fn unfused(scene: &Scene<'_>, regions: &[(Vec<Value>, Vec<u32>)], widest: Bounds) -> Result<Vec<Kernel>, Diagnostic> {
    let mut made = Vec::new();
    for &v in regions.iter().flat_map(|(values, _)| values) {
        for mut kernel in kernels(scene, v).map_err(|refusal| no_kernel(&scene.graph, v, &refusal))? {
            widen(&scene.graph, &mut kernel, widest);
            made.push(kernel);
        }
    }
    Ok(made)
}

/// The kernel of a launch of regions. A value is stored by the first region that computes it; `stored` says which have been.
fn fused(
    scene: &Scene<'_>,
    regions: &[(Vec<Value>, Vec<u32>)],
    limits: Limits,
    stored: &mut [bool],
) -> Result<Vec<Kernel>, Diagnostic> {
    let graph = &scene.graph;
    let mut made = Vec::new();
    for (values, tiles) in regions {
        let kernel = region_kernel(scene, values, tiles, limits, stored)
            .map_err(|refusal| no_kernel(graph, values.last().copied().unwrap_or(Value(0)), &refusal))?;
        made.push(kernel);
        for &v in values {
            stored[v.0 as usize] = true;
        }
    }
    if made.len() <= 1 {
        return Ok(made);
    }
    let anchor = regions.last().and_then(|(values, _)| values.last()).copied().unwrap_or(Value(0));
    let name = made.last().map(|kernel| kernel.name.clone()).unwrap_or_default();
    side_by_side(&name, made).map(|kernel| vec![kernel]).map_err(|apart| no_kernel(graph, anchor, &apart))
}

/// The kernel of a region, whose values ascend and whose views are not listed. It stores what has a slot and is not `stored` by
/// an earlier region.
///
/// # Errors
/// No schedule computes these values together with this split.
pub fn region_kernel(
    scene: &Scene<'_>,
    values: &[Value],
    tiles: &[u32],
    limits: Limits,
    stored: &[bool],
) -> Result<Kernel, region::Refusal> {
    let graph = &scene.graph;
    let all = with_views(graph, values);
    let region = Region { values: &all, tiles };
    let stores = |v: Value| {
        let has_memory = graph.op(v) == Op::Write || scene.slots.binary_search_by_key(&v, |s| s.value).is_ok();
        has_memory && values.binary_search(&v).is_ok() && !stored[v.0 as usize]
    };
    let plan = region::plan(graph, scene.bounds, &region, &stores, limits)?;
    let kernel = region::kernel(scene, &region, &plan)?;
    let wanted = kernel.iterations();
    match wanted <= limits.iterations.into() {
        true => Ok(kernel),
        false => Err(region::Refusal::Iterations { wanted, available: limits.iterations }),
    }
}

/// The largest bounds of all entry points.
fn widest(plan: &PlanTables) -> Bounds {
    let most = |of: fn(&EntryRow) -> u32| plan.entries.iter().map(of).max().unwrap_or(0);
    Bounds { context: plan.context[0], columns: most(|e| e.columns), outputs: most(|e| e.outputs) }
}

/// Raises the static bounds of what a step chooses to those of the widest entry point, so that entry points share kernels. No
/// step of a narrower one comes near them: the runtime takes no step beyond its entry point's bounds.
fn widen(graph: &Graph<'_>, kernel: &mut Kernel, widest: Bounds) {
    for row in &mut kernel.extents {
        let Some(dim) = row.scalar else { continue };
        let wider = crate::kernel::ExtentRow { most: dim_max(graph.dims, dim, widest).max(row.most), ..*row };
        if wider.largest().is_some() {
            *row = wider;
        }
    }
}

fn key(kernel: &Kernel) -> Key {
    let mut same = Kernel { name: String::new(), about: String::new(), values: Vec::new(), ..kernel.clone() };
    let written = kernel.arguments().map(|(_, source, _)| source.is_written()).collect();
    for (i, row) in same.memories.iter_mut().enumerate() {
        let argument = Source::Argument(i as u32);
        row.space = match row.space {
            Space::Constant(_) => Space::Constant(argument),
            Space::Buffer(_) => Space::Buffer(argument),
            Space::Workgroup => Space::Workgroup,
        };
    }
    (same, written)
}

fn bound(source: Source) -> BindingRow {
    let (kind, id) = match source {
        Source::Slot(v) => (binding::SLOT, v.0),
        Source::Codes(v) => (binding::CODES, v.0),
        Source::Scales(v) => (binding::SCALES, v.0),
        Source::State(s) => (binding::STATE, s.0),
        Source::Weight(w) => (binding::WEIGHT, w.0),
        Source::WeightScales(w) => (binding::WEIGHT_SCALES, w.0),
        Source::Constant(c) => (binding::CONSTANT, c.0),
        Source::Magnitudes => (binding::MAGNITUDES, 0),
        Source::Tokens => (binding::TOKENS, 0),
        Source::Argument(_) => unreachable!("invariant: schedules name what they bind"),
    };
    BindingRow { kind, id }
}

fn add_kernel(plan: &mut PlanTables, kernel: &Kernel, block: &StepBlock) {
    let extent = |row: &crate::kernel::ExtentRow| ExtentRow {
        word: row.scalar.and_then(|dim| block.place(dim)).map_or(u32::MAX, |place| place as u32),
        most: row.most,
        times: row.times,
        per: row.per,
    };
    let axes =
        |part: &Part| -> Vec<ExtentRow> { part.grid.iter().map(|e| extent(&kernel.extents[e.0 as usize])).collect() };
    let parts: Vec<Run> = kernel.parts.iter().map(|part| Run::push(&mut plan.extents, &axes(part))).collect();
    let exchange = kernel.stmts.iter().map(|stmt| match *stmt {
        Stmt::Shuffle { width, .. } => width,
        _ => 0,
    });
    let arrays = kernel.memories.iter().filter(|row| row.space == Space::Workgroup);
    let row = KernelRow {
        name: plan.intern(&kernel.name),
        entry: plan.intern(&entry_point(kernel)),
        lanes: kernel.lanes,
        workgroup_bytes: arrays.map(|row| 4 * row.len).sum(),
        exchange: exchange.max().unwrap_or(0),
        arguments: kernel.arguments().count() as u32,
        written: written(kernel),
        iterations: u32::try_from(kernel.iterations()).unwrap_or(u32::MAX),
        grid: Run::push(&mut plan.grid_parts, &parts),
    };
    plan.kernels.push(row);
}

/// A bit for each argument that a kernel writes.
fn written(kernel: &Kernel) -> u32 {
    let writes = kernel.arguments().map(|(_, _, row)| row.access != Access::Read);
    (0..32).zip(writes).map(|(i, writes)| u32::from(writes) << i).sum()
}

/// The texts of all kernels, each for all targets.
fn texts(threads: usize, kernels: &[Kernel], targets: &[Target], block: &StepBlock) -> Vec<Option<String>> {
    let pairs: Vec<(&Kernel, Target)> =
        kernels.iter().flat_map(|kernel| targets.iter().map(move |&target| (kernel, target))).collect();
    parallel::each(&pairs, threads, |(kernel, target)| target.emit(kernel, block))
}

fn no_kernel(graph: &Graph<'_>, v: Value, why: &dyn std::fmt::Display) -> Diagnostic {
    let path = graph.span_path(graph.value_span[v.0 as usize]);
    Diagnostic::new(codes::UNSUPPORTED_LAUNCH, format!("devices have no kernel for a `{}`", graph.op(v).name()))
        .at(Place::item("the graph", format!("{v} in `{path}`")))
        .wanted("a value that the schedules take", why)
        .help("give a smaller --prefill or --context, compile with --fuse off, or for the CPU alone with --target none")
}
