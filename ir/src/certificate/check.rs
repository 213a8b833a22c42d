//! The checker. It knows no search: it replays lemmas in order and compares tables.

use std::collections::BTreeMap;
use std::fmt;

use super::classes::Classes;
use super::{Certificate, LemmaRow, Reason, matching};
use crate::dim::Dims;
use crate::graph::{Graph, Value};
use crate::op::Op;
use crate::rules::{Exact, scalar};
use crate::scalar::{Scalar, ScalarOp, Scalars, operands, scalar_type};
use crate::verify;

/// What a certificate that was accepted says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Values of the source graph.
    pub source_values: usize,
    /// Values of the plan's graph.
    pub plan_values: usize,
    /// Terms in all.
    pub terms: usize,
    /// For each reason how often it is used; rules by number.
    pub uses: BTreeMap<u32, usize>,
}

/// Why a certificate is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The lemma, as the name of its list and its place.
    pub lemma: Option<(&'static str, usize)>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((list, place)) = self.lemma {
            write!(f, "lemma {place} on {list}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

fn refuse<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { lemma: None, message: message.into() })
}

/// Whether the plan's graph computes what the certificate's source graph says, by laws that are proved. Tables of any
/// content are safe.
///
/// # Errors
/// One of the graphs is none, a lemma does not hold, or the graphs do not have equal outputs, named values and states.
pub fn check(plan: &Graph<'_>, certificate: &Certificate<'_>, rules: &Exact) -> Result<Report, Refusal> {
    let plan_facts = verified("the plan's graph", plan)?;
    let &[source_len] = certificate.source else { return refuse("the number of source values is missing") };
    let terms = all_terms(plan, certificate);
    let source = source_graph(&terms, certificate, source_len as usize)?;
    let source_facts = verified("the source graph", &source)?;
    verify::check_values(&terms).or_else(|fault| refuse(format!("the terms: {fault}")))?;
    let mut checker = Checker {
        terms,
        rules,
        dims: Dims::from_columns(plan.dims, plan.shape_dims, plan.shapes),
        bodies: Scalars::from_columns(plan.scalars, plan.bodies, plan.body_params),
        scalars: Classes::new(plan.scalars.len()),
        values: Classes::new(terms.len()),
        uses: BTreeMap::new(),
    };
    checker.replay(certificate)?;
    checker.compare_rows(plan, certificate.chosen)?;
    checker.compare_names(plan, certificate)?;
    checker.compare_states(&source_facts, &plan_facts, certificate.chosen)?;
    Ok(Report { source_values: source.len(), plan_values: plan.len(), terms: terms.len(), uses: checker.uses })
}

fn verified(what: &str, graph: &Graph<'_>) -> Result<verify::Facts, Refusal> {
    verify::verify(graph).or_else(|fault| refuse(format!("{what}: {fault}")))
}

/// All terms as one table; the rest is the plan's. They are checked with the certificate.
pub fn all_terms<'a>(plan: &Graph<'a>, certificate: &Certificate<'a>) -> Graph<'a> {
    Graph {
        value_op: certificate.term_op,
        value_type: certificate.term_type,
        value_shape: certificate.term_shape,
        value_args: certificate.term_args,
        value_attrs: certificate.term_attrs,
        value_span: certificate.term_span,
        args: certificate.args,
        attrs: certificate.attrs,
        named: &[],
        outputs: &[],
        ..*plan
    }
}

/// The graph that a certificate begins with; `None` if there are fewer terms than it has values. Nothing else is checked.
pub fn source<'a>(plan: &Graph<'a>, certificate: &Certificate<'a>) -> Option<Graph<'a>> {
    let &[len] = certificate.source else { return None };
    source_graph(&all_terms(plan, certificate), certificate, len as usize).ok()
}

/// The first terms as a graph of their own.
fn source_graph<'a>(terms: &Graph<'a>, certificate: &Certificate<'a>, len: usize) -> Result<Graph<'a>, Refusal> {
    let columns = (
        terms.value_op.get(..len),
        terms.value_type.get(..len),
        terms.value_shape.get(..len),
        terms.value_args.get(..len),
        terms.value_attrs.get(..len),
        terms.value_span.get(..len),
    );
    let (Some(op), Some(ty), Some(shape), Some(args), Some(attrs), Some(span)) = columns else {
        return refuse("there are fewer terms than source values");
    };
    Ok(Graph {
        value_op: op,
        value_type: ty,
        value_shape: shape,
        value_args: args,
        value_attrs: attrs,
        value_span: span,
        named: certificate.source_named,
        outputs: certificate.source_outputs,
        ..*terms
    })
}

