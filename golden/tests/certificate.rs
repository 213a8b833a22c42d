//! Value certificates of all models: accepted, small, quick to check, and what they claim is true of the bits.

#![allow(clippy::unwrap_used)]

use std::time::Instant;

use ds4_compiler::lower::{Options, lower};
use ds4_compiler::model::Model;
use ds4_compiler::rewrite::{Limits, Rewritten, rewrite};
use ds4_compiler::sample::{Spec, write_gguf};
use ds4_compiler::schedule::schedule;
use ds4_golden::proofs::trials::{Words, compare, same_outputs};
use ds4_golden::run::{Source, TINY};
use ds4_golden::{evaluated, weights::Rows};
use ds4_ir::certificate::{CertificateTables, LemmaRow, Reason, check};
use ds4_ir::graph::{Graph, GraphTables};
use ds4_ir::rules::Exact;
use ds4_ir::{Bounds, Type, Value};

const MODELS: [(&str, &str); 2] =
    [("kjv-9m-q8", "models/kjv-9m/model.q8.gguf"), ("kjv-9m-q2", "models/kjv-9m/model.q2.gguf")];

fn launches(graph: &Graph<'_>) -> usize {
    schedule(graph, Bounds { context: 512, columns: 1, outputs: 1 }).launches.len()
}

fn report(name: &str, source: &Graph<'_>, found: &Rewritten, seconds: f64) {
    let certificate = found.certificate.view();
    let begin = Instant::now();
    check(&found.graph.view(), &certificate, Exact::rules()).unwrap();
    println!(
        "{name}: {} values to {}, {} launches to {}, {} terms, {} and {} lemmas, {} bytes, rewritten in {seconds:.2} s, checked in {:.3} s",
        source.len(),
        found.graph.value_op.len(),
        launches(source),
        launches(&found.graph.view()),
        certificate.term_op.len(),
        certificate.scalar_lemmas.len(),
        certificate.value_lemmas.len(),
        certificate.bytes(),
        begin.elapsed().as_secs_f64(),
    );
    println!("  uses {:?}", found.outcome.checked.uses);
}

fn rewritten(name: &str, source: &GraphTables) -> Rewritten {
    let begin = Instant::now();
    let found = rewrite(&source.view(), &Limits::default()).unwrap();
    report(name, &source.view(), &found, begin.elapsed().as_secs_f64());
    assert_eq!(found.outcome.kept, None, "{name}");
    found
}

#[test]
fn models_are_rewritten_with_certificates_and_keep_their_bits() {
    for (name, path) in TINY.into_iter().chain(MODELS) {
        let source = Source::open(path).unwrap();
        let options = source.options(|o| o.context = o.context.min(512));
        let tables = lower(&source.model, &options).unwrap();
        let found = rewritten(name, &tables);
        if !path.starts_with("oracle") {
            continue;
        }
        let rows = Rows { checkpoint: &source.checkpoint, model: &source.model };
        let vocabulary = source.model.architecture.vocab_size;
        let tokens: Vec<u32> = (0..40u32).map(|i| (i * 37 + i * i * 11) % vocabulary).collect();
        let bits = |graph: &Graph<'_>, chunk| {
            let logits = evaluated::logits(graph, &rows, &tokens, chunk, &[], |_, _| ()).unwrap();
            logits.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        let wanted = bits(&tables.view(), 40);
        for chunk in [40, 7] {
            assert!(bits(&found.graph.view(), chunk) == wanted, "{name} in steps of {chunk}");
        }
    }
}

fn flash() -> GraphTables {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash.gguf");
    write_gguf(&path, &Spec::flash(43)).unwrap();
    let model = Model::read(&ds4_compiler::read::open(&path).unwrap()).unwrap();
    lower(&model, &Options::for_model(&model.architecture)).unwrap()
}

/// The largest model: under 5 MB and, in a release build, checked in under 2 s.
#[test]
fn the_largest_shape_has_a_small_certificate() {
    let tables = flash();
    let begin = Instant::now();
    let found = rewrite(&tables.view(), &Limits::default()).unwrap();
    report("flash", &tables.view(), &found, begin.elapsed().as_secs_f64());
    println!("  {:?}", found.outcome);
    assert!(found.certificate.view().bytes() < 5_000_000);
    let begin = Instant::now();
    check(&found.graph.view(), &found.certificate.view(), Exact::rules()).unwrap();
    assert!(begin.elapsed().as_secs_f64() < if cfg!(debug_assertions) { 20.0 } else { 2.0 });
    assert_eq!(rewrite(&tables.view(), &Limits::default()).unwrap(), found, "twice the same");
}

/// One change of a certificate or of the graph that it is about.
struct Mutant {
    what: String,
    graph: GraphTables,
    certificate: CertificateTables,
    /// The lemma that was changed, whose law may still hold.
    lemma: Option<LemmaRow>,
}

fn pick(words: &mut Words, len: usize) -> usize {
    words.word() as usize % len.max(1)
}

