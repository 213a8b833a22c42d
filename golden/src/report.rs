//! What the kernel suite says: a table, or JSON.

use std::fmt::Write;

use ds4_ir::Type;
use serde_json::{Value, json};

use crate::check::{Difference, Element, Row, Verdict, Way, Whose};

/// The table's columns, as wide as the names ask for.
pub struct Table {
    family: usize,
    case: usize,
}

impl Table {
    /// A table of cases with these families and names.
    pub fn of<'a>(cases: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Table {
        let widest =
            |lengths: &mut dyn Iterator<Item = usize>, title: &str| lengths.max().unwrap_or(0).max(title.len());
        Table {
            family: widest(&mut cases.clone().map(|case| case.0.len()), "family"),
            case: widest(&mut cases.map(|case| case.1.len()), "case"),
        }
    }

    /// The titles of the columns.
    pub fn title(&self) -> String {
        let Table { family, case } = *self;
        format!("{:family$}  {:case$}  kernels    elements  prepare ms    run ms  verdict", "family", "case")
    }

    /// A case's line, and below it what differs.
    pub fn row(&self, row: &Row) -> String {
        let Table { family, case } = *self;
        let (prepare, run) = (row.prepare.as_secs_f64() * 1e3, row.run.as_secs_f64() * 1e3);
        let mut text = format!(
            "{:family$}  {:case$}  {:7}  {:>10}  {prepare:10.1}  {run:8.1}  {}{}{}",
            row.family,
            row.case,
            row.kernels,
            grouped(row.elements),
            row.verdict.word(),
            if row.form.is_empty() { "" } else { ", " },
            row.form
        );
        for line in row.verdict.lines() {
            let _ = write!(text, "\n    {line}");
        }
        text
    }

    /// The last line: counts and times of all.
    pub fn total(&self, rows: &[Row]) -> String {
        let equal = rows.iter().filter(|row| row.verdict == Verdict::Equal).count();
        let kernels: usize = rows.iter().map(|row| row.kernels).sum();
        let elements: usize = rows.iter().map(|row| row.elements).sum();
        let seconds: f64 = rows.iter().map(|row| (row.prepare + row.run).as_secs_f64()).sum();
        let all = match rows.len() - equal {
            0 => "all equal".to_string(),
            n => format!("{equal} equal, {n} NOT EQUAL"),
        };
        format!(
            "{} cases, {all}; {} kernels, {} elements, {seconds:.1} s",
            rows.len(),
            grouped(kernels),
            grouped(elements)
        )
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Verdict {
    /// The verdict in a word or two.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Equal => "equal",
            Verdict::Different(list) if list.iter().all(|d| d.whose == Whose::Evaluator) => "EVALUATOR DIFFERS",
            Verdict::Different(_) => "DIFFERENT",
            Verdict::Unknown(_) => "NO GOLDEN WORDS",
            Verdict::Failed(_) => "FAILED",
        }
    }

    /// What there is to say, a line each.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Verdict::Equal => Vec::new(),
            Verdict::Different(list) => list.iter().map(Difference::line).collect(),
            Verdict::Unknown(what) => vec![format!("{what}; `bless` writes what the evaluator gives")],
            Verdict::Failed(diagnostic) => diagnostic.lines().map(str::to_string).collect(),
        }
    }
}

impl Difference {
    /// The step, the tensor and its first element that differs: wanted and found bits, their distance, and how many differ.
    pub fn line(&self) -> String {
        let way = match self.whose {
            Whose::Device(Way::Whole) => "as a whole",
            Whose::Device(Way::Watched) => "launch by launch",
            Whose::Evaluator => "the evaluator no longer gives the golden words",
        };
        let columns = match self.scalars.columns {
            1 => "1 column".into(),
            n => format!("{n} columns"),
        };
        let mut line = format!("step {} ({columns} at {}), {way}: `{}`", self.step, self.scalars.position, self.tensor);
        match &self.element {
            Some(element) => line.push_str(&element.text()),
            None => line.push_str(": the first words are the same, the hash is not"),
        }
        if let Some([wrong, all]) = self.wrong {
            let _ = write!(line, "; {} of {} elements differ", grouped(wrong), grouped(all));
        }
        line
    }

    fn json(&self) -> Value {
        let element = self.element.as_ref();
        let hex = |word: u32| format!("{word:08x}");
        json!({
            "whose": match self.whose { Whose::Device(_) => "device", Whose::Evaluator => "evaluator" },
            "way": match self.whose {
                Whose::Device(Way::Whole) => "whole",
                Whose::Device(Way::Watched) => "watched",
                Whose::Evaluator => "evaluator",
            },
            "step": self.step,
            "position": self.scalars.position,
            "columns": self.scalars.columns,
            "tensor": self.tensor,
            "index": element.map(|e| e.index.clone()),
            "wanted": element.map(|e| hex(e.wanted)),
            "found": element.map(|e| hex(e.found)),
            "ulps": element.and_then(Element::ulps),
            "wrong": self.wrong.map(|w| w[0]),
            "elements": self.wrong.map(|w| w[1]),
        })
    }
}

impl Element {
    fn text(&self) -> String {
        let index: Vec<String> = self.index.iter().map(usize::to_string).collect();
        let mut text = format!(
            "[{}]: wanted {:08x} ({}), found {:08x} ({})",
            index.join(", "),
            self.wanted,
            self.value(self.wanted),
            self.found,
            self.value(self.found)
        );
        match (self.ulps(), self.ty) {
            (Some(1), _) => text.push_str(", 1 ulp"),
            (Some(n), _) => {
                let _ = write!(text, ", {} ulps", grouped(n as usize));
            }
            (None, Type::F32) => text.push_str(", no distance from a NaN"),
            (None, _) => {}
        }
        text
    }

    fn value(&self, word: u32) -> String {
        match self.ty {
            Type::F32 => format!("{:?}", f32::from_bits(word)),
            Type::ID if word == ds4_ir::eval::MASKED => "masked".into(),
            _ => (word as i32).to_string(),
        }
    }
}

/// The report of a device as JSON.
pub fn json(device: &str, rows: &[Row]) -> String {
    let case = |row: &Row| {
        let differences: Vec<Value> = match &row.verdict {
            Verdict::Different(list) => list.iter().map(Difference::json).collect(),
            _ => Vec::new(),
        };
        json!({
            "family": row.family,
            "case": row.case,
            "kernels": row.kernels,
            "elements": row.elements,
            "prepare_ms": row.prepare.as_secs_f64() * 1e3,
            "run_ms": row.run.as_secs_f64() * 1e3,
            "equal": row.verdict == Verdict::Equal,
            "verdict": row.verdict.word(),
            "lines": row.verdict.lines(),
            "form": row.form,
            "differences": differences,
        })
    };
    let report = json!({
        "contract": ds4_ir::plan::CONTRACT,
        "device": device,
        "equal": rows.iter().all(|row| row.verdict == Verdict::Equal),
        "cases": rows.iter().map(case).collect::<Vec<_>>(),
    });
    format!("{report:#}\n")
}
