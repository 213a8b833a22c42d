//! Places: where rooms stand, and which ways the bytes between them take.
//!
//! Rooms stand in rows, launch after launch. Between two rows lies a corridor of horizontal tracks, left of all rooms a shaft of
//! vertical lanes. A value leaves the room that computes it by a door at the bottom, takes one track of the corridor there,
//! and enters the rooms of the next row by doors at the top; what is read further down goes by a lane. Doors at the bottom
//! and doors at the top never share a vertical line, nor do two ways share a piece of track or lane.
//!
//! What comes from another part of the step, or goes there, has a chip above or below all rooms; small values, of which there
//! are many, have a sign at the door instead.

use std::collections::{BTreeMap, BTreeSet};

use ds4_ir::graph::Value;

use super::rooms::{Band, Readers, Room};
use super::svg::{Rect, width};
use crate::step::parts::Part;

/// Where the column with the names of launches ends.
const MARGIN: i32 = 150;
/// Size and pitch of a value's box.
pub const BOX: i32 = 11;
pub const PITCH: i32 = 14;
/// Height of a room's title, and of its other lines.
pub const TITLE: i32 = 20;
pub const LINE: i32 = 14;
/// Space inside a room.
pub const PAD: i32 = 10;
/// Distance of doors; what is written at a door fits in between.
pub const DOOR: i32 = 72;
/// Height of a line that is written at doors.
pub const SIGN: i32 = 11;
/// Bytes from which a value of another part has a chip.
const CHIPPED: u64 = 1024;
const GAP: i32 = 24;
const TRACK: i32 = 8;
const LANE: i32 = 10;
/// Rooms of a launch that are wider together stand in several rows.
const MOST: i32 = 1500;
/// Size of a chip: a value from elsewhere, or for elsewhere.
pub const CHIP: Rect = Rect { x: 0, y: 0, w: 148, h: 34 };

/// What stands in a row.
pub enum Standing {
    /// A value that comes from another part.
    From(Value),
    /// A room: its band, and its number there.
    Room(usize, usize),
    /// A value that other parts read.
    To(Value),
}

/// Something with a place.
pub struct Placed {
    /// What it is.
    pub what: Standing,
    /// Where it is.
    pub at: Rect,
    /// Doors at the top.
    pub entries: Vec<Door>,
    /// Doors at the bottom.
    pub exits: Vec<Door>,
}

/// Where a value enters or leaves.
#[derive(Clone, Copy)]
pub struct Door {
    /// The value.
    pub value: Value,
    /// Bytes of it.
    pub bytes: u64,
    /// Where the door is.
    pub x: i32,
    /// Whether the value comes from another part, or goes to another part, and has no chip.
    pub elsewhere: bool,
}

/// The way of a value from one door to another.
pub struct Way {
    /// The value.
    pub value: Value,
    /// What it carries.
    pub bytes: u64,
    /// Its corners.
    pub points: Vec<(i32, i32)>,
    /// From what it comes and to what it goes, in [`Places::placed`].
    pub ends: [usize; 2],
}

/// A part of a step with all places.
pub struct Places {
    /// Everything that stands somewhere.
    pub placed: Vec<Placed>,
    /// The ways.
    pub ways: Vec<Way>,
    /// Where each band is.
    pub bands: Vec<Rect>,
    /// Width and height of everything.
    pub size: (i32, i32),
}

/// Columns of boxes in a room of a width: all that fit.
pub fn columns(width: i32) -> usize {
    ((width - 2 * PAD) / PITCH).max(1) as usize
}

