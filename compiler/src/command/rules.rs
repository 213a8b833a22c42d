//! `ds4c rules`: the laws of rewriting and how they are known to hold.

use clap::Args;
use ds4_ir::Diagnostic;
use ds4_ir::rules::lock::{self, Entry, hash, scalar_text, value_text};
use ds4_ir::rules::{Exact, Head, Proof, launch, scalar, value};

/// Shows the laws that rewriting may use, with their proofs.
#[derive(Args)]
pub struct Rules {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A rule as it is shown.
struct Row {
    stratum: &'static str,
    head: Head,
    facts: Vec<&'static str>,
    /// Where the checker evaluates the facts of a law of launches.
    evaluated: Vec<&'static str>,
    admitted: bool,
    proofs: Vec<Entry>,
}

impl Rules {
    pub(super) fn run(self) -> Result<(), Diagnostic> {
        let rows = rows();
        super::print(&if self.json { json(&rows) } else { table(&rows) })
    }
}

fn rows() -> Vec<Row> {
    let (entries, exact) = (lock::parse(lock::TEXT), Exact::rules());
    let proofs = |head: Head, text: Option<String>| {
        let hash = text.map(|text| hash(&text));
        let of = |entry: &&Entry| entry.number == head.number && Some(&entry.hash) == hash.as_ref();
        entries.iter().filter(of).cloned().collect::<Vec<_>>()
    };
    let scalars = scalar::all().map(|rule| Row {
        stratum: "scalars",
        head: rule.head,
        facts: rule.facts.iter().map(|fact| fact.name()).collect(),
        evaluated: Vec::new(),
        admitted: exact.scalar(rule.head.number).is_some(),
        proofs: proofs(rule.head, scalar_text(rule)),
    });
    let values = value::all().map(|rule| Row {
        stratum: "values",
        head: rule.head,
        facts: rule.facts.iter().map(|fact| fact.name).collect(),
        evaluated: Vec::new(),
        admitted: exact.value(rule.head.number).is_some(),
        proofs: proofs(rule.head, Some(value_text(rule))),
    });
    // Lists are checked where they are used; there is nothing to prove in advance.
    let launches = launch::RULES.iter().map(|rule| Row {
        stratum: "launches",
        head: rule.head,
        facts: rule.conditions.iter().map(|condition| condition.name()).collect(),
        evaluated: rule.conditions.iter().map(|condition| condition.evaluated_by()).collect(),
        admitted: true,
        proofs: Vec::new(),
    });
    scalars.chain(values).chain(launches).collect()
}

/// Who proved it, and what it took.
fn proof_text(row: &Row) -> String {
    let by = row.proofs.iter().map(|entry| match entry.solver.as_str() {
        "trials" => format!("{} inputs", entry.cost),
        solver => format!("{solver} {} {} s", entry.version, entry.cost),
    });
    let by: Vec<String> = by.collect();
    match row.head.proof {
        Proof::Evaluation => format!("{}: each use is computed by the checker", row.head.proof.name()),
        Proof::Lists => {
            let conditions = row.facts.iter().zip(&row.evaluated);
            let conditions: Vec<String> = conditions.map(|(fact, by)| format!("{fact} (`{by}`)")).collect();
            format!("{}: {}", row.head.proof.name(), conditions.join("; "))
        }
        proof if by.is_empty() => format!("{}: no proof in this build", proof.name()),
        proof => format!("{}: {}", proof.name(), by.join(", ")),
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut family = "";
    for row in rows {
        if row.head.family != family {
            family = row.head.family;
            text += &format!("{}{family} ({})\n", if text.is_empty() { "" } else { "\n" }, row.stratum);
        }
        let mark = if row.admitted { "" } else { "  NOT ADMITTED" };
        text += &format!(
            "  {} {}{mark}\n      {}\n      {}\n",
            row.head.number,
            row.head.name,
            row.head.law,
            proof_text(row)
        );
    }
    let admitted = rows.iter().filter(|row| row.admitted).count();
    text + &format!("\n{} rules, {admitted} of them may be used in exact plans\n", rows.len())
}

fn json(rows: &[Row]) -> String {
    let proof = |entry: &Entry| match entry.solver.as_str() {
        "trials" => serde_json::json!({ "answer": entry.answer, "inputs": entry.cost }),
        solver => serde_json::json!({
            "answer": entry.answer,
            "solver": solver,
            "version": entry.version,
            "seconds": entry.cost,
        }),
    };
    let row = |row: &Row| {
        serde_json::json!({
            "number": row.head.number,
            "name": row.head.name,
            "law": row.head.law,
            "family": row.head.family,
            "stratum": row.stratum,
            "conditions": row.facts,
            "evaluated_by": row.evaluated,
            "proof": row.head.proof.name(),
            "exact": row.admitted,
            "proofs": row.proofs.iter().map(proof).collect::<Vec<_>>(),
        })
    };
    format!("{:#}\n", rows.iter().map(row).collect::<serde_json::Value>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_this_build_has_its_proof() {
        let rows = rows();
        let missing: Vec<&str> = rows.iter().filter(|row| !row.admitted).map(|row| row.head.name).collect();
        assert!(missing.is_empty(), "without proof: {missing:?}");
        assert!(!table(&rows).contains("no proof"));
        let json: serde_json::Value = serde_json::from_str(&json(&rows)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), rows.len());
        assert!(json[0]["proofs"][0]["seconds"].is_number());
    }

    /// Laws of launches stand beside those of values, with where the checker evaluates their conditions.
    #[test]
    fn laws_of_launches_are_shown() {
        let rows = rows();
        let text = table(&rows);
        let json: serde_json::Value = serde_json::from_str(&json(&rows)).unwrap();
        for rule in launch::RULES {
            assert!(text.contains(rule.head.law), "{}", rule.head.name);
            let row = json.as_array().unwrap().iter().find(|row| row["number"] == rule.head.number).unwrap();
            assert_eq!((&row["stratum"], &row["proof"]), (&"launches".into(), &"structural (lists checked)".into()));
            assert_eq!(row["evaluated_by"].as_array().unwrap().len(), rule.conditions.len());
        }
    }

    #[test]
    fn numbers_and_names_are_unique() {
        let rows = rows();
        let numbers: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.head.number).collect();
        let names: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.head.name).collect();
        assert_eq!((numbers.len(), names.len()), (rows.len(), rows.len()));
    }
}
