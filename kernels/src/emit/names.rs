//! Names in emitted text: those of the schedule, made unique.

use std::collections::{HashMap, HashSet};

/// Names taken so far.
pub(super) struct Names {
    taken: HashSet<String>,
    /// The last number behind each name that was taken.
    counts: HashMap<String, usize>,
    temporaries: usize,
}

impl Names {
    /// The words of a language are taken from the start.
    pub(super) fn new(reserved: &[&str]) -> Names {
        Names { taken: reserved.iter().map(|word| word.to_string()).collect(), counts: HashMap::new(), temporaries: 0 }
    }

    /// The name itself if it is free, else with the first number that makes it so.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let wanted = identifier(wanted);
        if self.taken.insert(wanted.clone()) {
            return wanted;
        }
        // Names are never given back, so the numbers tried before need not be tried again.
        let count = self.counts.entry(wanted.clone()).or_insert(1);
        loop {
            *count += 1;
            let name = format!("{wanted}_{count}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
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
