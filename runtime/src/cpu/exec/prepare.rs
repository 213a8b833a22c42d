//! From values to kernels: one function for each operation.

use ds4_ir::op::{Op, Type};
use ds4_ir::plan::layout::lies_within;
use ds4_ir::{Dim, ReduceKind, Tree, Value};

use super::access::{Access, Base, Place, Ptr};
use super::choose::{Choice, Choose};
use super::extents::Ext;
use super::kernel::Kernel;
use super::map::Map;
use super::matrix_product::MatrixProduct;
use super::moves::{Copy, Fill, Make, Reshape, Side, Write};
use super::nest::Nest;
use super::quantise::Quantise;
use super::reduce::{Reduce, Rule};
use super::row_product::{Form, RowProduct, Strides};
use super::rows::{Gather, Widen};
use super::scalar_program::{ConstantPool, Program};
use super::wire::{Refusal, Wiring};

type Prepared = Result<Vec<Box<dyn Kernel>>, Refusal>;

/// Elements side by side that make it worth to reduce across rows.
const ACROSS: usize = 8;

fn one(kernel: impl Kernel + 'static) -> Prepared {
    Ok(vec![Box::new(kernel)])
}

fn too_many_axes() -> Refusal {
    Refusal::Unsupported("the operands have too many axes that do not merge".into())
}

/// Makes kernels for the values of an entry point.
pub(crate) struct Preparation<'a, 'w> {
    pub(crate) wiring: &'w mut Wiring<'a>,
    pub(crate) pool: &'w mut ConstantPool,
}

impl Preparation<'_, '_> {
    /// The kernels that compute `v`.
    pub(crate) fn value(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        match graph.op(v) {
            Op::Weight | Op::Const | Op::Read => Ok(Vec::new()),
            Op::Tokens => self.make(v, Fill::Tokens),
            Op::Extent => {
                let dim = Dim(graph.attrs(v)[0]);
                let wiring = &mut *self.wiring;
                let ext = wiring.extents.dim(graph, dim, wiring.bounds);
                self.make(v, Fill::Extent(ext))
            }
            Op::Iota => self.make(v, Fill::Iota(graph.attrs(v)[0] as usize)),
            Op::Map => self.map(v),
            Op::Reduce => self.reduce(v),
            Op::Product => self.product(v),
            Op::Quantise => self.quantise(v),
            Op::Widen => self.widen(v),
            Op::Reshape => self.reshape(v),
            Op::Slice | Op::Permute | Op::Broadcast => self.copy_view(v),
            Op::Concat => self.concat(v),
            Op::Gather => self.gather(v),
            Op::TopK | Op::ArgMax | Op::SortIds => self.choose(v),
            Op::Write => self.write(v),
        }
    }

    fn merged(&mut self, axes: &[Ext], operands: &[&[usize]]) -> Result<Nest, Refusal> {
        Nest::merged(&mut self.wiring.extents, axes, operands).ok_or_else(too_many_axes)
    }

    fn unit(&mut self) -> Ext {
        self.wiring.extents.constant(1)
    }

    /// The access and place of words.
    fn words(&mut self, v: Value) -> Result<(Access, Place), Refusal> {
        let access = self.wiring.words(v)?;
        let place = access.words().ok_or_else(|| format!("{v} is not made of words"))?;
        Ok((access, place))
    }

    fn make(&mut self, v: Value, fill: Fill) -> Prepared {
        let (access, out) = self.words(v)?;
        let axes = self.wiring.axes(v);
        let axes = Nest::unmerged(&axes, &[&access.strides]).ok_or_else(too_many_axes)?;
        one(Make { fill, axes, out })
    }

