//! Building kernels: typed handles over hash-consed expressions, and statements by nesting closures.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;

use ds4_ir::{Run, Value};

use super::extent::ExtentRow;
use super::operator::{Operator, Type};
use super::tables::{
    Access, Block, Expr, ExprRow, Extent, Kernel, Local, LocalRow, Memory, MemoryRow, Part, Source, Space, Stmt,
};

/// An expression whose type the Rust compiler knows.
pub trait Handle: Copy {
    /// The type.
    const TYPE: Type;
    /// The handle of an expression of that type.
    fn of(x: Expr) -> Self;
    /// The expression.
    fn expr(self) -> Expr;
}

macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident = $ty:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name(Expr);

        impl Handle for $name {
            const TYPE: Type = Type::$ty;
            fn of(x: Expr) -> Self {
                $name(x)
            }
            fn expr(self) -> Expr {
                self.0
            }
        }
    )*};
}

handles! {
    /// A float.
    Number = F32;
    /// A word.
    Word = Word;
    /// A truth value.
    Truth = Bool;
    /// A masked id.
    MaskedId = Id;
}

/// A mutable local. It is read through [`Builder::update`], or by [`Builder::value`], which names what it holds now.
#[derive(Clone, Copy, Debug)]
pub struct Var<T>(Local, PhantomData<T>);

/// Builds one kernel. Methods take `&self`, so that calls nest; the tables lie in a cell.
///
/// A handle made inside a closure is good in that closure only; [`super::verify`] finds the others.
pub struct Builder {
    inner: RefCell<Inner>,
}

struct Inner {
    kernel: Kernel,
    grid: Vec<Extent>,
    ids: HashMap<ExprRow, Expr>,
    extents: HashMap<ExtentRow, Extent>,
    /// Statements of the blocks that are being made, the innermost last.
    open: Vec<Vec<Stmt>>,
}

impl Builder {
    /// A kernel with workgroups of `lanes` lanes.
    pub fn new(name: &str, values: &[Value], lanes: u32) -> Builder {
        let kernel = Kernel::empty(name, values, lanes);
        let (grid, ids, extents) = (Vec::new(), HashMap::new(), HashMap::new());
        let inner = Inner { kernel, grid, ids, extents, open: vec![Vec::new()] };
        Builder { inner: RefCell::new(inner) }
    }

    /// Says what the kernel computes, in one line for a reader.
    pub fn about(&self, line: &str) {
        self.inner.borrow_mut().kernel.about = line.into();
    }

    /// The finished kernel.
    pub fn finish(self) -> Kernel {
        let mut inner = self.inner.into_inner();
        let body = inner.open.pop().unwrap_or_default();
        let body = inner.close(body);
        let grid = std::mem::take(&mut inner.grid);
        inner.kernel.parts = vec![Part { grid, body }];
        inner.kernel
    }

    /// Lanes of a workgroup.
    pub fn lanes(&self) -> u32 {
        self.inner.borrow().kernel.lanes
    }

    fn node(&self, op: Operator, words: [u32; 3]) -> Expr {
        self.inner.borrow_mut().node(op, words)
    }

    /// An operation on operands that are known to have the right types.
    pub(super) fn apply<T: Handle>(&self, op: Operator, args: &[Expr]) -> T {
        let mut words = [0; 3];
        for (word, x) in words.iter_mut().zip(args) {
            *word = x.0;
        }
        T::of(match self.simplified(op, args) {
            Some(x) => x,
            None => self.node(op, words),
        })
    }

    /// The value of a constant word.
    pub fn constant_of(&self, x: Word) -> Option<u32> {
        self.int_of_expr(x.expr())
    }

    fn int_of_expr(&self, x: Expr) -> Option<u32> {
        let inner = self.inner.borrow();
        let row = inner.kernel.expr(x);
        (row.op == Operator::Int).then_some(row.words[0])
    }

    /// Integer operations on constants, and those that change nothing. Float operations are left as they are.
    fn simplified(&self, op: Operator, args: &[Expr]) -> Option<Expr> {
        let &[x, y] = args else { return None };
        let int = |n: u32| Some(self.node(Operator::Int, [n, 0, 0]));
        match (op, self.int_of_expr(x), self.int_of_expr(y)) {
            (_, Some(a), Some(b)) => int(integer(op, a, b)?),
            (Operator::AddInt, Some(0), _) => Some(y),
            (Operator::MulInt, Some(1), _) => Some(y),
            (Operator::AddInt | Operator::SubInt | Operator::Shl | Operator::Shr, _, Some(0)) => Some(x),
            (Operator::MulInt | Operator::DivInt, _, Some(1)) => Some(x),
            (Operator::MulInt, _, Some(0)) | (Operator::RemInt, _, Some(1)) => int(0),
            (Operator::MulInt, Some(0), _) => int(0),
            _ => None,
        }
    }

    /// A constant word.
    pub fn word(&self, n: u32) -> Word {
        Word::of(self.node(Operator::Int, [n, 0, 0]))
    }

    /// A constant float.
    pub fn number(&self, value: f32) -> Number {
        Number::of(self.node(Operator::Float, [value.to_bits(), 0, 0]))
    }

