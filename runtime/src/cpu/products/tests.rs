//! Every primitive against a tree built literally from the definitions of `ds4_ir::formats`, at every
//! instruction-set level, bit for bit.

use ds4_ir::formats::leaf::{f32_leaf, q8_leaf};
use ds4_ir::formats::{WeightRow, decode_row, q8};
use ds4_ir::{Format, Tree};

use super::*;

/// The contract's words: leaf `u` to lane `u mod L`, lanes ascending from their first leaf, then
/// halving; a lane without leaves is absent.
fn tree_of_lanes(leaves: &[f32], width: usize) -> f32 {
    let mut lanes: Vec<Option<f32>> = vec![None; width];
    for (u, &leaf) in leaves.iter().enumerate() {
        let lane = &mut lanes[u % width];
        *lane = Some(lane.map_or(leaf, |sum| sum + leaf));
    }
    let mut half = width / 2;
    while half >= 1 {
        for l in 0..half {
            lanes[l] = match (lanes[l], lanes[l + half]) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        half /= 2;
    }
    lanes[0].unwrap()
}

fn sum(leaves: &[f32], tree: Tree) -> f32 {
    match tree {
        Tree::Seq => leaves.iter().copied().reduce(|a, b| a + b).unwrap(),
        Tree::Lanes(width) => tree_of_lanes(leaves, width as usize),
        Tree::Free => unreachable!(),
    }
}

fn bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

#[track_caller]
fn assert_same(found: &[f32], wanted: &[f32], what: impl Fn() -> String) {
    assert_eq!(found.len(), wanted.len());
    for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
        assert_eq!(bits(*f), bits(*w), "{} at {i}: {f:e} for {w:e}", what());
    }
}

/// A small generator, so that a failure comes back.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Activations of a kind: ordinary, of all magnitudes with cancellation, or any bits at all.
    fn values(&mut self, count: usize, kind: usize) -> Vec<f32> {
        const EDGES: [f32; 8] = [0.0, -0.0, 1e-45, -1e-40, f32::MIN_POSITIVE, 3e38, -3e38, 1.0];
        let mut out: Vec<f32> = Vec::with_capacity(count);
        for i in 0..count {
            let unit = self.next() as i32 as f32 / 2f32.powi(31);
            out.push(match kind {
                0 => unit,
                1 if i % 3 == 2 => -out[i - 1 - self.below(2)],
                1 => unit * 2f32.powi(self.below(60) as i32 - 30),
                2 => EDGES[self.below(8)],
                _ => f32::from_bits(self.next() as u32),
            });
        }
        out
    }
}

/// Stored bytes of a matrix with scales that mostly are of ordinary size.
struct Stored {
    format: Format,
    rows: usize,
    cols: usize,
    data: Vec<u8>,
    stride: usize,
    scales: Vec<u8>,
    scale_stride: usize,
    block: (usize, usize),
}

/// Byte offsets of a block's binary16 fields.
fn half_fields(format: Format) -> &'static [usize] {
    match format {
        Format::Q8_0 | Format::IQ2_XXS | Format::F16 => &[0],
        Format::Q2_K => &[80, 82],
        Format::Q4_K => &[0, 2],
        _ => &[],
    }
}

impl Stored {
    fn random(format: Format, rows: usize, cols: usize, wild: bool, random: &mut Random) -> Stored {
        let stride = format.row_bytes(cols).unwrap() + [0, 2, 7][random.below(3)];
        let mut data = random.bytes(rows * stride);
        let size = format.block_bytes();
        for row in data.chunks_exact_mut(stride) {
            for block in row.chunks_exact_mut(size) {
                if wild && random.below(4) == 0 {
                    continue;
                }
                for &at in half_fields(format) {
                    let bits = (0x2000 + random.below(0x1800) as u16) | ((random.below(2) as u16) << 15);
                    block[at..at + 2].copy_from_slice(&bits.to_le_bytes());
                }
                match format {
                    Format::MXFP4 => block[0] = 110 + random.below(30) as u8,
                    Format::F32 => {
                        block[3] = block[3] & 0x80 | (0x3c + random.below(4) as u8);
                    }
                    Format::BF16 => block[1] = block[1] & 0x80 | (0x3c + random.below(4) as u8),
                    Format::Fp8 if block[0] & 0x7f == 0x7f => block[0] = 3,
                    _ => {}
                }
            }
        }
        let block = match format {
            Format::Fp8 => (2, [128, 32, 48][random.below(3)]),
            Format::Fp4 => (1, 32),
            _ => (1, 1),
        };
        let scale_stride = cols.div_ceil(block.1) + random.below(2);
        let mut scales = random.bytes(rows.div_ceil(block.0) * scale_stride);
        for scale in &mut scales {
            if !wild || random.below(4) > 0 {
                *scale = 110 + *scale % 30;
            }
        }
        Stored {
            format,
            rows,
            cols,
            data,
            stride,
            scales: if format.has_scales() { scales } else { vec![] },
            scale_stride,
            block,
        }
    }

