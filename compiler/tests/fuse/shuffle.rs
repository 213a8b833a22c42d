//! The same graph under other names and in another order.

use ds4_ir::GraphTables;
use ds4_ir::graph::{Graph, Value};
use ds4_ir::op::Op;

/// A generator of numbers for tests (xorshift).
pub struct Random(u64);

impl Random {
    /// A generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// An order of the values in which operands come first and a state's write behind all readers of the version that it replaces.
pub fn order(graph: &Graph<'_>, random: &mut Random) -> Vec<Value> {
    let after: Vec<Vec<Value>> = graph.values().map(|v| before(graph, v)).collect();
    let mut placed = vec![false; graph.len()];
    let mut order = Vec::with_capacity(graph.len());
    while order.len() < graph.len() {
        let free = |v: &Value| !placed[v.0 as usize] && after[v.0 as usize].iter().all(|x| placed[x.0 as usize]);
        let free: Vec<Value> = graph.values().filter(free).collect();
        let v = free[random.below(free.len())];
        placed[v.0 as usize] = true;
        order.push(v);
    }
    order
}

/// What has to come before a value.
fn before(graph: &Graph<'_>, v: Value) -> Vec<Value> {
    let mut before = graph.args(v).to_vec();
    if graph.op(v) == Op::Write {
        let replaced = graph.args(v)[0];
        before.extend(graph.values().filter(|&x| x < v && shows(graph, x, replaced)));
    }
    before
}

/// Whether a value reads a version of a state, itself or through views of it and gathers from it.
fn shows(graph: &Graph<'_>, v: Value, version: Value) -> bool {
    let is_looked_through = |x: Value| graph.op(x).is_view() || graph.op(x) == Op::Gather;
    graph.args(v).iter().any(|&x| x == version || (is_looked_through(x) && shows(graph, x, version)))
}

/// The graph with its values in another order and all letters of its names exchanged.
pub fn shuffled(tables: &GraphTables, order: &[Value], letters: u8) -> GraphTables {
    let mut place = vec![Value(0); order.len()];
    for (i, &v) in order.iter().enumerate() {
        place[v.0 as usize] = Value(i as u32);
    }
    let mut out = tables.clone();
    fn permute<T: Copy>(column: &mut [T], from: &[T], order: &[Value]) {
        column.iter_mut().zip(order).for_each(|(to, v)| *to = from[v.0 as usize]);
    }
    permute(&mut out.value_op, &tables.value_op, order);
    permute(&mut out.value_type, &tables.value_type, order);
    permute(&mut out.value_shape, &tables.value_shape, order);
    permute(&mut out.value_args, &tables.value_args, order);
    permute(&mut out.value_attrs, &tables.value_attrs, order);
    permute(&mut out.value_span, &tables.value_span, order);
    out.args.iter_mut().for_each(|arg| *arg = place[arg.0 as usize]);
    out.named.iter_mut().chain(&mut out.outputs).for_each(|row| row.value = place[row.value.0 as usize]);
    for byte in out.text.iter_mut().filter(|byte| byte.is_ascii_lowercase()) {
        *byte = b'a' + (*byte - b'a' + letters) % 26;
    }
    out
}
