//! The trees of the contract over values in lanes.

/// What a lane without leaves holds, and every lane before its first: `x + -0.0` is `x`.
pub(super) const ABSENT: f32 = -0.0;

/// Combines lanes by halving: `l += l + L/2`, then `L/4`, down to one.
#[inline(always)]
pub(super) fn halve<const L: usize>(mut lanes: [f32; L]) -> f32 {
    let mut half = L / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// [`halve`] where only the first `leaves` lanes hold anything: absent halves change no bit.
#[inline(always)]
pub(super) fn halve_first(lanes: &[f32; 32], leaves: usize) -> f32 {
    match leaves {
        0..=4 => halve::<4>(first(lanes)),
        5..=8 => halve::<8>(first(lanes)),
        9..=16 => halve::<16>(first(lanes)),
        _ => halve(*lanes),
    }
}

#[inline(always)]
fn first<const N: usize>(lanes: &[f32; 32]) -> [f32; N] {
    let mut out = [ABSENT; N];
    out.copy_from_slice(&lanes[..N]);
    out
}

/// Adds the leaves `mul(w, x)` of consecutive elements to their lanes. The first element belongs to
/// lane 0: pieces of a row begin at multiples of `L`.
#[inline(always)]
pub(super) fn add_to_lanes<const L: usize>(lanes: &mut [f32; L], w: &[f32], x: &[f32]) {
    let x = &x[..w.len()];
    let mut start = 0;
    while start + L <= w.len() {
        let (w, x) = (&w[start..start + L], &x[start..start + L]);
        for lane in 0..L {
            lanes[lane] += w[lane] * x[lane];
        }
        start += L;
    }
    for (lane, (w, x)) in w[start..].iter().zip(&x[start..]).enumerate() {
        lanes[lane] += w * x;
    }
}

/// Adds the leaves of consecutive elements to a `seq` sum.
#[inline(always)]
pub(super) fn add_in_sequence(sum: &mut f32, w: &[f32], x: &[f32]) {
    for (w, x) in w.iter().zip(&x[..w.len()]) {
        *sum += w * x;
    }
}
