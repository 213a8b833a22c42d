//! Golden files of the kernel suite: for each tensor of each step of each case its type, shape, hash and first words.
//!
//! `golden/kernels` has a file for each family. A hash is BLAKE3 of the words, little-endian and row-major, NaN canonical and
//! elements without a value zero. Which elements these are is written down as runs: `3+2` are two from index 3 on.

use std::fmt::Write;
use std::path::Path;

use ds4_ir::diagnostic::codes;
use ds4_ir::plan::CONTRACT;
use ds4_ir::{Diagnostic, Place};
use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::seen::Seen;

/// Words that are written down.
const FIRST: usize = 8;

/// A family's file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyFile {
    /// The numeric contract that defines the words.
    pub contract: String,
    /// Name of the family.
    pub family: String,
    /// Its cases.
    pub cases: Vec<CaseRow>,
}

/// A case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRow {
    /// Its name.
    pub name: String,
    /// Its steps.
    pub steps: Vec<StepRow>,
}

/// A step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRow {
    /// Position of its first column.
    pub position: u32,
    /// Number of columns.
    pub columns: u32,
    /// Columns that are outputs.
    pub outputs: u32,
    /// What is compared.
    pub tensors: Vec<TensorRow>,
}

/// A tensor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRow {
    /// Its name.
    pub name: String,
    /// f32, i32 or id.
    #[serde(rename = "type")]
    pub ty: String,
    /// Extents, slowest first.
    pub shape: Vec<usize>,
    /// Runs of elements without a value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub absent: String,
    /// Hash of the words.
    pub blake3: String,
    /// The first words.
    pub first: String,
}

impl FamilyFile {
    /// What the evaluator gives for the cases of a family.
    ///
    /// # Errors
    /// A case is faulty.
    pub fn evaluated(family: &str, cases: &[Case]) -> Result<FamilyFile, Diagnostic> {
        let cases = cases.iter().map(CaseRow::evaluated).collect::<Result<_, _>>()?;
        Ok(FamilyFile { contract: CONTRACT.into(), family: family.into(), cases })
    }

    /// Reads a family's file below `folder`; `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn read(folder: &Path, family: &str) -> Result<Option<FamilyFile>, Diagnostic> {
        let path = path(folder, family);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Diagnostic::new(codes::FILE_OPEN, "a golden file cannot be read")
                    .at(Place::file(path.display().to_string()))
                    .wanted("a file that can be read", error.kind())
                    .help("check the path and its permissions"));
            }
        };
        let malformed = |found: String| {
            Diagnostic::new(codes::JSON, "a golden file is malformed")
                .at(Place::file(path.display().to_string()))
                .wanted(format!("the words of contract {CONTRACT} for `{family}`"), found)
                .help("restore it, or let `bless` write it again")
        };
        let file: FamilyFile = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        match file.contract == CONTRACT && file.family == family {
            true => Ok(Some(file)),
            false => Err(malformed(format!("contract {}, `{}`", file.contract, file.family))),
        }
    }

    /// The row of a case.
    pub fn case(&self, name: &str) -> Option<&CaseRow> {
        self.cases.iter().find(|row| row.name == name)
    }

    /// The text of the file: a line for each tensor.
    pub fn text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!(
            "{{\n\"contract\": {},\n\"family\": {},\n\"cases\": [\n",
            quoted(&self.contract),
            quoted(&self.family)
        );
        for (i, case) in self.cases.iter().enumerate() {
            let comma = if i == 0 { "" } else { ",\n" };
            let _ = write!(text, "{comma}{{\"name\": {}, \"steps\": [", quoted(&case.name));
            for (j, step) in case.steps.iter().enumerate() {
                let comma = if j == 0 { "" } else { "," };
                let StepRow { position, columns, outputs, tensors } = step;
                let _ = write!(
                    text,
                    "{comma}\n  {{\"position\": {position}, \"columns\": {columns}, \"outputs\": {outputs}, \"tensors\": ["
                );
                let lines = tensors.iter().map(|row| serde_json::to_string(row).unwrap_or_default());
                let _ = write!(text, "\n    {}\n  ]}}", lines.collect::<Vec<_>>().join(",\n    "));
            }
            text.push_str("\n]}");
        }
        text.push_str("\n]\n}\n");
        text
    }
}

