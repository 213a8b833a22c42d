//! `product`: every storage format with f32 and q8 activations, in every tree; gathered experts; attention.

use ScalarOp::Neg;
use ds4_ir::{Format, ReduceKind, ScalarOp, Tree, Type, Value};

use super::Case;
use super::bytes::{ROWS, contents};
use super::draft::Draft;

/// The family's name.
pub const FAMILY: &str = "product";

/// Rows of a weight: one of each kind.
const N: u32 = ROWS.len() as u32;
/// Numbers of columns, all kinds of rows of activations first.
const STEPS: [u32; 4] = [8, 1, 2, 5];

/// All cases.
pub fn cases() -> Vec<Case> {
    let numbers = || Format::ALL.into_iter().filter(|format| !format.is_integer());
    let floats = numbers().flat_map(|format| trees(format).map(|(k, tree)| with_f32(format, k, tree)));
    let blocks = numbers().filter(|format| format.takes_q8()).flat_map(|format| {
        let long = if format.block_len() == 256 { 1280 } else { 1312 };
        [with_q8(format, 256), with_q8(format, long)]
    });
    let experts = numbers().map(experts);
    let others = [
        values(3, Tree::Seq),
        values(37, Tree::Lanes(32)),
        values(515, Tree::Lanes(128)),
        values(19, Tree::Lanes(8)),
        other_tree(),
        masked(),
        batches(),
        attention(),
        norms(),
        prefill(),
        large(),
        wide(),
    ];
    floats.chain(blocks).chain(experts).chain(others).collect()
}

/// Lengths of K for each tree of the contract, with tails that fill neither lanes nor words where the format allows that.
fn trees(format: Format) -> [(u32, Tree); 3] {
    let (few, some, many) = match format.block_len() {
        1 => (3, 101, 515),
        2 => (4, 98, 514),
        32 => (32, 96, 544),
        _ => (256, 256, 768),
    };
    [(few, Tree::Seq), (some, Tree::Lanes(32)), (many, Tree::Lanes(128))]
}

fn tree_name(tree: Tree) -> String {
    match tree {
        Tree::Lanes(n) => format!("lanes{n}"),
        _ => "seq".into(),
    }
}

fn weight(d: &mut Draft, format: Format, k: u32) -> Value {
    let contents = contents(format, [1, N as usize, k as usize], &mut d.random);
    d.weight(format, &[N, k], &contents)
}

fn with_f32(format: Format, k: u32, tree: Tree) -> Case {
    let mut d = Draft::new(FAMILY, &format!("{}.f32.{}.{k}", format.name(), tree_name(tree)));
    let (w, x) = (weight(&mut d, format, k), d.activations(&[k]));
    let y = d.b.product(tree, x, w, None);
    d.output("y", y);
    d.steps(&STEPS)
}

fn with_q8(format: Format, k: u32) -> Case {
    let mut d = Draft::new(FAMILY, &format!("{}.q8.{k}", format.name()));
    let w = weight(&mut d, format, k);
    let x = q8_activations(&mut d, k);
    let y = d.b.product(Tree::BLOCKS, x, w, None);
    d.output("y", y);
    d.steps(&STEPS)
}

/// Quantised rows: of every kind, but the fifth has the codes -127 and 127 only, and in the sixth every other block has a scale
/// of zero, or one that is subnormal.
fn q8_activations(d: &mut Draft, k: u32) -> Value {
    let mut words = d.random.rows(8, k as usize);
    let row = |row: u32| (row * k) as usize..((row + 1) * k) as usize;
    words[row(4)].iter_mut().for_each(|w| *w = *w & 0x8000_0000 | 0x3f80_0000);
    for (i, w) in words[row(5)].iter_mut().enumerate() {
        let exponent = [-130, -119][i / 32 % 2];
        *w = super::inputs::times_power(d.random.unit(), exponent).to_bits();
    }
    let x = d.floats(&[8, k], &words);
    let x = d.per_column(x);
    d.b.quantise(x)
}

/// Two values, no weight.
fn values(k: u32, tree: Tree) -> Case {
    let mut d = Draft::new(FAMILY, &format!("values.{}.{k}", tree_name(tree)));
    let x = d.activations(&[k]);
    let w = d.random.rows(7, k as usize);
    let w = d.floats(&[7, k], &w);
    let y = d.b.product(tree, x, w, None);
    d.output("y", y);
    d.steps(&STEPS)
}

