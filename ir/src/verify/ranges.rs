//! Ids and runs that stay within their tables.

use crate::entity::{Entity, Run};
use crate::fault::Fault;

/// The entries of a run, or a fault that names the owner.
pub(super) fn run<T>(run: Run, pool: &[T], owner: impl FnOnce() -> String) -> Result<&[T], Fault> {
    let (start, len) = (run.start as usize, run.len as usize);
    let entries = start.checked_add(len).and_then(|end| pool.get(start..end));
    entries.ok_or_else(|| Fault::new(format!("{} reaches beyond its pool", owner())))
}

/// A fault that names the owner unless `id` is a row of a table of `len` rows.
pub(super) fn id(id: impl Entity, len: usize, owner: impl FnOnce() -> String) -> Result<(), Fault> {
    match id.index() < len {
        true => Ok(()),
        false => Err(Fault::new(format!("{} refers to {id:?}, which does not exist", owner()))),
    }
}
