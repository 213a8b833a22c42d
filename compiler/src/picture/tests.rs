//! What must hold of every drawing: nothing lies on anything else.

use std::path::Path;
use std::sync::LazyLock;

use ds4_ir::graph::Value;

use super::place::{Places, SIGN, Standing, place};
use super::rooms::{Readers, bands};
use super::svg::{Rect, Svg, escaped, fitted, width};
use super::{Picture, Proof};
use crate::assemble::{Compiled, compile};
use crate::frame::Form;
use crate::fuse::Profile;
use crate::lower::Options;
use crate::model::Model;
use crate::step::Step;
use crate::step::parts::Parts;
use crate::step::tests::assembled;

/// Searching takes seconds: the tests share what it found.
static FUSED: LazyLock<Compiled> = LazyLock::new(|| compiled(Some(&Profile::find("generic").unwrap())));

fn compiled(fusion: Option<&Profile>) -> Compiled {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/oracle/tiny-a/model.f16.gguf");
    let checkpoint = crate::read::open(&path).unwrap();
    let model = Model::read(&checkpoint).unwrap();
    let options = Options::for_model(&model.architecture);
    compile(&checkpoint, &model, &options, "model.gguf", &Form { targets: &[], fusion }).unwrap()
}

/// The places of all parts of a plan's steps.
fn all_places(compiled: &Compiled) -> Vec<Places> {
    let (graph, plan) = (compiled.graph.view(), compiled.plan.view());
    let mut found = Vec::new();
    for entry in plan.entries {
        let step = Step::new(graph, plan, entry);
        let readers = Readers::new(&step);
        for part in &Parts::new(&step).parts {
            let bands = bands(&step, &readers, part);
            found.push(place(&bands, &readers, part));
        }
    }
    found
}

fn touch(a: Rect, b: Rect) -> bool {
    a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}

/// What is written at the doors, as wide as it may be.
fn signs(places: &Places) -> Vec<Rect> {
    let mut signs = Vec::new();
    for placed in &places.placed {
        let at = placed.at;
        let height = |elsewhere: bool| if elsewhere { 3 * SIGN } else { 2 * SIGN };
        let sign = |text: &str, x: i32, y: i32, h: i32| Rect { x: x + 5, y, w: width(text, 9), h };
        for door in &placed.exits {
            signs.push(sign("v1234567890", door.x, at.y + at.h, height(door.elsewhere)));
        }
        for door in &placed.entries {
            let h = height(door.elsewhere);
            signs.push(sign("1023.9 KiB", door.x, at.y - h, h));
        }
    }
    signs
}

/// Pieces of ways that run along one line: whether vertical, where, from, to, and whose.
fn pieces(places: &Places) -> Vec<(bool, i32, i32, i32, Value)> {
    let mut pieces = Vec::new();
    for way in &places.ways {
        for pair in way.points.windows(2) {
            let ((ax, ay), (bx, by)) = (pair[0], pair[1]);
            assert!(ax == bx || ay == by, "ways run along lines");
            let vertical = ax == bx;
            let (at, from, to) = if vertical { (ax, ay, by) } else { (ay, ax, bx) };
            pieces.push((vertical, at, from.min(to), from.max(to), way.value));
        }
    }
    pieces
}

fn check(places: &Places) {
    let rooms: Vec<Rect> = places.placed.iter().map(|placed| placed.at).collect();
    let all: Vec<Rect> = rooms.iter().copied().chain(signs(places)).collect();
    for (i, &a) in all.iter().enumerate() {
        assert!(a.x >= 0 && a.y >= 0 && a.y + a.h <= places.size.1 + 3 * SIGN, "{a:?}");
        for &b in &all[i + 1..] {
            assert!(!touch(a, b), "{a:?} lies on {b:?}");
        }
    }
    let mut pieces = pieces(places);
    pieces.sort();
    for &(vertical, at, from, to, value) in &pieces {
        let piece = match vertical {
            true => Rect { x: at, y: from + 1, w: 1, h: to - from - 2 },
            false => Rect { x: from + 1, y: at, w: to - from - 2, h: 1 },
        };
        if piece.w > 0 && piece.h > 0 {
            assert!(!rooms.iter().any(|&room| touch(piece, room)), "a way of {value} crosses a room");
        }
    }
    for line in pieces.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        for (i, &(.., from, to, value)) in line.iter().enumerate() {
            let other = line[i + 1..].iter().find(|other| other.4 != value && from < other.3 && other.2 < to);
            assert_eq!(other, None, "{value} shares a line from {from} to {to}");
        }
    }
    for way in &places.ways {
        let [from, to] = way.ends.map(|end| places.placed[end].at);
        let (first, last) = (way.points[0], *way.points.last().unwrap());
        assert!(first.1 == from.y + from.h && (from.x..from.x + from.w).contains(&first.0));
        assert!(last.1 == to.y && (to.x..to.x + to.w).contains(&last.0));
    }
}

