//! GGUF checkpoints of one file or of parts `NAME-00001-of-0000N.gguf`.

use std::path::{Path, PathBuf};

use ds4_ir::diagnostic::{Diagnostic, Place, codes};

use super::gguf::parse;
use super::gguf_value::Value;
use super::table::{Checkpoint, FileId, FileKind, Files, GgufMetadata, Metadata, NewTensor, Tensors, TokenizerSource};
use super::{mapping::Mapping, parent};
use crate::read::Input;

/// Reads the GGUF checkpoint that the file at `path` is, or is a part of.
pub(super) fn read(path: &Path) -> Result<Checkpoint, Diagnostic> {
    let paths = match split_name(path) {
        Some(name) => part_paths(path, name)?,
        None => vec![path.to_owned()],
    };
    let mut files = Files::default();
    let mut tensors = Tensors::default();
    let mut metadata = GgufMetadata::new();
    let mut total = 0;
    for (number, path) in paths.iter().enumerate() {
        let (file, part) = files.add(path.clone(), FileKind::Data, |input| {
            let part = parse(input)?;
            let len = part.header_len;
            Ok((part, len))
        })?;
        match paths.len() {
            1 => check_alone(path, &part.metadata)?,
            count => check_part(path, &part.metadata, number, count)?,
        }
        total += part.tensors.len();
        add_tensors(&mut tensors, file, path, part.tensors)?;
        if number == 0 {
            metadata = part.metadata;
        }
    }
    check_total(&paths[0], &metadata, total)?;
    Ok(Checkpoint { tokenizer: tokenizer_source(path, &metadata), files, tensors, metadata: Metadata::Gguf(metadata) })
}

/// The files of the checkpoint that the part at `path` belongs to, the first part first.
fn part_paths(path: &Path, (stem, number, of): (&str, u64, u64)) -> Result<Vec<PathBuf>, Diagnostic> {
    let name = path.display().to_string();
    let mapping = Mapping::open(path)?;
    let bytes = mapping.bytes();
    let part = parse(Input { name: &name, bytes, size: bytes.len() as u64 })?;
    let count = part_count(&part.metadata);
    if count <= 1 {
        return Ok(vec![path.to_owned()]);
    }
    if of != count || number == 0 || number > count {
        return Err(mismatch(path, "split.count", "the file's name and its metadata disagree")
            .wanted(format!("a part of {count}"), format!("part {number} of {of}")));
    }
    let paths = (1..=count).map(|i| path.with_file_name(format!("{stem}-{i:05}-of-{count:05}.gguf")));
    let paths: Vec<_> = paths.collect();
    match paths.iter().find(|path| !path.is_file()) {
        None => Ok(paths),
        Some(absent) => Err(Diagnostic::new(codes::SPLIT_MISSING, "a part of the checkpoint is missing")
            .at(Place::file(absent.display().to_string()))
            .wanted(format!("{count} parts"), format!("no file {}", file_name(absent)))
            .help("put all parts into one directory")),
    }
}

/// The number of parts; a file without the key is all of its checkpoint.
fn part_count(metadata: &GgufMetadata) -> u64 {
    metadata.get("split.count").and_then(integer).unwrap_or(1)
}

fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Unsigned(n) => Some(*n),
        Value::Signed(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// `NAME-00002-of-00003.gguf` as its name, 2 and 3.
fn split_name(path: &Path) -> Option<(&str, u64, u64)> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, of) = stem.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(number) || !digits(of) {
        return None;
    }
    Some((name, number.parse().ok()?, of.parse().ok()?))
}

fn mismatch(path: &Path, key: &str, message: &str) -> Diagnostic {
    let place = Place::item(path.display().to_string(), format!("key {key}"));
    Diagnostic::new(codes::SPLIT_MISMATCH, message).at(place)
}

fn check_alone(path: &Path, metadata: &GgufMetadata) -> Result<(), Diagnostic> {
    let count = part_count(metadata);
    if count <= 1 {
        return Ok(());
    }
    Err(mismatch(path, "split.count", "a part of a split checkpoint has another name")
        .wanted(format!("NAME-00001-of-{count:05}.gguf"), file_name(path))
        .help("rename the parts to the names that they were written with"))
}

fn check_part(path: &Path, metadata: &GgufMetadata, number: usize, count: usize) -> Result<(), Diagnostic> {
    for (key, wanted) in [("split.no", number), ("split.count", count)] {
        let value = metadata.get(key);
        if value.and_then(integer) != Some(wanted as u64) {
            let found = value.map_or("no such key".into(), Value::describe);
            let message = "the parts do not belong together";
            return Err(mismatch(path, key, message).wanted(wanted, found));
        }
    }
    Ok(())
}

/// Compares the number of tensors in all parts with the key of the first part, where there is one.
fn check_total(path: &Path, metadata: &GgufMetadata, total: usize) -> Result<(), Diagnostic> {
    match metadata.get("split.tensors.count") {
        Some(value) if integer(value) != Some(total as u64) => {
            let message = "the number of tensors in all parts is wrong";
            let error = mismatch(path, "split.tensors.count", message);
            Err(error.wanted(value.describe(), total))
        }
        _ => Ok(()),
    }
}

fn add_tensors(
    tensors: &mut Tensors,
    file: FileId,
    path: &Path,
    headers: Vec<super::TensorHeader>,
) -> Result<(), Diagnostic> {
    for header in headers {
        let new = NewTensor {
            name: header.name,
            format: header.format,
            shape: header.shape,
            file,
            offset: header.offset,
            bytes: header.bytes,
            scale: None,
        };
        tensors.add(new).map_err(|name| {
            let place = Place::item(path.display().to_string(), format!("tensor {name}"));
            let message = "an earlier part has a tensor of this name";
            Diagnostic::new(codes::TENSOR_DUPLICATE, message).at(place)
        })?;
    }
    Ok(())
}

fn tokenizer_source(path: &Path, metadata: &GgufMetadata) -> TokenizerSource {
    let beside = parent(path).join("tokenizer.json");
    if beside.is_file() {
        TokenizerSource::File(beside)
    } else if metadata.contains_key("tokenizer.ggml.tokens") {
        TokenizerSource::Vocabulary
    } else {
        TokenizerSource::Absent
    }
}
