//! Checkpoint readers: GGUF files and released directories become one [`Checkpoint`] table.
//!
//! Only headers are read. Files are mapped whole, but no page of weights is touched before somebody
//! asks for it; a compile of a sparse file of the right size works. Every length, count and offset is
//! compared with the file before it is used: whatever the bytes, the answer is a table or a diagnostic.

mod cursor;
mod directory;
mod gguf;
mod gguf_value;
mod identity;
mod json;
mod mapping;
mod placement;
mod safetensors;
mod scales;
mod split;
mod table;
pub mod tokenizer;

use std::path::Path;

use ds4_ir::diagnostic::{Diagnostic, Place, codes};

pub use cursor::Input;
pub use gguf::{TensorHeader, parse as parse_gguf};
pub use gguf_value::{List, Value};
pub use json::Json;
pub use mapping::Mapping;
pub use safetensors::parse as parse_safetensors;
pub use table::{
    Checkpoint, FileId, FileKind, Files, GgufMetadata, Metadata, Scale, TensorId, Tensors, TokenizerSource,
};

/// Reads the checkpoint at `path`: a GGUF file, any part of a split GGUF file, a checkpoint directory,
/// or the `config.json`, the weight index or a `.safetensors` file inside such a directory.
pub fn open(path: &Path) -> Result<Checkpoint, Diagnostic> {
    let name = path.display().to_string();
    let about = std::fs::metadata(path).map_err(|error| cannot_open(&name, &error))?;
    if about.is_dir() {
        return directory::read(path);
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    match extension {
        "gguf" => split::read(path),
        "json" | "safetensors" => directory::read(parent(path)),
        _ if begins_as_gguf(path) => split::read(path),
        _ => Err(Diagnostic::new(codes::CHECKPOINT_KIND, "this file is no checkpoint")
            .at(Place::file(name))
            .wanted("a .gguf file, or a directory with config.json and .safetensors files", "a file of another kind")),
    }
}

/// The directory of a file; `.` for a bare name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn begins_as_gguf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *gguf::MAGIC
}

fn cannot_open(name: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(codes::FILE_OPEN, "cannot open the file").at(Place::file(name)).wanted("", kind_text(error))
}

/// The error without the number that differs between systems.
fn kind_text(error: &std::io::Error) -> String {
    error.kind().to_string()
}
