//! `map`: every scalar operation, and formulas that compilers like to change.

use ScalarOp::*;
use ds4_ir::numerics::{e2m1_value, e4m3_value, f16_value};
use ds4_ir::{ScalarOp, ScalarType, Value};

use super::Case;
use super::draft::Draft;
use super::inputs::{INTEGERS, Random, SPECIAL, around, halfways, pairs};

/// The family's name.
pub const FAMILY: &str = "map";

/// All cases.
pub fn cases() -> Vec<Case> {
    let operations = ScalarOp::ALL.iter().map(|&op| operation(op));
    operations.chain([constants(), operands(), columns(), large()]).chain(formulas()).collect()
}

/// The case of one operation.
fn operation(op: ScalarOp) -> Case {
    let mut d = Draft::new(FAMILY, op.name());
    match op.signature() {
        Some((&[ScalarType::F32], _)) => {
            let inputs = inputs_of(op, &mut d.random);
            let x = d.floats(&[inputs.len() as u32], &inputs);
            let y = d.apply(op, &[x]);
            d.output("y", y);
        }
        Some((&[ScalarType::F32, ScalarType::F32], result)) => {
            let z = of_pairs(&mut d, op, result);
            d.output("z", z);
        }
        Some((&[ScalarType::I32, ScalarType::I32], _)) if takes_constant(op) => by_constants(&mut d, op),
        Some((&[ScalarType::I32, ScalarType::I32], result)) => {
            let [i, j] = integer_pairs(&mut d);
            let k = boolean_or(&mut d, op, result, &[i, j]);
            d.output("k", k);
        }
        _ => other(&mut d, op),
    }
    d.once()
}

fn takes_constant(op: ScalarOp) -> bool {
    matches!(op, DivI | RemI | ShlI | ShrI | SarI)
}

/// Operands of a unary operation: what is special everywhere, what is special to it, and any bits.
fn inputs_of(op: ScalarOp, random: &mut Random) -> Vec<u32> {
    let spread = |random: &mut Random, scale: f32| (random.unit() * scale).to_bits();
    let mut inputs = SPECIAL.to_vec();
    match op {
        Exp => {
            inputs
                .extend([-87.336_54f32, 88.722_84, -103.972_08, -87.0, 0.346_573_6, -0.346_573_6].map(around).concat());
            inputs.extend((0..300).map(|_| spread(random, 90.0)));
        }
        Log | Log1p => {
            let root = std::f32::consts::FRAC_1_SQRT_2;
            inputs.extend([1.0, -1.0, root, root - 1.0, 2f32.powi(-25), 1e-3].map(around).concat());
            inputs.extend((0..200).map(|_| spread(random, 1.0)));
            inputs.extend((0..200).map(|_| random.word() & 0x7fff_ffff));
        }
        Sin | Cos => {
            // The floats next to multiples of a quarter turn, where the result is next to nothing.
            let turns = [1.0, 2.0, 3.0, 4.0, 5.0, 1e3, 1e5, 1e7, 123_456_789.0, 1e12];
            let multiples = turns.map(|n: f64| around((n * std::f64::consts::FRAC_PI_2) as f32));
            inputs.extend(multiples.concat());
            inputs.extend((0..200).map(|_| spread(random, 30.0)));
        }
        Sqrt => inputs.extend((0..200).map(|_| random.word() & 0x7fff_ffff)),
        Floor | Ceil | Trunc | RoundEven => {
            inputs.extend((0..12).flat_map(|n| around(n as f32 + 0.5)).flat_map(|x| [x, x ^ 0x8000_0000]));
            inputs.extend((0..12).flat_map(|n| around((1 << (2 * n)) as f32 - 0.5)));
        }
        RoundF16 => {
            let codes: Vec<f32> = (0..0x7c00).step_by(61).flat_map(|c| [f16_value(c), f16_value(c + 1)]).collect();
            inputs.extend(halfways(&codes));
            inputs.extend([65504.0f32, 65520.0, 2f32.powi(-24), 2f32.powi(-25), 2f32.powi(-14)].map(around).concat());
        }
        RoundBf16 => {
            let halves = |random: &mut Random| random.word() & 0xffff_0000;
            inputs.extend((0..100).map(|_| halves(random)).flat_map(|x| [0x7fff, 0x8000, 0x8001].map(|low| x | low)));
            inputs.extend([0x7f7f_7fff, 0x7f7f_8000, 0x7f7f_8001, 0x0000_8000, 0x0000_7fff, 0x8001_8000]);
        }
        RoundE4m3 => inputs.extend(halfways(&(0..=0x7e).map(e4m3_value).collect::<Vec<_>>())),
        // Its operands lie in [-6, 6].
        RoundE2m1 => {
            inputs.retain(|&bits| f32::from_bits(bits).abs() <= 6.0);
            inputs.extend(halfways(&(0..=7).map(e2m1_value).collect::<Vec<_>>()));
            inputs.extend((0..100).map(|_| spread(random, 6.0)));
            return inputs;
        }
        _ => {}
    }
    inputs.extend(random.patterns(203));
    inputs
}

