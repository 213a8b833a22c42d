//! Dimensions as expressions: `columns * 8`, `(position + columns) / 4`, `completed(4)`.

use std::collections::HashMap;

use super::cursor::{Cursor, Read};
use super::lexer::Kind;
use super::limits;
use crate::diagnostic::codes;
use crate::dim::{Dim, DimOp, DimRow, Dims};

/// A dimension that is larger than this when written out is printed as a reference to its `dim` statement.
const INLINE_NODES: u32 = 16;

/// The text of `dim`; large ones are referred to as `d17`, by row.
pub fn dim_text(rows: &[DimRow], dim: Dim) -> String {
    Writer::new(rows).text(dim)
}

/// The text of a shape: `[columns, 4096]`.
pub fn shape_text(rows: &[DimRow], shape: &[Dim]) -> String {
    Writer::new(rows).shape(shape)
}

/// Number of nodes of each dimension when it is written out; an operand that is no earlier row counts as one.
pub(super) fn node_counts(rows: &[DimRow]) -> Vec<u32> {
    let mut counts = Vec::with_capacity(rows.len());
    extend_node_counts(rows, &mut counts);
    counts
}

/// Brings `counts` up to date with rows that were added.
pub(super) fn extend_node_counts(rows: &[DimRow], counts: &mut Vec<u32>) {
    for &row in &rows[counts.len()..] {
        let of = |dim: Dim| counts.get(dim.0 as usize).copied().unwrap_or(1);
        counts.push(match DimOp::of(row) {
            Some(DimOp::Add(a, b) | DimOp::Sub(a, b)) => of(a).saturating_add(of(b)).saturating_add(1),
            Some(DimOp::Scale(a, _) | DimOp::Div(a, _)) => of(a).saturating_add(1),
            _ => 1,
        });
    }
}

/// Writes dimensions of one table.
pub(super) struct Writer<'a> {
    rows: &'a [DimRow],
    counts: Vec<u32>,
}

impl<'a> Writer<'a> {
    pub fn new(rows: &'a [DimRow]) -> Writer<'a> {
        Writer { rows, counts: node_counts(rows) }
    }

    /// Whether uses refer to the dimension by its name.
    pub fn is_large(&self, dim: Dim) -> bool {
        self.counts.get(dim.0 as usize).is_none_or(|&n| n > INLINE_NODES)
    }

    /// The dimension as its users write it.
    pub fn text(&self, dim: Dim) -> String {
        if self.is_large(dim) { dim.to_string() } else { self.definition(dim) }
    }

    pub fn shape(&self, shape: &[Dim]) -> String {
        let dims: Vec<_> = shape.iter().map(|&d| self.text(d)).collect();
        format!("[{}]", dims.join(", "))
    }

    /// The operation of the dimension on its operands.
    pub fn definition(&self, dim: Dim) -> String {
        match DimOp::of(self.rows[dim.0 as usize]) {
            Some(DimOp::Const(n)) => n.to_string(),
            Some(DimOp::Position) => "position".into(),
            Some(DimOp::Columns) => "columns".into(),
            Some(DimOp::Outputs) => "outputs".into(),
            Some(DimOp::Add(a, b)) => format!("{} + {}", self.text(a), self.operand(b)),
            Some(DimOp::Sub(a, b)) => format!("{} - {}", self.text(a), self.operand(b)),
            Some(DimOp::Scale(a, n)) => format!("{} * {n}", self.operand(a)),
            Some(DimOp::Div(a, n)) => format!("{} / {n}", self.operand(a)),
            Some(DimOp::Completed(n)) => format!("completed({n})"),
            None => dim.to_string(),
        }
    }

    /// An operand: sums in parentheses.
    fn operand(&self, dim: Dim) -> String {
        let is_sum = matches!(DimOp::of(self.rows[dim.0 as usize]), Some(DimOp::Add(..) | DimOp::Sub(..)));
        let text = self.text(dim);
        if is_sum && !self.is_large(dim) { format!("({text})") } else { text }
    }
}

/// What stands behind `*` or `/`.
enum Right {
    Number(u32),
    Dim(Dim),
}

/// Reads dimensions into a table.
pub(super) struct Reader<'a, 't> {
    pub cursor: &'a mut Cursor<'t>,
    pub dims: &'a mut Dims,
    pub named: &'a HashMap<String, Dim>,
}

impl Reader<'_, '_> {
    /// `[dim, ...]`
    pub fn shape(&mut self) -> Read<Vec<Dim>> {
        let start = self.cursor.peek().start;
        self.cursor.mark(b'[')?;
        let mut shape = Vec::new();
        while !self.cursor.is_mark(b']') {
            shape.push(self.dim(0)?);
            if shape.len() > limits::RANK {
                let range = start..self.cursor.end_of_last();
                return Err(self.cursor.too_large("the rank of a shape", limits::RANK, range));
            }
            if !self.cursor.take_mark(b',') {
                break;
            }
        }
        self.cursor.mark(b']')?;
        Ok(shape)
    }

