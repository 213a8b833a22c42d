//! Drawing a part of a step.

use ds4_ir::graph::Value;

use super::place::{
    BOX, CHIP, DOOR, Door, LINE, PAD, PITCH, Placed, Places, SIGN, Standing, TITLE, Way, columns, place,
};
use super::rooms::{Band, Readers, Room, bands, group};
use super::svg::{Rect, Svg, fitted};
use super::{Picture, Proof};
use crate::step::parts::Part;
use crate::step::size;

/// Colours of ways, so that neighbours can be told apart.
pub const WAYS: usize = 6;

/// A drawn part, its corner at 0, 0.
pub struct Drawing {
    /// SVG elements.
    pub svg: String,
    /// Width and height.
    pub size: (i32, i32),
}

/// Draws a part of a step; beside the drawing its bands, which a page tells more about.
pub fn draw(picture: &Picture<'_>, readers: &Readers, part: &Part) -> (Drawing, Vec<Band>) {
    let bands = bands(&picture.step, readers, part);
    let places = place(&bands, readers, part);
    let mut artist = Artist { picture, readers, part, bands: &bands, svg: Svg::default() };
    for (band, &at) in bands.iter().zip(&places.bands) {
        artist.band(band, at);
    }
    artist.ways(&places);
    for placed in &places.placed {
        artist.standing(placed);
    }
    let svg = artist.svg.text;
    (Drawing { svg, size: places.size }, bands)
}

/// How a page knows a room: launch and number of its first region.
pub fn key(room: &Room) -> String {
    room.regions.first().map_or_else(String::new, |(launch, region)| format!("{launch}.{region}"))
}

struct Artist<'p, 'a> {
    picture: &'p Picture<'a>,
    readers: &'p Readers,
    part: &'p Part,
    bands: &'p [Band],
    svg: Svg,
}

impl Artist<'_, '_> {
    /// What lies behind the rooms of a launch, and the launch's name.
    fn band(&mut self, band: &Band, at: Rect) {
        let step = &self.picture.step;
        self.svg.rect("band", at, " rx=\"8\"");
        let (first, last) = (band.launches[0], *band.launches.last().unwrap_or(&0));
        let name = if first == last { format!("launch {first}") } else { format!("launches {first}–{last}") };
        let before: usize = band.launches.iter().map(|&launch| step.owned(launch).len()).sum();
        let y = at.y + 6;
        self.svg.line("name", 12, y + 12, &name);
        self.svg.line("small", 12, y + 28, &format!("{before} before → {}", band.launches.len()));
        let kernels: usize = band.launches.iter().map(|&launch| step.launch(launch).dispatches.len as usize).sum();
        if kernels > 0 {
            let text = if kernels == 1 { "text unproved".into() } else { format!("{kernels} texts unproved") };
            self.svg.line("unproved", 12, y + 43, &text);
        }
    }

    fn ways(&mut self, places: &Places) {
        for way in &places.ways {
            let Way { value, bytes, points, ends } = way;
            let from = self.name(&places.placed[ends[0]]);
            let to = self.name(&places.placed[ends[1]]);
            let width = 1 + (bytes.checked_ilog2().unwrap_or(0) as usize).saturating_sub(4) / 5;
            let class = format!("way c{} w{}", value.0 as usize % WAYS, width.min(4));
            let title = format!("{value} {}: {} from {from} to {to}", self.picture.step.typed(*value), size(*bytes));
            let keys = ends.map(|end| self.key(&places.placed[end]));
            let data = format!(" data-way=\"{value}\" data-from=\"{}\" data-to=\"{}\"", keys[0], keys[1]);
            self.svg.way(&class, &data, points, &title);
        }
    }

    fn key(&self, placed: &Placed) -> String {
        match placed.what {
            Standing::Room(band, room) => key(&self.bands[band].rooms[room]),
            Standing::From(_) | Standing::To(_) => String::new(),
        }
    }

    fn name(&self, placed: &Placed) -> String {
        match placed.what {
            Standing::Room(band, room) => self.bands[band].rooms[room].title.clone(),
            Standing::From(v) => self.origin(v),
            Standing::To(v) => self.readers_text(v),
        }
    }

    /// Where a value of another part comes from.
    fn origin(&self, v: Value) -> String {
        self.picture.step.lists.first(v).map_or_else(String::new, |found| format!("launch {}", found.0))
    }

    /// The launches of other parts that read a value: the first one, and how many more.
    fn readers(&self, v: Value) -> (usize, usize) {
        let readers = self.readers.of.get(&v).into_iter().flatten().map(|found| found.0);
        let mut launches: Vec<usize> =
            readers.filter(|launch| self.part.launches.binary_search(launch).is_err()).collect();
        launches.dedup();
        (launches.first().copied().unwrap_or(0), launches.len().saturating_sub(1))
    }

    fn readers_text(&self, v: Value) -> String {
        match self.readers(v) {
            (first, 0) => format!("launch {first}"),
            (first, more) => format!("launch {first} +{more} more"),
        }
    }

