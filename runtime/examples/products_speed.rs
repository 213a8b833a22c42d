//! Prints the speed of the product primitives, one thread, for each instruction-set level.
//!
//! `cargo run --release -p ds4-runtime --example products_speed [level [format]]`

use std::hint::black_box;
use std::time::Instant;

use ds4_ir::{Format, Tree};
use ds4_runtime::cpu::products::{
    F32Columns, Isa, Matrix, Out, Q8Columns, dot_rows, product_f32, product_q8, quantise_q8, weighted_rows,
};
use ds4_runtime::cpu::team::Team;

/// Rows and columns of the matrices: a small model's, a large one's.
const SHAPES: [(usize, usize); 3] = [(512, 128), (512, 512), (1024, 4096)];
const COLUMNS: [usize; 3] = [1, 8, 64];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for isa in Isa::available() {
        if arguments.first().is_some_and(|name| name != isa.name()) {
            continue;
        }
        println!("{}: columns {COLUMNS:?}, Gelem/s of weights times columns (GB/s of weights)", isa.name());
        for format in Format::ALL.into_iter().filter(|f| !f.is_integer()) {
            if arguments.get(1).is_none_or(|name| name == format.name()) {
                products(isa, format);
            }
        }
        rows(isa);
    }
    team();
}

/// Seconds of one call, the best of several batches.
fn time(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let mut calls: usize = 1;
    for _ in 0..25 {
        let start = Instant::now();
        (0..calls).for_each(|_| work());
        let seconds = start.elapsed().as_secs_f64();
        best = best.min(seconds / calls as f64);
        calls = ((0.003 / best) as usize).max(1);
    }
    best
}

fn products(isa: Isa, format: Format) {
    for (rows, cols) in SHAPES {
        let Some(stride) = format.row_bytes(cols) else {
            continue;
        };
        let data: Vec<u8> = (0..rows * stride).map(|i| ((i * 2_654_435_761) >> 7) as u8 & 0x37).collect();
        let scales = vec![127; rows * cols / 32];
        let matrix = Matrix {
            scales: &scales,
            scale_stride: cols / 32,
            scale_block_cols: 32,
            ..Matrix::plain(format, rows, cols, &data)
        };
        let line = |name: &str, speeds: [f64; 3]| {
            let bytes = speeds[0] * stride as f64 / cols as f64;
            println!("  {:8} {name:10} {rows:5}x{cols:<5} {speeds:6.2?} ({bytes:.1})", format.name());
        };
        let work = |columns| (rows * cols * columns) as f64 * 1e-9;
        if format.takes_q8() {
            line("q8", COLUMNS.map(|t| work(t) / q8_seconds(isa, &matrix, t)));
        }
        for tree in [Tree::Lanes(32), Tree::Lanes(128)] {
            let name = if tree == Tree::Lanes(32) { "lanes32" } else { "lanes128" };
            line(name, COLUMNS.map(|t| work(t) / f32_seconds(isa, &matrix, tree, t)));
        }
    }
}

fn activations(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 0.7).sin()).collect()
}

fn q8_seconds(isa: Isa, matrix: &Matrix, columns: usize) -> f64 {
    let count = matrix.cols * columns;
    let x = activations(count);
    let (mut codes, mut scales) = (vec![0; count], vec![0.0; count / 32]);
    let mut sums = vec![0; count / 16];
    quantise_q8(isa, &x, &mut codes, &mut scales, &mut sums);
    let x = Q8Columns { codes: &codes, scales: &scales, sums: &sums, len: matrix.cols, columns };
    let mut values = vec![0.0; matrix.rows * columns];
    let mut out = Out::new(&mut values, matrix.rows);
    time(|| product_q8(isa, black_box(matrix), x, &mut out.rows(0..matrix.rows)))
}

fn f32_seconds(isa: Isa, matrix: &Matrix, tree: Tree, columns: usize) -> f64 {
    let values = activations(matrix.cols * columns);
    let x = F32Columns { values: &values, stride: matrix.cols, columns };
    let mut values = vec![0.0; matrix.rows * columns];
    let mut out = Out::new(&mut values, matrix.rows);
    time(|| product_f32(isa, black_box(matrix), x, tree, &mut out.rows(0..matrix.rows)))
}

fn rows(isa: Isa) {
    let (len, count) = (512, 128);
    let (q, rows) = (activations(len), activations(len * count));
    let starts: Vec<usize> = (0..count).map(|i| len * (i * 37 % count)).collect();
    let (mut out, mut acc) = (vec![0.0; count], vec![-0.0; len]);
    let elements = (len * count) as f64 * 1e-9;
    let dots = time(|| dot_rows(isa, black_box(&q), &rows, &starts, Tree::Lanes(128), &mut out));
    let sums = time(|| weighted_rows(isa, black_box(&rows), &starts, &q[..count], &mut acc));
    let (mut codes, mut scales, mut halves) = (vec![0; len], vec![0.0; len / 32], vec![0; len / 16]);
    let quantise = time(|| quantise_q8(isa, black_box(&q), &mut codes, &mut scales, &mut halves));
    println!(
        "  rows of {len}: dots {:.2}, weighted sums {:.2}; quantise {:.2} Gelem/s",
        elements / dots,
        elements / sums,
        len as f64 * 1e-9 / quantise
    );
}

fn team() {
    let Ok(mut team) = Team::new(2) else { return };
    let seconds = time(|| {
        let _ = team.run(2, |worker, _| {
            black_box(worker);
        });
    });
    println!("team of 2: {:.2} us a piece of work", seconds * 1e6);
}
