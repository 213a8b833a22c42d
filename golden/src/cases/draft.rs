//! Writing a case: a builder of graphs with tables, weights and formulas at hand.

use std::cell::RefCell;

use ds4_ir::scalar::{Scalar, Scalars};
use ds4_ir::{Bounds, Builder, Format, ScalarOp, ScalarType, Step, Type, Value};

use super::inputs::{Random, RowKind};
use super::stored::{Contents, Stored};
use super::{Case, Feed};

/// Most columns of a step that a case is compiled for, unless it says otherwise.
const COLUMNS: u32 = 8;
/// Most tokens of a case's sequence.
const CONTEXT: u32 = 128;

/// A case in the making.
pub struct Draft {
    family: &'static str,
    name: String,
    /// The graph.
    pub b: Builder,
    /// Seeded by the case's name.
    pub random: Random,
    weights: Stored,
    /// Tokens are below this.
    vocabulary: u32,
    /// Most columns of a step.
    columns: u32,
    tables: usize,
}

/// Makes scalar nodes; expressions nest.
pub struct Formula<'a>(RefCell<&'a mut Scalars>);

impl Formula<'_> {
    /// An operation.
    pub fn op(&self, op: ScalarOp, args: &[Scalar]) -> Scalar {
        let made = self.0.borrow_mut().op(op, args);
        made.unwrap_or_else(|fault| panic!("invariant: cases are well-typed: {fault}"))
    }

    /// A float constant.
    pub fn f(&self, value: f32) -> Scalar {
        self.0.borrow_mut().f32(value)
    }

    /// An integer constant.
    pub fn i(&self, value: i32) -> Scalar {
        self.0.borrow_mut().i32(value)
    }
}

impl Draft {
    /// An empty case.
    pub fn new(family: &'static str, name: &str) -> Draft {
        let mut b = Builder::new();
        b.enter(family);
        b.enter(name);
        let random = Random::named(&format!("{family}/{name}"));
        Draft {
            family,
            name: name.into(),
            b,
            random,
            weights: Stored::default(),
            vocabulary: 5,
            columns: COLUMNS,
            tables: 0,
        }
    }

    /// Tokens of the steps are below `vocabulary`.
    pub fn vocabulary(&mut self, vocabulary: u32) {
        self.vocabulary = vocabulary;
    }

    /// Steps have up to so many columns, as in prefill.
    pub fn columns(&mut self, columns: u32) {
        self.columns = columns;
    }

    fn fresh(&mut self, kind: &str) -> String {
        self.tables += 1;
        format!("{kind}{}", self.tables)
    }

    /// A table of floats by their bits.
    pub fn floats(&mut self, extents: &[u32], bits: &[u32]) -> Value {
        self.table(Type::F32, extents, bits)
    }

    /// A table of integers.
    pub fn ints(&mut self, extents: &[u32], values: &[i32]) -> Value {
        let words: Vec<u32> = values.iter().map(|&i| i as u32).collect();
        self.table(Type::I32, extents, &words)
    }

    fn table(&mut self, ty: Type, extents: &[u32], words: &[u32]) -> Value {
        let name = self.fresh("table");
        let constant = self.b.add_constant(&name, ty, extents, words);
        self.b.constant(constant)
    }

    /// Ids, masked where the table is negative.
    pub fn ids(&mut self, extents: &[u32], values: &[i32]) -> Value {
        use ScalarOp::{IdWhere, LtI, Not};
        let table = self.ints(extents, values);
        self.map(&[table], |m, p| {
            let negative = m.op(LtI, &[p[0], m.i(0)]);
            m.op(IdWhere, &[m.op(Not, &[negative]), p[0]])
        })
    }

    /// Rows of activations, one for each column, each of its own kind: see [`RowKind`].
    pub fn activations(&mut self, inner: &[u32]) -> Value {
        let len: u32 = inner.iter().product();
        let words = self.random.rows(self.columns as usize, len as usize);
        self.rows(inner, &words)
    }

