//! Running a kernel.

use ds4_ir::Dim;

use crate::kernel::{Access, Block, Expr, ExtentRow, Kernel, Local, Memory, MemoryRow, Operator, Space, Stmt, verify};

use super::domain::{Domain, Value};
use super::memory::{BufferLog, Cells, Log};
use super::program::Program;
use super::trap::{Check, Refused, Trap};

/// Most workgroups of one run.
const MOST_WORKGROUPS: u64 = 1 << 22;
const MASKED: u32 = u32::MAX;

/// The order in which lanes (and workgroups) run between two meetings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneOrder {
    /// Lane 0 first.
    Ascending,
    /// Lane 0 last.
    Descending,
}

impl LaneOrder {
    /// Both orders.
    pub const ALL: [LaneOrder; 2] = [LaneOrder::Ascending, LaneOrder::Descending];

    fn pick(self, i: u64, count: u64) -> u64 {
        match self {
            LaneOrder::Ascending => i,
            LaneOrder::Descending => count - 1 - i,
        }
    }
}

/// A kernel with what runs it.
pub struct Machine<'k, D: Domain> {
    kernel: &'k Kernel,
    domain: &'k D,
    program: Program,
    order: LaneOrder,
    /// For each statement its line, if there is a text.
    lines: &'k [u32],
}

impl<'k, D: Domain> Machine<'k, D> {
    /// A machine for a kernel; verifies it.
    pub fn new(kernel: &'k Kernel, domain: &'k D, order: LaneOrder) -> Result<Self, crate::kernel::Wrong> {
        verify(kernel)?;
        Ok(Self::of_verified(kernel, domain, order))
    }

    /// A machine for a kernel that has passed [`verify`], or that a test has broken in a way the machine has to find.
    pub(crate) fn of_verified(kernel: &'k Kernel, domain: &'k D, order: LaneOrder) -> Self {
        Machine { kernel, domain, program: Program::of(kernel), order, lines: &[] }
    }

    /// The same machine, whose traps name the line of a statement: of a kernel that was read, [`Reading::lines`].
    ///
    /// [`Reading::lines`]: crate::read::Reading::lines
    pub fn with_lines(self, lines: &'k [u32]) -> Self {
        Machine { lines, ..self }
    }

    /// Runs the whole grid. `cells` are the arguments' memories in the order of [`Kernel::arguments`]; `scalar` is the value
    /// of a dimension in this step. After a trap the cells hold what was written so far.
    pub fn run(&self, scalar: &dyn Fn(Dim) -> u32, cells: &mut [Cells<D>]) -> Result<(), Trap> {
        let wrong = |message: String| self.trap(None, Refused::new(Check::Arguments, message));
        let arguments = self.kernel.arguments().count();
        if cells.len() != arguments {
            return Err(wrong(format!("{} memories for {arguments} arguments", cells.len())));
        }
        let value = |row: &ExtentRow| row.value(row.scalar.map_or(row.most, scalar)).unwrap_or(0);
        let extents: Vec<u32> = self.kernel.extents.iter().map(value).collect();
        let grid = self.kernel.grid_in(scalar).ok_or_else(|| wrong("the grid leaves 32 bits".into()))?;
        let total = grid.total();
        if total > MOST_WORKGROUPS {
            return Err(wrong(format!("{total} workgroups; available {MOST_WORKGROUPS}")));
        }
        let mut state = State::new(self, cells, extents);
        for i in 0..total {
            let number = self.order.pick(i, total);
            let Some((part, group)) = grid.place(number) else { continue };
            state.begin(group, number as u32);
            let active = vec![true; self.kernel.lanes as usize];
            state
                .block(self.kernel.parts[part].body, &active)
                .map_err(|refused| self.trap(state.statement, refused))?;
        }
        Ok(())
    }

    fn trap(&self, statement: Option<usize>, refused: Refused) -> Trap {
        let line = statement.and_then(|at| self.lines.get(at)).copied();
        Trap { check: refused.check, kernel: self.kernel.name.clone(), statement, line, message: refused.message }
    }
}

type Done = Result<(), Refused>;

