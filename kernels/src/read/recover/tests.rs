//! Headers that all texts have, and one text for each refusal.

use ds4_ir::Dim;

use crate::kernel::{Access, ExtentRow, Operator, Source, Space, Stmt, Type};
use crate::machine::{Cells, Check, LaneOrder, Machine};
use crate::read::raw::{Raw, RawExpr, RawLocal, RawMemory, RawMemoryRow, RawOp, RawRow, RawStmt, What};
use crate::read::{Fault, Reading};
use crate::tests::bench::D;

use super::recover;

/// A text that is being made; each statement gets the next line.
#[derive(Default)]
struct Text {
    raw: Raw,
    line: u32,
}

impl Text {
    /// A text with one argument of words, `out`, and an array of the workgroup, `cells`.
    fn new() -> Text {
        let mut text = Text::default();
        text.raw.lanes = 8;
        text.raw.name = "made".into();
        for (name, len) in [("out", None), ("cells", Some(16))] {
            let access = Access::ReadWrite;
            text.raw.memories.push(RawMemoryRow { name: name.into(), element: Type::Word, access, len });
        }
        text
    }

    /// The text behind `let extent0 = ..` and the guard of a grid of one axis.
    fn with_one_axis() -> (Text, RawExpr) {
        let mut text = Text::new();
        let extent = text.least(2, 8);
        let extent = text.bind("extent0", extent);
        text.guard(extent);
        (text, extent)
    }

    fn word(&mut self, n: u32) -> RawExpr {
        self.raw.leaf(Operator::Int, n)
    }

    fn number(&mut self) -> RawExpr {
        self.raw.node(RawOp::Number, [0; 3])
    }

    fn lane(&mut self) -> RawExpr {
        self.raw.leaf(Operator::Lane, 0)
    }

    fn op(&mut self, op: Operator, x: RawExpr, y: RawExpr) -> RawExpr {
        self.raw.operation(op, &[x, y])
    }

    fn by(&mut self, op: Operator, x: RawExpr, n: u32) -> RawExpr {
        let n = self.word(n);
        self.op(op, x, n)
    }

    fn least(&mut self, place: u32, most: u32) -> RawExpr {
        let (step, most) = (self.raw.node(RawOp::Step, [place, 0, 0]), self.word(most));
        self.raw.node(RawOp::Least, [step.0, most.0, 0])
    }

    /// `(least(step[place], most) * times + (per - 1)) / per`
    fn ceil(&mut self, place: u32, most: u32, times: u32, per: u32) -> RawExpr {
        let least = self.least(place, most);
        let product = self.by(Operator::MulInt, least, times);
        let raised = self.by(Operator::AddInt, product, per - 1);
        self.by(Operator::DivInt, raised, per)
    }

    fn statement(&mut self, what: What) -> RawStmt {
        self.line += 1;
        RawStmt { line: self.line, what }
    }

    fn push(&mut self, what: What) {
        let stmt = self.statement(what);
        self.raw.body.push(stmt);
    }

    fn local(&mut self, name: &str) -> RawLocal {
        self.raw.local(Type::Word, name, false)
    }

    fn bind(&mut self, name: &str, value: RawExpr) -> RawExpr {
        let local = self.local(name);
        self.push(What::Let { local, value });
        self.raw.local_value(local)
    }

    fn guard(&mut self, product: RawExpr) {
        let number = self.number();
        let within = self.op(Operator::Below, number, product);
        let condition = self.raw.operation(Operator::Not, &[within]);
        let leave = RawStmt { line: self.line + 1, what: What::Leave };
        self.push(What::If { condition, then: vec![leave], otherwise: vec![] });
    }

    /// The coordinate and the rest.
    fn split(&mut self, rest: RawExpr, extent: RawExpr) -> (RawExpr, RawExpr) {
        let at = self.op(Operator::RemInt, rest, extent);
        let at = self.bind("at", at);
        let outside = self.op(Operator::DivInt, rest, extent);
        (at, self.bind("rest", outside))
    }

    fn store(&mut self, index: RawExpr, value: RawExpr) {
        self.push(What::Store { memory: RawMemory(0), index, value });
    }

    fn read(self) -> Result<Reading, Fault> {
        recover(self.raw)
    }

