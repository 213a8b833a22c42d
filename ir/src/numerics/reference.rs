//! References in `f64` for the tests and the exhaustive run, and the measure of error against them.
//!
//! These may use the platform's library: its last bits in `f64` do not matter here.

/// The exact result of the named function, to `f64`. Results of `exp` below 2^-126 are defined as 0.
pub fn exact(name: &str) -> fn(f64) -> f64 {
    match name {
        "exp" => |x| flush(x.exp()),
        "log" => f64::ln,
        "log1p" => f64::ln_1p,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "sigmoid" => |x| 1.0 / (1.0 + (-x).exp()),
        "silu" => |x| x / (1.0 + (-x).exp()),
        "softplus" => |x| if x > 700.0 { x } else { flush(x.exp()).ln_1p() },
        _ => |_| f64::NAN,
    }
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
