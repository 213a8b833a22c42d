//! The items of the probe: what each computes on a device, and what the contract says it gives.

use ds4_ir::numerics::{self, Arith, functions, order, round, trigonometry};
use ds4_kernels::kernel::{Builder, ExtentRow, Kernel, Number, Type, Word};

use super::inputs::{COUNT, Inputs, Set};
use super::kernel::{self, LANES, MOST_LANES, Thread, Work};

/// One item.
pub struct Item {
    /// A short name.
    pub name: &'static str,
    /// What fails if the item fails.
    pub what: &'static str,
    /// Its inputs.
    pub set: Set,
    work: Work,
    /// The bits that the contract gives.
    wanted: fn(&Inputs, usize) -> u32,
    /// Whether the result is a float, so that any NaN is as good as another.
    float: bool,
}

impl Item {
    /// The bits that the contract gives at an index.
    pub fn wanted(&self, inputs: &Inputs, index: usize) -> u32 {
        (self.wanted)(inputs, index)
    }

    /// Whether a device may give `got` where `wanted` is right.
    pub fn accepts(&self, wanted: u32, got: u32) -> bool {
        wanted == got || self.float && f32::from_bits(wanted).is_nan() && f32::from_bits(got).is_nan()
    }

    /// The kernel: the columns are arguments 0 to 2, the results are argument 3.
    pub(super) fn kernel(&self) -> Kernel {
        kernel::kernel(&format!("Probe: {}.", self.what), &self.work)
    }

    /// The kernel's text.
    pub fn wgsl(&self) -> String {
        kernel::text(&self.kernel())
    }
}

/// An item that computes a float of floats.
const fn float(
    (name, what): (&'static str, &'static str),
    set: Set,
    make: fn(&Thread, [Number; 3]) -> Number,
    wanted: fn(&Inputs, usize) -> u32,
) -> Item {
    Item { name, what, set, work: Work::Float(make), wanted, float: true }
}

/// An item that computes a word.
const fn word(
    (name, what): (&'static str, &'static str),
    set: Set,
    work: Work,
    wanted: fn(&Inputs, usize) -> u32,
) -> Item {
    Item { name, what, set, work, wanted, float: false }
}

/// The reference of an item: bits of a float expression of the three inputs.
macro_rules! bits {
    ($inputs:pat => $value:expr) => {
        |inputs, index| {
            let $inputs = inputs.floats(index);
            f32::to_bits($value)
        }
    };
}