/// Weights in a tree that the contract does not choose for them.
fn other_tree() -> Case {
    let mut d = Draft::new(FAMILY, "other_tree");
    for (format, tree) in [(Format::Q8_0, Tree::Lanes(8)), (Format::F16, Tree::Lanes(64)), (Format::Q4_K, Tree::Seq)] {
        let k = format.block_len().max(160) as u32;
        let (w, x) = (weight(&mut d, format, k), d.activations(&[k]));
        let y = d.b.product(tree, x, w, None);
        d.output(&format!("{}_{}", format.name(), tree_name(tree)), y);
    }
    d.steps(&STEPS)
}

/// Leaves under a mask: of values, and of weights.
fn masked() -> Case {
    let mut d = Draft::new(FAMILY, "masked");
    for (k, tree) in [(7u32, Tree::Seq), (167, Tree::Lanes(32)), (530, Tree::Lanes(128))] {
        let ids: Vec<i32> = (0..k as i32).map(|i| if i % 3 == 1 { -1 } else { i }).collect();
        let mask = d.ids(&[k], &ids);
        let x = d.activations(&[k]);
        let w = d.random.rows(7, k as usize);
        let w = d.floats(&[7, k], &w);
        let y = d.b.product(tree, x, w, Some(mask));
        d.output(&format!("values_{k}"), y);
        let w = weight(&mut d, Format::F16, k);
        let y = d.b.product(tree, x, w, Some(mask));
        d.output(&format!("weights_{k}"), y);
    }
    d.steps(&STEPS)
}

/// A matrix for each index of the first axis, of a weight in parts and of values; rows of `x` beneath.
fn batches() -> Case {
    let mut d = Draft::new(FAMILY, "batches");
    for format in [Format::Q8_0, Format::Fp8] {
        let contents = contents(format, [3, N as usize, 96], &mut d.random);
        let w = d.weight(format, &[3, N, 96], &contents);
        let x = d.activations(&[3, 96]);
        let x = d.b.permute(x, &[1, 0, 2]);
        let y = d.b.product(Tree::Lanes(32), x, w, None);
        d.output(&format!("{}_f32", format.name()), y);
    }
    let x = d.activations(&[3, 37]);
    let x = d.b.permute(x, &[1, 0, 2]);
    let w = d.random.rows(15, 37);
    let w = d.floats(&[3, 5, 37], &w);
    let y = d.b.product(Tree::Lanes(32), x, w, None);
    d.output("values", y);
    d.steps(&STEPS)
}

/// Experts of a weight in parts, chosen by ids of each column, some masked; then their sum under the same mask.
fn experts(format: Format) -> Case {
    let mut d = Draft::new(FAMILY, &format!("{}.experts", format.name()));
    let k = if format.block_len() == 256 { 256 } else { 96 };
    let (experts, chosen) = (4u32, 2u32);
    let contents = contents(format, [experts as usize, N as usize, k as usize], &mut d.random);
    let w = d.weight(format, &[experts, N, k], &contents);
    let ids = d.ids(&[8, chosen], &[3, 0, -1, 2, 1, 1, 0, -1, 2, 3, 1, 0, -1, -1, 2, 0]);
    let ids = d.per_column(ids);
    let rows = d.b.gather(0, 0, w, ids);
    let x = d.activations(&[chosen, k]);
    let f32 = d.b.product(Tree::Lanes(32), x, rows, None);
    d.tap("f32", f32);
    summed(&mut d, "f32_sum", f32, ids);
    if format.takes_q8() {
        let x = d.b.quantise(x);
        let q8 = d.b.product(Tree::BLOCKS, x, rows, None);
        d.tap("q8", q8);
        summed(&mut d, "q8_sum", q8, ids);
    }
    d.steps(&STEPS)
}

/// The sum over the chosen ones: what is masked adds nothing.
fn summed(d: &mut Draft, name: &str, y: Value, ids: Value) {
    let (columns, one) = (d.b.columns(), d.b.n(1));
    let shape = d.b.dims_of(y);
    let guard = d.b.reshape(ids, &[columns, shape[1], one]);
    let guard = d.b.broadcast(guard, &shape);
    let sum = d.b.reduce(ReduceKind::Sum, Tree::Seq, 1, y, Some(guard));
    d.output(name, sum);
}