fn mutant(found: &Rewritten, kind: usize, words: &mut Words) -> Mutant {
    let (mut graph, mut certificate) = (found.graph.clone(), found.certificate.clone());
    let lemmas = certificate.value_lemmas.len();
    let at = pick(words, lemmas);
    let terms = certificate.term_op.len();
    let value = pick(words, graph.value_op.len());
    let mut lemma = None;
    let what = match kind {
        0 => {
            certificate.value_lemmas.remove(at);
            format!("value lemma {at} dropped")
        }
        1 => {
            let row = &mut certificate.value_lemmas[at];
            let rules = Exact::rules().values();
            row.reason = Reason::rule(rules[pick(words, rules.len())].head.number);
            lemma = Some(*row);
            format!("value lemma {at} by {:?}", row.reason)
        }
        2 => {
            let row = &mut certificate.value_lemmas[at];
            row.reason = row.reason.reversed();
            lemma = Some(*row);
            format!("value lemma {at} reversed")
        }
        3 => {
            certificate.value_lemmas[at].b = pick(words, terms) as u32;
            lemma = Some(certificate.value_lemmas[at]);
            format!("value lemma {at} about another term")
        }
        4 => {
            let attr = pick(words, graph.attrs.len());
            graph.attrs[attr] ^= 1;
            format!("attribute {attr} of the graph")
        }
        5 => {
            graph.value_op[value] = pick(words, 21) as u32;
            format!("operation of value {value}")
        }
        6 => {
            graph.value_type[value] = [Type::F32, Type::I32, Type::ID, Type::Q8][pick(words, 4)];
            format!("type of value {value}")
        }
        7 => {
            let arg = pick(words, graph.args.len());
            graph.args[arg] = Value(pick(words, graph.value_op.len()) as u32);
            format!("operand {arg} of the graph")
        }
        8 => {
            certificate.chosen[value] = Value(pick(words, terms) as u32);
            format!("term of value {value}")
        }
        9 => {
            let row = pick(words, certificate.scalar_lemmas.len());
            certificate.scalar_lemmas.remove(row);
            format!("scalar lemma {row} dropped")
        }
        10 => {
            let row = pick(words, certificate.scalar_lemmas.len());
            certificate.scalar_lemmas[row].reason = Reason::rule(101 + pick(words, 30) as u32);
            format!("scalar lemma {row} by another rule")
        }
        11 => {
            let source = certificate.source[0] as usize;
            let term = source + pick(words, terms - source);
            let run = certificate.term_attrs[term];
            if run.len > 0 {
                certificate.attrs[run.start as usize] = certificate.attrs[run.start as usize].wrapping_add(1);
            } else {
                certificate.term_shape[term].0 ^= 1;
            }
            format!("term {term}")
        }
        12 => {
            let arg = pick(words, certificate.args.len());
            certificate.args[arg] = Value(pick(words, terms) as u32);
            format!("operand {arg} of the terms")
        }
        13 => {
            let outputs = &mut graph.outputs;
            let row = pick(words, outputs.len());
            outputs[row].value = Value(value as u32);
            format!("output {row}")
        }
        _ => {
            certificate.source[0] = words.word();
            "number of source values".into()
        }
    };
    Mutant { what, graph, certificate, lemma }
}

/// What is accepted must be what it was: nothing changed, or the changed lemma is true and the rest proves the same.
fn is_harmless(found: &Rewritten, mutant: &Mutant) -> Result<&'static str, String> {
    if mutant.graph == found.graph && mutant.certificate == found.certificate {
        return Ok("nothing changed");
    }
    if mutant.graph != found.graph {
        return same_outputs(&found.graph, &mutant.graph, 30).map(|_| "the changed graph gives the same outputs");
    }
    match mutant.lemma {
        None => Ok("what is left proves the same graph"),
        Some(lemma) => {
            let certificate = &mutant.certificate;
            let terms = GraphTables {
                value_op: certificate.term_op.clone(),
                value_type: certificate.term_type.clone(),
                value_shape: certificate.term_shape.clone(),
                value_args: certificate.term_args.clone(),
                value_attrs: certificate.term_attrs.clone(),
                value_span: certificate.term_span.clone(),
                args: certificate.args.clone(),
                attrs: certificate.attrs.clone(),
                named: vec![],
                outputs: vec![],
                ..mutant.graph.clone()
            };
            let pairs = vec![(Value(lemma.a), Value(lemma.b))];
            compare(&ds4_compiler::rewrite::Instances { terms, pairs }, 30).map(|_| "the changed lemma is true")
        }
    }
}