/// All items, in the order in which they run.
pub static ITEMS: &[Item] = &[
    float(
        ("sum", "a + b is rounded correctly"),
        Set::Adversarial,
        |t, [a, b, _]| t.b.add(a, b),
        bits!([a, b, _] => a + b),
    ),
    float(
        ("product", "a * b is rounded correctly"),
        Set::Adversarial,
        |t, [a, b, _]| t.b.mul(a, b),
        bits!([a, b, _] => a * b),
    ),
    float(
        ("mac", "the product in a * b + c is rounded before the sum"),
        Set::Adversarial,
        |t, [a, b, c]| t.b.add(t.b.mul(a, b), c),
        bits!([a, b, c] => a * b + c),
    ),
    float(("loop", "products that a loop adds up are rounded one by one"), Set::Normal, looped, loop_sum),
    float(
        ("distributive", "a * b + a * c is no product of a sum"),
        Set::Adversarial,
        |t, [a, b, c]| t.b.add(t.b.mul(a, b), t.b.mul(a, c)),
        bits!([a, b, c] => a * b + a * c),
    ),
    float(
        ("products", "both products in a * b - c * c are rounded"),
        Set::Adversarial,
        |t, [a, b, c]| t.b.sub(t.b.mul(a, b), t.b.mul(c, c)),
        bits!([a, b, c] => a * b - c * c),
    ),
    float(
        ("difference", "(a + b) - a is not b"),
        Set::Adversarial,
        |t, [a, b, _]| t.b.sub(t.b.add(a, b), a),
        bits!([a, b, _] => (a + b) - a),
    ),
    float(
        ("integer", "(a + 1.5 * 2^23) - 1.5 * 2^23 is an integer"),
        Set::Adversarial,
        |t, [a, _, _]| t.b.sub(t.b.add(a, t.b.number(12_582_912.0)), t.b.number(12_582_912.0)),
        bits!([a, _, _] => (a + 12_582_912.0) - 12_582_912.0),
    ),
    float(
        ("constants", "constant factors are not merged"),
        Set::Adversarial,
        |t, [a, _, _]| t.b.mul(t.b.mul(a, t.b.number(1.1)), t.b.number(1.7)),
        bits!([a, _, _] => (a * 1.1) * 1.7),
    ),
    float(
        ("zero", "a + 0 keeps the sum of zeros and NaN"),
        Set::Adversarial,
        |t, [a, _, _]| t.b.add(a, t.b.number(0.0)),
        bits!([a, _, _] => a + 0.0),
    ),
    float(
        ("negative-zero", "-0 - a is the opposite of a, and of zeros what the contract says"),
        Set::Adversarial,
        |t, [a, _, _]| t.b.sub(t.b.number(-0.0), a),
        bits!([a, _, _] => -0.0 - a),
    ),
    float(
        ("itself", "a - a is NaN for what is not finite"),
        Set::Adversarial,
        |t, [a, b, _]| t.b.mul(t.b.sub(a, a), b),
        bits!([a, b, _] => (a + -a) * b),
    ),
    float(
        ("select", "a selection by a > b is no maximum"),
        Set::Adversarial,
        |t, [a, b, _]| t.b.select(t.b.less(b, a), a, b),
        bits!([a, b, _] => if a > b { a } else { b }),
    ),
    word(
        ("comparison", "comparisons follow the values, those of NaN are false"),
        Set::Adversarial,
        Work::Compared(compared),
        comparison,
    ),
    float(
        ("signs", "the sign is flipped and cleared, of subnormal numbers too"),
        Set::Subnormal,
        |t, [a, b, _]| t.b.select(t.b.below(t.i, t.b.word(COUNT as u32 / 2)), t.b.neg(a), t.b.abs(b)),
        |inputs, index| {
            let [a, b, _] = inputs.floats(index);
            if index < COUNT / 2 { (-a).to_bits() } else { b.abs().to_bits() }
        },
    ),
    float(
        ("quotient", "a / b is rounded correctly"),
        Set::Adversarial,
        |t, [a, b, _]| t.b.div(a, b),
        bits!([a, b, _] => a / b),
    ),
    float(
        ("subnormal-sum", "sums keep subnormal numbers"),
        Set::Subnormal,
        |t, [a, b, _]| t.b.add(a, b),
        bits!([a, b, _] => a + b),
    ),
    float(
        ("subnormal-product", "products keep subnormal numbers"),
        Set::Subnormal,
        |t, [a, _, c]| t.b.mul(a, c),
        bits!([a, _, c] => a * c),
    ),
    float(
        ("subnormal-quotient", "quotients keep subnormal numbers"),
        Set::Subnormal,
        |t, [a, _, c]| t.b.div(a, c),
        bits!([a, _, c] => a / c),
    ),
    float(
        ("square-root", "the corrected square root is rounded correctly"),
        Set::Adversarial,
        |t, [a, _, _]| t.b.sqrt(a),
        bits!([a, _, _] => a.sqrt()),
    ),
    float(
        ("subnormal-square-root", "the corrected square root of subnormal numbers is rounded correctly"),
        Set::Subnormal,
        |t, [a, _, _]| t.b.sqrt(t.b.abs(a)),
        bits!([a, _, _] => a.abs().sqrt()),
    ),
    float(
        ("round-to-f16", "a number that is rounded to f16 and widened has the contract's bits"),
        Set::Halves,
        |t, [a, _, _]| round::round_to_f16(t.b, a),
        bits!([a, _, _] => numerics::round_to_f16(a)),
    ),
    Item {
        name: "f16",
        what: "all numbers of f16 are widened exactly",
        set: Set::Words,
        work: Work::Words(|t, [x, _, _]| t.b.bits(round::f16_value(t.b, t.b.and(x, t.b.word(0xffff))))),
        wanted: |inputs, index| numerics::f16_value(inputs.words(index)[0] as u16).to_bits(),
        float: true,
    },
    word(
        ("words", "integer arithmetic wraps, and dots of bytes are exact"),
        Set::Words,
        Work::Words(arithmetic),
        words,
    ),
    float(
        ("whole", "floor, ceil, trunc and round to even are exact"),
        Set::Adversarial,
        |t, [a, _, _]| pick(t.b, t.i, &[t.b.floor(a), t.b.ceil(a), t.b.trunc(a), t.b.round_even(a)]),
        whole,
    ),
    float(
        ("conversion", "integers are converted to the nearest number, and whole numbers to integers"),
        Set::Adversarial,
        |t, [a, _, _]| {
            let b = t.b;
            let fits = b.less(b.abs(a), b.number(2_147_483_648.0));
            let integer = b.int_of(b.select(fits, b.trunc(a), b.number(1.0)));
            pick(b, t.i, &[b.rounded_float_of(b.bits(a)), b.rounded_float_of(integer)])
        },
        conversion,
    ),
    float(
        ("order", "minimum and maximum follow the contract's order"),
        Set::Adversarial,
        |t, [a, b, c]| order::max(t.b, order::min(t.b, a, b), c),
        bits!([a, b, c] => numerics::max(numerics::min(a, b), c)),
    ),
    float(
        ("exp", "the exponential has the contract's bits"),
        Set::Exponents,
        |t, [a, _, _]| functions::exp(t.b, a),
        bits!([a, _, _] => numerics::exp(a)),
    ),
    float(
        ("log1p", "the logarithm has the contract's bits"),
        Set::Adversarial,
        |t, [a, _, _]| functions::log1p(t.b, a),
        bits!([a, _, _] => numerics::log1p(a)),
    ),
    float(
        ("sin", "the sine has the contract's bits"),
        Set::Adversarial,
        |t, [a, _, _]| trigonometry::sin(t.b, a),
        bits!([a, _, _] => numerics::sin(a)),
    ),
    float(("tree", "a tree over the lanes of a workgroup adds in its order"), Set::Normal, folded, tree),
    word(
        ("lanes", "shuffles exchange the lanes of eight, numbered as the workgroup's"),
        Set::Words,
        Work::Lanes(exchanged),
        |_, index| {
            let lane = (index % MOST_LANES) as u32;
            DISTANCES.into_iter().fold(0, |all, distance| all << 8 | lane ^ distance)
        },
    ),
];

