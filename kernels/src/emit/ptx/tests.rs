//! Rules that the text keeps, and how it looks.

mod assembled;
mod tools;

use ds4_ir::numerics::Arith;

use crate::kernel::{Access, Builder, ExtentRow, Kernel, Number, Source, Type};
use crate::tests::shown::{self, stores};

use super::{StepBlock, emit, entry_point};

/// Operations that round.
const ROUNDED: [&str; 5] = ["add", "sub", "mul", "div", "sqrt"];
/// Operations without exact result or with another sign, subnormal or NaN than the contract's.
const FORBIDDEN: [&str; 11] = ["mad", "fma", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "neg", "abs"];
/// Modifiers that change bits.
const LOOSE: [&str; 4] = ["ftz", "approx", "full", "sat"];

/// The first instruction that breaks a rule.
pub(crate) fn broken_rule(text: &str) -> Option<String> {
    let code = text.lines().filter_map(|line| line.split("//").next());
    let mut names = code.filter_map(|line| line.split_whitespace().find(|word| !word.starts_with('@')));
    let breaks = |name: &&str| {
        let parts: Vec<&str> = name.split('.').collect();
        let float = parts.last() == Some(&"f32");
        let rounded = ROUNDED.contains(&parts[0]) && float && !parts.contains(&"rn");
        let order = ["min", "max"].contains(&parts[0]) && float;
        rounded || order || FORBIDDEN.contains(&parts[0]) || parts.iter().any(|part| LOOSE.contains(part))
    };
    names.find(breaks).map(|name| format!("`{name}`"))
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
fn constants_are_written_by_their_bits_and_folded_by_our_rules() {
    let text = |value: &dyn Fn(&Builder) -> Number| emit(&stores(value), &StepBlock::default()).unwrap();
    let x = |b: &Builder| b.from_bits(b.lane());
    assert!(text(&|b| b.add(x(b), b.number(-0.0))).contains("add.rn.f32 %f2, %f1, 0f80000000; // -0.0\n"));
    assert!(
        text(&|b| b.div(b.number(1.0), b.number(3.0)))
            .contains("st.global.f32 [%a2], 0f3EAAAAAB; // out[%lane], 0.33333334\n")
    );
    assert!(text(&|b| b.mul(b.number(1e-20), b.number(1e-20))).contains("0f000116C2"));
    assert!(
        text(&|b| b.sub(b.number(f32::INFINITY), b.number(f32::INFINITY))).contains("0f7FC00000; // out[%lane], NaN\n")
    );
    assert!(text(&|b| b.neg(x(b))).contains("xor.b32 %f2, %f1, 0x80000000;"));
    assert!(text(&|b| b.abs(x(b))).contains("and.b32 %f2, %f1, 0x7fffffff;"));
    assert!(text(&|b| b.sqrt(x(b))).contains("sqrt.rn.f32 %f2, %f1;"));
}

/// Locals called as numbered or special registers, or as instructions, get other names.
#[test]
fn names_of_the_language_are_not_taken() {
    let b = Builder::new("names", &[], 64);
    b.group(ExtentRow::constant(1));
    let out = b.argument(Source::Slot(ds4_ir::Value(0)), Type::Word, Access::Write, "add");
    let at = ["r1", "tid", "step", "lane", "r1"].iter().fold(b.lane(), |x, name| b.name(name, b.mul_int(x, x)));
    b.store(out, b.lane(), at);
    let text = emit(&b.finish(), &StepBlock::default()).unwrap();
    assert!(text.contains("align 4 add_2\n"), "{text}");
    assert!(text.contains("%r1_2, %tid_2, %step_2, %lane_2, %r1_3, %r<"), "{text}");
}

/// What a workgroup of fewer than 32 lanes has of its warp.
#[test]
fn members_of_a_shuffle_are_the_lanes_that_exist() {
    let text = |lanes: u32| {
        let b = Builder::new("exchange", &[], lanes);
        b.group(ExtentRow::constant(1));
        let out = b.argument(Source::Slot(ds4_ir::Value(0)), Type::Word, Access::Write, "out");
        let other = b.shuffle("other", b.lane(), 2, 4);
        // A constant goes by a register.
        b.shuffle("same", b.word(9), 1, 8);
        b.store(out, b.lane(), other);
        emit(&b.finish(), &StepBlock::default()).unwrap()
    };
    assert!(text(8).contains("shfl.sync.bfly.b32 %other, %lane, 2, 7199, 255;"));
    assert!(text(24).contains("shfl.sync.bfly.b32 %other, %lane, 2, 7199, 0xffffff;"));
    assert!(text(64).contains("shfl.sync.bfly.b32 %other, %lane, 2, 7199, 0xffffffff;"));
    assert!(text(64).contains("mov.b32 %r5, 9;\n    shfl.sync.bfly.b32 %same, %r5, 1, 6175, 0xffffffff;"));
}

/// A planted instruction is found by the rules.
#[test]
fn broken_rules_are_found() {
    let text = emit(&stores(|b| b.add(b.from_bits(b.lane()), b.number(1.5))), &StepBlock::default()).unwrap();
    assert_eq!(broken_rule(&text), None);
    for (planted, broken) in [
        ("add.f32", true),
        ("add.rz.f32", true),
        ("add.rn.ftz.f32", true),
        ("fma.rn.f32", true),
        ("mad.lo.u32", true),
        ("div.approx.f32", true),
        ("min.f32", true),
        ("add.u32", false),
        ("min.u32", false),
        ("setp.lt.f32", false),
    ] {
        let found = broken_rule(&text.replace("add.rn.f32", planted));
        assert_eq!(found, broken.then(|| format!("`{planted}`")));
    }
}
