//! Numbers and quoted names as IR text writes them; every form is exact.

/// A number without its sign.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Literal {
    /// `12`: an integer.
    Decimal(u64),
    /// `0x1f`: bits.
    Bits(u64),
    /// `0.5`, `1e-6`, `0x1p-3`.
    Float(f32),
}

/// The text of a float: the shortest decimal that reads back as the same bits, or `f32(0x7fc00000)` for NaN.
pub(super) fn float_text(value: f32) -> String {
    if value.is_nan() { format!("f32(0x{:08x})", value.to_bits()) } else { format!("{value:?}") }
}

/// The number of a token, or what is wrong with it.
pub(super) fn number(text: &str) -> Result<Literal, String> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hexadecimal(digits);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits(text) {
        return text.parse().map(Literal::Decimal).map_err(|_| "it does not fit in 64 bits".into());
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits(whole) || !digits(part) || !digits(exponent) {
        return Err("it is neither an integer nor a float".into());
    }
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(Literal::Float(value)),
        _ => Err("it is larger than every float; infinity is written `inf`".into()),
    }
}

fn hexadecimal(digits: &str) -> Result<Literal, String> {
    if let Some((mantissa, exponent)) = digits.split_once(['p', 'P']) {
        return hexadecimal_float(mantissa, exponent).map(Literal::Float);
    }
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("hexadecimal digits follow `0x`".into());
    }
    u64::from_str_radix(digits, 16).map(Literal::Bits).map_err(|_| "it does not fit in 64 bits".into())
}

/// `mantissa * 2^exponent` if it is a binary32.
fn hexadecimal_float(mantissa: &str, exponent: &str) -> Result<f32, String> {
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let is_small = (1..=13).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let mantissa = u64::from_str_radix(&digits, 16).ok().filter(|_| is_small && !whole.is_empty());
    let mantissa = mantissa.ok_or("a hexadecimal float has 1 to 13 digits")?;
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 300).ok_or("its exponent is out of range")?;
    // 52 bits of mantissa and an exponent within 352 of zero: exact in f64.
    let value = mantissa as f64 * 2f64.powi(exponent - 4 * part.len() as i32);
    let float = value as f32;
    if float.is_finite() && f64::from(float) == value { Ok(float) } else { Err("it is no binary32".into()) }
}

/// A name as text: itself where it lexes as one word, else in quotes.
pub(super) fn name_text(name: &str) -> String {
    let mut bytes = name.bytes();
    let is_word = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
    if is_word { name.into() } else { quoted(name) }
}

/// A name in quotes.
pub(super) fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            c if c.is_control() => text.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// The name of a quoted token (with its quotes), or `None` for an escape that is none.
pub(super) fn unquoted(token: &str) -> Option<String> {
    let mut rest = token.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut name = String::new();
    while let Some(c) = rest.next() {
        if c != '\\' {
            name.push(c);
            continue;
        }
        match rest.next()? {
            c @ ('"' | '\\') => name.push(c),
            'n' => name.push('\n'),
            'u' => {
                let (code, behind) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                name.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                rest = behind.chars();
            }
            _ => return None,
        }
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_floats_read_back_bit_for_bit() {
        let patterns = (0..=u32::MAX).step_by(65_521).chain([1, 0x8000_0000, 0x7f7f_ffff, 0x0080_0000]);
        for value in patterns.map(f32::from_bits).filter(|v| v.is_finite()) {
            let text = float_text(value.abs());
            assert_eq!(number(&text), Ok(Literal::Float(value.abs())), "{text}");
        }
        assert_eq!(float_text(f32::NAN), "f32(0x7fc00000)");
    }

    #[test]
    fn text_hexadecimal_floats_are_exact_or_refused() {
        assert_eq!(number("0x1p-3"), Ok(Literal::Float(0.125)));
        assert_eq!(number("0x1.8p1"), Ok(Literal::Float(3.0)));
        assert_eq!(number("0x1p-149"), Ok(Literal::Float(f32::from_bits(1))));
        assert!(number("0x1.0000001p0").is_err());
        assert!(number("0x1p400").is_err() && number("0x1p200").is_err() && number("0xp1").is_err());
    }

    #[test]
    fn text_numbers_out_of_range_are_refused() {
        assert_eq!(number("0xff"), Ok(Literal::Bits(255)));
        for text in ["99999999999999999999", "1e99", "1.5.2", "12x", "0x", "1_0", "1e", "1.", "0xg"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_quoted_names_read_back() {
        for name in ["", "a b", "q\"\\", "ü\u{1}\n\u{7f}", "0"] {
            assert_eq!(unquoted(&name_text(name)).as_deref(), Some(name));
        }
        assert_eq!(name_text("blk.0.attn_q_a"), "blk.0.attn_q_a");
        assert_eq!(unquoted("\"\\x\""), None);
    }
}