    /// The refusal; its line is that of the last statement but `before`.
    #[track_caller]
    fn refused(self, before: u32) -> String {
        let line = self.line - before;
        let fault = self.read().unwrap_err();
        assert_eq!(fault.line, line, "{fault}");
        fault.what
    }
}

fn row(place: u32, most: u32, times: u32, per: u32) -> ExtentRow {
    ExtentRow { scalar: Some(Dim(place)), most, times, per }
}

fn grid(reading: &Reading) -> Vec<ExtentRow> {
    reading.kernel.parts[0].grid.iter().map(|e| reading.kernel.extents[e.0 as usize]).collect()
}

/// `number` itself is the coordinate; an extent is a value and a loop's end; lines are kept.
#[test]
fn a_grid_of_one_axis() {
    let mut t = Text::new();
    let rounded = t.ceil(2, 8, 5, 16);
    let extent0 = t.bind("extent0", rounded);
    let least = t.least(3, 7);
    let extent1 = t.bind("extent1", least);
    t.guard(extent0);
    let number = t.number();
    let (i, sum) = (t.local("i"), t.raw.local(Type::Word, "sum", true));
    t.push(What::Var { local: sum, value: number });
    let lane = t.lane();
    let (now, index) = (t.raw.local_value(sum), t.raw.local_value(i));
    let more = t.op(Operator::AddInt, now, index);
    let set = t.statement(What::Set { local: sum, value: more });
    t.push(What::For { index: i, start: lane, end: extent1, step: 8, body: vec![set] });
    let at = t.op(Operator::AddInt, extent1, lane);
    t.store(at, now);
    let reading = t.read().unwrap();
    let kernel = &reading.kernel;
    assert_eq!(grid(&reading), [row(2, 8, 5, 16)]);
    assert_eq!(kernel.extents, [row(2, 8, 5, 16), row(3, 7, 1, 1)]);
    assert_eq!(kernel.locals.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["sum", "i"]);
    assert_eq!(reading.lines, [5, 4, 6, 7], "the body of the loop, then the kernel's");
    assert!(kernel.exprs.iter().any(|row| row.op == Operator::Group));
    assert!(kernel.exprs.iter().any(|row| row.op == Operator::Extent));
    assert_eq!(kernel.memories[0].space, Space::Buffer(Source::Argument(0)));
    assert_eq!((kernel.memories[1].space, kernel.memories[1].len), (Space::Workgroup, 16));
    assert_eq!((kernel.name.as_str(), kernel.lanes), ("made", 8));
}

/// Three axes with constants between extents, their product as a front end folds it: the constants multiplied first.
#[test]
fn folded_products_are_compared_by_their_factors() {
    for folded in [false, true] {
        let mut t = Text::new();
        let rounded = t.ceil(2, 8, 5, 16);
        let extent = t.bind("extent0", rounded);
        let (three, four) = (t.word(3), t.word(4));
        let product = if folded {
            t.by(Operator::MulInt, extent, 12)
        } else {
            let outer = t.op(Operator::MulInt, three, extent);
            t.op(Operator::MulInt, outer, four)
        };
        t.guard(product);
        let number = t.number();
        let (inner, rest) = t.split(number, four);
        let (middle, outer) = t.split(rest, extent);
        let index = t.op(Operator::AddInt, inner, middle);
        t.store(index, outer);
        let reading = t.read().unwrap();
        assert_eq!(grid(&reading), [ExtentRow::constant(3), row(2, 8, 5, 16), ExtentRow::constant(4)]);
        let [Stmt::Store { index, value, .. }] = reading.kernel.stmts[..] else { panic!("{:?}", reading.kernel.stmts) };
        let group = |axis: u32| (Operator::Group, axis);
        let leaf = |x: crate::kernel::Expr| (reading.kernel.expr(x).op, reading.kernel.expr(x).words[0]);
        let sum: Vec<_> = reading.kernel.expr(index).operands().map(leaf).collect();
        assert_eq!((sum, leaf(value)), (vec![group(2), group(1)], group(0)));
        assert_eq!(reading.lines, [7]);
    }
}

