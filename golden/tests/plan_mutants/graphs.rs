//! Changes of the value graph, of its certificate, and of where its leaves lie.

use ds4_golden::proofs::trials::Words;
use ds4_ir::certificate::Reason;
use ds4_ir::dim::Shape;
use ds4_ir::graph::NamedRow;
use ds4_ir::rules::Exact;
use ds4_ir::{Op, Type, Value};

use super::edit::{Mutant, pick};
use super::{Kind, harmless, kind};

pub const KINDS: &[Kind] = &[
    kind("operation", |m, _, w| {
        let v = value(m, w);
        m.graph.value_op[v] = pick(w, 21) as u32;
        Some(format!("v{v}"))
    }),
    kind("operand", |m, _, w| {
        let (at, v) = (pick(w, m.graph.args.len()), value(m, w));
        m.graph.args[at] = Value(v as u32);
        Some(format!("{at} to v{v}"))
    }),
    kind("operands exchanged", |m, _, w| {
        let v = value(m, w);
        let run = m.graph.value_args[v];
        (run.len > 1).then(|| m.graph.args.swap(run.start as usize, run.start as usize + 1))?;
        Some(format!("v{v}"))
    }),
    kind("attribute", |m, _, w| {
        let at = pick(w, m.graph.attrs.len());
        m.graph.attrs[at] ^= 1 << pick(w, 3);
        Some(at.to_string())
    }),
    kind("tree", tree),
    kind("type", |m, _, w| {
        let v = value(m, w);
        m.graph.value_type[v] = [Type::F32, Type::I32, Type::ID, Type::Q8][pick(w, 4)];
        Some(format!("v{v}"))
    }),
    kind("shape", |m, _, w| {
        let v = value(m, w);
        m.graph.value_shape[v] = Shape(pick(w, m.graph.shapes.len()) as u32);
        Some(format!("v{v}"))
    }),
    kind("scalar constant", |m, _, w| {
        let n = m.graph.scalars.len();
        m.graph.scalars[pick(w, n)].words[0] ^= 1 << pick(w, 24);
        Some(String::new())
    }),
    kind("scalar operation", |m, _, w| {
        let n = m.graph.scalars.len();
        m.graph.scalars[pick(w, n)].op = pick(w, 50) as u32;
        Some(String::new())
    }),
    kind("body", |m, _, w| {
        let n = m.graph.bodies.len();
        m.graph.bodies[pick(w, n)].result.0 = pick(w, m.graph.scalars.len()) as u32;
        Some(String::new())
    }),
    kind("dimension", |m, _, w| {
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut m.graph.dims);
        let at = pick(w, words.len());
        words[at] ^= 1 << pick(w, 4);
        Some(at.to_string())
    }),
    kind("table of the compiler", |m, _, w| {
        let n = m.graph.constant_words.len();
        m.graph.constant_words[pick(w, n)] ^= 1 << pick(w, 31);
        Some(String::new())
    }),
    kind("type of a weight", |m, _, w| {
        let n = m.graph.weights.len();
        m.graph.weights[pick(w, n)].ty = m.graph.weights[pick(w, n)].ty;
        Some(String::new())
    }),
    kind("shape of a state", |m, _, w| {
        let n = m.graph.states.len();
        m.graph.states[pick(w, n)].shape = m.graph.states[pick(w, n)].shape;
        Some(String::new())
    }),
    kind("output of another value", |m, _, w| {
        let v = value(m, w);
        let n = m.graph.outputs.len();
        m.graph.outputs[pick(w, n)].value = Value(v as u32);
        Some(format!("v{v}"))
    }),
    kind("output renamed", |m, _, w| {
        let n = m.graph.outputs.len();
        m.graph.outputs[pick(w, n)].name.0 = pick(w, m.graph.names.len()) as u32;
        Some(String::new())
    }),
    kind("output dropped", |m, _, _| m.graph.outputs.pop().map(|row| row.value.to_string())),
    kind("output added", |m, _, w| {
        let (name, value) = (m.graph.outputs[0].name, Value(value(m, w) as u32));
        m.graph.outputs.push(NamedRow { name, value });
        Some(value.to_string())
    }),
    kind("named value", |m, _, w| {
        let v = value(m, w);
        let n = m.graph.named.len();
        m.graph.named.get_mut(pick(w, n))?.value = Value(v as u32);
        Some(format!("v{v}"))
    }),
    kind("named value dropped", |m, _, _| m.graph.named.pop().map(|row| row.value.to_string())),
    kind("step of the certificate dropped", |m, _, w| {
        let n = m.certificate.value_lemmas.len();
        (n > 0).then(|| m.certificate.value_lemmas.remove(pick(w, n)))?;
        Some(String::new())
    }),
    kind("step by another rule", |m, _, w| {
        let (n, rules) = (m.certificate.value_lemmas.len(), Exact::rules().values());
        let number = rules[pick(w, rules.len())].head.number;
        m.certificate.value_lemmas.get_mut(pick(w, n))?.reason = Reason::rule(number);
        Some(number.to_string())
    }),
    kind("step about another term", |m, _, w| {
        let (n, terms) = (m.certificate.value_lemmas.len(), m.certificate.term_op.len());
        m.certificate.value_lemmas.get_mut(pick(w, n))?.b = pick(w, terms) as u32;
        Some(String::new())
    }),
    kind("source operand and plan operand", both),
    kind("source value", |m, _, w| {
        let terms = m.certificate.source[0] as usize;
        let v = pick(w, terms);
        m.certificate.term_op[v] = pick(w, 21) as u32;
        Some(format!("v{v}"))
    }),
    kind("output of the source", |m, _, w| {
        let (n, terms) = (m.certificate.source_outputs.len(), m.certificate.source[0] as usize);
        m.certificate.source_outputs[pick(w, n)].value = Value(pick(w, terms) as u32);
        Some(String::new())
    }),
    kind("term of a value", |m, _, w| {
        let (n, terms) = (m.certificate.chosen.len(), m.certificate.term_op.len());
        m.certificate.chosen[pick(w, n)] = Value(pick(w, terms) as u32);
        Some(String::new())
    }),
    kind("place of a weight", |m, _, w| {
        let n = m.plan.parts.len();
        m.plan.parts[pick(w, n)].offset ^= 32 << pick(w, 6);
        Some(String::new())
    }),
    kind("weights exchanged", |m, _, w| {
        let n = m.plan.weight_places.len();
        let (a, b) = (pick(w, n), pick(w, n));
        m.plan.weight_places.swap(a, b);
        Some(format!("{a} and {b}"))
    }),
    kind("scales of a weight", |m, _, w| {
        let n = m.plan.weight_places.len();
        let place = &mut m.plan.weight_places[pick(w, n)];
        [place.scale_rows, place.scale_cols] = [place.scale_cols + 1, place.scale_rows];
        Some(String::new())
    }),
    kind("hash of the model", |m, _, w| {
        m.plan.model_hash[0][pick(w, 32)] ^= 1;
        Some(String::new())
    }),
    kind("hash of a file", |m, _, w| {
        let n = m.plan.files.len();
        m.plan.files[pick(w, n)].header_hash[pick(w, 32)] ^= 1;
        Some(String::new())
    }),
    harmless("span of a value", |m, _, w| {
        let v = value(m, w);
        m.graph.value_span[v].0 = pick(w, m.graph.spans.len()) as u32;
        Some(format!("v{v}"))
    }),
];