    /// Rows of plain activations, for what goes across them: other kinds would hide each other.
    pub fn plain(&mut self, inner: &[u32]) -> Value {
        let len: u32 = inner.iter().product();
        let words: Vec<u32> = (0..self.columns).flat_map(|_| self.random.row(RowKind::Plain, len as usize)).collect();
        self.rows(inner, &words)
    }

    fn rows(&mut self, inner: &[u32], words: &[u32]) -> Value {
        let table = self.floats(&[&[self.columns], inner].concat(), words);
        self.per_column(table)
    }

    /// The first rows of a table with a row for each column that a step can have.
    pub fn per_column(&mut self, table: Value) -> Value {
        let (start, columns) = (self.b.n(0), self.b.columns());
        self.b.slice(table, 0, start, columns)
    }

    /// A tensor of the checkpoint: `[rows, cols]`, or `[parts, rows, cols]` with a part for each index of the first axis.
    pub fn weight(&mut self, format: Format, extents: &[u32], contents: &Contents) -> Value {
        let name = self.fresh("weight");
        let weight = self.b.add_weight(&name, Type::weight(format), extents);
        let at = |back: usize| extents.len().checked_sub(back).map_or(1, |i| extents[i] as usize);
        self.weights.add(format, [at(3), at(2), at(1)], contents);
        self.b.weight(weight)
    }

    /// A map of one formula.
    pub fn map(&mut self, args: &[Value], formula: impl FnOnce(&Formula<'_>, &[Scalar]) -> Scalar) -> Value {
        let types: Vec<ScalarType> = args.iter().filter_map(|&v| self.b.ty(v).scalar()).collect();
        let scalars = &mut self.b.scalars;
        let params: Vec<Scalar> = (0..).zip(&types).map(|(i, &ty)| scalars.param(i, ty)).collect();
        let result = formula(&Formula(RefCell::new(scalars)), &params);
        let body = scalars.body(&types, result);
        let body = body.unwrap_or_else(|fault| panic!("invariant: cases are well-typed: {fault}"));
        self.b.map(body, args)
    }

    /// A map of one operation.
    pub fn apply(&mut self, op: ScalarOp, args: &[Value]) -> Value {
        self.map(args, |m, params| m.op(op, params))
    }

    /// Compares a value, which has no element without a value.
    pub fn output(&mut self, name: &str, value: Value) {
        self.b.output(name, value);
    }

    /// Compares a value launch by launch only: it may have elements without a value, or is q8, or a state.
    pub fn tap(&mut self, name: &str, value: Value) {
        self.b.tap(name, value);
    }

    /// The case, with steps of these numbers of columns, all of them outputs.
    pub fn steps(self, columns: &[u32]) -> Case {
        let steps: Vec<[u32; 2]> = columns.iter().map(|&n| [n, n]).collect();
        self.steps_with_outputs(&steps)
    }

    /// The case, with steps of these numbers of columns and outputs.
    pub fn steps_with_outputs(self, steps: &[[u32; 2]]) -> Case {
        let mut position = 0;
        let feeds = steps.iter().map(|&[columns, outputs]| {
            let tokens = (0..columns).map(|i| (7 * (position + i) + 3) % self.vocabulary).collect();
            let feed = Feed { step: Step { position, columns, outputs }, tokens };
            position += columns;
            feed
        });
        let feeds = feeds.collect();
        assert!(position <= CONTEXT, "the steps of {} fit its context", self.name);
        let bounds = Bounds { context: CONTEXT, columns: self.columns, outputs: self.columns };
        Case {
            family: self.family,
            name: self.name,
            graph: self.b.finish(),
            weights: self.weights,
            bounds,
            feeds,
            profiles: &[],
        }
    }

    /// The case of one step of one column: nothing in it depends on the step.
    pub fn once(self) -> Case {
        self.steps(&[1])
    }
}