/// The factor of an extent without divisor may stand in the product or in the extent: the axis outside is the same.
#[test]
fn an_axis_outside_keeps_its_factor() {
    let mut t = Text::new();
    let least = t.least(2, 8);
    let five = t.by(Operator::MulInt, least, 5);
    let product = t.by(Operator::MulInt, five, 3);
    t.guard(product);
    let (number, three) = (t.number(), t.word(3));
    let (inner, outer) = t.split(number, three);
    t.store(inner, outer);
    assert_eq!(grid(&t.read().unwrap()), [row(2, 8, 5, 1), ExtentRow::constant(3)]);
}

/// Constants that stand directly: as grid, as end of a loop, and as the value of a name.
#[test]
fn constants_need_no_let() {
    let mut t = Text::new();
    let five = t.word(5);
    t.guard(five);
    let (i, number) = (t.local("i"), t.number());
    t.push(What::For { index: i, start: number, end: five, step: 1, body: vec![] });
    let reading = t.read().unwrap();
    assert_eq!((grid(&reading), reading.kernel.extents.len()), (vec![ExtentRow::constant(5)], 1));

    // A kernel without axes is one workgroup; its product has a name here.
    let mut t = Text::new();
    let one = t.word(1);
    let total = t.bind("total", one);
    t.guard(total);
    let lane = t.lane();
    t.store(lane, total);
    let reading = t.read().unwrap();
    assert!(reading.kernel.exprs.iter().any(|row| row.op == Operator::Int && row.words[0] == 1));
}

/// A body that takes its coordinate apart looks like a header that does; the number's further use tells.
#[test]
fn a_body_may_divide_its_coordinate() {
    let axes = |number_is_used: bool, by: u32| {
        let mut t = Text::new();
        let product = t.word(12);
        t.guard(product);
        let (number, by) = (t.number(), t.word(by));
        let (inner, outer) = t.split(number, by);
        let index = if number_is_used { t.op(Operator::AddInt, inner, number) } else { inner };
        t.store(index, outer);
        let reading = t.read().unwrap();
        (grid(&reading).iter().map(|row| row.is_constant().unwrap()).collect::<Vec<_>>(), reading.lines.len())
    };
    assert_eq!(axes(false, 4), (vec![3, 4], 1));
    assert_eq!(axes(true, 4), (vec![12], 3));
    assert_eq!(axes(false, 5), (vec![12], 3));
}

/// What the header lacks or has too much of; the fault names its line.
#[test]
fn headers_that_do_something_else_are_refused() {
    let mut t = Text::new();
    let lane = t.lane();
    t.store(lane, lane);
    assert!(t.refused(0).contains("have not left yet"));

    let mut t = Text::new();
    let least = t.least(2, 8);
    t.bind("extent0", least);
    let fault = t.read().unwrap_err();
    assert_eq!((fault.line, fault.what.as_str()), (0, "workgroups behind the grid never leave"));

    // Not a coordinate, not an extent: the lane; a word of the block without bound as loop end; other roundings.
    let neither = |make: &dyn Fn(&mut Text) -> RawExpr| {
        let mut t = Text::new();
        let value = make(&mut t);
        t.bind("extent0", value);
        t.refused(0)
    };
    let wanted = "the header makes neither an extent nor the product of the grid";
    assert_eq!(neither(&|t| t.lane()), wanted);
    let rounded = |by: u32, per: u32| {
        move |t: &mut Text| {
            let least = t.least(2, 8);
            let raised = t.by(Operator::AddInt, least, by);
            t.by(Operator::DivInt, raised, per)
        }
    };
    assert_eq!(neither(&rounded(14, 16)), wanted);
    assert_eq!(neither(&rounded(u32::MAX, 0)), wanted);
    assert_eq!(neither(&rounded(u32::MAX - 3, u32::MAX - 2)), wanted, "the sum wraps");
}

