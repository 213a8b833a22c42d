//! Lists of token ids.

use std::ops::Range;
use std::path::Path;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

/// Reads ids separated by white space or commas.
pub fn read_tokens(path: &Path) -> Result<Vec<u32>, Diagnostic> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        Diagnostic::new(codes::FILE_OPEN, "the list of tokens cannot be read")
            .at(Place::file(&name))
            .wanted("a file that exists and can be read", error)
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Diagnostic::new(codes::TOKENS_MALFORMED, "the list of tokens is no text")
            .at(Place::item(&name, format!("byte {at}")))
            .wanted("token ids, separated by white space or commas", "bytes that are no UTF-8")
    })?;
    parse_tokens(&text, &name)
}

/// The ids in a text, separated by white space or commas; `name` says where the text is from.
pub fn parse_tokens(text: &str, name: &str) -> Result<Vec<u32>, Diagnostic> {
    words(text)
        .map(|range| {
            let word = &text[range.clone()];
            word.parse().map_err(|_| malformed(text, range, name))
        })
        .collect()
}

/// Byte ranges of the words between white space and commas.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    let places = words.map(|word| {
        // A word is a piece of the text: its distance from the text's beginning is its place.
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        start..start + word.len()
    });
    places.filter(|place| !place.is_empty())
}

/// Names the line and the word; a list may be one long line, which is not shown.
fn malformed(text: &str, word: Range<usize>, name: &str) -> Diagnostic {
    let line = text[..word.start].matches('\n').count() + 1;
    let found: String = text[word].chars().take(40).collect();
    Diagnostic::new(codes::TOKENS_MALFORMED, "the list of tokens is malformed")
        .at(Place::item(name, format!("line {line}")))
        .wanted("a token id: a decimal number below 2^32", format!("{found:?}"))
        .help("separate ids by white space or commas")
}

/// An error if a token is not in the vocabulary. `origin` says where the tokens are from.
pub fn check_range(tokens: &[u32], vocabulary: usize, origin: &str) -> Result<(), Diagnostic> {
    match tokens.iter().position(|&token| token as usize >= vocabulary) {
        None => Ok(()),
        Some(index) => {
            let message = "a token is outside of the vocabulary";
            Err(Diagnostic::new(codes::TOKEN_RANGE, message)
                .at(Place::item(origin, format!("token {index}")))
                .wanted(format!("an id below {vocabulary}"), tokens[index]))
        }
    }
}
