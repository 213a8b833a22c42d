//! `ds4c check`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use ds4_ir::Diagnostic;
use ds4_ir::certificate::{Reason, Report};
use ds4_ir::plan::Plan;
use ds4_ir::rules::{Exact, Head, scalar, value};
use serde_json::json;

use super::open_plan;

/// Arguments of `ds4c check`.
#[derive(Args)]
#[command(after_help = "Examples:\n  ds4c check model.ds4plan\n  ds4c check model.ds4plan --json")]
pub struct Check {
    /// The plan file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Checks tables, launches and certificate; says what was proved.
    pub fn run(self) -> Result<(), Diagnostic> {
        let bytes = open_plan(&self.plan)?;
        let (_, plan, _) = bytes.verified()?;
        let proved = bytes.proved(Exact::rules())?;
        let found = Found::new(&plan, proved.as_ref());
        super::print(&if self.json { found.json() } else { found.text() })
    }
}

/// What a check found.
struct Found {
    /// For each entry point its name, launches and regions.
    entries: Vec<(String, usize, usize)>,
    /// Values of the source graph, of the plan's, and terms.
    terms: Option<[usize; 3]>,
    /// Uses of each kind of proof.
    uses: BTreeMap<&'static str, usize>,
}

impl Found {
    fn new(plan: &Plan<'_>, proved: Option<&Report>) -> Found {
        let entry = |entry: &ds4_ir::plan::EntryRow| {
            let launches = entry.launches.of(plan.launches);
            let regions = launches.iter().map(|launch| plan.regions(launch).len()).sum();
            (plan.str(entry.name).to_string(), launches.len(), regions)
        };
        let mut uses = BTreeMap::new();
        for (&number, &count) in proved.iter().flat_map(|report| &report.uses) {
            *uses.entry(kind(number)).or_default() += count;
        }
        let terms = proved.map(|report| [report.source_values, report.plan_values, report.terms]);
        Found { entries: plan.entries.iter().map(entry).collect(), terms, uses }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, launches, regions) in &self.entries {
            text += &format!(
                "{name:<9} {regions} regions in {launches} launches: every value computed, nothing read too early, states in order\n"
            );
        }
        match self.terms {
            Some([source, plan, terms]) => {
                text +=
                    &format!("values    {source} of the model's graph, {plan} of the plan's, {terms} terms: equal\n");
            }
            None => text += "values    the plan's graph is the model's, nothing was rewritten\n",
        }
        for (kind, count) in &self.uses {
            text += &format!("          {count} steps by {kind}\n");
        }
        text + "accepted\n"
    }

    fn json(&self) -> String {
        let entry = |(name, launches, regions): &(String, usize, usize)| json!({ "entry": name, "launches": launches, "regions": regions });
        let terms = self.terms.map(|[source, plan, terms]| json!({ "source": source, "plan": plan, "terms": terms }));
        let entries: Vec<_> = self.entries.iter().map(entry).collect();
        format!("{:#}\n", json!({ "entries": entries, "values": terms, "steps": self.uses, "accepted": true }))
    }
}

/// How a reason of a lemma is known to hold.
fn kind(number: u32) -> &'static str {
    if number == Reason::CONGRUENCE.number() {
        return "congruence";
    }
    if number == Reason::BODY.number() {
        return "equal bodies";
    }
    let heads = scalar::all().map(|rule| rule.head).chain(value::all().map(|rule| rule.head));
    let found: Option<Head> = heads.into_iter().find(|head| head.number == number);
    found.map_or("unknown", |head| head.proof.name())
}