    fn standing(&mut self, placed: &Placed) {
        match placed.what {
            Standing::Room(band, room) => self.room(&self.bands[band].rooms[room], placed.at),
            Standing::From(v) => self.chip(v, &format!("from {}", self.origin(v)), placed.at),
            Standing::To(v) => self.chip(v, &format!("to {}", self.readers_text(v)), placed.at),
        }
        let Rect { y, h, .. } = placed.at;
        for door in &placed.exits {
            let elsewhere = door.elsewhere.then(|| match self.readers(door.value) {
                (first, 0) => format!("→ launch {first}"),
                (first, more) => format!("→ {first} +{more}"),
            });
            self.signs(door, y + h + SIGN, y + h, elsewhere, 1);
        }
        for door in &placed.entries {
            let elsewhere = door.elsewhere.then(|| format!("← {}", self.origin(door.value)));
            self.signs(door, y - 3, y, elsewhere, -1);
        }
    }

    /// What is written at a door, from the room outwards; a value from or for elsewhere has a short way only.
    fn signs(&mut self, door: &Door, first: i32, wall: i32, elsewhere: Option<String>, outwards: i32) {
        let Door { value, bytes, x, .. } = *door;
        if let Some(text) = elsewhere {
            let title = format!("{value} {} {text}", self.picture.step.typed(value));
            let ends = [(x, wall), (x, wall + outwards * (3 * SIGN - 2))];
            self.svg.way("way stub", &format!(" data-way=\"{value}\""), &ends, &title);
            self.svg.line("sign", x + 5, first + outwards * 2 * SIGN, &fitted(&text, 9, DOOR - 8));
        }
        let mut lines = [value.to_string(), size(bytes)];
        if outwards < 0 {
            lines.reverse();
        }
        for (i, line) in lines.iter().enumerate() {
            self.svg.line("sign", x + 5, first + outwards * i as i32 * SIGN, line);
        }
    }

    fn chip(&mut self, v: Value, what: &str, at: Rect) {
        let step = &self.picture.step;
        let title = format!("{v} {} {}", step.typed(v), step.span(v));
        self.svg.told("chip", at, " rx=\"10\"", &title);
        self.svg.line("small", at.x + 10, at.y + 14, &fitted(&step.typed(v), 10, CHIP.w - 16));
        self.svg.line("small", at.x + 10, at.y + 27, &fitted(what, 10, CHIP.w - 16));
    }

    fn room(&mut self, room: &Room, at: Rect) {
        let many = if room.regions.len() > 1 { " run" } else { "" };
        self.svg.open(&format!(" class=\"room{many}\" data-room=\"{}\"", key(room)));
        self.svg.rect("wall", at, " rx=\"6\"");
        let x = at.x + PAD;
        self.svg.line("title", x, at.y + PAD + 9, &fitted(&room.title, 12, at.w - 2 * PAD - 44));
        self.marks(room, at);
        let mut y = at.y + PAD + TITLE;
        for line in &room.above {
            self.svg.line("small", x, y + 8, &fitted(line, 10, at.w - 2 * PAD));
            y += LINE;
        }
        let columns = columns(at.w);
        for (i, &v) in room.values.iter().enumerate() {
            let (column, row) = ((i % columns) as i32, (i / columns) as i32);
            self.value(room, v, Rect { x: x + column * PITCH, y: y + row * PITCH, w: BOX, h: BOX });
        }
        y += room.values.len().div_ceil(columns) as i32 * PITCH;
        for line in &room.below {
            self.svg.line("small", x, y + 10, line);
            y += LINE;
        }
        self.svg.close();
    }

    /// What is proved: of the values, of the lists, of the text.
    fn marks(&mut self, room: &Room, at: Rect) {
        let proof = &self.picture.proof;
        let has_text = self.picture.step.launch(room.regions[0].0).dispatches.len > 0;
        let values = match (proof.is_certified(), room.values.iter().filter(|&&v| proof.is_rewritten(v)).count()) {
            (false, _) => ("sure", "values: the model's own graph, nothing was rewritten".into()),
            (true, n) => ("sure", format!("values: certificate checked, {n} of {} rewritten", room.values.len())),
        };
        let text = match has_text {
            true => ("open", Proof::TEXT),
            false => ("none", "text: none, the plan is for the CPU"),
        };
        let y = at.y + PAD + 5;
        let right = at.x + at.w - PAD;
        self.svg.dot(values.0, right - 28, y, &values.1);
        self.svg.dot("sure", right - 16, y, Proof::LISTS);
        self.svg.dot(text.0, right - 4, y, text.1);
    }

    fn value(&mut self, room: &Room, v: Value, at: Rect) {
        let step = &self.picture.step;
        let mut class = format!("v {}", group(step.graph.op(v)));
        let mut said = Vec::new();
        if !step.is_launched_alone(v) {
            class += " free";
            said.push("made by its readers");
        }
        if step.lists.first(v).is_some_and(|first| !room.regions.contains(&first)) {
            class += " again";
            said.push("computed again");
        } else if step.lists.is_stored(v) {
            class += " kept";
            said.push("stored");
        }
        if self.picture.proof.is_rewritten(v) {
            said.push("rewritten, certificate checked");
        }
        let op = step.graph.op(v).name();
        let title = format!("{v} {op} {} {} {}", step.typed(v), step.span(v), said.join(", "));
        self.svg.told(&class, at, " rx=\"2\"", title.trim_end());
        if self.picture.proof.is_rewritten(v) {
            self.svg.rect("new", Rect { x: at.x + 4, y: at.y + 4, w: 3, h: 3 }, "");
        }
    }
}
