//! The certificate of a fused graph for people and as JSON: terms, steps, and launches with the laws that made them.

use ds4_ir::Op;
use std::collections::BTreeMap;

use ds4_ir::certificate::{Certificate, LemmaRow, Report, all_terms, instance};
use ds4_ir::dim::Dims;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::plan::{EntryRow, Plan, RegionRow, SlotRow};
use ds4_ir::rules::{Reasons, rule, scalar, value};
use ds4_ir::scalar::{Scalar, ScalarOp, Scalars, operands};
use ds4_ir::text::value_lines;
use serde_json::{Map, Value as Json, json};

/// Names of a value law's variables.
const VARIABLES: [&str; 8] = ["root", "inner", "x", "y", "rest", "x5", "x6", "x7"];

/// A certificate that was checked, with the plan that it is for.
pub struct Shown<'a> {
    /// The plan's graph.
    pub graph: Graph<'a>,
    /// Its lists.
    pub plan: Plan<'a>,
    /// Why the graph has the bits of the one that was read.
    pub certificate: Certificate<'a>,
    /// What the checker found.
    pub report: Report,
}

/// A step: two terms and why they are equal.
struct Step {
    a: String,
    b: String,
    rule: &'static str,
    proof: &'static str,
    /// Whether the law is read from right to left.
    reversed: bool,
    substitution: Vec<(String, String)>,
    facts: Vec<&'static str>,
}

impl Step {
    fn new(name: &str, lemma: &LemmaRow) -> Step {
        let (rule, proof) = rule(lemma.reason.number());
        Step {
            a: format!("{name}{}", lemma.a),
            b: format!("{name}{}", lemma.b),
            rule,
            proof,
            reversed: lemma.reason.is_reversed(),
            substitution: Vec::new(),
            facts: Vec::new(),
        }
    }

    fn text(&self) -> String {
        // The law is about the whole term: congruence carries it to where the term stands.
        let (at, other) = if self.reversed { (&self.b, &self.a) } else { (&self.a, &self.b) };
        let mut text = format!("{at} = {other} by {} ({})", self.rule, self.proof);
        if !self.substitution.is_empty() {
            let list: Vec<String> = self.substitution.iter().map(|(x, y)| format!("{x} = {y}")).collect();
            text += &format!(" at {at} with {}", list.join(", "));
        }
        if !self.facts.is_empty() {
            text += &format!("; {}", self.facts.join(", "));
        }
        text
    }

    fn json(&self) -> Json {
        let position = if self.reversed { &self.b } else { &self.a };
        let substitution: Map<String, Json> = self.substitution.iter().map(|(x, y)| (x.clone(), json!(y))).collect();
        json!({
            "a": self.a,
            "b": self.b,
            "rule": self.rule,
            "proof": self.proof,
            "position": position,
            "substitution": substitution,
            "facts": self.facts,
        })
    }
}

