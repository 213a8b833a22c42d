//! Names in emitted text: those of the schedule, made unique.

use std::collections::HashSet;

/// Names taken so far.
pub(super) struct Names {
    taken: HashSet<String>,
    temporaries: usize,
}

impl Names {
    /// The words of a language are taken from the start.
    pub(super) fn new(reserved: &[&str]) -> Names {
        Names { taken: reserved.iter().map(|word| word.to_string()).collect(), temporaries: 0 }
    }

    /// The name itself if it is free, else with the first number that makes it so.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let wanted = identifier(wanted);
        let mut name = wanted.clone();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        name
    }

    /// A name for a value without one.
    pub(super) fn temporary(&mut self) -> String {
        self.temporaries += 1;
        let wanted = format!("t{}", self.temporaries);
        self.unique(&wanted)
    }
}

/// A path as an identifier: `layer.17.ffn` becomes `layer_17_ffn`.
pub(super) fn identifier(path: &str) -> String {
    let mapped: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let text = mapped.trim_matches('_');
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { text.to_string() } else { format!("k_{text}") }
}
