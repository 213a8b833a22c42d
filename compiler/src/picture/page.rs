//! The picture as a page: one part at a time, to be moved and enlarged, and what is to be told of each room.

use ds4_ir::Op;
use ds4_ir::graph::Value;
use ds4_ir::text::{print, value_lines};
use serde_json::{Map, Value as Json, json};

use super::Picture;
use super::draw::{Drawing, draw, key};
use super::poster::{STYLE, facts, legend, map, said};
use super::rooms::{Band, Readers, Room};
use super::svg::{Svg, escaped};
use crate::step::parts::Part;
use crate::step::{Found, Step};

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Width of the map and the legend.
const WIDE: i32 = 1320;

/// The picture as HTML. It fetches nothing, and its policy says so to the browser.
pub fn page(picture: &Picture<'_>) -> String {
    let readers = Readers::new(&picture.step);
    let formulas = Formulas::new(&picture.step);
    let (mut drawings, mut rooms) = (String::new(), Map::new());
    for &part in &picture.drawn {
        let (drawing, bands) = draw(picture, &readers, &picture.parts.parts[part]);
        drawings += &figure(picture, part, &drawing);
        for band in &bands {
            rooms.extend(band.rooms.iter().map(|room| (key(room), told(picture, &formulas, band, room))));
        }
    }
    let (map, map_height) = map(picture, WIDE);
    let mut signs = Svg::default();
    let legend_height = legend(&mut signs, 8);
    let facts: String = facts(picture).iter().map(|fact| format!("<p>{}</p>\n", escaped(fact))).collect();
    // In a script, only `<` can end the data.
    let data = json!({ "parts": parts(picture), "rooms": rooms }).to_string().replace('<', "\\u003c");
    let name = escaped(&picture.name);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>{name}</title>\n\
         <style>\n{STYLE}{PAGE_STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{name}</h1>\n{facts}\
         <svg class=\"steps\" width=\"{WIDE}\" height=\"{map_height}\">\n{map}</svg>\n\
         <details><summary>what colours and marks mean</summary>\n<svg width=\"{WIDE}\" height=\"{legend_height}\">\n{}</svg>\n\
         </details>\n<nav><label>part <select id=\"part\"></select></label> <button id=\"fit\">fit</button> \
         <span id=\"said\"></span></nav>\n</header>\n<main>\n<div id=\"view\">\n{drawings}</div>\n<aside id=\"told\"></aside>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        signs.text
    )
}

fn figure(picture: &Picture<'_>, part: usize, drawing: &Drawing) -> String {
    let (w, h) = drawing.size;
    let kind = picture.parts.parts[part].kind;
    format!(
        "<svg class=\"drawing\" data-kind=\"{kind}\" data-width=\"{w}\" data-height=\"{h}\" hidden>\n<g class=\"moved\">\n{}</g>\n</svg>\n",
        drawing.svg
    )
}

/// All parts, with what is drawn for each.
fn parts(picture: &Picture<'_>) -> Vec<Json> {
    let parts = &picture.parts;
    let part = |part: &Part| {
        let drawn = picture.drawn.iter().find(|&&drawn| parts.parts[drawn].kind == part.kind);
        json!({
            "name": parts.name(part),
            "kind": part.kind,
            "drawn": drawn.map(|&drawn| parts.name(&parts.parts[drawn])),
            "said": drawn.map(|&drawn| said(picture, drawn)),
        })
    };
    parts.parts.iter().map(part).collect()
}

/// Values and bodies as IR text.
struct Formulas {
    values: Vec<String>,
    bodies: Vec<String>,
}

impl Formulas {
    fn new(step: &Step<'_>) -> Formulas {
        let mut bodies: Vec<String> = Vec::new();
        let mut is_body = false;
        for line in print(&step.graph).lines() {
            if line.starts_with("body ") {
                bodies.push(line.into());
                is_body = line.ends_with('{');
                continue;
            }
            // A body of several lines ends with a brace of its own.
            is_body &= line.starts_with(' ') || line == "}";
            match bodies.last_mut() {
                Some(last) if is_body => *last += &format!("\n{line}"),
                _ => {}
            }
        }
        Formulas { values: value_lines(&step.graph), bodies }
    }

    /// The body of a map.
    fn body(&self, step: &Step<'_>, v: Value) -> Option<&String> {
        let body = (step.graph.op(v) == Op::Map).then(|| step.graph.attrs(v)[0]);
        self.bodies.get(body? as usize)
    }
}

/// What is told of a room.
fn told(picture: &Picture<'_>, formulas: &Formulas, band: &Band, room: &Room) -> Json {
    let step = &picture.step;
    let value = |&v: &Value| {
        let mut marks = Vec::new();
        if step.lists.is_stored(v) {
            marks.push("stored");
        }
        if step.lists.first(v).is_some_and(|first| !room.regions.contains(&first)) {
            marks.push("computed again");
        }
        if picture.proof.is_rewritten(v) {
            marks.push("rewritten");
        }
        json!([formulas.values[v.0 as usize], marks.join(", "), formulas.body(step, v)])
    };
    let reads = step.lists.reads(&room.values).into_iter();
    let reads = reads.map(|(source, bytes)| json!([step.source_kind(source), step.source_name(source), bytes]));
    let writes = room.regions.iter().flat_map(|&found| step.written(found));
    let writes = writes.map(|(source, bytes)| json!([step.source_kind(source), step.source_name(source), bytes]));
    let saved: u64 = room.regions.iter().map(|&found| step.saved(found)).sum();
    let names = |&(launch, region): &Found| format!("{launch}.{region}");
    let kernels = band.launches.iter().flat_map(|&launch| step.launch(launch).dispatches.of(step.plan.dispatches));
    let kernels: Vec<&str> =
        kernels.map(|dispatch| step.plan.str(step.plan.kernels[dispatch.kernel.0 as usize].name)).collect();
    json!({
        "title": room.title,
        "regions": room.regions.iter().map(names).collect::<Vec<_>>(),
        "before": room.before,
        "beside": band.rooms.len() - 1,
        "saved": saved,
        "kernels": kernels,
        "reads": reads.collect::<Vec<_>>(),
        "writes": writes.collect::<Vec<_>>(),
        "values": room.values.iter().map(value).collect::<Vec<_>>(),
    })
}