/// The size of a room.
fn room_size(room: &Room) -> (i32, i32) {
    let count = room.values.len();
    // Boxes of many values take more than twice as much width as height.
    let wanted = (1..=26).find(|n| n * n * 10 >= count * 24).unwrap_or(26) as i32;
    let lines = room.above.iter().chain(&room.below).map(|line| width(line, 10)).max().unwrap_or(0);
    // Beside the title stand three marks.
    let text = (width(&room.title, 12) + 48).max(lines).min(300);
    let doors = room.inputs.len().max(room.outputs.len()) as i32 * DOOR;
    let w = up_to_8(text.max(wanted * PITCH).max(doors) + 2 * PAD);
    let rows = count.div_ceil(columns(w)) as i32;
    let lines = (room.above.len() + room.below.len()) as i32 * LINE;
    (w, TITLE + lines + rows * PITCH + 2 * PAD)
}

fn up_to_8(x: i32) -> i32 {
    (x + 7) / 8 * 8
}

/// The rows of a part: what comes from elsewhere, its rooms, what goes elsewhere.
struct Rows {
    placed: Vec<Placed>,
    rows: Vec<Vec<usize>>,
    /// First and last row of each band.
    of_band: Vec<(usize, usize)>,
}

impl Rows {
    fn stand(&mut self, what: Standing, (w, h): (i32, i32), entries: Vec<Door>, exits: Vec<Door>) {
        let row = self.rows.len() - 1;
        let beside = self.rows[row].iter().map(|&i| self.placed[i].at.w + GAP).sum::<i32>();
        if beside + w > MOST && beside > 0 {
            self.rows.push(Vec::new());
        }
        let row = self.rows.len() - 1;
        let at = Rect { x: 0, y: 0, w, h };
        self.rows[row].push(self.placed.len());
        self.placed.push(Placed { what, at, entries, exits });
    }

    fn new(bands: &[Band], readers: &Readers, part: &Part) -> Rows {
        let rooms = || bands.iter().flat_map(|band| &band.rooms);
        let inside: BTreeSet<Value> = rooms().flat_map(|room| &room.outputs).map(|output| output.0).collect();
        let mut from: BTreeMap<Value, u64> = BTreeMap::new();
        let mut to: BTreeMap<Value, u64> = BTreeMap::new();
        for room in rooms() {
            for &(v, bytes) in room.inputs.iter().filter(|input| !inside.contains(&input.0)) {
                let most = from.entry(v).or_default();
                *most = (*most).max(bytes);
            }
            let elsewhere =
                |v: &Value| readers.of[v].iter().any(|found| part.launches.binary_search(&found.0).is_err());
            to.extend(room.outputs.iter().filter(|(v, _)| elsewhere(v)).copied());
        }
        from.retain(|_, bytes| *bytes >= CHIPPED);
        let small: BTreeSet<Value> = to.iter().filter(|(_, bytes)| **bytes < CHIPPED).map(|(&v, _)| v).collect();
        to.retain(|v, _| !small.contains(v));
        let door = |&(value, bytes): &(Value, u64), elsewhere| Door { value, bytes, x: 0, elsewhere };
        let mut rows = Rows { placed: Vec::new(), rows: vec![Vec::new()], of_band: Vec::new() };
        let chip = (CHIP.w, CHIP.h);
        from.iter()
            .for_each(|(&v, &bytes)| rows.stand(Standing::From(v), chip, vec![], vec![door(&(v, bytes), false)]));
        for (b, band) in bands.iter().enumerate() {
            rows.rows.push(Vec::new());
            let first = rows.rows.len() - 1;
            for (r, room) in band.rooms.iter().enumerate() {
                let entries = room
                    .inputs
                    .iter()
                    .map(|input| door(input, !inside.contains(&input.0) && !from.contains_key(&input.0)));
                let exits = room.outputs.iter().map(|output| door(output, small.contains(&output.0)));
                rows.stand(Standing::Room(b, r), room_size(room), entries.collect(), exits.collect());
            }
            rows.of_band.push((first, rows.rows.len() - 1));
        }
        rows.rows.push(Vec::new());
        to.iter().for_each(|(&v, &bytes)| rows.stand(Standing::To(v), chip, vec![door(&(v, bytes), false)], vec![]));
        rows
    }
}

