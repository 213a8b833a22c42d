//! `ds4c fuse`

use std::path::PathBuf;

use clap::Args;
use ds4_ir::diagnostic::codes;
use ds4_ir::graph::{Graph, Value, WeightRow};
use ds4_ir::plan::PartRow;
use ds4_ir::plan::tables::File;
use ds4_ir::rules::Exact;
use ds4_ir::text::shape_text;
use ds4_ir::{Bounds, Diagnostic, Place};
use serde_json::json;

use super::certificate::Shown;
use crate::frame::{Form, Frame, SourceFile, SourceWeight, assemble};
use crate::fuse::path::Declined;
use crate::fuse::regions::Planned;
use crate::fuse::{Found, Launch, Profile, fuse};
use crate::rewrite::{Limits, Rewritten, rewrite};

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
    /// Rewrite the graph by the laws of values first, and print the certificate: terms, steps, and the launches with the
    /// laws that made them. It is checked before it is printed
    #[arg(long)]
    certificate: bool,
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
        if self.certificate {
            return self.certificate(&view, bounds, &profile, &name);
        }
        let found = fuse(&graph.view(), bounds, &profile, &[]);
        super::print(&match self.json {
            true => launches_json(&found),
            false => launches_text(&graph.view(), &found),
        })
    }
}

impl Fuse {
    /// Prints the certificate of the graph's rewriting and fusion.
    fn certificate(&self, source: &Graph<'_>, bounds: Bounds, profile: &Profile, name: &str) -> Result<(), Diagnostic> {
        let Rewritten { graph, certificate, .. } = rewrite(source, &Limits { bounds, ..Limits::default() })?;
        let graph = graph.view();
        let entries = [("step", bounds.columns)];
        let plan = assemble(&graph, &Frame { entries: &entries, ..text_frame(&graph, bounds, profile) })?;
        let refused = |found: String| {
            Diagnostic::new(codes::CERTIFICATE_REFUSED, "the certificate of the graph is refused")
                .at(Place::file(name))
                .wanted("a proof that the fused graph has the bits of the one that was read", found)
                .help("this is a fault of ours: please report it with the file")
        };
        ds4_ir::plan::check::check(&graph, &plan.view()).map_err(refused)?;
        let report = ds4_ir::certificate::check(&graph, &certificate.view(), Exact::rules());
        let report = report.map_err(|refusal| refused(refusal.to_string()))?;
        let shown = Shown { graph, plan: plan.view(), certificate: certificate.view(), report };
        super::print(&if self.json { format!("{:#}\n", shown.json()) } else { shown.text() })
    }
}

/// Bytes of the file that weights of a text are thought to lie in: more than any of them has.
const UNBOUNDED: u64 = 1 << 49;

/// The frame of a graph that is text alone: its weights lie in no file.
fn text_frame<'a>(graph: &Graph<'_>, bounds: Bounds, profile: &'a Profile) -> Frame<'a> {
    let weight = |row: &WeightRow| {
        let has_scales = row.ty.format().is_some_and(|format| format.has_scales());
        let part = PartRow { file: File(0), scale_file: File(0), offset: 0, scale_offset: 0 };
        SourceWeight { parts: vec![part], scale_block: if has_scales { [1, 32] } else { [0, 0] } }
    };
    let file = SourceFile { name: String::new(), size: UNBOUNDED, header_len: 0, header_hash: [0; 32] };
    Frame {
        identity: [0; 32],
        facts: Vec::new(),
        files: vec![file],
        weights: graph.weights.iter().map(weight).collect(),
        context: bounds.context,
        entries: &[],
        form: Form { targets: &[], fusion: Some(profile) },
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
