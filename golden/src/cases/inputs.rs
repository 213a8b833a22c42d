//! Inputs that show what random ones hide: contraction, flushing, wrong roundings, lost signs, ties.

/// A plain generator (xorshift), seeded by a case's name, so that cases do not depend on each other.
pub struct Random(u64);

impl Random {
    /// The generator of a name.
    pub fn named(name: &str) -> Random {
        let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |s, b| (s ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        Random(seed | 1)
    }

    /// The next word.
    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        self.word() % n
    }

    /// A float between -1 and 1.
    pub fn unit(&mut self) -> f32 {
        self.word() as i32 as f32 / 2_147_483_648.0
    }

    /// A float of this sign's and exponent's random significand: `1.xxx * 2^exponent`, either sign.
    pub fn scaled(&mut self, exponent: i32) -> f32 {
        let significand = 0x3f80_0000 | self.word() & 0x807f_ffff;
        times_power(f32::from_bits(significand), exponent)
    }

    /// Any bit patterns.
    pub fn patterns(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.word()).collect()
    }

    /// Pairs whose sum cancels: the second is the negated first, a few units of the last place apart.
    pub fn cancelling(&mut self, count: usize) -> [Vec<u32>; 2] {
        let mut pairs = [Vec::new(), Vec::new()];
        for i in 0..count {
            let exponent = self.below(200) as i32 - 126;
            let x = self.scaled(exponent).to_bits();
            pairs[0].push(x);
            pairs[1].push((x ^ 0x8000_0000).wrapping_add((i % 5) as u32).wrapping_sub(2));
        }
        pairs
    }

    /// Triples `a b c` with `c` near the rounded `-a b`: what is left of `a b + c` is the rounding error, unless it was made.
    pub fn contracting(&mut self, count: usize) -> [Vec<u32>; 3] {
        let mut triples = [Vec::new(), Vec::new(), Vec::new()];
        for i in 0..count {
            let exponents = [[0, 0], [60, 60], [-60, -60], [-70, -70], [100, -20]][i % 5];
            let (a, b) = (self.scaled(exponents[0]), self.scaled(exponents[1]));
            let c = (-(a * b)).to_bits().wrapping_add((i / 5 % 3) as u32).wrapping_sub(1);
            for (list, word) in triples.iter_mut().zip([a.to_bits(), b.to_bits(), c]) {
                list.push(word);
            }
        }
        triples
    }

    /// `rows` rows of `len` floats, each row of its own kind, see [`RowKind`].
    pub fn rows(&mut self, rows: usize, len: usize) -> Vec<u32> {
        (0..rows).flat_map(|row| self.row(RowKind::ALL[row % RowKind::ALL.len()], len)).collect()
    }

    /// A row of this kind.
    pub fn row(&mut self, kind: RowKind, len: usize) -> Vec<u32> {
        let mut row = Vec::with_capacity(len);
        for i in 0..len {
            let before: f32 = row.last().copied().unwrap_or(1.0);
            row.push(self.element(kind, i, before));
        }
        kind.plant(&mut row);
        row.into_iter().map(f32::to_bits).collect()
    }

    fn element(&mut self, kind: RowKind, i: usize, before: f32) -> f32 {
        match kind {
            RowKind::Cancelling if i % 2 == 1 => -before,
            RowKind::Tiny => times_power(self.unit(), -125 - self.below(16) as i32),
            RowKind::Wide => {
                let exponent = self.below(40) as i32 - 20;
                self.scaled(exponent)
            }
            RowKind::Zeros => -0.0,
            RowKind::Huge => times_power(self.unit(), 126),
            _ => self.unit(),
        }
    }
}

/// What a row of activations is like. The first rows have neither infinity nor NaN, which would hide the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowKind {
    /// Every second element is the negated one before it.
    Cancelling,
    /// Subnormal, or with subnormal products.
    Tiny,
    /// Exponents far apart.
    Wide,
    /// Between -1 and 1.
    Plain,
    /// Zeros of the sign that a sum easily loses.
    Zeros,
    /// Sums overflow.
    Huge,
    /// One infinity.
    Infinite,
    /// One NaN, and infinities of both signs.
    NotANumber,
}

