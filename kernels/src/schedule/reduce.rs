//! `reduce`: sums in their tree and maxima, along any axis.

use ds4_ir::numerics::{Arith, order};
use ds4_ir::{ReduceKind, Tree, Type as ValueType, Value};

use crate::kernel::{Access, Builder, ExtentRow, Handle, Kernel, MaskedId, Memory, Number, Var, Word};

use super::axes::Axes;
use super::operand::Operand;
use super::scene::{Refusal, Scene};
use super::tree::{self, Part, Rule, Share};

/// The operands and loops of a reduction.
struct Reduction {
    x: Operand,
    mask: Option<Operand>,
    out: Operand,
    axes: Axes,
    leaves: ExtentRow,
    x_step: u32,
    mask_step: u32,
    share: Share,
}

const X: usize = 0;
const OUT: usize = 1;
const MASK: usize = 2;

/// `reduce`
pub(super) fn reduce(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let graph = scene.graph;
    let attrs = graph.attrs(v);
    let kind = ReduceKind::from_number(attrs[0]).ok_or_else(|| unknown("reduction"))?;
    let reduction = Reduction::of(scene, v)?;
    let b = scene.builder(v, reduction.share.workgroup());
    match (graph.ty(v), kind) {
        (ValueType::F32, ReduceKind::Sum) => {
            reduction.emit(&b, &Rule { none: b.number(-0.0), join: &|x, y| b.add(x, y) })
        }
        (ValueType::F32, ReduceKind::Max) => {
            let join = |x: Number, y: Number| order::max(&b, x, y);
            reduction.emit(&b, &Rule { none: b.number(f32::NEG_INFINITY), join: &join })
        }
        (_, ReduceKind::Sum) => reduction.emit(&b, &Rule { none: b.word(0), join: &|x, y| b.add_int(x, y) }),
        (_, ReduceKind::Max) => {
            let join = |x: Word, y: Word| b.select_int(b.less_int(x, y), y, x);
            reduction.emit(&b, &Rule { none: b.word(i32::MIN as u32), join: &join })
        }
    }?;
    Ok(b.finish())
}

fn unknown(what: &str) -> Refusal {
    Refusal::Unsupported(format!("an unknown {what}"))
}

impl Reduction {
    fn of(scene: &Scene<'_>, v: Value) -> Result<Reduction, Refusal> {
        let graph = scene.graph;
        let (args, attrs) = (graph.args(v), graph.attrs(v));
        let tree = Tree::from_number(attrs[1]).ok_or_else(|| unknown("tree"))?;
        let axis = attrs[2] as usize;
        let mut x = Operand::of(scene, args[0])?;
        let mut mask = args.get(1).map(|&m| Operand::of(scene, m)).transpose()?;
        let out = Operand::of(scene, v)?;
        if x.ids.is_some() {
            return Err(Refusal::Store(args[0]));
        }
        let mut extents = scene.extents(args[0]);
        let (leaves, x_step) = (extents.remove(axis), x.strides.remove(axis));
        let mask_step = mask.as_mut().map_or(0, |m| m.strides.remove(axis));
        let mask_strides = mask.as_ref().map_or_else(|| vec![0; extents.len()], |m| m.strides.clone());
        let axes = Axes::merged(&extents, &[x.strides.clone(), out.strides.clone(), mask_strides]);
        let share = Share::of(tree, leaves.largest().unwrap_or(u32::MAX))?;
        Ok(Reduction { x, mask, out, axes, leaves, x_step, mask_step, share })
    }

    fn emit<T: Handle>(&self, b: &Builder, rule: &Rule<'_, T>) -> Result<(), Refusal> {
        let x = self.x.memory(b, Access::Read, "x")?;
        let mask = self.mask.as_ref().map(|m| m.memory(b, Access::Read, "mask")).transpose()?;
        let out = self.out.memory(b, Access::Write, "out")?;
        let leaves = |part: Part<'_>, sum: Var<T>| {
            let first = b.add_int(self.x.first(b), self.axes.offset(b, X, &part.item.at));
            let first = b.name("x_at", first);
            b.repeat("u", part.first, self.leaves, part.step, |u| {
                let leaf = || {
                    let at = b.add_int(first, b.mul_int(u, b.word(self.x_step)));
                    let value = b.load("value", x, at);
                    b.update(sum, |so_far| (rule.join)(so_far, value));
                };
                match mask {
                    Some(mask) => self.guarded(b, mask, &part, u, leaf),
                    None => leaf(),
                }
            });
            Ok(())
        };
        tree::reduce(b, &self.axes, self.share, rule, leaves, |item, total| {
            b.store(out, b.add_int(self.out.first(b), self.axes.offset(b, OUT, &item.at)), total);
            Ok(())
        })
    }

    fn guarded(&self, b: &Builder, memory: Memory, part: &Part<'_>, u: Word, leaf: impl FnOnce()) {
        let Some(mask) = &self.mask else { return };
        let first = b.add_int(mask.first(b), self.axes.offset(b, MASK, &part.item.at));
        let id: MaskedId = b.load("leaf_id", memory, b.add_int(first, b.mul_int(u, b.word(self.mask_step))));
        b.present(id, |_| leaf(), || {});
    }
}
