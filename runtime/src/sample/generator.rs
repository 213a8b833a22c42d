//! The random generator of sampling: SplitMix64.

/// SplitMix64 (Steele, Lea, Flood 2014): a counter, and a mix of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generator {
    counter: u64,
}

impl Generator {
    /// The generator of a seed. Every seed is as good as another.
    pub fn new(seed: u64) -> Self {
        Generator { counter: seed }
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.counter;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number of `[0, 1)`: the upper 24 bits of [`Generator::next_bits`], times 2^-24, both exact.
    pub fn next_unit(&mut self) -> f32 {
        (self.next_bits() >> 40) as f32 * f32::from_bits((127 - 24) << 23)
    }
}
