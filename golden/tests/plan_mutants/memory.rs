//! Changes of memory: slots, states, entry points.

use ds4_golden::proofs::trials::Words;
use ds4_ir::Value;
use ds4_ir::plan::{ALIGN, SlotRow};

use super::edit::{Mutant, pick};
use super::{Kind, harmless, kind};

pub const KINDS: &[Kind] = &[
    kind("slot removed", removed),
    kind("slot added", added),
    kind("offsets exchanged", exchanged),
    kind("slot aliased", aliased),
    kind("slot partly aliased", |m, e, w| of_slot(m, e, w, |slot, w| slot.offset += ALIGN * (1 + pick(w, 4) as u64))),
    kind("slot moved down", |m, e, w| {
        of_slot(m, e, w, |slot, w| {
            slot.offset = slot.offset.saturating_sub(ALIGN * (1 + pick(w, 4) as u64));
        })
    }),
    kind("slot misaligned", |m, e, w| of_slot(m, e, w, |slot, _| slot.offset += 64)),
    kind("bytes of a slot", |m, e, w| of_slot(m, e, w, |slot, w| slot.bytes ^= 1 << pick(w, 12))),
    kind("slot of another value", |m, e, w| of_slot(m, e, w, |slot, w| slot.value.0 ^= 1 + pick(w, 7) as u32)),
    kind("slot inside another", inside),
    kind("lifetime shortened", shortened),
    kind("arena smaller", |m, e, w| {
        m.plan.entries[e].arena_bytes -= ALIGN * (1 + pick(w, 8) as u64);
        Some(String::new())
    }),
    harmless("arena larger", |m, e, w| {
        m.plan.entries[e].arena_bytes += ALIGN * (1 + pick(w, 8) as u64);
        Some(String::new())
    }),
    harmless("slot in memory of its own", |m, e, w| {
        let at = outer(m, e, w)?;
        let end = m.plan.entries[e].arena_bytes;
        let value = m.plan.slots[at].value;
        if m.slots(e).any(|i| m.plan.slots[i].within == value && m.plan.slots[i].value != value) {
            return None;
        }
        m.plan.slots[at].offset = end;
        m.plan.entries[e].arena_bytes += m.plan.slots[at].bytes.next_multiple_of(ALIGN);
        Some(value.to_string())
    }),
    kind("place of a state", |m, _, w| {
        let n = m.plan.state_places.len();
        let other = m.plan.state_places[pick(w, n)].offset;
        let place = &mut m.plan.state_places[pick(w, n)];
        place.offset = [other, place.offset + ALIGN, place.offset + 4][pick(w, 3)];
        Some(place.offset.to_string())
    }),
    kind("bytes of a state", |m, _, w| {
        let n = m.plan.state_places.len();
        m.plan.state_places[pick(w, n)].bytes ^= 4;
        Some(String::new())
    }),
    kind("columns of an entry point", |m, e, w| {
        m.plan.entries[e].columns ^= 1 + pick(w, 3) as u32;
        Some(e.to_string())
    }),
    kind("outputs of an entry point", |m, e, w| {
        m.plan.entries[e].outputs ^= 1 + pick(w, 3) as u32;
        Some(e.to_string())
    }),
    kind("name of an entry point", |m, e, w| {
        m.plan.entries[e].name = m.plan.entries[pick(w, 3)].name;
        Some(e.to_string())
    }),
    kind("entry points exchanged", |m, e, w| {
        let other = pick(w, 3);
        m.plan.entries.swap(e, other);
        Some(format!("{e} and {other}"))
    }),
    kind("launches of an entry point", |m, e, w| {
        let run = &mut m.plan.entries[e].launches;
        match pick(w, 3) {
            0 => run.start += 1,
            1 => run.len -= 1,
            _ => (run.start, run.len) = (run.start + 1, run.len - 1),
        }
        Some(e.to_string())
    }),
    kind("context", |m, _, w| {
        m.plan.context[0] ^= 1 << pick(w, 7);
        Some(m.plan.context[0].to_string())
    }),
];

