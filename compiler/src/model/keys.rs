//! Reads a model's keys from either kind of metadata.

use ds4_ir::diagnostic::{Diagnostic, Place, codes};

use crate::read::{Checkpoint, GgufMetadata, Json, List, Metadata, Value};

/// A key under both of its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// GGUF name, behind `deepseek4.`.
    pub(super) gguf: &'static str,
    /// Paths in `config.json`; the first that exists counts.
    pub(super) config: &'static [&'static str],
}

/// The keys of a checkpoint.
pub(super) struct Keys<'a> {
    file: String,
    source: Source<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Gguf(&'a GgufMetadata),
    Config(&'a Json),
}

/// A value that was found, of either kind.
#[derive(Clone, Copy)]
enum Found<'a> {
    Gguf(&'a Value),
    Config(&'a Json),
}

impl<'a> Keys<'a> {
    pub(super) fn new(checkpoint: &'a Checkpoint) -> Self {
        Keys {
            file: checkpoint.metadata_file(),
            source: match &checkpoint.metadata {
                Metadata::Gguf(table) => Source::Gguf(table),
                Metadata::Config(json) => Source::Config(json),
            },
        }
    }

    pub(super) fn source(&self) -> Source<'a> {
        self.source
    }

    /// The key as the user's file spells it.
    pub(super) fn spell(&self, key: Key) -> String {
        match self.source {
            Source::Gguf(_) => format!("deepseek4.{}", key.gguf),
            Source::Config(_) => key.config.first().copied().unwrap_or("").into(),
        }
    }

    /// A diagnostic at a key.
    pub(super) fn error(&self, code: ds4_ir::Code, key: Key, message: &str) -> Diagnostic {
        let item = format!("key {}", self.spell(key));
        Diagnostic::new(code, message).at(Place::item(self.file.clone(), item))
    }

    fn find(&self, key: Key) -> Option<Found<'a>> {
        match self.source {
            Source::Gguf(table) => table.get(&self.spell(key)).map(Found::Gguf),
            Source::Config(json) => {
                let mut values = key.config.iter().filter_map(|path| json.get(path));
                values.find(|value| **value != Json::Null).map(Found::Config)
            }
        }
    }

    /// Whether the key has a value other than null.
    pub(super) fn has(&self, key: Key) -> bool {
        self.find(key).is_some()
    }

    fn missing(&self, key: Key) -> Diagnostic {
        self.error(codes::KEY_MISSING, key, "the key is missing")
    }

    fn wrong(&self, key: Key, wanted: &str, found: Found) -> Diagnostic {
        self.error(codes::KEY_TYPE, key, "the key's value has the wrong type").wanted(wanted, found.describe())
    }

    /// An integer below 2^32 that must be there.
    pub(super) fn count(&self, key: Key) -> Result<u32, Diagnostic> {
        self.count_if(key)?.ok_or_else(|| self.missing(key))
    }

    /// An integer below 2^32, if the key exists.
    pub(super) fn count_if(&self, key: Key) -> Result<Option<u32>, Diagnostic> {
        self.convert(key, "an integer from 0 to 4294967295", Found::count)
    }

    /// A finite number that must be there, as f32.
    pub(super) fn number(&self, key: Key) -> Result<f32, Diagnostic> {
        let value = self.convert(key, "a finite number", Found::number)?;
        value.ok_or_else(|| self.missing(key))
    }

    /// A bool, if the key exists.
    pub(super) fn flag_if(&self, key: Key) -> Result<Option<bool>, Diagnostic> {
        self.convert(key, "true or false", Found::flag)
    }

    /// A string, if the key exists.
    pub(super) fn text_if(&self, key: Key) -> Result<Option<&'a str>, Diagnostic> {
        self.convert(key, "a string", Found::text)
    }

    /// An array of integers, if the key exists.
    pub(super) fn counts_if(&self, key: Key) -> Result<Option<Vec<u32>>, Diagnostic> {
        self.convert(key, "an array of integers", Found::counts)
    }

    /// An array of strings, if the key exists.
    pub(super) fn texts_if(&self, key: Key) -> Result<Option<Vec<&'a str>>, Diagnostic> {
        self.convert(key, "an array of strings", Found::texts)
    }

    /// One number for all of `len`, or an array with a number for each (longer ones are cut).
    pub(super) fn numbers_if(&self, key: Key, len: usize) -> Result<Option<Vec<f32>>, Diagnostic> {
        let wanted = format!("a finite number, or an array of at least {len}");
        self.convert(key, &wanted, |found| found.numbers(len))
    }

    /// As [`Keys::numbers_if`], for a key that must be there.
    pub(super) fn numbers(&self, key: Key, len: usize) -> Result<Vec<f32>, Diagnostic> {
        self.numbers_if(key, len)?.ok_or_else(|| self.missing(key))
    }

    /// One integer or an array of them; empty if the key does not exist.
    pub(super) fn one_or_many(&self, key: Key) -> Result<Vec<u32>, Diagnostic> {
        let wanted = "an integer or an array of integers";
        let ids = self.convert(key, wanted, |found| found.count().map(|id| vec![id]).or_else(|| found.counts()))?;
        Ok(ids.unwrap_or_default())
    }

    fn convert<T>(
        &self,
        key: Key,
        wanted: &str,
        convert: impl Fn(Found<'a>) -> Option<T>,
    ) -> Result<Option<T>, Diagnostic> {
        match self.find(key) {
            None => Ok(None),
            Some(found) => match convert(found) {
                Some(value) => Ok(Some(value)),
                None => Err(self.wrong(key, wanted, found)),
            },
        }
    }
}

