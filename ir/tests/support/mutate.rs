//! Damaged texts for the parser, and what must hold for each of them.

use ds4_ir::text::{parse, print};

use super::random::Random;

/// Pieces that the grammar gives a meaning.
const PIECES: [&str; 34] = [
    "f32[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "=",
    "@",
    "%",
    "-",
    "+",
    "*",
    "/ 0",
    "0x",
    "1e39",
    "4294967296",
    "inf",
    "columns",
    "completed(",
    "lanes(",
    "axis=",
    "start=",
    "map { ",
    "gather axis=0 batch=0 ",
    "concat axis=0 ",
    "\"",
    "\\u{",
    "dims ",
    "shapes ",
    "order ",
    "body b(f32) = ",
    "\u{1f980}",
];

/// Samples: the file tests without their expectations.
pub fn samples() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of file tests")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read_to_string(path).expect("a readable file"));
    texts.flat_map(|text| text.split("; ----\n").map(String::from).collect::<Vec<_>>()).collect()
}

/// A damaged copy of one of the samples.
pub fn mutated(samples: &[String], random: &mut Random) -> String {
    let mut bytes = random.of(samples).clone().into_bytes();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(40)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, random.of(&PIECES).bytes())),
            4 => drop(bytes.splice(at..end, random.of(&PIECES).bytes())),
            5 => splice_line(&mut bytes, random.of(samples).as_bytes(), random),
            _ => {
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Puts a line of another sample between two lines.
fn splice_line(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let lines: Vec<_> = other.split_inclusive(|&b| b == b'\n').collect();
    let starts: Vec<_> = (0..bytes.len()).filter(|&i| i == 0 || bytes[i - 1] == b'\n').collect();
    if !lines.is_empty() && !starts.is_empty() {
        let at = *random.of(&starts);
        bytes.splice(at..at, random.of(&lines).iter().copied());
    }
}

/// Parses a text. A diagnostic points into it and renders; tables are no larger than the text allows, and print as a
/// text that gives them again. Whether the text was accepted.
pub fn check(text: &str) -> bool {
    let tables = match parse(text, "mutated") {
        Ok(tables) => tables,
        Err(fault) => {
            assert!(fault.place.source.is_some() && fault.to_string().contains("line "));
            return false;
        }
    };
    let bytes: usize = tables.view().sections().iter().map(|section| section.bytes.len()).sum();
    // A statement of ten bytes makes a value of at most sixteen axes and a few rows of other tables.
    assert!(bytes <= 4096 + 64 * text.len(), "{bytes} bytes of tables from {} of text", text.len());
    let printed = print(&tables.view());
    let again = parse(&printed, "printed").unwrap_or_else(|fault| panic!("{fault}\nprinted of\n{text}"));
    assert_eq!(again, tables, "{text}");
    true
}
