//! The header of one safetensors file: a 64-bit length, JSON, data.

use ds4_ir::Format;
use ds4_ir::diagnostic::{Diagnostic, codes};

use super::cursor::{Cursor, Input};
use super::gguf::tensor_bytes;
use super::json::Json;
use super::placement::check_places;

/// Most dimensions of a tensor.
const MAX_DIMENSIONS: usize = 4;

/// What the stored elements are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// Elements that need no companion.
    Plain(Format),
    /// `F8_E4M3`: FP8 codes.
    Fp8,
    /// `I8`: two FP4 codes in each byte.
    Fp4Pairs,
    /// `F8_E8M0`: the scales of another tensor.
    Scale,
}

/// A tensor as the header describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Element type.
    pub stored: Stored,
    /// Shape of the stored elements.
    pub shape: Vec<u64>,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What one safetensors file holds besides its data.
#[derive(Clone, PartialEq, Debug)]
pub struct Shard {
    /// Tensors in the order of the header.
    pub entries: Vec<Entry>,
    /// Bytes in front of the data.
    pub header_len: u64,
}

/// Parses the header of a safetensors file.
///
/// Data places are checked against `input.size`: as long as the shape says, inside the file, apart from
/// each other, aligned to their elements.
pub fn parse(input: Input) -> Result<Shard, Diagnostic> {
    let mut cursor = Cursor::new(input);
    let len = cursor.u64("the length of the header")?;
    let text = cursor.take(len, "the header")?;
    let header_len = cursor.position();
    let json = Json::parse(input.name, text)?;
    let object = json.as_object().ok_or_else(|| {
        let message = "the header is no JSON object";
        let error = input.error(codes::SAFETENSORS_HEADER, message, "byte 8");
        error.wanted("an object", json.describe())
    })?;
    let entries = object
        .iter()
        .filter(|(name, _)| name != "__metadata__")
        .map(|(name, value)| read_entry(&input, header_len, name, value))
        .collect::<Result<Vec<_>, _>>()?;
    check_places(&input, entries.iter().map(|e| (e.name.as_str(), e.offset, e.bytes)))?;
    Ok(Shard { entries, header_len })
}

fn read_entry(input: &Input, start: u64, name: &str, value: &Json) -> Result<Entry, Diagnostic> {
    let item = format!("tensor {name}");
    let malformed = |member: &str| {
        let message = format!("the tensor's {member} is missing or malformed");
        let found = value.member(member).map_or("nothing".into(), Json::describe);
        input.error(codes::SAFETENSORS_HEADER, message, item.clone()).wanted(wanted_member(member), found)
    };
    let dtype = value.member("dtype").and_then(Json::as_text);
    let dtype = dtype.ok_or_else(|| malformed("dtype"))?;
    let stored = stored_of(dtype).ok_or_else(|| {
        let message = "the tensor's type is not read";
        let error = input.error(codes::TENSOR_TYPE, message, item.clone());
        error.wanted("F32, F16, BF16, I32, I64, F8_E4M3, F8_E8M0 or I8", format!("{dtype:?}"))
    })?;
    let shape = integers(value.member("shape"), MAX_DIMENSIONS).ok_or_else(|| malformed("shape"))?;
    let range = integers(value.member("data_offsets"), 2);
    let range = range.filter(|r| r.len() == 2 && r[0] <= r[1]);
    let range = range.ok_or_else(|| malformed("data_offsets"))?;
    let bytes = range[1] - range[0];
    check_length(input, &item, stored, &shape, bytes)?;
    let offset = start.checked_add(range[0]).ok_or_else(|| malformed("data_offsets"))?;
    check_alignment(input, &item, stored, offset)?;
    Ok(Entry { name: name.to_owned(), stored, shape, offset, bytes })
}

fn wanted_member(member: &str) -> &'static str {
    match member {
        "dtype" => "the name of a type",
        "shape" => "an array of 1 to 4 integers",
        _ => "an array of two integers, the first not above the second",
    }
}

fn check_length(input: &Input, item: &str, stored: Stored, shape: &[u64], bytes: u64) -> Result<(), Diagnostic> {
    let wanted = tensor_bytes(input, item, element(stored), shape)?;
    if wanted == bytes {
        return Ok(());
    }
    let message = "the tensor's data_offsets and shape disagree";
    let error = input.error(codes::SAFETENSORS_HEADER, message, item);
    Err(error.wanted(format!("{wanted} bytes"), format!("{bytes} bytes")))
}

fn check_alignment(input: &Input, item: &str, stored: Stored, offset: u64) -> Result<(), Diagnostic> {
    let width = element(stored).block_bytes() as u64;
    if offset.is_multiple_of(width) {
        return Ok(());
    }
    let message = "the tensor's data is misaligned";
    let error = input.error(codes::TENSOR_ALIGNMENT, message, item);
    let wanted = format!("data at a multiple of {width} bytes from the start of the file");
    Err(error.wanted(wanted, format!("byte {offset}")))
}

/// A format of the stored width: codes and scales are bytes.
fn element(stored: Stored) -> Format {
    match stored {
        Stored::Plain(format) => format,
        Stored::Fp8 | Stored::Fp4Pairs | Stored::Scale => Format::Fp8,
    }
}

fn stored_of(dtype: &str) -> Option<Stored> {
    Some(match dtype {
        "F32" => Stored::Plain(Format::F32),
        "F16" => Stored::Plain(Format::F16),
        "BF16" => Stored::Plain(Format::BF16),
        "I32" => Stored::Plain(Format::I32),
        "I64" => Stored::Plain(Format::I64),
        "F8_E4M3" => Stored::Fp8,
        "I8" => Stored::Fp4Pairs,
        "F8_E8M0" => Stored::Scale,
        _ => return None,
    })
}

/// An array of at most `most` nonnegative integers, and at least one.
fn integers(value: Option<&Json>, most: usize) -> Option<Vec<u64>> {
    let items = value?.as_array()?;
    if items.is_empty() || items.len() > most {
        return None;
    }
    items.iter().map(Json::as_u64).collect()
}
