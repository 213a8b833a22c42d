//! Types and shapes of operations: one function that the builder, the parser and the verifier share.

use crate::dim::{Dim, Dims, Shape};
use crate::op::{Op, ReduceKind, Type};
use crate::scalar::{Body, ScalarType};
use crate::tree::Tree;

/// Type and shape of an operand.
pub type Operand = (Type, Shape);

/// What inference needs to know of the tables beside the dimensions.
pub trait Leaves {
    /// Type and shape of a weight, constant or state by its id.
    fn leaf(&self, op: Op, id: u32) -> Option<Operand>;
    /// Parameter types and result type of a body.
    fn body(&self, body: Body) -> Option<(Vec<ScalarType>, ScalarType)>;
}

/// The type and shape of `op` on `args` with these attributes.
///
/// `shape` is the shape that the value is to have; operations whose attributes do not determine their shape (`iota`,
/// `reshape`, `slice`, `broadcast`, `top_k`) check it, the others compare. The error says what does not fit.
pub fn infer(
    dims: &mut Dims,
    leaves: &dyn Leaves,
    op: Op,
    args: &[Operand],
    attrs: &[u32],
    shape: Option<Shape>,
) -> Result<Operand, String> {
    check_counts(op, args.len(), attrs.len())?;
    let found = Infer { dims, leaves, args, attrs, shape }.operation(op)?;
    match shape {
        Some(wanted) if wanted != found.1 => {
            Err(format!("`{}` gives shape {}, not {}", op.name(), show(dims, found.1), show(dims, wanted)))
        }
        _ => Ok(found),
    }
}

fn show(dims: &Dims, shape: Shape) -> String {
    crate::text::shape_text(dims.columns().0, dims.of(shape))
}

/// Allowed numbers of operands and attributes.
fn check_counts(op: Op, args: usize, attrs: usize) -> Result<(), String> {
    use Op::*;
    let (operands, words) = match op {
        Weight | Const | Extent | Read | Iota => (0..=0, 1..=1),
        Tokens => (0..=0, 0..=0),
        Map => (1..=64, 1..=1),
        Reduce => (1..=2, 3..=3),
        Product => (2..=3, 1..=1),
        Quantise | Widen | Reshape | Broadcast | ArgMax | SortIds => (1..=1, 0..=0),
        Slice => (1..=1, 2..=2),
        Permute => (1..=1, 0..=8),
        Concat => (1..=64, 1..=1),
        Gather => (2..=2, 2..=2),
        TopK => (1..=2, 0..=0),
        Write => (3..=3, 0..=0),
    };
    if !operands.contains(&args) || !words.contains(&attrs) {
        return Err(format!(
            "`{}` takes {operands:?} operands and {words:?} attributes, found {args} and {attrs}",
            op.name()
        ));
    }
    Ok(())
}

struct Infer<'a> {
    dims: &'a mut Dims,
    leaves: &'a dyn Leaves,
    args: &'a [Operand],
    attrs: &'a [u32],
    shape: Option<Shape>,
}

