//! References in `f64` for the tests and the exhaustive run, and the measure of error against them.
//!
//! These may use the platform's library: its last bits in `f64` do not matter here.

/// The exact result of the named function, to `f64`. Results of `exp` below 2^-126 are defined as 0.
pub fn exact(name: &str) -> fn(f64) -> f64 {
    match name {
        "exp" => |x| flush(x.exp()),
        "log" => f64::ln,
        "log1p" => f64::ln_1p,
        "sin" => |x| circular(x, 0),
        "cos" => |x| circular(x, 1),
        "sigmoid" => |x| 1.0 / (1.0 + (-x).exp()),
        "silu" => |x| x / (1.0 + (-x).exp()),
        "softplus" => |x| if x > 700.0 { x } else { flush(x.exp()).ln_1p() },
        _ => |_| f64::NAN,
    }
}

/// Sine of a binary32 `x` plus `shift` quadrants.
///
/// The platform's reduction of large arguments is slow, and there are billions of them: large ones are reduced here,
/// by a product with 128 bits of 2/pi; a test compares the two.
fn circular(x: f64, shift: u32) -> f64 {
    if x.abs() < 1024.0 || !x.is_finite() {
        return if shift == 0 { x.sin() } else { x.cos() };
    }
    // |x| = m * 2^(exponent - 23), an integer m; a quadrant is 2^126 units.
    let exponent = (x.to_bits() >> 52) as u32 & 0x7ff;
    let m = ((x.to_bits() >> 29) & 0x7f_ffff) | 0x80_0000;
    let turns = u128::from(m).wrapping_mul(two_over_pi(exponent - 1023 + 7));
    let quadrant = (turns.wrapping_add(1 << 125) >> 126) as u32 + shift;
    let r = ((turns << 2) as i128 as f64) * (std::f64::consts::FRAC_PI_2 / 2f64.powi(128));
    let y = if quadrant & 1 == 0 { r.sin() } else { r.cos() };
    let negative = (quadrant & 2 == 2) != (shift == 0 && x < 0.0);
    if negative { -y } else { y }
}

/// 128 bits of 32 zero bits and 2/pi, from bit `start` on.
fn two_over_pi(start: u32) -> u128 {
    const WORDS: [u32; 9] =
        [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab, 0xdebb_c561];
    let word = |i: usize| u128::from(WORDS[i]);
    let i = (start / 32) as usize;
    let upper = (word(i) << 96) | (word(i + 1) << 64) | (word(i + 2) << 32) | word(i + 3);
    let count = start % 32;
    (upper << count) | (word(i + 4) >> (32 - count))
}

/// 2^-126, the least normal binary32.
pub const LEAST_NORMAL: f64 = f32::MIN_POSITIVE as f64;

fn flush(y: f64) -> f64 {
    if y < LEAST_NORMAL { 0.0 } else { y }
}

/// Whether an input counts for the recorded error: the exact result is a normal number, and so are the
/// functions it is composed of (`silu` below -87.33654 has a subnormal or vanished `sigmoid` inside).
pub fn counts(name: &str, x: f32, exact: f64) -> bool {
    let vanished = name == "silu" && x < -87.336_54;
    (exact.abs() >= LEAST_NORMAL || exact.is_nan()) && !vanished
}

/// How far `y` is from `exact`, in ulp of `exact` (2^-149 below 2^-126).
///
/// 0 where both are NaN or both round to the same infinity, infinite where only one is.
#[inline]
pub fn error(y: f32, exact: f64) -> f64 {
    // 2^128 less half an ulp: from here on the nearest binary32 is infinite.
    const OVERFLOW: f64 = 3.402_823_567_797_336_6e38;
    if exact.abs() >= OVERFLOW || exact.is_nan() || !y.is_finite() {
        let same = y == exact as f32 || (y.is_nan() && exact.is_nan());
        return if same { 0.0 } else { f64::INFINITY };
    }
    let exponent = ((exact.to_bits() >> 52) as i64 & 0x7ff).max(1023 - 126) - 23;
    let ulp = f64::from_bits((exponent as u64) << 52);
    (f64::from(y) - exact).abs() / ulp
}
