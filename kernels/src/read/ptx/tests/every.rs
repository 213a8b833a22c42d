//! A kernel with every line that the printer has, each of which shows in what it stores.

use ds4_ir::Dim;
use ds4_ir::Value;
use ds4_ir::numerics::Arith;

use crate::kernel::{
    Access, Builder, ExtentRow, Handle, Kernel, MaskedId, Memory, Number, Source, Truth, Type, Word, verify,
};

/// Lanes of a workgroup.
pub(super) const LANES: u32 = 8;
/// Largest extents of the two axes.
pub(super) const AXES: [u32; 2] = [6, 8];
/// Lanes of the largest grid.
pub(super) const ITEMS: u32 = AXES[0] * AXES[1] * LANES;
/// Results that each lane stores, at most.
pub(super) const RESULTS: u32 = 49;

/// Stores results, each in a row of its own.
struct Results<'b> {
    b: &'b Builder,
    at: Word,
    floats: Memory,
    words: Memory,
    rows: std::cell::Cell<u32>,
}

impl Results<'_> {
    fn store<T: Handle>(&self, memory: Memory, value: T) {
        let row = self.rows.replace(self.rows.get() + 1);
        assert!(row < RESULTS);
        self.b.store(memory, self.b.add_int(self.at, self.b.word(row * ITEMS)), value);
    }

    fn float(&self, value: Number) {
        self.store(self.floats, value);
    }

    fn word(&self, value: Word) {
        self.store(self.words, value);
    }

    fn truth(&self, value: Truth) {
        self.word(self.b.select_int(value, self.b.word(70_000), self.b.word(3)));
    }
}

/// The kernel.
pub(crate) fn kernel() -> Kernel {
    let b = Builder::new("every_line", &[], LANES);
    b.about("every line, each once at least");
    let step = |dim: u32, most: u32, times: u32, per: u32| ExtentRow { scalar: Some(Dim(dim)), most, times, per };
    let (outer, inner) = (b.group(step(3, 3, 2, 1)), b.group(step(5, 5, 3, 2)));
    let slot = |n: u32, ty: Type, access: Access, name: &str| b.argument(Source::Slot(Value(n)), ty, access, name);
    let [floats, other, small] =
        [(0, "floats"), (1, "other"), (2, "small")].map(|(n, name)| slot(n, Type::F32, Access::Read, name));
    let [words, more] = [(3, "words"), (4, "more")].map(|(n, name)| slot(n, Type::Word, Access::Read, name));
    let ids = slot(5, Type::Id, Access::Read, "ids");
    let float_results = slot(6, Type::F32, Access::Write, "float_results");
    let word_results = slot(7, Type::Word, Access::ReadWrite, "word_results");
    let new_ids = slot(8, Type::Id, Access::Write, "new_ids");
    let group = b.add_int(b.mul_int(outer, b.word(AXES[1])), inner);
    let at = b.name("at", b.add_int(b.mul_int(group, b.word(LANES)), b.lane()));
    let results = Results { b: &b, at, floats: float_results, words: word_results, rows: 0.into() };
    let x: Number = b.load("x", floats, at);
    let y: Number = b.load("y", other, at);
    let z: Number = b.load("z", small, at);
    let i: Word = b.load("i", words, at);
    let j: Word = b.load("j", more, at);
    arithmetic(&b, &results, [x, y, z], [i, j]);
    let first: Word = b.load("first", words, b.word(0));
    let third: Word = b.load("third", words, b.word(2));
    results.word(b.sub_int(first, third));
    results.word(b.add_int(b.extent_value(step(3, 3, 2, 1)), b.extent_value(step(5, 5, 1, 1))));
    branches(&b, &results, x, i, j);
    let id: MaskedId = b.load("id", ids, at);
    b.present(id, |index| results.word(index), || results.word(b.word(100_000)));
    b.store(new_ids, at, b.id_where(b.below(i, j), b.lane()));
    b.store(new_ids, b.add_int(at, b.word(ITEMS)), b.masked());
    exchange(&b, &results, x, i);
    let kernel = b.finish();
    verify(&kernel).unwrap();
    kernel
}

