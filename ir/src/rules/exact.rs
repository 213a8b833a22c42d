//! What an exact plan may use.

use std::fmt;
use std::sync::OnceLock;

use super::lock::{self, Entry};
use super::scalar::{self, ScalarRule};
use super::value::{self, ValueRule};
use super::{Head, Proof};

/// The rules that have their proofs. There is no way to make one but by admission, and both the search and the checker
/// take nothing else.
#[derive(Debug)]
pub struct Exact {
    scalars: Vec<&'static ScalarRule>,
    values: Vec<&'static ValueRule>,
}

/// Why a rule is not admitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unproved {
    /// The rule.
    pub rule: &'static str,
    /// What is missing.
    pub why: String,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}` may not be used: {}", self.rule, self.why)
    }
}

impl Exact {
    /// The rules of the table whose proofs stand in the lock file of this build.
    pub fn rules() -> &'static Exact {
        static RULES: OnceLock<Exact> = OnceLock::new();
        RULES.get_or_init(|| {
            let entries = lock::parse(lock::TEXT);
            Exact {
                scalars: scalar::all().filter(|rule| admit_scalar(rule, &entries).is_ok()).collect(),
                values: value::all().filter(|rule| admit_value(rule, &entries).is_ok()).collect(),
            }
        })
    }

    /// Admits these rules.
    ///
    /// # Errors
    /// One of them has no proof among the entries.
    pub fn admit(
        scalars: &[&'static ScalarRule],
        values: &[&'static ValueRule],
        entries: &[Entry],
    ) -> Result<Exact, Unproved> {
        scalars.iter().try_for_each(|rule| admit_scalar(rule, entries))?;
        values.iter().try_for_each(|rule| admit_value(rule, entries))?;
        Ok(Exact { scalars: scalars.to_vec(), values: values.to_vec() })
    }

    /// The scalar rules, ascending by number.
    pub fn scalars(&self) -> &[&'static ScalarRule] {
        &self.scalars
    }

    /// The value rules, ascending by number.
    pub fn values(&self) -> &[&'static ValueRule] {
        &self.values
    }

    /// The scalar rule of a number.
    pub fn scalar(&self, number: u32) -> Option<&'static ScalarRule> {
        self.scalars.iter().find(|rule| rule.head.number == number).copied()
    }

    /// The value rule of a number.
    pub fn value(&self, number: u32) -> Option<&'static ValueRule> {
        self.values.iter().find(|rule| rule.head.number == number).copied()
    }
}

fn admit_scalar(rule: &ScalarRule, entries: &[Entry]) -> Result<(), Unproved> {
    match rule.head.proof {
        Proof::Evaluation => Ok(()),
        Proof::Lists => refuse(&rule.head, "lists of launches prove no law of scalars"),
        Proof::Absent => refuse(&rule.head, "nobody has proved it"),
        Proof::Structural => refuse(&rule.head, "a law of scalars needs more than its structure"),
        Proof::Exhaustive => answered(&rule.head, lock::scalar_text(rule), "equal", entries),
        Proof::Smt | Proof::Uninterpreted => answered(&rule.head, lock::scalar_text(rule), "unsat", entries),
    }
}

fn admit_value(rule: &ValueRule, entries: &[Entry]) -> Result<(), Unproved> {
    match rule.head.proof {
        Proof::Structural => answered(&rule.head, Some(lock::value_text(rule)), "equal", entries),
        _ => refuse(&rule.head, "nobody has proved it"),
    }
}

/// The text as it is now has the wanted answer, and no other.
fn answered(head: &Head, text: Option<String>, wanted: &str, entries: &[Entry]) -> Result<(), Unproved> {
    let Some(text) = text else { return refuse(head, "its law has no obligation") };
    let hash = lock::hash(&text);
    let mut answers = entries.iter().filter(|entry| entry.number == head.number && entry.hash == hash).peekable();
    if answers.peek().is_none() {
        return refuse(head, "its law has no proof in the lock file");
    }
    match answers.find(|entry| entry.answer != wanted) {
        Some(entry) => refuse(head, &format!("{} answered `{}`", entry.solver, entry.answer)),
        None => Ok(()),
    }
}

fn refuse(head: &Head, why: &str) -> Result<(), Unproved> {
    Err(Unproved { rule: head.name, why: why.into() })
}
