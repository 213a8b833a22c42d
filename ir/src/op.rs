//! The operations of the value graph: a small set, and no model construct among them.
//!
//! Norms, softmaxes, Sinkhorn iterations, attention and experts are spelled with these by the front end, under span
//! names that a person reads.

use crate::Format;
use crate::scalar::ScalarType;

/// Type of a value: what one element is. The number is part of the plan format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Type(pub u32);

impl Type {
    /// IEEE binary32.
    pub const F32: Type = Type(0);
    /// 32-bit integer.
    pub const I32: Type = Type(1);
    /// Masked id: an index that may be absent. It only selects rows and says which leaves of a reduction exist.
    pub const ID: Type = Type(2);
    /// Activation quantised to signed bytes, one f32 scale per 32 elements of the last axis.
    pub const Q8: Type = Type(3);

    /// Elements as a checkpoint stores them. The last axis is never cut or moved.
    pub const fn weight(format: Format) -> Type {
        Type(16 + format as u32)
    }

    /// The storage format, if this is a weight's type.
    pub fn format(self) -> Option<Format> {
        u8::try_from(self.0.checked_sub(16)?).ok().and_then(Format::from_number)
    }

    /// Whether the number names a type.
    pub fn is_valid(self) -> bool {
        self.0 < 4 || self.format().is_some()
    }

    /// The type of one element inside a scalar body.
    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            Type::F32 => Some(ScalarType::F32),
            Type::I32 => Some(ScalarType::I32),
            Type::ID => Some(ScalarType::Id),
            _ => None,
        }
    }

    /// The name in IR text: `f32`, `i32`, `id`, `q8`, `w.q4_k`.
    pub fn name(self) -> String {
        match self {
            Type::F32 => "f32".into(),
            Type::I32 => "i32".into(),
            Type::ID => "id".into(),
            Type::Q8 => "q8".into(),
            _ => self.format().map_or_else(|| format!("type{}", self.0), |f| format!("w.{}", f.name())),
        }
    }

    /// The type of a name, if it is one.
    pub fn from_name(name: &str) -> Option<Type> {
        match name {
            "f32" => Some(Type::F32),
            "i32" => Some(Type::I32),
            "id" => Some(Type::ID),
            "q8" => Some(Type::Q8),
            _ => Format::from_name(name.strip_prefix("w.")?).map(Type::weight),
        }
    }
}

impl std::fmt::Debug for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// What a `reduce` does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum ReduceKind {
    /// Sum in the order of the tree; no leaves give -0.0.
    Sum = 0,
    /// Maximum in the contract's order; no leaves give -inf. Order-free.
    Max = 1,
}

impl ReduceKind {
    /// The kind of a number, if it is one.
    pub fn from_number(number: u32) -> Option<ReduceKind> {
        [ReduceKind::Sum, ReduceKind::Max].get(number as usize).copied()
    }

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        ["sum", "max"][self as usize]
    }
}

/// An operation. Its attributes (words, in this order) and operands:
///
/// | operation | attributes | operands | meaning |
/// |---|---|---|---|
/// | `weight` | weight | – | a tensor of the checkpoint |
/// | `const` | constant | – | a table of the plan (f32 or i32) |
/// | `tokens` | – | – | token ids of the step, i32 `[columns]` |
/// | `extent` | dim | – | a dimension as an i32 scalar `[]` |
/// | `iota` | axis | – | i32, the index along an axis of its shape |
/// | `map` | body | same shape each | the scalar body on each element |
/// | `reduce` | kind, tree, axis | x, or x and mask | drops `axis`; leaves whose mask id is absent are absent |
/// | `product` | tree | x, w, or x, w, mask | see below |
/// | `quantise` | – | x f32 | q8 along the last axis |
/// | `widen` | – | weight-typed x | decodes to f32 (i32 for integers) |
/// | `reshape` | – | x | same elements, row-major |
/// | `slice` | axis, start dim | x | `start .. start + extent` of one axis |
/// | `permute` | axes | x | axis i of the result is axis `axes[i]` of x |
/// | `broadcast` | – | x | extents of 1 repeat |
/// | `concat` | axis | one or more | one behind the other |
/// | `gather` | axis, batch | source, ids | rows of `source` along `axis` by id; see below |
/// | `top_k` | – | keys f32 `[.., n]`, or keys and candidate ids | ids `[.., k]` of the k largest, ascending by id, masked last |
/// | `arg_max` | – | f32 | i32, index of the largest along the last axis |
/// | `sort_ids` | – | ids | ascending along the last axis, masked last |
/// | `read` | state | – | the state as it is when the step begins |
/// | `write` | – | state, ids `[n]`, rows `[n, ...]` | the state with rows replaced; masked ids are skipped |
///
/// `product`: `w [B.., N, K]`, `x [B.., M.., K]`, result `[B.., M.., N]`, where the number of batch axes `B` is the
/// rank of `w` less 2. Each element is the sum over K, in the order of the tree, of `mul(w, x)`; with `x` of type q8 the
/// leaves are the blocks of 32 and `w` is of a format that takes q8. A mask `[B.., K]` says which leaves exist.
///
/// `gather`: the first `batch` axes of source and ids are common, `batch <= axis`, axes `batch..axis` of the source
/// stay in front of the ids' own axes: result `source[..axis] ++ ids[batch..] ++ source[axis+1..]`. Where an id is
/// masked the result has no value: it may pass through maps, products and views, and only a reduction under the same
/// mask takes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
#[allow(missing_docs)] // the table above says what each is
pub enum Op {
    Weight = 0,
    Const = 1,
    Tokens = 2,
    Extent = 3,
    Iota = 4,
    Map = 5,
    Reduce = 6,
    Product = 7,
    Quantise = 8,
    Widen = 9,
    Reshape = 10,
    Slice = 11,
    Permute = 12,
    Broadcast = 13,
    Concat = 14,
    Gather = 15,
    TopK = 16,
    ArgMax = 17,
    SortIds = 18,
    Read = 19,
    Write = 20,
}

impl Op {
    /// All operations, in the order of their numbers.
    pub const ALL: [Op; 21] = {
        use Op::*;
        [
            Weight, Const, Tokens, Extent, Iota, Map, Reduce, Product, Quantise, Widen, Reshape, Slice, Permute,
            Broadcast, Concat, Gather, TopK, ArgMax, SortIds, Read, Write,
        ]
    };

    /// The operation of a number, if it is one.
    pub fn from_number(number: u32) -> Option<Op> {
        Self::ALL.get(number as usize).copied()
    }

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        use Op::*;
        match self {
            Weight => "weight",
            Const => "const",
            Tokens => "tokens",
            Extent => "extent",
            Iota => "iota",
            Map => "map",
            Reduce => "reduce",
            Product => "product",
            Quantise => "quantise",
            Widen => "widen",
            Reshape => "reshape",
            Slice => "slice",
            Permute => "permute",
            Broadcast => "broadcast",
            Concat => "concat",
            Gather => "gather",
            TopK => "top_k",
            ArgMax => "arg_max",
            SortIds => "sort_ids",
            Read => "read",
            Write => "write",
        }
    }

    /// The operation of a name, if it is one.
    pub fn from_name(name: &str) -> Option<Op> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Whether the result is a rearrangement of its operand's elements.
    pub fn is_view(self) -> bool {
        matches!(self, Op::Reshape | Op::Slice | Op::Permute | Op::Broadcast)
    }

    /// Whether the operation has no operands.
    pub fn is_leaf(self) -> bool {
        matches!(self, Op::Weight | Op::Const | Op::Tokens | Op::Extent | Op::Iota | Op::Read)
    }
}