impl Shown<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let source = self.report.source_values;
        let mut text = format!("terms: {source} of the graph that was read, then those that rewriting made\n");
        self.term_lines().iter().for_each(|line| text += &format!("  {line}\n"));
        text += "scalars, and bodies of maps\n";
        self.scalar_lines().iter().chain(&self.body_lines()).for_each(|(x, line)| text += &format!("  {x} = {line}\n"));
        for (what, steps) in [("steps on scalars", self.scalar_steps()), ("steps on values", self.value_steps())] {
            text += &format!("{what}: {}\n", steps.len());
            steps.iter().enumerate().for_each(|(i, step)| text += &format!("  {i}: {}\n", step.text()));
        }
        text += "the plan's graph: each value with its term\n";
        let lines = value_lines(&self.graph);
        for (line, term) in lines.iter().zip(self.certificate.chosen) {
            text += &format!("  {line}  ; term {term}\n");
        }
        for entry in self.plan.entries {
            text += &self.launches_text(entry);
        }
        text += "checked\n";
        let steps = [Reasons::of_certificate(&self.report), Reasons::of_launches(&self.graph, &self.plan)];
        steps.iter().flat_map(Reasons::lines).for_each(|line| text += &format!("  {line}\n"));
        text
    }

    /// As JSON.
    pub fn json(&self) -> Json {
        let steps = |steps: Vec<Step>| steps.iter().map(Step::json).collect::<Vec<_>>();
        let entry = |entry: &EntryRow| json!({ "entry": self.plan.str(entry.name), "launches": self.launches(entry) });
        json!({
            "source_values": self.report.source_values,
            "terms": self.term_lines(),
            "scalars": self.scalar_lines().into_iter().collect::<BTreeMap<_, _>>(),
            "bodies": self.body_lines().into_iter().collect::<BTreeMap<_, _>>(),
            "scalar_steps": steps(self.scalar_steps()),
            "value_steps": steps(self.value_steps()),
            "values": value_lines(&self.graph),
            "chosen": self.certificate.chosen.iter().map(|term| term.0).collect::<Vec<_>>(),
            "entries": self.plan.entries.iter().map(entry).collect::<Vec<_>>(),
            "steps": Reasons::of_certificate(&self.report).kinds(),
            "launch_steps": Reasons::of_launches(&self.graph, &self.plan).kinds(),
            "accepted": true,
        })
    }

    /// Each term once, as IR text.
    fn term_lines(&self) -> Vec<String> {
        value_lines(&all_terms(&self.graph, &self.certificate))
    }

    /// The bodies of maps.
    fn bodies(&self) -> Vec<u32> {
        let terms = all_terms(&self.graph, &self.certificate);
        let mut bodies: Vec<u32> =
            terms.values().filter(|&v| terms.op(v) == Op::Map).map(|v| terms.attrs(v)[0]).collect();
        bodies.sort();
        bodies.dedup();
        bodies
    }

    fn body_lines(&self) -> Vec<(String, String)> {
        let line = |body: u32| (format!("b{body}"), format!("e{}", self.graph.bodies[body as usize].result.0));
        self.bodies().into_iter().map(line).collect()
    }

    /// Each scalar that a body or a step is about, or that one of these is made of, once.
    fn scalar_lines(&self) -> Vec<(String, String)> {
        let rows = self.graph.scalars;
        let results = self.bodies().into_iter().map(|body| self.graph.bodies[body as usize].result.0);
        let ends = self.certificate.scalar_lemmas.iter().flat_map(|lemma| [lemma.a, lemma.b]).chain(results);
        let mut all: Vec<Scalar> = ends.flat_map(|x| ds4_ir::scalar::reachable(rows, Scalar(x))).collect();
        all.sort();
        all.dedup();
        let line = |x: Scalar| {
            let row = &rows[x.0 as usize];
            let words: Vec<String> = operands(row).iter().map(|word| format!("e{word}")).collect();
            match ScalarOp::from_number(row.op) {
                Some(ScalarOp::Param) => format!("x{}", row.words[0]),
                Some(ScalarOp::F32) => format!("{:?}", f32::from_bits(row.words[0])),
                Some(ScalarOp::I32) => format!("{}", row.words[0] as i32),
                Some(op) => format!("{}({})", op.name(), words.join(", ")),
                None => String::new(),
            }
        };
        all.into_iter().map(|x| (format!("e{}", x.0), line(x))).collect()
    }

    fn scalar_steps(&self) -> Vec<Step> {
        let nodes = scalar::Nodes(self.graph.scalars);
        let step = |lemma: &LemmaRow| {
            let mut step = Step::new("e", lemma);
            let (left, right) = sides(lemma);
            let rule = scalar::by_number(lemma.reason.number());
            let bound = rule.and_then(|rule| scalar::instance(rule, &nodes, Scalar(left), Scalar(right)));
            for (i, x) in bound.iter().flatten().enumerate() {
                step.substitution.extend(x.map(|x| (format!("x{i}"), format!("e{}", x.0))));
            }
            step.facts = rule.iter().flat_map(|rule| rule.facts).map(|fact| fact.name()).collect();
            step
        };
        self.certificate.scalar_lemmas.iter().map(step).collect()
    }

    fn value_steps(&self) -> Vec<Step> {
        let graph = &self.graph;
        let terms = all_terms(graph, &self.certificate);
        let mut dims = Dims::from_columns(graph.dims, graph.shape_dims, graph.shapes);
        let mut bodies = Scalars::from_columns(graph.scalars, graph.bodies, graph.body_params);
        let mut step = |lemma: &LemmaRow| {
            let mut step = Step::new("v", lemma);
            let (left, right) = sides(lemma);
            let Some(rule) = value::by_number(lemma.reason.number()) else { return step };
            let bound = instance(rule, &terms, &mut dims, &mut bodies, Value(left), Value(right));
            let items = bound.iter().flat_map(|bound| bound.items.iter().zip(VARIABLES));
            for (items, name) in items.filter(|(items, _)| !items.is_empty()) {
                let list: Vec<String> = items.iter().map(|item| format!("v{}", item.id)).collect();
                let list = if let [one] = &list[..] { one.clone() } else { format!("[{}]", list.join(" ")) };
                step.substitution.push((name.into(), list));
            }
            step.facts = rule.facts.iter().map(|fact| fact.name).collect();
            step
        };
        self.certificate.value_lemmas.iter().map(&mut step).collect()
    }

    fn launches_text(&self, entry: &EntryRow) -> String {
        let mut text = format!("launches of `{}`\n", self.plan.str(entry.name));
        let list = |json: &Json| -> String {
            let items = json.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().map(|item| item.as_str().map_or(item.to_string(), Into::into)).collect::<Vec<_>>().join(", ")
        };
        for (i, launch) in self.launches(entry).iter().enumerate() {
            text += &line("  ", &format!("launch {i}"), &list(&launch["rules"]));
            for region in launch["regions"].as_array().into_iter().flatten() {
                let head = format!("region, tiles [{}]", list(&region["tiles"]));
                text += &line("    ", &head, &list(&region["rules"]));
                for row in region["values"].as_array().into_iter().flatten() {
                    text += &line("      ", &format!("v{}", row["value"]), &list(&row["rules"]));
                }
            }
        }
        text
    }

    /// The launches of an entry point, with the laws that made them.
    fn launches(&self, entry: &EntryRow) -> Vec<Json> {
        let lists = self.plan.lists(entry);
        let slots = entry.slots.of(self.plan.slots);
        let mut last = Value(0);
        let mut launches = Vec::new();
        for (launch, list) in entry.launches.of(self.plan.launches).iter().zip(&lists) {
            let first = list.iter().filter_map(|values| values.first()).min().copied().unwrap_or(last);
            let mut rules: Vec<&str> = Vec::new();
            rules.extend((list.len() > 1).then_some("pair"));
            rules.extend((first < last).then_some("reorder"));
            last = list.iter().filter_map(|values| values.last()).max().copied().unwrap_or(last).max(last);
            let region = |row: &RegionRow| self.region(row, &lists, slots);
            let regions: Vec<Json> = self.plan.regions(launch).iter().map(region).collect();
            launches.push(json!({ "rules": rules, "regions": regions }));
        }
        launches
    }

    fn region(&self, row: &RegionRow, lists: &[Vec<&[Value]>], slots: &[SlotRow]) -> Json {
        let (values, tiles) = (self.plan.values(row), self.plan.tiles(row));
        let split = tiles.iter().any(|&tile| tile > 0).then_some("split");
        let one = |&v: &Value| {
            let op = self.graph.op(v);
            let slot = slots.iter().find(|slot| slot.value == v);
            let times = lists.iter().flatten().filter(|list| list.binary_search(&v).is_ok()).count();
            let is_last = values.last() == Some(&v);
            let mut rules: Vec<&str> = Vec::new();
            rules.extend((op == Op::Gather && slot.is_none()).then_some("look-up"));
            rules.extend((!is_last && rules.is_empty()).then_some("absorb"));
            rules.extend((times > 1).then_some("duplicate"));
            rules.extend((op == Op::Write).then_some("replace"));
            rules.extend((slot.is_none() && !matches!(op, Op::Write | Op::Gather)).then_some("interior"));
            rules.extend(slot.is_some_and(|slot| slot.within != v).then_some("in-place"));
            json!({ "value": v.0, "rules": rules })
        };
        json!({
            "tiles": tiles,
            "rules": split.into_iter().collect::<Vec<_>>(),
            "values": values.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

/// What something is, and the laws behind it if there are any.
fn line(indent: &str, head: &str, rules: &str) -> String {
    match rules.is_empty() {
        true => format!("{indent}{head}\n"),
        false => format!("{indent}{head}: {rules}\n"),
    }
}

/// The terms of a lemma as its law reads them.
fn sides(lemma: &LemmaRow) -> (u32, u32) {
    if lemma.reason.is_reversed() { (lemma.b, lemma.a) } else { (lemma.a, lemma.b) }
}
