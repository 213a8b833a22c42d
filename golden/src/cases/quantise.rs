//! `quantise`: q8 activations, codes and scales.

use super::Case;
use super::draft::Draft;
use super::inputs::times_power;

/// The family's name.
pub const FAMILY: &str = "quantise";

/// All cases.
pub fn cases() -> Vec<Case> {
    vec![rows(), edges(), ties(), strided()]
}

/// Rows of every kind.
fn rows() -> Case {
    let mut d = Draft::new(FAMILY, "rows");
    let x = d.activations(&[160]);
    let q = d.b.quantise(x);
    d.tap("q", q);
    d.steps(&[8, 1, 3])
}

/// Blocks whose largest magnitude is at an edge: of what is zero, of the subnormals, of the range; and codes at both ends.
fn edges() -> Case {
    let mut d = Draft::new(FAMILY, "edges");
    let least = 2f32.powi(-121);
    let below = f32::from_bits(least.to_bits() - 1);
    let largest =
        [least, below, f32::from_bits(least.to_bits() + 1), 127.0 * least, 0.0, 1e-45, f32::MAX, 1.0, 127.0, 0.1];
    let mut words = Vec::new();
    for amax in largest {
        // Both signs of the largest, zeros of both signs, and what lies between.
        words.extend([amax, -amax, 0.0, -0.0].map(f32::to_bits));
        words.extend((4..32).map(|_| (d.random.unit() * amax).to_bits()));
    }
    for strange in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
        words.push(strange.to_bits());
        words.extend((1..32).map(|_| d.random.unit().to_bits()));
    }
    let x = d.floats(&[13, 32], &words);
    let q = d.b.quantise(x);
    d.tap("q", q);
    d.once()
}

/// Elements that lie halfway between two codes, and beside it.
fn ties() -> Case {
    let mut d = Draft::new(FAMILY, "ties");
    let mut words = Vec::new();
    for block in 0..16 {
        // With a largest magnitude of 127 times a power of two, steps are that power.
        let step = times_power(1.0, 3 * block - 20);
        words.push((127.0 * step).to_bits());
        for i in 1..32u32 {
            let tie = (d.random.below(253) as f32 - 126.5) * step;
            words.push(tie.to_bits().wrapping_add(i % 3).wrapping_sub(1));
        }
    }
    let x = d.floats(&[2, 256], &words);
    let q = d.b.quantise(x);
    d.tap("q", q);
    d.once()
}

/// Elements of a block that do not lie together.
fn strided() -> Case {
    let mut d = Draft::new(FAMILY, "strided");
    let x = d.activations(&[64, 3]);
    let x = d.b.permute(x, &[0, 2, 1]);
    let q = d.b.quantise(x);
    d.tap("q", q);
    d.steps(&[8, 1, 5])
}