/// The file of a family.
pub fn path(folder: &Path, family: &str) -> std::path::PathBuf {
    folder.join(format!("{family}.json"))
}

impl CaseRow {
    /// What the evaluator gives.
    ///
    /// # Errors
    /// The case is faulty.
    pub fn evaluated(case: &Case) -> Result<CaseRow, Diagnostic> {
        let steps = evaluate(case)?;
        let rows = case.feeds.iter().zip(&steps).map(|(feed, seen)| StepRow {
            position: feed.step.position,
            columns: feed.step.columns,
            outputs: feed.step.outputs,
            tensors: seen.iter().map(TensorRow::of).collect(),
        });
        Ok(CaseRow { name: case.name.clone(), steps: rows.collect() })
    }
}

/// The tensors of each step of a case, as the evaluator gives them.
///
/// # Errors
/// The case is faulty.
pub fn evaluate(case: &Case) -> Result<Vec<Vec<Seen>>, Diagnostic> {
    let steps = case.evaluate().map_err(|fault| {
        Diagnostic::new(codes::PLAN_DAMAGED, "a case of the kernel suite is faulty")
            .at(Place::item(case.family, &case.name))
            .wanted("a graph that can be evaluated", fault)
            .help("this is a fault of ours, please report it")
    })?;
    let names = case.compared();
    let seen = |tensors: Vec<ds4_ir::eval::Tensor>| {
        names.iter().zip(&tensors).flat_map(|((name, _), tensor)| Seen::of_evaluator(name, tensor)).collect()
    };
    Ok(steps.into_iter().map(seen).collect())
}

impl TensorRow {
    /// The row of a tensor.
    pub fn of(seen: &Seen) -> TensorRow {
        let words = seen.compared(&seen.absent);
        TensorRow {
            name: seen.name.clone(),
            ty: seen.ty.name(),
            shape: seen.extents.clone(),
            absent: runs(&seen.absent),
            blake3: hash(&words),
            first: words.iter().take(FIRST).map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" "),
        }
    }

    /// Which of `count` elements have no value.
    pub fn absent(&self, count: usize) -> Vec<bool> {
        let mut absent = vec![false; count];
        for run in self.absent.split_whitespace() {
            let Some((start, len)) = run.split_once('+') else { continue };
            let (Ok(start), Ok(len)) = (start.parse::<usize>(), len.parse::<usize>()) else { continue };
            absent.iter_mut().skip(start).take(len).for_each(|absent| *absent = true);
        }
        absent
    }

    /// Whether a tensor from elsewhere has the words of this row.
    pub fn is_equal(&self, seen: &Seen) -> bool {
        let absent = self.absent(seen.words.len());
        self.ty == seen.ty.name() && self.shape == seen.extents && self.blake3 == hash(&seen.compared(&absent))
    }

    /// The words that are written down.
    pub fn first_words(&self) -> Vec<u32> {
        self.first.split_whitespace().filter_map(|word| u32::from_str_radix(word, 16).ok()).collect()
    }
}

fn hash(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    blake3::hash(&bytes).to_hex().to_string()
}

/// `3+2 9+1`: the elements with indices 3, 4 and 9.
fn runs(absent: &[bool]) -> String {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for i in (0..absent.len()).filter(|&i| absent[i]) {
        match runs.last_mut() {
            Some([start, len]) if *start + *len == i => *len += 1,
            _ => runs.push([i, 1]),
        }
    }
    runs.iter().map(|[start, len]| format!("{start}+{len}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_absent_elements_are_read_back() {
        let absent = [false, true, true, false, false, true, false, true];
        assert_eq!(runs(&absent), "1+2 5+1 7+1");
        let row = TensorRow {
            name: String::new(),
            ty: "f32".into(),
            shape: vec![8],
            absent: runs(&absent),
            blake3: String::new(),
            first: String::new(),
        };
        assert_eq!(row.absent(8), absent);
    }
}
