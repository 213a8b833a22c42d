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

/// Who wrote and who read each cell of a memory since they met last.
pub(super) struct Log {
    /// What the users are called.
    who: &'static str,
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
    /// The log of an array that the lanes of one workgroup use.
    pub(super) fn of_lanes(len: usize) -> Log {
        Log::new("lane", len)
    }

    fn new(who: &'static str, len: usize) -> Log {
        Log { who, cells: vec![Users { epoch: 0, writer: NOBODY, reader: NOBODY }; len], epoch: 0 }
    }

    /// They met: what was done so far is ordered before what comes.
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

    /// Notes that `user` reads; refuses if another one has written.
    pub(super) fn read(&mut self, at: usize, user: u32) -> Result<(), Refused> {
        let users = self.users(at);
        let Users { writer, reader, .. } = *users;
        if writer != NOBODY && writer != user {
            return Err(self.race(at, (writer, "wrote"), (user, "reads")));
        }
        users.reader = if reader == NOBODY || reader == user { user } else { SEVERAL };
        Ok(())
    }

    /// Notes that `user` writes; refuses if another one has read or written.
    pub(super) fn write(&mut self, at: usize, user: u32) -> Result<(), Refused> {
        let users = self.users(at);
        let Users { writer, reader, .. } = *users;
        if writer != NOBODY && writer != user {
            return Err(self.race(at, (writer, "wrote"), (user, "writes")));
        }
        if reader != NOBODY && reader != user {
            return Err(self.race(at, (reader, "read"), (user, "writes")));
        }
        users.writer = user;
        Ok(())
    }

    fn race(&self, at: usize, (other, did): (u32, &str), (user, does): (u32, &str)) -> Refused {
        let who = self.who;
        let other = match other {
            SEVERAL => format!("several {who}s"),
            _ => format!("{who} {other}"),
        };
        Refused::new(Check::Race, format!("{other} {did} cell {at}, {who} {user} {does} it, and nothing orders them"))
    }
}

/// Who wrote and who read each cell of a buffer. Nothing orders workgroups within a launch; the lanes of one meet at barriers
/// that order buffers.
pub(super) struct BufferLog {
    groups: Log,
    lanes: Log,
}

impl BufferLog {
    pub(super) fn new(len: usize) -> BufferLog {
        BufferLog { groups: Log::new("workgroup", len), lanes: Log::of_lanes(len) }
    }

    /// The lanes of a workgroup met, or another workgroup begins.
    pub(super) fn meet(&mut self) {
        self.lanes.meet();
    }

    /// Notes that a lane of a workgroup reads; refuses if another one has written.
    pub(super) fn read(&mut self, at: usize, group: u32, lane: u32) -> Result<(), Refused> {
        self.groups.read(at, group)?;
        self.lanes.read(at, lane)
    }

    /// Notes that a lane of a workgroup writes; refuses if another one has read or written.
    pub(super) fn write(&mut self, at: usize, group: u32, lane: u32) -> Result<(), Refused> {
        self.groups.write(at, group)?;
        self.lanes.write(at, lane)
    }
}