/// Every special number with every other, pairs that cancel, products and quotients at the edge of the subnormals, any bits.
fn of_pairs(d: &mut Draft, op: ScalarOp, result: ScalarType) -> Value {
    let [mut x, mut y] = pairs(&SPECIAL);
    let more = d.random.cancelling(301);
    let [p, q] = edge_pairs(&mut d.random, 301);
    x.extend([&more[0][..], &p, &d.random.patterns(300)].concat());
    y.extend([&more[1][..], &q, &d.random.patterns(300)].concat());
    let n = x.len() as u32;
    let args = [d.floats(&[n], &x), d.floats(&[n], &y)];
    boolean_or(d, op, result, &args)
}

/// Pairs whose product, and whose quotient by the reciprocal, is near the least normal number.
fn edge_pairs(random: &mut Random, count: usize) -> [Vec<u32>; 2] {
    let mut edges = [Vec::new(), Vec::new()];
    for i in 0..count {
        let exponent = random.below(100) as i32 - 50;
        let other = -126 - exponent - random.below(25) as i32;
        edges[0].push(random.scaled(exponent).to_bits());
        edges[1].push(random.scaled(if i % 2 == 0 { other } else { -other }).to_bits());
    }
    edges
}

/// The operation, or, where it gives a truth value, 7 or 3 by it.
fn boolean_or(d: &mut Draft, op: ScalarOp, result: ScalarType, args: &[Value]) -> Value {
    match result {
        ScalarType::Bool => d.map(args, |m, p| m.op(SelectI, &[m.op(op, p), m.i(7), m.i(3)])),
        _ => d.apply(op, args),
    }
}

fn integer_pairs(d: &mut Draft) -> [Value; 2] {
    let words: Vec<u32> = INTEGERS.iter().map(|&i| i as u32).collect();
    let [mut i, mut j] = pairs(&words);
    i.extend(d.random.patterns(97));
    j.extend(d.random.patterns(97));
    [i, j].map(|words| {
        let values: Vec<i32> = words.iter().map(|&w| w as i32).collect();
        d.ints(&[values.len() as u32], &values)
    })
}

fn by_constants(d: &mut Draft, op: ScalarOp) {
    let mut values = INTEGERS.to_vec();
    values.extend(d.random.patterns(104).iter().map(|&w| w as i32));
    let x = d.ints(&[values.len() as u32], &values);
    let constants: &[i32] = match op {
        DivI | RemI => &[1, 3, 7, 128, 641, i32::MAX],
        _ => &[0, 1, 15, 31],
    };
    for &n in constants {
        let y = d.map(&[x], |m, p| m.op(op, &[p[0], m.i(n)]));
        d.output(&format!("by_{n}"), y);
    }
}