    fn matrix(&self) -> Matrix<'_> {
        Matrix {
            format: self.format,
            rows: self.rows,
            cols: self.cols,
            data: &self.data,
            row_stride: self.stride,
            scales: &self.scales,
            scale_stride: self.scale_stride,
            scale_block_rows: self.block.0,
            scale_block_cols: self.block.1,
        }
    }

    fn row(&self, r: usize) -> WeightRow<'_> {
        let bytes = self.format.row_bytes(self.cols).unwrap();
        WeightRow {
            format: self.format,
            data: &self.data[r * self.stride..][..bytes],
            scales: match self.scales.is_empty() {
                true => &[],
                false => &self.scales[r / self.block.0 * self.scale_stride..],
            },
            scale_cols: self.block.1,
        }
    }

    fn decoded(&self, r: usize) -> Vec<f32> {
        let mut values = vec![0.0; self.cols];
        decode_row(&self.row(r), &mut values);
        values
    }
}

struct Quantised {
    codes: Vec<i8>,
    scales: Vec<f32>,
    sums: Vec<i16>,
}

/// By the definition, with the sums beside.
fn quantised(x: &[f32]) -> Quantised {
    let mut codes = vec![0; x.len()];
    let mut scales = vec![0.0; x.len() / 32];
    q8::quantise_q8(x, &mut codes, &mut scales);
    let sum = |codes: &[i8]| codes.iter().map(|&c| i16::from(c)).sum();
    let sums = codes.chunks(16).map(sum).collect();
    Quantised { codes, scales, sums }
}

#[test]
fn quantisation_has_the_bits_of_its_definition() {
    let mut random = Random(1);
    for kind in 0..4 {
        for _ in 0..200 {
            let count = 32 * (1 + random.below(5));
            let mut x = random.values(count, kind);
            let scale = 2f32.powi(random.below(250) as i32 - 125);
            x.iter_mut().for_each(|x| *x *= scale);
            if random.below(8) == 0 {
                x[random.below(count)] = [f32::NAN, f32::INFINITY, f32::MAX][random.below(3)];
            }
            let wanted = quantised(&x);
            for isa in Isa::available() {
                let (mut codes, mut scales) = (vec![1; count], vec![1.0; count / 32]);
                let mut sums = vec![1; count / 16];
                quantise_q8(isa, &x, &mut codes, &mut scales, &mut sums);
                assert_eq!(codes, wanted.codes, "{}", isa.name());
                assert_eq!(sums, wanted.sums, "{}", isa.name());
                assert_same(&scales, &wanted.scales, || isa.name().into());
            }
        }
    }
}

#[test]
fn halves_are_quantised_to_even_at_every_level() {
    // amax 127 makes the factor 1, so these are the halves themselves.
    let x: Vec<f32> = (0..256).map(|i| i as f32 / 2.0 - 63.5).chain([127.0; 32]).collect();
    let x: Vec<f32> = x.chunks(31).flat_map(|c| c.iter().copied().chain([127.0])).collect();
    let x = &x[..x.len() / 32 * 32];
    let wanted = quantised(x);
    for isa in Isa::available() {
        let (mut codes, mut scales) = (vec![0; x.len()], vec![0.0; x.len() / 32]);
        quantise_q8(isa, x, &mut codes, &mut scales, &mut vec![0; x.len() / 16]);
        assert_eq!(codes, wanted.codes);
    }
}

fn check_q8(stored: &Stored, columns: usize, x: &Quantised) {
    let (rows, cols) = (stored.rows, stored.cols);
    let blocks = cols / 32;
    let mut wanted = vec![0.0; rows * columns];
    for t in 0..columns {
        for r in 0..rows {
            let leaf = |u: usize| {
                let codes = &x.codes[t * cols + 32 * u..][..32];
                q8_leaf(&stored.row(r), u, codes, x.scales[t * blocks + u])
            };
            let leaves: Vec<f32> = (0..blocks).map(leaf).collect();
            wanted[t * rows + r] = tree_of_lanes(&leaves, 32);
        }
    }
    let x = Q8Columns { codes: &x.codes, scales: &x.scales, sums: &x.sums, len: cols, columns };
    for isa in Isa::available() {
        let mut found = vec![7.0; rows * columns];
        let mut out = Out::new(&mut found, rows);
        let middle = rows / 3;
        product_q8(isa, &stored.matrix(), x, &mut out.rows(0..middle));
        product_q8(isa, &stored.matrix(), x, &mut out.rows(middle..rows));
        assert_same(&found, &wanted, || {
            format!("{} {} {rows}x{cols}, {columns} columns", isa.name(), stored.format.name())
        });
    }
}

