//! Writing the golden files of the kernel suite anew, after showing what changes.

use std::collections::BTreeMap;
use std::path::Path;

use ds4_ir::Diagnostic;
use ds4_ir::output::write_whole;

use crate::cases::FAMILIES;
use crate::expect::{FamilyFile, TensorRow, path};

/// What writing a family's file would change.
pub struct Change {
    /// Its name.
    pub family: &'static str,
    /// The present text, if there is a file.
    pub old: Option<String>,
    /// The text that the evaluator's words make.
    pub new: String,
    /// The changes: tensors that are added, removed and changed.
    pub lines: Vec<String>,
    /// Whether a word that was golden would no longer be.
    pub loses: bool,
}

impl Change {
    /// Whether the file would be another one.
    pub fn is_any(&self) -> bool {
        self.old.as_ref() != Some(&self.new)
    }
}

/// What writing these families' files would change.
///
/// # Errors
/// A case is faulty, or a file is there that cannot be read. A malformed one is a change like any other.
pub fn changes(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Change>, Diagnostic> {
    let families = FAMILIES.iter().filter(|(family, _)| is_wanted(family));
    families
        .map(|(family, cases)| {
            let file = FamilyFile::evaluated(family, &cases())?;
            let new = file.text();
            let old = std::fs::read_to_string(path(folder, family)).ok();
            let known = old.as_ref().map(|text| serde_json::from_str::<FamilyFile>(text));
            let (lines, loses) = match known {
                None => (vec![format!("{family}: a new file, {} tensors", tensors(&file).len())], false),
                Some(Err(_)) => (vec![format!("{family}: the present file is malformed")], true),
                Some(Ok(known)) => differences(&known, &file),
            };
            Ok(Change { family, old, new, lines, loses })
        })
        .collect()
}

/// Writes the changed files, each whole or not at all.
///
/// # Errors
/// A file cannot be written; those before it are.
pub fn write(folder: &Path, changes: &[Change]) -> Result<(), Diagnostic> {
    changes
        .iter()
        .filter(|change| change.is_any())
        .try_for_each(|change| write_whole(&path(folder, change.family), change.new.as_bytes()))
}

/// The tensors of a file by case, step and name.
fn tensors(file: &FamilyFile) -> BTreeMap<(&str, usize, &str), &TensorRow> {
    let steps = file.cases.iter().flat_map(|case| case.steps.iter().enumerate().map(move |(i, step)| (case, i, step)));
    let rows = steps.flat_map(|(case, i, step)| {
        step.tensors.iter().map(move |row| ((case.name.as_str(), i, row.name.as_str()), row))
    });
    rows.collect()
}

/// A line for each tensor that differs, and whether one that was there is changed or gone.
fn differences(old: &FamilyFile, new: &FamilyFile) -> (Vec<String>, bool) {
    let family = &new.family;
    let (old, new) = (tensors(old), tensors(new));
    let mut lines = Vec::new();
    let mut loses = false;
    let mut keys: Vec<_> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    for key @ (case, step, name) in keys {
        let place = format!("{family} {case}, step {step}, `{name}`");
        match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                loses = true;
                lines.push(format!("{place}: {} -> {}", about(old), about(new)));
            }
            (Some(old), None) => {
                loses = true;
                lines.push(format!("{place}: {} removed", about(old)));
            }
            (None, Some(new)) => lines.push(format!("{place}: {} added", about(new))),
            (None, None) => {}
        }
    }
    (lines, loses)
}

/// `f32[8, 37] 0123456789abcdef`
fn about(row: &TensorRow) -> String {
    format!("{}{:?} {}", row.ty, row.shape, row.blake3.get(..16).unwrap_or(&row.blake3))
}
