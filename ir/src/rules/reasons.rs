//! What a plan's proof uses: rules and kinds of proof, counted.

use std::collections::BTreeMap;

use super::{Head, launch, scalar, value};
use crate::certificate::{Reason, Report};
use crate::graph::Graph;
use crate::plan::{Plan, uses};

/// A rule and how often it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The rule's name.
    pub rule: &'static str,
    /// How it is known to hold.
    pub proof: &'static str,
    /// Uses.
    pub count: usize,
}

/// Uses of rules, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reasons(pub Vec<Use>);

impl Reasons {
    /// The steps of a certificate.
    pub fn of_certificate(report: &Report) -> Reasons {
        Reasons::of(&report.uses)
    }

    /// The laws of launches that a plan's lists use, all entry points together. The plan has passed [`crate::plan::check`].
    pub fn of_launches(graph: &Graph<'_>, plan: &Plan<'_>) -> Reasons {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (number, count) in plan.entries.iter().flat_map(|entry| uses(graph, plan, entry)) {
            *counts.entry(number).or_default() += count;
        }
        Reasons::of(&counts)
    }

    fn of(counts: &BTreeMap<u32, usize>) -> Reasons {
        let one = |(&number, &count): (&u32, &usize)| {
            let (rule, proof) = rule(number);
            Use { rule, proof, count }
        };
        Reasons(counts.iter().map(one).collect())
    }

    /// Uses of each kind of proof.
    pub fn kinds(&self) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for one in &self.0 {
            *kinds.entry(one.proof).or_default() += one.count;
        }
        kinds
    }

    /// A line for each kind of proof, with its rules.
    pub fn lines(&self) -> Vec<String> {
        let line = |(kind, count): (&'static str, usize)| {
            let rules = self.0.iter().filter(|one| one.proof == kind && one.rule != kind);
            let rules: Vec<String> = rules.map(|one| format!("{} {}", one.rule, one.count)).collect();
            match rules.is_empty() {
                true => format!("{count} steps by {kind}"),
                false => format!("{count} steps by {kind}: {}", rules.join(", ")),
            }
        };
        self.kinds().into_iter().map(line).collect()
    }
}

/// The name of a reason, and how it is known to hold.
pub fn rule(number: u32) -> (&'static str, &'static str) {
    if number == Reason::CONGRUENCE.number() {
        return ("congruence", "congruence");
    }
    if number == Reason::BODY.number() {
        return ("equal bodies", "equal bodies");
    }
    let heads = scalar::all().map(|rule| rule.head).chain(value::all().map(|rule| rule.head));
    let mut heads = heads.chain(launch::RULES.iter().map(|rule| rule.head));
    let found: Option<Head> = heads.find(|head| head.number == number);
    found.map_or(("unknown", "unknown"), |head| (head.name, head.proof.name()))
}
