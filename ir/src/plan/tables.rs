//! The plan's own tables.

use crate::entity::Run;
use crate::graph::Value;

crate::entities! {
    /// A string of the plan (the graph has its own).
    Text = "t";
    /// A file of the checkpoint.
    File = "f";
    /// A device that the plan was made for.
    Device = "dev";
    /// An entry point: decode of one column, decode of several, prefill.
    Entry = "e";
    /// A launch: an interval of values that one kernel computes.
    Launch = "l";
}

/// An option or fact of the compilation, as text: `activations` = `q8`, `compiler` = `0.1.0`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct OptionRow {
    /// Key.
    pub key: Text,
    /// Value.
    pub value: Text,
}

/// A file of the checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct FileRow {
    /// Path below the model's path (which is an option of the plan, `model.path`).
    pub path: Text,
    /// Zero.
    pub reserved: u32,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of the header: everything in front of the weights' data.
    pub header_len: u64,
    /// BLAKE3 of the header.
    pub header_hash: [u8; 32],
}

/// A contiguous piece of a weight: all of it, or one index of its first axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct PartRow {
    /// File of the data.
    pub file: File,
    /// File of the scales; the same as `file` where the format has none.
    pub scale_file: File,
    /// First byte of the data in its file.
    pub offset: u64,
    /// First byte of the scales in their file.
    pub scale_offset: u64,
}

/// Where a weight lies, one row per weight of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct WeightPlaceRow {
    /// One part, or one per index of the first axis, in `parts`.
    pub parts: Run,
    /// Rows that share a scale (0 where the format has none).
    pub scale_rows: u32,
    /// Columns that share a scale (0 where the format has none).
    pub scale_cols: u32,
}

/// An entry point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct EntryRow {
    /// `decode1`, `decode` or `prefill`.
    pub name: Text,
    /// Largest number of columns.
    pub columns: u32,
    /// Largest number of outputs.
    pub outputs: u32,
    /// Its launches, in `launches`.
    pub launches: Run,
    /// Its slots, in `slots`.
    pub slots: Run,
    /// Zero.
    pub reserved: u32,
    /// Bytes of its arena.
    pub arena_bytes: u64,
}

/// A launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct LaunchRow {
    /// The device that executes it.
    pub device: Device,
    /// Its values in `launch_values`, ascending; the last one at least is stored. Views need no launch and are not
    /// listed; an interior value without a slot exists inside the launch only.
    pub values: Run,
}

/// A stored value of an entry point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct SlotRow {
    /// The value.
    pub value: Value,
    /// The value whose memory holds it: itself, or a `concat` that has it as operand.
    pub within: Value,
    /// First byte in the arena (of `within`'s memory; repeated for values inside others).
    pub offset: u64,
    /// Bytes at the entry point's bounds.
    pub bytes: u64,
}

/// Where a state lies, one row per state of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct StatePlaceRow {
    /// First byte in the state arena.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

crate::tables! {
    /// A plan's own tables as the compiler builds them.
    owned PlanTables;
    /// A plan's own tables as every reader takes them.
    view Plan;
    /// BLAKE3 of the model's tensor table and metadata: one row.
    200 model_hash: [u8; 32];
    /// Options and facts of the compilation.
    201 options: OptionRow;
    /// Strings in `text`.
    202 texts: Run;
    /// UTF-8 text of all strings.
    203 text: u8;
    /// Files of the checkpoint.
    210 files: FileRow;
    /// Places of the weights.
    211 weight_places: WeightPlaceRow;
    /// Pieces of the weights.
    212 parts: PartRow;
    /// Entry points.
    220 entries: EntryRow;
    /// Launches of all entry points.
    221 launches: LaunchRow;
    /// Values of all launches.
    222 launch_values: Value;
    /// Stored values of all entry points.
    223 slots: SlotRow;
    /// Places of the states.
    224 state_places: StatePlaceRow;
    /// Largest `position + columns`: one row.
    225 context: u32;
    /// The tokenizer in the JSON form of the `tokenizers` crate.
    230 tokenizer: u8;
}

impl<'a> Plan<'a> {
    /// A string.
    pub fn str(&self, text: Text) -> &'a str {
        std::str::from_utf8(self.texts[text.0 as usize].of(self.text)).unwrap_or("\u{fffd}")
    }

    /// An option or fact by its key.
    pub fn option(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|row| self.str(row.key) == key).map(|row| self.str(row.value))
    }

    /// An entry point by its name.
    pub fn entry(&self, name: &str) -> Option<(Entry, &'a EntryRow)> {
        let index = self.entries.iter().position(|row| self.str(row.name) == name)?;
        Some((Entry(index as u32), &self.entries[index]))
    }

    /// The bounds of an entry point.
    pub fn bounds(&self, entry: &EntryRow) -> crate::Bounds {
        crate::Bounds { context: self.context[0], columns: entry.columns, outputs: entry.outputs }
    }
}

impl PlanTables {
    /// The id of a string; equal strings share one.
    pub fn intern(&mut self, text: &str) -> Text {
        let found = self.texts.iter().position(|run| run.of(&self.text) == text.as_bytes());
        let index = found.unwrap_or_else(|| {
            let run = Run::push(&mut self.text, text.as_bytes());
            self.texts.push(run);
            self.texts.len() - 1
        });
        Text(index as u32)
    }

    /// Adds an option or fact.
    pub fn set_option(&mut self, key: &str, value: &str) {
        let row = OptionRow { key: self.intern(key), value: self.intern(value) };
        self.options.push(row);
    }
}
