//! The memory of a plan on a device.

use std::collections::BTreeMap;

use ds4_ir::graph::{Graph, State, Weight};
use ds4_ir::plan::layout::q8_scales_at;
use ds4_ir::plan::tables::binding;
use ds4_ir::plan::{ALIGN, BindingRow, Plan, SlotRow, StatePlaceRow};
use ds4_ir::{Bounds, Diagnostic};

use super::progress;
use super::weights::Tensor;
use crate::cpu::exec::FileBytes;
use crate::device::backend::{Backend, Piece};

/// Bytes between two reports of the upload.
const REPORT: u64 = 1 << 24;

/// Buffers and what lies where in them.
pub(super) struct Memory {
    step: Piece,
    tokens: Piece,
    arena: Piece,
    states: Piece,
    state_places: Vec<StatePlaceRow>,
    /// By kind and id: weights, their scales, constants, magnitudes.
    fixed: BTreeMap<(u32, u32), Piece>,
}

impl Memory {
    /// Makes the buffers and fills those that no step changes.
    pub(super) fn new(
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        files: &[FileBytes],
        backend: &mut dyn Backend,
    ) -> Result<Memory, Diagnostic> {
        let arena = plan.entries.iter().map(|e| e.arena_bytes).max().unwrap_or(0);
        let states = plan.state_places.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
        let columns = plan.entries.iter().map(|e| e.columns).max().unwrap_or(1);
        let mut new = |name: &str, bytes: u64| -> Result<Piece, Diagnostic> {
            let bytes = bytes.max(4);
            Ok(Piece { buffer: backend.buffer(name, bytes)?, offset: 0, bytes })
        };
        let mut memory = Memory {
            step: new("step", 4 * (2 + plan.step_dims.len() as u64))?,
            tokens: new("tokens", 4 * u64::from(columns))?,
            arena: new("values", arena)?,
            states: new("states", states)?,
            state_places: plan.state_places.to_vec(),
            fixed: BTreeMap::new(),
        };
        memory.add_tables(graph, backend)?;
        memory.add_weights(graph, plan, files, backend)?;
        Ok(memory)
    }

    /// Constants, one behind the other, and the magnitudes.
    fn add_tables(&mut self, graph: &Graph<'_>, backend: &mut dyn Backend) -> Result<(), Diagnostic> {
        let magnitudes: Vec<u8> = ds4_ir::formats::iq2_xxs::GRID.iter().flat_map(|row| row.to_le_bytes()).collect();
        let constants = (0..).zip(graph.constants);
        let constants =
            constants.map(|(i, row)| (binding::CONSTANT, i, bytemuck::cast_slice(row.words.of(graph.constant_words))));
        let mut tables: Vec<(u32, u32, &[u8])> = constants.collect();
        tables.push((binding::MAGNITUDES, 0, &magnitudes));
        let mut at = 0;
        let places: Vec<u64> = tables
            .iter()
            .map(|(_, _, bytes)| {
                let place = at;
                at += (bytes.len() as u64).max(4).next_multiple_of(ALIGN);
                place
            })
            .collect();
        let buffer = backend.buffer("tables", at)?;
        for ((kind, id, bytes), offset) in tables.into_iter().zip(places) {
            let piece = Piece { buffer, offset, bytes: (bytes.len() as u64).max(4) };
            self.fixed.insert((kind, id), piece);
            if !bytes.is_empty() {
                backend
                    .fill(piece, &mut |at, out| out.copy_from_slice(&bytes[at as usize..at as usize + out.len()]))?;
            }
        }
        Ok(())
    }