/// A loop in this step.
#[derive(Clone, Copy)]
struct Loop {
    index: Local,
    end: u32,
    step: u32,
    body: Block,
}

struct State<'a, 'k, D: Domain> {
    machine: &'a Machine<'k, D>,
    arguments: &'a mut [Cells<D>],
    /// Those of arguments that are only read are empty.
    argument_logs: Vec<BufferLog>,
    shared: Vec<Cells<D>>,
    shared_logs: Vec<Log>,
    /// For each memory whether it is shared, and its place in the list of its kind.
    places: Vec<(bool, usize)>,
    extents: Vec<u32>,
    group: Vec<u32>,
    /// Number of this workgroup in the grid.
    number: u32,
    /// Locals of each lane.
    locals: Vec<Vec<Option<Value<D>>>>,
    /// Values of expressions within one statement.
    scratch: Vec<Option<Value<D>>>,
    statement: Option<usize>,
}

impl<'a, 'k, D: Domain> State<'a, 'k, D> {
    fn new(machine: &'a Machine<'k, D>, arguments: &'a mut [Cells<D>], extents: Vec<u32>) -> Self {
        let (mut buffers, mut arrays) = (0, 0);
        let place = |space: Space| {
            let count = if space == Space::Workgroup { &mut arrays } else { &mut buffers };
            *count += 1;
            (space == Space::Workgroup, *count - 1)
        };
        let places = machine.kernel.memories.iter().map(|row| row.space).map(place).collect();
        let log = |(cells, row): (&Cells<D>, &MemoryRow)| {
            BufferLog::new(if row.access == Access::Read { 0 } else { cells.len() })
        };
        let rows = machine.kernel.arguments().map(|(_, _, row)| row);
        let argument_logs = arguments.iter().zip(rows).map(log).collect();
        State {
            machine,
            arguments,
            argument_logs,
            shared: Vec::new(),
            shared_logs: Vec::new(),
            places,
            extents,
            group: Vec::new(),
            number: 0,
            locals: Vec::new(),
            scratch: vec![None; machine.kernel.exprs.len()],
            statement: None,
        }
    }

    fn begin(&mut self, group: Vec<u32>, number: u32) {
        let kernel = self.machine.kernel;
        self.group = group;
        self.number = number;
        self.argument_logs.iter_mut().for_each(BufferLog::meet);
        let arrays = kernel.memories.iter().filter(|row| row.space == Space::Workgroup);
        self.shared = arrays.clone().map(|row| Cells::unwritten(row.len as usize)).collect();
        self.shared_logs = arrays.map(|row| Log::of_lanes(row.len as usize)).collect();
        self.locals = vec![vec![None; kernel.locals.len()]; kernel.lanes as usize];
    }

    /// Runs a block with the active lanes: what lies between two meetings lane by lane.
    fn block(&mut self, block: Block, active: &[bool]) -> Done {
        let statements = self.machine.kernel.statements(block);
        let mut at = statements.start;
        while at < statements.end {
            if self.machine.program.meets[at] {
                self.together(at, active)?;
                at += 1;
                continue;
            }
            let rest = at..statements.end;
            let end = rest.clone().find(|&i| self.machine.program.meets[i]).unwrap_or(rest.end);
            for lane in self.lanes(active) {
                (at..end).try_for_each(|i| self.alone(i, lane))?;
            }
            at = end;
        }
        Ok(())
    }

    /// The active lanes in the machine's order.
    fn lanes(&self, active: &[bool]) -> Vec<usize> {
        let count = active.len() as u64;
        let picked = (0..count).map(|i| self.machine.order.pick(i, count) as usize);
        picked.filter(|&lane| active[lane]).collect()
    }