    fn map(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let mut accesses = Vec::new();
        let mut places = Vec::new();
        for &operand in graph.args(v).iter().chain([&v]) {
            let (access, place) = self.words(operand)?;
            accesses.push(access);
            places.push(place);
        }
        let axes = self.wiring.axes(v);
        let strides: Vec<&[usize]> = accesses.iter().map(|a| &a.strides[..]).collect();
        let mut outer = self.merged(&axes, &strides)?;
        let unit = self.unit();
        let (inner, inner_strides) = outer.pop(unit);
        let body = &graph.bodies[graph.attrs(v)[0] as usize];
        let program =
            Program::of(graph.scalars, body, self.pool).ok_or_else(|| "a body has too many registers".to_string())?;
        let packed = Map::packs(&outer, self.wiring.extents.largest(inner));
        one(Map { program, outer, inner, inner_strides, places, packed })
    }

    fn reduce(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let (args, attrs) = (graph.args(v), graph.attrs(v));
        let axis = attrs[2] as usize;
        let (mut x, x_place) = self.words(args[0])?;
        let (out, out_place) = self.words(v)?;
        let mut mask_strides = vec![0; x.strides.len()];
        let mut mask = None;
        if let Some(&m) = args.get(1) {
            let (access, place) = self.words(m)?;
            mask_strides = access.strides;
            mask = Some(place);
        }
        let mut axes = self.wiring.axes(args[0]);
        let (ext, stride) = (axes.remove(axis), x.strides.remove(axis));
        let mask_stride = mask_strides.remove(axis);
        let mut outer = self.merged(&axes, &[&x.strides, &out.strides, &mask_strides])?;
        let unit = self.unit();
        let side_by_side = outer.extents.last().is_some_and(|&inner| {
            let last = |operand: usize| outer.strides[operand].last().copied();
            (last(0), last(1), last(2)) == (Some(1), Some(1), Some(0)) && self.wiring.extents.largest(inner) >= ACROSS
        });
        let across = side_by_side && stride != 1;
        let inner = if across { outer.pop(unit).0 } else { unit };
        let kind = ReduceKind::from_number(attrs[0]).unwrap_or(ReduceKind::Sum);
        let tree = Tree::from_number(attrs[1]).unwrap_or(Tree::Free);
        one(Reduce {
            rule: Rule::of(kind, tree, graph.ty(v)),
            outer,
            inner,
            across,
            axis: ext,
            stride,
            mask_stride,
            x: x_place,
            out: out_place,
            mask,
        })
    }

    fn product(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let args = graph.args(v);
        let x = self.wiring.access(args[0])?;
        if let Some(selection) = &x.ids {
            return Err(Refusal::Store(selection.value));
        }
        let w = self.wiring.access(args[1])?;
        let mask = match args.get(2) {
            Some(&m) => Some(self.words(m)?),
            None => None,
        };
        let (out, out_place) = self.words(v)?;
        let axes = Loops::of(self, v, &x, &w, mask.as_ref().map(|m| &m.0), &out)?;
        let tree = Tree::from_number(graph.attrs(v)[0]).unwrap_or(Tree::Seq);
        let plain_tree = matches!(tree, Tree::Seq | Tree::Lanes(32) | Tree::Lanes(128));
        let (x_place, scales) = match x.base {
            Base::Words(base) => (x.place(base), None),
            Base::Q8(codes, scales) => (x.place(codes), Some(scales)),
            Base::Weight(_) => return Err(format!("{} is a weight", args[0]).into()),
        };
        match w.base {
            Base::Weight(tensor) if mask.is_none() && plain_tree => {
                let mut items = axes.items;
                items.strides.truncate(4);
                one(MatrixProduct {
                    tensor,
                    tree,
                    items,
                    columns: axes.columns,
                    x_column: axes.column.x,
                    out_column: axes.column.out,
                    rows: axes.rows,
                    w_row: axes.row.w,
                    out_row: axes.row.out,
                    k: self.wiring.extents.largest(axes.k),
                    x_k: axes.along.x,
                    x: x_place,
                    scales,
                    w: w.place(Ptr(std::ptr::null_mut())),
                    ids: w.ids,
                    out: out_place,
                })
            }
            _ if scales.is_some() => Err("a product of q8 with other than a weight".to_string().into()),
            _ => {
                let (tensor, base) = match w.base {
                    Base::Weight(tensor) => (Some(tensor), Ptr(std::ptr::null_mut())),
                    Base::Words(base) | Base::Q8(base, _) => (None, base),
                };
                let form = axes.form(tensor.is_some(), mask.is_some(), plain_tree, tree);
                one(RowProduct {
                    form,
                    tree,
                    items: axes.items,
                    columns: axes.columns,
                    column: axes.column,
                    rows: axes.rows,
                    row: axes.row,
                    k: axes.k,
                    along: axes.along,
                    x: x_place,
                    w: w.place(base),
                    tensor,
                    ids: w.ids,
                    mask: mask.map(|m| m.1),
                    out: out_place,
                })
            }
        }
    }