struct Checker<'a> {
    terms: Graph<'a>,
    rules: &'a Exact,
    dims: Dims,
    bodies: Scalars,
    scalars: Classes,
    values: Classes,
    uses: BTreeMap<u32, usize>,
}

impl Checker<'_> {
    fn replay(&mut self, certificate: &Certificate<'_>) -> Result<(), Refusal> {
        let at = |list, place, message: String| Refusal { lemma: Some((list, place)), message };
        for (place, lemma) in certificate.scalar_lemmas.iter().enumerate() {
            self.scalar_lemma(lemma).map_err(|message| at("scalars", place, message))?;
            self.scalars.join(lemma.a, lemma.b);
        }
        for (place, lemma) in certificate.value_lemmas.iter().enumerate() {
            self.value_lemma(lemma).map_err(|message| at("values", place, message))?;
            self.values.join(lemma.a, lemma.b);
        }
        Ok(())
    }

    fn count(&mut self, lemma: &LemmaRow) {
        *self.uses.entry(lemma.reason.number()).or_default() += 1;
    }

    fn scalar_lemma(&mut self, lemma: &LemmaRow) -> Result<(), String> {
        let rows = self.terms.scalars;
        let (a, b) = (Scalar(lemma.a), Scalar(lemma.b));
        if a.0 as usize >= rows.len() || b.0 as usize >= rows.len() {
            return Err("a scalar does not exist".into());
        }
        if scalar_type(rows, a) != scalar_type(rows, b) {
            return Err(format!("{a} and {b} differ in type"));
        }
        self.count(lemma);
        if lemma.reason == Reason::CONGRUENCE {
            return self.scalar_congruence(a, b);
        }
        let number = lemma.reason.number();
        let rule = self.rules.scalar(number).ok_or_else(|| format!("there is no proved scalar rule {number}"))?;
        let (left, right) = if lemma.reason.is_reversed() { (b, a) } else { (a, b) };
        match scalar::proves(rule, &scalar::Nodes(rows), left, right) {
            true => Ok(()),
            false => Err(format!("{left} = {right} is no instance of `{}`", rule.head.name)),
        }
    }

    fn scalar_congruence(&mut self, a: Scalar, b: Scalar) -> Result<(), String> {
        let rows = self.terms.scalars;
        let (x, y) = (&rows[a.0 as usize], &rows[b.0 as usize]);
        let leaf = ScalarOp::from_number(x.op).and_then(ScalarOp::signature).is_none();
        let same =
            x.op == y.op && !leaf && operands(x).iter().zip(operands(y)).all(|(&x, &y)| self.scalars.equal(x, y));
        if same { Ok(()) } else { Err(format!("{a} and {b} do not do the same to equal operands")) }
    }

    fn value_lemma(&mut self, lemma: &LemmaRow) -> Result<(), String> {
        let (a, b) = (Value(lemma.a), Value(lemma.b));
        if a.0 as usize >= self.terms.len() || b.0 as usize >= self.terms.len() {
            return Err("a term does not exist".into());
        }
        self.count(lemma);
        match lemma.reason {
            Reason::CONGRUENCE => self.value_congruence(a, b),
            Reason::BODY => self.equal_bodies(a, b),
            reason => {
                let (left, right) = if reason.is_reversed() { (b, a) } else { (a, b) };
                self.instance(reason.number(), left, right)
            }
        }
    }

    fn instance(&mut self, number: u32, left: Value, right: Value) -> Result<(), String> {
        let rule = self.rules.value(number).ok_or_else(|| format!("there is no proved value rule {number}"))?;
        match matching::proves(rule, &self.terms, &mut self.dims, &mut self.bodies, left, right) {
            true => Ok(()),
            false => Err(format!("{left} = {right} is no instance of `{}`", rule.head.name)),
        }
    }

    /// Whether two terms are of one type and shape and take equal operands.
    fn same_but_attributes(&mut self, a: Value, b: Value) -> bool {
        let terms = self.terms;
        let (x, y) = (terms.args(a), terms.args(b));
        terms.op(a) == terms.op(b)
            && terms.ty(a) == terms.ty(b)
            && terms.value_shape[a.0 as usize] == terms.value_shape[b.0 as usize]
            && x.len() == y.len()
            && x.iter().zip(y).all(|(x, y)| self.values.equal(x.0, y.0))
    }

    fn value_congruence(&mut self, a: Value, b: Value) -> Result<(), String> {
        match self.same_but_attributes(a, b) && self.terms.attrs(a) == self.terms.attrs(b) {
            true => Ok(()),
            false => Err(format!("{a} and {b} do not do the same to equal operands")),
        }
    }

    fn equal_bodies(&mut self, a: Value, b: Value) -> Result<(), String> {
        let terms = self.terms;
        if terms.op(a) != Op::Map || !self.same_but_attributes(a, b) {
            return Err(format!("{a} and {b} are no maps of equal operands"));
        }
        let [x, y] = [a, b].map(|v| terms.bodies[terms.attrs(v)[0] as usize]);
        let params = x.params.of(terms.body_params) == y.params.of(terms.body_params);
        match params && self.scalars.equal(x.result.0, y.result.0) {
            true => Ok(()),
            false => Err(format!("the bodies of {a} and {b} are not known to be equal")),
        }
    }

    /// Each value of the plan does what its term does, to equal operands.
    fn compare_rows(&mut self, plan: &Graph<'_>, chosen: &[Value]) -> Result<(), Refusal> {
        if chosen.len() != plan.len() {
            return refuse("not every value of the plan has a term");
        }
        for v in plan.values() {
            let term = chosen[v.0 as usize];
            if term.0 as usize >= self.terms.len() || !self.same_row(plan, v, term, chosen) {
                return refuse(format!("{v} of the plan is not its term {term}"));
            }
        }
        Ok(())
    }

    fn same_row(&mut self, plan: &Graph<'_>, v: Value, term: Value, chosen: &[Value]) -> bool {
        let terms = self.terms;
        let (x, y) = (plan.args(v), terms.args(term));
        plan.op(v) == terms.op(term)
            && plan.ty(v) == terms.ty(term)
            && plan.value_shape[v.0 as usize] == terms.value_shape[term.0 as usize]
            && plan.attrs(v) == terms.attrs(term)
            && x.len() == y.len()
            && x.iter().zip(y).all(|(x, y)| self.values.equal(chosen[x.0 as usize].0, y.0))
    }

    fn compare_names(&mut self, plan: &Graph<'_>, certificate: &Certificate<'_>) -> Result<(), Refusal> {
        let lists = [
            ("output", certificate.source_outputs, plan.outputs),
            ("named value", certificate.source_named, plan.named),
        ];
        for (what, source, plan_rows) in lists {
            if source.len() != plan_rows.len() {
                return refuse(format!("the graphs differ in the number of {what}s"));
            }
            for (x, y) in source.iter().zip(plan_rows) {
                let term = certificate.chosen[y.value.0 as usize];
                if x.name != y.name || !self.values.equal(x.value.0, term.0) {
                    return refuse(format!("{what} `{}` is not known to be equal", plan.name(y.name)));
                }
            }
        }
        Ok(())
    }

    fn compare_states(
        &mut self,
        source: &verify::Facts,
        plan: &verify::Facts,
        chosen: &[Value],
    ) -> Result<(), Refusal> {
        for (state, (x, y)) in source.final_versions.iter().zip(&plan.final_versions).enumerate() {
            let same = match (x, y) {
                (None, None) => true,
                // A state that is only read stays as it is, whether it is read or not.
                (Some(x), None) => self.terms.op(*x) == Op::Read,
                (None, Some(y)) => self.terms.op(chosen[y.0 as usize]) == Op::Read,
                (Some(x), Some(y)) => self.values.equal(x.0, chosen[y.0 as usize].0),
            };
            if !same {
                return refuse(format!("the last version of state {state} is not known to be equal"));
            }
        }
        Ok(())
    }
}
