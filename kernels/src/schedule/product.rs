//! `product`: rows of `x` with rows of `w`, each element summed in its tree.

use ds4_ir::numerics::Arith;
use ds4_ir::{Tree, Type as ValueType, Value};

use crate::kernel::{Access, Builder, ExtentRow, Kernel, MaskedId, Memory, Number, Source, Type, Var, Word};

use super::axes::Axes;
use super::decode::{Row, Tensor};
use super::leaf::Activations;
use super::operand::Operand;
use super::scene::{Refusal, Scene};
use super::tree::{self, Part, Rule, Share};

const X: usize = 0;
const W: usize = 1;
const IDS: usize = 2;
const MASK: usize = 3;
const OUT: usize = 4;

/// The operands of a product, their strides along K, and the axes of the result.
struct Product<'s, 'a> {
    scene: &'s Scene<'a>,
    x: Operand,
    w: Operand,
    mask: Option<Operand>,
    out: Operand,
    axes: Axes,
    /// Length of K: elements, or blocks of 32 for q8 activations.
    leaves: ExtentRow,
    /// Strides along K.
    along: Along,
    share: Share,
}

/// Elements between neighbours along K.
struct Along {
    x: u32,
    w: u32,
    ids: u32,
    mask: u32,
}

/// Where the leaves of `x` are loaded from.
enum Left {
    Floats(Memory),
    Blocks { codes: Memory, scales: Memory },
}

/// Where the leaves of `w` are loaded from.
enum Right {
    Floats(Memory),
    Tensor(Tensor),
}

/// Both sides of the leaves.
struct Sides {
    left: Left,
    right: Right,
}

/// First element of a row of `x`, and first element or row of `w`.
#[derive(Clone, Copy)]
struct Places {
    x: Word,
    w: Word,
}

/// `product`
pub(super) fn product(scene: &Scene<'_>, v: Value) -> Result<Kernel, Refusal> {
    let product = Product::of(scene, v)?;
    let b = scene.builder(v, product.share.workgroup());
    product.emit(&b)?;
    Ok(b.finish())
}

impl<'s, 'a> Product<'s, 'a> {
    fn of(scene: &'s Scene<'a>, v: Value) -> Result<Self, Refusal> {
        let graph = scene.graph;
        let args = graph.args(v);
        let (mut x, mut w) = (Operand::of(scene, args[0])?, Operand::of(scene, args[1])?);
        let mut mask = args.get(2).map(|&m| Operand::of(scene, m)).transpose()?;
        let out = Operand::of(scene, v)?;
        if x.ids.is_some() {
            return Err(Refusal::Store(args[0]));
        }
        let batch = graph.dims_of(args[1]).len() - 2;
        let middle = graph.dims_of(args[0]).len() - 1 - batch;
        let mut id_strides = w.id_strides();
        let pop = |strides: &mut Vec<u32>| strides.pop().unwrap_or(0);
        let along = Along {
            x: pop(&mut x.strides),
            w: pop(&mut w.strides),
            ids: pop(&mut id_strides),
            mask: mask.as_mut().map_or(0, |m| pop(&mut m.strides)),
        };
        let rows = |strides: &[u32]| {
            let mut all = strides[..batch].to_vec();
            all.resize(batch + middle, 0);
            all.push(strides[batch]);
            all
        };
        let mut x_strides = x.strides.clone();
        x_strides.push(0);
        let mut mask_strides = mask.as_ref().map_or_else(Vec::new, |m| m.strides.clone());
        mask_strides.resize(batch + middle + 1, 0);
        let strides = [x_strides, rows(&w.strides), rows(&id_strides), mask_strides, out.strides.clone()];
        let axes = Axes::merged(&scene.extents(v), &strides);
        let mut leaves = scene.extents(args[1])[batch + 1];
        if graph.ty(args[0]) == ValueType::Q8 {
            leaves.per = 32;
        }
        let tree = Tree::from_number(graph.attrs(v)[0]).unwrap_or(Tree::Seq);
        let share = Share::of(tree, leaves.largest().unwrap_or(u32::MAX))?;
        Ok(Product { scene, x, w, mask, out, axes, leaves, along, share })
    }

    fn emit(&self, b: &Builder) -> Result<(), Refusal> {
        let left = self.left(b)?;
        let right = match self.w.ty.format() {
            Some(_) => Right::Tensor(Tensor::of(self.scene, b, &self.w)?),
            None => Right::Floats(self.w.memory(b, Access::Read, "w")?),
        };
        let sides = Sides { left, right };
        let out = self.out.memory(b, Access::Write, "out")?;
        let rule = Rule { none: b.number(-0.0), join: &|x: Number, y: Number| b.add(x, y) };
        let leaves = |part: Part<'_>, sum: Var<Number>| self.leaves(b, &sides, &part, sum);
        tree::reduce(b, &self.axes, self.share, &rule, leaves, |item, total| {
            b.store(out, b.add_int(self.out.first(b), self.axes.offset(b, OUT, &item.at)), total);
            Ok(())
        })
    }

