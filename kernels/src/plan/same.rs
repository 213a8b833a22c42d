//! Whether the kernels of a plan are those that this build makes for its launches.
//!
//! The lists of a plan say what each launch computes; that a kernel's text does that is shown by runs, for every schedule. Made
//! again from the lists and compared, a kernel of a plan is known to be one of those, with its own grid and arguments.

use ds4_ir::diagnostic::codes;
use ds4_ir::entity::Run;
use ds4_ir::graph::Graph;
use ds4_ir::plan::tables::{Kernel as KernelId, LaunchRow, PlanTables};
use ds4_ir::plan::{BindingRow, ExtentRow, KernelRow, Plan};
use ds4_ir::{Diagnostic, Place};

use super::add_kernels;
use crate::Target;
use crate::parallel;
use crate::region::Limits;

/// Option of a fused plan: lanes of a workgroup.
const LANES: &str = "fusion.lanes";
/// Option of a fused plan: bytes of workgroup memory that a launch may take.
const WORKGROUP_BYTES: &str = "fusion.workgroup_bytes";

/// The options of a plan that say what its workgroups may take.
pub fn limit_facts(limits: Limits) -> [(&'static str, String); 2] {
    [(LANES, limits.lanes.to_string()), (WORKGROUP_BYTES, limits.workgroup_bytes.to_string())]
}

/// Compares the kernels of a plan with those for its launches, and gives how many there are. The plan has passed
/// [`ds4_ir::plan::check`]; `file` is its name.
///
/// # Errors
/// A kernel, its text, its grid or one of its arguments is another one.
pub fn check_kernels(graph: &Graph<'_>, plan: &Plan<'_>, file: &str) -> Result<usize, Diagnostic> {
    let refused = |Difference { place, wanted, found }: Difference| {
        Diagnostic::new(codes::PLAN_DAMAGED, "a kernel of the plan is not the one that its launch has")
            .at(Place::item(file, place))
            .wanted(wanted, found)
            .help("compile the model again with this version's `ds4c compile`")
    };
    if plan.targets.is_empty() {
        return Ok(0);
    }
    let mut made = without_kernels(plan);
    let targets = targets(plan).map_err(refused)?;
    add_kernels(parallel::available(), &mut made, graph, &targets, limits(plan).map_err(refused)?)?;
    compare(plan, &made.view()).map_err(refused)?;
    Ok(plan.kernels.len())
}

/// Where two plans differ.
struct Difference {
    place: String,
    wanted: String,
    found: String,
}

fn same<T: PartialEq>(
    place: impl Fn() -> String,
    wanted: T,
    found: T,
    text: impl Fn(&T) -> String,
) -> Result<(), Difference> {
    match wanted == found {
        true => Ok(()),
        false => Err(Difference { place: place(), wanted: text(&wanted), found: text(&found) }),
    }
}

fn targets(plan: &Plan<'_>) -> Result<Vec<Target>, Difference> {
    let target = |&text| {
        let name = plan.str(text);
        Target::named(name).ok_or_else(|| Difference {
            place: "its targets".into(),
            wanted: Target::ALL.map(Target::name).join(", "),
            found: name.into(),
        })
    };
    plan.targets.iter().map(target).collect()
}

fn limits(plan: &Plan<'_>) -> Result<Option<Limits>, Difference> {
    if plan.option("fusion").is_none_or(|fusion| fusion == "off") {
        return Ok(None);
    }
    let number = |key: &str, wanted: &str, is_possible: fn(u32) -> bool| {
        let text = plan.option(key);
        let number = text.and_then(|text| text.parse().ok()).filter(|&n| is_possible(n));
        number.ok_or_else(|| Difference {
            place: format!("option {key}"),
            wanted: wanted.into(),
            found: text.unwrap_or("nothing").into(),
        })
    };
    // The schedules divide by lanes, and so a plan from elsewhere may not name any number.
    let lanes = number(LANES, "64, 128 or 256", |n| [64, 128, 256].contains(&n))?;
    let workgroup_bytes = number(WORKGROUP_BYTES, "a number", |_| true)?;
    // How long a lane may be in loops changes no kernel: a region that would take longer is none.
    Ok(Some(Limits { lanes, workgroup_bytes, iterations: u32::MAX }))
}

/// The tables of a plan as they are before kernels are added.
fn without_kernels(plan: &Plan<'_>) -> PlanTables {
    let launches = plan.launches.iter().map(|row| LaunchRow { dispatches: Run::default(), ..*row }).collect();
    let none = Plan {
        step_dims: &[],
        kernels: &[],
        extents: &[],
        targets: &[],
        sources: &[],
        source_text: &[],
        dispatches: &[],
        bindings: &[],
        grid_parts: &[],
        tokenizer: &[],
        ..*plan
    };
    PlanTables { launches, ..none.to_tables() }
}

fn compare(plan: &Plan<'_>, made: &Plan<'_>) -> Result<(), Difference> {
    same(|| "its step's block".into(), made.step_dims, plan.step_dims, |dims| format!("{dims:?}"))?;
    same(|| "its kernels".into(), made.kernels.len(), plan.kernels.len(), usize::to_string)?;
    for i in 0..plan.kernels.len() {
        compare_kernel(plan, made, i)?;
    }
    for entry in plan.entries {
        let rows = entry.launches.of(plan.launches).iter().zip(entry.launches.of(made.launches));
        for (at, (row, wanted)) in rows.enumerate() {
            let place = || format!("launch {at} of entry `{}`", plan.str(entry.name));
            same(place, uses(made, wanted), uses(plan, row), |uses| uses_text(made, uses))?;
        }
    }
    Ok(())
}

/// A kernel's numbers.
fn facts(kernel: &KernelRow) -> [u32; 6] {
    let KernelRow { lanes, workgroup_bytes, exchange, arguments, written, iterations, .. } = *kernel;
    [lanes, workgroup_bytes, exchange, arguments, written, iterations]
}

fn grid(plan: &Plan<'_>, kernel: &KernelRow) -> Vec<Vec<ExtentRow>> {
    kernel.grid.of(plan.grid_parts).iter().map(|part| part.of(plan.extents).to_vec()).collect()
}

fn compare_kernel(plan: &Plan<'_>, made: &Plan<'_>, i: usize) -> Result<(), Difference> {
    let (row, wanted) = (&plan.kernels[i], &made.kernels[i]);
    let place = || format!("kernel {i} (`{}`)", plan.str(row.name));
    let quoted = |text: &&str| format!("`{text}`");
    same(place, made.str(wanted.name), plan.str(row.name), quoted)?;
    same(place, made.str(wanted.entry), plan.str(row.entry), quoted)?;
    same(place, facts(wanted), facts(row), |[lanes, bytes, exchange, arguments, written, iterations]| {
        format!(
            "{lanes} lanes, {bytes} bytes of workgroup memory, {exchange} lanes that exchange values, {arguments} arguments, written {written:#b}, {iterations} loop iterations"
        )
    })?;
    same(place, grid(made, wanted), grid(plan, row), |grid| format!("the grid {grid:?}"))?;
    for target in 0..plan.targets.len() {
        let place = || format!("{}, text for {}", place(), plan.str(plan.targets[target]));
        let id = KernelId(i as u32);
        let (text, wanted) = (plan.source(id, target), made.source(id, target));
        let at = text.lines().zip(wanted.lines()).position(|(a, b)| a != b).unwrap_or(0);
        same(place, wanted, text, |text| format!("line {}: {}", at + 1, text.lines().nth(at).unwrap_or("")))?;
    }
    Ok(())
}

/// The kernels of a launch with what they are bound to.
fn uses(plan: &Plan<'_>, launch: &LaunchRow) -> Vec<(KernelId, Vec<BindingRow>)> {
    let dispatches = launch.dispatches.of(plan.dispatches).iter();
    dispatches.map(|row| (row.kernel, row.bindings.of(plan.bindings).to_vec())).collect()
}

fn uses_text(plan: &Plan<'_>, uses: &[(KernelId, Vec<BindingRow>)]) -> String {
    let one = |(kernel, bindings): &(KernelId, Vec<BindingRow>)| {
        let name = plan.kernels.get(kernel.0 as usize).map_or("", |row| plan.str(row.name));
        let bindings: Vec<String> = bindings.iter().map(|row| format!("{}:{}", row.kind, row.id)).collect();
        format!("kernel `{name}` bound to [{}]", bindings.join(", "))
    };
    uses.iter().map(one).collect::<Vec<_>>().join("; ")
}
