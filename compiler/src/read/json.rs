//! JSON as a tree that keeps numbers as their text.
//!
//! A decimal number is rounded once, to the type that wants it; a value tree of `f64` would round twice.
//! Keys of an object must differ.

use ds4_ir::diagnostic::{Diagnostic, Place, codes};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Deepest nesting that is read.
const MAX_DEPTH: u32 = 32;
/// Largest text that a diagnostic shows a line of.
const MAX_SHOWN: usize = 1 << 16;

/// A JSON value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// A string.
    Text(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of the text.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses all of `bytes`, which came from `file`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Json, Diagnostic> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Diagnostic::new(codes::JSON, "the text is not UTF-8")
                .at(Place::item(file, format!("byte {}", error.valid_up_to())))
        })?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|e| malformed(file, text, &e))?;
        build(raw, MAX_DEPTH).map_err(|problem| problem.explain(file))
    }

    /// The value at a path of object keys joined by dots, if every step exists.
    pub fn get(&self, path: &str) -> Option<&Json> {
        path.split('.').try_fold(self, |value, key| value.member(key))
    }

    /// The value of one key of an object.
    pub fn member(&self, key: &str) -> Option<&Json> {
        self.as_object()?.iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    /// The entries of an object.
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// The entries of an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(entries) => Some(entries),
            _ => None,
        }
    }

    /// A string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number written as a nonnegative integer that fits.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A number, rounded once to f32.
    pub fn as_f32(&self) -> Option<f32> {
        match self {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// What the value is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Json::Null => "null".into(),
            Json::Bool(value) => value.to_string(),
            Json::Number(text) => text.chars().take(60).collect(),
            Json::Text(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
            Json::Array(entries) => format!("an array of {}", entries.len()),
            Json::Object(entries) => format!("an object of {}", entries.len()),
        }
    }
}

fn malformed(file: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    let mut place = Place::item(file, format!("line {}", error.line()));
    if text.len() <= MAX_SHOWN {
        let start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = (start + error.column().saturating_sub(1)).min(text.len());
        place.source = Some((text.to_owned(), at..at + 1));
    }
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    Diagnostic::new(codes::JSON, format!("malformed JSON: {reason}")).at(place)
}

/// What may be wrong inside text whose syntax is right.
enum Problem {
    Depth,
    Duplicate(String),
    Text(String),
}

impl Problem {
    fn explain(self, file: &str) -> Diagnostic {
        let diagnostic = match self {
            Problem::Depth => Diagnostic::new(codes::JSON, "the JSON is nested too deeply")
                .wanted(format!("at most {MAX_DEPTH} levels"), "more"),
            Problem::Duplicate(key) => {
                let place = Place::item(file, format!("key {key}"));
                return Diagnostic::new(codes::KEY_DUPLICATE, "the key occurs twice").at(place);
            }
            Problem::Text(reason) => Diagnostic::new(codes::JSON, format!("malformed JSON: {reason}")),
        };
        diagnostic.at(Place::file(file))
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        let message = error.to_string();
        Problem::Text(message.split(" at line ").next().unwrap_or_default().into())
    }
}

fn build(raw: &RawValue, depth: u32) -> Result<Json, Problem> {
    let text = raw.get();
    if depth == 0 {
        return Err(Problem::Depth);
    }
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let entries: Entries = serde_json::from_str(text)?;
            Json::Object(build_object(entries, depth)?)
        }
        Some(b'[') => {
            let items: Items = serde_json::from_str(text)?;
            let items = items.0.into_iter().map(|item| build(item, depth - 1));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Some(b'"') => Json::Text(serde_json::from_str(text)?),
        Some(b't') => Json::Bool(true),
        Some(b'f') => Json::Bool(false),
        Some(b'n') => Json::Null,
        _ => Json::Number(text.to_owned()),
    })
}

fn build_object(entries: Entries, depth: u32) -> Result<Vec<(String, Json)>, Problem> {
    let mut names: Vec<&str> = entries.0.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::Duplicate(pair[0].to_owned()));
    }
    entries.0.into_iter().map(|(name, value)| Ok((name, build(value, depth - 1)?))).collect()
}

/// An object's entries with duplicates, values unparsed.
struct Entries<'a>(Vec<(String, &'a RawValue)>);
/// An array's items, unparsed.
struct Items<'a>(Vec<&'a RawValue>);

struct EntriesVisitor;
struct ItemsVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Items(items))
    }
}

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Json::parse("x.json", text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn numbers_keep_their_text() {
        let json = Json::parse("x", br#"{"a": {"b": 1e-6}, "c": [1, -2.5, 18446744073709551615]}"#);
        let json = json.unwrap();
        assert_eq!(json.get("a.b"), Some(&Json::Number("1e-6".into())));
        assert_eq!(json.get("a.b").and_then(Json::as_f32), Some(1e-6));
        assert_eq!(json.get("c").unwrap().as_array().unwrap()[2].as_u64(), Some(u64::MAX));
        assert_eq!(json.get("a.x"), None);
    }

    #[test]
    fn a_decimal_is_rounded_once() {
        // Just above the midpoint of 1 and the next f32; as f64 it is the midpoint, which rounds to 1.
        let text = "1.00000005960464477539062500000000001";
        let json = Json::parse("x", text.as_bytes()).unwrap();
        assert_eq!(json.as_f32(), Some(1.0 + f32::EPSILON));
        assert_eq!(text.parse::<f64>().unwrap() as f32, 1.0);
    }

    #[test]
    fn faults_are_diagnostics() {
        assert!(error("{\"a\": 1, \"a\": 2}").contains("DS4-0115"));
        assert!(error(&"[".repeat(5000)).contains("DS4-0118"));
        let deep = "[".repeat(40) + &"]".repeat(40);
        assert!(error(&deep).contains("nested too deeply"));
        assert!(error("\"\\ud800\"").contains("DS4-0118"));
        assert!(error("").contains("DS4-0118"));
        insta::assert_snapshot!(error("{\"a\": 1,\n \"b\": tru}\n"));
    }
}
