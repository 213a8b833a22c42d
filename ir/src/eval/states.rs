//! The states of one sequence.

use std::sync::Arc;

use super::tensor::count;
use crate::dim::{Step, dim_value};
use crate::graph::{Graph, State, StateRow};

/// The words of every state of a graph between two steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct States {
    words: Vec<Arc<Vec<u32>>>,
}

impl States {
    /// The states at the beginning of a sequence: all elements +0.0.
    pub fn new(graph: &Graph) -> States {
        let zeros = |row: &StateRow| Arc::new(vec![0; elements(graph, row)]);
        States { words: graph.states.iter().map(zeros).collect() }
    }

    /// The bits of a state's elements, row-major.
    pub fn words(&self, state: State) -> &[u32] {
        &self.words[state.0 as usize]
    }

    /// Replaces the bits of a state's elements.
    pub fn set(&mut self, state: State, words: Arc<Vec<u32>>) {
        self.words[state.0 as usize] = words;
    }

    pub(super) fn share(&self, state: State) -> Arc<Vec<u32>> {
        self.words[state.0 as usize].clone()
    }

    /// Whether these are states of `graph`.
    pub(super) fn fits(&self, graph: &Graph) -> bool {
        self.words.len() == graph.states.len()
            && self.words.iter().zip(graph.states).all(|(words, row)| words.len() == elements(graph, row))
    }
}

fn elements(graph: &Graph, row: &StateRow) -> usize {
    // The dimensions of a state are constants: any step gives them.
    let step = Step { position: 0, columns: 1, outputs: 0 };
    let extents: Vec<usize> = graph.shape(row.shape).iter().map(|&d| dim_value(graph.dims, d, step) as usize).collect();
    count(&extents)
}
