//! The recorded error and output hash of every function: what makes a change of one bit visible.
//!
//! `cargo run --release -p ds4-ir --example exhaustive` recomputes the table over all 2^32 inputs and
//! fails on a difference; the tests recompute the hash of a sample. The contract's page repeats the table.

use super::{cos, exp, log, log1p, order, sigmoid, silu, sin, softplus};

/// Inputs of one chunk: a chunk's outputs are hashed by themselves, so that chunks can run in parallel.
pub const CHUNK: u32 = 1 << 24;
/// Distance of the inputs in a sample.
pub const STRIDE: u32 = 4099;

/// One function and what is recorded of it.
pub struct Record {
    /// Name.
    pub name: &'static str,
    /// Applies the function to every element of a slice; both have one length.
    pub apply: fn(&[f32], &mut [f32]),
    /// Largest error in ulp of the exact result, over all inputs whose exact result is at least 2^-126 in magnitude.
    pub error: f64,
    /// Bit pattern of the first input with that error.
    pub worst: u32,
    /// Hash of all 2^32 outputs: [`combine`] of the 256 chunks' [`digest`]s.
    pub hash: &'static str,
    /// Hash of the sample: [`digest`] of the outputs for inputs 0, [`STRIDE`], 2 [`STRIDE`], ...
    pub sample: &'static str,
}

macro_rules! apply {
    ($function:path) => {
        |input, output| {
            for (y, &x) in output.iter_mut().zip(input) {
                *y = $function(x);
            }
        }
    };
}

/// The functions of the contract.
pub const RECORDS: [Record; 8] = [
    Record {
        name: "exp",
        apply: apply!(exp),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "log",
        apply: apply!(log),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "log1p",
        apply: apply!(log1p),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "sin",
        apply: apply!(sin),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "cos",
        apply: apply!(cos),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "sigmoid",
        apply: apply!(sigmoid),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "silu",
        apply: apply!(silu),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
    Record {
        name: "softplus",
        apply: apply!(softplus),
        error: 0.0,
        worst: 0,
        hash: "",
        sample: "",
    },
];

/// BLAKE3 of outputs as little-endian words, NaN canonical.
pub fn digest<'a>(outputs: impl IntoIterator<Item = &'a [f32]>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut bytes = Vec::new();
    for part in outputs {
        bytes.clear();
        bytes.extend(
            part.iter()
                .flat_map(|&y| order::plain::canonical(y).to_le_bytes()),
        );
        hasher.update(&bytes);
    }
    *hasher.finalize().as_bytes()
}

/// BLAKE3 of the chunks' digests in ascending order, in hexadecimal.
pub fn combine(digests: &[[u8; 32]]) -> String {
    blake3::hash(&digests.concat()).to_hex().to_string()
}

/// The sample's hash of a function, given how it is applied to a slice.
pub fn sample_hash(apply: impl Fn(&[f32], &mut [f32])) -> String {
    let input: Vec<f32> = (0..=u32::MAX / STRIDE)
        .map(|i| f32::from_bits(i * STRIDE))
        .collect();
    let mut output = vec![0.0; input.len()];
    apply(&input, &mut output);
    blake3::Hash::from(digest([&output[..]]))
        .to_hex()
        .to_string()
}
