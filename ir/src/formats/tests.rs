//! Decoding against reference values, exhaustive codes, and the leaves against decoded rows.

use super::leaf::q8_leaf;
use super::q8::quantise_q8;
use super::small::{E2M1_DOUBLED, mxfp4_scale};
use super::*;
use crate::numerics::round::plain::e8m0_half;

/// The bits of a value, all NaNs as one.
fn bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

fn compare_with_reference(format: Format) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/formats");
    let file = std::fs::read(format!("{folder}/{}.bin", format.name())).unwrap();
    let (size, length) = (format.block_bytes(), format.block_len());
    let blocks = file.len() / (size + 4 * length);
    assert!(blocks >= 96);
    let (data, expected) = file.split_at(blocks * size);
    let mut values = vec![0.0; blocks * length];
    decode_row(&WeightRow::plain(format, data), &mut values);
    for (i, (value, expected)) in values.iter().zip(expected.chunks_exact(4)).enumerate() {
        let expected = f32::from_le_bytes(expected.try_into().unwrap());
        assert_eq!(bits(*value), bits(expected), "{} element {i}", format.name());
    }
}

#[test]
fn blocks_decode_to_the_reference_values() {
    for format in [Format::Q8_0, Format::Q2_K, Format::Q4_K, Format::IQ2_XXS, Format::MXFP4, Format::BF16] {
        compare_with_reference(format);
    }
}

#[test]
fn e4m3_has_the_values_of_its_definition() {
    for byte in 0..=255u8 {
        let (sign, e, m) = (byte >> 7, i32::from(byte >> 3 & 15), f64::from(byte & 7));
        let magnitude = match e {
            15 if m == 7.0 => f64::NAN,
            0 => m / 8.0 * 2f64.powi(-6),
            _ => (1.0 + m / 8.0) * 2f64.powi(e - 7),
        };
        let value = if sign == 1 { -magnitude } else { magnitude };
        assert_eq!(bits(e4m3_value(byte)), bits(value as f32), "{byte:#x}");
    }
    assert_eq!(e4m3_value(0x7e), 448.0);
    assert_eq!(e4m3_value(0x01), 2f32.powi(-9));
}

#[test]
fn e8m0_has_the_values_of_its_definition() {
    for byte in 0..255u8 {
        let value = 2f64.powi(i32::from(byte) - 127);
        assert_eq!(e8m0_value(byte).to_bits(), (value as f32).to_bits());
        assert_eq!(e8m0_half(byte).to_bits(), ((value / 2.0) as f32).to_bits());
        assert_eq!(mxfp4_scale(byte).to_bits(), e8m0_half(byte).to_bits());
    }
    assert!(e8m0_value(255).is_nan() && e8m0_half(255).is_nan());
    assert_eq!(mxfp4_scale(255), 2f32.powi(127));
}

#[test]
fn fp4_rows_are_codes_times_scales() {
    const VALUES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let data: Vec<u8> = (0..=255).collect();
    let scales: Vec<u8> = (0..16).map(|i| 17 * i).collect();
    let row = WeightRow { format: Format::Fp4, data: &data, scales: &scales, scale_cols: 32 };
    let mut values = vec![0.0; 512];
    decode_row(&row, &mut values);
    for (i, &value) in values.iter().enumerate() {
        let code = data[i / 2] >> (4 * (i % 2)) & 15;
        let scale = 2f64.powi(i32::from(scales[i / 32]) - 127);
        let magnitude = VALUES[usize::from(code & 7)] * scale;
        let expected = match code {
            _ if scales[i / 32] == 255 => f64::NAN,
            0..=8 => magnitude * f64::from(code != 8),
            _ => -magnitude,
        };
        assert_eq!(bits(value), bits(expected as f32), "element {i}");
    }
}

#[test]
fn fp4_and_mxfp4_agree_after_a_permutation_of_nibbles() {
    let official: Vec<u8> = (0..16u8).map(|j| j.wrapping_mul(37) ^ 0xa5).collect();
    let code = |i: usize| official[i / 2] >> (4 * (i % 2)) & 15;
    let scales = [0, 1, 2, 100, 127, 254];
    for scale in scales {
        let mut block = vec![scale];
        block.extend((0..16).map(|j| code(j) | code(j + 16) << 4));
        let scales = [scale];
        let row = WeightRow { format: Format::Fp4, data: &official, scales: &scales, scale_cols: 32 };
        let (mut a, mut b) = ([0.0; 32], [0.0; 32]);
        decode_row(&row, &mut a);
        decode_row(&WeightRow::plain(Format::MXFP4, &block), &mut b);
        assert_eq!(a.map(f32::to_bits), b.map(f32::to_bits));
        let codes: [i8; 32] = std::array::from_fn(|i| 3 * i as i8 - 40);
        let ggml = q8_leaf(&WeightRow::plain(Format::MXFP4, &block), 0, &codes, 0.25);
        assert_eq!(q8_leaf(&row, 0, &codes, 0.25).to_bits(), ggml.to_bits());
    }
}

