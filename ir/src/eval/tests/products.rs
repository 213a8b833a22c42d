//! Products with plain, decoded and quantised weights.

use super::*;
use crate::Tree;
use crate::formats::leaf::q8_leaf;
use crate::formats::{decode_row, q8};

#[test]
fn a_product_multiplies_rows() {
    let mut b = Builder::new();
    let x = b.table_f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let w = b.table_f32(&[2, 3], &[1.0, 0.0, -1.0, 2.0, 2.0, 2.0]);
    let v = b.product(Tree::Seq, x, w, None);
    assert_eq!(floats(b, v), [-2.0, 12.0, -2.0, 30.0]);
}

#[test]
fn a_batched_product_takes_the_rows_of_its_batch() {
    let mut b = Builder::new();
    let x = b.table_f32(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let w = b.table_f32(&[2, 1, 2], &[1.0, 10.0, 100.0, 1000.0]);
    let v = b.product(Tree::Seq, x, w, None);
    assert_eq!(floats(b, v), [21.0, 43.0, 6500.0, 8700.0]);
}

#[test]
fn a_masked_leaf_is_left_out() {
    let mut b = Builder::new();
    let x = b.table_f32(&[1, 3], &[1.0, f32::INFINITY, 3.0]);
    let w = b.table_f32(&[2, 3], &[1.0, 0.0, 1.0, 2.0, 2.0, 2.0]);
    let mask = b.table_ids(&[3], &[4, -1, 4]);
    let v = b.product(Tree::Seq, x, w, Some(mask));
    assert_eq!(floats(b, v), [4.0, 8.0]);
}

/// Every format that multiplies, with f32 activations: decode, then the tree.
#[test]
fn decoded_rows_sum_in_their_tree() {
    for format in Format::ALL.into_iter().filter(|f| !f.is_integer()) {
        let (n, k) = (3, 512);
        let mut b = Builder::new();
        let weight = b.add_weight("w", Type::weight(format), &[n, k]);
        let w = b.weight(weight);
        let values: Vec<f32> = (0..k).map(|i| (i as f32 - 200.0) / 64.0).collect();
        let x = b.table_f32(&[1, k], &values);
        let v = b.product(Tree::Lanes(128), x, w, None);
        let widened = b.widen(w);
        let tables = b.finish();
        let memory = Memory::random(&tables.view(), 3);
        let mut states = States::new(&tables.view());
        let got = run_step(&tables, &memory, &mut states, FIRST, &[v, widened]).unwrap();
        for row in 0..n as usize {
            let mut decoded = vec![0.0; k as usize];
            decode_row(&memory.row(weight, row).unwrap(), &mut decoded);
            let wanted = lanes_of_128(&decoded.iter().zip(&values).map(|(w, x)| w * x).collect::<Vec<_>>());
            assert!(same(got[0].floats()[row], wanted), "{}", format.name());
            let row = &got[1].floats()[row * k as usize..][..k as usize];
            assert!(row.iter().zip(&decoded).all(|(&a, &b)| same(a, b)));
        }
    }
}

#[test]
fn quantised_rows_sum_in_32_lanes() {
    for format in Format::ALL.into_iter().filter(|f| f.takes_q8()) {
        let mut b = Builder::new();
        let weight = b.add_weight("w", Type::weight(format), &[2, 256]);
        let w = b.weight(weight);
        let mut random = Random(11);
        let values: Vec<f32> = (0..256).map(|_| random.float()).collect();
        let x = b.table_f32(&[1, 256], &values);
        let x = b.quantise(x);
        let v = b.product(Tree::BLOCKS, x, w, None);
        let tables = b.finish();
        let memory = Memory::random(&tables.view(), 5);
        let mut states = States::new(&tables.view());
        let got = run_step(&tables, &memory, &mut states, FIRST, &[v]).unwrap();
        let (mut codes, mut scales) = ([0; 256], [0.0; 8]);
        q8::quantise_q8(&values, &mut codes, &mut scales);
        for row in 0..2 {
            let row_bytes = memory.row(weight, row).unwrap();
            let leaf = |i: usize| q8_leaf(&row_bytes, i, &codes[32 * i..][..32], scales[i]);
            // Eight leaves in lanes(32): folded by 4, 2, 1.
            let fours: Vec<f32> = (0..4).map(|i| leaf(i) + leaf(i + 4)).collect();
            let wanted = (fours[0] + fours[2]) + (fours[1] + fours[3]);
            assert!(same(got[0].floats()[row], wanted), "{}", format.name());
        }
    }
}

#[test]
fn experts_are_gathered_by_reference() {
    let mut b = Builder::new();
    let weight = b.add_weight("experts", Type::weight(Format::F32), &[3, 2, 2]);
    let w = b.weight(weight);
    let ids = b.table_i32(&[1, 2], &[2, 0]);
    let chosen = b.gather(0, 0, w, ids);
    let x = b.table_f32(&[1, 2, 2], &[1.0, 1.0, 1.0, 10.0]);
    let v = b.product(Tree::Seq, x, chosen, None);
    let mut memory = Memory::default();
    memory.add_floats(2, &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(run_with(b, &memory, v).unwrap().floats(), [11.0, 15.0, 21.0, 43.0]);
}

#[test]
fn integers_are_widened_to_ids() {
    let mut b = Builder::new();
    let weight = b.add_weight("table", Type::weight(Format::I64), &[2, 2]);
    let w = b.weight(weight);
    let v = b.widen(w);
    let mut memory = Memory::default();
    let bytes = [1i64, -2, 3, 1 << 40].iter().flat_map(|n| n.to_le_bytes()).collect();
    memory.add(Format::I64, 16, bytes);
    assert!(run_with(b, &memory, v).unwrap_err().message.contains("beyond 32 bits"));
}

#[test]
fn a_row_that_is_missing_or_too_short_is_a_fault() {
    for (row_len, values, message) in [(2, [1.0; 2], "is missing"), (1, [1.0; 2], "number of bytes")] {
        let mut b = Builder::new();
        let weight = b.add_weight("w", Type::weight(Format::F32), &[2, 2]);
        let w = b.weight(weight);
        let v = b.widen(w);
        let mut memory = Memory::default();
        memory.add_floats(row_len, &values);
        assert!(run_with(b, &memory, v).unwrap_err().message.contains(message));
    }
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// `lanes(128)` over a whole number of 128 leaves, on whole vectors.
fn lanes_of_128(leaves: &[f32]) -> f32 {
    let mut lanes = leaves[..128].to_vec();
    for chunk in leaves[128..].chunks(128) {
        lanes.iter_mut().zip(chunk).for_each(|(lane, leaf)| *lane += leaf);
    }
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes.iter_mut().zip(&upper).for_each(|(lane, other)| *lane += other);
    }
    lanes[0]
}
