use super::{same, specials};
use crate::numerics::arith::{Concrete, mul_high};
use crate::numerics::hashes::{RECORDS, Record, sample_hash};
use crate::numerics::{cos, exp, log, log1p, reference, sigmoid, silu, sin, sin_cos, softplus};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

fn value(record: &Record, x: f32) -> f32 {
    let mut y = [0.0];
    (record.apply)(&[x], &mut y);
    y[0]
}

#[test]
fn special_values() {
    let b = f32::from_bits;
    type Case = (fn(f32) -> f32, f32, f32);
    let cases: &[Case] = &[
        (exp, 0.0, 1.0),
        (exp, -0.0, 1.0),
        (exp, b(1), 1.0),
        (exp, INF, INF),
        (exp, -INF, 0.0),
        (exp, NAN, NAN),
        (exp, -NAN, NAN),
        (exp, f32::MAX, INF),
        (exp, f32::MIN, 0.0),
        (exp, b(0x42b1_7218), INF),
        (exp, b(0x42b1_7217), b(0x7f7f_ff84)),
        (exp, b(0xc2ae_ac50), 0.0),
        (exp, b(0xc2ae_ac4f), b(0x0080_0026)),
        (log, 0.0, -INF),
        (log, -0.0, -INF),
        (log, 1.0, 0.0),
        (log, -1.0, NAN),
        (log, -b(1), NAN),
        (log, -INF, NAN),
        (log, INF, INF),
        (log, NAN, NAN),
        (log, -NAN, NAN),
        (log, b(1), b(0xc2ce_8ed0)),
        (log, f32::MAX, b(0x42b1_7218)),
        (log1p, 0.0, 0.0),
        (log1p, -0.0, -0.0),
        (log1p, b(1), b(1)),
        (log1p, -b(1), -b(1)),
        (log1p, -1.0, -INF),
        (log1p, b(0xbf80_0001), NAN),
        (log1p, -INF, NAN),
        (log1p, INF, INF),
        (log1p, NAN, NAN),
        (log1p, f32::MAX, b(0x42b1_7218)),
        (sin, 0.0, 0.0),
        (sin, -0.0, -0.0),
        (sin, b(1), b(1)),
        (sin, -b(1), -b(1)),
        (sin, INF, NAN),
        (sin, -INF, NAN),
        (sin, NAN, NAN),
        (cos, 0.0, 1.0),
        (cos, -0.0, 1.0),
        (cos, b(1), 1.0),
        (cos, INF, NAN),
        (cos, NAN, NAN),
        (sigmoid, 0.0, 0.5),
        (sigmoid, INF, 1.0),
        (sigmoid, -INF, 0.0),
        (sigmoid, NAN, NAN),
        (silu, 0.0, 0.0),
        (silu, -0.0, -0.0),
        (silu, INF, INF),
        (silu, -INF, NAN),
        (silu, -200.0, -0.0),
        (silu, NAN, NAN),
        (softplus, INF, INF),
        (softplus, -INF, 0.0),
        (softplus, -100.0, 0.0),
        (softplus, NAN, NAN),
        (softplus, b(0x41a0_0001), b(0x41a0_0001)),
    ];
    for (i, &(function, x, wanted)) in cases.iter().enumerate() {
        let y = function(x);
        assert!(same(y, wanted), "case {i}: f({x:e}) = {y:e}, not {wanted:e}");
    }
}

/// The sample runs through every binade with both signs: its stride is prime to the powers of two.
#[test]
fn errors_stay_below_the_recorded_maximum() {
    for record in &RECORDS {
        let exact = reference::exact(record.name);
        for bits in (0..u32::MAX / 1009).map(|i| i * 1009) {
            let x = f32::from_bits(bits);
            let wanted = exact(f64::from(x));
            let error = reference::error(value(record, x), wanted);
            let allowed = !reference::counts(record.name, x, wanted) || error < record.error + 1e-4;
            assert!(allowed, "{} is {error} ulp wrong at {bits:#010x}", record.name);
        }
    }
}

#[test]
fn the_recorded_worst_inputs_have_the_recorded_error() {
    for record in &RECORDS {
        let x = f32::from_bits(record.worst);
        let error = reference::error(value(record, x), reference::exact(record.name)(f64::from(x)));
        assert!((error - record.error).abs() < 1e-4, "{}: {error}", record.name);
    }
}

#[test]
fn small_results_are_exact_or_flushed() {
    for bits in (0..0x0080_0000).step_by(97) {
        let x = f32::from_bits(bits);
        assert!(same(sin(x), x) && same(log1p(x), x) && same(log1p(-x), -x));
        assert_eq!(cos(x), 1.0);
    }
    for bits in (0xc2a0_0000_u32..0xc2c0_0000).step_by(31) {
        let y = exp(f32::from_bits(bits));
        assert!(same(y, 0.0) || y >= f32::MIN_POSITIVE);
    }
}

