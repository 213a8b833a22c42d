//! Faults planted in texts: what a printer might do wrong is found by a reader or by the machine, at its line.
//!
//! A fault is planted in a kernel, and the faulty kernel is printed in the place of the right one; so each test serves every
//! language. What only one language can get wrong is planted in its text.

use ds4_ir::{Builder as GraphBuilder, ScalarOp, ScalarType};

use crate::Target;
use crate::emit::StepBlock;
use crate::kernel::{Kernel, Operator, Stmt};
use crate::machine::Check;

use super::bench::{Bench, Caught, Checkpoint, LANGUAGES, Language, Random, Small};
use super::faults::{gather_bench, only, shifted, sum_bench, unguarded, without};

/// What catches a faulty kernel in its text, and the line of the text where the machine trapped.
fn caught(language: &Language, bench: &Bench, index: usize, faulty: &Kernel) -> (Option<Caught>, String) {
    let kernels = bench.all_kernels();
    let text = (language.emit)(faulty, &StepBlock::of(&kernels)).unwrap();
    let found = bench.caught_in_text(language, &kernels, index, &text, 8);
    let line = found.as_ref().and_then(|(_, trap)| trap.as_ref()?.line).unwrap_or(0) as usize;
    let content = text.lines().nth(line.wrapping_sub(1)).unwrap_or("").to_string();
    (found.map(|(caught, _)| caught), content)
}

/// The text of the last kernel.
fn text_of(language: &Language, bench: &Bench) -> String {
    let (kernels, last) = only(bench);
    (language.emit)(&kernels[last], &StepBlock::of(&kernels)).unwrap()
}

/// Nothing catches a kernel without a fault.
#[test]
fn a_right_text_is_not_caught() {
    let bench = sum_bench(500);
    let (kernels, last) = only(&bench);
    for language in &LANGUAGES {
        assert_eq!(caught(language, &bench, last, &kernels[last]).0, None, "{}", language.target.name());
    }
}

/// The machine finds a race, at a line of the array that the barrier guarded.
#[test]
fn a_removed_barrier_is_a_race() {
    let bench = sum_bench(501);
    let (kernels, last) = only(&bench);
    let kernel = &kernels[last];
    let barriers: Vec<usize> =
        (0..kernel.stmts.len()).filter(|&at| matches!(kernel.stmts[at], Stmt::Barrier { .. })).collect();
    assert!(barriers.len() >= 2);
    for language in &LANGUAGES {
        for &at in &barriers {
            let (caught, line) = caught(language, &bench, last, &without(kernel, at));
            let found = [Check::Race, Check::Unwritten].map(|check| Some(Caught::Machine(check)));
            assert!(found.contains(&caught), "{} without statement {at}: {caught:?}", language.target.name());
            assert!(line.contains("partial"), "{line}");
        }
    }
}

/// The machine finds an index outside of its memory, memory that nothing wrote, a race, or the bits differ.
#[test]
fn an_index_off_by_one_is_caught() {
    let bench = sum_bench(502);
    let (kernels, last) = only(&bench);
    for language in &LANGUAGES {
        let mut out_of_bounds = 0;
        for at in 0..kernels[last].stmts.len() {
            let Some(faulty) = shifted(&kernels[last], at) else { continue };
            let (caught, _) = caught(language, &bench, last, &faulty);
            assert!(caught.is_some(), "{} statement {at}", language.target.name());
            out_of_bounds += usize::from(caught == Some(Caught::Machine(Check::OutOfBounds)));
        }
        assert!(out_of_bounds > 0);
    }
}

/// The kernel verifier refuses an unguarded id by its type; a text has words, and there the machine finds the index.
#[test]
fn an_unguarded_masked_id_is_out_of_bounds() {
    let bench = gather_bench();
    let (kernels, last) = only(&bench);
    let faulty = unguarded(&kernels[last]);
    assert_eq!(bench.caught(&kernels, last, &faulty, 8), Some(Caught::Verifier));
    for language in &LANGUAGES {
        let (caught, line) = caught(language, &bench, last, &faulty);
        assert_eq!(caught, Some(Caught::Machine(Check::OutOfBounds)), "{}", language.target.name());
        assert!(line.contains("rows"), "{line}");
    }
}

/// The bits differ.
#[test]
fn exchanged_operands_of_a_subtraction_change_bits() {
    let mut random = Random(503);
    let mut b = GraphBuilder::new();
    let x = b.floats(&[8, 20], &random.tame(160));
    let x = b.per_column(x);
    let (p, q) = (b.scalars.param(0, ScalarType::F32), b.scalars.param(1, ScalarType::F32));
    let exp = b.scalars.op(ScalarOp::Exp, &[p]).unwrap();
    let difference = b.scalars.op(ScalarOp::Sub, &[exp, q]).unwrap();
    let body = b.scalars.body(&[ScalarType::F32; 2], difference).unwrap();
    b.map(body, &[x, x]);
    let bench = Bench::new(b, Checkpoint::default(), &[]);
    let (kernels, last) = only(&bench);
    let subtractions = (0..kernels[last].exprs.len()).filter(|&x| kernels[last].exprs[x].op == Operator::Sub);
    for language in &LANGUAGES {
        for at in subtractions.clone() {
            let mut faulty = kernels[last].clone();
            faulty.exprs[at].words.swap(0, 1);
            assert_eq!(caught(language, &bench, last, &faulty).0, Some(Caught::Bits), "{}", language.target.name());
        }
    }
    assert!(subtractions.count() >= 4);
}

/// The bits differ: the same leaves in another tree.
#[test]
fn a_lane_exchange_in_a_tree_changes_bits() {
    let bench = sum_bench(504);
    let (kernels, last) = only(&bench);
    let mut faulty = kernels[last].clone();
    let distances = faulty.stmts.iter_mut().filter_map(|stmt| match stmt {
        Stmt::Shuffle { distance, .. } => Some(distance),
        _ => None,
    });
    for (distance, other) in distances.zip([2, 4, 1]) {
        *distance = other;
    }
    assert_ne!(faulty, kernels[last]);
    for language in &LANGUAGES {
        assert_eq!(caught(language, &bench, last, &faulty).0, Some(Caught::Bits), "{}", language.target.name());
    }
}

/// The reader of WGSL refuses a literal zero, which compilers fold, and says why.
#[test]
fn a_literal_zero_is_refused() {
    let bench = gather_bench();
    for language in LANGUAGES.iter().filter(|language| language.target == Target::Wgsl) {
        let text = text_of(language, &bench);
        for (loaded, literal) in [("bitcast<f32>(step[0])", "0.0f"), ("bitcast<f32>(step[0])", "-0.0f")] {
            let faulty = text.replace(loaded, literal);
            assert_ne!(faulty, text);
            let fault = (language.read)(&faulty).unwrap_err();
            assert!(fault.what.contains("a literal float zero"), "{fault}");
            let line = faulty.lines().nth(fault.line as usize - 1).unwrap();
            assert!(line.contains(literal), "{fault}: {line}");
        }
    }
}
