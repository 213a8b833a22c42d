use crate::numerics::arith::Concrete;
use crate::numerics::double_double::DoubleDouble;
use crate::numerics::rope::{Yarn, angle, correction_range, frequencies, rotate};

fn bits(values: Vec<f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

const YARN: Yarn = Yarn { factor: 16.0, original_length: 65536, beta_fast: 32.0, beta_slow: 1.0 };

// All tables of frequencies below were computed elsewhere with 300 bits and rounded once.

#[test]
fn plain_frequencies() {
    let wanted = [
        0x3f800000, 0x3f3ff911, 0x3f0ff59a, 0x3ed7e89b, 0x3ea1e89b, 0x3e72d424, 0x3e361887, 0x3e088d77, 0x3dcccccd,
        0x3d99940e, 0x3d6655c3, 0x3d2cba15, 0x3d0186e2, 0x3cc24350, 0x3c91ad39, 0x3c5a7bf1, 0x3c23d70a, 0x3bf5b9b0,
        0x3bb8449c, 0x3b8a2e77, 0x3b4f3e37, 0x3b1b690d, 0x3ae91528, 0x3aaec98e, 0x3a83126f, 0x3a44948c, 0x3a136a16,
        0x39dd1726, 0x39a5cb5f, 0x3978a814, 0x393a7753, 0x390bd472,
    ];
    assert_eq!(bits(frequencies(10000.0, 64, None)), wanted);
}

#[test]
fn stretched_frequencies() {
    let wanted = [
        0x3f800000, 0x3f300a3a, 0x3ef21c1f, 0x3ea67d01, 0x3e64f92e, 0x3e1d7475, 0x3dd88cb5, 0x3d94e963, 0x3d4ccccd,
        0x3d0cd4fb, 0x3cc1b019, 0x3c8530ce, 0x3c372dbf, 0x3bfbed88, 0x3bad3d5d, 0x3b6e4237, 0x3b147ae1, 0x3ab714e0,
        0x3a5ebdb6, 0x3a0530ce, 0x399bb3af, 0x39305979, 0x38be904d, 0x383e9b5f, 0x37a3d70a, 0x36b443d1, 0x3677eba5,
        0x362a7be9, 0x35ea77fe, 0x35a13bdc, 0x355dbf30, 0x35187c4c,
    ];
    assert_eq!(correction_range(160_000.0, 64, &YARN), (15, 25));
    assert_eq!(bits(frequencies(160_000.0, 64, Some(&YARN))), wanted);
}

#[test]
fn odd_parameters() {
    let yarn = Yarn { factor: 7.3, original_length: 4096, beta_fast: 31.7, beta_slow: 1.1 };
    let wanted = [
        0x3f800000, 0x3f142d7e, 0x3eab8944, 0x3e4693ad, 0x3de5e154, 0x3d850f1e, 0x3d070b32, 0x3c8658ff, 0x3c021387,
        0x3b723d4d, 0x3ad436ca, 0x3a26b3e2, 0x394b2368, 0x38eb2923, 0x38881d92, 0x381d9291, 0x37b66979, 0x37532ac8,
        0x36f47485, 0x368d7ece, 0x3623cce8, 0x35bd9f23, 0x355b8365, 0x34fe1df2,
    ];
    assert_eq!(correction_range(500_000.5, 48, &yarn), (5, 12));
    assert_eq!(bits(frequencies(500_000.5, 48, Some(&yarn))), wanted);
}

#[test]
fn narrow_and_empty_blends() {
    let narrow = Yarn { factor: 4.0, original_length: 7, beta_fast: 1.0, beta_slow: 1.0 };
    let wanted = [0x3f800000, 0x3e5f26c9, 0x3e428497, 0x3e298ef8, 0x3e13cd3a, 0x3e00d62a, 0x3de09c27, 0x3dc3ca0d];
    assert_eq!(correction_range(3.0, 16, &narrow), (0, 1));
    assert_eq!(bits(frequencies(3.0, 16, Some(&narrow))), wanted);
    // Every pair makes less than one rotation: all from pair 1 on are stretched by the whole factor.
    let empty = Yarn { original_length: 1, ..narrow };
    assert_eq!(correction_range(10_000.0, 8, &empty), (0, 0));
    let plain = frequencies(10_000.0, 8, None);
    let stretched = frequencies(10_000.0, 8, Some(&empty));
    assert_eq!(stretched[0], plain[0]);
    assert!((1..4).all(|i| stretched[i] == plain[i] / 4.0));
}

fn close(x: DoubleDouble, y: DoubleDouble) {
    let difference = x - y;
    assert!(difference.high.abs() <= 2f64.powi(-98) * y.high.abs(), "{x:?} {y:?}");
}

#[test]
fn double_double_constants() {
    let pi = DoubleDouble { high: std::f64::consts::PI, low: 1.224_646_799_147_353_2e-16 };
    let ln_2 = DoubleDouble { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
    close(DoubleDouble::pi(), pi);
    close(DoubleDouble::ln_2(), ln_2);
}

#[test]
fn double_double_functions_are_inverses() {
    for x in [1e-8, 0.3, 0.707, 1.0, 1.4, 2.0, 3.0, 10_000.0, 160_000.0, 1e9] {
        let x = DoubleDouble::from(x) + DoubleDouble::from(x * 1e-18);
        close(x.ln().exp(), x);
        close(x / 3.0.into() * 3.0.into(), x);
    }
}

#[test]
fn double_double_integers() {
    let five = DoubleDouble::from(5.0);
    let tiny = DoubleDouble::from(1e-25);
    assert_eq!(((five - tiny).floor(), (five - tiny).ceil()), (4.0, 5.0));
    assert_eq!(((five + tiny).floor(), (five + tiny).ceil()), (5.0, 6.0));
    assert_eq!((five.floor(), five.ceil()), (5.0, 5.0));
}

#[test]
fn rounding_sees_the_low_part() {
    let tie = 1.0 + 2f64.powi(-24);
    let rounded = |high: f64, low: f64| DoubleDouble { high, low }.to_f32();
    let up = 1f32.next_up();
    assert_eq!((rounded(tie, 0.0), rounded(tie, 1e-20), rounded(tie, -1e-20)), (1.0, up, 1.0));
    assert_eq!((rounded(-tie, 1e-20), rounded(-tie, -1e-20)), (-1.0, -up));
    let upper = 1.0 + 3.0 * 2f64.powi(-24);
    assert_eq!(rounded(upper, -1e-20), up);
}

#[test]
fn angles_and_rotation() {
    let c = Concrete;
    assert_eq!(angle(&c, 1_000_003, 0.1), 1_000_003.0 * 0.1);
    assert_eq!(rotate(&c, [2.0, 3.0], 0.0, 1.0), [2.0, 3.0]);
    assert_eq!(rotate(&c, [2.0, 3.0], 1.0, 0.0), [-3.0, 2.0]);
}
