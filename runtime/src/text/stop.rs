//! Stop strings, found across the boundaries of tokens.

/// What may be printed after more text came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// Text that can no longer be part of a stop string.
    pub text: String,
    /// Whether a stop string was found; the text ends in front of it.
    pub stopped: bool,
}

/// Holds back text that may be part of a stop string.
///
/// The match is the one that ends first, and of those the longest: it depends on the text alone, not on how the
/// text was cut into tokens.
#[derive(Clone, Default, Debug)]
pub struct StopWatch {
    stops: Vec<String>,
    held: String,
}

impl StopWatch {
    /// Watches for these strings; empty ones are ignored.
    pub fn new(stops: &[String]) -> Self {
        StopWatch { stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(), held: String::new() }
    }

    /// Adds text; what is certain now.
    pub fn push(&mut self, text: &str) -> Release {
        let searched = self.held.len();
        self.held.push_str(text);
        if let Some(start) = self.find(searched) {
            self.held.truncate(start);
            return Release { text: std::mem::take(&mut self.held), stopped: true };
        }
        let keep = self.open_tail();
        let rest = self.held.split_off(self.held.len() - keep);
        Release { text: std::mem::replace(&mut self.held, rest), stopped: false }
    }

    /// The text that is still held back when no more comes.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Start of the match that ends first behind byte `searched`, up to where none ends.
    fn find(&self, searched: usize) -> Option<usize> {
        let ends = self.held[searched..].char_indices();
        let mut ends = ends.map(|(at, c)| searched + at + c.len_utf8());
        ends.find_map(|end| {
            let before = &self.held[..end];
            let found = self.stops.iter().filter(|stop| before.ends_with(*stop));
            found.map(|stop| end - stop.len()).min()
        })
    }

    /// Length of the longest end of the held text that begins a stop string.
    fn open_tail(&self) -> usize {
        let starts = self.held.char_indices().map(|(at, _)| at);
        let mut tails = starts.map(|at| &self.held[at..]);
        let open = tails.find(|tail| self.stops.iter().any(|stop| stop.starts_with(tail)));
        open.map_or(0, str::len)
    }
}