#[test]
fn guards_that_compare_something_else_are_refused() {
    let guard = |make: &dyn Fn(&mut Text) -> RawExpr| {
        let mut t = Text::new();
        let condition = make(&mut t);
        let leave = RawStmt { line: 1, what: What::Leave };
        t.push(What::If { condition, then: vec![leave], otherwise: vec![] });
        t.refused(0)
    };
    let wanted = "the guard does not compare the workgroup's number with a product of extents";
    assert_eq!(guard(&|t| t.raw.leaf(Operator::Truth, 1)), wanted);
    let compared = |op: Operator, flipped: bool, opposite: bool| {
        move |t: &mut Text| {
            let (number, eight) = (t.number(), t.word(8));
            let (x, y) = if flipped { (eight, number) } else { (number, eight) };
            let condition = t.op(op, x, y);
            if opposite { t.raw.operation(Operator::Not, &[condition]) } else { condition }
        }
    };
    assert_eq!(guard(&compared(Operator::Below, false, false)), wanted);
    assert_eq!(guard(&compared(Operator::Below, true, true)), wanted);
    assert_eq!(guard(&compared(Operator::LessInt, false, true)), wanted);
    let huge = |t: &mut Text| {
        let (number, most) = (t.number(), t.least(2, 65_537));
        let product = t.by(Operator::MulInt, most, 65_535);
        let within = t.op(Operator::Below, number, product);
        t.raw.operation(Operator::Not, &[within])
    };
    assert_eq!(guard(&huge), "the product of the grid leaves 32 bits");
}

/// What is left when the axes that are split off are taken out has to be one extent.
#[test]
fn a_product_of_more_than_its_axes_is_refused() {
    let mut t = Text::new();
    let (x, y) = (t.least(2, 8), t.least(3, 8));
    let product = t.op(Operator::MulInt, x, y);
    t.guard(product);
    assert_eq!(t.refused(0), "the product of the grid is more than its axes");

    let mut t = Text::new();
    let rounded = t.ceil(2, 8, 5, 16);
    let product = t.by(Operator::MulInt, rounded, 12);
    t.guard(product);
    let (number, four) = (t.number(), t.word(4));
    let (inner, outer) = t.split(number, four);
    t.store(inner, outer);
    assert_eq!(t.refused(3), "the product of the grid is more than its axes");
}

/// Pieces of the header where only its results may stand.
#[test]
fn the_header_ends_with_the_header() {
    let body = |make: &dyn Fn(&mut Text, RawExpr)| {
        let (mut t, extent) = Text::with_one_axis();
        make(&mut t, extent);
        t.refused(0)
    };
    let outside = "the step's block is read outside of extents";
    assert_eq!(
        body(&|t, _| {
            let least = t.least(2, 8);
            t.bind("x", least);
        }),
        outside
    );
    let least_of_lane = |t: &mut Text, _: RawExpr| {
        let (lane, eight) = (t.lane(), t.word(8));
        let least = t.raw.node(RawOp::Least, [lane.0, eight.0, 0]);
        t.bind("x", least);
    };
    assert_eq!(body(&least_of_lane), outside);
    let leave = |t: &mut Text, _: RawExpr| t.push(What::Leave);
    assert_eq!(body(&leave), "the kernel leaves behind its header");
    let ends = |t: &mut Text, _: RawExpr| {
        let (i, lane) = (t.local("i"), t.lane());
        t.push(What::For { index: i, start: lane, end: lane, step: 1, body: vec![] });
    };
    assert_eq!(body(&ends), "the end of a loop is neither an extent nor a constant");

    // The number where it is no coordinate, and a product of extents.
    let mut t = Text::new();
    let (x, y) = (t.least(2, 8), t.least(3, 8));
    let x = t.bind("extent0", x);
    let product = t.op(Operator::MulInt, x, y);
    let product = t.bind("total", product);
    t.guard(product);
    let number = t.number();
    let (_, outer) = t.split(number, x);
    t.store(outer, product);
    assert!(t.refused(0).contains("neither an extent nor a coordinate"));
}

/// A rest that is no coordinate cannot be used: then it is the outermost, and the product does not fit.
#[test]
fn the_number_of_a_grid_of_two_axes_is_refused() {
    let mut t = Text::new();
    let (x, y) = (t.least(2, 8), t.least(3, 8));
    let product = t.op(Operator::MulInt, x, y);
    t.guard(product);
    let number = t.number();
    let (inner, _) = t.split(number, y);
    t.store(inner, number);
    assert_eq!(t.refused(3), "the product of the grid is more than its axes");
}

