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
        error: 0.8903,
        worst: 0x4090_33d3,
        hash: "76fac184f8e73f0b1d60e966555de99f7555f4c4f8ba100ebd5720f38fc60641",
        sample: "10767cc831e3a79bd0f5ad48f65aef0c2c49cc2f1cc4bb7db62f0e60b7bd48ae",
    },
    Record {
        name: "log",
        apply: apply!(log),
        error: 0.8702,
        worst: 0x3f33_c59f,
        hash: "97ef194828a67b8738cb9beb79da7ecf5b7bcfb5889d2b322477be8dc75be01f",
        sample: "6077ab5998437c9b0cfe5c381f89fcd3eaa9e05b5504a4f83ba105657e9001f2",
    },
    Record {
        name: "log1p",
        apply: apply!(log1p),
        error: 0.9493,
        worst: 0xbe98_d70d,
        hash: "e35cf6fe6b3c6202b1a6caa7bf00c9f030dcc7edd534c24d56017052c0ac6b15",
        sample: "0b4b3f26ec458acc608448a141c3b293c52fbea5ca3e91be858b3bb07e2e4f74",
    },
    Record {
        name: "sin",
        apply: apply!(sin),
        error: 0.7852,
        worst: 0x64bd_0e59,
        hash: "53a023d80d8e69de581507856567a0f3fe1df3528469a91472de024f69ecff00",
        sample: "a760d2d25f926d0f4d0a15ecde67caf72841e1e7874bf0863f3af7aa876e415c",
    },
    Record {
        name: "cos",
        apply: apply!(cos),
        error: 0.7867,
        worst: 0x5b57_5df2,
        hash: "34e991ab6bb4e5173b608c7c37b282e6bc38d0c42837caccf41a92aa4e4f878c",
        sample: "25294bfc6dd82750c0b7728120084c3f60ff38ec8bc1bf48786903dda17c4d3c",
    },
    Record {
        name: "sigmoid",
        apply: apply!(sigmoid),
        error: 2.4807,
        worst: 0xc185_15ec,
        hash: "8c444983239cac6de846ed28045d362d22c516fd55d9c408f04fd0c1974e5dc1",
        sample: "97b1ff4a8dc1eb258adb1e86714e376ff9c54820a3fff87c11dfc6955a89683c",
    },
    Record {
        name: "silu",
        apply: apply!(silu),
        error: 2.8517,
        worst: 0xc185_a339,
        hash: "583ed894584fdc61ffbfa42aa69051cbe2f8dbe2f3a6a5bb23cbd7fbf190cbd6",
        sample: "dc7c43315579f8dc021ddb91aa272a6de31b074f2ecfa91b4756929c491eebd5",
    },
    Record {
        name: "softplus",
        apply: apply!(softplus),
        error: 1.7147,
        worst: 0xbfa1_4a2f,
        hash: "ca7a7db0e1d48f52bcc416e1f7c8ca5f7dac537e8e1c43655f68f0d067d2c670",
        sample: "6a89b6d3e6062f691479ce44baff2a880c192f4f88533267ef1f2f57067f76d7",
    },
];

/// BLAKE3 of outputs as little-endian words, NaN canonical.
pub fn digest<'a>(outputs: impl IntoIterator<Item = &'a [f32]>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut bytes = Vec::new();
    for part in outputs {
        bytes.clear();
        bytes.extend(part.iter().flat_map(|&y| order::plain::canonical(y).to_le_bytes()));
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
    let input: Vec<f32> = (0..=u32::MAX / STRIDE).map(|i| f32::from_bits(i * STRIDE)).collect();
    let mut output = vec![0.0; input.len()];
    apply(&input, &mut output);
    blake3::Hash::from(digest([&output[..]])).to_hex().to_string()
}