/// A value on its way: from a row, by a lane if it goes beyond the next row, to doors in rows below.
struct Net {
    value: Value,
    from: usize,
    row: usize,
    exit: i32,
    lane: i32,
    /// Row, door, bytes, and what has the door.
    to: Vec<(usize, i32, u64, usize)>,
    /// Its track in each corridor that it takes one of; a corridor has the number of the row above it.
    tracks: BTreeMap<usize, i32>,
}

impl Net {
    fn is_long(&self) -> bool {
        self.to.iter().any(|to| to.0 > self.row + 1)
    }

    /// The corridors that it uses, each with what it has to reach there.
    fn corridors(&self) -> BTreeMap<usize, Vec<i32>> {
        let mut all: BTreeMap<usize, Vec<i32>> = BTreeMap::new();
        all.entry(self.row).or_default().push(self.exit);
        if self.is_long() {
            all.entry(self.row).or_default().push(self.lane);
        }
        for &(row, door, ..) in &self.to {
            let reached = all.entry(row - 1).or_default();
            reached.push(door);
            if row - 1 > self.row {
                reached.push(self.lane);
            }
        }
        all
    }
}

/// Gives each interval the first free place of a list; intervals that share a place do not touch.
fn places(intervals: impl Iterator<Item = (i32, i32)>) -> (Vec<i32>, i32) {
    let mut taken: Vec<Vec<(i32, i32)>> = Vec::new();
    let mut found = Vec::new();
    for (from, to) in intervals {
        let is_free = |list: &Vec<(i32, i32)>| list.iter().all(|&(a, b)| to < a || b < from);
        let place = taken.iter().position(is_free).unwrap_or(taken.len());
        if place == taken.len() {
            taken.push(Vec::new());
        }
        taken[place].push((from, to));
        found.push(place as i32);
    }
    (found, taken.len() as i32)
}

/// Places the bands of a part.
pub fn place(bands: &[Band], readers: &Readers, part: &Part) -> Places {
    let mut rows = Rows::new(bands, readers, part);
    let mut nets = nets(&rows);
    nets.retain(|net| !net.to.is_empty());
    let spans = nets.iter().filter(|net| net.is_long()).map(|net| {
        let last = net.to.iter().map(|to| to.0).max().unwrap_or(net.row);
        (net.row as i32, last as i32 - 1)
    });
    let (lanes, count) = places(spans);
    let left = up_to_8(MARGIN + 16 + count * LANE + 16);
    let mut lanes = lanes.into_iter();
    for net in nets.iter_mut().filter(|net| net.is_long()) {
        // The first lanes are next to the rooms.
        net.lane = left - 17 - lanes.next().unwrap_or(0) * LANE;
    }
    place_across(&mut rows, left);
    for net in &mut nets {
        net.exit = rows.placed[net.from].exits.iter().find(|exit| exit.value == net.value).map_or(0, |exit| exit.x);
        for (_, door, _, at) in &mut net.to {
            *door = rows.placed[*at].entries.iter().find(|entry| entry.value == net.value).map_or(0, |entry| entry.x);
        }
    }
    let tops = place_down(&mut rows, &mut nets);
    finish(rows, nets, &tops)
}

/// The values that have doors, by the rows that they leave.
fn nets(rows: &Rows) -> Vec<Net> {
    let mut nets: Vec<Net> = Vec::new();
    let mut of_value: BTreeMap<Value, usize> = BTreeMap::new();
    for (row, standing) in rows.rows.iter().enumerate() {
        for &at in standing {
            for entry in &rows.placed[at].entries {
                if let Some(&net) = of_value.get(&entry.value) {
                    nets[net].to.push((row, 0, entry.bytes, at));
                }
            }
        }
        for &at in standing {
            for &Door { value, .. } in &rows.placed[at].exits {
                of_value.insert(value, nets.len());
                nets.push(Net { value, from: at, row, exit: 0, lane: 0, to: Vec::new(), tracks: BTreeMap::new() });
            }
        }
    }
    nets
}

