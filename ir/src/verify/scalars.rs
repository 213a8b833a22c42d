//! Scalar nodes and bodies.

use super::ranges;
use crate::entity::Entity;
use crate::fault::Fault;
use crate::graph::Graph;
use crate::scalar::{Body, Scalar, ScalarOp, ScalarRow, ScalarType, operands, param_of, scalar_type};

/// Largest number of nodes of all bodies together, each counted for each body that needs it.
const MOST_NODES: usize = 1 << 22;

/// Nodes refer to earlier nodes of the right types; bodies use declared parameters and give what a value can hold.
pub(super) fn check(graph: &Graph) -> Result<(), Fault> {
    for i in 0..graph.scalars.len() {
        let node = Scalar(i as u32);
        check_node(graph.scalars, node).map_err(|what| Fault::new(format!("scalar {node} {what}")))?;
    }
    let mut search = Search { body_of: vec![u32::MAX; graph.scalars.len()], left: MOST_NODES };
    for i in 0..graph.bodies.len() {
        check_body(graph, Body(i as u32), &mut search)?;
    }
    Ok(())
}

fn check_node(rows: &[ScalarRow], node: Scalar) -> Result<(), String> {
    let row = &rows[node.index()];
    let op = ScalarOp::from_number(row.op).ok_or("has an unknown operation")?;
    if op == ScalarOp::Param && param_of(row.words[0]).is_none() {
        return Err("is a parameter of an unknown type".into());
    }
    let Some((wanted, _)) = op.signature() else {
        return Ok(());
    };
    for (i, (&operand, &ty)) in operands(row).iter().zip(wanted).enumerate() {
        if operand >= node.0 {
            return Err(format!("does not come behind its operand {i}"));
        }
        if scalar_type(rows, Scalar(operand)) != Some(ty) {
            return Err(format!("takes a {} as operand {i}", ty.name()));
        }
    }
    check_constant_operand(rows, op, row)
}

/// Divisors are positive constants and shift counts constants below 32: every backend then agrees.
fn check_constant_operand(rows: &[ScalarRow], op: ScalarOp, row: &ScalarRow) -> Result<(), String> {
    use ScalarOp::*;
    let range = match op {
        DivI | RemI => 1..=i32::MAX,
        ShlI | ShrI | SarI => 0..=31,
        _ => return Ok(()),
    };
    let operand = rows[row.words[1] as usize];
    match operand.op == I32 as u32 && range.contains(&(operand.words[0] as i32)) {
        true => Ok(()),
        false => Err(format!("takes a constant in {range:?} as operand 1")),
    }
}

/// A search for the nodes of one body after the other.
struct Search {
    /// The body for which a node was found last.
    body_of: Vec<u32>,
    /// Nodes that may still be found.
    left: usize,
}

impl Search {
    /// Whether a node is found for this body for the first time.
    fn is_new(&mut self, node: u32, body: Body) -> bool {
        std::mem::replace(&mut self.body_of[node as usize], body.0) != body.0
    }
}

fn check_body(graph: &Graph, body: Body, search: &mut Search) -> Result<(), Fault> {
    let row = &graph.bodies[body.index()];
    let params = ranges::run(row.params, graph.body_params, || format!("body {body}"))?;
    ranges::id(row.result, graph.scalars.len(), || format!("body {body}"))?;
    let fault = |what: &str| Err(Fault::new(format!("body {body} {what}")));
    let holds = |ty: Option<ScalarType>| matches!(ty, Some(ty) if ty != ScalarType::Bool);
    if !params.iter().all(|&ty| holds(ScalarType::from_number(ty))) || !holds(scalar_type(graph.scalars, row.result)) {
        return fault("takes and gives f32, i32 and id only");
    }
    let mut stack = vec![row.result.0];
    while let Some(node) = stack.pop() {
        if !search.is_new(node, body) {
            continue;
        }
        if search.left == 0 {
            return fault("has too many nodes");
        }
        search.left -= 1;
        let node = &graph.scalars[node as usize];
        if node.op == ScalarOp::Param as u32 && !is_declared(node.words[0], params) {
            return fault("uses a parameter that it does not declare");
        }
        stack.extend(operands(node));
    }
    Ok(())
}

fn is_declared(word: u32, params: &[u32]) -> bool {
    param_of(word).is_some_and(|(index, ty)| params.get(index as usize) == Some(&(ty as u32)))
}
