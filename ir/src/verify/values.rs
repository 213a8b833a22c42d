//! Values: operands come first, types and shapes are those that inference gives.

use super::ranges;
use crate::dim::Dims;
use crate::entity::Entity;
use crate::fault::Fault;
use crate::graph::{Graph, Value};
use crate::infer::{Leaves, Operand, infer};
use crate::op::{Op, Type};
use crate::scalar::{Body, ScalarType, scalar_type};

/// Leaves of the graph for inference.
struct Known<'a>(&'a Graph<'a>);

impl Leaves for Known<'_> {
    fn leaf(&self, op: Op, id: u32) -> Option<Operand> {
        let id = id as usize;
        match op {
            Op::Weight => self.0.weights.get(id).map(|w| (w.ty, w.shape)),
            Op::Const => self.0.constants.get(id).map(|c| (c.ty, c.shape)),
            Op::Read => self.0.states.get(id).map(|s| (s.ty, s.shape)),
            _ => None,
        }
    }

    fn body(&self, body: Body) -> Option<(Vec<ScalarType>, ScalarType)> {
        let row = self.0.bodies.get(body.index())?;
        let params = row.params.of(self.0.body_params).iter();
        let params = params.map(|&ty| ScalarType::from_number(ty)).collect::<Option<_>>()?;
        Some((params, scalar_type(self.0.scalars, row.result)?))
    }
}

/// The columns of the values have one length, and every value is what its operation makes of its operands.
pub(super) fn check(graph: &Graph) -> Result<(), Fault> {
    let lengths = [
        graph.value_type.len(),
        graph.value_shape.len(),
        graph.value_args.len(),
        graph.value_attrs.len(),
        graph.value_span.len(),
    ];
    if lengths.iter().any(|&len| len != graph.len()) || graph.len() >= u32::MAX as usize {
        return Err(Fault::new("the columns of the values differ in length"));
    }
    let mut dims = Dims::from_columns(graph.dims, graph.shape_dims, graph.shapes);
    for v in graph.values() {
        check_ids(graph, v)?;
        check_value(graph, v, &mut dims).map_err(|message| Fault::at(graph, v, message))?;
    }
    Ok(())
}

fn check_ids(graph: &Graph, v: Value) -> Result<(), Fault> {
    let owner = || format!("value {v}");
    ranges::id(graph.value_span[v.index()], graph.spans.len(), owner)?;
    ranges::id(graph.value_shape[v.index()], graph.shapes.len(), owner)?;
    ranges::run(graph.value_args[v.index()], graph.args, owner)?;
    ranges::run(graph.value_attrs[v.index()], graph.attrs, owner)?;
    Ok(())
}

fn check_value(graph: &Graph, v: Value, dims: &mut Dims) -> Result<(), String> {
    let number = graph.value_op[v.index()];
    let op = Op::from_number(number).ok_or_else(|| format!("{number} is no operation"))?;
    let (args, attrs) = (graph.args(v), graph.attrs(v));
    if let Some(arg) = args.iter().find(|arg| **arg >= v) {
        return Err(format!("`{}` does not come behind its operand {arg}", op.name()));
    }
    check_dims(graph, op, attrs)?;
    // No operation takes more; the rest is not looked at.
    let operands: Vec<Operand> =
        args.iter().take(65).map(|arg| (graph.ty(*arg), graph.value_shape[arg.index()])).collect();
    let (ty, _) = infer(dims, &Known(graph), op, &operands, attrs, Some(graph.value_shape[v.index()]))?;
    check_type(op, ty, graph.ty(v))
}

/// Inference may make dimensions of its own: what attributes refer to must be in the tables.
fn check_dims(graph: &Graph, op: Op, attrs: &[u32]) -> Result<(), String> {
    let dim = match op {
        Op::Extent => attrs.first(),
        Op::Slice => attrs.get(1),
        _ => None,
    };
    match dim {
        Some(&dim) if dim as usize >= graph.dims.len() => Err(format!("dimension {dim} does not exist")),
        _ => Ok(()),
    }
}

fn check_type(op: Op, gives: Type, has: Type) -> Result<(), String> {
    match gives == has {
        true => Ok(()),
        false => Err(format!("`{}` gives {gives:?}, not {has:?}", op.name())),
    }
}
