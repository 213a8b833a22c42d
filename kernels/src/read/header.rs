//! The header of a text: the extents that the step chooses, the guard against workgroups behind the grid, and the
//! coordinates of the workgroup, split off its number from the innermost axis on.
//!
//! Each expression of a header stands for one [`Form`]; what has none is refused. A front end may have folded constants of
//! the guard's product, so that product is compared by its factors.

use std::collections::HashMap;

use ds4_ir::Dim;

use crate::kernel::{ExtentRow, MOST_GROUPS, Operator, Type};

use super::Fault;
use super::raw::{Raw, RawExpr, RawLocal, RawOp, RawRow, RawStmt, What};

/// Most factors of a product.
const MOST_FACTORS: usize = 16;

/// A product of extents.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Count {
    /// The product of the constant factors.
    constant: u32,
    /// The factors that the step chooses; of those without a divisor the factor is in `constant`.
    rows: Vec<ExtentRow>,
}

impl Count {
    fn constant(constant: u32) -> Count {
        Count { constant, rows: Vec::new() }
    }

    fn times(&self, other: &Count) -> Option<Count> {
        let constant = self.constant.checked_mul(other.constant)?;
        let rows: Vec<ExtentRow> = self.rows.iter().chain(&other.rows).copied().collect();
        (rows.len() <= MOST_FACTORS).then_some(Count { constant, rows })
    }

    /// The product without the factors of another; `None` if it lacks one of them.
    fn without(&self, other: &Count) -> Option<Count> {
        let mut rows = self.rows.clone();
        for row in &other.rows {
            let at = rows.iter().position(|found| found == row)?;
            rows.remove(at);
        }
        let divides = other.constant != 0 && self.constant.is_multiple_of(other.constant);
        divides.then(|| Count { constant: self.constant / other.constant, rows })
    }

    /// The extent that the product is; `None` if it takes two of them.
    fn extent(&self) -> Option<ExtentRow> {
        match self.rows[..] {
            [] => Some(ExtentRow::constant(self.constant)),
            [row] if row.per == 1 => Some(ExtentRow { times: self.constant, ..row }),
            [row] if self.constant == 1 => Some(row),
            _ => None,
        }
    }

    /// The number, if no factor changes with the step.
    fn number(&self) -> Option<u32> {
        self.rows.is_empty().then_some(self.constant)
    }

    /// The largest value.
    fn largest(&self) -> Option<u64> {
        let factors = self.rows.iter().map(|row| row.largest().map(u64::from));
        factors.chain([Some(self.constant.into())]).try_fold(1u64, |product, factor| product.checked_mul(factor?))
    }
}

/// What an expression of a header stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    /// A word of the step's block.
    Step(u32),
    /// Extents.
    Count(Count),
    /// An extent without divisor, and what is added to it so that the quotient is rounded up.
    Raised(ExtentRow, u32),
    /// What is left of the workgroup's number after so many splits.
    Rest(usize),
    /// The coordinate that this split gives; that of split 0 is the innermost.
    Coordinate(usize),
    /// The number is below the product.
    Within(Count),
    /// It is not.
    Beyond(Count),
}

impl Form {
    fn ty(&self) -> Type {
        match self {
            Form::Within(_) | Form::Beyond(_) => Type::Bool,
            _ => Type::Word,
        }
    }
}

/// A header that was understood.
pub(super) struct Header<'r> {
    raw: &'r Raw,
    locals: HashMap<RawLocal, Form>,
    /// Forms of expressions found so far.
    found: HashMap<RawExpr, Option<Form>>,
    /// Number of its statements.
    pub(super) len: usize,
    /// Number of splits.
    splits: usize,
    /// Extents of the grid, slowest first.
    pub(super) axes: Vec<ExtentRow>,
}

/// Two lets that split a coordinate off.
struct Split {
    coordinate: RawLocal,
    rest: RawLocal,
    axis: Count,
    /// The product of the axes outside.
    outside: Count,
}

