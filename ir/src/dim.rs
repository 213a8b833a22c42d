//! Dimensions: integer expressions over the step scalars, hash-consed.
//!
//! A step feeds `columns` tokens at positions `position .. position + columns` and gives logits for the last
//! `outputs` of them. Every extent of the graph is a constant or follows from these three numbers, so one graph
//! serves decode and prefill; an entry point only bounds them.

use std::collections::HashMap;

crate::entities! {
    /// A dimension.
    Dim = "d";
    /// A shape: a list of dimensions, slowest first.
    Shape = "s";
}

/// The operations of a dimension. The numbers are part of the plan format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DimOp {
    /// A constant.
    Const(u32),
    /// Position of the first column of the step.
    Position,
    /// Number of columns of the step, at least 1.
    Columns,
    /// Number of columns whose logits are wanted, `0..=columns`.
    Outputs,
    /// Sum.
    Add(Dim, Dim),
    /// Difference; never negative by construction.
    Sub(Dim, Dim),
    /// Multiple.
    Scale(Dim, u32),
    /// Quotient, rounded down.
    Div(Dim, u32),
    /// Multiples of `n` in `position + 1 ..= position + columns`: blocks of `n` tokens that the step completes.
    Completed(u32),
}

/// A dimension as the tables store it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct DimRow {
    /// Which operation.
    pub op: u32,
    /// First operand: a dimension or a number.
    pub a: u32,
    /// Second operand: a dimension or a number.
    pub b: u32,
}

impl DimOp {
    /// The row of this operation.
    pub fn row(self) -> DimRow {
        let (op, a, b) = match self {
            DimOp::Const(n) => (0, n, 0),
            DimOp::Position => (1, 0, 0),
            DimOp::Columns => (2, 0, 0),
            DimOp::Outputs => (3, 0, 0),
            DimOp::Add(a, b) => (4, a.0, b.0),
            DimOp::Sub(a, b) => (5, a.0, b.0),
            DimOp::Scale(a, n) => (6, a.0, n),
            DimOp::Div(a, n) => (7, a.0, n),
            DimOp::Completed(n) => (8, n, 0),
        };
        DimRow { op, a, b }
    }

    /// The operation of a row, if it is one; operands are not checked.
    pub fn of(row: DimRow) -> Option<DimOp> {
        Some(match row.op {
            0 => DimOp::Const(row.a),
            1 => DimOp::Position,
            2 => DimOp::Columns,
            3 => DimOp::Outputs,
            4 => DimOp::Add(Dim(row.a), Dim(row.b)),
            5 => DimOp::Sub(Dim(row.a), Dim(row.b)),
            6 => DimOp::Scale(Dim(row.a), row.b),
            7 => DimOp::Div(Dim(row.a), row.b),
            8 => DimOp::Completed(row.a),
            _ => return None,
        })
    }
}

/// The step scalars.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Position of the first column.
    pub position: u32,
    /// Number of columns.
    pub columns: u32,
    /// Columns, counted from the last, whose logits are wanted.
    pub outputs: u32,
}

/// Static bounds of the step scalars at one entry point: `position + columns <= context`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Largest `position + columns`.
    pub context: u32,
    /// Largest number of columns.
    pub columns: u32,
    /// Largest number of outputs.
    pub outputs: u32,
}

/// The value of `dim` in one step. Overflow saturates; a verified graph has none.
pub fn dim_value(rows: &[DimRow], dim: Dim, step: Step) -> u32 {
    match op_of(rows, dim) {
        DimOp::Const(n) => n,
        DimOp::Position => step.position,
        DimOp::Columns => step.columns,
        DimOp::Outputs => step.outputs,
        DimOp::Add(a, b) => dim_value(rows, a, step).saturating_add(dim_value(rows, b, step)),
        DimOp::Sub(a, b) => dim_value(rows, a, step).saturating_sub(dim_value(rows, b, step)),
        DimOp::Scale(a, n) => dim_value(rows, a, step).saturating_mul(n),
        DimOp::Div(a, n) => dim_value(rows, a, step) / n,
        DimOp::Completed(n) => (step.position + step.columns) / n - step.position / n,
    }
}

/// The largest value of `dim` at an entry point with these bounds.
pub fn dim_max(rows: &[DimRow], dim: Dim, bounds: Bounds) -> u32 {
    match op_of(rows, dim) {
        DimOp::Const(n) => n,
        DimOp::Position => bounds.context.saturating_sub(1),
        DimOp::Columns => bounds.columns,
        DimOp::Outputs => bounds.outputs,
        DimOp::Add(a, b) => {
            let pair = (op_of(rows, a), op_of(rows, b));
            if matches!(pair, (DimOp::Position, DimOp::Columns) | (DimOp::Columns, DimOp::Position)) {
                return bounds.context;
            }
            dim_max(rows, a, bounds).saturating_add(dim_max(rows, b, bounds))
        }
        DimOp::Sub(a, _) => dim_max(rows, a, bounds),
        DimOp::Scale(a, n) => dim_max(rows, a, bounds).saturating_mul(n),
        DimOp::Div(a, n) => dim_max(rows, a, bounds) / n,
        DimOp::Completed(n) => bounds.columns.div_ceil(n),
    }
}