/// Distances of the exchanges in a tree.
const DISTANCES: [u32; 3] = [4, 2, 1];

/// One of several values, in turn by the index.
fn pick(b: &Builder, i: Word, values: &[Number]) -> Number {
    let which = b.name("which", b.rem_int(i, values.len() as u32));
    let cases = (0..).zip(&values[1..]);
    cases.fold(values[0], |picked, (at, &value)| b.select(b.equal_int(which, b.word(at + 1)), value, picked))
}

/// Distance of the leaves that a thread's loop adds up.
const STRIDE: u32 = 4099;
const LEAVES: u32 = 16;

fn looped(t: &Thread, [a, b, _]: [Number; 3]) -> Number {
    let sum = t.b.var("sum", t.b.mul(a, b));
    t.b.repeat("k", t.b.word(1), ExtentRow::constant(LEAVES), 1, |k| {
        let far = t.b.add_int(t.i, t.b.mul_int(k, t.b.word(STRIDE)));
        let j = t.b.name("j", t.b.rem_int(far, COUNT as u32));
        let (p, q): (Number, Number) = (t.load("p", 0, j), t.load("q", 1, j));
        t.b.update(sum, |sum| t.b.add(sum, t.b.mul(p, q)));
    });
    t.b.value("total", sum)
}

fn loop_sum(inputs: &Inputs, index: usize) -> u32 {
    let leaf = |k: u32| {
        let [a, b, _] = inputs.floats((index + (STRIDE * k) as usize) % COUNT);
        a * b
    };
    (1..LEAVES).fold(leaf(0), |sum, k| sum + leaf(k)).to_bits()
}

fn compared(t: &Thread, [a, b, _]: [Number; 3]) -> Word {
    let bit = |holds, place: u32| t.b.select_int(holds, t.b.word(1 << place), t.b.word(0));
    let negated = t.b.neg(a);
    let all = t.b.or(bit(t.b.less(a, b), 0), bit(t.b.equal(a, b), 1));
    t.b.or(all, t.b.or(bit(t.b.less(negated, b), 2), bit(t.b.equal(a, t.b.abs(a)), 3)))
}

fn comparison(inputs: &Inputs, index: usize) -> u32 {
    let [a, b, _] = inputs.floats(index);
    u32::from(a < b) | u32::from(a == b) << 1 | u32::from(-a < b) << 2 | u32::from(a == a.abs()) << 3
}

