//! Memory cells, and the log of who used them.

use crate::kernel::Type;

use super::domain::{Domain, Value};
use super::trap::{Check, Refused};

/// The words of one memory: each unwritten, or a float or word of the domain.
pub struct Cells<D: Domain> {
    cells: Vec<Option<Value<D>>>,
}

impl<D: Domain> Clone for Cells<D> {
    fn clone(&self) -> Self {
        Cells { cells: self.cells.clone() }
    }
}

impl<D: Domain> Cells<D> {
    /// Unwritten cells.
    pub fn unwritten(len: usize) -> Cells<D> {
        Cells { cells: vec![None; len] }
    }

    /// Cells that hold these words.
    pub fn of_words(domain: &D, words: &[u32]) -> Cells<D> {
        Cells { cells: words.iter().map(|&w| Some(Value::I(domain.int(w)))).collect() }
    }

    /// Cells that hold these floats, by their bits.
    pub fn of_floats(domain: &D, bits: &[u32]) -> Cells<D> {
        Cells { cells: bits.iter().map(|&w| Some(Value::F(domain.float(w)))).collect() }
    }

    /// Cells that hold these values.
    pub fn of_values(values: Vec<Option<Value<D>>>) -> Cells<D> {
        Cells { cells: values }
    }

    /// What a cell holds; `None` if it is unwritten.
    pub fn value(&self, at: usize) -> Option<Value<D>> {
        self.cells.get(at).copied().flatten()
    }

    /// A copy of some of the cells.
    pub fn part(&self, range: std::ops::Range<usize>) -> Cells<D> {
        Cells { cells: self.cells[range].to_vec() }
    }

    /// Replaces the cells from `at` by these.
    pub fn replace(&mut self, at: usize, part: &Cells<D>) {
        self.cells[at..at + part.len()].copy_from_slice(&part.cells);
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The word of a cell, of a float its bits; `None` if it is unwritten or not known.
    pub fn word(&self, domain: &D, at: usize) -> Option<u32> {
        match self.cells.get(at)?.as_ref()? {
            Value::F(x) => domain.known(domain.bits(*x)),
            Value::I(x) => domain.known(*x),
            Value::B(_) => None,
        }
    }

    /// What a cell holds, as an element of this type.
    pub(super) fn get(&self, domain: &D, at: usize, element: Type) -> Option<Value<D>> {
        Some(match (*self.cells.get(at)?.as_ref()?, element) {
            (Value::I(x), Type::F32) => Value::F(domain.from_bits(x)),
            (Value::F(x), Type::Word | Type::Id) => Value::I(domain.bits(x)),
            (value, _) => value,
        })
    }

    pub(super) fn put(&mut self, at: usize, value: Value<D>) {
        self.cells[at] = Some(value);
    }
}

const NOBODY: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// Who wrote and who read each cell of a memory since the lanes met last.
///
/// For a workgroup array the log begins anew at each barrier; for a buffer it lasts for the launch, since nothing orders
/// lanes of the grid there.
pub(super) struct Log {
    cells: Vec<Users>,
    /// Meetings so far; entries of an earlier one do not count.
    epoch: u32,
}

#[derive(Clone, Copy)]
struct Users {
    epoch: u32,
    writer: u32,
    reader: u32,
}

impl Log {
    pub(super) fn new(len: usize) -> Log {
        Log { cells: vec![Users { epoch: 0, writer: NOBODY, reader: NOBODY }; len], epoch: 0 }
    }

    /// Lanes met: what was done so far is ordered before what comes.
    pub(super) fn meet(&mut self) {
        self.epoch += 1;
    }

    fn users(&mut self, at: usize) -> &mut Users {
        let users = &mut self.cells[at];
        if users.epoch != self.epoch {
            *users = Users { epoch: self.epoch, writer: NOBODY, reader: NOBODY };
        }
        users
    }

    /// Notes that `lane` reads; refuses if another lane has written.
    pub(super) fn read(&mut self, at: usize, lane: u32) -> Result<(), Refused> {
        let users = self.users(at);
        if users.writer != NOBODY && users.writer != lane {
            return Err(race(at, users.writer, "wrote", lane, "reads"));
        }
        users.reader = if users.reader == NOBODY || users.reader == lane { lane } else { SEVERAL };
        Ok(())
    }

    /// Notes that `lane` writes; refuses if another lane has read or written.
    pub(super) fn write(&mut self, at: usize, lane: u32) -> Result<(), Refused> {
        let users = self.users(at);
        if users.writer != NOBODY && users.writer != lane {
            return Err(race(at, users.writer, "wrote", lane, "writes"));
        }
        if users.reader != NOBODY && users.reader != lane {
            return Err(race(at, users.reader, "read", lane, "writes"));
        }
        users.writer = lane;
        Ok(())
    }
}

fn race(at: usize, other: u32, did: &str, lane: u32, does: &str) -> Refused {
    let other = match other {
        SEVERAL => "several lanes".to_string(),
        _ => format!("lane {other}"),
    };
    Refused::new(Check::Race, format!("{other} {did} cell {at}, lane {lane} {does} it, and no barrier is between"))
}
