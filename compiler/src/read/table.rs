//! The tables that a checkpoint's headers become.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ds4_ir::Format;
use ds4_ir::diagnostic::Diagnostic;
use ds4_ir::entity::{Entity, Run};

use super::cursor::Input;
use super::gguf_value::Value;
use super::json::Json;
use super::mapping::Mapping;

ds4_ir::entities! {
    /// A file of a checkpoint.
    FileId = "file";
    /// A tensor of a checkpoint.
    TensorId = "tensor";
}

/// Metadata of a GGUF file by key.
pub type GgufMetadata = BTreeMap<String, Value>;

/// A checkpoint as its headers describe it.
#[derive(Debug)]
pub struct Checkpoint {
    /// Files, data files first, in the order in which tensors count them.
    pub files: Files,
    /// Tensors. Scale tensors are no rows of their own but part of the tensor that they scale.
    pub tensors: Tensors,
    /// What the checkpoint says about its model.
    pub metadata: Metadata,
    /// Where its tokenizer comes from.
    pub tokenizer: TokenizerSource,
}

/// What a checkpoint says about its model.
#[derive(Clone, PartialEq, Debug)]
pub enum Metadata {
    /// Keys and values of a GGUF file (of the first part).
    Gguf(GgufMetadata),
    /// `config.json` of a released directory.
    Config(Json),
}

/// Where a checkpoint's tokenizer comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenizerSource {
    /// `tokenizer.json` beside the checkpoint.
    File(PathBuf),
    /// The vocabulary in the GGUF metadata.
    Vocabulary,
    /// There is none.
    Absent,
}

/// What a file of a checkpoint is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A header and tensor data.
    Data,
    /// JSON that is all header: `config.json`, the weight index.
    Text,
}

/// Files of a checkpoint, a column for each fact.
#[derive(Debug, Default)]
pub struct Files {
    /// Path: the directory or file that the user gave, with the name of the part.
    pub path: Vec<PathBuf>,
    /// What the file is for.
    pub kind: Vec<FileKind>,
    /// Bytes of the file.
    pub size: Vec<u64>,
    /// Bytes of the header, which starts at 0.
    pub header_len: Vec<u64>,
    /// BLAKE3 hash of the header bytes.
    pub header_hash: Vec<[u8; 32]>,
    mapping: Vec<Mapping>,
}

/// Scales of an FP8 or FP4 tensor: E8M0 bytes, row-major.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// File of the scales, which may differ from the tensor's.
    pub file: FileId,
    /// First byte in that file.
    pub offset: u64,
    /// Rows and columns of the scale tensor.
    pub shape: [u64; 2],
    /// Rows and columns of the tensor that one scale covers. The last blocks may be partial.
    pub block: [u32; 2],
}

/// Tensors of a checkpoint, a column for each fact.
#[derive(Debug, Default)]
pub struct Tensors {
    /// Name in the checkpoint.
    pub name: Vec<String>,
    /// Storage format.
    pub format: Vec<Format>,
    /// Logical shape, row-major, in `dims`: of an FP4 tensor the elements, not the bytes.
    pub shape: Vec<Run>,
    /// Pool of `shape`.
    pub dims: Vec<u64>,
    /// File of the data.
    pub file: Vec<FileId>,
    /// First byte of the data in that file.
    pub offset: Vec<u64>,
    /// Bytes of the data.
    pub bytes: Vec<u64>,
    /// Scales of FP8 and FP4 tensors.
    pub scale: Vec<Option<Scale>>,
    by_name: BTreeMap<String, TensorId>,
}

/// A row of [`Tensors`] to be.
pub(super) struct NewTensor {
    pub(super) name: String,
    pub(super) format: Format,
    pub(super) shape: Vec<u64>,
    pub(super) file: FileId,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) scale: Option<Scale>,
}

impl Checkpoint {
    /// The stored bytes of a tensor. Reading them brings in their pages.
    pub fn data(&self, tensor: TensorId) -> &[u8] {
        let row = tensor.index();
        let start = self.tensors.offset[row] as usize;
        let bytes = self.files.bytes(self.tensors.file[row]);
        &bytes[start..start + self.tensors.bytes[row] as usize]
    }

