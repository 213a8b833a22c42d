//! CRC-32 as archives have it: reflected, polynomial 0xedb88320.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (0xedb8_8320 & (value & 1).wrapping_neg());
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// The checksum of a sequence of pieces.
pub(super) fn crc32<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let bytes = pieces.into_iter().flatten();
    !bytes.fold(!0, |crc: u32, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}