    fn quantise(&mut self, v: Value) -> Prepared {
        let (mut x, place) = self.words(self.wiring.graph.args(v)[0])?;
        let mut out = self.wiring.access(v)?;
        let mut axes = self.wiring.axes(v);
        let (k, x_k) = (axes.pop(), x.strides.pop());
        out.strides.pop();
        let (Some(k), Some(x_k), Base::Q8(codes, scales)) = (k, x_k, out.base) else {
            return Err("a q8 value has no slot".to_string().into());
        };
        if out.offset != 0 || !out.shifts.is_empty() {
            return Err("a q8 value lies inside another".to_string().into());
        }
        let rows = self.merged(&axes, &[&x.strides, &out.strides])?;
        one(Quantise { rows, k: self.wiring.extents.largest(k), x_k, x: place, codes, scales })
    }

    fn widen(&mut self, v: Value) -> Prepared {
        let mut w = self.wiring.access(self.wiring.graph.args(v)[0])?;
        let Base::Weight(tensor) = w.base else {
            return Err("what is widened is no weight".to_string().into());
        };
        let mut out = self.wiring.written(v)?;
        let place = out.words().ok_or_else(|| format!("{v} is not made of words"))?;
        let mut axes = self.wiring.axes(v);
        let (Some(k), Some(out_k)) = (axes.pop(), out.strides.pop()) else {
            return Err("a weight without axes".to_string().into());
        };
        w.strides.pop();
        let mut ids = vec![0; axes.len()];
        if let Some(selection) = &w.ids {
            ids.copy_from_slice(&selection.strides[..axes.len()]);
        }
        let rows = self.merged(&axes, &[&out.strides, &w.strides, &ids])?;
        one(Widen {
            tensor,
            rows,
            k: self.wiring.extents.largest(k),
            out_k,
            w: w.place(Ptr(std::ptr::null_mut())),
            ids: w.ids,
            out: place,
            value: v,
        })
    }

    fn gather(&mut self, v: Value) -> Prepared {
        let args = self.wiring.graph.args(v);
        let (source, source_place) = self.words(args[0])?;
        let (ids, _) = self.words(args[1])?;
        let (out, out_place) = self.words(v)?;
        let steps = self.wiring.steps(v, &source, &ids);
        let selection = self.wiring.selection(v, &source, &ids)?;
        let from: Vec<usize> = steps.iter().map(|s| s.0).collect();
        let axes = self.wiring.axes(v);
        let mut outer = self.merged(&axes, &[&out.strides, &from, &selection.strides])?;
        let unit = self.unit();
        let row = outer.strides[2].last() == Some(&0);
        let (inner, strides) = match row {
            true => outer.pop(unit),
            false => (unit, vec![1, 1, 0]),
        };
        one(Gather {
            outer,
            inner,
            out_inner: strides[0],
            source_inner: strides[1],
            source: source_place,
            ids: selection,
            out: out_place,
        })
    }

    fn copy(&mut self, axes: &[Ext], from: (&[usize], Place), to: (&[usize], Place)) -> Prepared {
        let mut outer = self.merged(axes, &[from.0, to.0])?;
        let unit = self.unit();
        let (inner, strides) = outer.pop(unit);
        one(Copy { outer, inner, source_inner: strides[0], out_inner: strides[1], source: from.1, out: to.1 })
    }

