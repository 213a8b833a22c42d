//! Tokens of IR text.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Letters, digits, `_` and `.`, beginning with a letter or `_`.
    Word,
    /// Begins with a digit.
    Number,
    /// In double quotes, which the range includes.
    Quoted,
    /// One character.
    Mark(u8),
    /// End of the text.
    End,
}

/// A token: its bytes in the text, and whether it is the first of its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    pub first: bool,
}

impl Token {
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// Where no token begins, and why.
pub(super) struct Malformed {
    pub range: Range<usize>,
    pub message: &'static str,
}

/// The tokens of `text`; the last one is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Malformed> {
    let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, first: true };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let token = lexer.token()?;
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    bytes: &'t [u8],
    at: usize,
    first: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips blanks and comments; remembers whether a line ended.
    fn skip_blank(&mut self) {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' => self.first = true,
                b' ' | b'\t' | b'\r' => {}
                b';' => self.skip_line(),
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Moves to the last byte before the line's end, so that the end itself is seen.
    fn skip_line(&mut self) {
        while self.at + 1 < self.bytes.len() && self.peek(1) != b'\n' {
            self.at += 1;
        }
    }

    fn token(&mut self) -> Result<Token, Malformed> {
        let start = self.at;
        let first = std::mem::take(&mut self.first);
        let kind = if start >= self.bytes.len() { Kind::End } else { self.kind()? };
        Ok(Token { kind, start, end: self.at, first })
    }

    fn kind(&mut self) -> Result<Kind, Malformed> {
        let byte = self.peek(0);
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(),
            b'"' => return self.quoted(),
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',' | b':' | b'=' | b'+' | b'-' | b'*' | b'/' | b'@' | b'%' => {
                self.at += 1;
                return Ok(Kind::Mark(byte));
            }
            _ => return Err(self.unknown_character()),
        }
        Ok(if byte.is_ascii_digit() { Kind::Number } else { Kind::Word })
    }

    fn unknown_character(&self) -> Malformed {
        let mut end = self.at + 1;
        while end < self.bytes.len() && self.bytes[end] & 0xc0 == 0x80 {
            end += 1;
        }
        Malformed { range: self.at..end, message: "no token begins with this character" }
    }

    fn word(&mut self) {
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.') {
            self.at += 1;
        }
    }

    /// Takes everything that looks like a number, with the sign of an exponent; `literal` judges it.
    fn number(&mut self) {
        let hexadecimal = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X');
        loop {
            match self.peek(0) {
                b'e' | b'E' if !hexadecimal && matches!(self.peek(1), b'+' | b'-') => self.at += 2,
                b'p' | b'P' if hexadecimal && matches!(self.peek(1), b'+' | b'-') => self.at += 2,
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => self.at += 1,
                _ => return,
            }
        }
    }

    fn quoted(&mut self) -> Result<Kind, Malformed> {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            match self.peek(0) {
                b'"' => {
                    self.at += 1;
                    return Ok(Kind::Quoted);
                }
                b'\\' if self.peek(1) != b'\n' && self.at + 1 < self.bytes.len() => self.at += 2,
                _ => self.at += 1,
            }
        }
        Err(Malformed { range: start..self.at, message: "a quoted name does not end on its line" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str, bool)> {
        let tokens = tokens(text).unwrap_or_else(|fault| panic!("{}", fault.message));
        tokens.into_iter().map(|t| (t.kind, &text[t.range()], t.first)).collect()
    }

    #[test]
    fn text_tokens_know_their_lines() {
        let found = kinds("; c\n a.0 = 0x1p-3 // rest\n\"q\\\"\" -4;");
        let wanted = [
            (Kind::Word, "a.0", true),
            (Kind::Mark(b'='), "=", false),
            (Kind::Number, "0x1p-3", false),
            (Kind::Quoted, "\"q\\\"\"", true),
            (Kind::Mark(b'-'), "-", false),
            (Kind::Number, "4", false),
            (Kind::End, "", false),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn text_malformed_tokens_are_refused() {
        assert_eq!(tokens("a ä").err().map(|m| m.range), Some(2..4));
        assert_eq!(tokens("\"abc\n\"").err().map(|m| m.range), Some(0..4));
        assert_eq!(tokens("\"abc\\").err().map(|m| m.range), Some(0..5));
    }
}
