use super::*;
use proptest::prelude::*;

fn sampling(temperature: f32, top_p: f32, seed: u64) -> Sampling {
    Sampling { temperature, top_p, seed }
}

fn draws(logits: &[f32], sampling: Sampling, count: usize) -> Vec<u32> {
    let mut candidates = Candidates::new(sampling);
    (0..count).map(|_| candidates.draw(logits).unwrap()).collect()
}

#[test]
fn the_generator_is_splitmix64() {
    // The published vector of seed 1234567.
    let mut generator = Generator::new(1234567);
    let bits: Vec<u64> = (0..5).map(|_| generator.next_bits()).collect();
    assert_eq!(
        bits,
        [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    );
    assert_eq!(Generator::new(0).next_bits(), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn units_have_24_bits() {
    let mut generator = Generator::new(0);
    assert_eq!(generator.next_unit(), 0xe220a8 as f32 / 16777216.0);
    for _ in 0..1000 {
        let u = generator.next_unit();
        assert!((0.0..1.0).contains(&u) && (u * 16777216.0).fract() == 0.0);
    }
}

#[test]
fn arg_max_takes_the_lower_id_of_equals() {
    assert_eq!(arg_max(&[1.0, 3.0, 3.0, 2.0]), Ok(1));
    assert_eq!(arg_max(&[-0.0, 0.0]), Ok(0));
    assert_eq!(arg_max(&[-1.0, 0.0, -0.0]), Ok(1));
    assert_eq!(arg_max(&[f32::NEG_INFINITY; 3]), Ok(0));
    assert_eq!(arg_max(&[0.0, f32::INFINITY]), Ok(1));
}

#[test]
fn nan_is_an_error() {
    assert_eq!(arg_max(&[1.0, f32::NAN, 2.0]), Err(Invalid(1)));
    assert_eq!(arg_max(&[]), Err(Invalid(0)));
    let error = Sampler::new(None).choose(&[0.0, 1.0, f32::NAN]).unwrap_err();
    insta::assert_snapshot!(error);
    let mut sampler = Sampler::new(Some(sampling(1.0, 1.0, 0)));
    assert_eq!(sampler.choose(&[0.0, 1.0, f32::NAN]).unwrap_err(), error);
}

#[test]
fn a_draw_refuses_infinite_maxima() {
    let mut candidates = Candidates::new(sampling(1.0, 1.0, 0));
    assert_eq!(candidates.draw(&[0.0, f32::INFINITY]), Err(Invalid(1)));
    assert_eq!(candidates.draw(&[f32::NEG_INFINITY; 2]), Err(Invalid(0)));
    assert_eq!(candidates.draw(&[0.0, f32::NEG_INFINITY]), Ok(0));
}

#[test]
fn fixed_vectors() {
    let logits: Vec<f32> = (0..16).map(|i| ((i * 7) % 16) as f32 * 0.5).collect();
    let text = [(1.0, 1.0, 0), (1.0, 1.0, 1), (2.0, 1.0, 1), (2.0, 0.75, 1), (0.25, 1.0, 1), (1.5, 0.5, u64::MAX)]
        .map(|(t, p, seed)| format!("{t} {p} {seed}: {:?}\n", draws(&logits, sampling(t, p, seed), 20)))
        .concat();
    insta::assert_snapshot!(text);
}

#[test]
fn equal_probabilities_are_in_the_order_of_ids() {
    // 4 equal candidates: u selects the quarter.
    let mut generator = Generator::new(9);
    let wanted: Vec<u32> = (0..50).map(|_| (generator.next_unit() * 4.0) as u32).collect();
    assert_eq!(draws(&[2.0; 4], sampling(1.0, 1.0, 9), 50), wanted);
}

#[test]
fn top_p_keeps_the_smallest_prefix_that_reaches_it() {
    // Four equal candidates have exact probabilities; a sum equal to top-p reaches it.
    let seen = |top_p| {
        let mut seen = draws(&[0.0; 4], sampling(1.0, top_p, 3), 200);
        seen.sort();
        seen.dedup();
        seen
    };
    assert_eq!(seen(0.01), [0]);
    assert_eq!(seen(0.25), [0]);
    assert_eq!(seen(0.26), [0, 1]);
    assert_eq!(seen(0.5), [0, 1]);
    assert_eq!(seen(1.0), [0, 1, 2, 3]);
}

#[test]
fn frequencies_follow_probabilities() {
    let logits = [0.0f32, 1.0, 2.0];
    let total: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    let drawn = draws(&logits, sampling(1.0, 1.0, 5), 20_000);
    for (id, &logit) in (0u32..).zip(&logits) {
        let share = drawn.iter().filter(|&&d| d == id).count() as f64 / 20_000.0;
        assert!((share - f64::from(logit).exp() / total).abs() < 0.015);
    }
}

proptest! {
    #[test]
    fn a_drawn_token_has_a_probability(
        logits in proptest::collection::vec(-200.0f32..200.0, 1..60),
        temperature in 0.01f32..10.0,
        top_p in 0.001f32..=1.0,
        seed: u64,
    ) {
        let mut candidates = Candidates::new(sampling(temperature, top_p, seed));
        let token = candidates.draw(&logits).unwrap();
        let best = logits[arg_max(&logits).unwrap() as usize];
        let z = logits[token as usize] / temperature - best / temperature;
        prop_assert!(ds4_ir::numerics::exp(z) > 0.0);
    }
}
