//! The memory of a plan on a device.

use std::collections::BTreeMap;

use ds4_ir::graph::{Graph, State, Weight};
use ds4_ir::plan::layout::q8_scales_at;
use ds4_ir::plan::tables::binding;
use ds4_ir::plan::{ALIGN, BindingRow, Plan, SlotRow, StatePlaceRow};
use ds4_ir::{Bounds, Diagnostic};

use super::progress;
use super::weights::Tensor;
use crate::device::backend::{Backend, Buffer, Piece};

/// What a buffer grows with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Values of a step: with its columns.
    Values,
    /// States: with the context.
    States,
    /// Tensors of the model, and tables: with neither.
    Fixed,
}

/// A buffer, made or not.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) kind: Kind,
}

/// The numbers of the buffers that every plan has; those of the tensors follow.
const STEP: usize = 0;
const TOKENS: usize = 1;
const VALUES: usize = 2;
const STATES: usize = 3;
const TABLES: usize = 4;

/// Name of the buffer that holds the values of a step; it begins unwritten.
pub const VALUES_NAME: &str = "the values of a step";

/// A range of a buffer that may not be made yet.
#[derive(Clone, Copy)]
struct Range {
    row: usize,
    offset: u64,
    bytes: u64,
}

/// Buffers and what lies where in them.
pub(super) struct Memory<'a> {
    rows: Vec<Row>,
    /// The device's buffers, of [`Memory::make`].
    buffers: Vec<Buffer>,
    state_places: Vec<StatePlaceRow>,
    /// By kind and id: weights, their scales, constants, magnitudes.
    fixed: BTreeMap<(u32, u32), Range>,
    /// By kind and id: what tensors hold, until they are made.
    tensors: BTreeMap<(u32, u32), Tensor<'a>>,
}

