//! Sets of nodes that differ in nothing but ids have one signature: what was found for one serves the others.

use std::collections::HashMap;

use ds4_ir::graph::Value;
use ds4_ir::{Op, Type};

use super::cost::Scene;
use super::nodes::Kind;

/// Words that two sets share exactly if they compute the same from operands of the same kinds, and the same of it is wanted outside.
pub fn signature(scene: &Scene<'_>, set: &[Value]) -> Vec<u32> {
    let mut words = Vec::with_capacity(16 * set.len());
    let mut writer = Writer { scene, set, known: HashMap::new(), words: &mut words };
    for &v in set {
        writer.node(v);
    }
    words
}

struct Writer<'w, 'a> {
    scene: &'w Scene<'a>,
    set: &'w [Value],
    known: HashMap<Value, u32>,
    words: &'w mut Vec<u32>,
}

impl Writer<'_, '_> {
    fn node(&mut self, v: Value) {
        self.value(v);
        let outside = |reader: &Value| self.set.binary_search(reader).is_err();
        let readers = self.scene.nodes.readers(v);
        let stored = self.scene.nodes.wanted[v.0 as usize] || readers.is_empty() || readers.iter().any(outside);
        self.words.push(u32::from(stored));
    }

    /// A value: its number if it was written before, else what it is.
    fn value(&mut self, v: Value) {
        if let Some(&number) = self.known.get(&v) {
            self.words.extend([u32::MAX, number]);
            return;
        }
        self.known.insert(v, self.known.len() as u32);
        let graph = &self.scene.graph;
        let (op, Type(ty)) = (graph.op(v), graph.ty(v));
        let dims = graph.dims_of(v);
        self.words.extend([op as u32, ty, dims.len() as u32]);
        self.words.extend(dims.iter().map(|d| d.0));
        let inside = self.set.binary_search(&v).is_ok();
        let passed = matches!(self.scene.nodes.kinds[v.0 as usize], Kind::View | Kind::Gather | Kind::Free);
        if !inside && !passed {
            self.words.push(u32::MAX - 1);
            return;
        }
        // A weight, table or state is known by its type and shape, not by which one it is.
        if !matches!(op, Op::Weight | Op::Const | Op::Read) {
            self.words.extend(graph.attrs(v));
        }
        self.words.push(graph.args(v).len() as u32);
        for &operand in graph.args(v) {
            self.value(operand);
        }
    }
}
