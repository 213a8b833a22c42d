//! The header of one GGUF file: version 3, little endian.
//!
//! Layout: magic, version, two counts, metadata, tensor descriptions, padding to the alignment, data.

use std::collections::BTreeSet;

use ds4_ir::Format;
use ds4_ir::diagnostic::{Diagnostic, codes};

use super::cursor::{Cursor, Input};
use super::gguf_value::Value;
use super::placement::check_places;
use super::table::GgufMetadata;

/// The first four bytes.
pub(super) const MAGIC: &[u8; 4] = b"GGUF";
/// The only version that is read.
const VERSION: u32 = 3;
/// The architecture of the family.
const ARCHITECTURE: &str = "deepseek4";
/// Most dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;
/// Fewest bytes of a metadata entry: key length, type, one byte of value.
const LEAST_ENTRY: u64 = 8 + 4 + 1;
/// Fewest bytes of a tensor description: name length, one dimension and their count, type, offset.
const LEAST_TENSOR: u64 = 8 + 4 + 8 + 4 + 8;

/// A tensor as a header describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorHeader {
    /// Name.
    pub name: String,
    /// Storage format.
    pub format: Format,
    /// Row-major shape, the row length last (GGUF stores it first).
    pub shape: Vec<u64>,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What one GGUF file holds besides its data.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Keys and values.
    pub metadata: GgufMetadata,
    /// Tensors in the order of the file.
    pub tensors: Vec<TensorHeader>,
    /// Bytes of everything in front of the padding.
    pub header_len: u64,
}

/// Parses the header of a GGUF file.
///
/// Data places are checked against `input.size`: aligned, inside the file, apart from each other.
pub fn parse(input: Input) -> Result<Part, Diagnostic> {
    let mut cursor = Cursor::new(input);
    check_magic(&mut cursor)?;
    let tensor_count = cursor.u64("the number of tensors")?;
    let entry_count = cursor.count(LEAST_ENTRY, "the number of metadata entries")?;
    let metadata = read_metadata(&mut cursor, entry_count)?;
    check_architecture(&input, &metadata)?;
    let alignment = alignment(&input, &metadata)?;
    let raw = read_tensors(&mut cursor, tensor_count)?;
    let header_len = cursor.position();
    let data_start = header_len.next_multiple_of(alignment);
    let tensors =
        raw.into_iter().map(|raw| raw.finish(&input, data_start, alignment)).collect::<Result<Vec<_>, _>>()?;
    check_places(&input, tensors.iter().map(|t| (t.name.as_str(), t.offset, t.bytes)))?;
    Ok(Part { metadata, tensors, header_len })
}

fn check_magic(cursor: &mut Cursor) -> Result<(), Diagnostic> {
    let input = cursor.input;
    let wrong = |wanted: String, found: String, item: &str| {
        let message = "the file is not GGUF version 3, little endian";
        Err(input.error(codes::NOT_GGUF, message, item).wanted(wanted, found))
    };
    let magic = cursor.take(4, "the magic number")?;
    if magic != MAGIC {
        return wrong("the bytes GGUF".into(), magic.escape_ascii().to_string(), "byte 0");
    }
    let version = cursor.u32("the version")?;
    if version.swap_bytes() == VERSION {
        return wrong("little endian".into(), "big endian".into(), "byte 4");
    }
    if version != VERSION {
        return wrong(format!("version {VERSION}"), format!("version {version}"), "byte 4");
    }
    Ok(())
}