    /// A statement in which lanes meet.
    fn together(&mut self, at: usize, active: &[bool]) -> Done {
        self.statement = Some(at);
        match self.machine.kernel.stmts[at] {
            Stmt::Barrier { buffers } => {
                self.all_are_here(active, "barrier")?;
                self.shared_logs.iter_mut().for_each(Log::meet);
                if buffers {
                    self.argument_logs.iter_mut().for_each(BufferLog::meet);
                }
                Ok(())
            }
            Stmt::Shuffle { local, value, distance, .. } => {
                self.all_are_here(active, "shuffle")?;
                self.shuffle(at, local, value, distance as usize)
            }
            Stmt::If { condition, then, otherwise } => {
                let mut yes = vec![false; active.len()];
                for lane in self.lanes(active) {
                    self.evaluate(at, lane)?;
                    yes[lane] = self.truth(condition)?;
                }
                let no: Vec<bool> = yes.iter().zip(active).map(|(yes, active)| !yes & active).collect();
                self.block_of_some(then, &yes)?;
                self.block_of_some(otherwise, &no)
            }
            Stmt::Present { id, index, then, otherwise } => {
                let (mut yes, mut no) = (vec![false; active.len()], vec![false; active.len()]);
                for lane in self.lanes(active) {
                    match self.present(at, lane, id, index)? {
                        true => yes[lane] = true,
                        false => no[lane] = true,
                    }
                }
                self.block_of_some(then, &yes)?;
                self.block_of_some(otherwise, &no)
            }
            Stmt::For { index, start, end, step, body } => {
                let end = self.extents[end.0 as usize];
                self.repeat(at, start, Loop { index, end, step, body }, active)
            }
            _ => Err(Refused::new(Check::Diverged, "lanes do not meet in this statement")),
        }
    }

    fn block_of_some(&mut self, block: Block, active: &[bool]) -> Done {
        if active.contains(&true) { self.block(block, active) } else { Ok(()) }
    }

    fn all_are_here(&self, active: &[bool], what: &str) -> Done {
        match active.iter().position(|a| !a) {
            Some(lane) => Err(Refused::new(Check::Diverged, format!("lane {lane} does not reach this {what}"))),
            None => Ok(()),
        }
    }

    fn shuffle(&mut self, at: usize, local: Local, value: Expr, distance: usize) -> Done {
        let mut offered = Vec::with_capacity(self.locals.len());
        for lane in 0..self.locals.len() {
            self.evaluate(at, lane)?;
            offered.push(self.scratch[value.0 as usize]);
        }
        for lane in 0..self.locals.len() {
            self.locals[lane][local.0 as usize] = offered[lane ^ distance];
        }
        Ok(())
    }

    fn repeat(&mut self, at: usize, start: Expr, repeated: Loop, active: &[bool]) -> Done {
        let Loop { index, end, step, body } = repeated;
        let mut next = vec![u32::MAX; active.len()];
        for lane in self.lanes(active) {
            self.evaluate(at, lane)?;
            next[lane] = self.word(start)?;
        }
        loop {
            let running: Vec<bool> = (0..active.len()).map(|l| active[l] && next[l] < end).collect();
            if !running.contains(&true) {
                return Ok(());
            }
            for lane in self.lanes(&running) {
                self.locals[lane][index.0 as usize] = Some(Value::I(self.machine.domain.int(next[lane])));
                next[lane] = next[lane].saturating_add(step);
            }
            self.block(body, &running)?;
        }
    }