#[test]
fn sample_hashes() {
    for record in &RECORDS {
        assert_eq!(sample_hash(record.apply), record.sample, "{}", record.name);
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! widened {
    ($name:ident, $feature:literal) => {
        /// Every function over a slice, compiled for a wider instruction set.
        #[target_feature(enable = $feature)]
        fn $name(name: &str, input: &[f32], output: &mut [f32]) {
            macro_rules! each {
                ($function:ident) => {
                    for (y, &x) in output.iter_mut().zip(input) {
                        *y = $function(x);
                    }
                };
            }
            match name {
                "exp" => each!(exp),
                "log" => each!(log),
                "log1p" => each!(log1p),
                "sin" => each!(sin),
                "cos" => each!(cos),
                "sigmoid" => each!(sigmoid),
                "silu" => each!(silu),
                "softplus" => each!(softplus),
                _ => panic!("no function {name}"),
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
widened!(with_avx2_and_fma, "avx2,fma");
#[cfg(target_arch = "x86_64")]
widened!(with_avx512, "avx512f,avx512bw,avx512dq,avx512vl,fma");

/// With fused multiply-add at hand, too, the compiler must not use it.
#[cfg(target_arch = "x86_64")]
#[test]
fn bits_do_not_depend_on_the_instruction_set() {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    for record in &RECORDS {
        if avx2 {
            // SAFETY: the processor has the features that the function is compiled for.
            let hash = sample_hash(|x, y| unsafe { with_avx2_and_fma(record.name, x, y) });
            assert_eq!(hash, record.sample, "{} with AVX2", record.name);
        }
        if avx512 {
            // SAFETY: as above.
            let hash = sample_hash(|x, y| unsafe { with_avx512(record.name, x, y) });
            assert_eq!(hash, record.sample, "{} with AVX-512", record.name);
        }
    }
}

/// Arguments near multiples of pi/2 and huge ones, against values computed with 500 bits.
#[test]
#[allow(clippy::approx_constant)]
fn range_reduction_is_exact() {
    let cases = [
        (0x7f7fffff, -0.5218765233336585, 0.8530210398303042),
        (0x3f490fdb, 0.7071067966408575, 0.7071067657322372),
        (0x40490fdb, -8.742278000372475e-08, -0.9999999999999962),
        (0x4b800001, 0.8939268335654238, 0.4482129139501618),
        (0x49800000, 0.3304931400217347, 0.943808393901312),
        (0x5f800000, 0.023598509904439558, -0.9997215163885841),
        (0x6f79be45, 1.0, -1.6147697982476211e-09),
        (0x6115cb11, -0.24683333362061008, 0.9690579473972321),
        (0xc2b0e7a5, -0.46871579446515554, 0.8833490272926654),
        (0x7e800000, 0.3302161120274418, 0.9439053550846505),
    ];
    for (bits, s, c) in cases {
        let x = f32::from_bits(bits);
        assert!(reference::error(sin(x), s) < 0.8, "sin {bits:#x}");
        assert!(reference::error(cos(x), c) < 0.8, "cos {bits:#x}");
        assert_eq!(sin_cos(x), (sin(x), cos(x)));
    }
}

#[test]
fn the_fast_reference_agrees_with_the_platform() {
    let (sin, cos) = (reference::exact("sin"), reference::exact("cos"));
    for bits in (0..0xff80_0000_u32).step_by(10_007) {
        let x = f64::from(f32::from_bits(bits));
        let close = |y: f64, z: f64| (y - z).abs() <= 1e-13 * z.abs() || y.is_nan() && z.is_nan();
        assert!(close(sin(x), x.sin()) && close(cos(x), x.cos()), "{x:e}");
    }
}

#[test]
fn upper_halves_of_products() {
    let words = [0, 1, 2, 0xffff, 0x1_0000, 0x1_0001, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xa2f9_836e];
    for (x, y) in words.iter().flat_map(|&x: &u32| words.map(|y: u32| (x, y))) {
        let wanted = ((u64::from(x) * u64::from(y)) >> 32) as u32;
        assert_eq!(mul_high(&Concrete, x as i32, y as i32) as u32, wanted);
    }
}

/// An absent leaf or lane may be read as -0.0.
#[test]
fn negative_zero_is_neutral() {
    for x in specials() {
        assert!(same(x + -0.0, x) && same(-0.0 + x, x));
    }
}