#[test]
fn q8_products_have_the_bits_of_the_literal_tree() {
    let mut random = Random(2);
    for format in Format::ALL.into_iter().filter(|f| f.takes_q8()) {
        let unit = format.block_len().max(32) / 32;
        let leaves = [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 96, 127, 129];
        for (i, leaves) in leaves.into_iter().filter(|l| l % unit == 0 || *l < 9).enumerate() {
            let cols = 32 * leaves.next_multiple_of(unit);
            for kind in 0..4 {
                let columns = [1, 2, 3, 8, 9, 17, 34][(i + kind) % 7];
                let rows = [1, 3, 5, 16, 19, 35][(i + 2 * kind) % 6];
                let stored = Stored::random(format, rows, cols, kind > 1, &mut random);
                let x = quantised(&random.values(cols * columns, kind));
                check_q8(&stored, columns, &x);
            }
        }
    }
}

#[test]
fn q8_products_take_extreme_codes() {
    let mut random = Random(3);
    for format in Format::ALL.into_iter().filter(|f| f.takes_q8()) {
        for (byte, code) in [(0x80, 127), (0x80, -127), (0xff, -127), (0x7f, 127)] {
            let mut stored = Stored::random(format, 17, 512, false, &mut random);
            for block in stored.data.chunks_exact_mut(format.block_bytes()) {
                let fields = half_fields(format);
                for (at, value) in block.iter_mut().enumerate() {
                    if !fields.iter().any(|&f| at == f || at == f + 1) {
                        *value = byte;
                    }
                }
                if format == Format::MXFP4 {
                    block[0] = 127;
                }
            }
            let x = Quantised {
                codes: vec![code; 512 * 16],
                scales: vec![0.37; 16 * 16],
                sums: vec![16 * i16::from(code); 32 * 16],
            };
            check_q8(&stored, 1, &x);
            check_q8(&stored, 16, &x);
        }
    }
}

const TREES: [Tree; 3] = [Tree::Seq, Tree::Lanes(32), Tree::Lanes(128)];

fn check_f32(stored: &Stored, columns: usize, x: &[f32], x_stride: usize) {
    let (rows, cols) = (stored.rows, stored.cols);
    for tree in TREES {
        let mut wanted = vec![0.0; rows * columns];
        for r in 0..rows {
            let w = stored.decoded(r);
            for t in 0..columns {
                let x = &x[t * x_stride..][..cols];
                let leaves: Vec<f32> = w.iter().zip(x).map(|(w, x)| f32_leaf(*w, *x)).collect();
                wanted[t * rows + r] = sum(&leaves, tree);
            }
        }
        let x = F32Columns { values: x, stride: x_stride, columns };
        for isa in Isa::available() {
            let mut found = vec![7.0; rows * columns];
            let mut out = Out::new(&mut found, rows);
            let middle = rows / 3;
            product_f32(isa, &stored.matrix(), x, tree, &mut out.rows(0..middle));
            product_f32(isa, &stored.matrix(), x, tree, &mut out.rows(middle..rows));
            assert_same(&found, &wanted, || {
                let (isa, format) = (isa.name(), stored.format.name());
                format!("{isa} {format} {tree:?} {rows}x{cols}, {columns} columns")
            });
        }
    }
}

#[test]
fn f32_products_have_the_bits_of_the_literal_tree() {
    let mut random = Random(4);
    let sizes = [1, 2, 3, 5, 8, 31, 33, 64, 96, 127, 128, 129, 255, 256, 257, 500, 511, 512, 513, 768, 1030];
    for format in Format::ALL.into_iter().filter(|f| !f.is_integer()) {
        let mut last = 0;
        for (i, size) in sizes.into_iter().enumerate() {
            let cols = usize::next_multiple_of(size, format.block_len());
            if cols == last {
                continue;
            }
            last = cols;
            for kind in 0..4 {
                let columns = [1, 2, 3, 8, 9, 17][(i + kind) % 6];
                let rows = [1, 3, 5, 17][(i + 2 * kind) % 4];
                let stored = Stored::random(format, rows, cols, kind > 1, &mut random);
                let stride = cols + 3;
                let x = random.values(stride * columns, kind);
                check_f32(&stored, columns, &x, stride);
            }
        }
    }
}

