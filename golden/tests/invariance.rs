//! One model has one set of bits: any chunking, any number of threads, any instruction set, and the evaluator's.

#![allow(clippy::unwrap_used)]

use ds4_compiler::lower::{Activations, lower};
use ds4_golden::oracle::read_npz;
use ds4_golden::run::{self, Source, TINY, expected};
use ds4_golden::{evaluated, weights::Rows};
use ds4_runtime::cpu::products::Isa;
use ds4_runtime::session::{OpenOptions, Session};

const CHUNKS: [usize; 8] = [1, 2, 5, 7, 8, 32, 128, 300];

/// 300 tokens: the oracle's, repeated as far as needed.
fn tokens(path: &str) -> Vec<u32> {
    let tokens = read_npz(&expected(path).join("expected.npz")).unwrap()["tokens"].ids();
    tokens.iter().copied().cycle().take(300).collect()
}

fn activations(source: &Source) -> Vec<Activations> {
    let q8 = source.model.weights.reference.iter().any(|w| w.format.takes_q8());
    if q8 { vec![Activations::F32, Activations::Q8] } else { vec![Activations::F32] }
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|x| x.to_bits()).collect()
}

/// The first row and column at which two sets of logits differ.
fn first_difference(a: &[u32], b: &[u32], width: usize) -> Option<(usize, usize)> {
    (0..a.len().max(b.len())).find(|&i| a.get(i) != b.get(i)).map(|i| (i / width, i % width))
}

#[test]
fn chunks_threads_instruction_sets_and_the_evaluator_agree() {
    for (name, path) in TINY.into_iter().filter(|(name, _)| *name != "tiny-a gguf") {
        let source = Source::open(path).unwrap();
        for activations in activations(&source) {
            let folder = tempfile::tempdir().unwrap();
            let options = source.options(|o| {
                o.activations = Some(activations);
                o.context = o.context.min(512);
                o.prefill = 300;
            });
            let plan = source.plan(folder.path(), &options).unwrap();
            let tokens = tokens(path);
            let tables = lower(&source.model, &options).unwrap();
            let rows = Rows { checkpoint: &source.checkpoint, model: &source.model };
            let meaning = evaluated::logits(&tables.view(), &rows, &tokens, 300, &[], |_, _| ()).unwrap();
            let meaning = bits(&meaning);
            let width = meaning.len() / tokens.len();
            for isa in Isa::available() {
                for threads in [1, 2] {
                    let open = OpenOptions { threads: Some(threads), isa: Some(isa), ..OpenOptions::default() };
                    let mut s = Session::open(&plan, &open).unwrap();
                    for chunk in CHUNKS {
                        let found = bits(&run::logits(&mut s, &tokens, chunk).unwrap());
                        let difference = first_difference(&found, &meaning, width);
                        assert_eq!(
                            difference, None,
                            "{name} {activations:?} {isa:?}, {threads} threads, chunk {chunk}"
                        );
                    }
                }
            }
            println!("{name} {activations:?}: equal");
        }
    }
}

/// The evaluator itself, fed in chunks, gives the bits of one chunk.
#[test]
fn the_evaluator_does_not_depend_on_chunks() {
    for (name, path) in TINY.into_iter().filter(|(name, _)| *name == "tiny-b" || *name == "tiny-k") {
        let source = Source::open(path).unwrap();
        let options = source.options(|o| o.context = o.context.min(512));
        let tables = lower(&source.model, &options).unwrap();
        let rows = Rows { checkpoint: &source.checkpoint, model: &source.model };
        let tokens = &tokens(path)[..140];
        let run = |chunk| bits(&evaluated::logits(&tables.view(), &rows, tokens, chunk, &[], |_, _| ()).unwrap());
        let whole = run(140);
        for chunk in [1, 7, 64] {
            assert!(run(chunk) == whole, "{name}: chunk {chunk}");
        }
    }
}

#[test]
fn the_trained_model_has_one_set_of_bits() {
    for path in ["models/kjv-9m/model.q8.gguf", "models/kjv-9m/model.q2.gguf"] {
        let source = Source::open(path).unwrap();
        for activations in activations(&source) {
            let folder = tempfile::tempdir().unwrap();
            let options = source.options(|o| o.activations = Some(activations));
            let plan = source.plan(folder.path(), &options).unwrap();
            let vocabulary = source.model.architecture.vocab_size;
            let tokens: Vec<u32> =
                (0..300u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).map(|i| i % vocabulary).collect();
            let mut first: Option<Vec<u32>> = None;
            for threads in [1, 2] {
                let open = OpenOptions { threads: Some(threads), ..OpenOptions::default() };
                let mut s = Session::open(&plan, &open).unwrap();
                for chunk in CHUNKS {
                    let found = bits(&run::logits(&mut s, &tokens, chunk).unwrap());
                    let reference = first.get_or_insert_with(|| found.clone());
                    assert!(*reference == found, "{path} {activations:?}: {threads} threads, chunk {chunk}");
                }
            }
        }
    }
}