fn of_slot(m: &mut Mutant, entry: usize, words: &mut Words, change: fn(&mut SlotRow, &mut Words)) -> Option<String> {
    let slots = m.slots(entry);
    let slot = &mut m.plan.slots[slots.start + pick(words, slots.len())];
    change(slot, words);
    Some(slot.value.to_string())
}

/// A slot with memory of its own.
fn outer(m: &Mutant, entry: usize, words: &mut Words) -> Option<usize> {
    let slots: Vec<usize> = m.slots(entry).filter(|&i| m.plan.slots[i].within == m.plan.slots[i].value).collect();
    slots.get(pick(words, slots.len())).copied()
}

/// The slots of an entry point anew, behind all others.
fn put(m: &mut Mutant, entry: usize, slots: &[SlotRow]) {
    m.plan.entries[entry].slots = ds4_ir::Run::push(&mut m.plan.slots, slots);
}

fn removed(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut slots = m.plan.slots[m.slots(entry)].to_vec();
    let gone = slots.remove(pick(words, slots.len()));
    put(m, entry, &slots);
    Some(gone.value.to_string())
}

/// A slot for a value that has none, behind the arena.
fn added(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let mut slots = m.plan.slots[m.slots(entry)].to_vec();
    let v = Value(pick(words, m.graph.value_op.len()) as u32);
    let at = slots.binary_search_by_key(&v, |slot| slot.value).err()?;
    let graph = m.graph.view();
    let bounds = m.plan.view().bounds(&m.plan.entries[entry]);
    let extents = graph.max_extents(graph.value_shape[v.0 as usize], bounds);
    let bytes = ds4_ir::plan::layout::stored_bytes(graph.ty(v), &extents)?;
    let offset = m.plan.entries[entry].arena_bytes;
    slots.insert(at, SlotRow { value: v, within: v, offset, bytes });
    m.plan.entries[entry].arena_bytes += bytes.next_multiple_of(ALIGN);
    put(m, entry, &slots);
    Some(v.to_string())
}

fn exchanged(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let (a, b) = (outer(m, entry, words)?, outer(m, entry, words)?);
    let (x, y) = (m.plan.slots[a].offset, m.plan.slots[b].offset);
    (m.plan.slots[a].offset, m.plan.slots[b].offset) = (y, x);
    Some(format!("{} and {}", m.plan.slots[a].value, m.plan.slots[b].value))
}

fn aliased(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let (a, b) = (outer(m, entry, words)?, outer(m, entry, words)?);
    m.plan.slots[a].offset = m.plan.slots[b].offset;
    Some(format!("{} on {}", m.plan.slots[a].value, m.plan.slots[b].value))
}

fn inside(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let (a, b) = (outer(m, entry, words)?, outer(m, entry, words)?);
    (m.plan.slots[a].within, m.plan.slots[a].offset) = (m.plan.slots[b].value, m.plan.slots[b].offset);
    Some(format!("{} in {}", m.plan.slots[a].value, m.plan.slots[b].value))
}

/// A value's memory is given to one that is computed by the launch that reads the first, or before.
fn shortened(m: &mut Mutant, entry: usize, words: &mut Words) -> Option<String> {
    let graph = m.graph.view();
    let launches = m.launches(entry);
    let at = pick(words, launches.len());
    let stored = |v: Value| m.slots(entry).find(|&i| m.plan.slots[i].value == v && m.plan.slots[i].within == v);
    let listed = || launches[at].regions.iter().flat_map(|region| &region.0);
    let written: Vec<usize> = listed().filter_map(|&v| stored(v)).collect();
    let read: Vec<usize> = listed().flat_map(|&v| graph.args(v)).filter_map(|&v| stored(v)).collect();
    let (&a, &b) = (written.get(pick(words, written.len()))?, read.get(pick(words, read.len()))?);
    let what = format!("{} on {} in launch {at}", m.plan.slots[a].value, m.plan.slots[b].value);
    m.plan.slots[a].offset = m.plan.slots[b].offset;
    Some(what)
}
