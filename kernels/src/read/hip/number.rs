//! Numbers, in the one form that the printer gives each.

use crate::emit::hip::{float, word};

/// The word that is printed as this text.
pub(super) fn word_of(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('u')?;
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    (word(value) == text).then_some(value)
}

/// The bits of the float that is printed as this text, which may have a sign.
pub(super) fn float_of(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('f')?;
    let bits = match digits.trim_start_matches('-').strip_prefix("0x") {
        Some(hex) => hexadecimal(hex)? | u32::from(digits.starts_with('-')) << 31,
        None => digits.parse::<f32>().ok()?.to_bits(),
    };
    (float(bits) == text).then_some(bits)
}

/// The bits of `1.8p+3`, which is a normal number.
fn hexadecimal(text: &str) -> Option<u32> {
    let (significand, exponent) = text.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let biased = u32::try_from(exponent.checked_add(127)?).ok().filter(|e| (1..255).contains(e))?;
    let digits = match significand.strip_prefix('1')? {
        "" => "0",
        fraction => fraction.strip_prefix('.')?,
    };
    let fraction = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 6)?;
    Some(biased << 23 | fraction << (4 * (6 - digits.len())) >> 1)
}

/// The plain number that is printed as this text.
pub(super) fn plain_of(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().filter(|n| n.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_float_is_read_back() {
        let edges = [0, 0x8000_0000, 0x0080_0000, 0x7f7f_ffff, 0xff7f_ffff, 0x3f80_0000, 0x3dcc_cccd];
        let some = (0..0xffff_ffffu32).step_by(9973);
        let mut read = 0;
        for bits in some.chain(edges) {
            let text = float(bits);
            if !text.starts_with("as_float") {
                assert_eq!(float_of(&text), Some(bits), "{text}");
                read += 1;
            }
        }
        assert!(read > 400_000);
    }

    #[test]
    fn other_forms_are_refused() {
        for text in
            ["1f", "1.f", "1.00f", "1.0", "01.0f", "0x1p0f", "0x1.80p+3f", "0x1.8p+128f", "+1.0f", "1e0f", "inff"]
        {
            assert_eq!(float_of(text), None, "{text}");
        }
        for text in ["0x1p-127f", "--1.0f", "0x2p+0f", "0x1.p+0f", "0x1.0000001p+0f", "NaNf", "f", "0x1.+8p+3f"] {
            assert_eq!(float_of(text), None, "{text}");
        }
        for text in ["1", "01u", "1U", "0x1u", "0x00010000u", "65536u", "0X10000u", "+1u", "u", "0xu", "4294967296u"] {
            assert_eq!(word_of(text), None, "{text}");
        }
        assert_eq!([word_of("65535u"), word_of("0x10000u"), word_of("0u")], [Some(65535), Some(65536), Some(0)]);
        assert_eq!([plain_of("64"), plain_of("064"), plain_of("+64"), plain_of("64u")], [Some(64), None, None, None]);
    }
}