/// Operations of other signatures.
fn other(d: &mut Draft, op: ScalarOp) {
    let [i, j] = integer_pairs(d);
    match op {
        FloatOf => {
            let mut values = INTEGERS.to_vec();
            // Integers halfway between floats, and beside.
            values.extend((24..31).flat_map(|e| [-1, 0, 1].map(|low| (1 << e) + (3 << (e - 24)) + low)));
            values.extend((25..31).flat_map(|e| [-1, 0, 1].map(|low| -((1 << e) + (1 << (e - 24)) + low))));
            values.extend(d.random.patterns(200).iter().map(|&w| w as i32));
            let x = d.ints(&[values.len() as u32], &values);
            let y = d.apply(op, &[x]);
            d.output("y", y);
        }
        FromBits => {
            let words: Vec<i32> = SPECIAL.iter().chain(&d.random.patterns(100)).map(|&w| w as i32).collect();
            let x = d.ints(&[words.len() as u32], &words);
            let y = d.apply(op, &[x]);
            d.output("y", y);
        }
        SelectF32 => {
            let words = [SPECIAL.to_vec(), d.random.patterns(661)].concat();
            let n = words.len() as u32;
            let (x, y) = (d.floats(&[n], &words), d.floats(&[n], &words.iter().rev().copied().collect::<Vec<_>>()));
            let (zero, n) = (d.b.n(0), d.b.n(n));
            let [i, j] = [i, j].map(|v| d.b.slice(v, 0, zero, n));
            let z = d.map(&[i, j, x, y], |m, p| m.op(op, &[m.op(LtI, &[p[0], p[1]]), p[2], p[3]]));
            d.output("z", z);
        }
        SelectI => {
            let k = d.map(&[i, j], |m, p| m.op(op, &[m.op(LtI, &[p[0], p[1]]), p[1], p[0]]));
            d.output("k", k);
        }
        And | Or => {
            let k = d.map(&[i, j], |m, p| {
                let (less, small) = (m.op(LtI, &[p[0], p[1]]), m.op(LtI, &[p[0], m.i(3)]));
                m.op(SelectI, &[m.op(op, &[less, small]), m.i(7), m.i(3)])
            });
            d.output("k", k);
        }
        Not => {
            let k = d.map(&[i, j], |m, p| m.op(SelectI, &[m.op(op, &[m.op(EqI, p)]), m.i(7), m.i(3)]));
            d.output("k", k);
        }
        IdWhere | Present => ids(d),
        _ => panic!("invariant: every operation has a case, `{}` has none", op.name()),
    }
}

/// Ids are made where an integer is not negative, asked for, and used as a guard.
fn ids(d: &mut Draft) {
    let words: Vec<i32> = INTEGERS.iter().copied().chain(d.random.patterns(40).iter().map(|&w| w as i32)).collect();
    let ids = d.ids(&[words.len() as u32], &words);
    d.output("ids", ids);
    let present = d.map(&[ids], |m, p| m.op(SelectF32, &[m.op(Present, p), m.f(-0.0), m.f(1.5)]));
    d.output("present", present);
}

/// Constants in a text: subnormal, infinite, NaN, signed zeros, the ends of the integers.
fn constants() -> Case {
    let mut d = Draft::new(FAMILY, "constants");
    let x = d.floats(&[SPECIAL.len() as u32], &SPECIAL);
    let floats =
        [0x8000_0000u32, 0x0000_0001, 0x807f_ffff, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x7f7f_ffff, 0x3eaa_aaab];
    for bits in floats {
        let y = d.map(&[x], |m, p| m.op(Add, &[p[0], m.f(f32::from_bits(bits))]));
        d.output(&format!("plus_{bits:08x}"), y);
    }
    let i = d.ints(&[INTEGERS.len() as u32], &INTEGERS);
    for n in [i32::MIN, i32::MAX, -1] {
        let y = d.map(&[i], |m, p| m.op(XorI, &[p[0], m.i(n)]));
        d.output(&format!("xor_{n}"), y);
    }
    d.once()
}

