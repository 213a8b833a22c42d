//! Storage formats of weights: what a checkpoint's bytes mean.
//!
//! A format says how many elements a block holds and how many bytes it takes; `formats/` decodes.
//! [`Format::Fp8`] and [`Format::Fp4`] keep their E8M0 scales in a second tensor.

/// Storage format of a weight. The numbers are part of the plan format.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Format {
    /// IEEE binary32.
    F32 = 0,
    /// IEEE binary16.
    F16 = 1,
    /// The upper half of a binary32.
    BF16 = 2,
    /// 32-bit integers (expert tables).
    I32 = 3,
    /// 64-bit integers (expert tables).
    I64 = 4,
    /// ggml `Q8_0`: 32 elements, f16 scale, signed bytes.
    Q8_0 = 5,
    /// ggml `Q2_K`: 256 elements in sub-blocks of 16, 4-bit scales and minima.
    Q2_K = 6,
    /// ggml `Q4_K`: 256 elements in sub-blocks of 32, 6-bit scales and minima.
    Q4_K = 7,
    /// ggml `IQ2_XXS`: 256 elements, codebook of 8-element rows with signs.
    IQ2_XXS = 8,
    /// ggml `MXFP4`: 32 elements, E8M0 scale, E2M1 codes, element j and j+16 in one byte.
    MXFP4 = 9,
    /// Official FP8: E4M3 bytes, E8M0 scale per rectangular block (a tensor of its own).
    Fp8 = 10,
    /// Official FP4: E2M1 codes, elements 2j (low half) and 2j+1 in one byte, E8M0 scale per 32 columns.
    Fp4 = 11,
}

impl Format {
    /// All formats, in the order of their numbers.
    pub const ALL: [Format; 12] = [
        Format::F32,
        Format::F16,
        Format::BF16,
        Format::I32,
        Format::I64,
        Format::Q8_0,
        Format::Q2_K,
        Format::Q4_K,
        Format::IQ2_XXS,
        Format::MXFP4,
        Format::Fp8,
        Format::Fp4,
    ];

    /// The format of a number in a plan, if there is one.
    pub fn from_number(number: u8) -> Option<Format> {
        Self::ALL.get(number as usize).copied()
    }

    /// The name that reports and IR text use.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::F16 => "f16",
            Format::BF16 => "bf16",
            Format::I32 => "i32",
            Format::I64 => "i64",
            Format::Q8_0 => "q8_0",
            Format::Q2_K => "q2_k",
            Format::Q4_K => "q4_k",
            Format::IQ2_XXS => "iq2_xxs",
            Format::MXFP4 => "mxfp4",
            Format::Fp8 => "fp8",
            Format::Fp4 => "fp4",
        }
    }

    /// The format of a name, if there is one.
    pub fn from_name(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Elements of one block along the row. A row is a whole number of blocks.
    pub fn block_len(self) -> usize {
        match self {
            Format::Q8_0 | Format::MXFP4 => 32,
            Format::Q2_K | Format::Q4_K | Format::IQ2_XXS => 256,
            Format::Fp4 => 2,
            _ => 1,
        }
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Format::F32 | Format::I32 => 4,
            Format::F16 | Format::BF16 => 2,
            Format::I64 => 8,
            Format::Q8_0 => 34,
            Format::Q2_K => 84,
            Format::Q4_K => 144,
            Format::IQ2_XXS => 66,
            Format::MXFP4 => 17,
            Format::Fp8 | Format::Fp4 => 1,
        }
    }

    /// Bytes of a row of `len` elements, or `None` if no whole number of blocks makes it.
    pub fn row_bytes(self, len: usize) -> Option<usize> {
        len.is_multiple_of(self.block_len()).then(|| len / self.block_len() * self.block_bytes())
    }

    /// Whether the elements are integers (ids), not numbers to multiply with.
    pub fn is_integer(self) -> bool {
        matches!(self, Format::I32 | Format::I64)
    }

    /// Whether a product with `--activations q8` takes this weight with q8 activations:
    /// the formats whose codes are small integers. FP8 and the plain floats take f32 activations.
    pub fn takes_q8(self) -> bool {
        matches!(self, Format::Q8_0 | Format::Q2_K | Format::Q4_K | Format::IQ2_XXS | Format::MXFP4 | Format::Fp4)
    }

    /// Whether scales live in a tensor of their own.
    pub fn has_scales(self) -> bool {
        matches!(self, Format::Fp8 | Format::Fp4)
    }
}