impl Infer<'_> {
    fn operation(mut self, op: Op) -> Result<Operand, String> {
        match op {
            Op::Weight | Op::Const | Op::Read => {
                let id = self.attrs[0];
                self.leaves.leaf(op, id).ok_or_else(|| format!("`{}` {id} does not exist", op.name()))
            }
            Op::Tokens => {
                let columns = self.dims.dim(crate::dim::DimOp::Columns);
                Ok((Type::I32, self.dims.shape(&[columns])))
            }
            Op::Extent => {
                if self.attrs[0] as usize >= self.dims.columns().0.len() {
                    return Err(format!("dimension {} does not exist", self.attrs[0]));
                }
                Ok((Type::I32, self.dims.shape(&[])))
            }
            Op::Iota => {
                let shape = self.wanted()?;
                self.axis(self.attrs[0], shape)?;
                Ok((Type::I32, shape))
            }
            Op::Map => self.map(),
            Op::Reduce => self.reduce(),
            Op::Product => self.product(),
            Op::Quantise => self.quantise(),
            Op::Widen => self.widen(),
            Op::Reshape => self.reshape(),
            Op::Slice => self.slice(),
            Op::Permute => self.permute(),
            Op::Broadcast => self.broadcast(),
            Op::Concat => self.concat(),
            Op::Gather => self.gather(),
            Op::TopK => self.top_k(),
            Op::ArgMax => {
                self.of_type(0, Type::F32)?;
                let (_, rest) = self.split_last(0)?;
                Ok((Type::I32, self.dims.shape(&rest)))
            }
            Op::SortIds => {
                self.ids(0)?;
                self.split_last(0)?;
                Ok((Type::ID, self.args[0].1))
            }
            Op::Write => self.write(),
        }
    }

    fn wanted(&self) -> Result<Shape, String> {
        self.shape.ok_or_else(|| "the shape must be given".into())
    }

    fn dims_of(&self, arg: usize) -> Vec<Dim> {
        self.dims.of(self.args[arg].1).to_vec()
    }

    fn axis(&self, axis: u32, shape: Shape) -> Result<usize, String> {
        let rank = self.dims.of(shape).len();
        let axis = axis as usize;
        if axis < rank { Ok(axis) } else { Err(format!("axis {axis} of rank {rank}")) }
    }

    fn of_type(&self, arg: usize, ty: Type) -> Result<(), String> {
        let found = self.args[arg].0;
        if found == ty { Ok(()) } else { Err(format!("operand {arg} is {found:?}, wanted {ty:?}")) }
    }

    fn ids(&self, arg: usize) -> Result<(), String> {
        match self.args[arg].0 {
            Type::I32 | Type::ID => Ok(()),
            found => Err(format!("operand {arg} is {found:?}, wanted i32 or id")),
        }
    }

    fn split_last(&self, arg: usize) -> Result<(Dim, Vec<Dim>), String> {
        let mut dims = self.dims_of(arg);
        let last = dims.pop().ok_or_else(|| format!("operand {arg} has no axis"))?;
        Ok((last, dims))
    }

    /// Types whose last axis is stored in blocks: views must leave it alone.
    fn is_blocked(&self, arg: usize) -> bool {
        self.args[arg].0 == Type::Q8 || self.args[arg].0.format().is_some()
    }

    fn map(&mut self) -> Result<Operand, String> {
        let body = Body(self.attrs[0]);
        let (params, result) = self.leaves.body(body).ok_or_else(|| format!("{body} does not exist"))?;
        if params.len() != self.args.len() {
            return Err(format!("{body} takes {} operands, found {}", params.len(), self.args.len()));
        }
        for (i, (&(ty, shape), param)) in self.args.iter().zip(&params).enumerate() {
            if ty.scalar() != Some(*param) {
                return Err(format!("operand {i} is {ty:?}, the body takes {}", param.name()));
            }
            if shape != self.args[0].1 {
                return Err(format!(
                    "operand {i} has shape {}, operand 0 {}",
                    show(self.dims, shape),
                    show(self.dims, self.args[0].1)
                ));
            }
        }
        let ty = match result {
            ScalarType::F32 => Type::F32,
            ScalarType::I32 => Type::I32,
            ScalarType::Id => Type::ID,
            ScalarType::Bool => return Err("a body gives f32, i32 or id".into()),
        };
        Ok((ty, self.args[0].1))
    }

    fn reduce(&mut self) -> Result<Operand, String> {
        let kind = ReduceKind::from_number(self.attrs[0]).ok_or("unknown kind of reduction")?;
        let tree = Tree::from_number(self.attrs[1]).ok_or("unknown tree")?;
        let (ty, shape) = self.args[0];
        if ty != Type::F32 && ty != Type::I32 {
            return Err(format!("operand 0 is {ty:?}, wanted f32 or i32"));
        }
        let free = kind == ReduceKind::Max || ty == Type::I32;
        if free != (tree == Tree::Free) {
            return Err("float sums name a tree, everything else is order-free".into());
        }
        let axis = self.axis(self.attrs[2], shape)?;
        if self.args.len() == 2 {
            self.of_type(1, Type::ID)?;
            if self.args[1].1 != shape {
                return Err("the mask has the shape of operand 0".into());
            }
        }
        let mut dims = self.dims_of(0);
        dims.remove(axis);
        Ok((ty, self.dims.shape(&dims)))
    }

    fn product(&mut self) -> Result<Operand, String> {
        let tree = Tree::from_number(self.attrs[0]).ok_or("unknown tree")?;
        let (x, w) = (self.dims_of(0), self.dims_of(1));
        if w.len() < 2 || x.len() + 1 < w.len() {
            return Err("product takes w [B.., N, K] and x [B.., M.., K]".into());
        }
        let batch = w.len() - 2;
        if x[..batch] != w[..batch] || x.last() != w.last() {
            return Err(format!(
                "batch axes or K of x {} and w {} differ",
                show(self.dims, self.args[0].1),
                show(self.dims, self.args[1].1)
            ));
        }
        self.product_types(tree, *w.last().expect("rank was checked"))?;
        if self.args.len() == 3 {
            self.of_type(2, Type::ID)?;
            let mask = self.dims_of(2);
            if mask[..] != [&w[..batch], &w[batch + 1..]].concat() {
                return Err("the mask has shape [B.., K]".into());
            }
        }
        let mut dims = x;
        dims.pop();
        dims.push(w[batch]);
        Ok((Type::F32, self.dims.shape(&dims)))
    }

    fn product_types(&self, tree: Tree, k: Dim) -> Result<(), String> {
        let format = self.args[1].0.format();
        match (self.args[0].0, format) {
            (Type::F32, Some(f)) if !f.is_integer() => {}
            (Type::F32, None) if self.args[1].0 == Type::F32 => {}
            (Type::Q8, Some(f)) if f.takes_q8() => {
                if tree != Tree::BLOCKS || self.args.len() == 3 {
                    return Err("a q8 product sums its blocks in lanes(32), unmasked".into());
                }
                if self.dims.constant(k).is_none_or(|k| k % 32 != 0) {
                    return Err("a q8 product's K is a multiple of 32".into());
                }
            }
            (x, _) => return Err(format!("no product of {x:?} with {:?}", self.args[1].0)),
        }
        if tree == Tree::Free {
            return Err("a product names its tree".into());
        }
        Ok(())
    }

    fn quantise(&mut self) -> Result<Operand, String> {
        self.of_type(0, Type::F32)?;
        let (last, _) = self.split_last(0)?;
        match self.dims.constant(last) {
            Some(k) if k % 32 == 0 && k > 0 => Ok((Type::Q8, self.args[0].1)),
            _ => Err("q8 blocks hold 32 elements: the last axis is a constant multiple of 32".into()),
        }
    }

    fn widen(&mut self) -> Result<Operand, String> {
        let (ty, shape) = self.args[0];
        match ty.format() {
            Some(f) => Ok((if f.is_integer() { Type::I32 } else { Type::F32 }, shape)),
            None => Err(format!("operand 0 is {ty:?}, wanted a weight type")),
        }
    }

    fn reshape(&mut self) -> Result<Operand, String> {
        let wanted = self.wanted()?;
        let (from, to) = (self.dims_of(0), self.dims.of(wanted).to_vec());
        if self.dims.count(&from) != self.dims.count(&to) {
            return Err(format!("{} does not reshape to {}", show(self.dims, self.args[0].1), show(self.dims, wanted)));
        }
        if self.is_blocked(0) && from.last() != to.last() {
            return Err("the last axis of a blocked type is never cut".into());
        }
        Ok((self.args[0].0, wanted))
    }

    fn slice(&mut self) -> Result<Operand, String> {
        let wanted = self.wanted()?;
        let axis = self.axis(self.attrs[0], self.args[0].1)?;
        if self.attrs[1] as usize >= self.dims.columns().0.len() {
            return Err(format!("dimension {} does not exist", self.attrs[1]));
        }
        let start = Dim(self.attrs[1]);
        let (mut from, to) = (self.dims_of(0), self.dims.of(wanted).to_vec());
        if self.is_blocked(0) && axis + 1 == from.len() {
            return Err("the last axis of a blocked type is never cut".into());
        }
        if to.len() != from.len() {
            return Err("a slice keeps the rank".into());
        }
        self.check_range(from[axis], start, to[axis])?;
        from[axis] = to[axis];
        Ok((self.args[0].0, self.dims.shape(&from)))
    }

    /// `start + extent <= whole` must be evident: constants, or the last rows `whole - extent ..`, or a prefix whose
    /// extent the verifier bounds at each entry point.
    fn check_range(&mut self, whole: Dim, start: Dim, extent: Dim) -> Result<(), String> {
        let constants = (self.dims.constant(whole), self.dims.constant(start), self.dims.constant(extent));
        if let (Some(whole), Some(start), Some(extent)) = constants {
            return match start.checked_add(extent) {
                Some(end) if end <= whole => Ok(()),
                _ => Err(format!("{start} .. {start} + {extent} leaves the axis of {whole}")),
            };
        }
        let is_tail = self.dims.op(start) == crate::dim::DimOp::Sub(whole, extent);
        if is_tail || constants.1 == Some(0) {
            return Ok(());
        }
        Err("a symbolic slice is a prefix or a suffix of its axis".into())
    }

    fn permute(&mut self) -> Result<Operand, String> {
        let from = self.dims_of(0);
        let mut sorted = self.attrs.to_vec();
        sorted.sort();
        if sorted.len() != from.len() || sorted.iter().enumerate().any(|(i, &a)| i as u32 != a) {
            return Err(format!("{:?} is no permutation of {} axes", self.attrs, from.len()));
        }
        if self.is_blocked(0) && self.attrs.last() != Some(&(from.len() as u32 - 1)) {
            return Err("the last axis of a blocked type is never moved".into());
        }
        let dims: Vec<_> = self.attrs.iter().map(|&a| from[a as usize]).collect();
        Ok((self.args[0].0, self.dims.shape(&dims)))
    }

    fn broadcast(&mut self) -> Result<Operand, String> {
        let wanted = self.wanted()?;
        let (from, to) = (self.dims_of(0), self.dims.of(wanted).to_vec());
        let fits =
            from.len() == to.len() && from.iter().zip(&to).all(|(&f, &t)| f == t || self.dims.constant(f) == Some(1));
        if !fits {
            return Err(format!(
                "{} does not broadcast to {}",
                show(self.dims, self.args[0].1),
                show(self.dims, wanted)
            ));
        }
        if self.is_blocked(0) && from.last() != to.last() {
            return Err("the last axis of a blocked type is never repeated".into());
        }
        Ok((self.args[0].0, wanted))
    }

    fn concat(&mut self) -> Result<Operand, String> {
        let (ty, shape) = self.args[0];
        let axis = self.axis(self.attrs[0], shape)?;
        let mut dims = self.dims_of(0);
        if self.is_blocked(0) {
            return Err("blocked types are not concatenated".into());
        }
        for i in 1..self.args.len() {
            let other = self.dims_of(i);
            let fits = self.args[i].0 == ty
                && other.len() == dims.len()
                && (0..dims.len()).all(|a| a == axis || other[a] == dims[a]);
            if !fits {
                return Err(format!("operand {i} differs from operand 0 in type or in an axis other than {axis}"));
            }
            dims[axis] = self.dims.dim(crate::dim::DimOp::Add(dims[axis], other[axis]));
        }
        Ok((ty, self.dims.shape(&dims)))
    }

    fn gather(&mut self) -> Result<Operand, String> {
        self.ids(1)?;
        let (source, ids) = (self.dims_of(0), self.dims_of(1));
        let axis = self.axis(self.attrs[0], self.args[0].1)?;
        let batch = self.attrs[1] as usize;
        if batch > axis || batch > ids.len() || source[..batch] != ids[..batch] {
            return Err("the batch axes of source and ids are the same and lie before the axis".into());
        }
        if self.is_blocked(0) && axis + 1 == source.len() {
            return Err("the last axis of a blocked type is never gathered".into());
        }
        let dims = [&source[..axis], &ids[batch..], &source[axis + 1..]].concat();
        Ok((self.args[0].0, self.dims.shape(&dims)))
    }

    fn top_k(&mut self) -> Result<Operand, String> {
        let wanted = self.wanted()?;
        self.of_type(0, Type::F32)?;
        let (_, rest) = self.split_last(0)?;
        if self.args.len() == 2 {
            self.of_type(1, Type::ID)?;
            if self.args[1].1 != self.args[0].1 {
                return Err("the candidates have the shape of the keys".into());
            }
        }
        let to = self.dims.of(wanted);
        match to.split_last() {
            Some((&k, front)) if front == rest && self.dims.constant(k).is_some() => Ok((Type::ID, wanted)),
            _ => Err("top_k gives the keys' shape with a constant last axis".into()),
        }
    }

    fn write(&mut self) -> Result<Operand, String> {
        let (ty, shape) = self.args[0];
        self.ids(1)?;
        self.of_type(2, ty)?;
        let (state, ids, rows) = (self.dims_of(0), self.dims_of(1), self.dims_of(2));
        let fits =
            ids.len() == 1 && rows.len() == state.len() && rows.first() == ids.first() && rows[1..] == state[1..];
        if fits {
            Ok((ty, shape))
        } else {
            Err("write takes ids [n] and rows [n, ...] of the state's row shape".into())
        }
    }
}
