use super::{same, specials};
use crate::formats::q8::quantise_q8;
use crate::numerics::arith::Concrete;
use crate::numerics::quantise::{fp4_scale, fp4_sim, fp8_scale, fp8_sim, q8_code, q8_scales};
use crate::numerics::round::plain::*;
use crate::numerics::{amax, canonical};

/// Every 1009th pattern, and for each value of `table` and each midpoint the neighbours in binary32.
fn inputs(table: &[f32]) -> impl Iterator<Item = f32> + '_ {
    let near = |x: f32| [x.next_down(), x, x.next_up()];
    let middle = |w: &[f32]| ((f64::from(w[0]) + f64::from(w[1])) / 2.0) as f32;
    let signs = |x: f32| [x, -x];
    let around = table.iter().copied().chain(table.windows(2).map(middle));
    (0..u32::MAX / 1009)
        .map(|i| f32::from_bits(i * 1009))
        .chain(specials())
        .chain(around.flat_map(near).flat_map(signs))
}

/// The non-negative finite values of codes below `end`, ascending with the code.
fn values(end: u16, value: impl Fn(u16) -> f32) -> Vec<f32> {
    let table: Vec<f32> = (0..end).map(value).collect();
    assert!(table.is_sorted_by(|x, y| x < y));
    table
}

/// The code nearest to `x` in a table of non-negative values, ties to even; `end` past the last by half a step.
fn nearest(table: &[f32], x: f32) -> usize {
    let x = f64::from(x.abs());
    let above = table.partition_point(|&v| f64::from(v) < x);
    let at = |i: usize| match table.get(i) {
        Some(&v) => f64::from(v),
        None => 2.0 * at_end(table) - f64::from(table[table.len() - 2]),
    };
    if above == 0 {
        return 0;
    }
    let (below, distance) = (above - 1, x - at(above - 1));
    let rest = at(above) - x;
    let up = rest < distance || (rest == distance && above % 2 == 0);
    if up { above } else { below }
}

fn at_end(table: &[f32]) -> f64 {
    f64::from(table[table.len() - 1])
}

#[test]
fn f16_agrees_with_half() {
    for code in 0..=u16::MAX {
        let wanted = canonical(half::f16::from_bits(code).to_f32());
        assert_eq!(f16_value(code).to_bits(), wanted.to_bits(), "{code:#06x}");
    }
    let table = values(0x7c00, f16_value);
    for x in inputs(&table) {
        let wanted = match x.is_nan() {
            true => 0x7e00,
            false => half::f16::from_f32(x).to_bits(),
        };
        assert_eq!(f16_code(x), wanted, "{x:e}");
        assert!(same(round_to_f16(x), f16_value(wanted)));
    }
}

#[test]
fn bf16_agrees_with_half() {
    for code in 0..=u16::MAX {
        let wanted = canonical(half::bf16::from_bits(code).to_f32());
        assert_eq!(bf16_value(code).to_bits(), wanted.to_bits(), "{code:#06x}");
    }
    let table = values(0x7f80, bf16_value);
    for x in inputs(&table) {
        let wanted = match x.is_nan() {
            true => 0x7fc0,
            false => half::bf16::from_f32(x).to_bits(),
        };
        assert_eq!(bf16_code(x), wanted, "{x:e}");
        assert!(same(round_to_bf16(x), bf16_value(wanted)));
    }
}

#[test]
fn e4m3_is_the_nearest_value() {
    let table = values(0x7f, |c| e4m3_value(c as u8));
    assert_eq!((table[1], table[8], table[126]), (2f32.powi(-9), 2f32.powi(-6), 448.0));
    assert!(e4m3_value(0x7f).is_nan() && e4m3_value(0xff).is_nan());
    for x in inputs(&table) {
        let wanted = match nearest(&table, x) {
            _ if x.is_nan() => 0x7f,
            127.. => 0x7f,
            code => code as u8 | ((x.to_bits() >> 24) as u8 & 0x80),
        };
        assert_eq!(e4m3_code(x), wanted, "{x:e}");
        assert!(same(round_to_e4m3(x), e4m3_value(wanted)));
    }
    assert_eq!((e4m3_code(464.0), e4m3_code(464f32.next_up())), (0x7e, 0x7f));
}