    /// A sum of terms, inside `depth` parentheses.
    pub fn dim(&mut self, depth: usize) -> Read<Dim> {
        let start = self.cursor.peek().start;
        let mut sum = self.term(depth)?;
        while !self.cursor.at_line_end() && (self.cursor.is_mark(b'+') || self.cursor.is_mark(b'-')) {
            let is_sum = self.cursor.next().kind == Kind::Mark(b'+');
            let right = self.term(depth)?;
            let op = if is_sum { DimOp::Add(sum, right) } else { DimOp::Sub(sum, right) };
            sum = self.checked(op, start)?;
        }
        Ok(sum)
    }

    fn term(&mut self, depth: usize) -> Read<Dim> {
        let start = self.cursor.peek().start;
        let mut term = self.factor(depth)?;
        while !self.cursor.at_line_end() && (self.cursor.is_mark(b'*') || self.cursor.is_mark(b'/')) {
            let is_multiple = self.cursor.next().kind == Kind::Mark(b'*');
            let right_start = self.cursor.peek().start;
            let right = self.multiplier(depth)?;
            let op = match (self.dims.constant(term), right) {
                (_, Right::Number(n)) if is_multiple => DimOp::Scale(term, n),
                (Some(n), Right::Dim(right)) if is_multiple => DimOp::Scale(right, n),
                (_, Right::Number(n)) if n > 0 => DimOp::Div(term, n),
                _ => {
                    let range = right_start..self.cursor.end_of_last();
                    let message = "a dimension is multiplied or divided by positive constants only";
                    return Err(self.cursor.fault(codes::TEXT_NUMBER, range, message));
                }
            };
            term = self.checked(op, start)?;
        }
        Ok(term)
    }

    /// The right side of a product or quotient. A number there is part of the operation, not a row of the table.
    fn multiplier(&mut self, depth: usize) -> Read<Right> {
        if self.cursor.peek().kind == Kind::Number {
            return Ok(Right::Number(self.cursor.unsigned("a number")?.0));
        }
        let dim = self.factor(depth)?;
        Ok(self.dims.constant(dim).map_or(Right::Dim(dim), Right::Number))
    }

    fn factor(&mut self, depth: usize) -> Read<Dim> {
        let token = self.cursor.peek();
        match token.kind {
            Kind::Mark(b'(') => {
                if depth >= limits::NESTING {
                    return Err(self.cursor.too_large("the nesting of a dimension", limits::NESTING, token.range()));
                }
                self.cursor.next();
                let dim = self.dim(depth + 1)?;
                self.cursor.mark(b')')?;
                Ok(dim)
            }
            Kind::Number => {
                let (n, _) = self.cursor.unsigned("an extent")?;
                Ok(self.dims.number(n))
            }
            Kind::Word => self.word(),
            _ => Err(self.cursor.unexpected("a dimension")),
        }
    }

    fn word(&mut self) -> Read<Dim> {
        let token = self.cursor.next();
        let op = match self.cursor.text_of(token) {
            "position" => DimOp::Position,
            "columns" => DimOp::Columns,
            "outputs" => DimOp::Outputs,
            "completed" => DimOp::Completed(self.block()?),
            name => {
                let known = self.named.get(name).copied();
                return known.ok_or_else(|| {
                    let mut fault = self.cursor.unknown("dimension", name, token.range());
                    fault.help = "dimensions are numbers, position, columns, outputs, completed(n) or a `dim`".into();
                    fault
                });
            }
        };
        Ok(self.dims.dim(op))
    }

    /// `(n)` of `completed`.
    fn block(&mut self) -> Read<u32> {
        self.cursor.mark(b'(')?;
        let (n, range) = self.cursor.unsigned("a number of tokens")?;
        self.cursor.mark(b')')?;
        if n == 0 {
            return Err(self.cursor.fault(codes::TEXT_NUMBER, range, "a block has at least one token"));
        }
        Ok(n)
    }

    /// The dimension of `op`, where constants neither overflow nor become negative.
    fn checked(&mut self, op: DimOp, start: usize) -> Read<Dim> {
        let constant = |dim| self.dims.constant(dim);
        let fits = match op {
            DimOp::Add(a, b) => constant(a).zip(constant(b)).is_none_or(|(a, b)| a.checked_add(b).is_some()),
            DimOp::Sub(a, b) => constant(a).zip(constant(b)).is_none_or(|(a, b)| a >= b),
            DimOp::Scale(a, n) => {
                let factor = match self.dims.op(a) {
                    DimOp::Const(m) | DimOp::Scale(_, m) => m,
                    _ => 1,
                };
                factor.checked_mul(n).is_some()
            }
            _ => true,
        };
        if !fits {
            let range = start..self.cursor.end_of_last();
            let message = "a dimension is negative or does not fit in 32 bits";
            return Err(self.cursor.fault(codes::TEXT_NUMBER, range, message));
        }
        Ok(self.dims.dim(op))
    }
}