fn value(m: &Mutant, words: &mut Words) -> usize {
    pick(words, m.graph.value_op.len())
}

/// The order of a sum.
fn tree(m: &mut Mutant, _: usize, words: &mut Words) -> Option<String> {
    let trees: Vec<usize> = (0..m.graph.value_op.len())
        .filter_map(|v| {
            let run = m.graph.value_attrs[v];
            match m.graph.view().op(Value(v as u32)) {
                Op::Product => Some(run.start as usize),
                Op::Reduce => Some(run.start as usize + 1),
                _ => None,
            }
        })
        .collect();
    let at = trees[pick(words, trees.len())];
    let other = m.graph.attrs[trees[pick(words, trees.len())]];
    m.graph.attrs[at] = other;
    Some(format!("{at} to {other}"))
}

/// The same operand changed on both ends of the proof: only the model tells.
fn both(m: &mut Mutant, _: usize, words: &mut Words) -> Option<String> {
    let v = value(m, words);
    let run = m.graph.value_args[v];
    (run.len > 1).then_some(())?;
    m.graph.args.swap(run.start as usize, run.start as usize + 1);
    let term = m.certificate.chosen[v].0 as usize;
    let run = m.certificate.term_args[term];
    m.certificate.args.swap(run.start as usize, run.start as usize + 1);
    Some(format!("v{v}"))
}