/// Operands that are cut, permuted and broadcast.
fn operands() -> Case {
    let mut d = Draft::new(FAMILY, "operands");
    let (columns, three, five, one) = (d.b.columns(), d.b.n(3), d.b.n(5), d.b.n(1));
    let x = d.activations(&[3, 5]);
    let words = d.random.patterns(40);
    let y = d.floats(&[5, 8], &words);
    let y = d.b.cut(y, 1, 2, 1);
    let y = d.b.reshape(y, &[one, one, five]);
    let y = d.b.broadcast(y, &[columns, three, five]);
    let sum = d.apply(Sub, &[x, y]);
    let turned = d.b.permute(sum, &[2, 0, 1]);
    let other = d.random.patterns(15);
    let other = d.floats(&[5, 3], &other);
    let other = d.b.reshape(other, &[five, one, three]);
    let other = d.b.broadcast(other, &[five, columns, three]);
    let product = d.apply(Mul, &[turned, other]);
    let inner = d.b.cut(product, 0, 1, 3);
    let z = d.apply(Neg, &[inner]);
    for (name, v) in [("sum", sum), ("product", product), ("z", z)] {
        d.output(name, v);
    }
    d.steps(&[8, 1, 3])
}

/// Six operands, in every number of columns.
fn columns() -> Case {
    let mut d = Draft::new(FAMILY, "columns");
    let args: Vec<Value> = (0..6).map(|_| d.activations(&[67])).collect();
    let z = d.map(&args, |m, p| p[1..].iter().fold(p[0], |sum, &x| m.op(Sub, &[m.op(Mul, &[sum, x]), x])));
    d.output("z", z);
    d.steps(&[1, 2, 3, 4, 5, 6, 7, 8])
}

/// More workgroups than one axis of a grid has: 65,561 of 64 elements.
fn large() -> Case {
    let mut d = Draft::new(FAMILY, "large");
    let shape = [d.b.n(65_561), d.b.n(64)];
    let (i, j) = (d.b.iota(&shape, 0), d.b.iota(&shape, 1));
    let mixed = d.map(&[i, j], |m, p| {
        let number = m.op(AddI, &[m.op(MulI, &[p[0], m.i(64)]), p[1]]);
        m.op(MulI, &[number, m.i(0x9e37_79b1u32 as i32)])
    });
    d.output("mixed", mixed);
    d.once()
}

/// Formulas whose operations must stay as they are, each in its order and rounded on its own.
fn formulas() -> Vec<Case> {
    vec![contraction(), rotation(), reassociation(), division(), identities(), comparisons(), sigmoids(), conversions()]
}

fn contracting(d: &mut Draft) -> [Value; 3] {
    d.random.contracting(451).map(|words| d.floats(&[words.len() as u32], &words))
}

/// Products in sums: nothing may fuse them.
fn contraction() -> Case {
    let mut d = Draft::new(FAMILY, "mul_add");
    let args = contracting(&mut d);
    let sum = d.map(&args, |m, p| m.op(Add, &[m.op(Mul, &[p[0], p[1]]), p[2]]));
    let turned = d.map(&args, |m, p| m.op(Add, &[p[2], m.op(Mul, &[p[1], p[0]])]));
    let minus = d.map(&args, |m, p| m.op(Sub, &[m.op(Mul, &[p[0], p[1]]), m.op(Neg, &[p[2]])]));
    let from = d.map(&args, |m, p| m.op(Sub, &[m.op(Neg, &[p[2]]), m.op(Mul, &[p[0], p[1]])]));
    for (name, v) in [("ab_c", sum), ("c_ab", turned), ("ab_minus", minus), ("minus_ab", from)] {
        d.output(name, v);
    }
    d.once()
}