impl<'a> Memory<'a> {
    /// Says what buffers a plan needs; makes none.
    pub(super) fn of(graph: &Graph<'_>, plan: &Plan<'_>, files: &[&'a [u8]]) -> Result<Memory<'a>, Diagnostic> {
        let arena = plan.entries.iter().map(|e| e.arena_bytes).max().unwrap_or(0);
        let states = plan.state_places.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
        let columns = plan.entries.iter().map(|e| e.columns).max().unwrap_or(1);
        let rows = [
            ("the step's block", 4 * (2 + plan.step_dims.len() as u64), Kind::Fixed),
            ("the tokens of a step", 4 * u64::from(columns), Kind::Values),
            (VALUES_NAME, arena, Kind::Values),
            ("all states", states, Kind::States),
            ("all tables", 0, Kind::Fixed),
        ];
        let row = |(name, bytes, kind): (&str, u64, Kind)| Row { name: name.into(), bytes: bytes.max(4), kind };
        let mut memory = Memory {
            rows: rows.into_iter().map(row).collect(),
            buffers: Vec::new(),
            state_places: plan.state_places.to_vec(),
            fixed: BTreeMap::new(),
            tensors: BTreeMap::new(),
        };
        memory.place_tables(graph);
        memory.place_tensors(graph, plan, files)?;
        Ok(memory)
    }

    /// Places constants, one behind the other, and the magnitudes.
    fn place_tables(&mut self, graph: &Graph<'_>) {
        let mut at = 0;
        for (kind, id, bytes) in tables(graph) {
            let bytes = (bytes.len() as u64).max(4);
            self.fixed.insert((kind, id), Range { row: TABLES, offset: at, bytes });
            at += bytes.next_multiple_of(ALIGN);
        }
        self.rows[TABLES].bytes = at.max(4);
    }

    /// A buffer for each tensor that some kernel reads.
    fn place_tensors(&mut self, graph: &Graph<'_>, plan: &Plan<'_>, files: &[&'a [u8]]) -> Result<(), Diagnostic> {
        let read = |row: &&BindingRow| matches!(row.kind, binding::WEIGHT | binding::WEIGHT_SCALES);
        let mut wanted: Vec<(u32, u32)> = plan.bindings.iter().filter(read).map(|row| (row.id, row.kind)).collect();
        wanted.sort();
        wanted.dedup();
        for (id, kind) in wanted {
            let tensor = Tensor::of(graph, plan, files, Weight(id))?;
            let name = graph.name(graph.weights[id as usize].name);
            let (name, bytes) = match kind {
                binding::WEIGHT => (format!("tensor `{name}`"), tensor.bytes()),
                _ => (format!("the scales of `{name}`"), tensor.scale_bytes()),
            };
            self.fixed.insert((kind, id), Range { row: self.rows.len(), offset: 0, bytes });
            self.tensors.insert((kind, id), tensor);
            self.rows.push(Row { name, bytes, kind: Kind::Fixed });
        }
        Ok(())
    }

    /// Makes the buffers and fills those that no step changes.
    pub(super) fn make(mut self, graph: &Graph<'_>, backend: &mut dyn Backend) -> Result<Memory<'static>, Diagnostic> {
        for row in &self.rows {
            self.buffers.push(backend.buffer(&row.name, row.bytes)?);
        }
        for (kind, id, bytes) in tables(graph).into_iter().filter(|(_, _, bytes)| !bytes.is_empty()) {
            upload(backend, self.piece_of(self.fixed[&(kind, id)]), bytes)?;
        }
        let total = self.tensors.keys().map(|key| self.fixed[key].bytes).sum();
        let bar = progress(total, "weights");
        for (key, tensor) in std::mem::take(&mut self.tensors) {
            backend.fill(self.piece_of(self.fixed[&key]), &mut |at, out| {
                match key.0 {
                    binding::WEIGHT => tensor.write(at, out),
                    _ => tensor.write_scales(at, out),
                }
                bar.inc(out.len() as u64);
            })?;
        }
        bar.finish_and_clear();
        let Memory { rows, buffers, state_places, fixed, .. } = self;
        Ok(Memory { rows, buffers, state_places, fixed, tensors: BTreeMap::new() })
    }

    /// All buffers.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn arena_bytes(&self) -> u64 {
        self.rows[VALUES].bytes
    }

    pub(super) fn state_bytes(&self) -> u64 {
        self.rows[STATES].bytes
    }

    fn piece_of(&self, range: Range) -> Piece {
        Piece { buffer: self.buffers[range.row], offset: range.offset, bytes: range.bytes }
    }

    fn whole(&self, row: usize) -> Range {
        Range { row, offset: 0, bytes: self.rows[row].bytes }
    }

    /// The step's block.
    pub(super) fn step(&self) -> Piece {
        self.piece_of(self.whole(STEP))
    }

    /// A range of the arena.
    pub(super) fn arena_piece(&self, offset: u64, bytes: u64) -> Piece {
        self.piece_of(Range { row: VALUES, offset, bytes })
    }

    /// A state.
    pub(super) fn state(&self, state: State) -> Piece {
        self.piece_of(self.state_range(state))
    }

    fn state_range(&self, state: State) -> Range {
        let place = self.state_places[state.0 as usize];
        Range { row: STATES, offset: place.offset, bytes: place.bytes }
    }

    /// What a binding is bound to in an entry point with these bounds and slots. Empty memory is bound as one word, which
    /// nothing reads.
    fn range(&self, graph: &Graph<'_>, bounds: Bounds, slots: &[SlotRow], row: &BindingRow) -> Option<Range> {
        let slot = || slots.binary_search_by_key(&row.id, |slot| slot.value.0).ok().map(|i| &slots[i]);
        let value = |offset, bytes| Range { row: VALUES, offset, bytes };
        // The elements of a stored q8 value: a byte each, then a scale for 32.
        let count = |slot: &SlotRow| -> usize {
            graph.max_extents(graph.value_shape[slot.value.0 as usize], bounds).iter().product()
        };
        let range = match row.kind {
            binding::SLOT => value(slot()?.offset, slot()?.bytes),
            binding::CODES => value(slot()?.offset, count(slot()?) as u64),
            binding::SCALES => {
                let count = count(slot()?);
                value(slot()?.offset + q8_scales_at(count) as u64, count as u64 / 32 * 4)
            }
            binding::STATE => self.state_range(State(row.id)),
            binding::TOKENS => self.whole(TOKENS),
            _ => *self.fixed.get(&(row.kind, row.id))?,
        };
        Some(Range { bytes: range.bytes.max(4), ..range })
    }

    /// Bytes of a binding.
    pub(super) fn bytes(&self, graph: &Graph<'_>, bounds: Bounds, slots: &[SlotRow], row: &BindingRow) -> u64 {
        self.range(graph, bounds, slots, row).map_or(0, |range| range.bytes)
    }

    /// The memory of a binding.
    pub(super) fn piece(
        &self,
        graph: &Graph<'_>,
        bounds: Bounds,
        slots: &[SlotRow],
        row: &BindingRow,
    ) -> Option<Piece> {
        self.range(graph, bounds, slots, row).map(|range| self.piece_of(range))
    }

    /// What grows with a binding, and its name for people.
    pub(super) fn describe(&self, graph: &Graph<'_>, row: &BindingRow) -> (String, Kind) {
        let id = row.id as usize;
        match row.kind {
            binding::STATE => (format!("state `{}`", graph.name(graph.states[id].name)), Kind::States),
            binding::SLOT | binding::CODES | binding::SCALES => {
                let path = graph.span_path(graph.value_span[id]);
                let op = graph.op(ds4_ir::Value(row.id)).name();
                (format!("v{id} (`{op}`) in `{path}`"), Kind::Values)
            }
            binding::TOKENS => (self.rows[TOKENS].name.clone(), Kind::Values),
            _ => {
                let range = self.fixed.get(&(row.kind, row.id));
                (range.map_or(String::new(), |range| self.rows[range.row].name.clone()), Kind::Fixed)
            }
        }
    }

    /// Writes what a step begins with.
    pub(super) fn begin(&self, backend: &mut dyn Backend, words: &[u32], tokens: &[u32]) -> Result<(), Diagnostic> {
        for (row, words) in [(STEP, words), (TOKENS, tokens)] {
            let bytes: &[u8] = bytemuck::cast_slice(words);
            upload(backend, Piece { bytes: bytes.len() as u64, ..self.piece_of(self.whole(row)) }, bytes)?;
        }
        Ok(())
    }

    /// Sets all states to their beginning.
    pub(super) fn clear_states(&self, backend: &mut dyn Backend) -> Result<(), Diagnostic> {
        backend.fill(self.piece_of(self.whole(STATES)), &mut |_, out| out.fill(0))
    }
}

fn upload(backend: &mut dyn Backend, piece: Piece, bytes: &[u8]) -> Result<(), Diagnostic> {
    backend.fill(piece, &mut |at, out| out.copy_from_slice(&bytes[at as usize..at as usize + out.len()]))
}

/// Constants and magnitudes: kind, id, bytes.
fn tables<'g>(graph: &Graph<'g>) -> Vec<(u32, u32, &'g [u8])> {
    let bytes = |row: &ds4_ir::graph::ConstantRow| bytemuck::cast_slice(row.words.of(graph.constant_words));
    let constants = (0..).zip(graph.constants).map(|(i, row)| (binding::CONSTANT, i, bytes(row)));
    let magnitudes = (binding::MAGNITUDES, 0, bytemuck::cast_slice(&ds4_ir::formats::iq2_xxs::GRID));
    constants.chain([magnitudes]).collect()
}
