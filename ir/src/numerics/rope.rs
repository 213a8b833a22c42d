//! Rotary position embedding: frequencies of a plan, angles, and the rotation.
//!
//! Frequencies are computed in double-double, YaRN's blend included, and rounded once to f32.

use super::arith::Arith;
use super::double_double::DoubleDouble;

/// YaRN's stretch of the frequencies for contexts longer than the trained one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yarn {
    /// Factor by which slow frequencies are divided.
    pub factor: f32,
    /// Trained context length in tokens.
    pub original_length: u32,
    /// Rotations over the trained length above which a pair keeps its frequency.
    pub beta_fast: f32,
    /// Rotations over the trained length below which a pair is fully stretched.
    pub beta_slow: f32,
}

/// The pair index at which a pair makes `rotations` over the trained length.
///
/// `dims * ln(length / (rotations * 2 pi)) / (2 ln base)`.
fn correction(base: f32, dims: u32, length: u32, rotations: f32) -> DoubleDouble {
    let turns = DoubleDouble::pi() * (2.0 * f64::from(rotations)).into();
    let ratio = DoubleDouble::from(f64::from(length)) / turns;
    let ln_base = DoubleDouble::from(f64::from(base)).ln();
    ratio.ln() * f64::from(dims).into() / (ln_base * 2.0.into())
}

/// First and last pair of the blend: floor at `beta_fast`, ceiling at `beta_slow`, within `[0, dims - 1]`.
pub fn correction_range(base: f32, dims: u32, yarn: &Yarn) -> (u32, u32) {
    let at = |rotations| correction(base, dims, yarn.original_length, rotations);
    let last = f64::from(dims) - 1.0;
    let low = at(yarn.beta_fast).floor().clamp(0.0, last);
    let high = at(yarn.beta_slow).ceil().clamp(0.0, last);
    (low as u32, high as u32)
}

/// How far pair `i` is stretched: 0 up to `low`, 1 from `high`, linear between.
///
/// Where both are equal the divisor is 0.001, as in the reference implementations.
fn ramp(i: u32, (low, high): (u32, u32)) -> DoubleDouble {
    let steps = f64::from(i) - f64::from(low);
    let width = match f64::from(high) - f64::from(low) {
        0.0 => DoubleDouble::ONE / 1000.0.into(),
        width => width.into(),
    };
    let t = DoubleDouble::from(steps) / width;
    match t.high {
        h if h <= 0.0 => DoubleDouble::ZERO,
        h if h >= 1.0 => DoubleDouble::ONE,
        _ => t,
    }
}

/// The `dims / 2` frequencies `base^(-2i / dims)` in radians per token, blended by YaRN if given:
/// `g / factor * ramp + g * (1 - ramp)`, all in double-double, then one rounding.
///
/// `base` and the numbers of `yarn` are positive and finite, `base` is not 1, and `dims` is even.
pub fn frequencies(base: f32, dims: u32, yarn: Option<&Yarn>) -> Vec<f32> {
    let ln_base = DoubleDouble::from(f64::from(base)).ln();
    let blend = yarn.map(|y| (f64::from(y.factor), correction_range(base, dims, y)));
    let one = DoubleDouble::ONE;
    let frequency = |i: u32| {
        let exponent = DoubleDouble::from(2.0 * f64::from(i)) / f64::from(dims).into();
        let g = (-(ln_base * exponent)).exp();
        blend.map_or(g, |(factor, range)| {
            let t = ramp(i, range);
            g / factor.into() * t + g * (one - t)
        })
    };
    (0..dims / 2).map(|i| frequency(i).to_f32()).collect()
}

/// The angle of a pair in radians: `mul(f32(position), frequency)`. Positions are at most 2^24.
#[inline(always)]
pub fn angle<A: Arith>(a: &A, position: A::I, frequency: A::F) -> A::F {
    a.mul(a.float_of(position), frequency)
}

/// Rotates a pair: `(x0 c - x1 s, x0 s + x1 c)`, each product and sum rounded.
#[inline(always)]
pub fn rotate<A: Arith>(a: &A, [x0, x1]: [A::F; 2], sin: A::F, cos: A::F) -> [A::F; 2] {
    [a.sub(a.mul(x0, cos), a.mul(x1, sin)), a.add(a.mul(x0, sin), a.mul(x1, cos))]
}