/// Two products in a sum, as a rotation has them: which of them would be fused?
fn rotation() -> Case {
    let mut d = Draft::new(FAMILY, "rotation");
    let [x, c, _] = contracting(&mut d);
    let [y, s, _] = contracting(&mut d);
    let first = d.map(&[x, y, c, s], |m, p| m.op(Sub, &[m.op(Mul, &[p[0], p[2]]), m.op(Mul, &[p[1], p[3]])]));
    let second = d.map(&[x, y, c, s], |m, p| m.op(Add, &[m.op(Mul, &[p[0], p[3]]), m.op(Mul, &[p[1], p[2]])]));
    let square = d.map(&[x, y], |m, p| m.op(Sub, &[m.op(Mul, &[p[0], p[0]]), m.op(Mul, &[p[1], p[1]])]));
    for (name, v) in [("first", first), ("second", second), ("square", square)] {
        d.output(name, v);
    }
    d.once()
}

/// Sums and products of three in both orders, and what only real numbers can leave out.
fn reassociation() -> Case {
    let mut d = Draft::new(FAMILY, "reassociation");
    let rows: Vec<Value> = (0..3)
        .map(|_| {
            let words = d.random.rows(6, 67);
            d.floats(&[402], &words)
        })
        .collect();
    for (name, op) in [("sum", Add), ("product", Mul)] {
        let left = d.map(&rows, |m, p| m.op(op, &[m.op(op, &[p[0], p[1]]), p[2]]));
        let right = d.map(&rows, |m, p| m.op(op, &[p[0], m.op(op, &[p[1], p[2]])]));
        d.output(&format!("{name}_left"), left);
        d.output(&format!("{name}_right"), right);
    }
    let back = d.map(&rows[..2], |m, p| m.op(Sub, &[m.op(Add, p), p[1]]));
    let spread = d.map(&rows, |m, p| m.op(Add, &[m.op(Mul, &[p[0], p[1]]), m.op(Mul, &[p[0], p[2]])]));
    let error = d.map(&rows[..2], |m, p| {
        let sum = m.op(Add, p);
        m.op(Sub, &[p[1], m.op(Sub, &[sum, p[0]])])
    });
    for (name, v) in [("sum_less_term", back), ("two_products", spread), ("error_of_sum", error)] {
        d.output(name, v);
    }
    d.once()
}

/// Quotients by constants, of products, and of one.
fn division() -> Case {
    let mut d = Draft::new(FAMILY, "division");
    let x = [SPECIAL.to_vec(), d.random.patterns(303)].concat();
    let n = x.len() as u32;
    let y: Vec<u32> = x.iter().rev().copied().collect();
    let (x, y) = (d.floats(&[n], &x), d.floats(&[n], &y));
    for by in [2.0f32, 3.0, 10.0, 127.0, 1e-40] {
        let z = d.map(&[x], |m, p| m.op(Div, &[p[0], m.f(by)]));
        d.output(&format!("by_{by:e}"), z);
    }
    let one = d.map(&[x], |m, p| m.op(Div, &[m.f(1.0), p[0]]));
    let root = d.map(&[x], |m, p| m.op(Div, &[m.f(1.0), m.op(Sqrt, &[m.op(Abs, p)])]));
    let back = d.map(&[x, y], |m, p| m.op(Mul, &[m.op(Div, p), p[1]]));
    let twice = d.map(&[x, y], |m, p| m.op(Div, &[m.op(Div, p), p[1]]));
    for (name, v) in [("reciprocal", one), ("reciprocal_root", root), ("and_back", back), ("twice", twice)] {
        d.output(name, v);
    }
    d.once()
}