/// Scores with gathered rows of a state, then their sum weighted under the mask of the ids.
fn attention() -> Case {
    let mut d = Draft::new(FAMILY, "attention");
    let (rows, heads, width) = (9u32, 2u32, 36u32);
    let state = d.b.add_state("rows", Type::F32, &[20, width]);
    let columns = d.b.columns();
    let new = d.activations(&[width]);
    let places = d.b.iota(&[columns], 0);
    let old = d.b.read(state);
    let state = d.b.write(old, places, new);
    let ids: Vec<i32> = (0..8 * rows as i32).map(|i| if i % 4 == 3 { -1 } else { i * 7 % 20 }).collect();
    let ids = d.ids(&[8, rows], &ids);
    let ids = d.per_column(ids);
    let chosen = d.b.gather(0, 0, state, ids);
    let q = d.activations(&[heads, width]);
    let scores = d.b.product(Tree::Lanes(32), q, chosen, None);
    let weights = d.activations(&[heads, rows]);
    let across = d.b.permute(chosen, &[0, 2, 1]);
    let sum = d.b.product(Tree::Seq, weights, across, Some(ids));
    d.tap("scores", scores);
    d.output("sum", sum);
    d.tap("rows", state);
    d.steps(&[8, 1, 3])
}

/// Rows with themselves: sums of squares.
fn norms() -> Case {
    let mut d = Draft::new(FAMILY, "squares");
    let (columns, one, heads) = (d.b.columns(), d.b.n(1), d.b.n(3));
    for k in [4, 100, 520] {
        let mut words = d.random.rows(8, 3 * k as usize);
        // A row whose squares are subnormal.
        for word in &mut words[3 * k as usize..6 * k as usize] {
            let exponent = -64 - d.random.below(10) as i32;
            *word = d.random.scaled(exponent).to_bits();
        }
        let x = d.floats(&[8, 3, k], &words);
        let x = d.per_column(x);
        let n = d.b.n(k);
        let x = d.apply(Neg, &[x]);
        let row = d.b.reshape(x, &[columns, heads, one, n]);
        let y = d.b.product(Tree::for_leaves(k), row, row, None);
        d.output(&format!("of_{k}"), y);
    }
    d.steps(&STEPS)
}

/// More columns than decode has.
fn prefill() -> Case {
    let mut d = Draft::new(FAMILY, "prefill");
    d.columns(43);
    for format in [Format::F32, Format::F16, Format::Q8_0, Format::Q4_K, Format::Fp8] {
        let k = format.block_len().max(160) as u32;
        let (w, x) = (weight(&mut d, format, k), d.activations(&[k]));
        let y = d.b.product(Tree::Lanes(32), x, w, None);
        d.output(&format!("{}_f32", format.name()), y);
    }
    for format in Format::ALL.into_iter().filter(|format| format.takes_q8()) {
        let (w, x) = (weight(&mut d, format, 256), d.activations(&[256]));
        let x = d.b.quantise(x);
        let y = d.b.product(Tree::BLOCKS, x, w, None);
        d.output(&format!("{}_q8", format.name()), y);
    }
    d.steps(&[43, 1, 16, 33])
}

/// More than 65,535 workgroups of two rows each.
fn large() -> Case {
    let mut d = Draft::new(FAMILY, "large");
    let (n, k) = (16_400u32, 6u32);
    let contents = contents(Format::F16, [1, n as usize, k as usize], &mut d.random);
    let w = d.weight(Format::F16, &[n, k], &contents);
    let x = d.activations(&[k]);
    let y = d.b.product(Tree::Lanes(32), x, w, None);
    d.output("y", y);
    d.steps(&[8])
}

/// Long rows, many of them.
fn wide() -> Case {
    let mut d = Draft::new(FAMILY, "wide");
    for format in [Format::Q8_0, Format::Q4_K] {
        let contents = contents(format, [1, 67, 4096], &mut d.random);
        let w = d.weight(format, &[67, 4096], &contents);
        let x = q8_activations(&mut d, 4096);
        let y = d.b.product(Tree::BLOCKS, x, w, None);
        d.output(&format!("{}_q8", format.name()), y);
    }
    let contents = contents(Format::BF16, [1, 67, 4096], &mut d.random);
    let w = d.weight(Format::BF16, &[67, 4096], &contents);
    let x = d.activations(&[4096]);
    let y = d.b.product(Tree::Lanes(128), x, w, None);
    d.output("bf16_f32", y);
    d.steps(&[8, 1])
}
