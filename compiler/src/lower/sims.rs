//! The official code's simulated quantisation (specification of the family, section 3.9), and rounding of KV rows.

use ds4_ir::{ReduceKind, Scalar, Tree, Value};

use super::math::Math;
use super::{KvRows, Lowering, Sims};

/// The power of two at or above `max(amax, least) * inverse`, by the bits of that product; a normal number. NaN where
/// `amax` is infinite or NaN.
fn power_of_two(m: &Math<'_>, amax: Scalar, least: f32, inverse: f32) -> Scalar {
    let bounded = m.max(amax, m.f(least));
    let bits = m.to_bits(m.mul(bounded, m.f(inverse)));
    let scale = m.andi(m.addi(bits, m.i(0x007f_ffff)), m.i(0x7f80_0000));
    let finite = m.lt(bounded, m.f(f32::INFINITY));
    m.select(finite, m.float_from_bits(scale), m.f(f32::from_bits(0x7fc0_0000)))
}

/// `x` clamped by comparisons, so that NaN stays.
fn clamped(m: &Math<'_>, x: Scalar, bound: f32) -> Scalar {
    let x = m.select(m.lt(m.f(bound), x), m.f(bound), x);
    m.select(m.lt(x, m.f(-bound)), m.f(-bound), x)
}

impl Lowering<'_> {
    /// Rounds the dimensions without rope of KV rows `[.., width]`: E4M3 in groups of 64, scales powers of two.
    pub fn simulated_row(&mut self, plain: Value) -> Value {
        if self.options.sims == Sims::None {
            return plain;
        }
        self.b_within("fp8", |l| {
            l.round_trip(
                plain,
                64,
                |m, amax| power_of_two(m, amax, 1e-4, 1.0 / 448.0),
                |m, x, s| m.mul(m.round_e4m3(clamped(m, m.div(x, s), 448.0)), s),
            )
        })
    }

    /// Hadamard transform and E2M1 in groups of 32 for the indexer's queries and keys `[.., width]`.
    pub fn simulated_index(&mut self, x: Value) -> Value {
        if self.options.sims == Sims::None {
            return x;
        }
        let x = self.b_within("hadamard", |l| l.hadamard(x));
        self.b_within("fp4", |l| {
            let least = 6.0 * f32::MIN_POSITIVE;
            l.round_trip(
                x,
                32,
                |m, amax| power_of_two(m, amax, least, 1.0 / 6.0),
                |m, x, s| m.mul(m.round_e2m1(clamped(m, m.div(x, s), 6.0)), s),
            )
        })
    }

    /// Rounds groups of the last axis through a narrow format with a scale for each group.
    fn round_trip(
        &mut self,
        x: Value,
        group: u32,
        scale: impl Fn(&Math<'_>, Scalar) -> Scalar,
        round: impl Fn(&Math<'_>, Scalar, Scalar) -> Scalar,
    ) -> Value {
        let dims = self.b.dims_of(x);
        let (&last, front) = dims.split_last().expect("rows have an axis");
        let width = self.b.dims.constant(last).expect("rows have a constant width");
        let mut shape = front.to_vec();
        shape.extend([self.b.n(width / group), self.b.n(group)]);
        let grouped = self.b.reshape(x, &shape);
        let magnitude = self.map("f", [grouped], |m, [x]| m.abs(x));
        let amax = self.kept(ReduceKind::Max, Tree::Free, shape.len() as u32 - 1, magnitude);
        let scales = self.map("f", [amax], |m, [a]| scale(m, a));
        let rounded = self.map_like("ff", [grouped, scales], |m, [x, s]| round(m, x, s));
        self.b.reshape(rounded, &dims)
    }

    /// The orthonormal Walsh-Hadamard transform of the last axis in natural order: butterflies with stride 1, 2, ...,
    /// then `mul` by `div(1, sqrt(width))`.
    fn hadamard(&mut self, x: Value) -> Value {
        let dims = self.b.dims_of(x);
        let (&last, front) = dims.split_last().expect("heads have an axis");
        let width = self.b.dims.constant(last).expect("heads have a constant width");
        let mut x = x;
        let mut stride = 1;
        while stride < width {
            let mut shape = front.to_vec();
            shape.extend([self.b.n(width / (2 * stride)), self.b.n(2), self.b.n(stride)]);
            let axis = shape.len() as u32 - 2;
            let pairs = self.b.reshape(x, &shape);
            let (a, b) = (self.b.cut(pairs, axis, 0, 1), self.b.cut(pairs, axis, 1, 1));
            let sum = self.map("ff", [a, b], |m, [a, b]| m.add(a, b));
            let difference = self.map("ff", [a, b], |m, [a, b]| m.sub(a, b));
            let pairs = self.b.concat(axis, &[sum, difference]);
            x = self.b.reshape(pairs, &dims);
            stride *= 2;
        }
        self.map("f", [x], |m, [x]| m.mul(x, m.div(m.f(1.0), m.sqrt(m.f(width as f32)))))
    }

    /// A KV row as it is kept.
    pub fn kept_row(&mut self, row: Value) -> Value {
        match self.options.kv {
            KvRows::F32 => row,
            KvRows::F16 => self.map("f", [row], |m, [x]| m.round_f16(x)),
        }
    }
}
