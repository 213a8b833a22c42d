//! The picture as one sheet: what the step is, a map of its parts, a legend, and a drawing of each kind.

use super::Picture;
use super::draw::{Drawing, draw};
use super::rooms::{GROUPS, Readers};
use super::svg::{Rect, Svg, escaped, fitted, width};
use crate::step::parts::{Kind, Part, Sums};
use crate::step::size;

/// Style of all pictures.
pub const STYLE: &str = include_str!("style.css");
const EDGE: i32 = 28;
/// Drawings stand beside each other up to this width.
const MOST: i32 = 1760;
const CELL: Rect = Rect { x: 0, y: 0, w: 26, h: 22 };
/// Height of the bars that compare launches.
const BARS: i32 = 56;
/// Height of what is said above a drawing.
const SAID: i32 = 84;

/// Colour of a kind.
pub fn colour(kind: usize) -> String {
    format!("k{}", kind % 12)
}

/// The picture as SVG.
pub fn poster(picture: &Picture<'_>) -> String {
    let readers = Readers::new(&picture.step);
    let drawings: Vec<(usize, Drawing)> =
        picture.drawn.iter().map(|&part| (part, draw(picture, &readers, &picture.parts.parts[part]).0)).collect();
    let widest = drawings.iter().map(|(part, drawing)| sheet_width(picture, *part, drawing)).max().unwrap_or(0);
    let most = widest.max(MOST);
    let mut svg = Svg::default();
    let mut y = head(picture, &mut svg, most);
    y = legend(&mut svg, y);
    let mut row: Vec<&(usize, Drawing)> = Vec::new();
    let mut x = 0;
    for drawing in &drawings {
        let w = sheet_width(picture, drawing.0, &drawing.1) + EDGE;
        if x + w > most + EDGE && !row.is_empty() {
            y = sheets(picture, &mut svg, &row, y);
            row.clear();
            x = 0;
        }
        x += w;
        row.push(drawing);
    }
    y = sheets(picture, &mut svg, &row, y);
    let (w, h) = (most + 2 * EDGE, y);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n<rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>\n{}</svg>\n",
        escaped(&picture.name),
        svg.text
    )
}

/// What is said above a drawing.
pub fn said(picture: &Picture<'_>, part: usize) -> [String; 3] {
    let parts = &picture.parts;
    let Part { kind, .. } = parts.parts[part];
    let Kind { parts: alike, marks } = &parts.kinds[kind];
    let marks = if marks.is_empty() { String::new() } else { format!(", with {}", marks.join(", ")) };
    let name = parts.name(&parts.parts[part]);
    let alike = match alike.len() {
        1 => "no other is like it".into(),
        n => format!("{n} look like this one, which is {name}: the same launches but for ids"),
    };
    let sums = parts.sums(&picture.step, &parts.parts[part]);
    [fitted(&(parts.names(&parts.kinds[kind]) + &marks), 16, MOST - 100), alike, sums_text(&sums)]
}

/// Launches and bytes in one line.
fn sums_text(sums: &Sums) -> String {
    format!(
        "{} launches before → {}; weights {} → {}; values and states {} → {}",
        sums.launches_before,
        sums.launches,
        size(sums.before.weights),
        size(sums.after.weights),
        size(sums.before.activations()),
        size(sums.after.activations())
    )
}

fn sheet_width(picture: &Picture<'_>, part: usize, drawing: &Drawing) -> i32 {
    let [name, alike, sums] = said(picture, part);
    let text = (width(&name, 16) + 30).max(width(&alike, 12)).max(width(&sums, 12));
    drawing.size.0.max(text) + 2 * 16
}

/// Drawings side by side.
fn sheets(picture: &Picture<'_>, svg: &mut Svg, row: &[&(usize, Drawing)], y: i32) -> i32 {
    let mut x = EDGE;
    let mut height = 0;
    for (part, drawing) in row {
        let w = sheet_width(picture, *part, drawing);
        let h = SAID + drawing.size.1 + 16;
        let kind = picture.parts.parts[*part].kind;
        svg.rect("sheet", Rect { x, y, w, h }, " rx=\"10\"");
        svg.rect(&colour(kind), Rect { x: x + 16, y: y + 15, w: 16, h: 16 }, " rx=\"3\"");
        let [name, alike, sums] = said(picture, *part);
        svg.line("kind", x + 40, y + 29, &name);
        svg.line("note", x + 16, y + 50, &alike);
        svg.line("note", x + 16, y + 67, &sums);
        svg.open(&format!(" transform=\"translate({} {})\"", x + 16, y + SAID));
        svg.text += &drawing.svg;
        svg.close();
        x += w + EDGE;
        height = height.max(h);
    }
    y + height + EDGE
}