    /// A constant truth value.
    pub fn truth(&self, holds: bool) -> Truth {
        Truth::of(self.node(Operator::Truth, [holds.into(), 0, 0]))
    }

    /// The lane within the workgroup.
    pub fn lane(&self) -> Word {
        Word::of(self.node(Operator::Lane, [0; 3]))
    }

    /// The workgroup's coordinate along a new axis of the grid, inside those before.
    pub fn group(&self, extent: ExtentRow) -> Word {
        let extent = self.extent(extent);
        let axis = {
            let grid = &mut self.inner.borrow_mut().grid;
            grid.push(extent);
            grid.len() as u32 - 1
        };
        Word::of(self.node(Operator::Group, [axis, 0, 0]))
    }

    /// The value of an extent.
    pub fn extent_value(&self, row: ExtentRow) -> Word {
        match row.is_constant() {
            Some(n) => self.word(n),
            None => {
                let extent = self.extent(row);
                Word::of(self.node(Operator::Extent, [extent.0, 0, 0]))
            }
        }
    }

    fn extent(&self, row: ExtentRow) -> Extent {
        let inner = &mut *self.inner.borrow_mut();
        *inner.extents.entry(row).or_insert_with(|| {
            inner.kernel.extents.push(row);
            Extent(inner.kernel.extents.len() as u32 - 1)
        })
    }

    /// The masked id.
    pub fn masked(&self) -> MaskedId {
        MaskedId::of(self.node(Operator::Masked, [0; 3]))
    }

    /// The id of an index where `c` holds, else masked.
    pub fn id_where(&self, c: Truth, index: Word) -> MaskedId {
        self.apply(Operator::IdWhere, &[c.expr(), index.expr()])
    }

    /// Unsigned quotient by a positive constant.
    pub fn div_int(&self, x: Word, by: u32) -> Word {
        self.apply(Operator::DivInt, &[x.expr(), self.word(by).expr()])
    }

    /// Unsigned remainder by a positive constant.
    pub fn rem_int(&self, x: Word, by: u32) -> Word {
        self.apply(Operator::RemInt, &[x.expr(), self.word(by).expr()])
    }

    /// Sum of the products of four pairs of signed bytes.
    pub fn dot_bytes(&self, x: Word, y: Word) -> Word {
        self.apply(Operator::DotBytes, &[x.expr(), y.expr()])
    }

    /// The signed word as a float, rounded to nearest even beyond 2^24.
    pub fn rounded_float_of(&self, x: Word) -> Number {
        self.apply(Operator::FloatOf, &[x.expr()])
    }

    /// An argument; asking again for the same source gives the same memory, with both accesses.
    pub fn argument(&self, source: Source, element: Type, access: Access, name: &str) -> Memory {
        let constant = matches!(source, Source::Constant(_) | Source::Magnitudes);
        let space = if constant { Space::Constant(source) } else { Space::Buffer(source) };
        let inner = &mut *self.inner.borrow_mut();
        if let Some(at) = inner.kernel.memories.iter().position(|row| row.space == space) {
            let row = &mut inner.kernel.memories[at];
            row.access = if row.access == access { access } else { Access::ReadWrite };
            return Memory(at as u32);
        }
        inner.memory(MemoryRow { space, element, access, len: 0, name: name.into() })
    }

    /// An array of the workgroup.
    pub fn shared(&self, element: Type, len: u32, name: &str) -> Memory {
        let row = MemoryRow { space: Space::Workgroup, element, access: Access::ReadWrite, len, name: name.into() };
        self.inner.borrow_mut().memory(row)
    }

    fn local(&self, ty: Type, name: &str, mutable: bool) -> Local {
        let locals = &mut self.inner.borrow_mut().kernel.locals;
        locals.push(LocalRow { ty, name: name.into(), mutable });
        Local(locals.len() as u32 - 1)
    }

    fn read<T: Handle>(&self, local: Local) -> T {
        T::of(self.node(Operator::Local, [local.0, 0, 0]))
    }

    fn push(&self, stmt: Stmt) {
        let open = &mut self.inner.borrow_mut().open;
        open.last_mut().expect("invariant: a builder has an open block until it is finished").push(stmt);
    }

    /// Names a value; leaves stay as they are.
    pub fn name<T: Handle>(&self, name: &str, value: T) -> T {
        if self.inner.borrow().kernel.expr(value.expr()).op.arity() == 0 {
            return value;
        }
        let local = self.local(T::TYPE, name, false);
        self.push(Stmt::Let { local, value: value.expr() });
        self.read(local)
    }

    /// Begins a mutable local.
    pub fn var<T: Handle>(&self, name: &str, value: T) -> Var<T> {
        let local = self.local(T::TYPE, name, true);
        self.push(Stmt::Var { local, value: value.expr() });
        Var(local, PhantomData)
    }

    /// Changes a mutable local to what `change` makes of its value.
    pub fn update<T: Handle>(&self, var: Var<T>, change: impl FnOnce(T) -> T) {
        let value = change(self.read(var.0)).expr();
        self.push(Stmt::Set { local: var.0, value });
    }