/// Places everything from left to right, doors included.
fn place_across(rows: &mut Rows, left: i32) {
    for row in &rows.rows {
        let mut x = left;
        for &at in row {
            let placed = &mut rows.placed[at];
            placed.at.x = x;
            // Vertical lines below a row are at multiples of 8, those above at 4 more.
            for (i, exit) in placed.exits.iter_mut().enumerate() {
                exit.x = x + 8 + i as i32 * DOOR;
            }
            for (i, entry) in placed.entries.iter_mut().enumerate() {
                entry.x = x + 12 + i as i32 * DOOR;
            }
            x += up_to_8(placed.at.w) + GAP;
        }
    }
}

/// Places the rows from top to bottom, with corridors as wide as their tracks want; gives the top of each corridor's tracks.
fn place_down(rows: &mut Rows, nets: &mut [Net]) -> Vec<i32> {
    let mut y = 8;
    let mut tops = Vec::new();
    for (row, standing) in rows.rows.iter().enumerate() {
        let height = standing.iter().map(|&at| rows.placed[at].at.h).max().unwrap_or(0);
        standing.iter().for_each(|&at| rows.placed[at].at.y = y);
        y += height;
        let mut users: Vec<(i32, i32, usize)> = Vec::new();
        for (n, net) in nets.iter().enumerate() {
            if let Some(reached) = net.corridors().get(&row) {
                users.push((*reached.iter().min().unwrap_or(&0), *reached.iter().max().unwrap_or(&0), n));
            }
        }
        users.sort();
        let (tracks, count) = places(users.iter().map(|&(from, to, _)| (from, to)));
        for (&(_, _, n), track) in users.iter().zip(tracks) {
            nets[n].tracks.insert(row, track);
        }
        y += signs(standing.iter().flat_map(|&at| &rows.placed[at].exits));
        tops.push(y);
        let below = rows.rows.get(row + 1).into_iter().flatten();
        y += count * TRACK + signs(below.flat_map(|&at| &rows.placed[at].entries));
    }
    tops
}

/// Height of what is written at doors.
fn signs<'d>(doors: impl Iterator<Item = &'d Door>) -> i32 {
    6 + SIGN * doors.map(|door| if door.elsewhere { 3 } else { 2 }).max().unwrap_or(0)
}

fn finish(rows: Rows, nets: Vec<Net>, tops: &[i32]) -> Places {
    let mut ways = Vec::new();
    for net in &nets {
        let track = |corridor: usize| tops[corridor] + net.tracks.get(&corridor).copied().unwrap_or(0) * TRACK;
        let bottom = rows.placed[net.from].at.y + rows.placed[net.from].at.h;
        for &(row, door, bytes, at) in &net.to {
            let mut points = vec![(net.exit, bottom), (net.exit, track(net.row))];
            if row > net.row + 1 {
                points.extend([(net.lane, track(net.row)), (net.lane, track(row - 1))]);
            }
            points.extend([(door, track(row - 1)), (door, rows.placed[at].at.y)]);
            ways.push(Way { value: net.value, bytes, points, ends: [net.from, at] });
        }
    }
    let right = rows.placed.iter().map(|placed| placed.at.x + placed.at.w).max().unwrap_or(MARGIN) + 12;
    let band = |&(first, last): &(usize, usize)| {
        let inside = rows.rows[first..=last].iter().flatten().map(|&at| rows.placed[at].at);
        let top = inside.clone().map(|at| at.y).min().unwrap_or(0);
        let bottom = inside.map(|at| at.y + at.h).max().unwrap_or(0);
        Rect { x: 0, y: top - 6, w: right, h: bottom - top + 12 }
    };
    let bands: Vec<Rect> = rows.of_band.iter().map(band).collect();
    let bottom = rows.placed.iter().map(|placed| placed.at.y + placed.at.h).max().unwrap_or(0) + 8;
    Places { placed: rows.placed, ways, bands, size: (right, bottom) }
}
