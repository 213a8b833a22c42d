//! What makes two checkpoints the same model, wherever they lie.

use ds4_ir::entity::Entity;

use super::gguf_value::{List, Value};
use super::json::Json;
use super::table::{Checkpoint, Metadata};

impl Checkpoint {
    /// BLAKE3 hash of the tensor table and the metadata, sorted by name. Paths are no part of it, nor
    /// are the weights: see [`Checkpoint::contents_hash`].
    pub fn identity(&self) -> [u8; 32] {
        let mut out = Canonical(blake3::Hasher::new());
        out.text("ds4 model identity 1");
        self.write_tensors(&mut out);
        match &self.metadata {
            Metadata::Gguf(table) => {
                out.text("gguf");
                out.number(table.len() as u64);
                for (key, value) in table {
                    out.text(key);
                    out.value(value);
                }
            }
            Metadata::Config(json) => {
                out.text("config");
                out.json(json);
            }
        }
        *out.0.finalize().as_bytes()
    }

    fn write_tensors(&self, out: &mut Canonical) {
        let tensors = &self.tensors;
        out.number(tensors.len() as u64);
        for id in tensors.sorted() {
            let row = id.index();
            out.text(&tensors.name[row]);
            out.number(tensors.format[row] as u64);
            out.numbers(tensors.shape_of(id));
            out.number(tensors.file[row].0.into());
            out.numbers(&[tensors.offset[row], tensors.bytes[row]]);
            out.number(tensors.scale[row].is_some().into());
            if let Some(scale) = tensors.scale[row] {
                out.numbers(&[scale.file.0.into(), scale.offset]);
                out.numbers(&scale.shape);
                out.numbers(&scale.block.map(u64::from));
            }
        }
    }

    /// Hash of the contents of all files, in hexadecimal; see [`ds4_ir::plan::contents`]. This reads the whole checkpoint.
    pub fn contents_hash(&self, progress: impl FnMut(usize)) -> String {
        ds4_ir::plan::contents::contents_hash(self.files.ids().map(|file| self.files.bytes(file)), progress)
    }
}

/// Writes values so that different ones give different bytes: tagged, with lengths in front.
struct Canonical(blake3::Hasher);

impl Canonical {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn numbers(&mut self, numbers: &[u64]) {
        self.number(numbers.len() as u64);
        for &number in numbers {
            self.number(number);
        }
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn tag(&mut self, tag: u8) {
        self.0.update(&[tag]);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Unsigned(v) => self.tagged(0, *v),
            Value::Signed(v) => self.tagged(1, *v as u64),
            Value::F32(v) => self.tagged(2, v.to_bits().into()),
            Value::F64(v) => self.tagged(3, v.to_bits()),
            Value::Bool(v) => self.tagged(4, (*v).into()),
            Value::Text(v) => {
                self.tag(5);
                self.text(v);
            }
            Value::List(v) => {
                self.tag(6);
                self.list(v);
            }
        }
    }

    fn tagged(&mut self, tag: u8, number: u64) {
        self.tag(tag);
        self.number(number);
    }

    fn list(&mut self, list: &List) {
        self.number(list.len() as u64);
        match list {
            List::Unsigned(items) => items.iter().for_each(|v| self.tagged(0, *v)),
            List::Signed(items) => items.iter().for_each(|v| self.tagged(1, *v as u64)),
            List::F32(items) => items.iter().for_each(|v| self.tagged(2, v.to_bits().into())),
            List::F64(items) => items.iter().for_each(|v| self.tagged(3, v.to_bits())),
            List::Bool(items) => items.iter().for_each(|v| self.tagged(4, (*v).into())),
            List::Text(items) => items.iter().for_each(|v| {
                self.tag(5);
                self.text(v);
            }),
            List::List(items) => items.iter().for_each(|v| {
                self.tag(6);
                self.list(v);
            }),
        }
    }

    fn json(&mut self, json: &Json) {
        match json {
            Json::Null => self.tag(0),
            Json::Bool(v) => self.tagged(1, (*v).into()),
            Json::Number(v) => {
                self.tag(2);
                self.text(v);
            }
            Json::Text(v) => {
                self.tag(3);
                self.text(v);
            }
            Json::Array(items) => {
                self.tagged(4, items.len() as u64);
                items.iter().for_each(|item| self.json(item));
            }
            Json::Object(entries) => {
                self.tagged(5, entries.len() as u64);
                let mut sorted: Vec<_> = entries.iter().collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                for (key, value) in sorted {
                    self.text(key);
                    self.json(value);
                }
            }
        }
    }
}
