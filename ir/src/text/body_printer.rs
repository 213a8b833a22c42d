//! Printing bodies as nested expressions, with names for nodes that are used more than once.
//!
//! The parser makes the nodes of an expression operands first, from left to right. Where the table has another order,
//! an `order` statement before the body makes the first nodes one by one; usually these are a few leaves.

use std::collections::{HashMap, HashSet};

use super::literal::float_text;
use crate::graph::Graph;
use crate::scalar::{Scalar, ScalarOp, ScalarRow, operands, param_of, reachable};

/// Nodes of an expression before an inner one gets a name.
const EXPRESSION_NODES: usize = 24;
/// Attempts at a short `order` statement.
const ATTEMPTS: usize = 16;

/// Prints the bodies of one graph in order.
pub(super) struct BodyPrinter<'a> {
    graph: &'a Graph<'a>,
    /// Rows of the scalar table that the text so far makes.
    made: u32,
}

/// A body as it will be written: the nodes with names, ascending, and the result.
struct Plan {
    named: Vec<u32>,
    result: u32,
}

impl<'a> BodyPrinter<'a> {
    pub fn new(graph: &'a Graph<'a>) -> Self {
        BodyPrinter { graph, made: 0 }
    }

    /// The statements of all bodies and of nodes behind the last body.
    pub fn statements(mut self) -> String {
        let mut text = String::new();
        for body in 0..self.graph.bodies.len() {
            let plan = self.plan(self.graph.bodies[body].result);
            let until = self.ordered_until(&plan);
            text.push_str(&self.order(until));
            self.made = until + self.creation(&plan, until).len() as u32;
            text.push_str(&self.body(body, &plan));
        }
        let rest = self.graph.scalars.len() as u32;
        text.push_str(&self.order(rest));
        text
    }

    fn row(&self, x: u32) -> &'a ScalarRow {
        &self.graph.scalars[x as usize]
    }

    fn is_leaf(&self, x: u32) -> bool {
        operands(self.row(x)).is_empty()
    }

    /// Chooses names for the nodes that are used more than once, and inside large expressions.
    fn plan(&self, result: Scalar) -> Plan {
        let nodes = reachable(self.graph.scalars, result);
        let mut uses: HashMap<u32, u32> = HashMap::new();
        for x in &nodes {
            for &operand in operands(self.row(x.0)) {
                *uses.entry(operand).or_default() += 1;
            }
        }
        let mut sizes: HashMap<u32, usize> = HashMap::new();
        let mut named = Vec::new();
        for &Scalar(x) in &nodes {
            let size = 1 + operands(self.row(x)).iter().map(|o| sizes[o]).sum::<usize>();
            let is_named =
                x != result.0 && !self.is_leaf(x) && (uses.get(&x).is_some_and(|&n| n > 1) || size > EXPRESSION_NODES);
            if is_named {
                named.push(x);
            }
            sizes.insert(x, if is_named { 1 } else { size });
        }
        Plan { named, result: result.0 }
    }

    /// The rows that the parser makes for the plan when rows below `made` exist, in its order.
    fn creation(&self, plan: &Plan, made: u32) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut seen = HashSet::new();
        // Roots come off the stack in order; an entry that is done stands behind its operands.
        let mut stack: Vec<_> = plan.named.iter().chain([&plan.result]).rev().map(|&x| (x, false)).collect();
        while let Some((x, is_done)) = stack.pop() {
            if is_done {
                rows.push(x);
            } else if x >= made && seen.insert(x) {
                stack.push((x, true));
                stack.extend(operands(self.row(x)).iter().rev().map(|&o| (o, false)));
            }
        }
        rows
    }

    /// The row up to which an `order` statement is needed so that the plan makes the rest in table order.
    fn ordered_until(&self, plan: &Plan) -> u32 {
        let mut until = self.made;
        for _ in 0..ATTEMPTS {
            let rows = self.creation(plan, until);
            match rows.iter().zip(until..).find(|(row, wanted)| *row != wanted) {
                None => return until,
                Some((_, wanted)) => until = wanted + 1,
            }
        }
        until.max(plan.result + 1)
    }

    /// An `order` statement for the rows from the last one made.
    fn order(&mut self, until: u32) -> String {
        let rows: Vec<_> = (self.made..until).map(|x| self.flat(x)).collect();
        self.made = self.made.max(until);
        if rows.is_empty() { String::new() } else { super::printer::wrapped("order", &rows) }
    }

    /// One node on rows that exist.
    fn flat(&self, x: u32) -> String {
        let row = self.row(x);
        if let Some(leaf) = leaf_text(row, true) {
            return leaf;
        }
        let operands: Vec<_> =
            operands(row).iter().map(|&o| self.constant(o).unwrap_or_else(|| format!("%{o}"))).collect();
        format!("{}({})", op_name(row), operands.join(", "))
    }

    fn constant(&self, x: u32) -> Option<String> {
        let is_param = self.row(x).op == ScalarOp::Param as u32;
        if is_param { None } else { leaf_text(self.row(x), false) }
    }

    fn body(&self, body: usize, plan: &Plan) -> String {
        let params = self.graph.bodies[body].params.of(self.graph.body_params);
        let types: Vec<_> =
            params.iter().map(|&t| crate::ScalarType::from_number(t).map_or("?", crate::ScalarType::name)).collect();
        let head = format!("body b{body}({})", types.join(", "));
        let names: HashMap<u32, usize> = plan.named.iter().enumerate().map(|(i, &x)| (x, i)).collect();
        let result = self.expression(plan.result, plan.result, &names);
        if plan.named.is_empty() {
            return format!("{head} = {result}\n");
        }
        let mut text = format!("{head} {{\n");
        for (i, &x) in plan.named.iter().enumerate() {
            text.push_str(&format!("  t{i} = {}\n", self.expression(x, x, &names)));
        }
        text + &format!("  {result}\n}}\n")
    }

    /// The expression of `x` inside the definition of `root`. Its depth is bounded by [`EXPRESSION_NODES`].
    fn expression(&self, x: u32, root: u32, names: &HashMap<u32, usize>) -> String {
        if let Some(i) = names.get(&x).filter(|_| x != root) {
            return format!("t{i}");
        }
        let row = self.row(x);
        if let Some(leaf) = leaf_text(row, false) {
            return leaf;
        }
        let operands: Vec<_> = operands(row).iter().map(|&o| self.expression(o, root, names)).collect();
        format!("{}({})", op_name(row), operands.join(", "))
    }
}

fn op_name(row: &ScalarRow) -> &'static str {
    ScalarOp::from_number(row.op).map_or("?", ScalarOp::name)
}

/// The text of a parameter or constant.
fn leaf_text(row: &ScalarRow, with_type: bool) -> Option<String> {
    let word = row.words[0];
    match ScalarOp::from_number(row.op)? {
        ScalarOp::Param => {
            let (index, ty) = param_of(word)?;
            Some(if with_type { format!("x{index}:{}", ty.name()) } else { format!("x{index}") })
        }
        ScalarOp::F32 => Some(float_text(f32::from_bits(word))),
        ScalarOp::I32 => Some((word as i32).to_string()),
        _ => None,
    }
}
