//! The tokenizer of a checkpoint, as the bytes of a `tokenizer.json`.
//!
//! A file beside the checkpoint is taken as it is. Without one, the vocabulary of a GGUF file is written
//! in that form: byte-level BPE whose text is first split as the V4 series splits it.

use std::collections::BTreeSet;

use ds4_ir::diagnostic::{Diagnostic, Place, codes};
use serde_json::json;

use super::gguf_value::{List, Value};
use super::mapping::Mapping;
use super::table::{Checkpoint, GgufMetadata, Metadata, TokenizerSource};

/// Runs of one to three digits.
const NUMBERS: &str = r"\p{N}{1,3}";
/// Runs of CJK ideographs and of both kana.
const CJK: &str = "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+";
/// Words, punctuation and white space. The pattern is that of the released `tokenizer.json`.
const REST: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    "|[^\r\n",
    r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r"| ?[\p{P}\p{S}]+[",
    "\r\n]*",
    r"|\s*[",
    "\r\n]+",
    r"|\s+(?!\S)|\s+",
);

/// Token types of GGUF that become added tokens; the others are plain entries of the vocabulary.
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

/// The vocabulary of a GGUF file.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    /// Tokens by id, in the byte-level alphabet.
    pub tokens: &'a [String],
    /// Type of each token; empty if the file has none, which makes all plain.
    pub kinds: &'a [u64],
    /// Merges by falling priority, each two tokens with a space between.
    pub merges: &'a [String],
    /// Id of the token that begins a text.
    pub bos: Option<u32>,
    /// Id of the token that ends a text.
    pub eos: Option<u32>,
    /// Id of the token that fills up batches.
    pub pad: Option<u32>,
}

/// The `tokenizer.json` of a checkpoint: the file beside it, or one made of the GGUF vocabulary.
pub fn tokenizer_json(checkpoint: &Checkpoint) -> Result<Vec<u8>, Diagnostic> {
    match &checkpoint.tokenizer {
        TokenizerSource::File(path) => {
            let bytes = Mapping::open(path)?.bytes().to_vec();
            check_vocabulary(&bytes, &path.display().to_string())?;
            Ok(bytes)
        }
        TokenizerSource::Vocabulary => synthesise(checkpoint),
        TokenizerSource::Absent => {
            let message = "the checkpoint has no tokenizer";
            Err(Diagnostic::new(codes::NO_TOKENIZER, message)
                .at(Place::file(checkpoint.name()))
                .wanted("tokenizer.json beside the checkpoint", "no such file")
                .help("copy the tokenizer.json of the release to the checkpoint"))
        }
    }
}

/// A file that is no tokenizer, or has no tokens, is refused when a plan is made and not when it runs.
fn check_vocabulary(bytes: &[u8], file: &str) -> Result<(), Diagnostic> {
    let refused = |found: String| {
        Err(Diagnostic::new(codes::VOCABULARY, "the file is no tokenizer")
            .at(Place::file(file))
            .wanted("a tokenizer.json with `model.vocab`", found)
            .help("copy the tokenizer.json of the release to the checkpoint"))
    };
    match serde_json::from_slice::<serde_json::Value>(bytes) {
        Err(error) => refused(error.to_string()),
        Ok(json) => match &json["model"]["vocab"] {
            serde_json::Value::Object(vocab) if !vocab.is_empty() => Ok(()),
            serde_json::Value::Array(vocab) if !vocab.is_empty() => Ok(()),
            _ => refused("no tokens there".into()),
        },
    }
}

/// The `tokenizer.json` that the vocabulary of a GGUF checkpoint makes, whatever lies beside it.
pub fn synthesise(checkpoint: &Checkpoint) -> Result<Vec<u8>, Diagnostic> {
    let file = checkpoint.metadata_file();
    match &checkpoint.metadata {
        Metadata::Gguf(metadata) => Vocabulary::read(&file, metadata)?.to_json(&file),
        Metadata::Config(_) => Err(bad(&file, "tokens", "the checkpoint has no vocabulary")),
    }
}

fn bad(file: &str, key: &str, message: &str) -> Diagnostic {
    let item = format!("key tokenizer.ggml.{key}");
    Diagnostic::new(codes::VOCABULARY, message).at(Place::item(file, item))
}

impl<'a> Vocabulary<'a> {
    /// The vocabulary in the metadata of `file`: model `gpt2` with splits `joyai-llm`, no other.
    pub fn read(file: &str, metadata: &'a GgufMetadata) -> Result<Self, Diagnostic> {
        let value = |key: &str| metadata.get(&format!("tokenizer.ggml.{key}"));
        for (key, wanted) in [("model", "gpt2"), ("pre", "joyai-llm")] {
            match value(key) {
                Some(Value::Text(text)) if text == wanted => {}
                other => {
                    let found = other.map_or("no such key".into(), Value::describe);
                    let error = bad(file, key, "the vocabulary is of another kind");
                    return Err(error
                        .wanted(format!("{wanted:?}"), found)
                        .help("put the tokenizer.json of the model into the directory of the checkpoint"));
                }
            }
        }
        let texts = |key: &str| match value(key) {
            Some(Value::List(List::Text(texts))) => Ok(texts.as_slice()),
            other => {
                let found = other.map_or("no such key".into(), Value::describe);
                let error = bad(file, key, "the vocabulary is incomplete");
                Err(error.wanted("an array of strings", found))
            }
        };
        let vocabulary = Vocabulary {
            tokens: texts("tokens")?,
            kinds: kinds(file, metadata)?,
            merges: texts("merges")?,
            bos: id(metadata, "bos"),
            eos: id(metadata, "eos"),
            pad: id(metadata, "padding"),
        };
        vocabulary.check(file)?;
        Ok(vocabulary)
    }

