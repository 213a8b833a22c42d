//! Walking over tokens, and the diagnostics that point into the text.

use std::ops::Range;

use super::lexer::{Kind, Token, tokens};
use super::literal::{Literal, number, unquoted};
use crate::diagnostic::codes;
use crate::{Code, Diagnostic, Place};

/// Result of a step of the parser. The diagnostic is boxed because results are passed through many small functions.
pub(super) type Read<T> = Result<T, Box<Diagnostic>>;

/// A position in the tokens of a text.
pub(super) struct Cursor<'t> {
    text: &'t str,
    file: &'t str,
    tokens: Vec<Token>,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str, file: &'t str) -> Read<Cursor<'t>> {
        let mut cursor = Cursor { text, file, tokens: Vec::new(), at: 0 };
        match tokens(text) {
            Ok(tokens) => cursor.tokens = tokens,
            Err(fault) => return Err(cursor.fault(codes::TEXT_TOKEN, fault.range, fault.message)),
        }
        Ok(cursor)
    }

    /// A diagnostic that points at `range`.
    pub fn fault(&self, code: Code, range: Range<usize>, message: impl Into<String>) -> Box<Diagnostic> {
        let mut start = range.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |s| s.chars().count()) + 1;
        let place = Place {
            file: self.file.into(),
            item: format!("line {line}, column {column}"),
            source: Some((self.text.into(), range)),
        };
        Box::new(Diagnostic::new(code, message).at(place))
    }

    pub fn peek(&self) -> Token {
        self.tokens[self.at]
    }

    /// The token behind the next one.
    pub fn peek_second(&self) -> Token {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    pub fn next(&mut self) -> Token {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    pub fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.range()]
    }

    /// Whether the statement's line is over.
    pub fn at_line_end(&self) -> bool {
        let token = self.peek();
        token.first || token.kind == Kind::End
    }

    pub fn is_mark(&self, mark: u8) -> bool {
        self.peek().kind == Kind::Mark(mark)
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.peek().kind == Kind::Word && self.text_of(self.peek()) == word
    }

    /// The end of the token before the next one.
    pub fn end_of_last(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].end)
    }

    /// A diagnostic: something else is wanted here. At a line's end it points behind the last token.
    pub fn unexpected(&self, wanted: &str) -> Box<Diagnostic> {
        let token = self.peek();
        let end = self.end_of_last();
        let (range, found) = match token.kind {
            Kind::End => (end..end + 1, "the end of the text".to_string()),
            _ if token.first && self.at > 0 => (end..end + 1, "the end of the line".to_string()),
            _ => (token.range(), format!("`{}`", self.text_of(token))),
        };
        let mut fault = self.fault(codes::TEXT_SYNTAX, range, "the text does not follow the grammar");
        fault.wanted = wanted.into();
        fault.found = found;
        fault.help = "docs/ir.md has the grammar".into();
        fault
    }

    /// Takes `mark` if it is next.
    pub fn take_mark(&mut self, mark: u8) -> bool {
        let is_next = self.is_mark(mark);
        if is_next {
            self.next();
        }
        is_next
    }

    pub fn mark(&mut self, mark: u8) -> Read<()> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", mark as char))) }
    }

    /// A word of this line, described by `what` where there is none.
    pub fn word(&mut self, what: &str) -> Read<(&'t str, Range<usize>)> {
        let token = self.peek();
        if token.kind != Kind::Word || (token.first && self.at > 0) {
            return Err(self.unexpected(what));
        }
        self.next();
        Ok((self.text_of(token), token.range()))
    }

    /// A name: a word or a quoted one.
    pub fn name(&mut self, what: &str) -> Read<(String, Range<usize>)> {
        let token = self.peek();
        match token.kind {
            Kind::Word => {
                self.next();
                Ok((self.text_of(token).into(), token.range()))
            }
            Kind::Quoted => {
                self.next();
                match unquoted(self.text_of(token)) {
                    Some(name) => Ok((name, token.range())),
                    None => Err(self.bad_escape(token)),
                }
            }
            _ => Err(self.unexpected(what)),
        }
    }

    fn bad_escape(&self, token: Token) -> Box<Diagnostic> {
        let mut fault = self.fault(codes::TEXT_TOKEN, token.range(), "a quoted name has an unknown escape");
        fault.help = "the escapes are \\\" \\\\ \\n \\u{hex}".into();
        fault
    }

    /// A number without sign, described by `what` where there is none.
    pub fn literal(&mut self, what: &str) -> Read<(Literal, Range<usize>)> {
        let token = self.peek();
        if token.kind != Kind::Number {
            return Err(self.unexpected(what));
        }
        self.next();
        match number(self.text_of(token)) {
            Ok(literal) => Ok((literal, token.range())),
            Err(why) => {
                let message = format!("`{}` is not a number here: {why}", self.text_of(token));
                Err(self.fault(codes::TEXT_NUMBER, token.range(), message))
            }
        }
    }

    /// An unsigned 32-bit integer, described by `what` where there is none.
    pub fn unsigned(&mut self, what: &str) -> Read<(u32, Range<usize>)> {
        let (literal, range) = self.literal(what)?;
        let number = match literal {
            Literal::Decimal(n) | Literal::Bits(n) => u32::try_from(n).ok(),
            Literal::Float(_) => None,
        };
        match number {
            Some(n) => Ok((n, range)),
            None => {
                let found = self.text[range.clone()].to_string();
                let fault = self.fault(codes::TEXT_NUMBER, range, "a number is out of range");
                Err(Box::new(fault.wanted(format!("{what} below 2^32"), found)))
            }
        }
    }

    /// Fails where more stands on the line.
    pub fn line_end(&self) -> Read<()> {
        if self.at_line_end() { Ok(()) } else { Err(self.unexpected("the end of the line")) }
    }

    /// A diagnostic: no `what` is called `name`.
    pub fn unknown(&self, what: &str, name: &str, range: Range<usize>) -> Box<Diagnostic> {
        self.fault(codes::TEXT_UNKNOWN, range, format!("there is no {what} `{name}`"))
    }

    /// A diagnostic: a second `what` is called `name`.
    pub fn duplicate(&self, what: &str, name: &str, range: Range<usize>) -> Box<Diagnostic> {
        let fault = self.fault(codes::TEXT_DUPLICATE, range, format!("there is a {what} `{name}` already"));
        Box::new(fault.help("give it another name"))
    }

    /// A diagnostic: a limit of the text is passed.
    pub fn too_large(&self, what: &str, limit: usize, range: Range<usize>) -> Box<Diagnostic> {
        let fault = self.fault(codes::TEXT_LIMIT, range, format!("{what} passes a limit of IR text"));
        Box::new(fault.wanted(format!("at most {limit}"), "more"))
    }
}
