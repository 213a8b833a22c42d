//! Output files: whole under their name, or not there at all, and never in place of an input.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::diagnostic::codes;
use crate::{Diagnostic, Place};

/// A file in the making: it is written under a temporary name beside its own and renamed when it is whole. Dropped before
/// [`Partial::finish`], it is removed.
#[derive(Debug)]
pub struct Partial {
    file: BufWriter<File>,
    partial: PathBuf,
    /// As the user gave it, for messages.
    path: PathBuf,
    target: PathBuf,
    renamed: bool,
}

/// Temporary names of one process differ, so two outputs with one name do not share a file.
static COUNT: AtomicU32 = AtomicU32::new(0);

impl Partial {
    /// Creates the temporary file in the folder of `path`. A link is followed: its target is what is replaced.
    pub fn create(path: &Path) -> Result<Self, Diagnostic> {
        let target = target(path)?;
        let mut name = target.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}-{}.partial", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let partial = target.with_file_name(name);
        let file = File::create(&partial).map_err(|error| failed(path, &error))?;
        Ok(Partial { file: BufWriter::new(file), partial, path: path.into(), target, renamed: false })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Diagnostic> {
        self.file.write_all(bytes).map_err(|error| failed(&self.path, &error))
    }

    /// Replaces the first bytes.
    pub fn rewrite_start(&mut self, bytes: &[u8]) -> Result<(), Diagnostic> {
        let rewritten = (self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(bytes))
            .and_then(|()| self.file.seek(SeekFrom::End(0)));
        rewritten.map(|_| ()).map_err(|error| failed(&self.path, &error))
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
        fs::rename(&self.partial, &self.target)
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

/// Writes a whole file under a temporary name, then renames it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let mut file = Partial::create(path)?;
    file.write(bytes)?;
    file.finish()
}

/// Refuses an output that is one of the inputs, by whatever name. Called before any work.
pub fn check_output<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Diagnostic> {
    let target = target(output)?;
    let Ok(present) = fs::metadata(&target) else { return Ok(()) };
    for input in inputs {
        let same = fs::metadata(input).is_ok_and(|found| is_same(&target, &present, input, &found));
        if same {
            return Err(Diagnostic::new(codes::OUTPUT_IS_INPUT, "the output would replace an input")
                .at(Place::file(output.display().to_string()))
                .wanted("a file of its own", format!("the same file as {}", input.display()))
                .help("name another output; nothing was changed"));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn is_same(_: &Path, a: &Metadata, _: &Path, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(a: &Path, _: &Metadata, b: &Path, _: &Metadata) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(a).is_some() && real(a) == real(b)
}

/// What an output replaces: the file itself, or what a link leads to. Devices, pipes and folders are refused, since a
/// rename would put a file in their place.
fn target(path: &Path) -> Result<PathBuf, Diagnostic> {
    let kind = |found: &str, help: &str| {
        Err(Diagnostic::new(codes::OUTPUT_KIND, "the output is no ordinary file")
            .at(Place::file(path.display().to_string()))
            .wanted("the name of a file, new or to be replaced", found)
            .help(help))
    };
    let Ok(present) = fs::symlink_metadata(path) else { return Ok(path.to_path_buf()) };
    if !present.is_symlink() {
        return match () {
            _ if present.is_file() => Ok(path.to_path_buf()),
            _ if present.is_dir() => kind("a folder", "add a file name"),
            _ => kind("a device, a pipe or a socket", "name a file"),
        };
    }
    match path.canonicalize() {
        Ok(real) if real.is_file() => Ok(real),
        Ok(_) => kind("a link to something else than a file", "name a file"),
        Err(_) => kind("a link that leads nowhere", "name a file, or repair the link"),
    }
}

fn failed(path: &Path, found: &io::Error) -> Diagnostic {
    Diagnostic::new(codes::OUTPUT_WRITE, "the output cannot be written")
        .at(Place::file(path.display().to_string()))
        .wanted("a folder that exists, can be written and has space", found.kind())
        .help("name another output, or free space; nothing was left behind")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ds4-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn an_output_is_whole_or_absent() {
        let folder = folder("whole");
        let path = folder.join("a");
        let mut partial = Partial::create(&path).unwrap();
        partial.write(b"half").unwrap();
        drop(partial);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        write_whole(&path, b"all").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_output_is_no_input_by_any_name() {
        let folder = folder("input");
        let (input, linked, fresh) = (folder.join("model"), folder.join("hard"), folder.join("new"));
        fs::write(&input, b"weights").unwrap();
        fs::hard_link(&input, &linked).unwrap();
        for output in [&input, &linked, &folder.join("./model")] {
            let refused = check_output(output, [input.as_path()]).unwrap_err();
            assert_eq!(refused.code, codes::OUTPUT_IS_INPUT);
        }
        check_output(&fresh, [input.as_path()]).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_their_target_and_devices_stay() {
        let folder = folder("kind");
        let (real, link) = (folder.join("real"), folder.join("link"));
        fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        fs::remove_file(&real).unwrap();
        for (path, code) in [(link.as_path(), codes::OUTPUT_KIND), (folder.as_path(), codes::OUTPUT_KIND)] {
            assert_eq!(write_whole(path, b"x").unwrap_err().code, code);
        }
        assert_eq!(write_whole(Path::new("/dev/null"), b"x").unwrap_err().code, codes::OUTPUT_KIND);
        fs::remove_dir_all(folder).unwrap();
    }
}
