//! The header of a text: the extents that the step chooses, the guard against workgroups behind the grid, and the
//! coordinates of the workgroup, split off its number from the innermost axis on.
//!
//! A text with several parts has no guard. Where the workgroup's number is below the count of the first part, it is that
//! part's; else the count is taken off, and the next part follows; behind the last part is nothing. The coordinates stand in
//! front of each part.
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
    /// What is left of the workgroup's number in its part after so many splits.
    Rest(usize),
    /// The workgroup's number in another part than the one that is being read.
    Elsewhere,
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
    parts: Vec<RawPart<'r>>,
    /// The local with the workgroup's number in the part that is being read; `None` if it is its number in the grid.
    number: Option<RawLocal>,
    /// Number of splits of that part.
    splits: usize,
}

/// A part of a text.
#[derive(Clone)]
struct RawPart<'r> {
    number: Option<RawLocal>,
    /// The number of its workgroups.
    count: Count,
    /// Its statements, splits included.
    statements: &'r [RawStmt],
    line: u32,
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
    /// The header of a text, up to its parts.
    pub(super) fn of(raw: &'r Raw) -> Result<Header<'r>, Fault> {
        let (locals, found, parts) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut header = Header { raw, locals, found, parts, number: None, splits: 0 };
        header.read()?;
        let mut counts = header.parts.iter().map(|part| part.count.largest());
        // Numbers of the folded grid pass the total by less than the height.
        let most = u64::from(u32::MAX - MOST_GROUPS);
        let total = counts.try_fold(0u64, |total, count| total.checked_add(count?));
        match total {
            Some(total) if total <= most => Ok(header),
            _ => Err(Fault::new(header.parts[0].line, "the product of the grid leaves 32 bits")),
        }
    }

    /// Lets of extents, then the guard or the first part.
    fn read(&mut self) -> Result<(), Fault> {
        let raw = self.raw;
        for (at, stmt) in raw.body.iter().enumerate() {
            let line = stmt.line;
            match &stmt.what {
                What::Let { local, value } => self.bind(*local, *value, line)?,
                What::If { condition, then, otherwise } if leaves(then) && otherwise.is_empty() => {
                    let (count, statements) = (self.guard(*condition, line)?, &raw.body[at + 1..]);
                    self.parts.push(RawPart { number: None, count, statements, line });
                    return Ok(());
                }
                What::If { .. } if at + 1 == raw.body.len() => return self.side_by_side(stmt),
                _ => return Err(Fault::new(line, "workgroups behind the grid have not left yet")),
            }
        }
        Err(Fault::new(0, "workgroups behind the grid never leave"))
    }

    /// Parts beside each other.
    fn side_by_side(&mut self, first: &'r RawStmt) -> Result<(), Fault> {
        let mut next = Some(first);
        while let Some(stmt) = next {
            let fault = || Fault::new(stmt.line, "workgroups behind the grid have not left yet");
            let What::If { condition, then, otherwise } = &stmt.what else { return Err(fault()) };
            let Some(Form::Within(count)) = self.form(*condition) else { return Err(fault()) };
            let (number, line) = (self.number, stmt.line);
            self.parts.push(RawPart { number, count: count.clone(), statements: then, line });
            next = match &otherwise[..] {
                [] => None,
                [rest, next] => {
                    self.rest(rest, &count)?;
                    Some(next)
                }
                _ => return Err(Fault::new(line, "what is no part stands behind this part")),
            };
        }
        match self.parts.len() {
            1 => Err(Fault::new(first.line, "a part stands alone in the place of the guard")),
            _ => Ok(()),
        }
    }

    /// The workgroup's number behind a part: the count of that part is taken off.
    fn rest(&mut self, stmt: &RawStmt, count: &Count) -> Result<(), Fault> {
        let fault = || Fault::new(stmt.line, "the part's count is not taken off the workgroup's number");
        let What::Let { local, value } = stmt.what else { return Err(fault()) };
        let value = self.raw.exprs[value.0 as usize];
        if value.op != RawOp::Op(Operator::SubInt) {
            return Err(fault());
        }
        match (self.form(RawExpr(value.words[0])), self.form(RawExpr(value.words[1]))) {
            (Some(Form::Rest(0)), Some(Form::Count(by))) if by == *count => {}
            _ => return Err(fault()),
        }
        let word = self.raw.locals.get(local.0 as usize).is_some_and(|row| row.ty == Type::Word && !row.mutable);
        if !word || self.locals.insert(local, Form::Elsewhere).is_some() {
            return Err(fault());
        }
        self.number = Some(local);
        self.found.clear();
        Ok(())
    }

    /// Number of parts.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Goes to a part: gives its axes, slowest first, and its statements behind the splits.
    pub(super) fn begin(&mut self, part: usize) -> Result<(Vec<ExtentRow>, &'r [RawStmt]), Fault> {
        let RawPart { number, count, statements, line } = self.parts[part].clone();
        self.locals.retain(|_, form| !matches!(form, Form::Rest(1..) | Form::Coordinate(_)));
        self.found.clear();
        self.number = number;
        let splits = self.all_splits(&count, statements);
        let outermost = splits.last().map_or(&count, |split| &split.outside);
        let inner = splits.iter().rev().map(|split| &split.axis);
        let axes = [outermost].into_iter().chain(inner).map(Count::extent).collect::<Option<_>>();
        let axes = axes.ok_or_else(|| Fault::new(line, "the product of the grid is more than its axes"))?;
        Ok((axes, &statements[2 * splits.len()..]))
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
        match self.form(condition) {
            Some(Form::Beyond(count)) => Ok(count),
            _ => Err(Fault::new(line, "the guard does not compare the workgroup's number with a product of extents")),
        }
    }

    /// The splits in front of a part. A rest that the body uses is the outermost coordinate: what follows it, though it may
    /// look like a split, belongs to the body.
    fn all_splits(&mut self, count: &Count, statements: &[RawStmt]) -> Vec<Split> {
        let mut splits: Vec<Split> = Vec::new();
        loop {
            let (product, behind) = (splits.last().map_or(count, |s| &s.outside), &statements[2 * splits.len()..]);
            let Some(split) = self.split(splits.len(), product, behind) else { break };
            self.locals.insert(split.coordinate, Form::Coordinate(splits.len()));
            self.locals.insert(split.rest, Form::Rest(splits.len() + 1));
            splits.push(split);
        }
        let outermost = self.outermost(splits.len(), &statements[2 * splits.len()..]);
        for split in splits.drain(outermost..) {
            self.locals.remove(&split.coordinate);
            self.locals.remove(&split.rest);
        }
        self.found.clear();
        self.splits = outermost;
        splits
    }

    /// The first two of these statements as a split of this rest.
    fn split(&mut self, rest: usize, product: &Count, behind: &[RawStmt]) -> Option<Split> {
        let [first, second, ..] = behind else { return None };
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

    /// The first rest that statements behind the splits use, the last one if they use none.
    fn outermost(&self, last: usize, behind: &[RawStmt]) -> usize {
        let mut seen = vec![false; self.raw.exprs.len()];
        let mut blocks = vec![behind];
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
            RawOp::Number if self.number.is_none() => Some(Form::Rest(0)),
            RawOp::Op(Operator::Local) if self.number == Some(RawLocal(row.words[0])) => Some(Form::Rest(0)),
            RawOp::Step => Some(Form::Step(row.words[0])),
            RawOp::Op(Operator::Int) => Some(Form::Count(Count::constant(row.words[0]))),
            RawOp::Op(Operator::Local) => match self.locals.get(&RawLocal(row.words[0]))? {
                Form::Rest(0) if self.number.is_some() => Some(Form::Elsewhere),
                form => Some(form.clone()),
            },
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