    /// Sets a mutable local.
    pub fn set<T: Handle>(&self, var: Var<T>, value: T) {
        self.push(Stmt::Set { local: var.0, value: value.expr() });
    }

    /// What a mutable local holds now.
    pub fn value<T: Handle>(&self, name: &str, var: Var<T>) -> T {
        let local = self.local(T::TYPE, name, false);
        let now: T = self.read(var.0);
        self.push(Stmt::Let { local, value: now.expr() });
        self.read(local)
    }

    /// Loads an element.
    pub fn load<T: Handle>(&self, name: &str, memory: Memory, index: Word) -> T {
        let local = self.local(T::TYPE, name, false);
        self.push(Stmt::Load { local, memory, index: index.expr() });
        self.read(local)
    }

    /// Stores an element.
    pub fn store<T: Handle>(&self, memory: Memory, index: Word, value: T) {
        self.push(Stmt::Store { memory, index: index.expr(), value: value.expr() });
    }

    /// The value of the lane whose number differs by exclusive or with `distance`, among `width` lanes.
    pub fn shuffle<T: Handle>(&self, name: &str, value: T, distance: u32, width: u32) -> T {
        let local = self.local(T::TYPE, name, false);
        self.push(Stmt::Shuffle { local, value: value.expr(), distance, width });
        self.read(local)
    }

    /// All lanes meet; what they wrote to the workgroup's arrays is seen behind it.
    pub fn barrier(&self) {
        self.push(Stmt::Barrier { buffers: false });
    }

    /// All lanes meet; what they wrote to the workgroup's arrays and to buffers is seen behind it.
    pub fn barrier_with_buffers(&self) {
        self.push(Stmt::Barrier { buffers: true });
    }

    fn nested(&self, make: impl FnOnce()) -> Block {
        self.inner.borrow_mut().open.push(Vec::new());
        make();
        let mut inner = self.inner.borrow_mut();
        let stmts = inner.open.pop().unwrap_or_default();
        inner.close(stmts)
    }

    /// A branch without an alternative.
    pub fn when(&self, condition: Truth, then: impl FnOnce()) {
        self.branch(condition, then, || {});
    }

    /// A branch.
    pub fn branch(&self, condition: Truth, then: impl FnOnce(), otherwise: impl FnOnce()) {
        let (then, otherwise) = (self.nested(then), self.nested(otherwise));
        self.push(Stmt::If { condition: condition.expr(), then, otherwise });
    }

    /// The guarded branch of a masked id: `then` gets its index.
    pub fn present(&self, id: MaskedId, then: impl FnOnce(Word), otherwise: impl FnOnce()) {
        let index = self.local(Type::Word, "id", false);
        let then = self.nested(|| then(self.read(index)));
        let otherwise = self.nested(otherwise);
        self.push(Stmt::Present { id: id.expr(), index, then, otherwise });
    }

    /// A loop from `start` below `end` by `step`.
    pub fn repeat(&self, name: &str, start: Word, end: ExtentRow, step: u32, body: impl FnOnce(Word)) {
        let end = self.extent(end);
        let index = self.local(Type::Word, name, false);
        let body = self.nested(|| body(self.read(index)));
        self.push(Stmt::For { index, start: start.expr(), end, step, body });
    }
}

/// An integer operation on constants; `None` of other operations and where there is no result.
fn integer(op: Operator, x: u32, y: u32) -> Option<u32> {
    match op {
        Operator::AddInt => Some(x.wrapping_add(y)),
        Operator::SubInt => Some(x.wrapping_sub(y)),
        Operator::MulInt => Some(x.wrapping_mul(y)),
        Operator::DivInt => x.checked_div(y),
        Operator::RemInt => x.checked_rem(y),
        Operator::And => Some(x & y),
        Operator::Or => Some(x | y),
        Operator::Xor => Some(x ^ y),
        Operator::Shl => x.checked_shl(y),
        Operator::Shr => x.checked_shr(y),
        Operator::Sar => (x as i32).checked_shr(y).map(|n| n as u32),
        _ => None,
    }
}

impl Inner {
    fn node(&mut self, op: Operator, words: [u32; 3]) -> Expr {
        let row = ExprRow { op, words };
        *self.ids.entry(row).or_insert_with(|| {
            self.kernel.exprs.push(row);
            Expr(self.kernel.exprs.len() as u32 - 1)
        })
    }

    fn memory(&mut self, mut row: MemoryRow) -> Memory {
        let taken = |name: &str, rows: &[MemoryRow]| rows.iter().any(|other| other.name == name);
        let wanted = row.name.clone();
        for count in 2.. {
            if !taken(&row.name, &self.kernel.memories) {
                break;
            }
            row.name = format!("{wanted}{count}");
        }
        self.kernel.memories.push(row);
        Memory(self.kernel.memories.len() as u32 - 1)
    }

    fn close(&mut self, stmts: Vec<Stmt>) -> Block {
        let run = Run::push(&mut self.kernel.stmts, &stmts);
        self.kernel.blocks.push(run);
        Block(self.kernel.blocks.len() as u32 - 1)
    }
}
