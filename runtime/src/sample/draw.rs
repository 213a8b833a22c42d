//! The seeded draw: softmax at a temperature, top-p, and one number of the generator per token.

use ds4_ir::numerics::exp;

use super::{Generator, Invalid, arg_max};

/// How tokens are drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// Divides the logits; larger than 0.
    pub temperature: f32,
    /// Candidates are the most probable tokens that reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Seed of the generator.
    pub seed: u64,
}

/// The candidates of a draw, with their buffers, and the generator of the request.
#[derive(Clone, Debug)]
pub struct Candidates {
    sampling: Sampling,
    generator: Generator,
    /// Exponential of each token, by id.
    exponentials: Vec<f32>,
    /// Exponential and id as one word whose descending order is the order of candidates.
    order: Vec<u64>,
    /// Sums of probabilities, in the order of candidates.
    sums: Vec<f32>,
}

impl Candidates {
    /// No candidates yet, and the generator at its seed.
    pub fn new(sampling: Sampling) -> Self {
        Candidates {
            sampling,
            generator: Generator::new(sampling.seed),
            exponentials: Vec::new(),
            order: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Draws a token; takes one number from the generator.
    pub fn draw(&mut self, logits: &[f32]) -> Result<u32, Invalid> {
        self.exponentiate(logits)?;
        self.rank();
        let kept = self.accumulate();
        let target = self.generator.next_unit() * self.sums[kept - 1];
        // The last sum exceeds the target, since the drawn number is below 1 by at least 2^-24.
        let chosen = self.sums[..kept].partition_point(|&sum| sum <= target);
        Ok(self.token(chosen.min(kept - 1)))
    }

    /// `exp(sub(div(logit, temperature), maximum))`. The largest is 1.
    fn exponentiate(&mut self, logits: &[f32]) -> Result<(), Invalid> {
        let best = arg_max(logits)?;
        let temperature = self.sampling.temperature;
        let maximum = logits[best as usize] / temperature;
        if !maximum.is_finite() {
            return Err(Invalid(best));
        }
        self.exponentials.clear();
        let exponentials = logits.iter().map(|&logit| exp(logit / temperature - maximum));
        self.exponentials.extend(exponentials);
        Ok(())
    }

    /// Larger exponential first, then lower id. Exponentials are not negative: their bits have their order.
    fn rank(&mut self) {
        self.order.clear();
        let words = (0u32..).zip(&self.exponentials);
        self.order.extend(words.map(|(id, e)| u64::from(e.to_bits()) << 32 | u64::from(!id)));
        self.order.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn token(&self, index: usize) -> u32 {
        !(self.order[index] as u32)
    }

    /// Sums of probabilities up to the first that reaches top-p, and how many there are.
    fn accumulate(&mut self) -> usize {
        let in_order = |&word: &u64| f32::from_bits((word >> 32) as u32);
        let total = sum_ascending(self.order.iter().map(in_order));
        self.sums.clear();
        let mut sum: Option<f32> = None;
        for e in self.order.iter().map(in_order) {
            let p = e / total;
            let next = sum.map_or(p, |sum| sum + p);
            sum = Some(next);
            self.sums.push(next);
            if self.sampling.top_p < 1.0 && next >= self.sampling.top_p {
                break;
            }
        }
        self.sums.len()
    }
}

/// The contract's `seq` sum: starts from the first term.
fn sum_ascending(terms: impl IntoIterator<Item = f32>) -> f32 {
    terms.into_iter().reduce(|sum, term| sum + term).unwrap_or(0.0)
}