#[test]
fn every_f16_and_fp8_code_is_widened_exactly() {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    for (format, data) in [(Format::F16, &halves), (Format::Fp8, &bytes)] {
        let rows = data.len() / format.block_bytes();
        let matrix = Matrix { scales: &[127], scale_block_rows: rows, ..Matrix::plain(format, rows, 1, data) };
        let x = F32Columns { values: &[1.0], stride: 1, columns: 1 };
        for isa in Isa::available() {
            let mut found = vec![0.0; rows];
            product_f32(isa, &matrix, x, Tree::Seq, &mut Out::new(&mut found, rows).rows(0..rows));
            let wanted: Vec<f32> = (0..rows)
                .map(|r| {
                    let row = matrix.row(r);
                    let mut value = [0.0];
                    let row = WeightRow { format, data: row.data, scales: row.scales, scale_cols: row.scale_cols };
                    decode_row(&row, &mut value);
                    value[0]
                })
                .collect();
            assert_same(&found, &wanted, || format!("{} {}", isa.name(), format.name()));
        }
    }
}

#[test]
fn row_dots_and_weighted_rows_have_the_bits_of_the_literal_sums() {
    let mut random = Random(5);
    for len in [1, 3, 5, 32, 63, 64, 65, 127, 128, 192, 511, 512, 513] {
        for kind in 0..4 {
            let rows = random.values(len * 9, kind);
            let q = random.values(len, kind);
            let count = [1, 2, 7][random.below(3)];
            let starts: Vec<usize> = (0..count).map(|_| random.below(8 * len)).collect();
            let weights = random.values(count, kind);
            for isa in Isa::available() {
                let what = || format!("{} {len} kind {kind}", isa.name());
                for tree in TREES {
                    let dot = |&start: &usize| {
                        let row = rows[start..][..len].iter();
                        sum(&row.zip(&q).map(|(r, q)| f32_leaf(*r, *q)).collect::<Vec<_>>(), tree)
                    };
                    let wanted: Vec<f32> = starts.iter().map(dot).collect();
                    let mut found = vec![0.0; count];
                    dot_rows(isa, &q, &rows, &starts, tree, &mut found);
                    assert_same(&found, &wanted, what);
                    let one = dot_row(isa, &q, &rows[starts[0]..][..len], tree);
                    assert_same(&[one], &wanted[..1], what);
                }
                let column = |c: usize| {
                    let terms = starts.iter().zip(&weights).map(|(s, w)| rows[s + c] * w);
                    terms.reduce(|a, b| a + b).unwrap()
                };
                let wanted: Vec<f32> = (0..len).map(column).collect();
                let mut acc = vec![-0.0; len];
                weighted_rows(isa, &rows, &starts, &weights, &mut acc);
                assert_same(&acc, &wanted, what);
                let mut acc = vec![-0.0; len];
                for (&start, &weight) in starts.iter().zip(&weights) {
                    add_scaled_row(isa, weight, &rows[start..][..len], &mut acc);
                }
                assert_same(&acc, &wanted, what);
            }
        }
    }
}

/// The comparison must be able to fail: two lanes exchanged, or another width, show in the bits.
#[test]
fn an_exchange_of_lanes_changes_bits() {
    let mut random = Random(6);
    for (width, leaves) in [(32, 40), (32, 128), (128, 512), (128, 700)] {
        let tree = Tree::Lanes(width as u32);
        let ones = vec![1.0; leaves];
        let (mut exchanges, mut widths) = (0, 0);
        for _ in 0..64 {
            let values = random.values(leaves, 0);
            let good = tree_of_lanes(&values, width);
            let mut exchanged = values.clone();
            for start in (0..leaves).step_by(width).filter(|start| start + 2 < leaves) {
                exchanged.swap(start + 1, start + 2);
            }
            for isa in Isa::available() {
                assert_eq!(bits(dot_row(isa, &ones, &values, tree)), bits(good));
                let other = dot_row(isa, &ones, &exchanged, tree);
                exchanges += usize::from(bits(other) != bits(good));
            }
            widths += usize::from(bits(tree_of_lanes(&values, width / 2)) != bits(good));
        }
        assert!(exchanges > 16 && widths > 16, "{width}: {exchanges}, {widths}");
    }
}

#[test]
fn levels_are_named_and_forced_by_name() {
    for isa in Isa::available() {
        assert_eq!(Isa::from_name(isa.name()), Some(isa));
    }
    assert!(Isa::available().any(|isa| isa == Isa::best()));
    assert_eq!(Isa::from_name("abacus"), None);
}
