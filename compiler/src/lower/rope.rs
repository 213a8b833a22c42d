//! Rotary positions: interleaved pairs on the last dimensions of a head.

use ds4_ir::build::Builder;
use ds4_ir::graph::Constant;
use ds4_ir::numerics::rope::{Yarn, frequencies};
use ds4_ir::{Dim, Type, Value};

use super::Lowering;
use super::math::Math;
use crate::model::{Architecture, LayerKind};
use ds4_ir::Scalar;

/// The frequency tables of layers without and with pooled rows; YaRN bends the second only.
pub fn tables(b: &mut Builder, a: &Architecture) -> [Constant; 2] {
    let yarn = a.rope.yarn.map(|y| Yarn {
        factor: y.factor,
        original_length: y.original_context,
        beta_fast: y.beta_fast,
        beta_slow: y.beta_slow,
    });
    let mut table = |name: &str, base, yarn: Option<&Yarn>| {
        let words: Vec<u32> = frequencies(base, a.rope_dims, yarn).iter().map(|f| f.to_bits()).collect();
        b.add_constant(name, Type::F32, &[a.rope_dims / 2], &words)
    };
    [
        table("rope.frequencies", a.rope.base, None),
        table("rope.frequencies.pooled", a.rope.compressed_base, yarn.as_ref()),
    ]
}

/// Sines and cosines of a list of positions, each f32 `[positions, pairs]`.
#[derive(Clone, Copy)]
pub struct Angles {
    sin: Value,
    cos: Value,
}

impl Lowering<'_> {
    /// Angles at i32 positions `[n]` by the table of a layer's kind.
    pub fn angles(&mut self, positions: Value, kind: LayerKind) -> Angles {
        self.b_within("rope", |l| {
            let table = l.frequencies[usize::from(kind.is_compressed())];
            let frequency = l.b.constant(table);
            let pairs = l.b.n(l.a.rope_dims / 2);
            let count = l.b.dims_of(positions)[0];
            let shape = [count, pairs];
            let p = l.along_first(positions, &shape);
            let one = l.b.n(1);
            let frequency = l.b.reshape(frequency, &[one, pairs]);
            let frequency = l.b.broadcast(frequency, &shape);
            let angle = l.map("if", [p, frequency], |m, [p, f]| m.mul(m.float(p), f));
            let sin = l.map("f", [angle], |m, [t]| m.sin(t));
            let cos = l.map("f", [angle], |m, [t]| m.cos(t));
            Angles { sin, cos }
        })
    }

    /// The same angles the other way round.
    pub fn reversed(&mut self, angles: Angles) -> Angles {
        let sin = self.map("f", [angles.sin], |m, [s]| m.neg(s));
        Angles { sin, ..angles }
    }

    /// Maps every element of `x` `[n, .., width]` by `element` (with further operands that broadcast to `x`), rotates the
    /// last `rope_dims` of them by the angles of their row, and gives the two parts: without rope and with.
    ///
    /// `element` sees the elements of `x` and of the operands. It is part of the rotation's body, so nothing is
    /// stored in between.
    pub fn rotated<const N: usize>(
        &mut self,
        x: [Value; N],
        angles: Angles,
        element: impl Fn(&Math<'_>, [Scalar; N]) -> Scalar,
    ) -> (Value, Value) {
        let dims = self.b.dims_of(x[0]);
        let axis = dims.len() as u32 - 1;
        let width = self.b.dims.constant(dims[axis as usize]).expect("heads have a constant width");
        let plain_width = width - self.a.rope_dims;
        let part = |l: &mut Self, v: Value, start: u32, extent: u32| {
            let full = l.b.broadcast(v, &dims);
            l.b.cut(full, axis, start, extent)
        };
        let plain_args = x.map(|v| part(self, v, 0, plain_width));
        let signature = "f".repeat(N);
        let plain = self.map(&signature, plain_args, &element);

        let pairs = self.b.n(self.a.rope_dims / 2);
        let mut pair_shape: Vec<Dim> = dims[..axis as usize].to_vec();
        pair_shape.extend([pairs, self.b.n(2)]);
        let mut halves = [Vec::new(), Vec::new()];
        for v in x {
            let rope = part(self, v, plain_width, self.a.rope_dims);
            let rope = self.b.reshape(rope, &pair_shape);
            for (i, half) in halves.iter_mut().enumerate() {
                half.push(self.b.cut(rope, axis + 1, i as u32, 1));
            }
        }
        let shape = self.b.dims_of(halves[0][0]);
        let [sin, cos] = [angles.sin, angles.cos].map(|v| self.angle_like(v, &shape));
        let args: Vec<Value> = halves.concat().into_iter().chain([sin, cos]).collect();
        let signature = "f".repeat(args.len());
        let turned = [0, 1].map(|side| {
            let body = self.body(&signature, |m, p| {
                let x0 = element(m, p[..N].try_into().expect("N parameters"));
                let x1 = element(m, p[N..2 * N].try_into().expect("N parameters"));
                let (sin, cos) = (p[2 * N], p[2 * N + 1]);
                if side == 0 { m.sub(m.mul(x0, cos), m.mul(x1, sin)) } else { m.add(m.mul(x0, sin), m.mul(x1, cos)) }
            });
            self.b.map(body, &args)
        });
        let pairs = self.b.concat(axis + 1, &turned);
        let mut shape = dims;
        shape[axis as usize] = self.b.n(self.a.rope_dims);
        (plain, self.b.reshape(pairs, &shape))
    }

    /// Angles `[n, pairs]` repeated to `[n, .., pairs, 1]`.
    fn angle_like(&mut self, angle: Value, shape: &[Dim]) -> Value {
        let one = self.b.n(1);
        let mut dims = vec![one; shape.len()];
        dims[0] = shape[0];
        dims[shape.len() - 2] = shape[shape.len() - 2];
        let angle = self.b.reshape(angle, &dims);
        self.b.broadcast(angle, shape)
    }
}
