//! One lane an element, moved: views that are stored, `concat`, `gather`, `widen` and `write`.

use ds4_ir::numerics::{Arith, order};
use ds4_ir::plan::layout::lies_within;
use ds4_ir::{Dim, Op, Value};

use crate::kernel::{Access, Builder, ExtentRow, Kernel, MaskedId, Memory, Number, Type, Word};

use super::axes::Axes;
use super::body::Element;
use super::decode::Tensor;
use super::map::{LANES, for_each};
use super::operand::{self, Operand};
use super::scene::{Refusal, Scene};

/// Loads an element.
pub(super) fn load_element(b: &Builder, ty: Type, memory: Memory, at: Word) -> Element {
    match ty {
        Type::F32 => Element::F(b.load("key", memory, at)),
        Type::Id => Element::Id(b.load("id", memory, at)),
        _ => Element::I(b.load("id", memory, at)),
    }
}

/// Loads an element and stores it elsewhere; `canonical` makes one NaN of all.
fn copy_element(b: &Builder, ty: Type, from: (Memory, Word), to: (Memory, Word), canonical: bool) {
    match ty {
        Type::F32 => {
            let x: Number = b.load("x", from.0, from.1);
            b.store(to.0, to.1, if canonical { order::canonical(b, x) } else { x });
        }
        Type::Id => b.store::<MaskedId>(to.0, to.1, b.load("x", from.0, from.1)),
        _ => b.store::<Word>(to.0, to.1, b.load("x", from.0, from.1)),
    }
}

/// Stores what stands where there is no value.
fn store_nothing(b: &Builder, ty: Type, memory: Memory, at: Word) {
    match ty {
        Type::F32 => b.store(memory, at, b.number(0.0)),
        Type::Id => b.store(memory, at, b.masked()),
        _ => b.store(memory, at, b.word(0)),
    }
}

/// Copies elements between two places with strides along the same axes.
fn copy(scene: &Scene<'_>, v: Value, extents: &[ExtentRow], from: &Operand, to: &Operand) -> Result<Kernel, Refusal> {
    if from.ids.is_some() {
        return Err(Refusal::Store(from.value));
    }
    let b = scene.builder(v, LANES);
    let axes = Axes::merged(extents, &[from.strides.clone(), to.strides.clone()]);
    for_each(&b, &axes, |item| {
        let source = (from.memory(&b, Access::Read, "x")?, b.add_int(from.first(&b), axes.offset(&b, 0, &item.at)));
        let target = (to.memory(&b, Access::Write, "out")?, b.add_int(to.first(&b), axes.offset(&b, 1, &item.at)));
        copy_element(&b, to.element(), source, target, false);
        Ok(())
    })?;
    Ok(b.finish())
}

/// `slice`, `permute` or `broadcast` into memory of its own.
pub(super) fn view(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let (operand, attrs) = (graph.args(v)[0], graph.attrs(v));
    let (mut from, to) = (Operand::of(scene, operand)?, Operand::of(scene, v)?);
    match graph.op(v) {
        Op::Permute => from.strides = attrs.iter().map(|&a| from.strides[a as usize]).collect(),
        Op::Broadcast => {
            let same = graph.dims_of(operand).iter().zip(graph.dims_of(v)).map(|(a, b)| a == b);
            from.strides = from.strides.iter().zip(same).map(|(&s, same)| if same { s } else { 0 }).collect();
        }
        _ => {
            let shift = scene.extent(Dim(attrs[1]), from.strides[attrs[0] as usize]);
            shift.largest().ok_or_else(|| Refusal::Unsupported("a slice starts beyond 32 bits".into()))?;
            from.shifts.push(shift);
        }
    }
    copy(scene, v, &scene.extents(v), &from, &to)
}

/// `reshape` into memory of its own: elements in row-major order of their extents in this step.
pub(super) fn reshape(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let (from, to) = (Operand::of(scene, graph.args(v)[0])?, Operand::of(scene, v)?);
    if from.ids.is_some() {
        return Err(Refusal::Store(from.value));
    }
    let inner: Vec<ExtentRow> = scene.extents(from.value);
    if inner.iter().skip(1).any(|e| e.is_constant().is_none_or(|n| n == 0)) {
        return Err(Refusal::Unsupported("a reshape of an axis that the step chooses, inside another".into()));
    }
    let b = scene.builder(v, LANES);
    let extents = scene.extents(v);
    let axes = Axes { extents: extents.clone(), strides: vec![to.strides.clone()] };
    for_each(&b, &axes, |item| {
        let mut number = b.word(0);
        for (&at, &extent) in item.at.iter().zip(&extents) {
            number = b.add_int(b.mul_int(number, b.extent_value(extent)), at);
        }
        let mut rest = b.name("number", number);
        let mut place = from.first(&b);
        for (axis, (extent, &stride)) in inner.iter().zip(&from.strides).enumerate().rev() {
            let at = match extent.is_constant().filter(|_| axis > 0) {
                Some(n) => {
                    let at = b.rem_int(rest, n);
                    rest = b.div_int(rest, n);
                    at
                }
                None => rest,
            };
            place = b.add_int(place, b.mul_int(at, b.word(stride)));
        }
        let target = (to.memory(&b, Access::Write, "out")?, b.add_int(to.first(&b), axes.offset(&b, 0, &item.at)));
        copy_element(&b, to.element(), (from.memory(&b, Access::Read, "x")?, place), target, false);
        Ok(())
    })?;
    Ok(b.finish())
}

