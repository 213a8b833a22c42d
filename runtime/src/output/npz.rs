//! NumPy's archive of arrays: a ZIP file with stored entries, the same bytes for the same arrays.

use std::path::Path;

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

use super::crc::crc32;
use super::npy::{Element, npy_header};
use ds4_ir::output::Partial;

/// Largest sum of bytes of an archive's arrays: sizes and places have 32 bits, headers need some room.
pub const NPZ_LARGEST: usize = (u32::MAX - (1 << 28)) as usize;

/// Most entries of an archive.
const MOST_ENTRIES: usize = 65_534;
/// 1980-01-01, the first day that an archive knows.
const DATE: u16 = 1 << 5 | 1;

/// What the local header and the directory say of an entry.
struct Entry<'a> {
    name: &'a str,
    crc: u32,
    size: u32,
    offset: u32,
}

/// Writes arrays: name, element type, shape, little-endian bytes.
pub fn write_npz(path: &Path, arrays: &[(&str, Element, &[usize], &[u8])]) -> Result<(), Diagnostic> {
    let bytes: usize = arrays.iter().map(|(_, _, _, data)| data.len()).sum();
    if bytes > NPZ_LARGEST || arrays.len() > MOST_ENTRIES {
        return Err(too_large(path, arrays.len(), bytes));
    }
    let mut file = Partial::create(path)?;
    let mut offset = 0u32;
    let mut directory = Vec::new();
    for (name, element, shape, data) in arrays {
        let header = npy_header(*element, shape);
        let entry =
            Entry { name, crc: crc32([header.as_slice(), data]), size: (header.len() + data.len()) as u32, offset };
        let local = entry.local_header();
        for piece in [local.as_slice(), &header, data] {
            file.write(piece)?;
        }
        directory.extend(entry.directory_row());
        offset += local.len() as u32 + entry.size;
    }
    file.write(&directory)?;
    file.write(&end_record(arrays.len() as u16, directory.len() as u32, offset))?;
    file.finish()
}

impl Entry<'_> {
    fn file_name(&self) -> String {
        format!("{}.npy", self.name)
    }

    /// The fields that local header and directory share: version needed to lengths. Names are UTF-8 (flag 11).
    fn common(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for half in [20u16, 1 << 11, 0, 0, DATE] {
            bytes.extend(half.to_le_bytes());
        }
        for word in [self.crc, self.size, self.size] {
            bytes.extend(word.to_le_bytes());
        }
        for half in [self.file_name().len() as u16, 0] {
            bytes.extend(half.to_le_bytes());
        }
        bytes
    }

    fn local_header(&self) -> Vec<u8> {
        [b"PK\x03\x04", self.common().as_slice(), self.file_name().as_bytes()].concat()
    }

    fn directory_row(&self) -> Vec<u8> {
        let made_by = 20u16.to_le_bytes();
        // No comment, first disk, no attributes.
        let attributes = [0; 10];
        [
            b"PK\x01\x02",
            made_by.as_slice(),
            &self.common(),
            &attributes,
            &self.offset.to_le_bytes(),
            self.file_name().as_bytes(),
        ]
        .concat()
    }
}

fn end_record(entries: u16, directory_len: u32, directory_offset: u32) -> Vec<u8> {
    let mut bytes = b"PK\x05\x06\0\0\0\0".to_vec();
    bytes.extend(entries.to_le_bytes());
    bytes.extend(entries.to_le_bytes());
    bytes.extend(directory_len.to_le_bytes());
    bytes.extend(directory_offset.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

fn too_large(path: &Path, arrays: usize, bytes: usize) -> Diagnostic {
    Diagnostic::new(codes::OUTPUT_LARGE, "the archive is larger than its format holds")
        .at(Place::file(path.display().to_string()))
        .wanted(
            format!("at most {NPZ_LARGEST} bytes in {MOST_ENTRIES} arrays"),
            format!("{bytes} bytes in {arrays} arrays"),
        )
        .help("tap fewer values, or feed fewer tokens")
}
