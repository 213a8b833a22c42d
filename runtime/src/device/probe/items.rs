//! The items of the probe: what each computes on a device, and what the contract says it gives.

use std::fmt::Write;

use ds4_ir::numerics::{self, Arith, functions, order, trigonometry};

use super::inputs::{Inputs, Set};
use super::text::{ARGUMENTS, Name, Text};

const PRELUDE: &str = include_str!("prelude.wgsl");
/// Threads of a workgroup, and lanes of the probed tree.
pub(super) const WORKGROUP: usize = 32;

/// How an item's kernel is written.
enum Source {
    /// A float expression of `a`, `b` and `c`.
    Expression(&'static str),
    /// Statements that compute the word `result` from `a`, `b`, `c`, the words `x`, `y`, `z` and the thread's index `i`.
    Statements(&'static str),
    /// A function of the contract, printed.
    Function(fn(&Text, [Name; 3]) -> Name),
}

/// One item.
pub struct Item {
    /// A short name.
    pub name: &'static str,
    /// What fails if the item fails.
    pub what: &'static str,
    /// Its inputs.
    pub set: Set,
    source: Source,
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

    /// The kernel: `a`, `b` and `c` at bindings 0, 3 and 4, results at 1, opaque zeros at 2.
    pub fn wgsl(&self) -> String {
        let body = match &self.source {
            Source::Expression(text) => format!("    let result = bitcast<u32>({text});\n"),
            Source::Statements(text) => format!("{text}\n"),
            Source::Function(function) => {
                let text = Text::default();
                let result = function(&text, ARGUMENTS);
                text.into_lines() + &format!("    let result = bitcast<u32>({result});\n")
            }
        };
        let mut kernel = format!("// Probe: {}.\n{PRELUDE}\n", self.what);
        for (index, name) in [(0, "column_a"), (3, "column_b"), (4, "column_c")] {
            let _ = writeln!(kernel, "@group(0) @binding({index}) var<storage, read> {name}: array<u32>;");
        }
        kernel
            + &format!(
                "@group(0) @binding(1) var<storage, read_write> results: array<u32>;
var<workgroup> cells: array<f32, {WORKGROUP}>;

@compute @workgroup_size({WORKGROUP})
fn probe(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let i = id.x;
    let x = column_a[i];
    let y = column_b[i];
    let z = column_c[i];
    let a = bitcast<f32>(x);
    let b = bitcast<f32>(y);
    let c = bitcast<f32>(z);
    let zero = bitcast<f32>(opaque.x);
{body}    results[i] = result;
}}
"
            )
    }
}

/// An item whose kernel is one expression.
const fn expression(
    (name, what): (&'static str, &'static str),
    set: Set,
    text: &'static str,
    wanted: fn(&Inputs, usize) -> u32,
) -> Item {
    Item { name, what, set, source: Source::Expression(text), wanted, float: true }
}

/// An item whose kernel is a function of the contract.
const fn function(
    (name, what): (&'static str, &'static str),
    set: Set,
    function: fn(&Text, [Name; 3]) -> Name,
    wanted: fn(&Inputs, usize) -> u32,
) -> Item {
    Item { name, what, set, source: Source::Function(function), wanted, float: true }
}

/// The reference of an item: bits of a float expression of the three inputs.
macro_rules! float {
    ($inputs:pat => $value:expr) => {
        |inputs, index| {
            let $inputs = inputs.floats(index);
            f32::to_bits($value)
        }
    };
}

/// All items, in the order in which they run.
pub static ITEMS: &[Item] = &[
    expression(("sum", "a + b is rounded correctly"), Set::Adversarial, "a + b", float!([a, b, _] => a + b)),
    expression(("product", "a * b is rounded correctly"), Set::Adversarial, "a * b", float!([a, b, _] => a * b)),
    expression(
        ("mac", "the product in a * b + c is rounded before the sum"),
        Set::Adversarial,
        "a * b + c",
        float!([a, b, c] => a * b + c),
    ),
    Item {
        name: "loop",
        what: "products that a loop adds up are rounded one by one",
        set: Set::Normal,
        source: Source::Statements(LOOP),
        wanted: loop_sum,
        float: true,
    },
    expression(
        ("distributive", "a * b + a * c is no product of a sum"),
        Set::Adversarial,
        "a * b + a * c",
        float!([a, b, c] => a * b + a * c),
    ),
    expression(
        ("products", "both products in a * b - c * c are rounded"),
        Set::Adversarial,
        "a * b - c * c",
        float!([a, b, c] => a * b - c * c),
    ),
    expression(
        ("difference", "(a + b) - a is not b"),
        Set::Adversarial,
        "(a + b) - a",
        float!([a, b, _] => (a + b) - a),
    ),
    expression(
        ("integer", "(a + 1.5 * 2^23) - 1.5 * 2^23 is an integer"),
        Set::Adversarial,
        "(a + 12582912.0f) - 12582912.0f",
        float!([a, _, _] => (a + 12_582_912.0) - 12_582_912.0),
    ),
    expression(
        ("constants", "constant factors are not merged"),
        Set::Adversarial,
        "(a * 0x1.19999ap+0f) * 0x1.b33334p+0f",
        float!([a, _, _] => (a * 1.1) * 1.7),
    ),
    expression(
        ("zero", "a + 0 keeps the sum of zeros and NaN"),
        Set::Adversarial,
        "a + zero",
        float!([a, _, _] => a + 0.0),
    ),
    expression(
        ("itself", "a - a is NaN for what is not finite"),
        Set::Adversarial,
        "(a - a) * b",
        float!([a, b, _] => (a + -a) * b),
    ),
    expression(
        ("select", "a selection by a > b is no maximum"),
        Set::Normal,
        "select(b, a, a > b)",
        float!([a, b, _] => if a > b { a } else { b }),
    ),
    expression(("quotient", "a / b is rounded correctly"), Set::Adversarial, "a / b", float!([a, b, _] => a / b)),
    expression(("subnormal-sum", "sums keep subnormal numbers"), Set::Subnormal, "a + b", float!([a, b, _] => a + b)),
    expression(
        ("subnormal-product", "products keep subnormal numbers"),
        Set::Subnormal,
        "a * c",
        float!([a, _, c] => a * c),
    ),
    expression(
        ("subnormal-quotient", "quotients keep subnormal numbers"),
        Set::Subnormal,
        "a / c",
        float!([a, _, c] => a / c),
    ),
    function(
        ("square-root", "the corrected square root is rounded correctly"),
        Set::Adversarial,
        |text, [a, _, _]| text.sqrt(a),
        float!([a, _, _] => a.sqrt()),
    ),
    expression(
        ("round-to-f16", "a number packed as f16 is rounded to it"),
        Set::Halves,
        "unpack2x16float(pack2x16float(vec2<f32>(a, b)) ^ opaque.x).x",
        float!([a, _, _] => numerics::round_to_f16(a)),
    ),
    expression(
        ("f16", "all numbers of f16 are widened exactly"),
        Set::Words,
        "unpack2x16float(x | y << 16u).x",
        |inputs, index| numerics::f16_value(inputs.words(index)[0] as u16).to_bits(),
    ),
    Item {
        name: "words",
        what: "integer arithmetic wraps, and dots of bytes are exact",
        set: Set::Words,
        source: Source::Statements(WORDS),
        wanted: words,
        float: false,
    },
    Item {
        name: "whole",
        what: "floor, ceil, trunc, round to even, and conversion of integers are exact",
        set: Set::Adversarial,
        source: Source::Statements(WHOLE),
        wanted: whole,
        float: true,
    },
    function(
        ("order", "minimum and maximum follow the contract's order"),
        Set::Adversarial,
        |text, [a, b, c]| order::max(text, order::min(text, a, b), c),
        float!([a, b, c] => numerics::max(numerics::min(a, b), c)),
    ),
    function(
        ("exp", "the exponential has the contract's bits"),
        Set::Exponents,
        |text, [a, _, _]| functions::exp(text, a),
        float!([a, _, _] => numerics::exp(a)),
    ),
    function(
        ("log1p", "the logarithm has the contract's bits"),
        Set::Adversarial,
        |text, [a, _, _]| functions::log1p(text, a),
        float!([a, _, _] => numerics::log1p(a)),
    ),
    function(
        ("sin", "the sine has the contract's bits"),
        Set::Adversarial,
        |text, [a, _, _]| trigonometry::sin(text, a),
        float!([a, _, _] => numerics::sin(a)),
    ),
    Item {
        name: "tree",
        what: "a tree over the lanes of a workgroup adds in its order",
        set: Set::Normal,
        source: Source::Statements(TREE),
        wanted: tree,
        float: true,
    },
];

const LOOP: &str = "    var sum = a * b;
    for (var k = 1u; k < 16u; k++) {
        let j = (i + 4099u * k) % arrayLength(&column_a);
        sum = sum + bitcast<f32>(column_a[j]) * bitcast<f32>(column_b[j]);
    }
    let result = bitcast<u32>(sum);";

fn loop_sum(inputs: &Inputs, index: usize) -> u32 {
    let leaf = |k: usize| {
        let [a, b, _] = inputs.floats((index + 4099 * k) % inputs.columns[0].len());
        a * b
    };
    (1..16).fold(leaf(0), |sum, k| sum + leaf(k)).to_bits()
}

const WORDS: &str = "    var result = 0u;
    switch i % 8u {
        case 0u: { result = x * y + z; }
        case 1u: { result = y - z * 0x9e3779b9u; }
        case 2u: { result = bitcast<u32>(dot4I8Packed(y, z)); }
        case 3u: { result = (y << (z & 31u)) ^ (y >> (z & 31u)); }
        case 4u: { result = bitcast<u32>(bitcast<i32>(y) >> (z & 31u)); }
        case 5u: { result = bitcast<u32>(extractBits(bitcast<i32>(y), 24u, 8u) * extractBits(bitcast<i32>(z), 3u, 5u)); }
        case 6u: { result = select(y, z, bitcast<i32>(y) < bitcast<i32>(z)) ^ (countLeadingZeros(y) << 8u); }
        default: { result = select(y / (z | 1u), y % (z | 1u), (x & 8u) != 0u); }
    }";

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
        5 => ((signed(y) >> 24) * (signed(z << 24) >> 27)) as u32,
        6 => (if signed(y) < signed(z) { z } else { y }) ^ (y.leading_zeros() << 8),
        _ if x & 8 != 0 => y % (z | 1),
        _ => y / (z | 1),
    }
}