#[test]
fn nothing_lies_on_anything_else() {
    for compiled in [&compiled(None), &*FUSED] {
        let all = all_places(compiled);
        all.iter().for_each(check);
        assert!(all.iter().map(|places| places.ways.len()).sum::<usize>() > 50);
        assert!(all.iter().all(|places| places.size.0 < 2000), "a picture is as wide as a screen");
    }
}

#[test]
fn every_value_that_is_read_elsewhere_has_a_door() {
    let (graph, plan) = (FUSED.graph.view(), FUSED.plan.view());
    let step = Step::new(graph, plan, &plan.entries[0]);
    let readers = Readers::new(&step);
    let parts = Parts::new(&step);
    let mut rooms = 0;
    for part in &parts.parts {
        let bands = bands(&step, &readers, part);
        let places = place(&bands, &readers, part);
        for placed in &places.placed {
            let Standing::Room(band, room) = placed.what else { continue };
            let room = &bands[band].rooms[room];
            let entries: Vec<_> = placed.entries.iter().map(|door| (door.value, door.bytes)).collect();
            assert_eq!(entries, room.inputs);
            let reached = places.ways.iter().filter(|way| std::ptr::eq(&places.placed[way.ends[1]], placed)).count();
            assert_eq!(reached, placed.entries.iter().filter(|door| !door.elsewhere).count());
            rooms += 1;
        }
    }
    assert_eq!(rooms, step.all().count());
}

#[test]
fn names_cannot_leave_their_text() {
    assert_eq!(escaped("a<b>&\"'\u{1}\u{ffff}é"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}é");
    let mut svg = Svg::default();
    svg.line("small", 1, 2, "</text><script>");
    svg.told("wall", Rect::default(), "", "<b>");
    assert_eq!(svg.text.matches("<script").count() + svg.text.matches("<b>").count(), 0);
}

/// A graph whose names are as bad as names can be.
const BAD: &str = "\
weight \"w</script><b>&\": w.f16[8, 32]
state \"s<i>\": f32[16, 32]
t = tokens
r = read \"s<i>\"
x: f32[columns, 32] = gather axis=0 r, t @ layer.0
n = map { neg(x0) } x @ layer.0/\"<u>\"
w = weight \"w</script><b>&\"
y = product lanes(32) n, w @ layer.0/\"</text>\"
output y = y
";

#[test]
fn names_of_a_graph_cannot_leave_their_text() {
    let graph = ds4_ir::text::parse(BAD, "bad").unwrap();
    let plan = assembled(&graph.view());
    let (graph, plan) = (graph.view(), plan.view());
    let step = Step::new(graph, plan, &plan.entries[0]);
    let picture = Picture::new(step, Proof::new(None), "<a>".into());
    for text in [picture.svg(), picture.html()] {
        for bad in ["<a>", "<b>", "<i>", "<u>", "w</script"] {
            assert!(!text.contains(bad), "{bad}");
        }
        assert!(text.contains("&lt;u&gt;") && !text.contains("</text></text>"));
    }
    let page = picture.html();
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("w\\u003c/script>\\u003cb>&"), "the data has the name as it is");
}

#[test]
fn texts_are_cut_to_their_width() {
    for most in [20, 61, 100] {
        let text = fitted("a name that is much too long", 10, most);
        assert!(width(&text, 10) <= most && text.ends_with('…'), "{text}");
    }
    assert_eq!(fitted("short", 10, 100), "short");
}