/// `concat`: a kernel for each operand that does not lie inside the result already.
pub(super) fn concat(scene: &Scene<'_>, v: Value) -> Result<Vec<Kernel>, Refusal> {
    let graph = scene.graph;
    let axis = graph.attrs(v)[0] as usize;
    let mut to = Operand::of(scene, v)?;
    let mut kernels = Vec::new();
    for &operand in graph.args(v) {
        if !lies_within(&graph, scene.layouts, v, operand) {
            let from = Operand::of(scene, operand)?;
            kernels.push(copy(scene, v, &scene.extents(operand), &from, &to)?);
        }
        to.shifts.push(scene.extent(graph.dims_of(operand)[axis], to.strides[axis]));
    }
    Ok(kernels)
}

/// `gather` into memory of its own; where the id is masked there is nothing.
pub(super) fn gather(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let b = scene.builder(v, LANES);
    let (source, selection) = operand::selection(scene, v)?;
    let to = Operand::of(scene, v)?;
    let strides = [source.strides.clone(), selection.ids.strides.clone(), to.strides.clone()];
    let axes = Axes::merged(&scene.extents(v), &strides);
    for_each(&b, &axes, |item| {
        let memory = source.memory(&b, Access::Read, "rows")?;
        let place = b.add_int(source.first(&b), axes.offset(&b, 0, &item.at));
        let out = to.memory(&b, Access::Write, "out")?;
        let target = b.name("out_at", b.add_int(to.first(&b), axes.offset(&b, 2, &item.at)));
        let chosen = |id: Word| {
            copy_element(&b, to.element(), (memory, b.add_int(place, id)), (out, target), false);
        };
        selection.select(&b, axes.offset(&b, 1, &item.at), chosen, || store_nothing(&b, to.element(), out, target))
    })?;
    Ok(b.finish())
}

/// `widen`: rows of a weight decoded, gathered by the kernel itself where they are.
pub(super) fn widen(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let w = Operand::of(scene, graph.args(v)[0])?;
    let to = Operand::of(scene, v)?;
    let b = scene.builder(v, LANES);
    let tensor = Tensor::of(scene, &b, &w)?;
    // The last axis counts elements of a row; it never merges with another, since rows have other strides.
    let mut along = vec![0; to.strides.len()];
    if let Some(last) = along.last_mut() {
        *last = 1;
    }
    let strides = [w.strides.clone(), w.id_strides(), along, to.strides.clone()];
    let axes = Axes::merged(&scene.extents(v), &strides);
    for_each(&b, &axes, |item| {
        let [row, id, k, place] = [0, 1, 2, 3].map(|i| axes.offset(&b, i, &item.at));
        let row = b.add_int(w.first(&b), row);
        let out = to.memory(&b, Access::Write, "out")?;
        let target = b.name("out_at", b.add_int(to.first(&b), place));
        let mut done = Ok(());
        let mut decode = |row: Word| {
            let row = tensor.row(&b, row);
            if tensor.format.is_integer() {
                b.store(out, target, tensor.integer(&b, &row, k));
                return;
            }
            match tensor.element(&b, &row, k) {
                Ok(x) => b.store(out, target, x),
                Err(refusal) => done = Err(refusal),
            }
        };
        match &w.ids {
            None => decode(row),
            Some(selection) => {
                let chosen = |id: Word| decode(b.add_int(row, id));
                selection.select(&b, id, chosen, || store_nothing(&b, to.element(), out, target))?;
            }
        }
        done
    })?;
    Ok(b.finish())
}

/// `write`: rows of a state replaced, NaN made canonical; masked ids are skipped.
pub(super) fn write(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let &[state, ids, rows] = graph.args(v) else {
        return Err(Refusal::Unsupported("a write takes three operands".into()));
    };
    let (state, mut ids, rows) = (Operand::of(scene, state)?, Operand::of(scene, ids)?, Operand::of(scene, rows)?);
    if let Some(gather) = [&ids, &rows].into_iter().find(|o| o.ids.is_some()) {
        return Err(Refusal::Store(gather.value));
    }
    let b = scene.builder(v, LANES);
    let mut inner = state.strides.clone();
    let step = std::mem::replace(&mut inner[0], 0);
    let extents = scene.extents(rows.value);
    ids.strides.resize(extents.len(), 0);
    let axes = Axes::merged(&extents, &[rows.strides.clone(), ids.strides.clone(), inner]);
    let selection = operand::Selection { ids, step };
    for_each(&b, &axes, |item| {
        let from = (rows.memory(&b, Access::Read, "rows")?, b.add_int(rows.first(&b), axes.offset(&b, 0, &item.at)));
        let memory = state.memory(&b, Access::Write, "state")?;
        let place = b.add_int(state.first(&b), axes.offset(&b, 2, &item.at));
        let chosen = |id: Word| copy_element(&b, state.element(), from, (memory, b.add_int(place, id)), true);
        selection.select(&b, axes.offset(&b, 1, &item.at), chosen, || {})
    })?;
    Ok(b.finish())
}