impl RowKind {
    /// All kinds, in the order in which rows have them.
    pub const ALL: [RowKind; 8] = {
        use RowKind::*;
        [Cancelling, Tiny, Wide, Plain, Zeros, Huge, Infinite, NotANumber]
    };

    fn plant(self, row: &mut [f32]) {
        let last = row.len().saturating_sub(1);
        match (self, row) {
            (RowKind::Infinite, [.., x]) => *x = f32::INFINITY,
            (RowKind::NotANumber, row @ [_, ..]) => {
                row[0] = f32::NEG_INFINITY;
                row[last / 2] = f32::from_bits(0xffc0_0123);
                row[last] = f32::INFINITY;
            }
            _ => {}
        }
    }
}

/// `x * 2^exponent`, rounded once.
pub fn times_power(x: f32, exponent: i32) -> f32 {
    // A double holds the product exactly: its exponents reach far beyond.
    (f64::from(x) * 2f64.powi(exponent)) as f32
}

/// Floats that arithmetic stumbles over, by their bits.
pub const SPECIAL: [u32; 61] = [
    // Zeros, the ends of the subnormals, the least normals.
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x0000_0002,
    0x0040_0000,
    0x8040_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    // Around one, and halves that are ties of roundings to integers.
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x3f7f_ffff,
    0x3f00_0000,
    0xbf00_0000,
    0x3eff_ffff,
    0x3f00_0001,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x4060_0000,
    0x4040_0000,
    0x3eaa_aaab,
    0x40e0_0001,
    0xc0a0_0000,
    // Where integers become coarse: 2^22 + 1/2, 2^23 - 1/2, 2^23 + 1, 2^24, 2^24 + 2, 2^31, -2^31, 2^32.
    0x4a80_0001,
    0x4aff_ffff,
    0x4b00_0001,
    0x4b80_0000,
    0x4b80_0001,
    0x4f00_0000,
    0xcf00_0000,
    0x4f80_0000,
    // Squares and products at the edge of the subnormals: near 2^-75, 2^-74, 2^-63; and far up.
    0x1a00_0000,
    0x1a80_0001,
    0x2000_0001,
    0x5f00_0001,
    0x5f80_0000,
    0x7e80_0001,
    0x7f00_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    // Edges of storage formats: 448, 464, 65504, 65520, 2^-24, 2^-25, 2^-9.
    0x43e0_0000,
    0x43e8_0000,
    0x477f_e000,
    0x477f_f000,
    0x3380_0000,
    0x3300_0000,
    0x3b00_0000,
    // pi, and a number whose quarter turns take all bits of pi.
    0x4049_0fdb,
    0x5c9a_3c4b,
    // Infinities, quiet and signalling NaN.
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc0_0001,
    0x7f80_0001,
];

/// Integers that arithmetic stumbles over.
pub const INTEGERS: [i32; 25] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    -3,
    7,
    -7,
    8,
    -8,
    31,
    127,
    -128,
    255,
    0xffff,
    0x1_0000,
    -0x1_0000,
    (1 << 24) + 1,
    -(1 << 24) - 1,
    0x5555_5555,
    0x7fff_ff80,
    i32::MAX,
    i32::MIN,
    i32::MIN + 1,
];

/// All ordered pairs of these words.
pub fn pairs(words: &[u32]) -> [Vec<u32>; 2] {
    let first = words.iter().flat_map(|&x| words.iter().map(move |_| x)).collect();
    let second = words.iter().flat_map(|_| words.iter().copied()).collect();
    [first, second]
}

/// A float and its neighbours, by their bits.
pub fn around(x: f32) -> [u32; 5] {
    let bits = x.to_bits();
    [-2i32, -1, 0, 1, 2].map(|step| bits.wrapping_add_signed(step))
}

/// What lies halfway between neighbours of a list of values, with its own neighbours, either sign.
pub fn halfways(values: &[f32]) -> Vec<u32> {
    let halves = values.windows(2).map(|w| ((f64::from(w[0]) + f64::from(w[1])) / 2.0) as f32);
    halves.flat_map(around).flat_map(|bits| [bits, bits ^ 0x8000_0000]).collect()
}