/// Types, scopes and bindings.
#[test]
fn bodies_that_are_not_well_formed_are_refused() {
    let body = |make: &dyn Fn(&mut Text, RawExpr)| {
        let (mut t, extent) = Text::with_one_axis();
        make(&mut t, extent);
        t.refused(0)
    };
    let float = |t: &mut Text| t.raw.leaf(Operator::Float, 1f32.to_bits());
    let sum = |t: &mut Text, _: RawExpr| {
        let (x, y) = (float(t), t.word(1));
        let sum = t.op(Operator::Add, x, y);
        t.bind("x", sum);
    };
    assert_eq!(body(&sum), "`add` takes [F32, F32], found [F32, Word]");
    let least = |t: &mut Text, _: RawExpr| {
        let x = float(t);
        let least = t.raw.node(RawOp::Least, [x.0, x.0, 0]);
        t.bind("x", least);
    };
    assert_eq!(body(&least), "`least` takes [Word, Word], found [F32, F32]");
    let another = |t: &mut Text, _: RawExpr| {
        let x = float(t);
        t.bind("x", x);
    };
    assert_eq!(body(&another), "`x` is word, bound as f32");
    let stored = |t: &mut Text, _: RawExpr| {
        let (lane, x) = (t.lane(), float(t));
        t.store(lane, x);
    };
    assert_eq!(body(&stored), "x1 is f32, wanted word");
    let condition = |t: &mut Text, extent: RawExpr| {
        t.push(What::If { condition: extent, then: vec![], otherwise: vec![] });
    };
    assert_eq!(body(&condition), "x0 is word, wanted bool");
    let unset = |t: &mut Text, _: RawExpr| {
        let local = t.local("late");
        let value = t.raw.local_value(local);
        t.bind("x", value);
    };
    assert_eq!(body(&unset), "`late` is not known here");
    let set = |t: &mut Text, extent: RawExpr| {
        let local = t.local("x");
        t.push(What::Let { local, value: extent });
        t.push(What::Set { local, value: extent });
    };
    assert_eq!(body(&set), "`x` cannot be set here");
    let unbound = |t: &mut Text, extent: RawExpr| {
        let local = t.raw.local(Type::Word, "x", true);
        t.push(What::Set { local, value: extent });
    };
    assert_eq!(body(&unbound), "`x` is not known here");
    let twice = |t: &mut Text, extent: RawExpr| {
        let local = t.local("x");
        t.push(What::Let { local, value: extent });
        t.push(What::Let { local, value: extent });
    };
    assert_eq!(body(&twice), "`x` is bound twice");
    let header = |t: &mut Text, extent: RawExpr| t.push(What::Let { local: RawLocal(0), value: extent });
    assert_eq!(body(&header), "`extent0` is bound twice");
    let scope = |t: &mut Text, extent: RawExpr| {
        let (local, condition) = (t.local("x"), t.raw.leaf(Operator::Truth, 1));
        let inner = RawStmt { line: 9, what: What::Let { local, value: extent } };
        t.push(What::If { condition, then: vec![inner], otherwise: vec![] });
        let value = t.raw.local_value(local);
        t.bind("y", value);
    };
    assert_eq!(body(&scope), "`x` is not known here");
    let divisor = |t: &mut Text, extent: RawExpr| {
        let lane = t.lane();
        let quotient = t.op(Operator::DivInt, lane, extent);
        t.bind("x", quotient);
    };
    assert_eq!(body(&divisor), "a divisor is not a positive constant");
    let shift = |t: &mut Text, extent: RawExpr| {
        let shifted = t.by(Operator::Shl, extent, 32);
        t.bind("x", shifted);
    };
    assert_eq!(body(&shift), "a shift by 32 or more");
    let barrier = |t: &mut Text, _: RawExpr| {
        let (lane, three) = (t.lane(), t.word(3));
        let condition = t.op(Operator::Below, lane, three);
        let inner = RawStmt { line: t.line + 1, what: What::Barrier { buffers: false } };
        t.push(What::If { condition, then: vec![inner], otherwise: vec![] });
    };
    assert_eq!(body(&barrier), "not every lane comes by this barrier");
    let width = |t: &mut Text, extent: RawExpr| {
        let local = t.local("x");
        t.push(What::Shuffle { local, value: extent, distance: 8, width: 8 });
    };
    assert_eq!(body(&width), "a shuffle of distance 8 in width 8");
}