fn op_of(rows: &[DimRow], dim: Dim) -> DimOp {
    DimOp::of(rows[dim.0 as usize]).expect("a verified dimension has a known operation")
}

/// Hash-consing table of dimensions and shapes.
#[derive(Clone, Default, Debug)]
pub struct Dims {
    rows: Vec<DimRow>,
    dims: HashMap<DimRow, Dim>,
    pool: Vec<Dim>,
    shapes: Vec<crate::entity::Run>,
    shape_ids: HashMap<Vec<Dim>, Shape>,
}

impl Dims {
    /// Rebuilds the table from columns (`rows`, `pool`, `shapes` of the graph tables).
    pub fn from_columns(rows: &[DimRow], pool: &[Dim], shapes: &[crate::entity::Run]) -> Dims {
        Dims {
            rows: rows.to_vec(),
            dims: rows.iter().enumerate().map(|(i, &r)| (r, Dim(i as u32))).collect(),
            pool: pool.to_vec(),
            shapes: shapes.to_vec(),
            shape_ids: shapes.iter().enumerate().map(|(i, r)| (r.of(pool).to_vec(), Shape(i as u32))).collect(),
        }
    }

    /// The columns: dimension rows, pool, shapes.
    pub fn columns(&self) -> (&[DimRow], &[Dim], &[crate::entity::Run]) {
        (&self.rows, &self.pool, &self.shapes)
    }

    /// The operation of `dim`.
    pub fn op(&self, dim: Dim) -> DimOp {
        op_of(&self.rows, dim)
    }

    /// The constant value of `dim`, if it is one.
    pub fn constant(&self, dim: Dim) -> Option<u32> {
        match self.op(dim) {
            DimOp::Const(n) => Some(n),
            _ => None,
        }
    }

    /// The dimension of an operation, simplified: constants fold, the constant of a sum stands last.
    pub fn dim(&mut self, op: DimOp) -> Dim {
        let op = self.simplified(op);
        if let DimOp::Add(a, b) = op
            && self.constant(b) == Some(0)
        {
            return a;
        }
        match op {
            DimOp::Scale(a, 1) | DimOp::Div(a, 1) => return a,
            _ => {}
        }
        let row = op.row();
        if let Some(&dim) = self.dims.get(&row) {
            return dim;
        }
        let dim = Dim(self.rows.len() as u32);
        self.rows.push(row);
        self.dims.insert(row, dim);
        dim
    }

    fn simplified(&self, op: DimOp) -> DimOp {
        match op {
            DimOp::Add(a, b) => match (self.constant(a), self.constant(b)) {
                (Some(x), Some(y)) => DimOp::Const(x.saturating_add(y)),
                (Some(_), None) => DimOp::Add(b, a),
                (None, None) if a.0 > b.0 => DimOp::Add(b, a),
                _ => op,
            },
            DimOp::Sub(a, b) => match (self.constant(a), self.constant(b)) {
                (Some(x), Some(y)) => DimOp::Const(x.saturating_sub(y)),
                _ if a == b => DimOp::Const(0),
                _ => op,
            },
            DimOp::Scale(a, n) => match self.constant(a) {
                Some(x) => DimOp::Const(x.saturating_mul(n)),
                None if n == 0 => DimOp::Const(0),
                None => match self.op(a) {
                    DimOp::Scale(inner, m) => DimOp::Scale(inner, m.saturating_mul(n)),
                    _ => op,
                },
            },
            DimOp::Div(a, n) => match self.constant(a) {
                Some(x) if n > 0 => DimOp::Const(x / n),
                _ => op,
            },
            DimOp::Completed(1) => DimOp::Columns,
            _ => op,
        }
    }

    /// A constant dimension.
    pub fn number(&mut self, n: u32) -> Dim {
        self.dim(DimOp::Const(n))
    }

    /// The shape with these dimensions.
    pub fn shape(&mut self, dims: &[Dim]) -> Shape {
        if let Some(&shape) = self.shape_ids.get(dims) {
            return shape;
        }
        let shape = Shape(self.shapes.len() as u32);
        self.shapes.push(crate::entity::Run::push(&mut self.pool, dims));
        self.shape_ids.insert(dims.to_vec(), shape);
        shape
    }

    /// The dimensions of a shape.
    pub fn of(&self, shape: Shape) -> &[Dim] {
        self.shapes[shape.0 as usize].of(&self.pool)
    }

    /// Number of elements as a constant factor and the sorted symbolic factors: two shapes with equal counts reshape
    /// into each other.
    pub fn count(&self, dims: &[Dim]) -> (u64, Vec<Dim>) {
        let mut factor = 1u64;
        let mut symbols = Vec::new();
        for &dim in dims {
            let mut dim = dim;
            if let DimOp::Scale(inner, n) = self.op(dim) {
                factor = factor.saturating_mul(n.into());
                dim = inner;
            }
            match self.constant(dim) {
                Some(n) => factor = factor.saturating_mul(n.into()),
                None => symbols.push(dim),
            }
        }
        symbols.sort();
        (factor, symbols)
    }
}
