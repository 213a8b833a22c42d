//! Double-double arithmetic: an unevaluated sum of two `f64`, about 104 bits.
//!
//! For constants that a plan stores, rounded once to f32. Only `+ - * /` of `f64` and bit operations are used,
//! no library function, so the results are the same on every machine. Ranges are those of constants: nothing
//! here minds overflow or subnormals.

/// The sum `high + low`, with `|low|` at most half an ulp of `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubleDouble {
    /// The sum, rounded to `f64`.
    pub high: f64,
    /// What the rounding lost.
    pub low: f64,
}

/// The exact sum of two numbers (Knuth).
fn two_sum(x: f64, y: f64) -> DoubleDouble {
    let high = x + y;
    let back = high - x;
    let low = (x - (high - back)) + (y - back);
    DoubleDouble { high, low }
}

/// The exact sum of two numbers, the first not smaller in magnitude (Dekker).
fn fast_two_sum(x: f64, y: f64) -> DoubleDouble {
    let high = x + y;
    let low = y - (high - x);
    DoubleDouble { high, low }
}

/// Halves of 26 bits (Veltkamp).
fn halves(x: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * x;
    let upper = scaled - (scaled - x);
    (upper, x - upper)
}

/// The exact product of two numbers (Dekker).
fn two_product(x: f64, y: f64) -> DoubleDouble {
    let high = x * y;
    let ((xh, xl), (yh, yl)) = (halves(x), halves(y));
    let low = ((xh * yh - high) + xh * yl + xl * yh) + xl * yl;
    DoubleDouble { high, low }
}

/// `2^k` for a normal result.
fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

impl From<f64> for DoubleDouble {
    fn from(high: f64) -> Self {
        DoubleDouble { high, low: 0.0 }
    }
}

impl std::ops::Neg for DoubleDouble {
    type Output = Self;
    fn neg(self) -> Self {
        DoubleDouble { high: -self.high, low: -self.low }
    }
}

impl std::ops::Add for DoubleDouble {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (s, t) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let s = fast_two_sum(s.high, s.low + t.high);
        fast_two_sum(s.high, s.low + t.low)
    }
}

impl std::ops::Sub for DoubleDouble {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl std::ops::Mul for DoubleDouble {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let p = two_product(self.high, other.high);
        let cross = self.high * other.low + self.low * other.high;
        fast_two_sum(p.high, p.low + cross)
    }
}

impl std::ops::Div for DoubleDouble {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        // Three quotient digits; the third only rounds the second.
        let first = self.high / other.high;
        let rest = self - other * first.into();
        let second = rest.high / other.high;
        let rest = rest - other * second.into();
        let sum = fast_two_sum(first, second);
        sum + (rest.high / other.high).into()
    }
}

impl DoubleDouble {
    /// Zero.
    pub const ZERO: Self = DoubleDouble { high: 0.0, low: 0.0 };
    /// One.
    pub const ONE: Self = DoubleDouble { high: 1.0, low: 0.0 };

    /// `sum over n >= 0 of sign^n x^(2n+1) / (2n+1)`: atanh for sign 1, atan for sign -1; |x| <= 1/3.
    fn odd_series(self, sign: f64) -> Self {
        let square = self * self * sign.into();
        let mut sum = Self::ZERO;
        // 1/3 to the 71st power is below 2^-110.
        for n in (0..36).rev() {
            sum = sum * square + Self::ONE / f64::from(2 * n + 1).into();
        }
        sum * self
    }

    /// The circle number, by Machin's formula `16 atan(1/5) - 4 atan(1/239)`.
    pub fn pi() -> Self {
        let atan = |n: f64| (Self::ONE / n.into()).odd_series(-1.0);
        atan(5.0) * 16.0.into() - atan(239.0) * 4.0.into()
    }

    /// ln 2 = 2 atanh(1/3).
    pub fn ln_2() -> Self {
        (Self::ONE / 3.0.into()).odd_series(1.0) * 2.0.into()
    }

    /// Natural logarithm of a positive normal number.
    pub fn ln(self) -> Self {
        // 2^-k brings the number into [1/sqrt 2, sqrt 2), where |(m - 1) / (m + 1)| < 0.172.
        let over = self.high.to_bits() as i64 - std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64;
        let k = over >> 52;
        let scale: Self = power_of_two(-k).into();
        let m = self * scale;
        let s = (m - Self::ONE) / (m + Self::ONE);
        s.odd_series(1.0) * 2.0.into() + Self::ln_2() * (k as f64).into()
    }

    /// Exponential, for arguments of magnitude below 700.
    pub fn exp(self) -> Self {
        let ln_2 = Self::ln_2();
        let k = (self.high / ln_2.high).round_ties_even();
        let r = self - ln_2 * k.into();
        // |r| < 0.35: the 28th power over 28! is below 2^-140.
        let mut sum = Self::ONE;
        for n in (1..=28).rev() {
            sum = sum * r / f64::from(n).into() + Self::ONE;
        }
        sum * power_of_two(k as i64).into()
    }

    /// Largest integer not above.
    pub fn floor(self) -> f64 {
        let whole = self.high.floor();
        let below = whole == self.high && self.low < 0.0;
        if below { whole - 1.0 } else { whole }
    }

    /// Smallest integer not below.
    pub fn ceil(self) -> f64 {
        -(-self).floor()
    }

    /// The nearest binary32, ties to even, rounded once from the whole sum.
    pub fn to_f32(self) -> f32 {
        let bits = self.high.to_bits();
        if self.low == 0.0 || bits & 1 == 1 {
            return self.high as f32;
        }
        // Round to odd first, so that `high` on a tie of binary32 does not hide `low`.
        let outward = (self.low > 0.0) == (self.high > 0.0);
        let odd = if outward { bits + 1 } else { bits - 1 };
        f64::from_bits(odd) as f32
    }
}