    /// A statement of one lane.
    fn alone(&mut self, at: usize, lane: usize) -> Done {
        self.statement = Some(at);
        self.evaluate(at, lane)?;
        match self.machine.kernel.stmts[at] {
            Stmt::Let { local, value } | Stmt::Var { local, value } | Stmt::Set { local, value } => {
                self.locals[lane][local.0 as usize] = self.scratch[value.0 as usize];
                Ok(())
            }
            Stmt::Load { local, memory, index } => {
                let value = self.load(memory, index, lane)?;
                self.locals[lane][local.0 as usize] = Some(value);
                Ok(())
            }
            Stmt::Store { memory, index, value } => self.store(memory, index, value, lane),
            Stmt::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition)? { then } else { otherwise };
                self.block_alone(chosen, lane)
            }
            Stmt::Present { id, index, then, otherwise } => {
                let chosen = if self.present(at, lane, id, index)? { then } else { otherwise };
                self.block_alone(chosen, lane)
            }
            Stmt::For { index, start, end, step, body } => {
                let end = self.extents[end.0 as usize];
                let mut i = self.word(start)?;
                while i < end {
                    self.locals[lane][index.0 as usize] = Some(Value::I(self.machine.domain.int(i)));
                    self.block_alone(body, lane)?;
                    i = i.saturating_add(step);
                }
                Ok(())
            }
            Stmt::Barrier { .. } | Stmt::Shuffle { .. } => {
                Err(Refused::new(Check::Diverged, "one lane alone comes to a meeting"))
            }
        }
    }

    fn block_alone(&mut self, block: Block, lane: usize) -> Done {
        self.machine.kernel.statements(block).try_for_each(|at| self.alone(at, lane))
    }

    /// Binds the index of an id that is not masked.
    fn present(&mut self, at: usize, lane: usize, id: Expr, index: Local) -> Result<bool, Refused> {
        self.evaluate(at, lane)?;
        let present = self.word(id)? != MASKED;
        self.locals[lane][index.0 as usize] = self.scratch[id.0 as usize].filter(|_| present);
        Ok(present)
    }

    /// The element that an index means: checked against the memory's length.
    fn element(&self, memory: Memory, index: Expr) -> Result<usize, Refused> {
        let at = self.word(index)? as usize;
        let (shared, place) = self.places[memory.0 as usize];
        let len = if shared { self.shared[place].len() } else { self.arguments[place].len() };
        if at < len {
            return Ok(at);
        }
        let name = &self.machine.kernel.memories[memory.0 as usize].name;
        Err(Refused::new(Check::OutOfBounds, format!("element {at} of `{name}`, which has {len}")))
    }

    fn load(&mut self, memory: Memory, index: Expr, lane: usize) -> Result<Value<D>, Refused> {
        let at = self.element(memory, index)?;
        let row = &self.machine.kernel.memories[memory.0 as usize];
        let (shared, place) = self.places[memory.0 as usize];
        let cells = if shared { &self.shared[place] } else { &self.arguments[place] };
        let value = cells.get(self.machine.domain, at, row.element).ok_or_else(|| {
            Refused::new(Check::Unwritten, format!("element {at} of `{}` is read and nothing has written it", row.name))
        })?;
        if shared {
            self.shared_logs[place].read(at, lane as u32)?;
        } else if row.access != Access::Read {
            self.argument_logs[place].read(at, self.number, lane as u32)?;
        }
        Ok(value)
    }

    fn store(&mut self, memory: Memory, index: Expr, value: Expr, lane: usize) -> Done {
        let at = self.element(memory, index)?;
        let Some(value) = self.scratch[value.0 as usize] else { return Err(unknown("a value to store")) };
        let (shared, place) = self.places[memory.0 as usize];
        if shared {
            self.shared_logs[place].write(at, lane as u32)?;
            self.shared[place].put(at, value);
        } else {
            self.argument_logs[place].write(at, self.number, lane as u32)?;
            self.arguments[place].put(at, value);
        }
        Ok(())
    }

    fn word(&self, x: Expr) -> Result<u32, Refused> {
        match self.scratch[x.0 as usize] {
            Some(Value::I(word)) => self.machine.domain.known(word).ok_or_else(|| unknown("an index, start or id")),
            _ => Err(unknown("an index, start or id")),
        }
    }

    fn truth(&self, x: Expr) -> Result<bool, Refused> {
        match self.scratch[x.0 as usize] {
            Some(Value::B(truth)) => self.machine.domain.holds(truth).ok_or_else(|| unknown("a condition")),
            _ => Err(unknown("a condition")),
        }
    }

    /// Evaluates the expressions of a statement for a lane.
    fn evaluate(&mut self, at: usize, lane: usize) -> Done {
        let machine = self.machine;
        for &x in &machine.program.orders[at] {
            self.scratch[x.0 as usize] = Some(self.expression(x, lane)?);
        }
        Ok(())
    }

    fn expression(&self, x: Expr, lane: usize) -> Result<Value<D>, Refused> {
        use Operator as O;
        let d = self.machine.domain;
        let row = self.machine.kernel.expr(x);
        let word = row.words[0];
        let f = |i: usize| match self.scratch[row.words[i] as usize] {
            Some(Value::F(x)) => Ok(x),
            _ => Err(unknown("an operand")),
        };
        let w = |i: usize| match self.scratch[row.words[i] as usize] {
            Some(Value::I(x)) => Ok(x),
            _ => Err(unknown("an operand")),
        };
        let b = |i: usize| match self.scratch[row.words[i] as usize] {
            Some(Value::B(x)) => Ok(x),
            _ => Err(unknown("an operand")),
        };
        let divisor = || d.known(w(1)?).ok_or_else(|| unknown("a divisor"));
        Ok(match row.op {
            O::Float => Value::F(d.float(word)),
            O::Int => Value::I(d.int(word)),
            O::Truth => Value::B(d.equal_int(d.int(word), d.int(1))),
            O::Local => self.locals[lane][word as usize].ok_or_else(|| unknown("a local"))?,
            O::Extent => Value::I(d.int(self.extents[word as usize])),
            O::Group => Value::I(d.int(self.group[word as usize])),
            O::Lane => Value::I(d.int(lane as u32)),
            O::Masked => Value::I(d.int(MASKED)),
            O::Add => Value::F(d.add(f(0)?, f(1)?)),
            O::Sub => Value::F(d.sub(f(0)?, f(1)?)),
            O::Mul => Value::F(d.mul(f(0)?, f(1)?)),
            O::Div => Value::F(d.div(f(0)?, f(1)?)),
            O::Sqrt => Value::F(d.sqrt(f(0)?)),
            O::Neg => Value::F(d.neg(f(0)?)),
            O::Abs => Value::F(d.abs(f(0)?)),
            O::Floor => Value::F(d.floor(f(0)?)),
            O::Ceil => Value::F(d.ceil(f(0)?)),
            O::Trunc => Value::F(d.trunc(f(0)?)),
            O::RoundEven => Value::F(d.round_even(f(0)?)),
            O::Bits => Value::I(d.bits(f(0)?)),
            O::FromBits => Value::F(d.from_bits(w(0)?)),
            O::FloatOf => Value::F(d.rounded_float_of(w(0)?)),
            O::IntOf => Value::I(d.int_of(f(0)?)),
            O::AddInt => Value::I(d.add_int(w(0)?, w(1)?)),
            O::SubInt => Value::I(d.sub_int(w(0)?, w(1)?)),
            O::MulInt => Value::I(d.mul_int(w(0)?, w(1)?)),
            O::DivInt => Value::I(d.div_int(w(0)?, divisor()?).ok_or_else(|| unknown("a dividend"))?),
            O::RemInt => Value::I(d.rem_int(w(0)?, divisor()?).ok_or_else(|| unknown("a dividend"))?),
            O::And => Value::I(d.and(w(0)?, w(1)?)),
            O::Or => Value::I(d.or(w(0)?, w(1)?)),
            O::Xor => Value::I(d.xor(w(0)?, w(1)?)),
            O::Shl => Value::I(d.shl(w(0)?, w(1)?)),
            O::Shr => Value::I(d.shr(w(0)?, w(1)?)),
            O::Sar => Value::I(d.sar(w(0)?, w(1)?)),
            O::DotBytes => Value::I(d.dot_bytes(w(0)?, w(1)?)),
            O::Less => Value::B(d.less(f(0)?, f(1)?)),
            O::Equal => Value::B(d.equal(f(0)?, f(1)?)),
            O::LessInt => Value::B(d.less_int(w(0)?, w(1)?)),
            O::Below => Value::B(d.below(w(0)?, w(1)?)),
            O::EqualInt => Value::B(d.equal_int(w(0)?, w(1)?)),
            O::Both => Value::B(d.both(b(0)?, b(1)?)),
            O::Either => Value::B(d.either(b(0)?, b(1)?)),
            O::Not => Value::B(d.not(b(0)?)),
            O::Select => Value::F(d.select(b(0)?, f(1)?, f(2)?)),
            O::SelectInt => Value::I(d.select_int(b(0)?, w(1)?, w(2)?)),
            O::IdWhere => Value::I(d.select_int(b(0)?, w(1)?, d.int(MASKED))),
        })
    }
}

fn unknown(what: &str) -> Refused {
    Refused::new(Check::Unknown, format!("the domain does not know {what}"))
}
