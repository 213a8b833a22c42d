//! `ds4c fuse`

use std::path::PathBuf;

use clap::Args;
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::text::shape_text;
use ds4_ir::{Bounds, Diagnostic, Place};
use serde_json::json;

use crate::fuse::path::Declined;
use crate::fuse::regions::Planned;
use crate::fuse::{Found, Launch, Profile, fuse};

/// Arguments of `ds4c fuse`.
#[derive(Args)]
pub struct Fuse {
    /// Value graph as IR text
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Device profile: generic, h200, lavapipe, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "generic")]
    profile: String,
    /// Most columns of a step
    #[arg(long, value_name = "N", default_value_t = 1)]
    columns: u32,
    /// Most tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 4096)]
    context: u32,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl Fuse {
    /// Prints the launches of a graph.
    pub fn run(self) -> Result<(), Diagnostic> {
        let profile = Profile::find(&self.profile)?;
        let name = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).map_err(|error| {
            Diagnostic::new(codes::FILE_OPEN, "the value graph cannot be opened")
                .at(Place::file(&name))
                .wanted("a file of IR text", error.kind())
                .help("`ds4c ir MODEL -o FILE` prints one")
        })?;
        if self.columns == 0 || self.columns > self.context || self.context >= 1 << 30 {
            return Err(Diagnostic::new(codes::OPTION_RANGE, "the bounds of the step are out of range")
                .at(Place::item("the command line", "--columns and --context"))
                .wanted("1 <= columns <= context < 2^30", format!("columns {}, context {}", self.columns, self.context))
                .help("give other numbers"));
        }
        let graph = ds4_ir::text::parse(&text, &name)?;
        let bounds = Bounds { context: self.context, columns: self.columns, outputs: self.columns };
        let view = graph.view();
        let verified = ds4_ir::verify::verify(&view).and_then(|_| ds4_ir::verify::check_bounds(&view, bounds));
        verified.map_err(|fault| {
            Diagnostic::new(codes::TEXT_OPERATION, "the value graph is not well-formed")
                .at(Place::file(&name))
                .wanted("a graph that keeps the rules of its operations", fault)
                .help("see the operations in the documentation of `ds4_ir::op`")
        })?;
        let found = fuse(&graph.view(), bounds, &profile, &[]);
        super::print(&match self.json {
            true => launches_json(&found),
            false => launches_text(&graph.view(), &found),
        })
    }
}

fn launches_json(found: &Found) -> String {
    let region = |region: &Planned| {
        json!({
            "values": region.values.iter().map(|v| v.0).collect::<Vec<_>>(),
            "tiles": region.tiles,
            "workgroups": region.cost.workgroups,
        })
    };
    let launch = |launch: &Launch| json!({ "microseconds": launch.time, "regions": launch.regions.iter().map(region).collect::<Vec<_>>() });
    let declined = |set: &Declined| json!({ "values": set.nodes.iter().map(|v| v.0).collect::<Vec<_>>(), "why": set.why.to_string() });
    let report = json!({
        "launches": found.launches.iter().map(launch).collect::<Vec<_>>(),
        "tried": found.tried,
        "repeated": found.repeated,
        "declined": found.declined.iter().map(declined).collect::<Vec<_>>(),
    });
    format!("{report:#}\n")
}

/// The launches with their values.
fn launches_text(graph: &Graph<'_>, found: &Found) -> String {
    let mut text = String::new();
    for (i, launch) in found.launches.iter().enumerate() {
        text += &launch_text(graph, i, launch);
    }
    let (tried, repeated, declined) = (found.tried, found.repeated, found.declined.len());
    text += &format!("sets of values tried: {tried}, of them {repeated} like an earlier one and {declined} declined\n");
    text + &format!("{} launches\n", found.launches.len())
}

fn launch_text(graph: &Graph<'_>, number: usize, launch: &Launch) -> String {
    let mut text = format!("launch {number}: {:.1} us\n", launch.time);
    for region in &launch.regions {
        let anchor = *region.values.last().unwrap_or(&Value(0));
        let tiles = region.tiles.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        text += &format!(
            "  region of {} values, last {anchor} {}{} split [{tiles}], {} workgroups\n",
            region.values.len(),
            graph.ty(anchor).name(),
            shape_text(graph.dims, graph.dims_of(anchor)),
            region.cost.workgroups
        );
        for &v in &region.values {
            let path = graph.span_path(graph.value_span[v.0 as usize]);
            text += &format!(
                "    {v} {} {}{} {path}\n",
                graph.op(v).name(),
                graph.ty(v).name(),
                shape_text(graph.dims, graph.dims_of(v))
            );
        }
    }
    text
}