    fn left(&self, b: &Builder) -> Result<Left, Refusal> {
        if self.x.ty != ValueType::Q8 {
            return Ok(Left::Floats(self.x.memory(b, Access::Read, "x")?));
        }
        let Source::Slot(v) = self.x.words()? else {
            return Err(Refusal::Unsupported(format!("{} is q8 and not stored", self.x.value)));
        };
        Ok(Left::Blocks {
            codes: b.argument(Source::Codes(v), Type::Word, Access::Read, "x_codes"),
            scales: b.argument(Source::Scales(v), Type::F32, Access::Read, "x_scales"),
        })
    }

    /// Adds one lane's leaves. Ids that do not change along K are looked up once, in front of the loop.
    fn leaves(&self, b: &Builder, sides: &Sides, part: &Part<'_>, sum: Var<Number>) -> Result<(), Refusal> {
        let at = &part.item.at;
        let x = b.name("x_at", b.add_int(self.x.first(b), self.axes.offset(b, X, at)));
        let w = b.name("w_row", b.add_int(self.w.first(b), self.axes.offset(b, W, at)));
        match &self.w.ids {
            Some(selection) if self.along.ids == 0 => {
                let mut done = Ok(());
                let row = |chosen: Word| {
                    let w = b.name("w_row", b.add_int(w, chosen));
                    done = self.all_leaves(b, sides, part, Places { x, w }, sum);
                };
                selection.select(b, self.axes.offset(b, IDS, at), row, || {})?;
                done
            }
            _ => self.all_leaves(b, sides, part, Places { x, w }, sum),
        }
    }

    fn all_leaves(
        &self,
        b: &Builder,
        sides: &Sides,
        part: &Part<'_>,
        places: Places,
        sum: Var<Number>,
    ) -> Result<(), Refusal> {
        let row = match &sides.right {
            Right::Tensor(tensor) => Some(tensor.row(b, places.w)),
            Right::Floats(_) => None,
        };
        let mut done = Ok(());
        b.repeat("k", part.first, self.leaves, part.step, |k| {
            done = self.guarded(b, part, k, || {
                self.selected(b, part, k, places.w, |w| {
                    let leaf = self.leaf(b, sides, row.as_ref(), Places { w, ..places }, k)?;
                    let leaf = b.name("term", leaf);
                    b.update(sum, |so_far| b.add(so_far, leaf));
                    Ok(())
                })
            });
        });
        done
    }

    /// Runs `then` where leaf `k` exists.
    fn guarded(
        &self,
        b: &Builder,
        part: &Part<'_>,
        k: Word,
        then: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(mask) = &self.mask else {
            return then();
        };
        let memory = mask.memory(b, Access::Read, "mask")?;
        let first = b.add_int(mask.first(b), self.axes.offset(b, MASK, &part.item.at));
        let id: MaskedId = b.load("leaf_id", memory, b.add_int(first, b.mul_int(k, b.word(self.along.mask))));
        let mut done = Ok(());
        b.present(id, |_| done = then(), || {});
        done
    }

    /// Runs `then` with the place in `w` that an id along K selects.
    fn selected(
        &self,
        b: &Builder,
        part: &Part<'_>,
        k: Word,
        w: Word,
        then: impl FnOnce(Word) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(selection) = self.w.ids.as_ref().filter(|_| self.along.ids != 0) else {
            return then(w);
        };
        let index = b.add_int(self.axes.offset(b, IDS, &part.item.at), b.mul_int(k, b.word(self.along.ids)));
        let mut done = Ok(());
        selection.select(b, index, |chosen| done = then(b.add_int(w, chosen)), || {})?;
        done
    }

    fn leaf(&self, b: &Builder, sides: &Sides, row: Option<&Row>, places: Places, k: Word) -> Result<Number, Refusal> {
        match (&sides.left, &sides.right, row) {
            (Left::Blocks { codes, scales }, Right::Tensor(tensor), Some(row)) => {
                let at = b.add_int(places.x, b.shl(k, b.word(5)));
                tensor.leaf(b, row, k, &Activations::load(b, *codes, *scales, at))
            }
            (Left::Floats(memory), right, row) => {
                let x = b.load("x", *memory, b.add_int(places.x, b.mul_int(k, b.word(self.along.x))));
                let w = match (right, row) {
                    (Right::Tensor(tensor), Some(row)) => tensor.element(b, row, k)?,
                    (Right::Floats(memory), _) => {
                        b.load("w", *memory, b.add_int(places.w, b.mul_int(k, b.word(self.along.w))))
                    }
                    _ => return Err(Refusal::Unsupported("a tensor without rows".into())),
                };
                Ok(b.mul(w, x))
            }
            _ => Err(Refusal::Unsupported("a product of q8 with other than a weight".into())),
        }
    }
}
