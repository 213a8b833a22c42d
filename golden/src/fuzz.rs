//! A loop fuzzer for plan files: words of any section changed, the hashes made to fit.

use ds4_ir::plan::PlanBytes;

use crate::aligned::Aligned;

/// Changes words of a plan and opens it; a panic is a finding.
pub struct PlanFuzzer {
    seed: Vec<u8>,
    state: u64,
    /// Plans refused so far.
    pub refused: u32,
    /// Plans accepted so far.
    pub accepted: u32,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
}

impl PlanFuzzer {
    /// Starts from the bytes of a good plan.
    pub fn new(plan: Vec<u8>, seed: u64) -> PlanFuzzer {
        PlanFuzzer { seed: plan, state: seed, refused: 0, accepted: 0 }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One damaged plan, opened and checked.
    pub fn step(&mut self) {
        let mut bytes = self.seed.clone();
        let sections = (word(&bytes, 8) >> 32) as usize;
        for _ in 0..=self.below(3) {
            let row = 64 + 64 * self.below(sections);
            let (start, len) = (word(&bytes, row + 8) as usize, word(&bytes, row + 16) as usize);
            if len < 4 {
                continue;
            }
            let at = start + self.below(len / 4) * 4;
            let value = match self.below(4) {
                0 => self.next() as u32,
                1 => self.below(64) as u32,
                2 => u32::MAX - self.below(3) as u32,
                _ => (word(&bytes, at) as u32) ^ 1 << self.below(32),
            };
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let hash = *blake3::hash(&bytes[start..start + len]).as_bytes();
            bytes[row + 32..row + 64].copy_from_slice(&hash);
        }
        let table = *blake3::hash(&bytes[64..64 + 64 * sections]).as_bytes();
        bytes[32..64].copy_from_slice(&table);
        let opened = PlanBytes::open(Aligned::new(&bytes), "fuzzed");
        match opened.and_then(|plan| plan.verified().map(|_| ())) {
            Ok(()) => self.accepted += 1,
            Err(_) => self.refused += 1,
        }
    }
}
