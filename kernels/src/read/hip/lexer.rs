//! Tokens of C++, as far as a text has them. What a compiler could take in two ways is refused here: backslashes, which join
//! lines even in a comment, trigraphs, other characters than ASCII, comments of the other kind.

use crate::read::Fault;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A name or keyword.
    Word,
    /// A number with all that C++ counts to it.
    Number,
    /// An operator or bracket, the longest that fits.
    Sign,
    /// A string with its quotes.
    Quoted,
    /// A line of the preprocessor.
    Directive,
}

/// A token with its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) line: u32,
}

/// Operators of more than one character, the longer ones first. Most do not occur; they are here so that what C++ takes as
/// one is not taken as two.
const LONG: [&str; 28] = [
    "<<=", ">>=", "...", "->*", "<=>", "::", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
    "*=", "/=", "%=", "&=", "|=", "^=", "->", ".*", "/*", "##",
];

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut tokens = Vec::new();
    for (line, row) in (1..).zip(text.split('\n')) {
        let strange = row.bytes().any(|b| !(b' '..=b'~').contains(&b) || b == b'\\' || b == b'\'');
        if strange || row.contains("??") {
            return Err(Fault::new(line, "a character that no text has"));
        }
        self::line(row, line, &mut tokens)?;
    }
    Ok(tokens)
}

fn line<'t>(row: &'t str, line: u32, tokens: &mut Vec<Token<'t>>) -> Result<(), Fault> {
    let mut rest = row.trim_start_matches(' ');
    if rest.starts_with('#') {
        tokens.push(Token { kind: Kind::Directive, text: rest.trim_end_matches(' '), line });
        return Ok(());
    }
    while !rest.is_empty() && !rest.starts_with("//") {
        let (kind, len) = first(rest).ok_or_else(|| Fault::new(line, "a character that no token has"))?;
        let (text, after) = rest.split_at(len);
        if text == "/*" {
            return Err(Fault::new(line, "a comment that may have more than one line"));
        }
        tokens.push(Token { kind, text, line });
        rest = after.trim_start_matches(' ');
    }
    Ok(())
}

/// Kind and length of the token in front.
fn first(text: &str) -> Option<(Kind, usize)> {
    let bytes = text.as_bytes();
    let while_of = |holds: &dyn Fn(usize, u8) -> bool| {
        bytes.iter().enumerate().position(|(i, &b)| !holds(i, b)).unwrap_or(bytes.len())
    };
    let in_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match bytes[0] {
        b if b.is_ascii_alphabetic() || b == b'_' => Some((Kind::Word, while_of(&|_, b| in_word(b)))),
        // A sign behind `e` or `p` belongs to the number, even to one that has no exponent.
        b if b.is_ascii_digit() => {
            let exponent = |i: usize| i > 0 && b"eEpP".contains(&bytes[i - 1]);
            Some((Kind::Number, while_of(&|i, b| in_word(b) || b == b'.' || (b"+-".contains(&b) && exponent(i)))))
        }
        b'"' => {
            let end = text[1..].find('"')? + 2;
            // Letters behind a string would be its suffix.
            (!bytes.get(end).is_some_and(|&b| in_word(b))).then_some((Kind::Quoted, end))
        }
        b => match LONG.iter().find(|sign| text.starts_with(*sign)) {
            Some(sign) => Some((Kind::Sign, sign.len())),
            None => b"(){}[];,<>=+-*/%&|^!~?:.".contains(&b).then_some((Kind::Sign, 1)),
        },
    }
}
