//! Pieces of SVG. Whatever comes from a model or a plan passes [`escaped`].

use std::fmt::Write;

/// Width of a character of the fixed-width font, in hundredths of the font's size: that of the widest such font in use.
const CHARACTER: i32 = 61;

/// Text that is safe between tags and between quotes. Characters that XML cannot hold are replaced.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The width of a text of the fixed-width font.
pub fn width(text: &str, size: i32) -> i32 {
    (text.chars().count() as i32 * size * CHARACTER + 99) / 100
}

/// A text that is at most `most` wide: what is cut off becomes an ellipsis.
pub fn fitted(text: &str, size: i32, most: i32) -> String {
    if width(text, size) <= most {
        return text.into();
    }
    let count = (most * 100 / (size * CHARACTER) - 1).max(0) as usize;
    text.chars().take(count).chain(['…']).collect()
}

/// A rectangle.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Left edge.
    pub x: i32,
    /// Upper edge.
    pub y: i32,
    /// Width.
    pub w: i32,
    /// Height.
    pub h: i32,
}

/// SVG text in the making.
#[derive(Default)]
pub struct Svg {
    /// What was written so far.
    pub text: String,
}

impl Svg {
    /// A rectangle of a class; `more` are further attributes.
    pub fn rect(&mut self, class: &str, at: Rect, more: &str) {
        let Rect { x, y, w, h } = at;
        let _ = writeln!(self.text, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"{more}/>");
    }

    /// A rectangle that tells something when it is pointed at.
    pub fn told(&mut self, class: &str, at: Rect, more: &str, title: &str) {
        let Rect { x, y, w, h } = at;
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"{more}><title>{}</title></rect>",
            escaped(title)
        );
    }

    /// A line of text whose base line is at `y`.
    pub fn line(&mut self, class: &str, x: i32, y: i32, text: &str) {
        let _ = writeln!(self.text, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
    }

    /// A dot of a class.
    pub fn dot(&mut self, class: &str, x: i32, y: i32, title: &str) {
        let title = escaped(title);
        let _ = writeln!(
            self.text,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"4\"><title>{title}</title></circle>"
        );
    }

    /// A way along horizontal and vertical lines, with round corners.
    pub fn way(&mut self, class: &str, more: &str, points: &[(i32, i32)], title: &str) {
        let path = rounded(points);
        let title = escaped(title);
        let _ = writeln!(self.text, "<path class=\"{class}\"{more} d=\"{path}\"><title>{title}</title></path>");
    }

    /// Opens a group; `more` are its attributes.
    pub fn open(&mut self, more: &str) {
        let _ = writeln!(self.text, "<g{more}>");
    }

    /// Closes a group.
    pub fn close(&mut self) {
        self.text.push_str("</g>\n");
    }
}

/// Path data of a line of corners, each cut by a curve.
fn rounded(points: &[(i32, i32)]) -> String {
    const RADIUS: i32 = 5;
    let mut corners: Vec<(i32, i32)> = points.to_vec();
    corners.dedup();
    let mut path = String::new();
    for (i, &(x, y)) in corners.iter().enumerate() {
        let (Some(before), Some(after)) = (i.checked_sub(1).map(|i| corners[i]), corners.get(i + 1)) else {
            let _ = write!(path, "{}{x} {y}", if i == 0 { "M" } else { "L" });
            continue;
        };
        let towards = |(a, b): (i32, i32)| {
            let length = (a - x).abs() + (b - y).abs();
            let radius = RADIUS.min(length / 2);
            (x + (a - x).signum() * radius, y + (b - y).signum() * radius)
        };
        let ((ax, ay), (bx, by)) = (towards(before), towards(*after));
        let _ = write!(path, "L{ax} {ay}Q{x} {y} {bx} {by}");
    }
    path
}
