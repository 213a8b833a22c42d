//! The trees of the contract over values in lanes.

use super::level::Level;

/// What a lane without leaves holds, and every lane before its first: `x + -0.0` is `x`.
pub(super) const ABSENT: f32 = -0.0;

/// `16 * R` lanes without leaves, in vectors.
#[inline(always)]
pub(super) fn absent_lanes<L: Level, const R: usize>(level: L) -> [L::Vector; R] {
    [level.splat(ABSENT); R]
}

/// Adds the leaves `mul(w, x)` of consecutive elements to `16 * R` lanes. The first element belongs
/// to lane 0: pieces of a row begin at multiples of the lanes.
#[inline(always)]
pub(super) fn add_to_lanes<L: Level, const R: usize>(
    level: L,
    mut lanes: [L::Vector; R],
    w: &[f32],
    x: &[f32],
) -> [L::Vector; R] {
    let (w, last_w) = w.as_chunks::<16>();
    let (x, last_x) = x[..16 * w.len() + last_w.len()].as_chunks::<16>();
    let leaves = |w: &[f32; 16], x: &[f32; 16]| level.mul(level.load(w), level.load(x));
    let (rounds_w, rest_w) = w.as_chunks::<R>();
    let (rounds_x, rest_x) = x.as_chunks::<R>();
    for (w, x) in rounds_w.iter().zip(rounds_x) {
        for r in 0..R {
            lanes[r] = level.add(lanes[r], leaves(&w[r], &x[r]));
        }
    }
    for r in 0..R {
        if r < rest_w.len() {
            lanes[r] = level.add(lanes[r], leaves(&rest_w[r], &rest_x[r]));
        } else if r == rest_w.len() && !last_w.is_empty() {
            // Products that are absent: -0.0 times 1.
            let (mut w, mut x) = ([ABSENT; 16], [1.0; 16]);
            w[..last_w.len()].copy_from_slice(last_w);
            x[..last_x.len()].copy_from_slice(last_x);
            lanes[r] = level.add(lanes[r], leaves(&w, &x));
        }
    }
    lanes
}

/// Combines `16 * R` lanes by halving: `l += l + L/2`, then `L/4`, down to one.
#[inline(always)]
pub(super) fn halve<L: Level, const R: usize>(level: L, mut lanes: [L::Vector; R]) -> f32 {
    let mut half = R / 2;
    while half > 0 {
        for r in 0..half {
            lanes[r] = level.add(lanes[r], lanes[r + half]);
        }
        half /= 2;
    }
    level.halve(lanes[0])
}

/// [`halve`] of 32 lanes of which only the first `leaves` hold anything: absent halves change no bit.
#[inline(always)]
pub(super) fn halve_first<L: Level>(level: L, lanes: &[f32; 32], leaves: usize) -> f32 {
    if leaves <= 4 {
        return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    }
    let (vectors, _) = lanes.as_chunks::<16>();
    let low = level.load(&vectors[0]);
    match leaves {
        ..=16 => level.halve(low),
        _ => level.halve(level.add(low, level.load(&vectors[1]))),
    }
}

/// Adds the leaves of consecutive elements to a `seq` sum.
#[inline(always)]
pub(super) fn add_in_sequence(mut sum: f32, w: &[f32], x: &[f32]) -> f32 {
    for (w, x) in w.iter().zip(&x[..w.len()]) {
        sum += w * x;
    }
    sum
}
