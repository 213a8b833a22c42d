//! The table of laws has teeth: each row is changed in every way that people get wrong, and each change is noticed.
//!
//! A changed law has another text, so its proof is gone and no plan may use it. That alone would only show that texts are
//! hashed; so each mutant is also tried: random words or a solver refute it, or it is another true law, which is listed.
//! Laws of values are noticed by their examples: they say nothing of a text where they should, something where they
//! must not, or what they say is not true of the bits.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ds4_golden::proofs::examples::EXAMPLES;
use ds4_golden::proofs::solvers::{ask, find};
use ds4_golden::proofs::{Claim, trials};
use ds4_ir::certificate::proves;
use ds4_ir::dim::Dims;
use ds4_ir::rules::scalar::{ScalarRule, Term};
use ds4_ir::rules::value::{Args, Kind, Pattern, Right, RightArgs, ValueRule};
use ds4_ir::rules::{Exact, Proof, lock, scalar, value};
use ds4_ir::scalar::{ScalarOp, Scalars};
use ds4_ir::{Op, Value};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Operations that people take for each other: of one signature.
fn others(op: ScalarOp) -> impl Iterator<Item = ScalarOp> {
    ScalarOp::ALL.iter().copied().filter(move |&other| other != op && other.signature() == op.signature()).take(3)
}

/// The term with one change, in all ways.
fn mutated(term: &Term) -> Vec<(String, Term)> {
    match *term {
        Term::F32(bits) => vec![
            ("sign of a constant".into(), Term::F32(bits ^ 0x8000_0000)),
            ("a constant".into(), Term::F32(bits.wrapping_add(0x0080_0000))),
        ],
        Term::I32(value) => vec![("a constant".into(), Term::I32(value.wrapping_add(1)))],
        Term::Any(..) | Term::Literal(..) => vec![],
        Term::Op(op, terms) => {
            let mut all: Vec<_> = others(op)
                .map(|other| (format!("{} for {}", other.name(), op.name()), Term::Op(other, terms)))
                .collect();
            if let [a, b] = terms {
                all.push((format!("order of {}", op.name()), Term::Op(op, leak([*b, *a]))));
            }
            if let [c, a, b] = terms {
                all.push((format!("order of {}", op.name()), Term::Op(op, leak([*c, *b, *a]))));
            }
            for (place, term) in terms.iter().enumerate() {
                for (what, changed) in mutated(term) {
                    let mut list = terms.to_vec();
                    list[place] = changed;
                    all.push((what, Term::Op(op, leak(list))));
                }
            }
            all
        }
    }
}

fn scalar_mutants(rule: &'static ScalarRule) -> Vec<(String, &'static ScalarRule)> {
    let side = |what: String, side: &str| format!("{side}: {what}");
    let left = mutated(&rule.lhs).into_iter().map(|(what, lhs)| (side(what, "left"), ScalarRule { lhs, ..*rule }));
    let right = mutated(&rule.rhs).into_iter().map(|(what, rhs)| (side(what, "right"), ScalarRule { rhs, ..*rule }));
    let mut all: Vec<_> = left.chain(right).collect();
    if !rule.facts.is_empty() {
        all.push(("without its condition".into(), ScalarRule { facts: &[], ..*rule }));
    }
    all.into_iter().map(|(what, rule)| (what, leak(rule))).collect()
}

#[test]
fn every_change_of_a_scalar_law_is_noticed() {
    let test = "every_change_of_a_scalar_law_is_noticed";
    let entries = lock::parse(lock::TEXT);
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut survivors = vec![];
    for rule in scalar::all().filter(|rule| rule.head.proof != Proof::Evaluation) {
        for (what, mutant) in scalar_mutants(rule) {
            let count = counts.entry(rule.head.name).or_default();
            count[0] += 1;
            if lock::scalar_text(mutant).is_none() || trials::scalar_difference(mutant, 20_000, 3).is_some() {
                count[1] += 1;
            } else {
                survivors.push((what, mutant));
            }
            let admitted = Exact::admit(&[mutant], &[], &entries).is_ok();
            assert!(!admitted || mutant == rule, "{}: a changed law was admitted", rule.head.name);
        }
    }
    println!("law: mutants, refuted by random words");
    counts.iter().for_each(|(name, [mutants, refuted])| println!("{name}: {mutants}, {refuted}"));
    let Some(tools) = find(test) else { return };
    let solvable = survivors.iter().filter(|(_, rule)| rule.head.proof != Proof::Exhaustive);
    let claims: Vec<Claim> = solvable
        .map(|(_, rule)| Claim { head: rule.head, text: lock::scalar_text(rule).unwrap(), wanted: "" })
        .collect();
    let answers = ask(&tools, "cvc5", 10.0, &claims.iter().collect::<Vec<_>>()).unwrap();
    println!("mutants that random words do not refute:");
    let mut answers = answers.answers.into_iter();
    let mut open = vec![];
    for (what, rule) in &survivors {
        let answer = match rule.head.proof {
            Proof::Exhaustive => trials::unary(rule, 509).map_or("sat", |_| "equal on a sample").to_string(),
            _ => answers.next().unwrap().0,
        };
        let verdict = match answer.as_str() {
            "sat" => "refuted by the solver",
            "unsat" => "another true law",
            _ => "open",
        };
        println!("  {} {what}: {verdict} ({answer})", rule.head.name);
        if verdict == "open" {
            open.push(format!("{} {what}", rule.head.name));
        }
    }
    // A law whose change nobody can decide here would be a law that nobody tests.
    assert!(open.len() <= OPEN, "{open:?}");
}