fn read_metadata(cursor: &mut Cursor, count: usize) -> Result<GgufMetadata, Diagnostic> {
    let mut metadata = GgufMetadata::new();
    for _ in 0..count {
        let item = format!("byte {}", cursor.position());
        let key = cursor.string("a metadata key")?;
        let value = Value::read(cursor, &key)?;
        if metadata.contains_key(&key) {
            let message = format!("key {key} occurs twice");
            return Err(cursor.input.error(codes::KEY_DUPLICATE, message, item));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// Parts of a split file after the first have no architecture key.
fn check_architecture(input: &Input, metadata: &GgufMetadata) -> Result<(), Diagnostic> {
    let found = match metadata.get("general.architecture") {
        Some(Value::Text(name)) if name == ARCHITECTURE => return Ok(()),
        None if is_later_part(metadata) => return Ok(()),
        Some(value) => value.describe(),
        None => "no such key".into(),
    };
    let message = "the checkpoint is of another architecture";
    let item = "key general.architecture";
    Err(input.error(codes::ARCHITECTURE, message, item).wanted(format!("{ARCHITECTURE:?}"), found))
}

fn is_later_part(metadata: &GgufMetadata) -> bool {
    match metadata.get("split.no") {
        Some(Value::Unsigned(number)) => *number > 0,
        Some(Value::Signed(number)) => *number > 0,
        _ => false,
    }
}

fn alignment(input: &Input, metadata: &GgufMetadata) -> Result<u64, Diagnostic> {
    match metadata.get("general.alignment") {
        None => Ok(32),
        Some(Value::Unsigned(n)) if n.is_power_of_two() && (8..=1 << 20).contains(n) => Ok(*n),
        Some(value) => {
            let message = "the alignment is out of range";
            let item = "key general.alignment";
            let error = input.error(codes::METADATA, message, item);
            Err(error.wanted("a power of two from 8 to 1048576", value.describe()))
        }
    }
}

/// A tensor description before the start of the data is known.
struct RawTensor {
    name: String,
    shape: Vec<u64>,
    format: Format,
    offset: u64,
    bytes: u64,
}

fn read_tensors(cursor: &mut Cursor, count: u64) -> Result<Vec<RawTensor>, Diagnostic> {
    let room = cursor.left() / LEAST_TENSOR;
    if count > room {
        // One description short is an end of file, a million short is a wrong count.
        let (code, message) = if count > cursor.input.size / LEAST_TENSOR {
            (codes::LENGTH, "the number of tensors is larger than the file can hold")
        } else {
            (codes::TRUNCATED, "the file ends inside the tensor descriptions")
        };
        let error = cursor.input.error(code, message, "byte 8");
        return Err(error.wanted(format!("at most {room} tensors"), count));
    }
    let mut names = BTreeSet::new();
    let mut tensors = Vec::new();
    for _ in 0..count {
        let tensor = read_tensor(cursor)?;
        if !names.insert(tensor.name.clone()) {
            let item = format!("tensor {}", tensor.name);
            let message = "two tensors have this name";
            return Err(cursor.input.error(codes::TENSOR_DUPLICATE, message, item));
        }
        tensors.push(tensor);
    }
    Ok(tensors)
}

fn read_tensor(cursor: &mut Cursor) -> Result<RawTensor, Diagnostic> {
    let input = cursor.input;
    let name = cursor.string("a tensor name")?;
    let item = format!("tensor {name}");
    let rank = cursor.u32("the number of dimensions")?;
    if !(1..=MAX_DIMENSIONS).contains(&rank) {
        let message = "the number of dimensions is out of range";
        let error = input.error(codes::TENSOR_SHAPE, message, item);
        return Err(error.wanted(format!("1 to {MAX_DIMENSIONS}"), rank));
    }
    let mut shape = Vec::new();
    for _ in 0..rank {
        shape.push(cursor.u64("a dimension")?);
    }
    shape.reverse();
    let number = cursor.u32("a tensor type")?;
    let format = format_of_type(number).ok_or_else(|| {
        let message = "the tensor's type is not read";
        let error = input.error(codes::TENSOR_TYPE, message, item.clone());
        error.wanted(KNOWN_TYPES, type_text(number))
    })?;
    let bytes = tensor_bytes(&input, &item, format, &shape)?;
    let offset = cursor.u64("a data offset")?;
    Ok(RawTensor { name, shape, format, offset, bytes })
}

impl RawTensor {
    fn finish(self, input: &Input, data_start: u64, alignment: u64) -> Result<TensorHeader, Diagnostic> {
        let item = format!("tensor {}", self.name);
        if !self.offset.is_multiple_of(alignment) {
            let message = "the tensor's data is misaligned";
            let error = input.error(codes::TENSOR_ALIGNMENT, message, item);
            return Err(error.wanted(format!("an offset that is a multiple of {alignment}"), self.offset));
        }
        let offset = data_start.checked_add(self.offset).ok_or_else(|| {
            let message = "the tensor's data reaches beyond the file";
            let error = input.error(codes::TENSOR_OUTSIDE, message, item);
            error.wanted(format!("an offset below {}", input.size), self.offset)
        })?;
        Ok(TensorHeader { name: self.name, format: self.format, shape: self.shape, offset, bytes: self.bytes })
    }
}

/// Bytes of a tensor, or why there is no such number.
pub(super) fn tensor_bytes(input: &Input, item: &str, format: Format, shape: &[u64]) -> Result<u64, Diagnostic> {
    let malformed = || {
        let message = "the tensor's dimensions are malformed";
        let error = input.error(codes::TENSOR_SHAPE, message, item);
        error.wanted("nonzero dimensions with a product below 2^56", format!("{shape:?}"))
    };
    let elements = shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
    // 2^56 elements leave room for the product with any block size.
    let Some(elements) = elements.filter(|n| (1..1 << 56).contains(n)) else {
        return Err(malformed());
    };
    let row = *shape.last().ok_or_else(malformed)?;
    let block = format.block_len() as u64;
    if !row.is_multiple_of(block) {
        let message = format!("no whole number of {} blocks makes a row", format.name());
        let error = input.error(codes::TENSOR_ROW, message, item);
        return Err(error.wanted(format!("rows of a multiple of {block} elements"), row));
    }
    Ok(elements / block * format.block_bytes() as u64)
}

const KNOWN_TYPES: &str = "F32, F16, BF16, I32, I64, Q8_0, Q2_K, Q4_K, IQ2_XXS or MXFP4";

/// ggml's tensor types that have a [`Format`].
fn format_of_type(number: u32) -> Option<Format> {
    Some(match number {
        0 => Format::F32,
        1 => Format::F16,
        8 => Format::Q8_0,
        10 => Format::Q2_K,
        12 => Format::Q4_K,
        16 => Format::IQ2_XXS,
        26 => Format::I32,
        27 => Format::I64,
        30 => Format::BF16,
        39 => Format::MXFP4,
        _ => return None,
    })
}

/// Number and, for types in use elsewhere, ggml's name.
fn type_text(number: u32) -> String {
    let name = match number {
        2 => "Q4_0",
        3 => "Q4_1",
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        11 => "Q3_K",
        13 => "Q5_K",
        14 => "Q6_K",
        15 => "Q8_K",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        40 => "NVFP4",
        _ => return format!("type {number}"),
    };
    format!("type {number} ({name})")
}
