//! Weights, constants and states.

use super::ranges;
use crate::dim::{DimOp, Shape};
use crate::fault::Fault;
use crate::graph::{Graph, Name};
use crate::op::Type;

/// Types and shapes are such as the rows' descriptions say; names were checked before.
pub(super) fn check(graph: &Graph) -> Result<(), Fault> {
    for row in graph.weights {
        check_weight(graph, row.ty, row.shape).map_err(|what| fault(graph, "weight", row.name, what))?;
    }
    for row in graph.states {
        let dims = constant_dims(graph, row.shape).map_err(|what| fault(graph, "state", row.name, what))?;
        if row.ty != Type::F32 || dims.is_empty() {
            return Err(fault(graph, "state", row.name, "holds rows of f32".into()));
        }
    }
    for row in graph.constants {
        let of = |what| fault(graph, "constant", row.name, what);
        let words = ranges::run(row.words, graph.constant_words, || format!("constant `{}`", graph.name(row.name)))?;
        let dims = constant_dims(graph, row.shape).map_err(of)?;
        if row.ty != Type::F32 && row.ty != Type::I32 {
            return Err(of("holds f32 or i32".into()));
        }
        if count(&dims) != words.len() as u64 {
            return Err(of("has another number of elements than its shape".into()));
        }
    }
    Ok(())
}

fn fault(graph: &Graph, kind: &str, name: Name, what: String) -> Fault {
    Fault::new(format!("{kind} `{}` {what}", graph.name(name)))
}

fn check_weight(graph: &Graph, ty: Type, shape: Shape) -> Result<(), String> {
    let format = ty.format().ok_or("has no storage format")?;
    let dims = constant_dims(graph, shape)?;
    match dims.last().map(|&len| format.row_bytes(len as usize)) {
        Some(Some(_)) => Ok(()),
        Some(None) => Err(format!("has rows that are no whole number of blocks of {}", format.name())),
        None => Err("has no axis".into()),
    }
}

/// The extents of a shape of constants. States and constants, which are held as a whole, stay below 2^40 elements.
fn constant_dims(graph: &Graph, shape: Shape) -> Result<Vec<u32>, String> {
    if shape.0 as usize >= graph.shapes.len() {
        return Err(format!("refers to {shape}, which does not exist"));
    }
    let constant = |row| match DimOp::of(row) {
        Some(DimOp::Const(n)) => Some(n),
        _ => None,
    };
    let dims = graph.shape(shape).iter().map(|d| constant(graph.dims[d.0 as usize]));
    let dims: Vec<u32> = dims.collect::<Option<_>>().ok_or("has an extent that is no constant")?;
    match count(&dims) < super::bounds::MOST_ELEMENTS {
        true => Ok(dims),
        false => Err("has too many elements".into()),
    }
}

fn count(dims: &[u32]) -> u64 {
    dims.iter().fold(1, |n: u64, &d| n.saturating_mul(d.into()))
}