impl<'r> Header<'r> {
    /// The header of a text.
    pub(super) fn of(raw: &'r Raw) -> Result<Header<'r>, Fault> {
        let (locals, found, axes) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut header = Header { raw, locals, found, len: 0, splits: 0, axes };
        let (total, line) = header.extents()?;
        let splits = header.all_splits(&total);
        let outermost = splits.last().map_or(&total, |split| &split.outside);
        let inner = splits.iter().rev().map(|split| &split.axis);
        let axes = [outermost].into_iter().chain(inner).map(Count::extent).collect::<Option<_>>();
        header.axes = axes.ok_or_else(|| Fault::new(line, "the product of the grid is more than its axes"))?;
        Ok(header)
    }

    /// Lets of extents up to the guard; gives the product of the grid, and the guard's line.
    fn extents(&mut self) -> Result<(Count, u32), Fault> {
        let raw = self.raw;
        for stmt in &raw.body {
            self.len += 1;
            match &stmt.what {
                What::Let { local, value } => self.bind(*local, *value, stmt.line)?,
                What::If { condition, then, otherwise } if leaves(then) && otherwise.is_empty() => {
                    return Ok((self.guard(*condition, stmt.line)?, stmt.line));
                }
                _ => return Err(Fault::new(stmt.line, "workgroups behind the grid have not left yet")),
            }
        }
        Err(Fault::new(0, "workgroups behind the grid never leave"))
    }

    fn bind(&mut self, local: RawLocal, value: RawExpr, line: u32) -> Result<(), Fault> {
        let fault = |what: &str| Err(Fault::new(line, what));
        let Some(form) = self.form(value) else {
            return fault("the header makes neither an extent nor the product of the grid");
        };
        match self.raw.locals.get(local.0 as usize) {
            Some(row) if row.ty == form.ty() && !row.mutable => {}
            _ => return fault("a local of the header has another type, or is mutable"),
        }
        match self.locals.insert(local, form) {
            None => Ok(()),
            Some(_) => fault("a local of the header is bound twice"),
        }
    }

    fn guard(&mut self, condition: RawExpr, line: u32) -> Result<Count, Fault> {
        let Some(Form::Beyond(count)) = self.form(condition) else {
            return Err(Fault::new(
                line,
                "the guard does not compare the workgroup's number with a product of extents",
            ));
        };
        // Numbers of the folded grid pass the product by less than the height.
        let most = u64::from(u32::MAX - MOST_GROUPS);
        match count.largest() {
            Some(largest) if largest <= most => Ok(count),
            _ => Err(Fault::new(line, "the product of the grid leaves 32 bits")),
        }
    }

    /// The splits behind the guard. A rest that the body uses is the outermost coordinate: what follows it, though it may
    /// look like a split, belongs to the body.
    fn all_splits(&mut self, total: &Count) -> Vec<Split> {
        let mut splits: Vec<Split> = Vec::new();
        while let Some(split) = self.split(splits.len(), splits.last().map_or(total, |split| &split.outside)) {
            self.locals.insert(split.coordinate, Form::Coordinate(splits.len()));
            self.locals.insert(split.rest, Form::Rest(splits.len() + 1));
            self.len += 2;
            splits.push(split);
        }
        let outermost = self.outermost(splits.len());
        for split in splits.drain(outermost..) {
            self.locals.remove(&split.coordinate);
            self.locals.remove(&split.rest);
            self.len -= 2;
        }
        self.found.clear();
        self.splits = outermost;
        splits
    }

    /// The two statements behind the header so far as a split of this rest.
    fn split(&mut self, rest: usize, product: &Count) -> Option<Split> {
        let raw = self.raw;
        let [first, second, ..] = raw.body.get(self.len..)? else { return None };
        let (coordinate, axis) = self.part(first, Operator::RemInt, rest)?;
        let (outer, same) = self.part(second, Operator::DivInt, rest)?;
        let fresh = |local| !self.locals.contains_key(&local);
        let sound = axis == same && coordinate != outer && fresh(coordinate) && fresh(outer);
        let outside = product.without(&axis).filter(|_| sound && axis.extent().is_some())?;
        Some(Split { coordinate, rest: outer, axis, outside })
    }

    /// A let of a rest's remainder or quotient, and by what.
    fn part(&mut self, stmt: &RawStmt, wanted: Operator, rest: usize) -> Option<(RawLocal, Count)> {
        let What::Let { local, value } = stmt.what else { return None };
        let row = self.raw.locals.get(local.0 as usize)?;
        let value = self.raw.exprs.get(value.0 as usize)?;
        if value.op != RawOp::Op(wanted) || row.ty != Type::Word || row.mutable {
            return None;
        }
        match (self.form(RawExpr(value.words[0]))?, self.form(RawExpr(value.words[1]))?) {
            (Form::Rest(found), Form::Count(by)) if found == rest => Some((local, by)),
            _ => None,
        }
    }

    /// The first rest that statements behind the header use, the last one if they use none.
    fn outermost(&self, last: usize) -> usize {
        let mut seen = vec![false; self.raw.exprs.len()];
        let mut blocks = vec![&self.raw.body[self.len..]];
        let mut first = last;
        while let Some(block) = blocks.pop() {
            blocks.extend(block.iter().flat_map(|stmt| stmt.what.blocks()));
            let mut stack: Vec<RawExpr> = block.iter().flat_map(|stmt| stmt.what.exprs()).collect();
            while let Some(x) = stack.pop() {
                if std::mem::replace(&mut seen[x.0 as usize], true) {
                    continue;
                }
                let row = &self.raw.exprs[x.0 as usize];
                stack.extend(row.operands());
                if let Some(Form::Rest(rest)) = self.leaf(row) {
                    first = first.min(rest);
                }
            }
        }
        first
    }

    /// What a leaf stands for.
    fn leaf(&self, row: &RawRow) -> Option<Form> {
        match row.op {
            RawOp::Number => Some(Form::Rest(0)),
            RawOp::Step => Some(Form::Step(row.words[0])),
            RawOp::Op(Operator::Int) => Some(Form::Count(Count::constant(row.words[0]))),
            RawOp::Op(Operator::Local) => self.locals.get(&RawLocal(row.words[0])).cloned(),
            _ => None,
        }
    }

    /// What an expression stands for; `None` if it is none of a header.
    fn form(&mut self, x: RawExpr) -> Option<Form> {
        if let Some(found) = self.found.get(&x) {
            return found.clone();
        }
        let raw = self.raw;
        let row = raw.exprs.get(x.0 as usize)?;
        let operands: Option<Vec<Form>> = row.operands().map(|y| self.form(y)).collect();
        let form = match operands {
            Some(operands) if !operands.is_empty() => combined(row.op, &operands),
            _ => self.leaf(row),
        };
        self.found.insert(x, form.clone());
        form
    }

    /// What a local or the number of the workgroup is behind the header.
    pub(super) fn meaning(&self, row: &RawRow) -> Option<Meaning> {
        match self.leaf(row)? {
            Form::Count(count) => count.extent().map(Meaning::Extent),
            Form::Rest(rest) if rest == self.splits => Some(Meaning::Group(0)),
            Form::Coordinate(split) => Some(Meaning::Group((self.splits - split) as u32)),
            _ => None,
        }
    }

    /// An expression as an extent.
    pub(super) fn extent(&mut self, x: RawExpr) -> Option<ExtentRow> {
        match self.form(x)? {
            Form::Count(count) => count.extent(),
            _ => None,
        }
    }

    /// Whether a local belongs to the header.
    pub(super) fn binds(&self, local: RawLocal) -> bool {
        self.locals.contains_key(&local)
    }
}

/// What a header gives to the body.
pub(super) enum Meaning {
    /// The value of an extent.
    Extent(ExtentRow),
    /// The coordinate along an axis.
    Group(u32),
}

/// What an operator makes of forms.
fn combined(op: RawOp, operands: &[Form]) -> Option<Form> {
    use Operator as O;
    match (op, operands) {
        (RawOp::Least, [Form::Step(place), Form::Count(most)]) => {
            let row = ExtentRow { scalar: Some(Dim(*place)), most: most.number()?, times: 1, per: 1 };
            Some(Form::Count(Count { constant: 1, rows: vec![row] }))
        }
        (RawOp::Op(O::MulInt), [Form::Count(x), Form::Count(y)]) => x.times(y).map(Form::Count),
        (RawOp::Op(O::AddInt), [Form::Count(x), Form::Count(by)]) => {
            let row = x.extent().filter(|row| row.scalar.is_some() && row.per == 1)?;
            row.largest()?.checked_add(by.number()?)?;
            Some(Form::Raised(row, by.number()?))
        }
        (RawOp::Op(O::DivInt), [Form::Raised(row, by), Form::Count(per)]) => {
            let per = per.number().filter(|&per| per.checked_sub(1) == Some(*by))?;
            Some(Form::Count(Count { constant: 1, rows: vec![ExtentRow { per, ..*row }] }))
        }
        (RawOp::Op(O::Below), [Form::Rest(0), Form::Count(count)]) => Some(Form::Within(count.clone())),
        (RawOp::Op(O::Not), [Form::Within(count)]) => Some(Form::Beyond(count.clone())),
        _ => None,
    }
}

/// Whether a block leaves the kernel and does nothing else.
fn leaves(block: &[RawStmt]) -> bool {
    matches!(block, [stmt] if stmt.what == What::Leave)
}