/// Changes of laws on all inputs that give another law which holds on the sample.
const OPEN: usize = 3;

/// Operations that take as many operands.
fn other_operations(op: Op) -> &'static [Op] {
    match op {
        Op::Reshape | Op::Slice | Op::Permute | Op::Broadcast => &[Op::Reshape, Op::Slice, Op::Permute, Op::Broadcast],
        Op::Quantise | Op::Widen | Op::ArgMax => &[Op::Quantise, Op::Widen, Op::ArgMax],
        Op::Map | Op::Concat => &[Op::Map, Op::Concat],
        Op::Product | Op::Gather => &[Op::Product, Op::Gather],
        _ => &[],
    }
}

fn mutated_pattern(pattern: &Pattern) -> Vec<(String, Pattern)> {
    let Pattern::Node(variable, kind, args) = *pattern else { return vec![] };
    let mut all = vec![];
    if let Kind::Is(op) = kind {
        for &other in other_operations(op).iter().filter(|other| **other != op) {
            all.push((format!("{} for {}", other.name(), op.name()), Pattern::Node(variable, Kind::Is(other), args)));
        }
    }
    match args {
        Args::List(list) => {
            for (place, inner) in list.iter().enumerate() {
                for (what, changed) in mutated_pattern(inner) {
                    let mut new = list.to_vec();
                    new[place] = changed;
                    all.push((what, Pattern::Node(variable, kind, Args::List(leak(new)))));
                }
            }
            if let [a, b] = list {
                all.push(("order of operands".into(), Pattern::Node(variable, kind, Args::List(leak([*b, *a])))));
            }
        }
        Args::Each(inner) => {
            for (what, changed) in mutated_pattern(inner) {
                all.push((what, Pattern::Node(variable, kind, Args::Each(leak(changed)))));
            }
        }
        Args::One(inner, rest) => {
            for (what, changed) in mutated_pattern(inner) {
                all.push((what, Pattern::Node(variable, kind, Args::One(leak(changed), rest))));
            }
        }
    }
    all
}

fn mutated_right(right: &Right) -> Vec<(String, Right)> {
    let Right::Node(make, args) = *right else { return vec![] };
    let mut all = vec![];
    if let RightArgs::List(list) = args {
        for (place, inner) in list.iter().enumerate() {
            for (what, changed) in mutated_right(inner) {
                let mut new = list.to_vec();
                new[place] = changed;
                all.push((what, Right::Node(make, RightArgs::List(leak(new)))));
            }
        }
        if let [a, b] = list {
            all.push(("order of made operands".into(), Right::Node(make, RightArgs::List(leak([*b, *a])))));
        }
        if let [inner @ Right::Node(..)] = list {
            all.push(("an operation left out".into(), *inner));
        }
    }
    for other in makes() {
        if other.name != make.name {
            all.push((format!("{} for {}", other.name, make.name), Right::Node(other, args)));
        }
    }
    all
}

/// The functions of the table, each once.
fn makes() -> Vec<ds4_ir::rules::value::Make> {
    fn collect(right: &Right, found: &mut BTreeMap<&'static str, ds4_ir::rules::value::Make>) {
        if let Right::Node(make, args) = right {
            found.insert(make.name, *make);
            match args {
                RightArgs::List(list) => list.iter().for_each(|right| collect(right, found)),
                RightArgs::Each(_, right) => collect(right, found),
                _ => {}
            }
        }
    }
    let mut found = BTreeMap::new();
    value::all().for_each(|rule| collect(&rule.rhs, &mut found));
    found.into_values().collect()
}

fn value_mutants(rule: &'static ValueRule) -> Vec<(String, &'static ValueRule)> {
    let mut all: Vec<(String, ValueRule)> = vec![];
    all.extend(mutated_pattern(&rule.lhs).into_iter().map(|(what, lhs)| (what, ValueRule { lhs, ..*rule })));
    all.extend(mutated_right(&rule.rhs).into_iter().map(|(what, rhs)| (what, ValueRule { rhs, ..*rule })));
    for place in 0..rule.facts.len() {
        let mut facts = rule.facts.to_vec();
        let fact = facts.remove(place);
        all.push((format!("without `{}`", fact.name), ValueRule { facts: leak(facts), ..*rule }));
    }
    all.into_iter().map(|(what, rule)| (what, leak(rule))).collect()
}

