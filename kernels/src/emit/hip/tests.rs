//! Rules that the text keeps, and how it looks.

use ds4_ir::numerics::Arith;

use crate::kernel::{Builder, Kernel, Number};
use crate::tests::shown::{self, stores};

use super::prelude::FUNCTIONS;
use super::{CONTRACTION_OFF, StepBlock, emit};

/// What the body may call, beside the functions in front of it: words with a bracket behind them.
const CALLED: [&str; 7] = ["int", "unsigned", "float", "if", "for", "__syncthreads", "__threadfence_block"];

/// Words that no body has: what computes in another precision, or is no part of the language that the printer writes.
const FORBIDDEN: [&str; 7] = ["double", "long", "half", "volatile", "asm", "while", "RT_BUILTIN"];

/// The first rule that a text breaks.
pub(crate) fn broken_rule(text: &str) -> Option<String> {
    let Some((_, body)) = text.split_once(&format!("\n) {{\n{CONTRACTION_OFF}")) else {
        return Some("contraction is on".into());
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = body.split(|c| !is_name(c));
    if let Some(word) = words.find(|word| FORBIDDEN.contains(word)) {
        return Some(format!("`{word}`"));
    }
    let before_brackets = body.match_indices('(').map(|(at, _)| body[..at].trim_end());
    let mut called = before_brackets.map(|before| before.rsplit(|c| !is_name(c)).next().unwrap_or_default());
    let known = |word: &str| word.is_empty() || CALLED.contains(&word) || FUNCTIONS.iter().any(|f| f.name == word);
    called.find(|word| !known(word)).map(|word| format!("`{word}` is called"))
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
fn constants_are_exact() {
    let text = |value: &dyn Fn(&Builder) -> Number| emit(&stores(value), &StepBlock::default()).unwrap();
    let stored = |value: f32, wanted: &str| {
        let text = text(&|b| b.number(value));
        assert!(text.contains(&format!("out[lane] = {wanted};")), "{text}");
    };
    stored(0.0, "0.0f");
    stored(-0.0, "-0.0f");
    stored(1.0, "1.0f");
    stored(-12_582_912.0, "-0x1.8p+23f");
    stored(0.1, "0x1.99999ap-4f");
    stored(f32::MAX, "0x1.fffffep+127f");
    stored(f32::MIN_POSITIVE, "0x1p-126f");
    stored(f32::from_bits(1), "as_float(1u)");
    stored(f32::NEG_INFINITY, "as_float(0xff800000u)");
    let x = |b: &Builder| b.from_bits(b.lane());
    assert!(text(&|b| b.add(x(b), b.number(0.0))).contains("out[lane] = as_float(lane) + 0.0f;"));
    assert!(text(&|b| b.div(b.number(1.0), b.number(3.0))).contains("out[lane] = 0x1.555556p-2f;"));
    assert!(text(&|b| b.neg(x(b))).contains("out[lane] = flipped(as_float(lane));"));
    assert!(text(&|b| b.sqrt(x(b))).contains("static __device__ inline float root(float x) {"));
}

/// Whatever a name holds, the line behind the comment is not part of it.
#[test]
fn a_comment_ends_with_its_line() {
    let mut kernel = stores(|b| b.number(1.0));
    kernel.about = "a \\\n#define x \u{202e}??/".into();
    let text = emit(&kernel, &StepBlock::default()).unwrap();
    assert_eq!(text.lines().next(), Some("// a __#define x ___/"));
}

/// Planted faults are found by the rule.
#[test]
fn broken_rules_are_found() {
    let x = |b: &Builder| b.sqrt(b.add(b.from_bits(b.lane()), b.number(0.5)));
    let text = emit(&stores(x), &StepBlock::default()).unwrap();
    assert_eq!(broken_rule(&text), None);
    assert_eq!(broken_rule(&text.replace("contract(off)", "contract(on)")).as_deref(), Some("contraction is on"));
    let planted = |old: &str, new: &str| {
        assert!(text.contains(old), "{text}");
        broken_rule(&text.replace(old, new)).unwrap_or_default()
    };
    assert_eq!(planted("= root(as_float(lane)", "= sqrtf(as_float(lane)"), "`sqrtf` is called");
    assert_eq!(planted("as_float(lane) + 0.5f", "__fadd_rn (as_float(lane), 0.5f)"), "`__fadd_rn` is called");
    assert_eq!(planted("const unsigned lane", "const double x = 1; const unsigned lane"), "`double`");
}

/// The root of the text, word by word, over every significand of both parities and the edges of the range; the estimate is
/// off, as a device's may be.
#[test]
fn the_root_is_correctly_rounded() {
    let root = |x: f32| -> f32 {
        let bits = x.to_bits();
        let mut exponent = (bits >> 23) as i32;
        let mut m = bits & 0x7f_ffff;
        if exponent == 0 {
            exponent = 1;
            while m < 0x80_0000 {
                m <<= 1;
                exponent -= 1;
            }
        } else {
            m |= 0x80_0000;
        }
        if exponent & 1 == 0 {
            exponent -= 1;
            m <<= 1;
        }
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
    let edges = (1..1 << 12).chain(0x7f_f000..0x80_1000).chain(0x7f7f_f000..0x7f80_0000);
    for bits in significands.chain(edges) {
        let x = f32::from_bits(bits);
        assert_eq!(root(x).to_bits(), x.sqrt().to_bits(), "{bits:#x}");
    }
}