/// Tables that no reader makes: no number in them makes `recover` panic.
#[test]
fn broken_tables_are_refused() {
    let table = |make: &dyn Fn(&mut Text)| {
        let (mut t, _) = Text::with_one_axis();
        make(&mut t);
        t.read().unwrap_err().what
    };
    let op = |op: Operator| RawOp::Op(op);
    let row = |op: RawOp, words: [u32; 3]| move |t: &mut Text| t.raw.exprs.push(RawRow { op, words });
    let order = "an expression comes before its operands";
    assert_eq!(table(&row(op(Operator::AddInt), [99, 0, 0])), order);
    assert_eq!(table(&row(RawOp::Least, [0, 99, 0])), order);
    let used = |op: Operator, word: u32| {
        table(&|t: &mut Text| {
            let value = t.raw.leaf(op, word);
            t.bind("x", value);
        })
    };
    assert_eq!(used(Operator::Local, 99), "local 99 does not exist");
    assert_eq!(used(Operator::Truth, 2), "`truth` 2 does not occur in a text");
    assert_eq!(used(Operator::Extent, 0), "`extent` 0 does not occur in a text");
    assert_eq!(used(Operator::Group, 0), "`group` 0 does not occur in a text");
    assert_eq!(used(Operator::Masked, 0), "`masked` 0 does not occur in a text");
    let id = |t: &mut Text| {
        let (truth, word) = (t.raw.leaf(Operator::Truth, 1), t.word(1));
        let id = t.op(Operator::IdWhere, truth, word);
        t.bind("x", id);
    };
    assert_eq!(table(&id), "an id in a text is a word");
    assert_eq!(table(&|t| t.store(RawExpr(99), RawExpr(0))), "x99 does not exist");
    let binding = |t: &mut Text| {
        let value = t.lane();
        t.push(What::Let { local: RawLocal(99), value });
    };
    assert_eq!(table(&binding), "l99 does not exist");
    let set = |t: &mut Text| {
        let value = t.lane();
        t.push(What::Set { local: RawLocal(99), value });
    };
    assert_eq!(table(&set), "`` is not known here");
    let stored = |t: &mut Text| {
        let lane = t.lane();
        t.push(What::Store { memory: RawMemory(99), index: lane, value: lane });
    };
    assert_eq!(table(&stored), "m99 does not exist");
    assert_eq!(table(&|t| t.raw.lanes = 7), "7 lanes; wanted a multiple of 8 up to 256");
    assert_eq!(table(&|t| t.raw.memories[0].element = Type::Bool), "`out` holds bool");
    assert_eq!(table(&|t| t.raw.memories[1].len = Some(0)), "`cells` has 0 elements");
    assert!(table(&|t| t.raw.memories[1].len = Some(13000)).contains("bytes of workgroup memory"));
    let deep = |t: &mut Text| {
        let mut x = t.lane();
        for _ in 0..600 {
            x = t.op(Operator::AddInt, x, x);
        }
    };
    assert_eq!(table(&deep), "an expression is nested too deep");
    let nested = |t: &mut Text| {
        let condition = t.raw.leaf(Operator::Truth, 1);
        let mut block = vec![];
        for _ in 0..600 {
            block = vec![RawStmt { line: 1, what: What::If { condition, then: block, otherwise: vec![] } }];
        }
        t.raw.body.append(&mut block);
    };
    assert_eq!(table(&nested), "blocks are nested too deep");
    // A product that doubles with each let is answered at once.
    let mut t = Text::new();
    let mut x = t.least(2, 8);
    for _ in 0..100 {
        x = t.op(Operator::MulInt, x, x);
    }
    t.bind("total", x);
    assert!(t.refused(0).contains("neither an extent nor the product"));
}

/// A trap of a kernel that was read names the line.
#[test]
fn a_trap_names_the_line() {
    let (mut t, extent) = Text::with_one_axis();
    let lane = t.lane();
    t.store(lane, extent);
    let line = t.line;
    let reading = t.read().unwrap();
    let machine = Machine::new(&reading.kernel, &D, LaneOrder::Ascending).unwrap().with_lines(&reading.lines);
    let trap = machine.run(&|_| 1, &mut [Cells::unwritten(5)]).unwrap_err();
    assert_eq!((trap.check, trap.line), (Check::OutOfBounds, Some(line)));
    assert_eq!(trap.to_string(), "made: line 3: element 5 of `out`, which has 5 (OutOfBounds)");
}
