//! The values that launches compute, and what each needs.

use std::collections::BTreeMap;

use ds4_ir::graph::{Graph, Value};
use ds4_ir::{Op, Run};

use crate::schedule::needed;

/// How a value comes to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nobody needs it.
    Unneeded,
    /// It lies in the checkpoint, the plan or a state.
    Leaf,
    /// Its operand, seen differently.
    View,
    /// A gather that its readers do themselves.
    Gather,
    /// Every reader makes it again: it follows from leaves, element by element, at the cost of a load.
    Free,
    /// A launch computes it.
    Node,
}

/// What a node needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Need {
    /// The node.
    pub value: Value,
    /// Whether it belongs into an earlier launch: states are written in place, and all workgroups see them.
    pub strict: bool,
}

/// The values of a graph by kind, with the nodes' needs and readers.
pub struct Nodes {
    /// Kind of each value.
    pub kinds: Vec<Kind>,
    /// Whether outputs or names want the value itself.
    pub wanted: Vec<bool>,
    needs: Vec<Run>,
    need_pool: Vec<Need>,
    readers: Vec<Run>,
    reader_pool: Vec<Value>,
}

impl Nodes {
    /// The nodes of a graph.
    pub fn of(graph: &Graph<'_>) -> Nodes {
        let needed = needed(graph);
        let mut wanted = vec![false; graph.len()];
        for row in graph.outputs.iter().chain(graph.named) {
            wanted[root(graph, row.value).0 as usize] = true;
        }
        let mut kinds: Vec<Kind> = Vec::with_capacity(graph.len());
        for v in graph.values() {
            let op = graph.op(v);
            let kind = match op {
                _ if !needed[v.0 as usize] => Kind::Unneeded,
                Op::Weight | Op::Const | Op::Read => Kind::Leaf,
                _ if op.is_view() => Kind::View,
                Op::Gather if !wanted[v.0 as usize] => Kind::Gather,
                Op::Widen | Op::Iota | Op::Extent | Op::Tokens if !wanted[v.0 as usize] => Kind::Free,
                _ => Kind::Node,
            };
            kinds.push(kind);
        }
        let mut nodes = Nodes {
            kinds,
            wanted,
            needs: vec![Run::default(); graph.len()],
            need_pool: Vec::new(),
            readers: Vec::new(),
            reader_pool: Vec::new(),
        };
        nodes.find_needs(graph);
        nodes.find_readers();
        nodes
    }

    /// Whether a launch computes the value.
    pub fn is_node(&self, v: Value) -> bool {
        self.kinds[v.0 as usize] == Kind::Node
    }

    /// What a node needs, ascending, each value once.
    pub fn needs(&self, v: Value) -> &[Need] {
        self.needs[v.0 as usize].of(&self.need_pool)
    }

    /// The nodes that need a node, ascending.
    pub fn readers(&self, v: Value) -> &[Value] {
        self.readers[v.0 as usize].of(&self.reader_pool)
    }

    fn find_needs(&mut self, graph: &Graph<'_>) {
        // Nodes that read a version of a state, by the value that is the version.
        let mut version_readers: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
        let all: Vec<Value> = graph.values().filter(|&v| self.is_node(v)).collect();
        for v in all {
            let mut found = Vec::new();
            for (i, &operand) in graph.args(v).iter().enumerate() {
                let replaced = graph.op(v) == Op::Write && i == 0;
                self.sources(graph, operand, &mut |source| match graph.op(source) {
                    Op::Read | Op::Write => {
                        if graph.op(source) == Op::Write {
                            found.push(Need { value: source, strict: true });
                        }
                        if !replaced {
                            version_readers.entry(source).or_default().push(v);
                        }
                    }
                    _ if self.is_node(source) => found.push(Need { value: source, strict: false }),
                    _ => {}
                });
            }
            if graph.op(v) == Op::Write {
                let before = version_readers.get(&graph.args(v)[0]).into_iter().flatten();
                found.extend(before.filter(|&&reader| reader != v).map(|&value| Need { value, strict: true }));
            }
            // A value that is needed strictly once is needed strictly.
            found.sort_by_key(|need| (need.value, !need.strict));
            found.dedup_by_key(|need| need.value);
            self.needs[v.0 as usize] = Run::push(&mut self.need_pool, &found);
        }
    }

    /// Calls `take` for the nodes and leaves that a reader of `v` reads.
    fn sources(&self, graph: &Graph<'_>, v: Value, take: &mut dyn FnMut(Value)) {
        match self.kinds[v.0 as usize] {
            Kind::View => self.sources(graph, graph.args(v)[0], take),
            Kind::Gather | Kind::Free => graph.args(v).iter().for_each(|&a| self.sources(graph, a, take)),
            _ => take(v),
        }
    }

    fn find_readers(&mut self) {
        let mut lists: Vec<Vec<Value>> = vec![Vec::new(); self.needs.len()];
        for (i, run) in self.needs.iter().enumerate() {
            for need in run.of(&self.need_pool) {
                lists[need.value.0 as usize].push(Value(i as u32));
            }
        }
        self.readers = lists.iter().map(|list| Run::push(&mut self.reader_pool, list)).collect();
    }

    /// Adds to a list of nodes what they make or look up themselves: free values and absorbed gathers.
    pub fn with_free(&self, graph: &Graph<'_>, nodes: &[Value]) -> Vec<Value> {
        let mut all = nodes.to_vec();
        let mut stack: Vec<Value> = nodes.iter().flat_map(|&v| graph.args(v)).copied().collect();
        while let Some(v) = stack.pop() {
            match self.kinds[v.0 as usize] {
                Kind::View => stack.push(graph.args(v)[0]),
                Kind::Gather | Kind::Free => {
                    all.push(v);
                    stack.extend(graph.args(v));
                }
                _ => {}
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

/// The value under a chain of views.
fn root(graph: &Graph<'_>, v: Value) -> Value {
    let mut at = v;
    while graph.op(at).is_view() {
        at = graph.args(at)[0];
    }
    at
}