fn arithmetic(t: &Thread, [x, y, z]: [Word; 3]) -> Word {
    let b = t.b;
    let count = b.name("count", b.and(z, b.word(31)));
    let cases = [
        b.add_int(b.mul_int(x, y), z),
        b.sub_int(y, b.mul_int(z, b.word(0x9e37_79b9))),
        b.dot_bytes(y, z),
        b.xor(b.shl(y, count), b.shr(y, count)),
        b.sar(y, count),
        b.select_int(b.less_int(y, z), z, y),
        b.select_int(b.below(y, z), z, y),
        b.or(b.div_int(y, 641), b.shl(b.rem_int(y, 7), b.word(29))),
    ];
    let which = b.name("which", b.rem_int(x, cases.len() as u32));
    let others = (0..).zip(&cases[1..]);
    others.fold(cases[0], |picked, (at, &case)| b.select_int(b.equal_int(which, b.word(at + 1)), case, picked))
}

fn words(inputs: &Inputs, index: usize) -> u32 {
    let [x, y, z] = inputs.words(index);
    let signed = |word: u32| word as i32;
    match index % 8 {
        0 => x.wrapping_mul(y).wrapping_add(z),
        1 => y.wrapping_sub(z.wrapping_mul(0x9e37_79b9)),
        2 => {
            let products = y.to_le_bytes().into_iter().zip(z.to_le_bytes());
            products.map(|(p, q)| i32::from(p as i8) * i32::from(q as i8)).sum::<i32>() as u32
        }
        3 => (y << (z & 31)) ^ (y >> (z & 31)),
        4 => (signed(y) >> (z & 31)) as u32,
        5 => signed(y).max(signed(z)) as u32,
        6 => y.max(z),
        _ => (y / 641) | ((y % 7) << 29),
    }
}

fn whole(inputs: &Inputs, index: usize) -> u32 {
    let [a, _, _] = inputs.floats(index);
    [a.floor(), a.ceil(), a.trunc(), a.round_ties_even()][index % 4].to_bits()
}

fn conversion(inputs: &Inputs, index: usize) -> u32 {
    let [a, _, _] = inputs.floats(index);
    let integer = match index % 2 {
        0 => a.to_bits() as i32,
        _ if a.abs() < 2_147_483_648.0 => a as i32,
        _ => 1,
    };
    (integer as f32).to_bits()
}

/// Leaves of the tree are smaller, so that none hides the others.
const LARGE: f32 = 1e6;

/// The tree of a reduction: halves of the workgroup through its memory, and the last three by shuffles.
fn folded(t: &Thread, [a, b, _]: [Number; 3]) -> Number {
    let k = t.b;
    let cells = k.shared(Type::F32, LANES as u32, "cells");
    let product = k.name("product", k.mul(a, b));
    let sum = k.var("sum", k.select(k.less(k.abs(product), k.number(LARGE)), product, k.number(1.0)));
    let mut half = LANES as u32 / 2;
    while half > DISTANCES[0] {
        k.store(cells, k.lane(), k.value("mine", sum));
        k.barrier();
        k.when(k.below(k.lane(), k.word(half)), || {
            let other = k.load("other", cells, k.add_int(k.lane(), k.word(half)));
            k.update(sum, |mine| k.add(mine, other));
        });
        k.barrier();
        half /= 2;
    }
    for distance in DISTANCES {
        let mine = k.value("mine", sum);
        let other = k.shuffle("other", mine, distance, 8);
        k.set(sum, k.add(mine, other));
    }
    // The other lanes have folded something else; the first one's sum goes to all.
    k.store(cells, k.lane(), k.value("mine", sum));
    k.barrier();
    k.load("total", cells, k.word(0))
}

fn tree(inputs: &Inputs, index: usize) -> u32 {
    let first = index / LANES * LANES;
    let leaf = |i: usize| {
        let [a, b, _] = inputs.floats(i);
        if (a * b).abs() < LARGE { a * b } else { 1.0 }
    };
    let mut cells: Vec<f32> = (first..first + LANES).map(leaf).collect();
    while cells.len() > 1 {
        let (lower, upper) = cells.split_at(cells.len() / 2);
        cells = lower.iter().zip(upper).map(|(x, y)| x + y).collect();
    }
    cells[0].to_bits()
}

/// Where each exchange finds its word: the numbers of three other lanes, a byte each.
fn exchanged(t: &Thread) -> Word {
    let b = t.b;
    let offered = b.name("offered", b.rem_int(t.i, MOST_LANES as u32));
    DISTANCES.into_iter().fold(b.word(0), |all, distance| {
        let other = b.shuffle("other", offered, distance, 8);
        b.or(b.shl(all, b.word(8)), other)
    })
}