/// Every operator.
fn arithmetic(b: &Builder, results: &Results<'_>, [x, y, z]: [Number; 3], [i, j]: [Word; 2]) {
    let floats = [
        b.add(x, y),
        b.sub(x, y),
        b.mul(x, b.number(1.1)),
        b.div(x, y),
        b.sqrt(x),
        b.neg(x),
        b.abs(x),
        b.floor(z),
        b.ceil(z),
        b.trunc(z),
        b.round_even(z),
        b.from_bits(i),
        b.rounded_float_of(i),
        b.select(b.less(x, y), x, b.number(-2.5)),
    ];
    floats.into_iter().for_each(|value| results.float(value));
    let count = b.and(j, b.word(31));
    let words = [
        b.bits(y),
        b.int_of(b.trunc(z)),
        b.add_int(i, j),
        b.sub_int(i, b.word(1 << 20)),
        b.mul_int(i, j),
        b.div_int(i, 7),
        b.rem_int(i, 7),
        b.or(i, j),
        b.xor(i, j),
        b.shl(i, count),
        b.shr(i, count),
        b.sar(i, count),
        b.dot_bytes(i, j),
    ];
    words.into_iter().for_each(|value| results.word(value));
    let both = b.both(b.less(x, z), b.not(b.less_int(i, j)));
    let either = b.name("either", b.either(b.equal(x, y), b.below(i, j)));
    results.truth(both);
    results.truth(either);
    results.truth(b.equal_int(count, b.word(5)));
}

/// Locals that change, loops, branches.
fn branches(b: &Builder, results: &Results<'_>, x: Number, i: Word, j: Word) {
    let sum = b.var("sum", b.number(-0.0));
    let total = b.var("total", b.mul_int(i, b.word(3)));
    let seen = b.var("seen", b.truth(false));
    b.when(b.below(i, j), || b.update(sum, |sum| b.sub(sum, x)));
    b.branch(
        b.not(b.less_int(i, j)),
        || b.update(total, |total| b.add_int(total, j)),
        || {
            b.repeat("k", b.rem_int(j, 5), ExtentRow::constant(11), 3, |k| {
                b.update(total, |total| b.xor(total, k));
                b.when(b.equal_int(k, b.word(10)), || b.set(seen, b.truth(true)));
            });
        },
    );
    b.repeat("turn", b.lane(), ExtentRow { scalar: Some(Dim(5)), most: 5, times: 3, per: 1 }, 2, |turn| {
        b.update(total, |total| b.add_int(total, turn));
    });
    let now: Number = b.value("now", sum);
    let total: Word = b.value("total", total);
    let seen: Truth = b.value("seen", seen);
    results.float(now);
    results.word(total);
    results.truth(seen);
}

/// Memory of the workgroup, and lanes that exchange.
fn exchange(b: &Builder, results: &Results<'_>, x: Number, i: Word) {
    let (shared, counts) = (b.shared(Type::F32, LANES, "shared"), b.shared(Type::Word, LANES, "counts"));
    let turned = b.name("turned", b.xor(b.lane(), b.word(5)));
    b.store(shared, turned, x);
    b.store(counts, b.lane(), i);
    b.barrier();
    let float: Number = b.load("float", shared, b.lane());
    let second: Word = b.load("second", counts, b.word(1));
    results.float(float);
    results.word(second);
    results.float(b.shuffle("far", b.add(x, x), 4, 8));
    results.word(b.shuffle("near", i, 1, 2));
    b.barrier_with_buffers();
    let near = b.word((results.rows.get() - 1) * ITEMS);
    let stored: Word = b.load("stored", results.words, b.add_int(b.xor(results.at, b.word(1)), near));
    results.word(stored);
}
