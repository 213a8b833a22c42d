//! The tokenizer made of a GGUF vocabulary.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use ds4_compiler::read::{self, List, Value, tokenizer};
use ds4_compiler::sample::{GgufWriter, Spec, write_gguf};
use tokenizers::Tokenizer;

fn golden(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../golden").join(path)
}

fn synthesised(path: &Path) -> Tokenizer {
    let checkpoint = read::open(path).unwrap();
    Tokenizer::from_bytes(tokenizer::synthesise(&checkpoint).unwrap()).unwrap()
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, false).unwrap().get_ids().to_vec()
}

/// Pieces that a text is split into before any merge.
fn pieces(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};
    let mut split = PreTokenizedString::from(text);
    tokenizer.get_pre_tokenizer().unwrap().pre_tokenize(&mut split).unwrap();
    let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(_, (start, end), _)| text[start..end].to_owned()).collect()
}

#[test]
fn a_file_beside_the_checkpoint_is_taken_as_it_is() {
    let checkpoint = read::open(&golden("models/kjv-9m/model.q8.gguf")).unwrap();
    let bytes = tokenizer::tokenizer_json(&checkpoint).unwrap();
    assert_eq!(bytes, std::fs::read(golden("models/kjv-9m/tokenizer.json")).unwrap());
}

#[test]
fn prompts_have_the_expected_ids() {
    let tokenizer = synthesised(&golden("models/kjv-9m/model.q8.gguf"));
    let text = std::fs::read_to_string(golden("models/kjv-9m/expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut seen = 0;
    for model in expected.as_object().unwrap().values() {
        for one in model["greedy"].as_array().into_iter().flatten() {
            let prompt = one["prompt"].as_str().unwrap();
            let wanted: Vec<u32> = serde_json::from_value(one["prompt_ids"].clone()).unwrap();
            assert!(prompt.is_ascii());
            // The begin of the text is the caller's.
            assert_eq!(ids(&tokenizer, prompt), wanted[1..], "{prompt}");
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}

/// Where both ways of splitting agree, so do all ids; the text always comes back.
#[test]
fn samples_agree_with_the_file() {
    let made = synthesised(&golden("models/kjv-9m/model.q8.gguf"));
    let file = Tokenizer::from_file(golden("models/kjv-9m/tokenizer.json")).unwrap();
    let alike = [
        "In the beginning God created the heaven and the earth.",
        "<｜User｜>Who art thou?<｜Assistant｜></think>I am the LORD.<｜end▁of▁sentence｜>",
        "and he said, (Behold) thy servant's house; \"yea\"!",
        "起初神创造天地。",
        "はじめに神は天と地を創造した。",
        "Im Anfang schuf Gott Himmel und Erde — über allem.",
        "🙂🙃 👩‍🚀",
        "line one\nline two\n",
        "7",
    ];
    for text in alike {
        assert_eq!(ids(&made, text), ids(&file, text), "{text}");
    }
    let more = ["12345 and 6", "a  b   c\n\n\n  d\t\te", "x=y+z; foo_bar(12)", "naïve café 東京タワー123", "\r\n \r\n"];
    for text in alike.into_iter().chain(more) {
        assert_eq!(made.decode(&ids(&made, text), false).unwrap(), text);
    }
}

/// The three splits: digits by threes, runs of CJK, then words, punctuation and white space.
#[test]
fn texts_are_split_as_the_series_splits_them() {
    let tokenizer = synthesised(&golden("models/kjv-9m/model.q8.gguf"));
    let split = |text: &str| pieces(&tokenizer, text).join("|");
    let texts = [
        "Hello world",
        "don't stop",
        "1234567 tokens",
        "a1b22c333d4444",
        "١٢٣٤٥",
        "東京タワーは高い。",
        "中文abc中文",
        "한국어 텍스트",
        "x = foo.bar(baz)",
        "(a) [b] {c}",
        "wait... what?!",
        "price: $100€",
        "a  b   c",
        "tab\tnext\n\nline\r\nend  ",
        "naïve e\u{301}tude",
        "🙂 emoji👍🏽!",
        " leading",
        "你好,世界!\nok",
    ];
    let lines: Vec<_> = texts.iter().map(|text| format!("{text:?} -> {:?}", split(text))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn special_tokens_follow_their_types() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.gguf");
    write_gguf(&path, &Spec::tiny()).unwrap();
    let tokenizer = synthesised(&path);
    assert_eq!(tokenizer.get_vocab_size(true), 288);
    let added = tokenizer.get_added_tokens_decoder();
    let mut special: Vec<_> = added.iter().map(|(id, token)| (*id, token.special)).collect();
    special.sort();
    assert_eq!(special, [(0, true), (1, true), (2, true)]);
    assert_eq!(ids(&tokenizer, "<｜end▁of▁sentence｜>"), [1]);
    // A token of the type "unused" is text like any other.
    assert_eq!(ids(&tokenizer, "<unused270>").len(), 11);
}

/// The whole vocabulary of the release, in size.
#[test]
fn a_large_vocabulary_loads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flash.gguf");
    write_gguf(&path, &Spec::flash(1)).unwrap();
    assert_eq!(synthesised(&path).get_vocab_size(true), 129_280);
}

#[test]
fn faults_of_vocabularies() {
    let list = |items: &[&str]| Value::List(List::Text(items.iter().map(|s| s.to_string()).collect()));
    type Keys = Vec<(&'static str, Value)>;
    let message = |change: &dyn Fn(&mut Keys)| {
        let mut keys = vec![
            ("model", Value::Text("gpt2".into())),
            ("pre", Value::Text("joyai-llm".into())),
            ("tokens", list(&["a", "b", "ab"])),
            ("token_type", Value::List(List::Signed(vec![1, 1, 1]))),
            ("merges", list(&["a b"])),
        ];
        change(&mut keys);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.gguf");
        let mut writer = GgufWriter::default();
        writer.key("general.architecture", &Value::Text("deepseek4".into()));
        for (key, value) in &keys {
            writer.key(&format!("tokenizer.ggml.{key}"), value);
        }
        writer.write(&path).unwrap();
        let checkpoint = read::open(&path).unwrap();
        let text = match tokenizer::synthesise(&checkpoint) {
            Ok(bytes) => format!("no error, {} bytes", bytes.len()),
            Err(error) => error.to_string(),
        };
        text.replace(directory.path().to_str().unwrap(), "DIR")
    };
    let mut cases = vec![
        message(&|_| {}),
        message(&|keys| keys[0].1 = Value::Text("llama".into())),
        message(&|keys| keys[1].1 = Value::Text("qwen2".into())),
        message(&|keys| keys[2].1 = list(&["a", "b", "a"])),
        message(&|keys| keys[3].1 = Value::List(List::Signed(vec![1]))),
        message(&|keys| keys[3].1 = Value::List(List::Signed(vec![1, -1, 1]))),
        message(&|keys| keys[4].1 = list(&["a c"])),
    ];
    cases.push(message(&|keys| keys.truncate(4)));
    insta::assert_snapshot!(cases.join("\n\n"));
}