const SMALL: &str = "\
in a: [2, 6, 64]
in c: [1, 64]
in e: [2, 3, 64]
r: f32[12, 64] = reshape a
s: f32[2, 6, 64] = reshape r
copy = map { x0 } s
half = map { div(x0, 2.0) } copy
first: f32[2, 3, 64] = slice axis=1 start=1 half
second: f32[2, 2, 64] = slice axis=1 start=1 first
b: f32[12, 64] = broadcast c
bs: f32[12, 8] = slice axis=1 start=3 b
bp = permute axes=[1, 0] bs
joined = concat axis=1 half, e
part: f32[2, 2, 64] = slice axis=1 start=7 joined
flat: f32[4, 64] = reshape part
q = quantise flat
weight m: w.q8_0[6, 64]
w = weight m
p = product lanes(32) q, w
ps: f32[4, 2] = slice axis=1 start=2 p
top = reduce max free axis=2 half
topmost = reduce max free axis=1 top
twice = map { add(mul(x0, 1.0), mul(x1, 2.0)) } second, second
output ps = ps
output bp = bp
output twice = twice
output topmost = topmost
";

#[test]
fn mutants_are_refused() {
    let tables = ds4_golden::proofs::trials::parse(SMALL).unwrap();
    let small = rewritten("small", &tables);
    let source = Source::open("oracle/tiny-b").unwrap();
    let model = lower(&source.model, &source.options(|o| o.context = o.context.min(512))).unwrap();
    let model = rewritten("tiny-b", &model);
    let (mut refused, mut accepted) = (0, vec![]);
    for (name, found, count) in [("small", &small, 900), ("tiny-b", &model, 150)] {
        let mut words = Words::new(7);
        for i in 0..count {
            let mutant = mutant(found, i % 15, &mut words);
            match check(&mutant.graph.view(), &mutant.certificate.view(), Exact::rules()) {
                Err(_) => refused += 1,
                Ok(_) => match is_harmless(found, &mutant) {
                    Ok(why) => accepted.push(format!("{name}: {}: {why}", mutant.what)),
                    Err(fault) => panic!("{name}: accepted though wrong: {}: {fault}", mutant.what),
                },
            }
        }
    }
    println!("{refused} mutants refused, {} accepted:", accepted.len());
    accepted.iter().for_each(|line| println!("  {line}"));
    assert!(refused > 600, "{refused}");
}

/// Any word of any column may be anything: the checker answers and never panics; what it accepts gives the same outputs.
#[test]
fn tables_of_any_content_are_safe() {
    let tables = ds4_golden::proofs::trials::parse(SMALL).unwrap();
    let found = rewrite(&tables.view(), &Limits::default()).unwrap();
    let mut words = Words::new(11);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let (mut graph, mut certificate) = (found.graph.clone(), found.certificate.clone());
        spoil(&mut words, &mut graph, &mut certificate);
        if check(&graph.view(), &certificate.view(), Exact::rules()).is_ok() {
            accepted += 1;
            let source = source_of(&graph, &certificate);
            same_outputs(&source, &graph, 3).unwrap();
        }
    }
    println!("{accepted} of 20000 spoiled tables are accepted; they prove that their graphs have equal outputs");
}

/// The source graph that a certificate speaks of. Bodies and the like are the plan's: where they are spoiled, both graphs
/// are others.
fn source_of(graph: &GraphTables, certificate: &CertificateTables) -> GraphTables {
    let len = certificate.source[0] as usize;
    GraphTables {
        value_op: certificate.term_op[..len].to_vec(),
        value_type: certificate.term_type[..len].to_vec(),
        value_shape: certificate.term_shape[..len].to_vec(),
        value_args: certificate.term_args[..len].to_vec(),
        value_attrs: certificate.term_attrs[..len].to_vec(),
        value_span: certificate.term_span[..len].to_vec(),
        args: certificate.args.clone(),
        attrs: certificate.attrs.clone(),
        named: certificate.source_named.clone(),
        outputs: certificate.source_outputs.clone(),
        ..graph.clone()
    }
}

/// Replaces one word of one column.
fn spoil(words: &mut Words, graph: &mut GraphTables, certificate: &mut CertificateTables) {
    macro_rules! columns {
        ($($tables:ident.$column:ident),*) => {
            [$(bytemuck::cast_slice_mut::<_, u32>(&mut $tables.$column)),*]
        };
    }
    let mut columns = columns![
        graph.dims,
        graph.shape_dims,
        graph.shapes,
        graph.scalars,
        graph.bodies,
        graph.body_params,
        graph.value_op,
        graph.value_type,
        graph.value_shape,
        graph.value_args,
        graph.value_attrs,
        graph.value_span,
        graph.args,
        graph.attrs,
        graph.weights,
        graph.outputs,
        certificate.source,
        certificate.term_op,
        certificate.term_type,
        certificate.term_shape,
        certificate.term_args,
        certificate.term_attrs,
        certificate.term_span,
        certificate.args,
        certificate.attrs,
        certificate.source_outputs,
        certificate.chosen,
        certificate.scalar_lemmas,
        certificate.value_lemmas
    ];
    let column = &mut columns[pick(words, 29)];
    let at = pick(words, column.len());
    column[at] = match pick(words, 4) {
        0 => column[at] ^ 1,
        1 => column[at].wrapping_add(1),
        2 => pick(words, 64) as u32,
        _ => words.word(),
    };
}