#[test]
fn fp8_rows_take_the_scale_of_their_block_of_columns() {
    let data: Vec<u8> = (0..300).map(|i| (i * 7) as u8).collect();
    let scales = [120, 127, 3];
    let row = WeightRow { format: Format::Fp8, data: &data, scales: &scales, scale_cols: 128 };
    let mut values = vec![0.0; 300];
    decode_row(&row, &mut values);
    for (i, &value) in values.iter().enumerate() {
        let expected = e4m3_value(data[i]) * e8m0_value(scales[i / 128]);
        assert_eq!(bits(value), bits(expected));
    }
}

#[test]
fn ids_keep_their_sign_and_width() {
    let (a, b) = ([-1i32, 7, i32::MIN], [-1i64, i64::MAX]);
    let mut out = [0; 3];
    decode_ids(&WeightRow::plain(Format::I32, bytemuck::cast_slice(&a)), &mut out);
    assert_eq!(out, a.map(i64::from));
    let mut out = [0; 2];
    decode_ids(&WeightRow::plain(Format::I64, bytemuck::cast_slice(&b)), &mut out);
    assert_eq!(out, b);
}

#[test]
fn q8_of_edge_blocks() {
    let quantise = |x: [f32; 32]| {
        let (mut codes, mut scales) = ([9; 32], [9.0]);
        quantise_q8(&x, &mut codes, &mut scales);
        (codes, scales[0])
    };
    let with = |first: f32| std::array::from_fn(|i| if i == 0 { first } else { 0.5 });
    for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
        let (codes, scale) = quantise(with(bad));
        assert!(scale.is_nan() && codes == [0; 32]);
    }
    let tiny = f32::from_bits((6 << 23) - 1);
    let (codes, scale) = quantise([-tiny; 32]);
    assert_eq!((scale.to_bits(), codes), (0, [0; 32]));
    let (codes, scale) = quantise([-2f32.powi(-121); 32]);
    assert_eq!((scale, codes), (2f32.powi(-121) / 127.0, [-127; 32]));
    let (codes, scale) = quantise(with(f32::MAX));
    assert_eq!((codes[0], codes[1], scale), (127, 0, f32::MAX / 127.0));
    // Halves go to the even code.
    let (codes, _) = quantise(std::array::from_fn(|i| [127.0, 0.5, 1.5, -2.5][i % 4]));
    assert_eq!(codes[..4], [127, 0, 2, -2]);
}

#[test]
fn leaves_are_close_to_the_decoded_products() {
    // Not a definition, a check of the formulas' meaning: f64 products of decoded values.
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 24) as u8
    };
    for format in Format::ALL.into_iter().filter(|f| f.takes_q8()) {
        let mut data: Vec<u8> = (0..format.row_bytes(512).unwrap()).map(|_| random()).collect();
        for block in data.chunks_exact_mut(format.block_bytes()) {
            let one = 0x2c00u16.to_le_bytes();
            match format {
                Format::Q2_K => block[80..84].copy_from_slice(&[one[0], one[1], one[0], one[1]]),
                Format::Q4_K => block[0..4].copy_from_slice(&[one[0], one[1], one[0], one[1]]),
                Format::MXFP4 => block[0] = 125,
                Format::Fp4 => {}
                _ => block[0..2].copy_from_slice(&one),
            }
        }
        let scales = [126; 16];
        let row = WeightRow { format, data: &data, scales: &scales, scale_cols: 32 };
        let mut w = vec![0.0; 512];
        decode_row(&row, &mut w);
        let codes: Vec<i8> = (0..512).map(|_| (random() as i8).max(-127)).collect();
        for (index, codes) in codes.chunks_exact(32).enumerate() {
            let terms = w[32 * index..].iter().zip(codes);
            let products = terms.map(|(&w, &q)| f64::from(w) * f64::from(q) * 0.125);
            let (sum, size) = products.fold((0.0, 0.0), |(s, a), p| (s + p, a + p.abs()));
            let leaf = f64::from(q8_leaf(&row, index, codes, 0.125));
            assert!((leaf - sum).abs() <= 1e-5 * size, "{} {index}", format.name());
        }
    }
}

#[test]
fn doubled_codes_are_twice_e2m1() {
    for (code, &doubled) in E2M1_DOUBLED.iter().enumerate() {
        let (e, m) = (code >> 1 & 3, (code & 1) as f64);
        let magnitude = match e {
            0 => m / 2.0,
            _ => (1.0 + m / 2.0) * 2f64.powi(e as i32 - 1),
        };
        let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
        assert_eq!(f64::from(doubled), 2.0 * sign * magnitude);
    }
}