    /// The tensors that some kernel reads.
    fn add_weights(
        &mut self,
        graph: &Graph<'_>,
        plan: &Plan<'_>,
        files: &[FileBytes],
        backend: &mut dyn Backend,
    ) -> Result<(), Diagnostic> {
        let files: Vec<&[u8]> = files.iter().map(|file| (**file).as_ref()).collect();
        let read = |row: &&BindingRow| matches!(row.kind, binding::WEIGHT | binding::WEIGHT_SCALES);
        let mut wanted: Vec<(u32, u32)> = plan.bindings.iter().filter(read).map(|row| (row.id, row.kind)).collect();
        wanted.sort();
        wanted.dedup();
        let bar = progress(wanted.len() as u64, "weights");
        for (id, kind) in wanted {
            let tensor = Tensor::of(graph, plan, &files, Weight(id))?;
            let is_scales = kind == binding::WEIGHT_SCALES;
            let bytes = if is_scales { tensor.scale_bytes() } else { tensor.bytes() };
            let name = graph.name(graph.weights[id as usize].name);
            let name = if is_scales { format!("{name} (scales)") } else { name.to_string() };
            let piece = Piece { buffer: backend.buffer(&name, bytes)?, offset: 0, bytes };
            let mut reported = 0;
            backend.fill(piece, &mut |at, out| {
                if at >= reported {
                    bar.tick();
                    reported += REPORT;
                }
                match is_scales {
                    true => tensor.write_scales(at, out),
                    false => tensor.write(at, out),
                }
            })?;
            self.fixed.insert((kind, id), piece);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    pub(super) fn arena_bytes(&self) -> u64 {
        self.arena.bytes
    }

    pub(super) fn state_bytes(&self) -> u64 {
        self.states.bytes
    }

    /// The step's block.
    pub(super) fn step(&self) -> Piece {
        self.step
    }

    /// A range of the arena.
    pub(super) fn arena_piece(&self, offset: u64, bytes: u64) -> Piece {
        Piece { offset, bytes, ..self.arena }
    }

    /// A state.
    pub(super) fn state(&self, state: State) -> Piece {
        let place = self.state_places[state.0 as usize];
        Piece { offset: place.offset, bytes: place.bytes, ..self.states }
    }

    /// What a binding is bound to in an entry point with these slots. Empty memory is bound as one word, which nothing reads.
    pub(super) fn piece(
        &self,
        graph: &Graph<'_>,
        bounds: Bounds,
        slots: &[SlotRow],
        row: &BindingRow,
    ) -> Option<Piece> {
        let slot = || slots.binary_search_by_key(&row.id, |slot| slot.value.0).ok().map(|i| &slots[i]);
        // The elements of a stored q8 value: a byte each, then a scale for 32.
        let count = |slot: &SlotRow| -> usize {
            graph.max_extents(graph.value_shape[slot.value.0 as usize], bounds).iter().product()
        };
        let piece = match row.kind {
            binding::SLOT => self.arena_piece(slot()?.offset, slot()?.bytes),
            binding::CODES => self.arena_piece(slot()?.offset, count(slot()?) as u64),
            binding::SCALES => {
                let count = count(slot()?);
                self.arena_piece(slot()?.offset + q8_scales_at(count) as u64, count as u64 / 32 * 4)
            }
            binding::STATE => self.state(State(row.id)),
            binding::TOKENS => self.tokens,
            _ => *self.fixed.get(&(row.kind, row.id))?,
        };
        Some(Piece { bytes: piece.bytes.max(4), ..piece })
    }

    /// Writes what a step begins with.
    pub(super) fn begin(&self, backend: &mut dyn Backend, words: &[u32], tokens: &[u32]) -> Result<(), Diagnostic> {
        for (piece, words) in [(self.step, words), (self.tokens, tokens)] {
            let bytes: &[u8] = bytemuck::cast_slice(words);
            let piece = Piece { bytes: bytes.len() as u64, ..piece };
            backend.fill(piece, &mut |at, out| out.copy_from_slice(&bytes[at as usize..at as usize + out.len()]))?;
        }
        Ok(())
    }

    /// Sets all states to their beginning.
    pub(super) fn clear_states(&self, backend: &mut dyn Backend) -> Result<(), Diagnostic> {
        backend.fill(self.states, &mut |_, out| out.fill(0))
    }
}