fn finite(value: f32) -> Option<f32> {
    value.is_finite().then_some(value)
}

impl<'a> Found<'a> {
    fn describe(self) -> String {
        match self {
            Found::Gguf(value) => value.describe(),
            Found::Config(json) => json.describe(),
        }
    }

    fn count(self) -> Option<u32> {
        match self {
            Found::Gguf(Value::Unsigned(n)) => u32::try_from(*n).ok(),
            Found::Gguf(Value::Signed(n)) => u32::try_from(*n).ok(),
            Found::Gguf(_) => None,
            Found::Config(json) => u32::try_from(json.as_u64()?).ok(),
        }
    }

    fn number(self) -> Option<f32> {
        finite(match self {
            Found::Gguf(Value::F32(n)) => *n,
            Found::Gguf(Value::F64(n)) => *n as f32,
            Found::Gguf(Value::Unsigned(n)) => *n as f32,
            Found::Gguf(Value::Signed(n)) => *n as f32,
            Found::Gguf(_) => return None,
            Found::Config(json) => json.as_f32()?,
        })
    }

    fn flag(self) -> Option<bool> {
        match self {
            Found::Gguf(Value::Bool(flag)) => Some(*flag),
            Found::Config(Json::Bool(flag)) => Some(*flag),
            _ => None,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Found::Gguf(Value::Text(text)) => Some(text),
            Found::Config(Json::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn counts(self) -> Option<Vec<u32>> {
        match self {
            Found::Gguf(Value::List(List::Unsigned(list))) => list.iter().map(|n| u32::try_from(*n).ok()).collect(),
            Found::Gguf(Value::List(List::Signed(list))) => list.iter().map(|n| u32::try_from(*n).ok()).collect(),
            Found::Gguf(_) => None,
            Found::Config(json) => {
                let items = json.as_array()?.iter();
                items.map(|item| Found::Config(item).count()).collect()
            }
        }
    }

    fn texts(self) -> Option<Vec<&'a str>> {
        match self {
            Found::Gguf(Value::List(List::Text(list))) => Some(list.iter().map(String::as_str).collect()),
            Found::Gguf(_) => None,
            Found::Config(json) => json.as_array()?.iter().map(Json::as_text).collect(),
        }
    }

    fn numbers(self, len: usize) -> Option<Vec<f32>> {
        if let Some(one) = self.number() {
            return Some(vec![one; len]);
        }
        let all: Vec<f32> = match self {
            Found::Gguf(Value::List(List::F32(list))) => list.clone(),
            Found::Gguf(Value::List(List::F64(list))) => list.iter().map(|n| *n as f32).collect(),
            Found::Gguf(_) => return None,
            Found::Config(json) => {
                let items = json.as_array()?.iter();
                items.map(Json::as_f32).collect::<Option<_>>()?
            }
        };
        let numbers: Vec<f32> = all.get(..len)?.to_vec();
        numbers.iter().all(|n| n.is_finite()).then_some(numbers)
    }
}
