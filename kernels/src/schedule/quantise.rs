//! `quantise`: one lane a block of 32.

use ds4_ir::numerics::{Arith, order, quantise as q8};
use ds4_ir::plan::Root;
use ds4_ir::{Type as ValueType, Value};

use crate::kernel::{Access, ExtentRow, Kernel, Number, Source, Type, Word};

use super::axes::Axes;
use super::map::{LANES, for_each};
use super::operand::Operand;
use super::scene::{Refusal, Scene};

/// Elements of a block.
const BLOCK: u32 = 32;

/// `quantise`
pub(super) fn quantise(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let (mut x, mut out) = (Operand::of(scene, scene.graph.args(v)[0])?, Operand::of(scene, v)?);
    let Root::Slot(owner) = out.root else {
        return Err(Refusal::Store(v));
    };
    if x.ids.is_some() || x.ty != ValueType::F32 {
        return Err(Refusal::Store(x.value));
    }
    // The last axis counts blocks.
    let mut extents = scene.extents(v);
    let step = x.strides.last().copied().unwrap_or(1);
    if let (Some(last), Some(xs), Some(outs)) = (extents.last_mut(), x.strides.last_mut(), out.strides.last_mut()) {
        *last = ExtentRow::constant(last.largest().unwrap_or(0) / BLOCK);
        (*xs, *outs) = (*xs * BLOCK, BLOCK);
    }
    let b = scene.builder(v, LANES);
    let axes = Axes::merged(&extents, &[x.strides.clone(), out.strides.clone()]);
    let memory = x.memory(&b, Access::Read, "x")?;
    let codes = b.argument(Source::Codes(owner), Type::Word, Access::Write, "codes");
    let scales = b.argument(Source::Scales(owner), Type::F32, Access::Write, "scales");
    for_each(&b, &axes, |item| {
        let first = b.name("x_at", b.add_int(x.first(&b), axes.offset(&b, 0, &item.at)));
        let target = b.name("out_at", b.add_int(out.first(&b), axes.offset(&b, 1, &item.at)));
        let element = |i: Word| -> Number { b.load("x", memory, b.add_int(first, b.mul_int(i, b.word(step)))) };
        let amax = b.var("amax", b.number(0.0));
        b.repeat("i", b.word(0), ExtentRow::constant(BLOCK), 1, |i| {
            let x = element(i);
            b.update(amax, |m| order::amax(&b, m, x));
        });
        let (d, id) = q8::q8_scales(&b, b.value("largest", amax));
        b.store(scales, b.shr(target, b.word(5)), d);
        let id = b.name("id", id);
        b.repeat("i", b.word(0), ExtentRow::constant(BLOCK), 4, |i| {
            let code = |j: u32| {
                let code = q8::q8_code(&b, element(b.add_int(i, b.word(j))), id);
                b.name("code", b.shl(b.and(code, b.word(0xff)), b.word(8 * j)))
            };
            let word = b.or(b.or(code(0), code(1)), b.or(code(2), code(3)));
            b.store(codes, b.shr(b.add_int(target, i), b.word(2)), word);
        });
        Ok(())
    })?;
    Ok(b.finish())
}
