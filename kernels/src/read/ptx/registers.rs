//! The registers of a text and what they hold.

use std::collections::HashMap;

use crate::kernel::Type;
use crate::read::Fault;
use crate::read::raw::{RawExpr, RawLocal, RawMemory};

use super::line::{Line, is_name, word};

/// What kind of value a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Value(Type),
    Address,
}

impl Class {
    /// The class of a declaration's type, and the letter of its numbered registers.
    fn of(keyword: &str) -> Option<(Class, char)> {
        Some(match keyword {
            "b32" => (Class::Value(Type::Word), 'r'),
            "f32" => (Class::Value(Type::F32), 'f'),
            "pred" => (Class::Value(Type::Bool), 'c'),
            "b64" => (Class::Address, 'a'),
            _ => return None,
        })
    }
}

/// What a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// It was not set.
    Nothing,
    /// A value.
    Value(RawExpr),
    /// The address of the step's block.
    Step,
    /// The address of an argument or array.
    Base(RawMemory),
    /// The distance in bytes of an element.
    Offset(RawExpr),
    /// The address of an element.
    Element(RawMemory, RawExpr),
    /// What an earlier statement made.
    Old,
}

/// How a register was declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// In a range.
    Numbered,
    /// In the list at the top.
    Named,
    /// By itself.
    Variable(Option<RawLocal>),
}

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Register {
    pub(super) class: Class,
    pub(super) kind: Kind,
    pub(super) held: Held,
}

/// The declared registers.
#[derive(Default)]
pub(super) struct Registers<'t> {
    rows: HashMap<&'t str, Register>,
    /// Letter, class and count of each range.
    ranges: Vec<(char, Class, u32)>,
    /// Numbered registers that the statement being read has set.
    current: Vec<&'t str>,
}

impl<'t> Registers<'t> {
    /// `.reg .b32 %x, %y, %r<8>;`
    pub(super) fn declare(&mut self, line: Line<'t>) -> Result<(), Fault> {
        let (class, letter, names) = declaration(line)?;
        for name in names.split(", ") {
            match name.split_once('<') {
                Some((prefix, count)) => self.range(line, class, letter, prefix, count)?,
                None => self.add(line, name, class, Kind::Named)?,
            }
        }
        Ok(())
    }

    /// `.reg .f32 %sum;` where the register begins; gives its name.
    pub(super) fn variable(&mut self, line: Line<'t>) -> Result<&'t str, Fault> {
        let (class, _, name) = declaration(line)?;
        if class == Class::Address {
            return Err(line.fault("an address does not change"));
        }
        self.add(line, name, class, Kind::Variable(None))?;
        Ok(name)
    }

    fn add(&mut self, line: Line<'t>, name: &'t str, class: Class, kind: Kind) -> Result<(), Fault> {
        if !name.strip_prefix('%').is_some_and(is_name) || self.find(name).is_some() {
            return Err(line.fault(format!("`{name}` is no name for a register, or is declared twice")));
        }
        self.rows.insert(name, Register { class, kind, held: Held::Nothing });
        Ok(())
    }

    fn range(&mut self, line: Line<'t>, class: Class, letter: char, prefix: &str, count: &str) -> Result<(), Fault> {
        let count = count.strip_suffix('>').and_then(word);
        let fresh = self.ranges.iter().all(|range| range.0 != letter);
        let named = self.rows.keys().any(|name| number(name, letter).is_some());
        match count.filter(|_| prefix == format!("%{letter}") && fresh && !named) {
            Some(count) => self.ranges.push((letter, class, count)),
            None => return Err(line.fault(format!("wanted one range `%{letter}<..>` of registers of this type"))),
        }
        Ok(())
    }

    /// A register, if it is declared.
    pub(super) fn find(&self, name: &str) -> Option<Register> {
        if let Some(&row) = self.rows.get(name) {
            return Some(row);
        }
        let of = |&(letter, class, count): &(char, Class, u32)| {
            (number(name, letter)? < count).then_some(Register { class, kind: Kind::Numbered, held: Held::Nothing })
        };
        self.ranges.iter().find_map(of)
    }

    /// A register that was declared.
    pub(super) fn get(&self, line: Line<'t>, name: &str) -> Result<Register, Fault> {
        self.find(name).ok_or_else(|| line.fault(format!("`{name}` is not a register")))
    }

    /// A register of this class that nothing has set, and that is no variable; it is set now.
    pub(super) fn set(&mut self, line: Line<'t>, name: &'t str, class: Class, held: Held) -> Result<(), Fault> {
        let row = self.get(line, name)?;
        if row.class != class {
            return Err(line.fault(format!("`{name}` has another type")));
        }
        if row.held != Held::Nothing || matches!(row.kind, Kind::Variable(_)) {
            return Err(line.fault(format!("`{name}` is set twice")));
        }
        if row.kind == Kind::Numbered {
            self.current.push(name);
        }
        self.rows.insert(name, Register { held, ..row });
        Ok(())
    }

    /// Makes a variable begin.
    pub(super) fn begin(&mut self, name: &'t str, local: RawLocal, held: Held) {
        if let Some(row) = self.rows.get_mut(name) {
            *row = Register { kind: Kind::Variable(Some(local)), held, ..*row };
        }
    }

    /// A statement ends: its numbered registers are not for the next one.
    pub(super) fn statement(&mut self) {
        for name in self.current.drain(..) {
            if let Some(row) = self.rows.get_mut(name) {
                row.held = Held::Old;
            }
        }
    }
}

/// Type, letter and the rest of a declaration.
fn declaration(line: Line<'_>) -> Result<(Class, char, &str), Fault> {
    let found = line.between(".reg .", ";")?.split_once(' ');
    let class = found.and_then(|(keyword, names)| Some((Class::of(keyword)?, names)));
    let ((class, letter), names) = class.ok_or_else(|| line.fault("a declaration of no known type"))?;
    Ok((class, letter, names))
}

/// The number of a register `%r7`.
fn number(name: &str, letter: char) -> Option<u32> {
    let digits = name.strip_prefix('%')?.strip_prefix(letter)?;
    if digits.bytes().all(|b| b.is_ascii_digit()) { word(digits) } else { None }
}
