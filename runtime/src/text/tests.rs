use super::*;
use proptest::prelude::*;

fn golden(path: &str) -> Tokenizer {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/");
    let json = std::fs::read(format!("{root}{path}/tokenizer.json")).unwrap();
    Tokenizer::open(&json, "model.ds4plan").unwrap()
}

fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut stream = ByteStream::default();
    let mut text: String = ids.iter().map(|&id| stream.push(&tokenizer.bytes_of(id))).collect();
    text.push_str(&stream.finish());
    text
}

#[test]
fn streamed_text_is_the_text() {
    let tokenizer = golden("models/kjv-9m");
    for text in ["In the beginning", "line\n\nline  two", "naïve 你好 🦀 \u{7f}\u{ad}\u{a0}", ""] {
        let ids = tokenizer.encode(text).unwrap();
        assert_eq!(streamed(&tokenizer, &ids), text);
    }
}

#[test]
fn the_golden_prompts_have_their_ids() {
    let tokenizer = golden("models/kjv-9m");
    let ids = tokenizer.encode("In the beginning").unwrap();
    assert_eq!(ids, [47, 84, 265, 811, 271, 84, 297]);
}

#[test]
fn special_tokens_and_unknown_ids_print_nothing() {
    let tokenizer = golden("oracle/tiny-a");
    let bos = tokenizer.id_of(BEGIN_OF_SENTENCE).unwrap();
    assert_eq!(streamed(&tokenizer, &[bos, 72, 4_000_000_000, 73]), "AB");
}

#[test]
fn names_of_special_tokens_are_those_tokens() {
    let tokenizer = golden("oracle/tiny-a");
    assert_eq!(tokenizer.encode("<｜User｜>A").unwrap(), [2, 72]);
}

proptest! {
    #[test]
    fn streams_agree_with_the_library(ids in proptest::collection::vec(0u32..300, 0..40)) {
        let tokenizer = golden("oracle/tiny-a");
        let whole = tokenizer.inner().decode(&ids, true).unwrap();
        prop_assert_eq!(streamed(&tokenizer, &ids), whole);
    }

    #[test]
    fn cuts_do_not_change_text(bytes: Vec<u8>, cut in 0usize..50) {
        let mut stream = ByteStream::default();
        let cut = cut.min(bytes.len());
        let pieces = [stream.push(&bytes[..cut]), stream.push(&bytes[cut..]), stream.finish()];
        prop_assert_eq!(pieces.concat(), String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn cuts_do_not_change_stops(
        text in "[abc]{0,20}",
        stops in proptest::collection::vec("[abc]{1,4}", 0..4),
        cuts in proptest::collection::vec(1usize..4, 20),
    ) {
        let whole = watched(&stops, std::iter::once(text.as_str()));
        let mut rest = text.as_str();
        let pieces = cuts.iter().map(|&n| {
            let (piece, tail) = rest.split_at(n.min(rest.len()));
            rest = tail;
            piece
        });
        prop_assert_eq!(watched(&stops, pieces), whole);
    }
}

/// What is printed of the pieces, and whether a stop was found.
fn watched<'a>(stops: &[String], pieces: impl Iterator<Item = &'a str>) -> (String, bool) {
    let mut watch = StopWatch::new(stops);
    let mut printed = String::new();
    for piece in pieces {
        let release = watch.push(piece);
        printed.push_str(&release.text);
        if release.stopped {
            return (printed, true);
        }
    }
    (printed + &watch.finish(), false)
}

#[test]
fn incomplete_characters_wait() {
    let mut stream = ByteStream::default();
    let crab = "🦀".as_bytes();
    assert_eq!(stream.push(&crab[..3]), "");
    assert_eq!(stream.push(&crab[3..]), "🦀");
    assert_eq!(stream.push(&[b'a', 0xff, 0xe4]), "a\u{fffd}");
    assert_eq!(stream.push(b"b"), "\u{fffd}b");
    assert_eq!(stream.push(&[0xe4, 0xbd]), "");
    assert_eq!(stream.finish(), "\u{fffd}");
    assert_eq!(stream.finish(), "");
}

#[test]
fn text_is_held_while_it_may_be_a_stop() {
    let mut watch = StopWatch::new(&["END".into(), "\n\n".into()]);
    let push = |watch: &mut StopWatch, text: &str| {
        let Release { text, stopped } = watch.push(text);
        (text, stopped)
    };
    assert_eq!(push(&mut watch, "an E"), ("an ".into(), false));
    assert_eq!(push(&mut watch, "N"), ("".into(), false));
    assert_eq!(push(&mut watch, "E"), ("EN".into(), false));
    assert_eq!(push(&mut watch, "ND of"), ("".into(), true));
    let mut watch = StopWatch::new(&["END".into()]);
    assert_eq!(push(&mut watch, "EN"), ("".into(), false));
    assert_eq!(watch.finish(), "EN");
}

#[test]
fn the_stop_that_ends_first_wins() {
    let stops = ["abc".to_string(), "b".to_string()];
    assert_eq!(watched(&stops, ["abc"].into_iter()), ("a".into(), true));
    let stops = ["aaa".to_string(), "a".to_string()];
    assert_eq!(watched(&stops, ["xaaa"].into_iter()), ("x".into(), true));
}

#[test]
fn a_chat_prompt_has_its_markers() {
    let tokenizer = golden("oracle/tiny-a");
    assert_eq!(chat_prompt(&tokenizer, "AB").unwrap(), [0, 2, 72, 73, 3, 5]);
    let json = br#"{"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}"#;
    let bare = Tokenizer::open(json, "model.ds4plan").unwrap();
    insta::assert_snapshot!(chat_prompt(&bare, "a").unwrap_err());
}

#[test]
fn unusable_tokenizers_are_refused() {
    insta::assert_snapshot!("missing", Tokenizer::open(b"", "model.ds4plan").err().unwrap());
    insta::assert_snapshot!("damaged", Tokenizer::open(b"{", "model.ds4plan").err().unwrap());
}

fn listed(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prompt.txt");
    std::fs::write(&path, bytes).unwrap();
    read_tokens(&path).map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), ""))
}

#[test]
fn lists_of_tokens() {
    assert_eq!(listed(b"0,17, 5\n\t9,,4294967295\n").unwrap(), [0, 17, 5, 9, u32::MAX]);
    assert!(listed(b" \n").unwrap().is_empty());
    insta::assert_snapshot!("word", listed(b"1 2\n3 4x 5\n").unwrap_err());
    insta::assert_snapshot!("large", listed("1,\u{3000}4294967296".as_bytes()).unwrap_err());
    insta::assert_snapshot!("bytes", listed(b"1 \xff").unwrap_err());
    let absent = read_tokens(std::path::Path::new("absent/prompt.txt")).unwrap_err();
    insta::assert_snapshot!("absent", absent);
}

#[test]
fn tokens_are_of_the_vocabulary() {
    assert!(check_range(&[0, 7], 8, "--tokens").is_ok());
    insta::assert_snapshot!(check_range(&[0, 8, 9], 8, "--tokens").unwrap_err());
}
