//! Tables of any content: the verifier never panics, nor does the evaluator behind it.

use super::*;
use crate::Step;
use crate::eval::tests::{Memory, Random};
use crate::eval::{Evaluator, States};
use crate::graph::Graph;

/// Columns as words, so that any of them can be changed and viewed again.
#[derive(Clone)]
struct Columns(Vec<(u32, usize, Vec<u32>)>);

impl Columns {
    fn of(graph: &Graph) -> Columns {
        let column = |section: &crate::tables::Section| {
            let mut words = vec![0u32; section.bytes.len().div_ceil(4)];
            bytemuck::cast_slice_mut(&mut words)[..section.bytes.len()].copy_from_slice(section.bytes);
            (section.number, section.bytes.len(), words)
        };
        Columns(graph.sections().iter().map(column).collect())
    }

    fn view(&self) -> Graph<'_> {
        let find = |number| {
            let (_, len, words) = self.0.iter().find(|column| column.0 == number)?;
            Some(&bytemuck::cast_slice(words)[..*len])
        };
        Graph::from_sections(find).unwrap()
    }

    /// Changes one word: to anything, or to a small number, which is more likely to be another row.
    fn flip(&mut self, random: &mut Random) {
        let total: usize = self.0.iter().map(|column| column.2.len()).sum();
        let mut at = random.next() as usize % total;
        for (_, _, words) in &mut self.0 {
            if at < words.len() {
                words[at] = match random.next() % 8 {
                    0 => random.next(),
                    1 => u32::MAX - random.next() % 4,
                    2 => 1 << (random.next() % 32),
                    3 => words[at] ^ 1 << (random.next() % 32),
                    _ => random.next() % 48,
                };
                return;
            }
            at -= words.len();
        }
    }
}

/// Verifies; evaluates small steps if nothing is wrong. Tells whether nothing is.
fn survives(graph: &Graph) -> bool {
    let Ok(facts) = verify(graph) else {
        return false;
    };
    assert_eq!(facts.guard.len(), graph.len());
    let bounds = Bounds { context: 64, columns: 4, outputs: 2 };
    let _ = check_bounds(graph, bounds);
    // The states are made before a step, whatever their size.
    let step = Step { position: 3, columns: 2, outputs: 1 };
    let large = graph
        .states
        .iter()
        .any(|row| graph.extents(row.shape, step).iter().fold(1usize, |n, &e| n.saturating_mul(e)) > 1 << 16);
    if !large {
        let memory = Memory::random(graph, 9);
        let mut states = States::new(graph);
        let evaluator = Evaluator::new(*graph, &memory).with_limit(1 << 14);
        let wanted: Vec<Value> = graph.values().collect();
        for position in [0, 3] {
            let step = Step { position, ..step };
            let _ = evaluator.step(&mut states, step, &[5, 11], &wanted);
        }
    }
    true
}

#[test]
fn the_sample_evaluates() {
    let tables = sample::sample();
    let graph = tables.view();
    let memory = Memory::random(&graph, 9);
    let mut states = States::new(&graph);
    let evaluator = Evaluator::new(graph, &memory);
    for (position, columns) in [(0, 4), (4, 1), (5, 2)] {
        let step = Step { position, columns, outputs: 1 };
        let tokens = vec![3; columns as usize];
        let got = evaluator.step(&mut states, step, &tokens, &[graph.output("logits").unwrap()]);
        assert_eq!(got.unwrap()[0].extents, [1, 8]);
    }
}

#[test]
fn any_word_may_be_anything() {
    let sample = sample::sample();
    let columns = Columns::of(&sample.view());
    assert!(survives(&columns.view()));
    let mut random = Random(0x5eed);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut columns = columns.clone();
        for _ in 0..1 + random.next() % 2 {
            columns.flip(&mut random);
        }
        accepted += u32::from(survives(&columns.view()));
    }
    assert!(accepted > 200, "only {accepted} of the changed tables reach the evaluator");
}

#[test]
fn any_column_may_be_cut_short() {
    let sample = sample::sample();
    let columns = Columns::of(&sample.view());
    for i in 0..columns.0.len() {
        let entry = sample.view().sections()[i].entry;
        for keep in 0..columns.0[i].1 / entry {
            let mut columns = columns.clone();
            columns.0[i].1 = keep * entry;
            survives(&columns.view());
        }
    }
}
