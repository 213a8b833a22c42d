//! What is kept between runs in the user's cache folder: verdicts of the probe and compiled pipelines.
//!
//! Every file begins with the hash of its key and its content; what does not fit is as good as absent. A cache that
//! cannot be written costs time and nothing else, so no failure here is told.

use std::path::{Path, PathBuf};

use crate::output::Partial;

/// Bytes of the hash in front of a file's content.
const HASH: usize = blake3::OUT_LEN;

/// A folder of cached files, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// The folder `ds4` in the user's cache folder: `$XDG_CACHE_HOME`, or `.cache` at home; none without a home.
    pub fn of_user() -> Self {
        let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        Cache { folder: base.map(|base| base.join("ds4")) }
    }

    /// A folder, made when it is needed.
    pub fn at(folder: &Path) -> Self {
        Cache { folder: Some(folder.into()) }
    }

    /// No cache: everything is absent.
    pub fn none() -> Self {
        Cache { folder: None }
    }

    /// The content kept under a kind and a key.
    pub fn get(&self, kind: &str, key: &str) -> Option<Vec<u8>> {
        let mut bytes = std::fs::read(self.path(kind, key)?).ok()?;
        let content = bytes.get(HASH..)?;
        if bytes[..HASH] != *seal(key, content).as_bytes() {
            return None;
        }
        Some(bytes.split_off(HASH))
    }

    /// Keeps content under a kind and a key.
    pub fn put(&self, kind: &str, key: &str, content: &[u8]) {
        let Some(path) = self.path(kind, key) else { return };
        let Some(folder) = path.parent() else { return };
        if std::fs::create_dir_all(folder).is_err() {
            return;
        }
        let written = Partial::create(&path).and_then(|mut file| {
            file.write(seal(key, content).as_bytes())?;
            file.write(content)?;
            file.finish()
        });
        // See the module's page: a cache that is not written is no fault.
        drop(written);
    }

    fn path(&self, kind: &str, key: &str) -> Option<PathBuf> {
        let name = blake3::hash(key.as_bytes()).to_hex();
        Some(self.folder.as_ref()?.join(format!("{kind}-{}", &name[..32])))
    }
}

fn seal(key: &str, content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes()).update(key.as_bytes()).update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_whole_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("made/on/demand"));
        assert_eq!(cache.get("verdict", "a"), None);
        cache.put("verdict", "a", b"good");
        cache.put("verdict", "a", b"better");
        assert_eq!(cache.get("verdict", "a").as_deref(), Some(&b"better"[..]));
        assert_eq!(cache.get("pipelines", "a"), None);
        assert_eq!(cache.get("verdict", "b"), None);
        let path = cache.path("verdict", "a").unwrap();
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..HASH - 1], b"", &[&whole[..], b"!"].concat()] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(cache.get("verdict", "a"), None);
        }
        // The name says which key; another key's file in its place is not taken.
        std::fs::write(cache.path("verdict", "b").unwrap(), &whole).unwrap();
        assert_eq!(cache.get("verdict", "b"), None);
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let cache = Cache::none();
        cache.put("verdict", "a", b"good");
        assert_eq!(cache.get("verdict", "a"), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        Cache::at(file.path()).put("verdict", "a", b"good");
    }
}