/// How a changed law is noticed; nothing if it is not.
fn noticed(rule: &'static ValueRule) -> Option<&'static str> {
    let example = EXAMPLES.iter().find(|example| example.rule == rule.head.number).unwrap();
    for text in example.fires {
        let found = trials::instances_in(text, rule).unwrap();
        if found.pairs.is_empty() {
            return Some("says nothing where it should");
        }
        if trials::compare(&found, 40).is_err() {
            return Some("is not true of the bits");
        }
    }
    let speaks = |text: &&&str| !trials::instances_in(text, rule).unwrap().pairs.is_empty() || takes_forged(rule, text);
    example.quiet.iter().find(speaks).map(|_| "says something where it must not")
}

/// Whether the checker takes two values of a text for an instance, whatever the search finds.
fn takes_forged(rule: &ValueRule, text: &str) -> bool {
    let t = trials::parse(text).unwrap();
    let mut dims = Dims::from_columns(&t.dims, &t.shape_dims, &t.shapes);
    let mut scalars = Scalars::from_columns(&t.scalars, &t.bodies, &t.body_params);
    let values = || (0..t.value_op.len() as u32).map(Value);
    let pairs = values().flat_map(|a| values().map(move |b| (a, b))).filter(|(a, b)| a != b);
    pairs.into_iter().any(|(a, b)| proves(rule, &t.view(), &mut dims, &mut scalars, a, b))
}

#[test]
fn every_change_of_a_law_of_values_is_noticed() {
    let entries = lock::parse(lock::TEXT);
    let mut missed = vec![];
    for rule in value::all() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (what, mutant) in value_mutants(rule) {
            let how = noticed(mutant).unwrap_or("equal on all texts");
            *counts.entry(how).or_default() += 1;
            if noticed(mutant).is_none() {
                missed.push(format!("{} {what}", rule.head.name));
            }
            assert!(Exact::admit(&[], &[mutant], &entries).is_err(), "{} {what}: was admitted", rule.head.name);
        }
        println!("{}: {counts:?}", rule.head.name);
    }
    println!("changes that make the same law in another way: {missed:#?}");
    let conditions: Vec<&String> = missed.iter().filter(|what| what.contains("without")).collect();
    let unknown: Vec<_> = conditions.into_iter().filter(|what| !IMPLIED.contains(&what.as_str())).collect();
    assert!(unknown.is_empty(), "conditions that no text needs: {unknown:#?}");
    assert!(missed.len() <= SAME, "{missed:#?}");
}

/// Changes that make the same law in another way: another function that computes the same there.
const SAME: usize = 86;

/// Conditions that types and the root's shape imply; they say what a law is about and keep the search from trying.
const IMPLIED: [&str; 17] = [
    "reshape-same without `same_shape`",
    "slice-of-slice without `same_axis`",
    "slice-whole without `same_shape`",
    "slice-whole without `starts_at_zero`",
    "broadcast-same without `repeats_nothing`",
    "slice-of-repeated-axis without `axis_is_one`",
    "slice-of-kept-axis without `axis_is_kept`",
    "slice-of-part without `same_axis`",
    "slice-beside-concat without `other_axis`",
    "concat-of-concat without `same_axis`",
    "map-of-used without `some_unused`",
    "product-of-weight-rows without `along_last_axis`",
    "product-of-rows without `along_rows`",
    "product-of-reshaped without `one_matrix`",
    "product-of-repeated without `one_matrix`",
    "max-of-concat without `along_the_parts`",
    "arg-max-of-concat without `along_the_last_axis`",
];

/// Each law fires where it should and is quiet where it must be.
#[test]
fn examples_fire_and_stay_quiet() {
    let numbers: Vec<u32> = EXAMPLES.iter().map(|example| example.rule).collect();
    assert_eq!(numbers, value::all().map(|rule| rule.head.number).collect::<Vec<_>>());
    for example in EXAMPLES {
        let rule = value::by_number(example.rule).unwrap();
        assert!(!example.fires.is_empty() && !example.quiet.is_empty());
        for text in example.fires {
            let found = trials::instances_in(text, rule).unwrap();
            assert!(!found.pairs.is_empty(), "{} says nothing of\n{text}", rule.head.name);
            assert_checker_agrees(rule, &found);
        }
        for text in example.quiet {
            let found = trials::instances_in(text, rule).unwrap();
            assert!(found.pairs.is_empty(), "{} speaks of\n{text}", rule.head.name);
        }
    }
}

/// What the search's matcher finds, the checker's matcher confirms, in one direction only.
fn assert_checker_agrees(rule: &ValueRule, found: &ds4_compiler::rewrite::Instances) {
    let t = &found.terms;
    let mut dims = Dims::from_columns(&t.dims, &t.shape_dims, &t.shapes);
    let mut scalars = Scalars::from_columns(&t.scalars, &t.bodies, &t.body_params);
    for &(a, b) in &found.pairs {
        let name = rule.head.name;
        assert!(proves(rule, &t.view(), &mut dims, &mut scalars, a, b), "{name}: {a} = {b} is refused");
        assert!(!proves(rule, &t.view(), &mut dims, &mut scalars, b, a), "{name}: {b} = {a} is accepted");
    }
}
