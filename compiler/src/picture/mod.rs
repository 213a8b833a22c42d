//! The step of a plan as a picture: values as boxes, regions as rooms around them, bytes on the ways between.
//!
//! A model's layers repeat, so one of each kind is drawn. `rooms` says what is drawn, `place` where, `draw` and `page` how. The
//! same plan gives the same bytes; nothing is fetched when the picture is shown.

mod draw;
mod page;
mod place;
mod poster;
mod rooms;
mod svg;
#[cfg(test)]
mod tests;

use ds4_ir::certificate::{Certificate, Report};
use ds4_ir::graph::Value;

use crate::step::Step;
use crate::step::parts::Parts;

/// What is proved of a plan.
pub struct Proof {
    rewritten: Option<Vec<bool>>,
    lemmas: usize,
}

impl Proof {
    const LISTS: &str =
        "lists: every value is computed, nothing is read too early, states are replaced in order: checked";
    const TEXT: &str = "text: unproved, the certificate is about values";

    /// What a certificate that was checked proves; none where the graph is the model's own.
    pub fn new(checked: Option<(&Certificate<'_>, &Report)>) -> Proof {
        let Some((certificate, report)) = checked else { return Proof { rewritten: None, lemmas: 0 } };
        let source = certificate.source.first().copied().unwrap_or(0);
        let rewritten = certificate.chosen.iter().map(|term| term.0 >= source).collect();
        Proof { rewritten: Some(rewritten), lemmas: report.uses.values().sum() }
    }

    fn is_certified(&self) -> bool {
        self.rewritten.is_some()
    }

    /// Whether rewriting made a value.
    fn is_rewritten(&self, v: Value) -> bool {
        self.rewritten.as_ref().is_some_and(|list| list.get(v.0 as usize).copied().unwrap_or(false))
    }
}

/// A step, and what is to be drawn of it.
pub struct Picture<'a> {
    /// The step.
    pub step: Step<'a>,
    /// Its parts.
    pub parts: Parts,
    /// What is proved.
    pub proof: Proof,
    /// What the picture is called.
    pub name: String,
    /// The parts that are drawn, ascending.
    pub drawn: Vec<usize>,
}

impl<'a> Picture<'a> {
    /// A picture of one part of each kind.
    pub fn new(step: Step<'a>, proof: Proof, name: String) -> Picture<'a> {
        let parts = Parts::new(&step);
        let drawn = parts.kinds.iter().map(|kind| kind.parts[0]).collect();
        Picture { step, parts, proof, name, drawn }
    }

    /// The picture as SVG.
    pub fn svg(&self) -> String {
        poster::poster(self)
    }

    /// The picture as a page that tells more about what is pointed at.
    pub fn html(&self) -> String {
        page::page(self)
    }
}
