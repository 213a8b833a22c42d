//! One lane an element: scalar bodies, and values that are made from nothing.

use ds4_ir::numerics::Arith;
use ds4_ir::{Body, Dim, Op, Type as ValueType, Value};

use crate::kernel::{Access, Builder, Kernel, Memory, Source, Type, Word};

use super::axes::{Axes, Item};
use super::body::{self, Param};
use super::operand::Operand;
use super::scene::{Refusal, Scene};

/// Lanes of a workgroup whose lanes work alone.
pub(super) const LANES: u32 = 64;

/// Runs `body` for each position of the axes, one a lane.
pub(super) fn for_each(
    b: &Builder,
    axes: &Axes,
    body: impl FnOnce(&Item) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let group = b.group(axes.total(LANES)?);
    let number = b.name("i", b.add_int(b.mul_int(group, b.word(LANES)), b.lane()));
    let item = axes.item(b, number)?;
    let mut done = Ok(());
    b.when(item.inside, || {
        let at = item.at.iter().map(|&i| b.name("at", i)).collect();
        done = body(&Item { at, inside: item.inside });
    });
    done
}

/// `map`
pub(super) fn map(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let b = scene.builder(v, LANES);
    let operands: Vec<Operand> = graph.args(v).iter().map(|&a| Operand::of(scene, a)).collect::<Result<_, _>>()?;
    if let Some(gather) = operands.iter().find_map(|o| o.ids.as_ref().map(|_| o.value)) {
        return Err(Refusal::Store(gather));
    }
    let out = Operand::of(scene, v)?;
    let strides: Vec<Vec<u32>> = operands.iter().chain([&out]).map(|o| o.strides.clone()).collect();
    let axes = Axes::merged(&scene.extents(v), &strides);
    for_each(&b, &axes, |item| {
        let mut params = Vec::with_capacity(operands.len());
        for (i, operand) in operands.iter().enumerate() {
            let memory = operand.memory(&b, Access::Read, &format!("p{i}"))?;
            let index = b.add_int(operand.first(&b), axes.offset(&b, i, &item.at));
            params.push(param(&b, operand.ty, memory, index));
        }
        let result = body::body(scene, &b, Body(graph.attrs(v)[0]), &params)?;
        let memory = out.memory(&b, Access::Write, "out")?;
        let index = b.add_int(out.first(&b), axes.offset(&b, operands.len(), &item.at));
        body::store(&b, memory, index, result)
    })?;
    Ok(b.finish())
}

fn param(b: &Builder, ty: ValueType, memory: Memory, index: Word) -> Param {
    match ty {
        ValueType::F32 => Param::F(b.load("x", memory, index)),
        ValueType::ID => {
            let present = b.var("present", b.truth(false));
            b.present(b.load("id", memory, index), |_| b.set(present, b.truth(true)), || {});
            Param::Present(b.value("is_present", present))
        }
        _ => Param::I(b.load("x", memory, index)),
    }
}

/// `tokens`, `extent` and `iota`.
pub(super) fn made(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let b = scene.builder(v, LANES);
    let out = Operand::of(scene, v)?;
    let rank = out.strides.len();
    let extents = scene.extents(v);
    // What is made depends on one axis only; its coordinate has stride 1 there, so that it never merges with another.
    let axis = if graph.op(v) == Op::Iota { graph.attrs(v)[0] as usize } else { 0 };
    let own = (0..rank).map(|a| u32::from(a == axis)).collect();
    let axes = Axes::merged(&extents, &[out.strides.clone(), own]);
    for_each(&b, &axes, |item| {
        let place = axes.offset(&b, 1, &item.at);
        let word = match graph.op(v) {
            Op::Tokens => b.load("token", b.argument(Source::Tokens, Type::Word, Access::Read, "tokens"), place),
            Op::Extent => b.extent_value(scene.extent(Dim(graph.attrs(v)[0]), 1)),
            _ => place,
        };
        let memory = out.memory(&b, Access::Write, "out")?;
        let index = b.add_int(out.first(&b), axes.offset(&b, 0, &item.at));
        b.store(memory, index, word);
        Ok(())
    })?;
    Ok(b.finish())
}
