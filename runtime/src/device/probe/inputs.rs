//! Inputs that show what random data hide: cancellation, subnormals, edges of underflow, infinities, NaN.

/// Inputs of each item.
pub const COUNT: usize = 1 << 16;

/// Which inputs an item gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Set {
    /// Everything: tame and cancelling triples, special values, underflow, subnormals, random bits.
    Adversarial,
    /// The same without subnormal numbers.
    Normal,
    /// Subnormal `a` and `b`, and `c` near one.
    Subnormal,
    /// Arguments of an exponential that neither overflow nor vanish, and some that do.
    Exponents,
    /// Numbers around the range of f16, its subnormals and its ties.
    Halves,
    /// In `a` the indices, in `b` and `c` random words.
    Words,
}

/// Three arrays of bit patterns, each of [`COUNT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inputs {
    /// Which inputs these are.
    pub set: Set,
    /// The arrays `a`, `b` and `c`.
    pub columns: [Vec<u32>; 3],
}

impl Inputs {
    /// The inputs of a set, the same at every call.
    pub fn of(set: Set) -> Self {
        let mut random = Random(0x5eed_0f00_d5a4_0000 | set as u64);
        let mut columns = [(); 3].map(|()| Vec::with_capacity(COUNT));
        for index in 0..COUNT {
            let triple = triple(set, index as u32, &mut random);
            columns.iter_mut().zip(triple).for_each(|(column, word)| column.push(word));
        }
        Inputs { set, columns }
    }

    /// The bit patterns at an index.
    pub fn words(&self, index: usize) -> [u32; 3] {
        [0, 1, 2].map(|column| self.columns[column][index])
    }

    /// The numbers at an index.
    pub fn floats(&self, index: usize) -> [f32; 3] {
        self.words(index).map(f32::from_bits)
    }
}

/// SplitMix64, so that inputs are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn word(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(bound)) >> 32) as u32
    }

    /// A number of any sign and significand with an exponent from `least` to `most`.
    fn float(&mut self, least: i32, most: i32) -> u32 {
        let exponent = (127 + least) as u32 + self.below((most - least + 1) as u32);
        (self.word() & 0x807f_ffff) | exponent << 23
    }

    /// A subnormal number, often with few bits.
    fn subnormal(&mut self) -> u32 {
        let word = self.word() & 0x807f_ffff;
        match self.below(2) {
            0 => word,
            _ => word & (0x8000_0000 | 0x7f_ffff >> self.below(23)),
        }
    }

    fn special(&mut self) -> u32 {
        SPECIAL[self.below(SPECIAL.len() as u32) as usize] | (self.word() & 0x8000_0000)
    }
}

/// Magnitudes at the edges: zero, subnormals, least normals, around one, integers of 24 bits, largest, infinity, NaN.
const SPECIAL: [u32; 18] = [
    0,
    1,
    2,
    0x003f_ffff,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x4b00_0000,
    0x4b7f_ffff,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7fc0_0000,
];

fn triple(set: Set, index: u32, random: &mut Random) -> [u32; 3] {
    match set {
        Set::Adversarial => adversarial(index, random),
        Set::Normal => adversarial(index, random).map(|word| match word & 0x7f80_0000 {
            0 => word & 0x8000_0000,
            _ => word,
        }),
        Set::Subnormal => [random.subnormal(), random.subnormal(), random.float(-2, 2)],
        Set::Exponents => [exponent(random), exponent(random), exponent(random)],
        Set::Halves => [half(index, random), half(index, random), half(index, random)],
        Set::Words => [index, random.word(), random.word()],
    }
}

fn adversarial(index: u32, random: &mut Random) -> [u32; 3] {
    match index % 8 {
        0 | 1 => cancelling(random),
        2 => [random.float(-6, 6), random.float(-6, 6), random.float(-6, 6)],
        3 => [random.special(), random.special(), random.special()],
        // Products at the edge of underflow.
        4 => {
            let a = random.float(-100, -26);
            let exponent = 127 + 127 - (a >> 23 & 0xff) as i32;
            let b = random.float(exponent - 127 - 150, exponent - 127 - 124);
            [a, b, random.subnormal()]
        }
        5 => [random.subnormal(), random.float(-3, 3), random.subnormal()],
        // Few bits: exact results and ties.
        6 => [random.float(-12, 12), random.float(-12, 12), random.float(-12, 12)].map(|word| word & 0xfff8_0000),
        _ => [random.word(), random.word(), random.word()],
    }
}

/// `c` is near `-(a * b)`: the sum cancels, and its last bits tell whether the product was rounded.
fn cancelling(random: &mut Random) -> [u32; 3] {
    let (a, b) = (random.float(-6, 6), random.float(-6, 6));
    let product = -(f32::from_bits(a) * f32::from_bits(b));
    [a, b, product.to_bits().wrapping_add(random.below(5)).wrapping_sub(2)]
}

fn exponent(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => random.special(),
        1 => random.float(-30, 3),
        // -104 to 104 in steps of 2^-16, near the bounds of overflow and underflow too.
        _ => ((random.below(208 << 16) as f32) / 65536.0 - 104.0).to_bits(),
    }
}

fn half(index: u32, random: &mut Random) -> u32 {
    match index % 4 {
        0 => random.special(),
        1 => random.float(-28, 17),
        // Ties of f16 and their neighbours: 11 bits kept, one half behind them.
        2 => (random.float(-28, 17) & 0xffff_e000 | 0x1000).wrapping_add(random.below(3)).wrapping_sub(1),
        _ => random.float(-15, 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_what_their_names_say() {
        let adversarial = Inputs::of(Set::Adversarial);
        assert_eq!(adversarial, Inputs::of(Set::Adversarial));
        let fused = (0..COUNT).filter(|&i| {
            let [a, b, c] = adversarial.floats(i);
            (a * b + c).to_bits() != a.mul_add(b, c).to_bits()
        });
        assert!(fused.count() > COUNT / 5, "contraction shows");
        let subnormal = |word: u32| word & 0x7f80_0000 == 0 && word & 0x7f_ffff != 0;
        assert!(adversarial.columns[0].iter().filter(|w| subnormal(**w)).count() > COUNT / 8);
        assert!(adversarial.columns[0].iter().any(|&w| f32::from_bits(w).is_nan()));
        assert!(Inputs::of(Set::Normal).columns.iter().flatten().all(|w| !subnormal(*w)));
        let products = (0..COUNT).filter(|&i| {
            let [a, b, _] = adversarial.floats(i);
            i % 8 == 4 && (a * b).is_subnormal()
        });
        assert!(products.count() > COUNT / 16, "products underflow");
        assert!(Inputs::of(Set::Words).columns[0].iter().enumerate().all(|(i, &w)| i == w as usize));
    }
}