#[test]
fn e2m1_is_the_nearest_value() {
    let table = values(8, |c| e2m1_value(c as u8));
    assert_eq!(table, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    for x in inputs(&table) {
        let wanted = match nearest(&table, x).min(7) {
            _ if x.is_nan() => 7,
            code => code as u8 | ((x.to_bits() >> 28) as u8 & 8),
        };
        assert_eq!(e2m1_code(x), wanted, "{x:e}");
        let rounded = if x.is_nan() { x } else { e2m1_value(wanted) };
        assert!(same(round_to_e2m1(x), rounded), "{x:e}");
    }
    let ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
    assert_eq!(ties.map(round_to_e2m1), [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
}

#[test]
fn e8m0_is_a_power_of_two() {
    for code in 0..=254u8 {
        let wanted = 2f64.powi(i32::from(code) - 127);
        assert_eq!(f64::from(e8m0_value(code)), wanted);
        assert_eq!(f64::from(e8m0_half(code)), wanted / 2.0);
        assert_eq!(e8m0_code(e8m0_value(code)), code);
    }
    assert!(e8m0_value(255).is_nan() && e8m0_half(255).is_nan());
    assert_eq!(e8m0_code(f32::NAN), 255);
}

/// The definition in f64, where the quotient is not within an ulp of a power of two.
fn scale_in_f64(m: f32, least: f64, largest: f64) -> Option<f64> {
    let quotient = f64::from(m).max(least) / largest;
    let exponent = quotient.log2();
    ((exponent - exponent.round()).abs() > 1e-6).then(|| 2f64.powi(exponent.ceil() as i32))
}

#[test]
fn scales_of_the_round_trips() {
    let c = Concrete;
    for bits in (0..0x7f80_0000u32).step_by(1009) {
        let m = f32::from_bits(bits);
        if let Some(wanted) = scale_in_f64(m, 1e-4, 448.0) {
            assert_eq!(f64::from(fp8_scale(&c, m)), wanted, "{m:e}");
        }
        if let Some(wanted) = scale_in_f64(m, 6.0 * 2f64.powi(-126), 6.0) {
            assert_eq!(f64::from(fp4_scale(&c, m)), wanted, "{m:e}");
        }
    }
    // Powers of two by the bits of the rounded product.
    assert_eq!(fp8_scale(&c, 448.0), 1.0);
    assert_eq!(fp8_scale(&c, 448f32.next_up()), 2.0);
    assert_eq!(fp4_scale(&c, 6.0), 1.0);
    assert_eq!(fp4_scale(&c, 0.0), 2f32.powi(-126));
    for m in [f32::INFINITY, f32::NAN] {
        assert!(fp8_scale(&c, m).is_nan() && fp4_scale(&c, m).is_nan());
        assert!(fp8_sim(&c, 1.0, fp8_scale(&c, m)).is_nan());
        assert!(fp4_sim(&c, 1.0, fp4_scale(&c, m)).is_nan());
    }
}

#[test]
fn round_trips_are_idempotent() {
    let c = Concrete;
    for bits in (0..0x7f80_0000u32).step_by(100_003) {
        let m = f32::from_bits(bits);
        let (eight, four) = (fp8_scale(&c, m), fp4_scale(&c, m));
        for part in [1.0, 0.9, -0.31, 0.011, 0.0, -1.0] {
            let y = fp8_sim(&c, m * part, eight);
            assert!(same(fp8_sim(&c, y, eight), y), "{m:e} {part}");
            let y = fp4_sim(&c, m * part, four);
            assert!(same(fp4_sim(&c, y, four), y), "{m:e} {part}");
        }
    }
}

#[test]
fn q8_agrees_with_the_blocks() {
    let c = Concrete;
    let starts = (0..u32::MAX / 262_147).map(|i| i * 262_147);
    for start in starts {
        let spread = |j: u32| f32::from_bits(start.wrapping_add(j * 54_321) ^ (j << 31));
        let block: Vec<f32> = (0..32).map(spread).collect();
        let (mut codes, mut scales) = ([0; 32], [0.0]);
        quantise_q8(&block, &mut codes, &mut scales);
        let (d, id) = q8_scales(&c, block.iter().fold(0.0, |m, &x| amax(m, x)));
        assert!(same(d, scales[0]), "{start:#x}: {d:e} {:e}", scales[0]);
        for (&x, &code) in block.iter().zip(&codes) {
            assert_eq!(q8_code(&c, x, id), i32::from(code), "{start:#x}: {x:e}");
        }
    }
}
