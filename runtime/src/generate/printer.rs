//! Generated tokens on an output, as text or as ids.

use std::io::{self, Write};

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use crate::text::{ByteStream, StopWatch, Tokenizer};

/// Whether generation goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// More tokens are wanted.
    Continue,
    /// A stop string was found.
    Stopped,
    /// Nobody reads the output any more.
    Closed,
}

/// The text of the generated tokens, watched for stop strings.
pub struct Watched<'a> {
    tokenizer: &'a Tokenizer,
    bytes: ByteStream,
    stops: StopWatch,
}

impl<'a> Watched<'a> {
    /// No text yet.
    pub fn new(tokenizer: &'a Tokenizer, stops: &[String]) -> Self {
        Watched { tokenizer, bytes: ByteStream::default(), stops: StopWatch::new(stops) }
    }

    /// The text that a token makes certain, and whether a stop string was found.
    fn push(&mut self, token: u32) -> (String, bool) {
        let text = self.bytes.push(&self.tokenizer.bytes_of(token));
        let release = self.stops.push(&text);
        (release.text, release.stopped)
    }

    /// The text that was held back.
    fn finish(&mut self) -> String {
        let release = self.stops.push(&self.bytes.finish());
        match release.stopped {
            true => release.text,
            false => release.text + &self.stops.finish(),
        }
    }
}

/// Prints tokens as they come.
pub struct Printer<'a> {
    out: &'a mut dyn Write,
    text: Option<Watched<'a>>,
    ids: bool,
    printed: bool,
    closed: bool,
}

impl<'a> Printer<'a> {
    /// Prints text.
    pub fn text(out: &'a mut dyn Write, text: Watched<'a>) -> Self {
        Printer::new(out, Some(text), false)
    }

    /// Prints ids, separated by spaces; `text` is watched for stop strings only.
    pub fn ids(out: &'a mut dyn Write, text: Option<Watched<'a>>) -> Self {
        Printer::new(out, text, true)
    }

    fn new(out: &'a mut dyn Write, text: Option<Watched<'a>>, ids: bool) -> Self {
        Printer { out, text, ids, printed: false, closed: false }
    }

    /// Prints what is certain after another token.
    pub fn token(&mut self, token: u32) -> Result<Flow, Diagnostic> {
        let (text, stopped) = match &mut self.text {
            Some(watched) => watched.push(token),
            None => Default::default(),
        };
        if self.ids {
            let space = if self.printed { " " } else { "" };
            self.print(&format!("{space}{token}"))?;
        } else {
            self.print(&text)?;
        }
        Ok(match (self.closed, stopped) {
            (true, _) => Flow::Closed,
            (false, true) => Flow::Stopped,
            (false, false) => Flow::Continue,
        })
    }

    /// Prints what was held back, unless a stop string ended the text, and ends the line.
    pub fn finish(mut self, stopped: bool) -> Result<(), Diagnostic> {
        let rest = match &mut self.text {
            Some(watched) if !self.ids && !stopped => watched.finish(),
            _ => String::new(),
        };
        self.print(&rest)?;
        match self.printed {
            true => self.print("\n"),
            false => Ok(()),
        }
    }

    /// Writes at once, so that a reader sees each token; a closed pipe is no error.
    fn print(&mut self, text: &str) -> Result<(), Diagnostic> {
        if text.is_empty() || self.closed {
            return Ok(());
        }
        self.printed = true;
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => written.map_err(|error| {
                Diagnostic::new(codes::OUTPUT_WRITE, "the output cannot be written")
                    .at(Place::file("standard output"))
                    .wanted("an output that takes text", error)
            }),
        }
    }
}
