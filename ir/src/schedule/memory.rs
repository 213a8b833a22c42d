//! Memory of an entry point: offsets in an arena by first fit over lifetimes.

use crate::graph::{Graph, Value};
use crate::plan::launches::{Lives, lifetimes};
use crate::plan::layout::{Layout, Root};
use crate::plan::{ALIGN, SlotRow};

/// A stretch of the arena in use, until a launch.
struct Taken {
    start: u64,
    end: u64,
    last: usize,
}

/// First and last launch at which each slot is needed, for launches that a schedule made.
pub fn lives(graph: &Graph<'_>, launches: &[Vec<&[Value]>], slots: &[SlotRow], found: &[Option<Layout>]) -> Lives {
    match lifetimes(graph, launches, slots, found) {
        Ok(lives) => lives,
        Err(fault) => panic!("invariant: a schedule computes what it reads: {fault}"),
    }
}

/// Makes the memory of these values needed to the end.
pub(super) fn prolong(lives: &mut Lives, slots: &[SlotRow], found: &[Option<Layout>], lasting: &[Value]) {
    for v in lasting {
        let Some(Layout { root: Root::Slot(root), .. }) = &found[v.0 as usize] else { continue };
        if let Ok(i) = slots.binary_search_by_key(root, |slot| slot.value) {
            lives[i].1 = usize::MAX;
        }
    }
}

/// Gives every slot its offset and returns the size of the arena.
///
/// Slots that are needed at the same time do not share bytes; [`crate::plan::check`] checks that again when a plan is
/// opened.
pub fn assign(slots: &mut [SlotRow], lives: &Lives) -> u64 {
    let mut order: Vec<usize> = (0..slots.len()).filter(|&i| slots[i].within == slots[i].value).collect();
    order.sort_by_key(|&i| (lives[i].0, slots[i].value));
    let mut taken: Vec<Taken> = Vec::new();
    let mut size = 0;
    for i in order {
        let (first, last) = lives[i];
        taken.retain(|t| t.last >= first);
        let bytes = slots[i].bytes.next_multiple_of(ALIGN);
        let at = first_fit(&taken, bytes);
        slots[i].offset = at;
        size = size.max(at + bytes);
        if bytes > 0 && first != usize::MAX {
            let index = taken.partition_point(|t| t.start < at);
            taken.insert(index, Taken { start: at, end: at + bytes, last });
        }
    }
    place_nested(slots);
    size
}

/// The lowest offset with `bytes` free bytes. `taken` is sorted and does not overlap.
fn first_fit(taken: &[Taken], bytes: u64) -> u64 {
    let mut at = 0;
    for t in taken {
        if t.start >= at + bytes {
            return at;
        }
        at = t.end;
    }
    at
}

/// Slots inside concats repeat the offset of the memory they are in; outer concats have higher ids.
fn place_nested(slots: &mut [SlotRow]) {
    for i in (0..slots.len()).rev() {
        if slots[i].within != slots[i].value {
            let outer = slots.binary_search_by_key(&slots[i].within, |slot| slot.value);
            slots[i].offset = slots[outer.expect("a concat with operands inside has a slot")].offset;
        }
    }
}
