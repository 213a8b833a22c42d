//! Released checkpoints: a directory with `config.json` and safetensors files.

use std::collections::BTreeMap;
use std::path::Path;

use ds4_ir::diagnostic::{Diagnostic, Place, codes};

use super::json::Json;
use super::safetensors::{Entry, parse};
use super::scales::{Located, pair};
use super::table::{Checkpoint, FileId, FileKind, Files, Metadata, TokenizerSource};

const CONFIG: &str = "config.json";
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Reads the checkpoint in directory `path`.
pub(super) fn read(path: &Path) -> Result<Checkpoint, Diagnostic> {
    if !path.join(CONFIG).is_file() {
        return Err(not_a_checkpoint(path));
    }
    let mut files = Files::default();
    let (shards, index) = shard_names(path)?;
    let mut located = Vec::new();
    for name in &shards {
        let (file, entries) = files.add(path.join(name), FileKind::Data, |input| {
            let shard = parse(input)?;
            Ok((shard.entries, shard.header_len))
        })?;
        located.extend(entries.into_iter().map(|entry| Located { file, entry }));
    }
    let config = add_json(&mut files, path, CONFIG)?;
    if let Some(map) = &index {
        add_json(&mut files, path, INDEX)?;
        check_index(path, map, &files, &located)?;
    }
    let block = weight_block(path, &config)?;
    let tensors = pair(&files, located, block)?;
    let beside = path.join("tokenizer.json");
    Ok(Checkpoint {
        files,
        tensors,
        metadata: Metadata::Config(config),
        tokenizer: if beside.is_file() { TokenizerSource::File(beside) } else { TokenizerSource::Absent },
    })
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn not_a_checkpoint(path: &Path) -> Diagnostic {
    let message = "the directory is no checkpoint";
    Diagnostic::new(codes::CHECKPOINT_KIND, message)
        .at(Place::file(display(path)))
        .wanted("a directory with config.json and .safetensors files", "no config.json")
        .help(gguf_help(path))
}

/// Points to the GGUF files of a directory, which must be named one by one.
fn gguf_help(path: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(path) else {
        return String::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    match names.filter(|name| name.ends_with(".gguf")).min() {
        Some(name) => format!("to compile a GGUF file give its name, such as {name}"),
        None => String::new(),
    }
}

/// The names of the weight files and, if there is one, the index that gives them.
fn shard_names(path: &Path) -> Result<(Vec<String>, Option<Json>), Diagnostic> {
    if path.join(SINGLE).is_file() {
        return Ok((vec![SINGLE.into()], None));
    }
    if !path.join(INDEX).is_file() {
        let message = "the directory has no weights";
        return Err(Diagnostic::new(codes::NO_WEIGHTS, message)
            .at(Place::file(display(path)))
            .wanted(format!("{SINGLE} or {INDEX}"), "neither")
            .help(gguf_help(path)));
    }
    let mut scratch = Files::default();
    let index = add_json(&mut scratch, path, INDEX)?;
    let mut names: Vec<String> =
        weight_map(path, &index)?.map(|(_, file)| file.map(str::to_owned)).collect::<Result<_, _>>()?;
    names.sort_unstable();
    names.dedup();
    match names.iter().find(|name| !path.join(name).is_file()) {
        None => Ok((names, Some(index))),
        Some(name) => Err(Diagnostic::new(codes::SPLIT_MISSING, "a weight file of the checkpoint is missing")
            .at(Place::file(display(&path.join(name))))
            .wanted(format!("{} files", names.len()), format!("no file {name}"))
            .help("the download may be incomplete")),
    }
}

type Mapped<'a> = (&'a str, Result<&'a str, Diagnostic>);

/// The pairs of tensor name and file name of an index. A file name must not leave the directory.
fn weight_map<'a>(path: &Path, index: &'a Json) -> Result<impl Iterator<Item = Mapped<'a>> + use<'a>, Diagnostic> {
    let file = display(&path.join(INDEX));
    let map = index.get("weight_map").and_then(Json::as_object);
    let map = map.ok_or_else(|| {
        let found = index.get("weight_map").map_or("nothing".into(), Json::describe);
        Diagnostic::new(codes::INDEX_MISMATCH, "the index has no weight_map")
            .at(Place::item(file.clone(), "key weight_map"))
            .wanted("an object of tensor names and file names", found)
    })?;
    Ok(map.iter().map(move |(name, value)| {
        let plain =
            |text: &&str| !text.is_empty() && !text.contains(['/', '\\', '\0']) && *text != "." && *text != "..";
        let shard = value.as_text().filter(plain).ok_or_else(|| {
            Diagnostic::new(codes::INDEX_MISMATCH, "a file name of the index is malformed")
                .at(Place::item(file.clone(), format!("tensor {name}")))
                .wanted("the name of a file in the same directory", value.describe())
        });
        (name.as_str(), shard)
    }))
}

fn add_json(files: &mut Files, path: &Path, name: &str) -> Result<Json, Diagnostic> {
    let (_, json) =
        files.add(path.join(name), FileKind::Text, |input| Ok((Json::parse(input.name, input.bytes)?, input.size)))?;
    Ok(json)
}

/// Checks that index and files name the same tensors in the same places.
fn check_index(path: &Path, index: &Json, files: &Files, located: &[Located]) -> Result<(), Diagnostic> {
    let at = |name: &str| Place::item(display(&path.join(INDEX)), format!("tensor {name}"));
    let shard_of = |file: FileId| {
        let path = &files.path[file.0 as usize];
        path.file_name().and_then(|n| n.to_str()).unwrap_or("")
    };
    let mut left: BTreeMap<(&str, &str), &Entry> = BTreeMap::new();
    for Located { file, entry } in located {
        left.insert((&entry.name, shard_of(*file)), entry);
    }
    for (name, shard) in weight_map(path, index)? {
        let shard = shard?;
        if left.remove(&(name, shard)).is_none() {
            let message = "the index names a tensor that its file does not hold";
            return Err(Diagnostic::new(codes::INDEX_MISMATCH, message)
                .at(at(name))
                .wanted(format!("the tensor in {shard}"), "no such tensor"));
        }
    }
    match left.keys().next() {
        None => Ok(()),
        Some((name, shard)) => {
            let message = "a file holds a tensor that the index does not name";
            Err(Diagnostic::new(codes::INDEX_MISMATCH, message)
                .at(at(name))
                .wanted(format!("an entry with {shard}"), "no such entry"))
        }
    }
}

/// Rows and columns of an FP8 scale block, if the configuration has FP8 weights.
fn weight_block(path: &Path, config: &Json) -> Result<Option<[u32; 2]>, Diagnostic> {
    let key = "quantization_config.weight_block_size";
    let Some(value) = config.get(key) else {
        return Ok(None);
    };
    let sides = value.as_array().unwrap_or(&[]).iter();
    let sides: Vec<u32> = sides
        .filter_map(|side| u32::try_from(side.as_u64()?).ok())
        .filter(|side| (1..=1 << 16).contains(side))
        .collect();
    match (<[u32; 2]>::try_from(sides), value.as_array()) {
        (Ok(block), Some([_, _])) => Ok(Some(block)),
        _ => Err(Diagnostic::new(codes::KEY_VALUE, "the block size is malformed")
            .at(Place::item(display(&path.join(CONFIG)), format!("key {key}")))
            .wanted("two integers from 1 to 65536", value.describe())),
    }
}
