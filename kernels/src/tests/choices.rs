//! `top_k`, `arg_max` and `sort_ids`: ties, signed zeros, NaN, masked ones.

use ds4_ir::Builder;

use super::bench::{Bench, COLUMNS, Checkpoint, Random, Small};

/// Keys with many ties, both zeros, infinities and NaN.
fn keys(random: &mut Random, count: usize) -> Vec<f32> {
    let pick = |r: u32| match r % 12 {
        0 => 0.0,
        1 => -0.0,
        2 => f32::NAN,
        3 => f32::INFINITY,
        4 => f32::NEG_INFINITY,
        5 => f32::from_bits(1),
        6 => -f32::from_bits(1),
        r => r as f32 - 9.0,
    };
    (0..count).map(|_| pick(random.next())).collect()
}

#[test]
fn the_largest_are_chosen_ascending_by_index() {
    for (n, k) in [(1, 1), (7, 3), (130, 6), (200, 64), (5, 9)] {
        let mut random = Random(110 + u64::from(n));
        let mut b = Builder::new();
        let x = b.floats(&[8, n], &keys(&mut random, 8 * n as usize));
        let x = b.per_column(x);
        b.top_k(k, x, None);
        let ids: Vec<i32> =
            (0..8 * n).map(|i| if random.next().is_multiple_of(3) { -1 } else { (i % n) as i32 }).collect();
        let ids = b.ids(&[8, n], &ids);
        let ids = b.per_column(ids);
        b.top_k(k, x, Some(ids));
        Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
    }
}

#[test]
fn the_first_of_the_largest_is_the_arg_max() {
    for n in [1, 2, 63, 64, 65, 300] {
        let mut random = Random(120 + u64::from(n));
        let mut b = Builder::new();
        let x = b.floats(&[8, n], &keys(&mut random, 8 * n as usize));
        let x = b.per_column(x);
        b.arg_max(x);
        let nan = b.floats(&[n], &vec![f32::NAN; n as usize]);
        b.arg_max(nan);
        Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
    }
}

#[test]
fn ids_are_sorted_masked_last() {
    let mut random = Random(130);
    let mut b = Builder::new();
    let n = 70;
    let ids: Vec<i32> = (0..8 * n).map(|_| (random.next() % 40) as i32 - 8).collect();
    let masked = b.ids(&[8, n], &ids);
    let masked = b.per_column(masked);
    b.sort_ids(masked);
    let plain = b.ints(&[8, n], &ids.iter().map(|i| i.abs()).collect::<Vec<_>>());
    let plain = b.per_column(plain);
    b.sort_ids(plain);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}
