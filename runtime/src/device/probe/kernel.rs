//! The kernel of an item: built as a schedule builds one and printed by the emitter of plans, so that the probe runs the very
//! text that the kernels of plans are made of.

use ds4_ir::Value;
use ds4_ir::graph::Constant;
use ds4_ir::numerics::Arith;
use ds4_kernels::emit::{StepBlock, wgsl};
use ds4_kernels::kernel::{Access, Builder, ExtentRow, Handle, Kernel, Memory, Number, Source, Type, Word};

use super::inputs::COUNT;

/// Lanes of a workgroup, and leaves of the probed tree.
pub(super) const LANES: usize = 64;
/// Lanes of the largest workgroup that kernels have.
pub(super) const MOST_LANES: usize = 256;

/// What an item computes in each thread.
pub(super) enum Work {
    /// A float of the floats `a`, `b` and `c`.
    Float(fn(&Thread, [Number; 3]) -> Number),
    /// A word of the floats.
    Compared(fn(&Thread, [Number; 3]) -> Word),
    /// A word of the words `x`, `y` and `z`.
    Words(fn(&Thread, [Word; 3]) -> Word),
    /// A word of the lane, in workgroups of the largest size.
    Lanes(fn(&Thread) -> Word),
}

/// A thread of a kernel in the making.
pub(super) struct Thread<'b> {
    /// Makes the kernel.
    pub(super) b: &'b Builder,
    /// The thread's place in the columns.
    pub(super) i: Word,
    columns: [Memory; 3],
}

impl Thread<'_> {
    /// An element of a column.
    pub(super) fn load<T: Handle>(&self, name: &str, column: usize, at: Word) -> T {
        self.b.load(name, self.columns[column], at)
    }

    fn inputs<T: Handle>(&self, names: [&str; 3]) -> [T; 3] {
        [0, 1, 2].map(|column| self.load(names[column], column, self.i))
    }
}

/// The kernel that does some work; `about` is its first line.
pub(super) fn kernel(about: &str, work: &Work) -> Kernel {
    let (lanes, input, result) = match work {
        Work::Float(_) => (LANES, Type::F32, Type::F32),
        Work::Compared(_) => (LANES, Type::F32, Type::Word),
        Work::Words(_) => (LANES, Type::Word, Type::Word),
        Work::Lanes(_) => (MOST_LANES, Type::Word, Type::Word),
    };
    let b = Builder::new("probe", &[], lanes as u32);
    b.about(about);
    let columns = [("column_a", 0), ("column_b", 1), ("column_c", 2)]
        .map(|(name, column)| b.argument(Source::Constant(Constant(column)), input, Access::Read, name));
    let results = b.argument(Source::Slot(Value(0)), result, Access::Write, "results");
    let group = b.group(ExtentRow::constant((COUNT / lanes) as u32));
    let i = b.name("i", b.add_int(b.mul_int(group, b.word(lanes as u32)), b.lane()));
    let thread = Thread { b: &b, i, columns };
    match work {
        Work::Float(make) => b.store(results, i, make(&thread, thread.inputs(["a", "b", "c"]))),
        Work::Compared(make) => b.store(results, i, make(&thread, thread.inputs(["a", "b", "c"]))),
        Work::Words(make) => b.store(results, i, make(&thread, thread.inputs(["x", "y", "z"]))),
        Work::Lanes(make) => b.store(results, i, make(&thread)),
    }
    b.finish()
}

/// The step's block of all items' kernels: only the zeros.
pub(super) fn step() -> Vec<u32> {
    StepBlock::default().words(&|_| 0)
}

/// The text of a kernel. Its bindings: the step's block, the columns, the results.
pub(super) fn text(kernel: &Kernel) -> String {
    wgsl::emit(kernel, &StepBlock::default()).expect("invariant: an item reads no dimension of a step")
}