    /// The E8M0 bytes of a tensor's scales, empty for formats without.
    pub fn scale_data(&self, tensor: TensorId) -> &[u8] {
        let Some(scale) = self.tensors.scale[tensor.index()] else {
            return &[];
        };
        let start = scale.offset as usize;
        let bytes = (scale.shape[0] * scale.shape[1]) as usize;
        &self.files.bytes(scale.file)[start..start + bytes]
    }

    /// Every file that was read: outputs must not replace them.
    pub fn inputs(&self) -> impl Iterator<Item = &std::path::Path> {
        let tokenizer = match &self.tokenizer {
            TokenizerSource::File(path) => Some(path.as_path()),
            _ => None,
        };
        self.files.path.iter().map(PathBuf::as_path).chain(tokenizer)
    }

    /// The name that messages about the whole checkpoint use: its first file.
    pub fn name(&self) -> String {
        let path = self.files.path.first();
        path.map_or(String::new(), |path| path.display().to_string())
    }

    /// The file that holds the model's keys, as messages name it.
    pub fn metadata_file(&self) -> String {
        let text = self.files.kind.iter().position(|k| *k == FileKind::Text);
        let row = match self.metadata {
            Metadata::Config(_) => text.unwrap_or(0),
            Metadata::Gguf(_) => 0,
        };
        let path = self.files.path.get(row);
        path.map_or(String::new(), |path| path.display().to_string())
    }
}

impl Files {
    /// Number of files.
    pub fn len(&self) -> usize {
        self.path.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// All files.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.len() as u32).map(FileId)
    }

    /// The bytes of a file. Reading them brings in their pages.
    pub fn bytes(&self, file: FileId) -> &[u8] {
        self.mapping[file.index()].bytes()
    }

    /// Maps `path`, lets `parse` read its header and give its length, and adds a row.
    pub(super) fn add<T>(
        &mut self,
        path: PathBuf,
        kind: FileKind,
        parse: impl FnOnce(Input) -> Result<(T, u64), Diagnostic>,
    ) -> Result<(FileId, T), Diagnostic> {
        let mapping = Mapping::open(&path)?;
        let bytes = mapping.bytes();
        let size = bytes.len() as u64;
        let name = path.display().to_string();
        let input = Input { name: &name, bytes, size };
        let (parsed, header_len) = parse(input)?;
        let hash = blake3::hash(&bytes[..header_len as usize]);
        let id = FileId(self.len() as u32);
        self.path.push(path);
        self.kind.push(kind);
        self.size.push(size);
        self.header_len.push(header_len);
        self.header_hash.push(*hash.as_bytes());
        self.mapping.push(mapping);
        Ok((id, parsed))
    }
}

impl Tensors {
    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// Whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    /// All tensors, in the order of the files.
    pub fn ids(&self) -> impl Iterator<Item = TensorId> + use<> {
        (0..self.len() as u32).map(TensorId)
    }

    /// All tensors, sorted by name.
    pub fn sorted(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.by_name.values().copied()
    }

    /// The tensor of a name.
    pub fn find(&self, name: &str) -> Option<TensorId> {
        self.by_name.get(name).copied()
    }

    /// The shape of a tensor.
    pub fn shape_of(&self, tensor: TensorId) -> &[u64] {
        self.shape[tensor.index()].of(&self.dims)
    }

    /// Adds a row, or gives back the name if it is taken.
    pub(super) fn add(&mut self, new: NewTensor) -> Result<TensorId, String> {
        if self.by_name.contains_key(&new.name) {
            return Err(new.name);
        }
        let id = TensorId(self.len() as u32);
        self.by_name.insert(new.name.clone(), id);
        self.name.push(new.name);
        self.format.push(new.format);
        self.shape.push(Run::push(&mut self.dims, &new.shape));
        self.file.push(new.file);
        self.offset.push(new.offset);
        self.bytes.push(new.bytes);
        self.scale.push(new.scale);
        Ok(id)
    }
}
