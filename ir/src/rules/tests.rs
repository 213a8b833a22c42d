use super::lock::{self, Entry, hash, scalar_text};
use super::scalar::{FALSE_LAWS, ScalarRule, Term};
use super::value::ValueRule;
use super::{Exact, Head, Proof, scalar, value};
use crate::scalar::ScalarOp;
use crate::scalar::ScalarType::F32;

const HEAD: Head = Head { number: 999, name: "test", law: "x + x = x", family: "test", proof: Proof::Smt };
const X: Term = Term::Any(0, F32);
static UNPROVED: ScalarRule = ScalarRule { head: HEAD, lhs: Term::Op(ScalarOp::Add, &[X, X]), rhs: X, facts: &[] };

fn entry(rule: &ScalarRule, answer: &str) -> Entry {
    Entry {
        number: rule.head.number,
        name: rule.head.name.into(),
        hash: hash(&scalar_text(rule).unwrap()),
        solver: "z3".into(),
        version: "1".into(),
        answer: answer.into(),
        cost: 0.1,
    }
}

fn refusal(rule: &'static ScalarRule, entries: &[Entry]) -> String {
    Exact::admit(&[rule], &[], entries).unwrap_err().to_string()
}

#[test]
fn a_rule_without_a_proof_cannot_enter() {
    let entries = lock::parse(lock::TEXT);
    assert!(refusal(&UNPROVED, &entries).contains("no proof in the lock file"));
    for law in FALSE_LAWS {
        assert!(refusal(law, &entries).contains("nobody has proved it"), "{}", law.head.name);
    }
}

/// The proof is of the text: another law under the name and number of a proved one has none.
#[test]
fn a_proof_is_of_its_text_alone() {
    let proved = scalar::all().find(|rule| rule.head.proof == Proof::Smt).unwrap();
    assert!(Exact::admit(&[proved], &[], &[entry(proved, "unsat")]).is_ok());
    static OTHER: std::sync::OnceLock<ScalarRule> = std::sync::OnceLock::new();
    let other = OTHER.get_or_init(|| ScalarRule { rhs: Term::Op(ScalarOp::Neg, &[X]), ..*proved });
    assert!(refusal(other, &[entry(proved, "unsat")]).contains("no proof in the lock file"));
}

#[test]
fn a_counterexample_takes_a_proof_away() {
    assert!(Exact::admit(&[&UNPROVED], &[], &[entry(&UNPROVED, "unsat")]).is_ok());
    let both = [entry(&UNPROVED, "unsat"), Entry { solver: "cvc5".into(), ..entry(&UNPROVED, "sat") }];
    assert!(refusal(&UNPROVED, &both).contains("cvc5 answered `sat`"));
    assert!(refusal(&UNPROVED, &[entry(&UNPROVED, "unknown")]).contains("unknown"));
}

#[test]
fn a_rule_of_values_without_trials_cannot_enter() {
    let rule = value::all().next().unwrap();
    assert!(Exact::admit(&[], &[rule], &lock::parse(lock::TEXT)).is_ok());
    assert!(Exact::admit(&[], &[rule], &[]).is_err());
    static ABSENT: std::sync::OnceLock<ValueRule> = std::sync::OnceLock::new();
    let absent = ABSENT.get_or_init(|| ValueRule { head: Head { proof: Proof::Absent, ..rule.head }, ..*rule });
    assert!(Exact::admit(&[], &[absent], &lock::parse(lock::TEXT)).is_err());
}

/// The table of this build is what may be used, all of it.
#[test]
fn all_rules_have_their_proofs() {
    let exact = Exact::rules();
    let scalars: Vec<&str> =
        scalar::all().filter(|r| exact.scalar(r.head.number).is_none()).map(|r| r.head.name).collect();
    let values: Vec<&str> =
        value::all().filter(|r| exact.value(r.head.number).is_none()).map(|r| r.head.name).collect();
    assert!(scalars.is_empty() && values.is_empty(), "without proofs: {scalars:?}, {values:?}");
}

#[test]
fn numbers_ascend_and_are_unique() {
    let numbers: Vec<u32> = scalar::all().map(|r| r.head.number).chain(value::all().map(|r| r.head.number)).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    // The first ones stand for congruence and equal bodies.
    assert!(numbers[0] > 1);
}

/// Both sides have one type, and what the right side mentions the left side or a fact binds.
#[test]
fn scalar_laws_are_well_formed() {
    fn variables(term: &Term, found: &mut Vec<u8>) {
        match *term {
            Term::Any(variable, _) | Term::Literal(variable, _) => found.push(variable),
            Term::Op(op, terms) => {
                assert_eq!(op.signature().unwrap().0.len(), terms.len());
                terms.iter().for_each(|term| variables(term, found));
            }
            _ => {}
        }
    }
    for rule in scalar::all() {
        let (mut left, mut right) = (vec![], vec![]);
        variables(&rule.lhs, &mut left);
        variables(&rule.rhs, &mut right);
        left.extend(rule.facts.iter().map(|fact| fact.second()));
        assert!(right.iter().all(|variable| left.contains(variable)), "{}", rule.head.name);
    }
}
