//! Rules that the text keeps, and how it looks.

use ds4_ir::numerics::Arith;

use crate::kernel::{Builder, Kernel, Number};
use crate::tests::shown::{self, stores};

use super::{StepBlock, emit};

/// What strict text never holds: builtin functions with a rounding, literal float zeros.
const FORBIDDEN: [&str; 14] = [
    "fma(",
    " dot(",
    "mix(",
    "ldexp(",
    "length(",
    "inverseSqrt(",
    " abs(",
    " max(",
    " exp(",
    " log(",
    "pow(",
    " 0.0f",
    "(0.0f",
    "-0.0f",
];

/// The first rule that a text breaks.
pub(crate) fn broken_rule(text: &str) -> Option<String> {
    let found = FORBIDDEN.iter().find(|word| text.contains(*word)).map(|word| format!("`{word}`"));
    let sqrt = text.matches("sqrt(").count() > usize::from(text.contains("fn root("));
    found.or(sqrt.then(|| "a builtin square root".into()))
}

/// The text of a kernel.
fn text((kernel, block): (Kernel, StepBlock)) -> String {
    emit(&kernel, &block).unwrap()
}

#[test]
fn a_map_reads_well() {
    insta::assert_snapshot!(text(shown::map()));
}

#[test]
fn a_quantised_product_reads_well() {
    insta::assert_snapshot!(text(shown::quantised_product()));
}

#[test]
fn a_gather_guards_its_ids() {
    insta::assert_snapshot!(text(shown::gather()));
}

#[test]
fn zeros_are_loaded_and_constants_folded_by_our_rules() {
    let text = |value: &dyn Fn(&Builder) -> Number| emit(&stores(value), &StepBlock::default()).unwrap();
    let x = |b: &Builder| b.from_bits(b.lane());
    let plus = text(&|b| b.add(x(b), b.number(0.0)));
    assert!(plus.contains("out[lane] = bitcast<f32>(lane) + bitcast<f32>(step[0]);"), "{plus}");
    assert!(text(&|b| b.mul(b.number(-0.0), x(b))).contains("bitcast<f32>(step[1]) * bitcast<f32>(lane)"));
    assert!(text(&|b| b.div(b.number(1.0), b.number(3.0))).contains("out[lane] = 0.33333334f;"));
    assert!(text(&|b| b.sub(b.number(1.0), b.number(1.0))).contains("out[lane] = bitcast<f32>(step[0]);"));
    assert!(text(&|b| b.mul(b.number(1e-20), b.number(1e-20))).contains("out[lane] = loaded(0x"));
    assert!(text(&|b| b.number(f32::INFINITY)).contains("out[lane] = loaded(0x7f800000u);"));
    assert!(text(&|b| b.neg(x(b))).contains("flipped("));
    assert!(text(&|b| b.sqrt(x(b))).contains("fn root("));
}

/// A planted literal zero and a planted builtin are found by the rule.
#[test]
fn broken_rules_are_found() {
    let text = emit(&stores(|b| b.add(b.from_bits(b.lane()), b.number(0.0))), &StepBlock::default()).unwrap();
    assert_eq!(broken_rule(&text), None);
    assert!(broken_rule(&text.replace("bitcast<f32>(step[0])", "0.0f")).is_some());
    assert!(broken_rule(&text.replace("bitcast<f32>(lane)", "sqrt(2.0f)")).is_some());
}

/// The integer root of the text, word by word, over every significand of both parities and the edges of the range.
#[test]
fn the_root_is_correctly_rounded() {
    let root = |x: f32| -> f32 {
        let bits = x.to_bits();
        let mut exponent = (bits >> 23) as i32;
        let mut m = bits & 0x7f_ffff;
        if exponent == 0 {
            let shift = m.leading_zeros() - 8;
            m <<= shift;
            exponent = 1 - shift as i32;
        } else {
            m |= 0x80_0000;
        }
        if exponent & 1 == 0 {
            exponent -= 1;
            m <<= 1;
        }
        // An estimate that is off, as a device's may be.
        let mut s = ((m << 1) as f32).sqrt().mul_add(4096.0, (bits % 5) as f32 - 2.0) as u32;
        let mut rest = (m << 25).wrapping_sub(s.wrapping_mul(s)) as i32;
        while rest < 0 {
            s -= 1;
            rest += (2 * s + 1) as i32;
        }
        while rest > (2 * s) as i32 {
            rest -= (2 * s + 1) as i32;
            s += 1;
        }
        let rounded = (s >> 1) + (s & 1);
        f32::from_bits(rounded.wrapping_add((((exponent - 175) / 2 + 150) as u32) << 23))
    };
    let significands = (0..1 << 24).map(|i: u32| 0x3f80_0000 + i);
    let subnormals = (1..1 << 12).chain((0x7f_f000..0x80_1000).step_by(1)).chain(0x7f7f_f000..0x7f80_0000);
    for bits in significands.chain(subnormals) {
        let x = f32::from_bits(bits);
        assert_eq!(root(x).to_bits(), x.sqrt().to_bits(), "{bits:#x}");
    }
}