    /// A slice, permutation or broadcast that is stored.
    fn copy_view(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let (operand, attrs) = (graph.args(v)[0], graph.attrs(v));
        let (x, mut from) = self.words(operand)?;
        let (out, to) = self.words(v)?;
        let axes = self.wiring.axes(v);
        let strides: Vec<usize> = match graph.op(v) {
            Op::Permute => attrs.iter().map(|&a| x.strides[a as usize]).collect(),
            Op::Broadcast => {
                let dims = graph.dims_of(operand).iter().zip(graph.dims_of(v));
                let kept = dims.map(|(a, b)| usize::from(a == b));
                kept.zip(&x.strides).map(|(k, s)| k * s).collect()
            }
            _ => {
                let wiring = &mut *self.wiring;
                let start = wiring.extents.dim(graph, Dim(attrs[1]), wiring.bounds);
                let stride = x.strides[attrs[0] as usize];
                from.shifts = [&from.shifts[..], &[(start, stride)]].concat().into();
                x.strides.clone()
            }
        };
        self.copy(&axes, (&strides, from), (&out.strides, to))
    }

    fn reshape(&mut self, v: Value) -> Prepared {
        let operand = self.wiring.graph.args(v)[0];
        let (x, source) = self.words(operand)?;
        let (out, place) = self.words(v)?;
        one(Reshape { from: self.side(operand, &x, source)?, to: self.side(v, &out, place)? })
    }

    fn side(&mut self, v: Value, access: &Access, place: Place) -> Result<Side, Refusal> {
        let axes = self.wiring.axes(v);
        let mut outer = self.merged(&axes, &[&access.strides])?;
        let unit = self.unit();
        let (inner, strides) = outer.pop(unit);
        Ok(Side { outer, inner, stride: strides[0], place })
    }

    /// Copies the operands that do not lie inside the result already.
    fn concat(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let axis = graph.attrs(v)[0] as usize;
        let (out, place) = self.words(v)?;
        let mut to = place;
        let mut kernels = Vec::new();
        for &operand in graph.args(v) {
            let axes = self.wiring.axes(operand);
            let within = lies_within(graph, &self.wiring.layouts, v, operand);
            if !within {
                let (x, from) = self.words(operand)?;
                let target = (&out.strides[..], to.clone());
                kernels.extend(self.copy(&axes, (&x.strides, from), target)?);
            }
            to.shifts = [&to.shifts[..], &[(axes[axis], out.strides[axis])]].concat().into();
        }
        Ok(kernels)
    }

    fn choose(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let args = graph.args(v);
        let (mut keys, keys_place) = self.words(args[0])?;
        let (mut out, out_place) = self.words(v)?;
        let mut candidates = None;
        let mut candidate_strides = vec![0; keys.strides.len()];
        if let Some(&c) = args.get(1) {
            let (access, place) = self.words(c)?;
            candidate_strides = access.strides;
            candidates = Some(place);
        }
        let mut axes = self.wiring.axes(args[0]);
        let last = (axes.pop(), keys.strides.pop(), candidate_strides.pop());
        let (Some(n), Some(key), Some(candidate)) = last else {
            return Err("a choice without axes".to_string().into());
        };
        let choice = match graph.op(v) {
            Op::ArgMax => Choice::ArgMax,
            Op::SortIds => Choice::Sort { masked: graph.ty(args[0]) == Type::ID },
            _ => {
                let k = self.wiring.axes(v).last().copied();
                Choice::TopK(k.map_or(0, |k| self.wiring.extents.largest(k)))
            }
        };
        let out_stride = match choice {
            Choice::ArgMax => 1,
            _ => out.strides.pop().unwrap_or(1),
        };
        let rows = self.merged(&axes, &[&keys.strides, &out.strides, &candidate_strides])?;
        one(Choose {
            choice,
            rows,
            n,
            key,
            out_stride,
            candidate,
            keys: keys_place,
            candidates,
            out: out_place,
            value: v,
        })
    }

