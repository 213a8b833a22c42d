//! `product`, `quantise` and `widen`.

use ds4_ir::{Builder, Format, Tree, Type};

use super::bench::{Bench, COLUMNS, Checkpoint, Random, Small};

fn weight(b: &mut Builder, format: Format, shape: &[u32]) -> ds4_ir::Value {
    let w = b.add_weight("w", Type::weight(format), shape);
    b.weight(w)
}

#[test]
fn rows_of_every_format_with_f32_activations() {
    for format in Format::ALL.into_iter().filter(|f| !f.is_integer()) {
        let mut random = Random(7 + format as u64);
        let (n, k) = if format.block_len() == 256 { (3, 768) } else { (5, 96) };
        let mut b = Builder::new();
        let w = weight(&mut b, format, &[n, k]);
        let x = b.floats(&[8, k], &random.tame(8 * k as usize));
        let x = b.per_column(x);
        let tree = Tree::for_leaves(k);
        b.product(tree, x, w, None);
        b.widen(w);
        let mut checkpoint = Checkpoint::default();
        checkpoint.random(format, [1, n as usize, k as usize], &mut random);
        Bench::new(b, checkpoint, &[]).check(&[1, 3]);
    }
}

#[test]
fn blocks_of_every_format_with_q8_activations() {
    for format in Format::ALL.into_iter().filter(|f| f.takes_q8()) {
        for k in [256, 1280] {
            let mut random = Random(30 + format as u64);
            let mut b = Builder::new();
            let w = weight(&mut b, format, &[5, k]);
            let x = b.floats(&[8, k], &random.tame(8 * k as usize));
            let x = b.per_column(x);
            let x = b.quantise(x);
            b.product(Tree::BLOCKS, x, w, None);
            let mut checkpoint = Checkpoint::default();
            checkpoint.random(format, [1, 5, k as usize], &mut random);
            Bench::new(b, checkpoint, &[]).check(&[1, 2, 5]);
        }
    }
}

/// Infinities, NaN, subnormals and signed zeros among the activations, and all weights that a byte can say.
#[test]
fn special_activations_pass_through_every_format() {
    for format in Format::ALL.into_iter().filter(|f| !f.is_integer()) {
        let mut random = Random(200 + format as u64);
        let k = 512;
        let mut b = Builder::new();
        let w = weight(&mut b, format, &[3, k]);
        let mut values = random.adversarial(8 * k as usize);
        // One row without infinities and NaN, so that the others hide nothing.
        values[..k as usize].iter_mut().for_each(|x| *x = if x.is_finite() { *x * 1e-3 } else { 0.5 });
        let x = b.floats(&[8, k], &values);
        let x = b.per_column(x);
        b.product(Tree::Lanes(128), x, w, None);
        if format.takes_q8() {
            let x = b.quantise(x);
            b.product(Tree::BLOCKS, x, w, None);
        }
        let mut checkpoint = Checkpoint::default();
        checkpoint.random(format, [1, 3, k as usize], &mut random);
        Bench::new(b, checkpoint, &[]).check(&[1, 8]);
    }
}

#[test]
fn plain_rows_keep_every_tree_and_odd_sizes() {
    for (k, tree) in [(3, Tree::Seq), (7, Tree::Lanes(32)), (33, Tree::Lanes(32)), (515, Tree::Lanes(128))] {
        let mut random = Random(50 + u64::from(k));
        let mut b = Builder::new();
        let x = b.floats(&[8, k], &random.adversarial(8 * k as usize));
        let x = b.per_column(x);
        let w = b.floats(&[7, k], &random.adversarial(7 * k as usize));
        b.product(tree, x, w, None);
        Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
    }
}

#[test]
fn quantised_edges() {
    let mut random = Random(60);
    let mut b = Builder::new();
    let mut values = random.adversarial(8 * 96);
    values[..32].fill(2f32.powi(-121));
    values[32..64].fill(f32::from_bits((6 << 23) - 1));
    values[64..96].fill(0.0);
    let x = b.floats(&[8, 96], &values);
    let x = b.per_column(x);
    b.quantise(x);
    Bench::new(b, Checkpoint::default(), &[]).check(&COLUMNS);
}

#[test]
fn experts_are_gathered_by_ids_some_masked() {
    for (format, quantised) in
        [(Format::F32, false), (Format::Q8_0, true), (Format::MXFP4, true), (Format::Fp4, true), (Format::Fp8, false)]
    {
        let mut random = Random(70);
        let mut b = Builder::new();
        let (experts, n, k) = (4u32, 3u32, 64u32);
        let w = weight(&mut b, format, &[experts, n, k]);
        let ids = b.ids(&[8, 2], &[3, 0, -1, 2, 1, 1, 0, -1, 2, 3, 1, 0, -1, -1, 2, 0]);
        let ids = b.per_column(ids);
        let chosen = b.gather(0, 0, w, ids);
        let x = b.floats(&[8, 2, k], &random.tame(16 * k as usize));
        let x = b.per_column(x);
        let (x, tree) = if quantised { (b.quantise(x), Tree::BLOCKS) } else { (x, Tree::Lanes(32)) };
        let v = b.product(tree, x, chosen, None);
        let _ = v;
        let mut checkpoint = Checkpoint::default();
        checkpoint.random(format, [experts as usize, n as usize, k as usize], &mut random);
        Bench::new(b, checkpoint, &[chosen]).check(&COLUMNS);
    }
}

/// Attention's two products: scores with gathered rows, then a masked sum over them.
#[test]
fn gathered_rows_of_a_state() {
    let mut random = Random(80);
    let mut b = Builder::new();
    let (rows, heads, d) = (9u32, 2u32, 36u32);
    let source = b.floats(&[20, d], &random.tame(20 * d as usize));
    let ids: Vec<i32> = (0..8 * rows).map(|i| if i % 4 == 3 { -1 } else { (i * 7 % 20) as i32 }).collect();
    let ids = b.ids(&[8, rows], &ids);
    let ids = b.per_column(ids);
    let chosen = b.gather(0, 0, source, ids);
    let q = b.floats(&[8, heads, d], &random.tame((8 * heads * d) as usize));
    let q = b.per_column(q);
    b.product(Tree::Lanes(32), q, chosen, None);
    let weights = b.floats(&[8, heads, rows], &random.tame((8 * heads * rows) as usize));
    let weights = b.per_column(weights);
    let across = b.permute(chosen, &[0, 2, 1]);
    b.product(Tree::Seq, weights, across, Some(ids));
    Bench::new(b, Checkpoint::default(), &[chosen]).check(&COLUMNS);
}

#[test]
fn embeddings_and_integers_are_widened() {
    for format in [Format::F16, Format::Q8_0, Format::Q2_K, Format::I32, Format::I64] {
        let mut random = Random(90);
        let mut b = Builder::new();
        let k = format.block_len().max(6) as u32;
        let w = weight(&mut b, format, &[7, k]);
        let tokens = b.tokens();
        let chosen = b.gather(0, 0, w, tokens);
        b.widen(chosen);
        let mut checkpoint = Checkpoint::default();
        checkpoint.random(format, [1, 7, k as usize], &mut random);
        Bench::new(b, checkpoint, &[chosen]).check(&COLUMNS);
    }
}
