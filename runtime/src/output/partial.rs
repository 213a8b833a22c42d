//! A file that is written under a temporary name and renamed when it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ds4_ir::diagnostic::codes;
use ds4_ir::{Diagnostic, Place};

/// A file in the making. Dropped before [`Partial::finish`], it is removed.
#[derive(Debug)]
pub struct Partial {
    file: BufWriter<File>,
    partial: PathBuf,
    path: PathBuf,
    renamed: bool,
}

impl Partial {
    /// Creates the temporary file in the folder of `path`.
    pub fn create(path: &Path) -> Result<Self, Diagnostic> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        if path.is_dir() {
            return Err(failed(path, &"a folder"));
        }
        let file = File::create(&partial).map_err(|error| failed(path, &error))?;
        Ok(Partial { file: BufWriter::new(file), partial, path: path.into(), renamed: false })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Diagnostic> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| failed(&self.path, &error))
    }

    /// Replaces the first bytes.
    pub fn rewrite_start(&mut self, bytes: &[u8]) -> Result<(), Diagnostic> {
        let rewritten = (self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(bytes))
            .and_then(|()| self.file.seek(SeekFrom::End(0)));
        rewritten.map_err(|error| failed(&self.path, &error))?;
        Ok(())
    }

    /// Writes what is buffered and gives the file its name.
    pub fn finish(mut self) -> Result<(), Diagnostic> {
        self.rename().map_err(|error| failed(&self.path, &error))?;
        self.renamed = true;
        Ok(())
    }

    fn rename(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.partial, &self.path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a file that cannot be removed.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

fn failed(path: &Path, found: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::new(codes::OUTPUT_WRITE, "the output cannot be written")
        .at(Place::file(path.display().to_string()))
        .wanted("a folder that exists and can be written", found)
        .help("name another output, or free space; nothing was left behind")
}
