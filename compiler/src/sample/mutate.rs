//! Faults for loop fuzzers: a seed of valid bytes, changed at random but reproducibly.

/// Makes faulty copies of byte strings. The same start gives the same faults on every machine.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

/// Values that lengths, counts and offsets go wrong with.
const EDGES: [u64; 12] =
    [0, 1, 2, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1 << 56, i64::MAX as u64, u64::MAX];

impl Mutator {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Mutator {
        Mutator { state: seed }
    }

    /// The next number (SplitMix64).
    pub fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_number() % bound.max(1) as u64) as usize
    }

    /// A copy of `seed` with one to four faults; spliced pieces come from `other`.
    pub fn mutate(&mut self, seed: &[u8], other: &[u8]) -> Vec<u8> {
        let mut out = seed.to_vec();
        for _ in 0..1 + self.below(4) {
            if out.is_empty() {
                return out;
            }
            match self.below(8) {
                0 | 1 => self.flip_bit(&mut out),
                2 => self.set_byte(&mut out),
                3 | 4 => self.set_number(&mut out),
                5 => out.truncate(self.below(out.len())),
                6 => self.splice(&mut out, other),
                _ => self.remove(&mut out),
            }
        }
        out
    }

    fn flip_bit(&mut self, out: &mut [u8]) {
        let at = self.below(out.len());
        out[at] ^= 1 << self.below(8);
    }

    /// Digits and brackets make faults that JSON survives.
    fn set_byte(&mut self, out: &mut [u8]) {
        let at = self.below(out.len());
        out[at] = match self.below(2) {
            0 => self.next_number() as u8,
            _ => b"0123456789-.,:[]{}\"eE \\u"[self.below(24)],
        };
    }

    /// Overwrites four or eight bytes, as a length would be.
    fn set_number(&mut self, out: &mut [u8]) {
        let width = if self.below(2) == 0 { 4 } else { 8 };
        if out.len() < width {
            return;
        }
        let at = self.below(out.len() - width + 1);
        let value = EDGES[self.below(EDGES.len())].wrapping_sub(self.below(2) as u64);
        out[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    fn splice(&mut self, out: &mut Vec<u8>, other: &[u8]) {
        let from = self.below(other.len());
        let piece = &other[from..(from + self.below(64)).min(other.len())];
        let at = self.below(out.len());
        let end = if self.below(2) == 0 { at } else { (at + piece.len()).min(out.len()) };
        out.splice(at..end, piece.iter().copied());
    }

    fn remove(&mut self, out: &mut Vec<u8>) {
        let at = self.below(out.len());
        let end = (at + 1 + self.below(32)).min(out.len());
        out.drain(at..end);
    }
}
