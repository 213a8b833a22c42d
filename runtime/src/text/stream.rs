//! Bytes to text as they come: whole characters only.

/// The bytes of a token in the byte-level alphabet. A token with a character outside of it stands for itself.
pub(super) fn token_bytes(token: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The byte that a character of GPT-2's alphabet stands for: printable Latin-1 is itself, the others are
/// U+0100 and on, in the order of bytes.
fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Gives text as bytes arrive. Bytes that may begin a character wait for its rest; invalid ones become U+FFFD.
#[derive(Clone, Default, Debug)]
pub struct ByteStream {
    waiting: Vec<u8>,
}

impl ByteStream {
    /// Adds bytes; the text that is certain now.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let keep = incomplete_tail(&self.waiting);
        let whole = self.waiting.len() - keep;
        let text = String::from_utf8_lossy(&self.waiting[..whole]).into_owned();
        self.waiting.drain(..whole);
        text
    }

    /// The text of the bytes that still wait: they are no character and will not become one.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.waiting)).into_owned()
    }
}

/// Number of bytes at the end that may begin a character but are not all of it: at most 3.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let mut at = bytes;
    loop {
        match std::str::from_utf8(at) {
            Ok(_) => return 0,
            Err(error) => match error.error_len() {
                None => return at.len() - error.valid_up_to(),
                Some(len) => at = &at[error.valid_up_to() + len..],
            },
        }
    }
}
