//! The plan's own tables.

use crate::dim::Dim;
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
    /// A launch: regions that run side by side.
    Launch = "l";
    /// A kernel of devices.
    Kernel = "k";
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
    /// How a device stores a row, in `weight_fields`: from every block of the row these bytes, field after field, each field
    /// padded to a whole word. Empty where the tensor's bytes stay as they are.
    pub fields: Run,
}

/// Bytes of a block that are stored together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct FieldRow {
    /// First byte within the block.
    pub begin: u32,
    /// Byte behind the last.
    pub end: u32,
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

/// A launch: regions that are independent of each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct LaunchRow {
    /// The device that executes it.
    pub device: Device,
    /// Its regions, in `regions`.
    pub regions: Run,
    /// Its kernels on a device, in `dispatches`, in their order; none in a plan for the CPU only.
    pub dispatches: Run,
}

/// A region: values that one kind of workgroup computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct RegionRow {
    /// Its values in `region_values`, ascending; the last one is stored or writes a state. Views need not be listed. A
    /// value without a slot exists inside the regions that list it only. A value with a slot is stored by the first
    /// region that lists it; a later one computes it again for itself.
    pub values: Run,
    /// How the last value is split over workgroups, in `region_tiles`: for each axis the number of neighbouring positions
    /// that a workgroup has, 0 where every workgroup has the whole axis. Empty where the region is one value, with the
    /// gathers that it does itself, and says nothing of a split.
    pub tiles: Run,
}

/// One use of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct DispatchRow {
    /// The kernel.
    pub kernel: Kernel,
    /// What its arguments are bound to, in `bindings`.
    pub bindings: Run,
}

/// What an argument is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct BindingRow {
    /// One of [`binding`].
    pub kind: u32,
    /// The value, state, weight or constant; 0 where the kind says it all.
    pub id: u32,
}

/// Kinds of bindings.
pub mod binding {
    /// The slot of a value.
    pub const SLOT: u32 = 0;
    /// The codes of a stored q8 value.
    pub const CODES: u32 = 1;
    /// The scales of a stored q8 value.
    pub const SCALES: u32 = 2;
    /// A state.
    pub const STATE: u32 = 3;
    /// A tensor of the checkpoint, its rows stored by its fields.
    pub const WEIGHT: u32 = 4;
    /// The E8M0 scales of a tensor, part after part.
    pub const WEIGHT_SCALES: u32 = 5;
    /// A table of the plan.
    pub const CONSTANT: u32 = 6;
    /// The magnitudes of `iq2_xxs`, 256 rows of 8 bytes.
    pub const MAGNITUDES: u32 = 7;
    /// The token ids of the step, a word each.
    pub const TOKENS: u32 = 8;
}

/// A kernel: a text for each target of the plan. Kernels that differ in their arguments only are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct KernelRow {
    /// Its name, from the first value that it computes; no two kernels of a plan share one.
    pub name: Text,
    /// Its entry point.
    pub entry: Text,
    /// Lanes of a workgroup.
    pub lanes: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Lanes that exchange values, 0 if none do: the device needs subgroups at least so wide.
    pub exchange: u32,
    /// Arguments behind the step's block, at most 32.
    pub arguments: u32,
    /// A bit for each argument that it writes, the first one lowest.
    pub written: u32,
    /// Iterations of all loops of a lane at most; `u32::MAX` stands for that many and more.
    pub iterations: u32,
    /// The parts of its grid, in `grid_parts`: the first workgroups do the first part's work, then come those of the second.
    pub grid: Run,
}

/// A number that a step chooses: `ceil(times * min(word, most) / per)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct ExtentRow {
    /// Place of the word in the step's block; `u32::MAX` if it is `most`.
    pub word: u32,
    /// Largest value of the word.
    pub most: u32,
    /// Factor.
    pub times: u32,
    /// Divisor, not zero.
    pub per: u32,
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
    /// Values of all regions.
    222 region_values: Value;
    /// Stored values of all entry points.
    223 slots: SlotRow;
    /// Places of the states.
    224 state_places: StatePlaceRow;
    /// Largest `position + columns`: one row.
    225 context: u32;
    /// Fields of all weights.
    226 weight_fields: FieldRow;
    /// Regions of all launches.
    227 regions: RegionRow;
    /// Splits of all regions.
    228 region_tiles: u32;
    /// The tokenizer in the JSON form of the `tokenizers` crate.
    230 tokenizer: u8;
    /// Dimensions whose values stand in the step's block, behind the bits of 0.0 and -0.0.
    240 step_dims: Dim;
    /// Kernels.
    241 kernels: KernelRow;
    /// Axes of all parts of grids.
    242 extents: ExtentRow;
    /// Names of the targets that each kernel has a text for.
    243 targets: Text;
    /// Texts of the kernels, in `source_text`: for each kernel one a target.
    244 sources: Run;
    /// UTF-8 of all sources.
    245 source_text: u8;
    /// Uses of kernels.
    246 dispatches: DispatchRow;
    /// Bindings of all uses.
    247 bindings: BindingRow;
    /// Parts of grids: their axes, slowest first, in `extents`.
    249 grid_parts: Run;
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

    /// The regions of a launch.
    pub fn regions(&self, launch: &LaunchRow) -> &'a [RegionRow] {
        launch.regions.of(self.regions)
    }

    /// The values of a region.
    pub fn values(&self, region: &RegionRow) -> &'a [Value] {
        region.values.of(self.region_values)
    }

    /// The split of a region.
    pub fn tiles(&self, region: &RegionRow) -> &'a [u32] {
        region.tiles.of(self.region_tiles)
    }

    /// For each launch of an entry point the values of its regions.
    pub fn lists(&self, entry: &EntryRow) -> Vec<Vec<&'a [Value]>> {
        let launches = entry.launches.of(self.launches).iter();
        launches.map(|launch| self.regions(launch).iter().map(|region| self.values(region)).collect()).collect()
    }

    /// The text of a kernel for target number `target` of the plan.
    pub fn source(&self, kernel: Kernel, target: usize) -> &'a str {
        let run = self.sources[kernel.0 as usize * self.targets.len() + target];
        std::str::from_utf8(run.of(self.source_text)).unwrap_or("\u{fffd}")
    }

    /// The number of a target by its name.
    pub fn target(&self, name: &str) -> Option<usize> {
        self.targets.iter().position(|&text| self.str(text) == name)
    }

    /// The words of the step's block; `value` gives that of a dimension.
    pub fn step_words(&self, value: impl Fn(Dim) -> u32) -> Vec<u32> {
        let zeros = [0.0f32.to_bits(), (-0.0f32).to_bits()];
        zeros.into_iter().chain(self.step_dims.iter().map(|&dim| value(dim))).collect()
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
