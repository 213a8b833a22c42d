//! Identity of a model's contents, on demand: reading all of a large model takes minutes.

/// Bytes hashed between two reports.
const CHUNK: usize = 1 << 26;

/// Key of the plan option that holds the hash of the contents, in hexadecimal.
pub const CONTENTS: &str = "model.contents";

/// BLAKE3 over the BLAKE3 hashes of whole files in their order, in hexadecimal. `progress` gets the number of bytes of each
/// piece that was read.
pub fn contents_hash<'a>(files: impl IntoIterator<Item = &'a [u8]>, mut progress: impl FnMut(usize)) -> String {
    let mut all = blake3::Hasher::new();
    for file in files {
        let mut hasher = blake3::Hasher::new();
        for chunk in file.chunks(CHUNK) {
            hasher.update(chunk);
            progress(chunk.len());
        }
        all.update(hasher.finalize().as_bytes());
    }
    all.finalize().to_hex().to_string()
}