    fn write(&mut self, v: Value) -> Prepared {
        let graph = self.wiring.graph;
        let &[state, ids, rows] = graph.args(v) else {
            return Err("a write takes three operands".to_string().into());
        };
        let (state_access, state_place) = self.words(state)?;
        let (ids_access, ids_place) = self.words(ids)?;
        let (rows_access, rows_place) = self.words(rows)?;
        let axes = self.wiring.axes(rows);
        let bound = self.wiring.axes(state)[0];
        let row = self.merged(&axes[1..], &[&rows_access.strides[1..], &state_access.strides[1..]])?;
        one(Write {
            count: axes[0],
            ids: super::access::Selection {
                place: ids_place,
                strides: Vec::new(),
                step: state_access.strides[0],
                bound,
                maskable: graph.ty(ids) == Type::ID,
                value: v,
            },
            id_stride: ids_access.strides[0],
            row,
            row_stride: rows_access.strides[0],
            rows: rows_place,
            state: state_place,
        })
    }
}

/// The loops of a product.
struct Loops {
    items: Nest,
    columns: Ext,
    column: Strides,
    rows: Ext,
    row: Strides,
    k: Ext,
    along: Strides,
}

impl Loops {
    fn of(
        p: &mut Preparation<'_, '_>,
        v: Value,
        x: &Access,
        w: &Access,
        mask: Option<&Access>,
        out: &Access,
    ) -> Result<Loops, Refusal> {
        let args = p.wiring.graph.args(v);
        let (x_axes, w_axes) = (p.wiring.axes(args[0]), p.wiring.axes(args[1]));
        let batch = w_axes.len() - 2;
        let last = x_axes.len() - 1;
        // The axes of x between the batch and K: the innermost merged one is that of the columns.
        let mut middle = p.merged(&x_axes[batch..last], &[&x.strides[batch..last], &out.strides[batch..last]])?;
        let unit = p.unit();
        let (columns, column) = middle.pop(unit);
        let ids = |axis: usize| w.ids.as_ref().map_or(0, |s| s.strides[axis]);
        let masked = |axis: usize| mask.map_or(0, |m| m.strides[axis]);
        let zeros = vec![0; middle.extents.len()];
        let join = |front: Vec<usize>, back: &[usize]| [&front[..], back].concat();
        let operands = [
            join(x.strides[..batch].to_vec(), &middle.strides[0]),
            join(out.strides[..batch].to_vec(), &middle.strides[1]),
            join(w.strides[..batch].to_vec(), &zeros),
            join((0..batch).map(ids).collect(), &zeros),
            join((0..batch).map(masked).collect(), &zeros),
        ];
        let axes = [&x_axes[..batch], &middle.extents[..]].concat();
        let items = p.merged(&axes, &operands.each_ref().map(|o| &o[..]))?;
        Ok(Loops {
            items,
            columns,
            column: Strides { x: column[0], out: column[1], ..Strides::default() },
            rows: w_axes[batch],
            row: Strides { w: w.strides[batch], ids: ids(batch), out: out.strides[last], ..Strides::default() },
            k: w_axes[batch + 1],
            along: Strides {
                x: x.strides[last],
                w: w.strides[batch + 1],
                ids: ids(batch + 1),
                mask: masked(batch),
                ..Strides::default()
            },
        })
    }

    fn form(&self, weight: bool, masked: bool, plain_tree: bool, tree: Tree) -> Form {
        let dots = self.along.w == 1 && self.along.ids == 0 && !masked && plain_tree;
        let weighted = self.row.w == 1 && self.row.ids == 0 && tree == Tree::Seq;
        match (weight, dots, weighted) {
            (false, true, _) => Form::Dots,
            (false, _, true) => Form::Weighted,
            _ => Form::Any,
        }
    }
}