    fn check(&self, file: &str) -> Result<(), Diagnostic> {
        if !self.kinds.is_empty() && self.kinds.len() != self.tokens.len() {
            let error = bad(file, "token_type", "tokens and token types differ in number");
            return Err(error.wanted(self.tokens.len(), self.kinds.len()));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.tokens.iter().find(|token| !names.insert(token.as_str())) {
            let error = bad(file, "tokens", "two tokens are alike");
            return Err(error.wanted("tokens that differ", format!("{twice:?} twice")));
        }
        for merge in self.merges {
            let known = halves(merge).is_some_and(|(a, b)| {
                names.contains(a) && names.contains(b) && names.contains(format!("{a}{b}").as_str())
            });
            if !known {
                let error = bad(file, "merges", "a merge is of unknown tokens");
                let wanted = "two tokens whose sum is a token";
                return Err(error.wanted(wanted, format!("{merge:?}")));
            }
        }
        Ok(())
    }

    /// The vocabulary as the bytes of a `tokenizer.json`. It adds no token to a text by itself.
    fn to_json(self, file: &str) -> Result<Vec<u8>, Diagnostic> {
        let vocab: serde_json::Map<_, _> =
            (0u32..).zip(self.tokens).map(|(id, token)| (token.clone(), id.into())).collect();
        let merges: Vec<_> = self.merges.iter().filter_map(|merge| halves(merge)).collect();
        let tokenizer = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": self.added_tokens(),
            "normalizer": null,
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [split(NUMBERS), split(CJK), split(REST), byte_level(false)],
            },
            "post_processor": null,
            "decoder": byte_level(true),
            "model": {
                "type": "BPE",
                "dropout": null,
                "unk_token": null,
                "continuing_subword_prefix": null,
                "end_of_word_suffix": null,
                "fuse_unk": false,
                "byte_fallback": false,
                "ignore_merges": false,
                "vocab": vocab,
                "merges": merges,
            },
        });
        serde_json::to_vec(&tokenizer)
            .map_err(|error| bad(file, "tokens", &format!("the vocabulary is no JSON: {error}")))
    }

    fn added_tokens(&self) -> Vec<serde_json::Value> {
        let kinds = self.kinds.iter().zip(self.tokens).zip(0u32..);
        kinds
            .filter(|((kind, _), _)| matches!(**kind, CONTROL | USER_DEFINED))
            .map(|((kind, token), id)| {
                json!({
                    "id": id,
                    "content": token,
                    "single_word": false,
                    "lstrip": false,
                    "rstrip": false,
                    "normalized": false,
                    "special": *kind == CONTROL,
                })
            })
            .collect()
    }
}

/// Token types are i32 in files; negative ones count as plain.
fn kinds<'a>(file: &str, metadata: &'a GgufMetadata) -> Result<&'a [u64], Diagnostic> {
    match metadata.get("tokenizer.ggml.token_type") {
        None => Ok(&[]),
        Some(Value::List(List::Unsigned(kinds))) => Ok(kinds),
        Some(Value::List(List::Signed(kinds))) if kinds.iter().all(|kind| *kind >= 0) => {
            Ok(bytemuck::cast_slice(kinds))
        }
        Some(other) => {
            let error = bad(file, "token_type", "the token types are malformed");
            Err(error.wanted("an array of nonnegative integers", other.describe()))
        }
    }
}

/// The id of a special token; a value of another type counts as none.
pub(crate) fn id(metadata: &GgufMetadata, name: &str) -> Option<u32> {
    match metadata.get(&format!("tokenizer.ggml.{name}_token_id"))? {
        Value::Unsigned(id) => u32::try_from(*id).ok(),
        Value::Signed(id) => u32::try_from(*id).ok(),
        _ => None,
    }
}

fn halves(merge: &str) -> Option<(&str, &str)> {
    merge.split_once(' ')
}

fn split(pattern: &str) -> serde_json::Value {
    json!({
        "type": "Split",
        "pattern": { "Regex": pattern },
        "behavior": "Isolated",
        "invert": false,
    })
}

fn byte_level(decoder: bool) -> serde_json::Value {
    json!({
        "type": "ByteLevel",
        "add_prefix_space": decoder,
        "trim_offsets": true,
        "use_regex": decoder,
    })
}
