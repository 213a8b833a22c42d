//! f32 activations to q8, by the contract.

use super::isa::{Isa, Kernel};
use super::level::Level;

/// `1.5 * 2^23`: adding it rounds a small number to an integer, to even.
const MAGIC: f32 = 12_582_912.0;

/// Quantises a whole number of blocks of 32: codes, one scale a block, and the sums of 16 codes each
/// that products with minima need.
///
/// Bits equal those of `ds4_ir::formats::q8`. `x` may be several columns that follow each other.
pub fn quantise_q8(isa: Isa, x: &[f32], codes: &mut [i8], scales: &mut [f32], sums: &mut [i16]) {
    assert_eq!(x.len(), scales.len() * 32, "one scale per block of 32");
    assert_eq!(x.len(), codes.len(), "one code per element");
    assert_eq!(x.len(), sums.len() * 16, "one sum per 16 elements");
    isa.run(Quantise { x, codes, scales, sums });
}

struct Quantise<'a> {
    x: &'a [f32],
    codes: &'a mut [i8],
    scales: &'a mut [f32],
    sums: &'a mut [i16],
}

impl Kernel for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self, _level: L) {
        let (x, _) = self.x.as_chunks::<32>();
        let (codes, _) = self.codes.as_chunks_mut::<32>();
        let (sums, _) = self.sums.as_chunks_mut::<2>();
        for (i, x) in x.iter().enumerate() {
            let (d, id) = factors(largest_magnitude(x));
            self.scales[i] = d;
            codes[i] = quantise_block(x, id);
            sums[i] = half_sums(&codes[i]);
        }
    }
}

/// The largest magnitude, as bits: they are ordered as the magnitudes are, NaN above infinity.
#[inline(always)]
fn largest_magnitude(x: &[f32; 32]) -> u32 {
    let mut lanes = [0; 16];
    for i in 0..16 {
        let (a, b) = (x[i].to_bits() & 0x7fff_ffff, x[i + 16].to_bits() & 0x7fff_ffff);
        lanes[i] = a.max(b);
    }
    let mut largest = 0;
    for lane in lanes {
        largest = largest.max(lane);
    }
    largest
}

/// The scale `d` and the factor `id`; the factor is `None` where all codes are 0.
#[inline(always)]
fn factors(bits: u32) -> (f32, Option<f32>) {
    let amax = f32::from_bits(bits);
    match bits {
        0x7f80_0000.. => (f32::NAN, None),
        // 2^-121 has the exponent field 6.
        0..0x0300_0000 => (0.0, None),
        _ => (amax / 127.0, Some(127.0 / amax)),
    }
}

#[inline(always)]
fn quantise_block(x: &[f32; 32], id: Option<f32>) -> [i8; 32] {
    let mut codes = [0; 32];
    let Some(id) = id else { return codes };
    for i in 0..32 {
        // At most 127 and a little in magnitude, so the sum is exact to the integer and its low bits are it.
        let integer = (x[i] * id + MAGIC).to_bits() as i32 - MAGIC.to_bits() as i32;
        codes[i] = integer.clamp(-127, 127) as i8;
    }
    codes
}

#[inline(always)]
fn half_sums(codes: &[i8; 32]) -> [i16; 2] {
    let mut sums = [0; 2];
    for half in 0..2 {
        for i in 0..16 {
            sums[half] += i16::from(codes[16 * half + i]);
        }
    }
    sums
}
