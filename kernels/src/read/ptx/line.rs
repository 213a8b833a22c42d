//! Lines of a text, without comments and indentation.

use crate::read::Fault;

/// A line with something in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    /// From 1.
    pub(super) number: u32,
    /// What stands before a comment.
    pub(super) text: &'t str,
}

impl<'t> Line<'t> {
    pub(super) fn fault(self, what: impl Into<String>) -> Fault {
        Fault::new(self.number, what)
    }

    /// The line's text behind `start` and before `end`.
    pub(super) fn between(self, start: &str, end: &str) -> Result<&'t str, Fault> {
        let inner = self.text.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        inner.ok_or_else(|| self.fault(format!("wanted `{start}..{end}`, found `{}`", self.text)))
    }

    /// The line as an instruction.
    pub(super) fn instruction(self) -> Result<Instruction<'t>, Fault> {
        let Some(text) = self.text.strip_suffix(';') else {
            return Err(self.fault(format!("`{}` does not end with `;`", self.text)));
        };
        let (guard, text) = match text.strip_prefix('@') {
            Some(guarded) => {
                let (guard, rest) = guarded.split_once(' ').ok_or_else(|| self.fault("a guard without instruction"))?;
                (Some(guard), rest)
            }
            None => (None, text),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let operands = if operands.is_empty() { Vec::new() } else { operands.split(", ").collect() };
        Ok(Instruction { line: self, guard, name, operands })
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction<'t> {
    pub(super) line: Line<'t>,
    /// The guard without its `@`.
    pub(super) guard: Option<&'t str>,
    /// The mnemonic with all modifiers.
    pub(super) name: &'t str,
    pub(super) operands: Vec<&'t str>,
}

impl<'t> Instruction<'t> {
    /// The operands, if there are so many.
    pub(super) fn operands<const N: usize>(&self) -> Result<[&'t str; N], Fault> {
        let count = self.operands.len();
        <[&str; N]>::try_from(self.operands.as_slice())
            .map_err(|_| self.line.fault(format!("`{}` takes {N} operands, found {count}", self.name)))
    }
}

/// The lines of a text that are not empty.
pub(super) struct Lines<'t> {
    /// The line that says what is computed.
    about: Option<&'t str>,
    lines: Vec<Line<'t>>,
    next: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Lines<'t> {
        let about = text.split('\n').next().and_then(|line| line.strip_prefix("// "));
        let numbered = (1..).zip(text.split('\n')).map(|(number, text)| Line { number, text: bare(text) });
        Lines { about, lines: numbered.filter(|line| !line.text.is_empty()).collect(), next: 0 }
    }

    /// What the comment in the first line says.
    pub(super) fn about(&self) -> Result<&'t str, Fault> {
        self.about.ok_or_else(|| Fault::new(1, "the first line does not say what is computed"))
    }

    pub(super) fn peek(&self) -> Result<Line<'t>, Fault> {
        let last = self.lines.last().map_or(0, |line| line.number);
        self.lines.get(self.next).copied().ok_or_else(|| Fault::new(last, "the text ends too early"))
    }

    pub(super) fn next(&mut self) -> Result<Line<'t>, Fault> {
        let line = self.peek()?;
        self.next += 1;
        Ok(line)
    }

    /// The next line, which has to be this one.
    pub(super) fn expect(&mut self, wanted: &str) -> Result<Line<'t>, Fault> {
        let line = self.next()?;
        if line.text == wanted {
            return Ok(line);
        }
        Err(line.fault(format!("wanted `{wanted}`, found `{}`", line.text)))
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), Fault> {
        match self.lines.get(self.next) {
            Some(line) => Err(line.fault(format!("`{}` follows the kernel", line.text))),
            None => Ok(()),
        }
    }
}

/// A line without its indentation and comment.
fn bare(line: &str) -> &str {
    let code = line.split_once("//").map_or(line, |(code, _)| code);
    code.trim_matches(' ')
}

/// Whether a text is a name of ours.
pub(super) fn is_name(text: &str) -> bool {
    let letters = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    letters && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A constant word: decimal or hexadecimal, without leading zeros, which would make it octal.
pub(super) fn word(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || (radix == 16 && (b'a'..=b'f').contains(&b)));
    let leading = digits.len() > 1 && digits.starts_with('0');
    (plain && !leading).then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

/// The bits of a constant float: `0f` and eight digits.
pub(super) fn float(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0f")?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    (plain && digits.len() == 8).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}
