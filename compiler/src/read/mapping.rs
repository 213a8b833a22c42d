//! Files mapped into memory.

use std::fs::File;
use std::path::Path;

use ds4_ir::diagnostic::Diagnostic;
use memmap2::Mmap;

use super::cannot_open;

/// A whole file, mapped for reading. An empty file has no pages to map.
#[derive(Debug)]
pub struct Mapping(Option<Mmap>);

impl Mapping {
    /// Maps the file at `path`.
    pub fn open(path: &Path) -> Result<Mapping, Diagnostic> {
        let fail = |error| cannot_open(&path.display().to_string(), &error);
        let file = File::open(path).map_err(fail)?;
        if file.metadata().map_err(fail)?.len() == 0 {
            return Ok(Mapping(None));
        }
        // SAFETY: the mapping is read-only and lives in this value. Like every program that maps its
        // model, we rely on nobody shortening a checkpoint file while it is in use.
        let map = unsafe { Mmap::map(&file) }.map_err(fail)?;
        Ok(Mapping(Some(map)))
    }

    /// The bytes of the file. Reading them brings in their pages.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}