/// What is no identity of floats, or is one only if signs, subnormals and NaN are kept.
fn identities() -> Case {
    let mut d = Draft::new(FAMILY, "identities");
    let x = [SPECIAL.to_vec(), d.random.patterns(42)].concat();
    let x = d.floats(&[x.len() as u32], &x);
    let outputs = [
        ("plus_zero", d.map(&[x], |m, p| m.op(Add, &[p[0], m.f(0.0)]))),
        ("plus_minus_zero", d.map(&[x], |m, p| m.op(Add, &[p[0], m.f(-0.0)]))),
        ("minus_zero", d.map(&[x], |m, p| m.op(Sub, &[p[0], m.f(0.0)]))),
        ("zero_minus", d.map(&[x], |m, p| m.op(Sub, &[m.f(0.0), p[0]]))),
        ("times_one", d.map(&[x], |m, p| m.op(Mul, &[p[0], m.f(1.0)]))),
        ("times_zero", d.map(&[x], |m, p| m.op(Mul, &[p[0], m.f(0.0)]))),
        ("times_minus_one", d.map(&[x], |m, p| m.op(Mul, &[p[0], m.f(-1.0)]))),
        ("less_itself", d.map(&[x], |m, p| m.op(Sub, &[p[0], p[0]]))),
        ("by_itself", d.map(&[x], |m, p| m.op(Div, &[p[0], p[0]]))),
        ("negated_twice", d.map(&[x], |m, p| m.op(Neg, &[m.op(Neg, p)]))),
        ("square_root_of_square", d.map(&[x], |m, p| m.op(Sqrt, &[m.op(Mul, &[p[0], p[0]])]))),
    ];
    for (name, v) in outputs {
        d.output(name, v);
    }
    d.once()
}

/// Selections by comparisons, which look like a minimum and are none where NaN and zeros are.
fn comparisons() -> Case {
    let mut d = Draft::new(FAMILY, "comparisons");
    let [x, y] = pairs(&SPECIAL);
    let n = x.len() as u32;
    let args = [d.floats(&[n], &x), d.floats(&[n], &y)];
    let less = d.map(&args, |m, p| m.op(SelectF32, &[m.op(LtF, p), p[0], p[1]]));
    let more = d.map(&args, |m, p| m.op(SelectF32, &[m.op(LtF, &[p[1], p[0]]), p[0], p[1]]));
    let not = d.map(&args, |m, p| m.op(SelectF32, &[m.op(Not, &[m.op(LtF, p)]), p[0], p[1]]));
    let equal = d.map(&args, |m, p| m.op(SelectF32, &[m.op(EqF, p), p[0], m.f(2.0)]));
    let clamped = d.map(&args, |m, p| m.op(Max, &[m.op(Min, &[p[0], m.f(1.0)]), p[1]]));
    for (name, v) in [("less", less), ("more", more), ("not_less", not), ("equal", equal), ("clamped", clamped)] {
        d.output(name, v);
    }
    d.once()
}

/// The contract's functions of functions.
fn sigmoids() -> Case {
    let mut d = Draft::new(FAMILY, "sigmoids");
    let mut x = inputs_of(Exp, &mut d.random);
    x.extend(around(20.0));
    let x = d.floats(&[x.len() as u32], &x);
    let sigmoid = d.map(&[x], |m, p| {
        let e = m.op(Exp, &[m.op(Neg, p)]);
        m.op(Div, &[m.f(1.0), m.op(Add, &[m.f(1.0), e])])
    });
    let silu = d.apply(Mul, &[x, sigmoid]);
    let softplus = d.map(&[x], |m, p| {
        let z = m.op(Log1p, &[m.op(Exp, p)]);
        m.op(SelectF32, &[m.op(LtF, &[m.f(20.0), p[0]]), p[0], z])
    });
    for (name, v) in [("sigmoid", sigmoid), ("silu", silu), ("softplus", softplus)] {
        d.output(name, v);
    }
    d.once()
}

/// Roundings behind each other and behind a product: none may be left out or merged.
fn conversions() -> Case {
    let mut d = Draft::new(FAMILY, "conversions");
    let [x, y, _] = contracting(&mut d);
    let half = d.map(&[x, y], |m, p| m.op(RoundF16, &[m.op(Mul, p)]));
    let twice = d.map(&[x], |m, p| m.op(RoundF16, &[m.op(RoundBf16, p)]));
    let back = d.map(&[x], |m, p| m.op(FromBits, &[m.op(ToBits, p)]));
    let bits = d.map(&[x, y], |m, p| m.op(AddI, &[m.op(ToBits, &[m.op(Div, p)]), m.i(1)]));
    for (name, v) in [("product_to_f16", half), ("bf16_to_f16", twice), ("to_bits_and_back", back), ("bits", bits)] {
        d.output(name, v);
    }
    d.once()
}