const WHOLE: &str = "    var value = zero;
    switch i / 8u % 5u {
        case 0u: { value = floor(a); }
        case 1u: { value = ceil(a); }
        case 2u: { value = trunc(a); }
        case 3u: { value = round(a); }
        default: { value = f32(bitcast<i32>(x) >> 7u); }
    }
    let result = bitcast<u32>(value);";

fn whole(inputs: &Inputs, index: usize) -> u32 {
    let [a, _, _] = inputs.floats(index);
    let value = match index / 8 % 5 {
        0 => a.floor(),
        1 => a.ceil(),
        2 => a.trunc(),
        3 => a.round_ties_even(),
        // 25 bits with the sign: exact.
        _ => (a.to_bits() as i32 >> 7) as f32,
    };
    value.to_bits()
}

const TREE: &str = "    cells[lane] = a * b;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half = half >> 1u) {
        if lane < half {
            cells[lane] = cells[lane] + cells[lane + half];
        }
        workgroupBarrier();
    }
    let result = bitcast<u32>(cells[0]);";

fn tree(inputs: &Inputs, index: usize) -> u32 {
    let first = index / WORKGROUP * WORKGROUP;
    let mut cells: Vec<f32> = (first..first + WORKGROUP)
        .map(|i| {
            let [a, b, _] = inputs.floats(i);
            a * b
        })
        .collect();
    for half in [16, 8, 4, 2, 1] {
        for lane in 0..half {
            cells[lane] += cells[lane + half];
        }
    }
    cells[0].to_bits()
}