/// The lines that say what the step is.
pub fn facts(picture: &Picture<'_>) -> Vec<String> {
    let step = &picture.step;
    let sums = picture.parts.all_sums(step);
    let fusion = step.plan.option("fusion").unwrap_or("off");
    let regions: usize = (0..step.launches()).map(|launch| step.regions(launch).count()).sum();
    let values = match picture.proof.is_certified() {
        true => format!("values: certificate checked ({} steps)", picture.proof.lemmas),
        false => "values: the model's own graph".into(),
    };
    let texts = match step.plan.kernels.len() {
        0 => "no texts".into(),
        n => format!("{n} texts unproved"),
    };
    vec![
        format!(
            "entry {}, at most {} columns, fusion {fusion}: {} values in {regions} regions; {}",
            step.plan.str(step.entry.name),
            step.bounds.columns,
            step.graph.len(),
            sums_text(&sums)
        ),
        format!("proved: {values}; lists of launches and regions: checked; {texts}"),
    ]
}

fn head(picture: &Picture<'_>, svg: &mut Svg, most: i32) -> i32 {
    svg.line("head", EDGE, EDGE + 22, &picture.name);
    let mut y = EDGE + 46;
    for line in facts(picture) {
        svg.line("note", EDGE, y, &line);
        y += 18;
    }
    let (map, height) = map(picture, most);
    svg.open(&format!(" transform=\"translate({EDGE} {})\"", y + 6));
    svg.text += &map;
    svg.close();
    y + 6 + height + 10
}

/// A cell for each part, in order, below bars of its launches before and after; gives its height.
pub fn map(picture: &Picture<'_>, most: i32) -> (String, i32) {
    let parts = &picture.parts;
    let mut svg = Svg::default();
    let sums: Vec<Sums> = parts.parts.iter().map(|part| parts.sums(&picture.step, part)).collect();
    let largest = sums.iter().map(|sums| sums.launches_before).max().unwrap_or(1).max(1);
    let beside = (most / (CELL.w + 2)).max(1) as usize;
    let row_height = BARS + CELL.h + 26;
    for (i, (part, sums)) in parts.parts.iter().zip(&sums).enumerate() {
        let x = (i % beside) as i32 * (CELL.w + 2);
        let y = (i / beside) as i32 * row_height + 12;
        let bar = |launches: usize| ((launches * BARS as usize / largest) as i32).max(2);
        let title = format!("{}: {}", parts.name(part), sums_text(sums));
        svg.open(&format!(" class=\"part\" data-part=\"{i}\""));
        for (class, inset, launches) in [("before", 2, sums.launches_before), (&*colour(part.kind), 7, sums.launches)] {
            let h = bar(launches);
            let at = Rect { x: x + inset, y: y + BARS - h, w: CELL.w - 2 * inset, h };
            svg.told(class, at, "", &title);
        }
        let at = Rect { x, y: y + BARS + 2, w: CELL.w, h: CELL.h };
        svg.told(&colour(part.kind), at, " rx=\"3\"", &title);
        let label = match part.layers[..] {
            [layer] if !part.outside => parts.layers[layer].1.to_string(),
            [] => "·".into(),
            _ => "+".into(),
        };
        svg.line("cell", x + CELL.w / 2, y + BARS + 17, &label);
        svg.line("count", x + CELL.w / 2, y + BARS + CELL.h + 14, &sums.launches.to_string());
        svg.close();
    }
    (svg.text, parts.parts.len().div_ceil(beside) as i32 * row_height + 12)
}

/// What colours and marks mean.
pub fn legend(svg: &mut Svg, top: i32) -> i32 {
    let mut x = EDGE;
    let y = top + 6;
    let item = |svg: &mut Svg, x: &mut i32, y: i32, class: &str, text: &str| {
        svg.rect(class, Rect { x: *x, y: y - 9, w: 11, h: 11 }, " rx=\"2\"");
        svg.line("small", *x + 17, y, text);
        *x += 17 + width(text, 10) + 18;
    };
    for (class, name) in GROUPS {
        item(svg, &mut x, y, &format!("v {class}"), name);
    }
    let marks = [
        ("v map kept", "stored"),
        ("v map free", "made by its readers, never a launch"),
        ("v map again", "computed again, another region has it too"),
    ];
    let mut x = EDGE;
    for (class, name) in marks {
        item(svg, &mut x, y + 18, class, name);
    }
    svg.rect("v map", Rect { x, y: y + 9, w: 11, h: 11 }, " rx=\"2\"");
    svg.rect("new", Rect { x: x + 4, y: y + 13, w: 3, h: 3 }, "");
    svg.line("small", x + 17, y + 18, "rewritten by proved laws");
    let mut x = EDGE;
    let dots = [
        ("sure", "proved or checked: values, lists, text from left to right"),
        ("open", "unproved"),
        ("none", "there is no text"),
    ];
    for (class, name) in dots {
        svg.dot(class, x + 5, y + 33, name);
        svg.line("small", x + 17, y + 36, name);
        x += 17 + width(name, 10) + 18;
    }
    let notes = [
        "split: neighbouring positions of each axis that a workgroup has, 0 for all; before: launches, were nothing fused",
        "lines: a value, and the bytes of it that are read; the thicker, the more; dotted: small values of other parts, and their launch",
        "dashed room: launches of one value each, one behind the other, in one span",
        "map: a number is a layer, + joins layers, · is outside; colours are kinds; bars: launches before (grey) and after (number)",
    ];
    let mut y = y + 54;
    for note in notes {
        svg.line("small", EDGE, y, note);
        y += 16;
    }
    y + EDGE - 10
}
